"""`rig levels`: live meters, to set the gain of both inputs before a measurement."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rig.cli.options import AsJson, Backend, Ear, Quiet, Ref, check_channels

if TYPE_CHECKING:
    from rig.bench.listen import Heard
    from rig.bench.meter import ChannelReading
    from rig.domain.records import StreamGrant

SCHEMA = "rig.levels/1"
AIM_DBFS = (-20.0, -6.0)
"""Where the peak of either channel should lie while the stimulus plays (docs/hardware.md)."""

EVERY_S = 1.0
WIDTH = 80
_LOWEST_DBFS = -60.0
_BAR = 36  # characters


def levels(
    device: Annotated[str, typer.Option("--device", metavar="NAME|sim[:SCENARIO]", help="the interface (rig devices)")],
    seconds: Annotated[float, typer.Option("--seconds", min=0.0, max=86400.0, help="how long; 0: until Ctrl-C")] = 10.0,
    play: Annotated[
        bool, typer.Option("--play", help="play the chirp from the interface once a second meanwhile")
    ] = False,
    backend: Backend = "sounddevice",
    rate: Annotated[int, typer.Option("--rate", min=8000, max=192_000, help="sample rate in Hz")] = 48_000,
    ref: Ref = None,
    ear: Ear = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Show the level of both inputs as it is, for setting gain; flag clipping and digital silence."""
    import json
    from contextlib import ExitStack

    ref_channel, ear_channel = 1 if ref is None else ref, 2 if ear is None else ear
    check_channels(ref_channel, ear_channel)

    from rig.bench.listen import listen
    from rig.bench.meter import Meter
    from rig.cli.bench_choice import BenchOptions, choose_bench, is_simulated
    from rig.cli.output import show
    from rig.cli.progress import open_painter
    from rig.cli.quiet import quiet_libraries
    from rig.cli.record import AMPLITUDE
    from rig.domain.records import StreamSpec
    from rig.domain.waveforms import ideal_waveform
    from rig.errors import UsageError

    if is_simulated(device) and seconds == 0.0:
        raise UsageError(
            "--seconds 0 with the simulated bench: its time passes at once and never ends",
            "a length above 0",
            "leave --seconds out",
        )
    inputs = max(2, ref_channel, ear_channel)
    names = {ref_channel: "reference", ear_channel: "ear"}
    with ExitStack() as stack:
        chatter = None if is_simulated(device) else stack.enter_context(quiet_libraries())
        bench = choose_bench(BenchOptions(device, "none", None, 1, backend, inputs, play), chatter)
        stream = bench.audio.open(StreamSpec(bench.device, rate, inputs))
        stack.callback(stream.close)
        stack.callback(bench.system.stop)
        bench.system.start(1)  # a simulated one; real ones run by themselves here
        painter = stack.enter_context(open_painter(quiet, every_s=EVERY_S))
        head = f"{stream.granted.device}, {stream.granted.rate_hz} Hz"

        def paint(meter: Meter, heard_s: float) -> None:
            if painter is not None:
                painter.paint(*_picture(head, heard_s, meter.lately(), names, painter.live))

        heard = listen(
            stream,
            bench.time,
            seconds or None,
            paint,
            ideal_waveform("chirp", rate, AMPLITUDE) if play else None,
            EVERY_S,
        )
        granted = stream.granted
    if as_json:
        show(json.dumps(_document(bench.kind, granted, heard, names, play), indent=1, ensure_ascii=False) + "\n")
    else:
        show("\n".join(_summary(bench.kind, granted, heard, names, play)) + "\n")


def _picture(
    head: str, heard_s: float, readings: tuple[ChannelReading, ...], names: dict[int, str], live: bool
) -> tuple[list[str], bool]:
    """What is shown while it runs: bars where they are redrawn in place, one line where they are not."""
    numbered = [(k, reading) for k, reading in enumerate(readings, start=1) if k in names]
    if not live:
        return [f"{heard_s:5.1f} s  " + "   ".join(f"{k}: {_words(reading)}" for k, reading in numbered)], False
    lines = [f"{head}, {heard_s:.1f} s"]
    for k, reading in numbered:
        peak = "    -" if reading.peak_dbfs is None else f"{reading.peak_dbfs:5.1f}"
        lines.append(f"{k} {names[k]:<9} [{_bar(reading)}] {peak} dBFS {_flags(reading)}".rstrip())
    return lines, False


