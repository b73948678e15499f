"""`rig devices`: the audio devices and serial ports that there are, and how to name them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rig.cli.options import AsJson, Backend

if TYPE_CHECKING:
    from rig.acquire.devices import DeviceInfo
    from rig.acquire.ports import PortInfo

SCHEMA = "rig.devices/1"


def devices(backend: Backend = "sounddevice", as_json: AsJson = False) -> None:
    """List audio devices and serial ports, with the argument that names each."""
    import json

    from rig.acquire.link import SystemTime, list_ports
    from rig.cli.bench_choice import open_backend
    from rig.cli.output import show
    from rig.cli.quiet import quiet_libraries

    with quiet_libraries() as chatter:
        audio = open_backend(backend, SystemTime(), False, chatter).scan()
        serial = list_ports()
    if as_json:
        show(json.dumps(_document(backend, audio, serial), indent=1, ensure_ascii=False) + "\n")
    else:
        show("\n".join([*_audio_lines(audio), "", *_serial_lines(serial)]) + "\n")


def _document(backend: str, audio: list[DeviceInfo], serial: list[PortInfo]) -> dict[str, Any]:
    from dataclasses import asdict

    from rig.acquire.devices import argument

    return {
        "schema": SCHEMA,
        "backend": backend,
        "audio": [
            {**asdict(d), "sound_server": d.sound_server, "monitor": d.monitor, "argument": argument(audio, d)}
            for d in audio
        ],
        "serial": [asdict(port) for port in serial],
    }


def _audio_lines(audio: list[DeviceInfo]) -> list[str]:
    from rig.acquire.devices import argument, quoted

    if not audio:
        return ["audio: no devices at all"]
    widest = max(len(d.host_api) for d in audio)
    lines = ["audio", f"  index  in  out  rate Hz  {'host API':<{widest}}  name"]
    for d in audio:
        rate = "-" if d.default_rate_hz is None else f"{d.default_rate_hz:.0f}"
        lines.append(f"  {d.index:>5}  {d.inputs:>2}  {d.outputs:>3}  {rate:>7}  {d.host_api:<{widest}}  {d.name}")
        notes = [
            "a sound server or mixer, not the hardware" if d.sound_server else None,
            "records what the computer plays" if d.monitor else None,
            f"named by its index: --device {d.index}" if argument(audio, d).isdigit() else None,
        ]
        lines += [f"{'':<29}  {'':<{widest - 2}}  ({note})" for note in notes if note]
    best = [d for d in audio if d.inputs >= 2 and not d.monitor and not d.sound_server]
    if best:
        named = argument(audio, best[0]) if len(_same_name(audio, best[0])) > 1 else best[0].name
        lines += ["", f"  two inputs or more: rig measure --device {quoted(named)}"]
    else:
        lines += ["", "  none of them is a piece of hardware with two inputs"]
    return lines


def _same_name(audio: list[DeviceInfo], device: DeviceInfo) -> list[DeviceInfo]:
    return [d for d in audio if d.name == device.name]


def _serial_lines(serial: list[PortInfo]) -> list[str]:
    if not serial:
        return ["serial: no ports"]
    return ["serial", *(f"  {port.label}" for port in serial)]
