"""Is it connected as asked? The mistakes that a calibration sees in its own recording, each by name. Pure.

Levels are against what the interface was asked to play. A cable brings most of it, however the gains stand; what leaks
inside an interface is far below; a microphone's level is anywhere between.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from rig.analyse.boardpulse import Pulses
from rig.analyse.heard import Channel
from rig.analyse.known import moved_frames

CABLE_DB = -40.0
"""From here on a stimulus came by cable, below it leaked: gains of inputs and pads move a cable by 30 dB, the crosstalk
of an interface begins at about -60 dB."""

FAINT_DB = -60.0
"""A microphone that would not be heard at this level is drowned by noise, rather than not there."""

SAME_FRAMES = 1e-6
"""Two converters never agree like this on every stimulus: one signal was recorded twice."""


class Fault(StrEnum):
    """What is not as asked."""

    NOTHING_CONNECTED = "nothing_connected"
    WRONG_CHANNEL = "wrong_channel"
    WRONG_CABLE = "wrong_cable"
    STILL_CONNECTED = "still_connected"
    CLIPPED = "clipped"
    MOVING_MICROPHONE = "moving_microphone"
    TOO_NOISY = "too_noisy"
    ONE_SIGNAL = "one_signal"
    DIGITAL_SILENCE = "digital_silence"
    NOT_LOUD_ENOUGH = "not_loud_enough"


@dataclass(frozen=True, slots=True)
class Miswired:
    """One mistake: what was found, and what to do. `{ref}`, `{ear}` in the text stand for the channels' numbers."""

    fault: Fault
    what: str
    remedy: str


def check_open(reference: Channel, ear: Channel) -> Miswired | None:
    """Nothing is to be in the inputs: a stimulus that is played is on neither."""
    for channel, name in ((reference, "{ref}"), (ear, "{ear}")):
        if _by_cable(channel):
            return Miswired(
                Fault.STILL_CONNECTED, f"input {name} hears the output", f"pull the plug out of input {name}"
            )
    return _silent(reference, ear)


def check_loop(reference: Channel, ear: Channel) -> Miswired | None:
    """One cable from the output into the reference's input, nothing in the ear's."""
    if _clipped(reference):
        return _too_loud("{ref}")
    if not _by_cable(reference):
        if _by_cable(ear):
            return Miswired(
                Fault.WRONG_CHANNEL,
                "the stimulus is on input {ear}, and not on input {ref}",
                "plug the cable into input {ref}, or exchange the channels with --ref and --ear",
            )
        return _missing(reference, "{ref}")
    if _by_cable(ear):
        return Miswired(
            Fault.WRONG_CABLE,
            "the stimulus is on both inputs",
            "take a plain cable, not a Y-cable, and pull the plug out of input {ear}",
        )
    return None


def check_split(reference: Channel, ear: Channel) -> Miswired | None:
    """The output into both inputs, by a Y-cable."""
    for channel, name in ((reference, "{ref}"), (ear, "{ear}")):
        if _clipped(channel):
            return _too_loud(name)
    if not _by_cable(reference) and not _by_cable(ear):
        return _missing(reference, "{ref}")
    for channel, name, other in ((reference, "{ref}", "{ear}"), (ear, "{ear}", "{ref}")):
        if channel.noise == 0.0 and not channel.heard:
            return _missing(channel, name)
        if not _by_cable(channel):
            return Miswired(
                Fault.WRONG_CABLE,
                f"the stimulus is on input {other} alone",
                f"take a Y-cable, one of its plugs into input {name}, and turn up the gain of that input",
            )
    return _one_signal(reference, ear)


def check_limit(levels: list[tuple[Channel, Channel]]) -> Miswired | None:
    """The output into both inputs, soft to loud: (reference, ear) at each loudness. The softest must not clip, and the
    loudest must."""
    soft_reference, soft_ear = levels[0]
    wrong = check_split(soft_reference, soft_ear)
    if wrong is not None:
        return wrong
    for side, name in ((0, "{ref}"), (1, "{ear}")):
        if not any(h.top is not None for level in levels for h in level[side].heard):
            return Miswired(
                Fault.NOT_LOUD_ENOUGH,
                f"input {name} follows the loudest stimulus that the output can play",
                f"turn the gain of input {name} up until its clip lamp lights with the loudest",
            )
    return None


def check_air(reference: Channel, ear: Channel, air_frames: float) -> Miswired | None:
    """The reference by cable, the ear's microphone about `air_frames` of air behind it."""
    for channel, name in ((reference, "{ref}"), (ear, "{ear}")):
        if _clipped(channel, tops=channel is reference):
            return _too_loud(name)
    if reference.present and ear.present:
        late = _late_frames(reference, ear)
        if late < -0.5 * air_frames:
            return Miswired(
                Fault.WRONG_CHANNEL,
                "input {ear} hears the stimulus before input {ref}",
                "exchange the plugs, or the channels with --ref and --ear",
            )
        if _by_cable(reference) and late < 0.5 * air_frames and not _leaked(ear):
            return Miswired(
                Fault.WRONG_CABLE,
                "input {ear} hears the stimulus with no air between",
                "plug the microphone into input {ear}, not a cable from the output",
            )
    if not _by_cable(reference):
        return _missing(reference, "{ref}")
    if not ear.present or (_leaked(ear) and _late_frames(reference, ear) < 0.5 * air_frames):
        return _missing(ear, "{ear}", faint=True)
    if moved_frames(reference, ear) is not None:
        return Miswired(
            Fault.MOVING_MICROPHONE,
            "the way to the ear's microphone changed while it was measured",
            "fix loudspeaker and microphone to something that does not move, and keep hands off",
        )
    return None