def _bar(reading: ChannelReading) -> str:
    """`#` up to the RMS, `-` on to the peak, from _LOWEST_DBFS to full scale."""

    def cells(level: float | None) -> int:
        if level is None:
            return 0
        return max(0, min(_BAR, round(_BAR * (1.0 - level / _LOWEST_DBFS))))

    rms, peak = cells(reading.rms_dbfs), cells(reading.peak_dbfs)
    return "#" * rms + "-" * max(0, peak - rms) + " " * (_BAR - max(rms, peak))


def _flags(reading: ChannelReading) -> str:
    if reading.digital_silence:
        return "digital silence"
    return f"CLIPPED {reading.clipped_samples}" if reading.clipped_samples else ""


def _level(dbfs: float | None) -> str:
    return "none" if dbfs is None else f"{dbfs:.1f}"


def _words(reading: ChannelReading) -> str:
    if reading.digital_silence:
        return "digital silence"
    clipped = " CLIPPED" if reading.clipped_samples else ""
    return f"peak {_level(reading.peak_dbfs)} RMS {_level(reading.rms_dbfs)} dBFS{clipped}"


def _summary(kind: str, granted: StreamGrant, heard: Heard, names: dict[int, str], played: bool) -> list[str]:
    api = "" if granted.host_api in (None, kind) else f", {granted.host_api}"
    lines = [f"{granted.device}{api}, {granted.rate_hz} Hz, {heard.heard_s:.1f} s"]
    if kind != "hardware":
        lines[0] += f" ({kind}: no hardware was heard)"
    lines += ["", "  channel              peak dBFS  RMS dBFS       DC  clipped"]
    notes = []
    for k, reading in enumerate(heard.levels, start=1):
        peak, rms = _level(reading.peak_dbfs), _level(reading.rms_dbfs)
        lines.append(
            f"  {k:>2}  {names.get(k, ''):<15} {peak:>9}  {rms:>8}  {reading.dc:+.4f}  {reading.clipped_samples:>7}"
        )
        advice = _advice(reading, played)
        if k in names and advice:
            notes.append(f"  channel {k}: {advice}")
    if heard.flagged or heard.unflagged:
        notes.append(f"  samples were lost {(heard.flagged or 0) + heard.unflagged} times: rig doctor says more")
    if not played:
        low, high = AIM_DBFS
        notes.append(f"  while the stimulus plays, peaks belong between {low:.0f} and {high:.0f} dBFS")
    if notes:
        lines.append("")
    for note in notes:
        lines += textwrap.wrap(note, WIDTH, subsequent_indent="    ")
    return lines


def _advice(reading: ChannelReading, played: bool) -> str | None:
    """What to do about a level; about too little of it only where something was played."""
    low, high = AIM_DBFS
    if reading.digital_silence:
        return "digital silence: every sample has the same value; nothing is connected, or it is muted"
    if reading.clipped_samples:
        return "it clips: turn its gain down until it does not"
    if reading.peak_dbfs is not None and reading.peak_dbfs > high:
        return f"turn its gain down by {reading.peak_dbfs - high:.0f} dB or more"
    if played and reading.peak_dbfs is not None and reading.peak_dbfs < low:
        return f"turn its gain up by {low - reading.peak_dbfs:.0f} dB or more"
    return None


def _document(kind: str, granted: StreamGrant, heard: Heard, names: dict[int, str], played: bool) -> dict[str, Any]:
    from dataclasses import asdict

    facts = asdict(heard)
    readings = facts.pop("levels")
    return {
        "schema": SCHEMA,
        "bench": str(kind),
        "granted": asdict(granted),
        "played": played,
        **facts,
        "channels": [
            {"channel": k, "role": names.get(k), **reading, "advice": _advice(heard.levels[k - 1], played)}
            for k, reading in enumerate(readings, start=1)
        ],
    }
