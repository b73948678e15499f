"""What the interface hears: losses and noise while nothing plays, then which channel carries the stimulus."""

from __future__ import annotations

import sys

from rig.bench.listen import Heard
from rig.doctor.finding import Finding, fail, ok, warn
from rig.domain.records import ChannelLevel, ChannelRoles, Reason, RunAnalysis, StreamGrant

LISTEN_S = 5.0
STIMULI = 3
"""The least that a run needs."""

MANY_LOSSES = 3
"""In LISTEN_S: about one a trial, so that no trial would be left."""

NOISY_DBFS = -40.0
"""RMS while nothing plays. The stimulus peaks at -6 dBFS at most and has to stand 30 dB above it on the reference."""

LOWEST_DBFS, HIGHEST_DBFS = -20.0, -6.0
"""Where the peak of the stimulus belongs (docs/hardware.md)."""

_MICROPHONE = "; on macOS give the terminal the right to the microphone" if sys.platform == "darwin" else ""


def stream_finding(granted: StreamGrant, heard: Heard) -> Finding:
    """The stream opened and delivers."""
    blocks = "" if granted.block_frames is None else f" in blocks of {granted.block_frames}"
    claim = granted.input_latency_claimed_s
    claims = "" if claim is None else f"; the driver claims {claim * 1e3:.1f} ms of input latency"
    first = f"first samples after {heard.first_block_s * 1e3:.0f} ms"
    return ok("stream", f"{granted.channels} channels at {granted.rate_hz} Hz{blocks}, {first}{claims}")


def losses_finding(heard: Heard, rate_hz: int) -> Finding:
    """Losses that the driver flagged (xruns) and those that only the clock shows."""
    count = (heard.flagged or 0) + heard.unflagged
    if not count:
        flags = "its driver flags none" if heard.flagged is not None else "its driver cannot tell"
        return ok("xruns", f"none in {heard.heard_s:.1f} s: {flags}, and none shows in the frames against the clock")
    length = f", {heard.lost_frames / rate_hz * 1e3:.0f} ms in all" if heard.lost_frames else ""
    told = f"{heard.flagged or 0} flagged by the driver, {heard.unflagged} not{length}"
    text = f"samples were lost {count} times in {heard.heard_s:.1f} s: {told}"
    remedy = (
        "close what keeps the computer or the sound system busy; another port or hub for the interface; no power saving"
    )
    return fail("xruns", text, remedy) if count >= MANY_LOSSES else warn("xruns", text, remedy)


def quiet_findings(heard: Heard, roles: ChannelRoles, bench: str, judged_later: bool) -> list[Finding]:
    """The levels of both channels while rig plays nothing. `judged_later`: whether silence means anything is seen when
    the stimulus is played."""
    found = []
    for name, channel in (("reference", roles.ref), ("ear", roles.ear)):
        reading, where = heard.levels[channel], f"{name}, channel {channel + 1}"
        if reading.clipped_samples:
            text = f"{where}: it clips while rig plays nothing"
            found.append(fail(f"{name[:3]} noise", text, "turn its gain down, and see what plays: rig levels shows it"))
        elif reading.digital_silence:
            text = f"{where}: digital silence, every sample is the same"
            if judged_later or bench == "virtual":
                found.append(ok(f"{name[:3]} noise", text))
            else:
                remedy = f"check that it is plugged in and not muted{_MICROPHONE}"
                found.append(warn(f"{name[:3]} noise", text, remedy))
        elif reading.rms_dbfs is not None and reading.rms_dbfs > NOISY_DBFS:
            text = f"{where}: {reading.rms_dbfs:.1f} dBFS RMS while rig plays nothing"
            remedy = "find what sounds or hums there: a loop in the wiring, a fan, music, too much gain"
            found.append(warn(f"{name[:3]} noise", text, remedy))
        else:
            level = "none" if reading.rms_dbfs is None else f"{reading.rms_dbfs:.1f} dBFS RMS"
            found.append(ok(f"{name[:3]} noise", f"{where}: {level} while rig plays nothing"))
    return found