def check_board(on_reference: Pulses, on_ear: Pulses, n_fired: int) -> Miswired | None:
    """The board's pulse into the reference's input, its tone into the ear's."""
    if len(on_reference.frames) == n_fired:
        if len(on_ear.frames) == n_fired:
            return Miswired(
                Fault.WRONG_CABLE,
                "the board's pulse is on both inputs",
                "plug the board's tone into input {ear}, its pulse into input {ref}",
            )
        if on_ear.strangers:
            return None
        return Miswired(Fault.NOTHING_CONNECTED, "input {ear} hears nothing", "plug the board's tone into input {ear}")
    if len(on_ear.frames) == n_fired:
        return Miswired(
            Fault.WRONG_CHANNEL,
            "the board's pulse is on input {ear}, and not on input {ref}",
            "exchange the plugs of pulse and tone, or the channels with --ref and --ear",
        )
    if on_reference.strangers > len(on_reference.frames):
        return Miswired(
            Fault.WRONG_CABLE,
            "what is on input {ref} is no pulse",
            "plug the board's pulse into input {ref} by a divider, its tone into input {ear}",
        )
    if on_reference.frames:
        return Miswired(
            Fault.TOO_NOISY,
            f"{len(on_reference.frames)} pulses are on input {{ref}}, and the board fired {n_fired}",
            "look for a loose contact, and for what else is plugged into input {ref}",
        )
    return Miswired(Fault.NOTHING_CONNECTED, "input {ref} hears nothing", "plug the board's pulse into input {ref}")


def _by_cable(channel: Channel) -> bool:
    level_db = channel.level_db
    return channel.present and level_db is not None and level_db > CABLE_DB


def _leaked(channel: Channel) -> bool:
    level_db = channel.level_db
    return level_db is not None and level_db <= FAINT_DB


def _clipped(channel: Channel, tops: bool = True) -> bool:
    """Whether any stimulus was cut off. `tops`: below full scale too, which only a cable's shape can show."""
    flat = tops and _by_cable(channel)
    return any(h.rails > 0 or (flat and h.top is not None) for h in channel.heard)


def _late_frames(reference: Channel, ear: Channel) -> float:
    pairs = [(a, b) for a, b in zip(reference.stimuli, ear.stimuli, strict=True) if a is not None and b is not None]
    lags = sorted(b.lag - a.lag for a, b in pairs)
    return lags[len(lags) // 2]


def _too_loud(name: str) -> Miswired:
    return Miswired(Fault.CLIPPED, f"input {name} clips", f"turn the gain of input {name} down")


def _missing(channel: Channel, name: str, faint: bool = False) -> Miswired:
    """Why a stimulus is not on a channel. `faint`: a microphone's, that may be soft."""
    if channel.noise == 0.0 and not channel.heard:
        return Miswired(
            Fault.DIGITAL_SILENCE,
            f"every sample of input {name} is the same",
            "check that the input is switched on, and that nothing between mutes it",
        )
    least_db = FAINT_DB if faint else CABLE_DB
    level_db = channel.level_db
    hidden = channel.limit_db is not None and channel.limit_db > least_db
    if hidden or (level_db is not None and level_db > least_db):  # drowned, or heard now and then
        return Miswired(
            Fault.TOO_NOISY,
            f"the noise of input {name} hides the stimulus",
            "switch off what hums or blows, look for an open plug, and play louder",
        )
    return Miswired(Fault.NOTHING_CONNECTED, f"input {name} hears nothing", f"plug the cable into input {name}")


def _silent(reference: Channel, ear: Channel) -> Miswired | None:
    for channel, name in ((reference, "{ref}"), (ear, "{ear}")):
        if channel.noise == 0.0:
            return _missing(channel, name)
    return None


def _one_signal(reference: Channel, ear: Channel) -> Miswired | None:
    """One signal in both channels, as a driver makes that mixes to mono: the channels cannot be told apart."""
    pairs = [(a, b) for a, b in zip(reference.stimuli, ear.stimuli, strict=True) if a is not None and b is not None]
    if pairs and all(abs(a.lag - b.lag) < SAME_FRAMES and a.gain == b.gain for a, b in pairs):
        return Miswired(
            Fault.ONE_SIGNAL,
            "both inputs carry the same samples",
            "switch off what mixes the inputs to mono: the driver's mixer, or direct monitoring",
        )
    return None