def reference_finding(run: RunAnalysis, swapped: RunAnalysis | None, roles: ChannelRoles, board: bool) -> Finding:
    """Whether the reference channel carries the stimulus. `swapped` is the analysis with the roles exchanged, asked for
    where the reference carries none."""
    one, other = roles.ref + 1, roles.ear + 1
    level = None if run.levels is None else run.levels[0]
    if run.refusal is Reason.SAME_SIGNAL:
        return fail(
            "reference",
            f"channels {one} and {other} carry the same signal",
            "check the wiring, and that nothing mixes both inputs into one: one cable to each",
        )
    if run.refusal is Reason.SWAPPED_CHANNELS or (swapped is not None and len(swapped.trials) > 0):
        return fail(
            "reference",
            f"the stimulus comes on channel {other}, not on channel {one}",
            f"exchange the two cables, or measure with --ref {other} --ear {one}",
        )
    if level is not None and level.digital_silence:
        return fail(
            "reference",
            f"channel {one} is digitally silent while the stimulus plays",
            f"check that its cable comes from what plays, and that it is not muted{_MICROPHONE}",
        )
    if not run.trials:
        source = "the board's tone output" if board else "the interface's output"
        return fail(
            "reference",
            f"none of {STIMULI} stimuli is heard on channel {one}",
            f"lead {source} into it by cable, turn it up, and look with rig levels",
        )
    weak = [trial for trial in run.trials if trial.reason is Reason.WEAK_REFERENCE]
    if weak and weak[0].reference_snr_db is not None:
        return fail(
            "reference",
            f"the stimulus stands {weak[0].reference_snr_db:.0f} dB above the noise of channel {one}, 30 are needed",
            "turn up what plays it, not the noise: a cable at line level, not a microphone",
        )
    return _level_finding("reference", one, f"{len(run.trials)} of {STIMULI} stimuli heard", level)


def ear_finding(run: RunAnalysis, roles: ChannelRoles, bench: str) -> Finding:
    """Whether the ear channel carries what the system makes of the stimulus. No latency is told here: three stimuli
    without a blank run are no measurement."""
    channel = roles.ear + 1
    level = None if run.levels is None else run.levels[1]
    if level is not None and level.digital_silence:
        text = f"channel {channel} is digitally silent while the stimulus plays"
        if bench == "virtual":
            return warn("ear", text, "start the system under test and look again")
        remedy = f"check its cable or microphone, and that it is not muted{_MICROPHONE}"
        return fail("ear", text, remedy)
    if level is not None and level.clipped_samples:
        return _level_finding("ear", channel, "", level)
    answered = sum(trial.valid for trial in run.trials)
    if not answered:
        reasons = sorted({trial.reason.value for trial in run.trials if trial.reason is not None})
        return warn(
            "ear",
            f"channel {channel} hears none of the stimuli come back" + (f" ({', '.join(reasons)})" if reasons else ""),
            "start the system under test (--sut CMD starts it here), bring the ear closer, turn its gain up",
        )
    return _level_finding("ear", channel, f"{answered} of {len(run.trials)} stimuli come back", level)


def _level_finding(name: str, channel: int, text: str, level: ChannelLevel | None) -> Finding:
    peak = None if level is None else level.peak_dbfs
    if level is None or peak is None:
        return ok(name, f"channel {channel}: {text}")
    if level.clipped_samples:
        return fail(
            name, f"channel {channel} clips ({level.clipped_samples} samples)", "turn its gain down by 6 dB or more"
        )
    said = f"channel {channel}: {text}, peak {peak:.1f} dBFS"
    if peak > HIGHEST_DBFS + 0.5:
        return warn(name, said, f"turn its gain down by {peak - HIGHEST_DBFS:.0f} dB: louder sounds would clip")
    if peak < LOWEST_DBFS - 5.0:
        return warn(name, said, f"turn its gain up by {LOWEST_DBFS - peak:.0f} dB: it measures, but with less margin")
    return ok(name, said)
