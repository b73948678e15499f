"""Which audio device a name means, and what to say when none or several answer. Pure: the devices are given."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rig.domain.device_names import folded, is_sound_server
from rig.errors import BenchNotReady, DeviceAmbiguous, DeviceNotFound

TRUNCATED_FROM = 30
"""Some Windows host APIs cut names to 31 characters; a name at least this long may be the beginning of one."""

_LISTED = 12  # devices that an error shows


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """A device as PortAudio lists it. `index` holds until the list is made anew; claims of latency are in s."""

    index: int
    name: str
    host_api: str
    inputs: int
    outputs: int
    default_rate_hz: float | None = None
    low_latency_claimed_s: float | None = None
    high_latency_claimed_s: float | None = None

    @property
    def monitor(self) -> bool:
        """Whether it records what the computer plays: never meant unless it is named in full."""
        return self.name.casefold().startswith("monitor of ") or self.loopback

    @property
    def loopback(self) -> bool:
        """Windows' loopback capture: it delivers nothing while nothing plays, so it cannot be measured with."""
        return self.name.endswith("[Loopback]")

    @property
    def sound_server(self) -> bool:
        """Whether the name is one of a sound server's or a mixer's, not of a piece of hardware."""
        return is_sound_server(self.name)


def choose_device(devices: Sequence[DeviceInfo], wanted: str, inputs: int, outputs: int = 0) -> DeviceInfo:
    """The one device that `wanted` names and that has at least `inputs` inputs and `outputs` outputs.

    `wanted` is a name or a part of one, an index, or either with a host API before it (`ALSA:USB Audio`). What lacks
    the capability does not take part; then an exact name goes before one that was cut short, and that before a partial
    one. Outputs are also found in an output-only entry of the same name and host API (see `output_of`).

    Raises DeviceNotFound (nothing answers, or what does lacks inputs or outputs) and DeviceAmbiguous, which lists an
    argument for each candidate.
    """
    able = [d for d in devices if d.inputs >= inputs and (outputs == 0 or output_of(devices, d, outputs) is not None)]
    for among, name in _readings(devices, wanted):
        if re.fullmatch(r"\d+", name) and not any(folded(d.name) == folded(name) for d in among):
            found = [d for d in among if d.index == int(name)]
        else:
            found = _best([d for d in among if d in able], name)
        if len(found) > 1:
            raise _ambiguous(devices, found, wanted)
        if found and found[0] in able:
            return _usable(found[0])
        unable = found or _best(among, name)
        if unable:
            raise _lacking(unable, inputs, outputs)
    raise DeviceNotFound(
        f"no audio device answers to {wanted!r}; {listed(devices, able)}",
        "a device's name, a part of it, or its index",
        "name one of these with --device; rig devices shows all that there are",
    )


def output_of(devices: Sequence[DeviceInfo], device: DeviceInfo, outputs: int) -> DeviceInfo | None:
    """The entry through which `device` plays: itself, or the output-only entry that macOS lists beside it."""
    if device.outputs >= outputs:
        return device
    twins = [d for d in devices if (d.name, d.host_api) == (device.name, device.host_api) and d.outputs >= outputs]
    return twins[0] if len(twins) == 1 else None


def find_again(devices: Sequence[DeviceInfo], known: DeviceInfo) -> DeviceInfo | None:
    """The device that was chosen before in a list made anew; None when it is not there, or cannot be told from another.

    Indices change with every cable that is plugged, so names and host APIs decide, and an index only between twins.
    """
    same = [
        d
        for d in devices
        if (d.name, d.host_api) == (known.name, known.host_api) and (d.inputs > 0) == (known.inputs > 0)
    ]
    if len(same) == 1:
        return same[0]
    return next((d for d in same if d.index == known.index), None)


def argument(devices: Sequence[DeviceInfo], device: DeviceInfo) -> str:
    """What to give --device so that it means this device: host API and name where that is enough, else the index."""
    same = [d for d in devices if (folded(d.name), d.host_api) == (folded(device.name), device.host_api)]
    return f"{device.host_api}:{device.name}" if len(same) == 1 else str(device.index)


def quoted(text: str) -> str:
    """An argument as it is typed in a shell."""
    return text if re.fullmatch(r"[\w.+-]+", text, re.ASCII) else '"' + re.sub(r'(["$`\\\\])', r"\\\1", text) + '"'


def listed(devices: Sequence[DeviceInfo], able: Sequence[DeviceInfo]) -> str:
    """The devices that could be used, in words."""
    if not devices:
        return "there are no audio devices at all"
    if not able:
        return f"none of the {len(devices)} audio devices has the inputs and outputs that are needed"
    more = f" and {len(able) - _LISTED} more" if len(able) > _LISTED else ""
    return f"there are {', '.join(repr(d.name) for d in able[:_LISTED])}{more}"


def _readings(devices: Sequence[DeviceInfo], wanted: str) -> list[tuple[list[DeviceInfo], str]]:
    """What `wanted` may mean, the likelier first: host API and name, or a name that holds a colon itself."""
    api, colon, name = wanted.partition(":")
    readings = []
    if colon and name.strip():
        apis = {d.host_api for d in devices}
        key = api.strip().casefold()
        meant = [a for a in apis if a.casefold() == key] or [a for a in apis if key and key in a.casefold()]
        if meant:
            readings.append(([d for d in devices if d.host_api in meant], name.strip()))
    return [*readings, (list(devices), wanted.strip())]


def _best(among: Sequence[DeviceInfo], name: str) -> list[DeviceInfo]:
    """The devices of the best kind of match that there is."""
    key = folded(name)
    full = unicodedata.normalize("NFC", name).casefold().strip()
    whole = [d for d in among if unicodedata.normalize("NFC", d.name).casefold().strip() == full]
    tests: list[Callable[[DeviceInfo], bool]] = [
        lambda d: folded(d.name) == key,
        lambda d: len(d.name) >= TRUNCATED_FROM and full.startswith(folded(d.name)),
        lambda d: bool(key) and key in folded(d.name) and not d.monitor,
        lambda d: bool(full) and full in unicodedata.normalize("NFC", d.name).casefold() and not d.monitor,
    ]
    if whole:
        return whole
    for test in tests:
        found = [d for d in among if test(d)]
        if found:
            return found
    return []


def _usable(device: DeviceInfo) -> DeviceInfo:
    if device.loopback:
        raise BenchNotReady(
            f"{device.name} is a loopback: it delivers nothing while nothing plays, so time goes missing in it",
            "a device that records all the time",
            "choose the interface that the cables go into; rig devices lists what there is",
        )
    return device


def _ambiguous(devices: Sequence[DeviceInfo], found: Sequence[DeviceInfo], wanted: str) -> DeviceAmbiguous:
    rows = [
        f"--device {quoted(argument(devices, d))} is index {d.index}, {d.host_api}, {d.inputs} in, {d.outputs} out"
        + (f", {d.default_rate_hz:g} Hz" if d.default_rate_hz else "")
        for d in found[:_LISTED]
    ]
    return DeviceAmbiguous(
        f"{len(found)} devices answer to {wanted!r}:\n    " + "\n    ".join(rows),
        "one device",
        "take one of the arguments above; twins of one host API are told apart by their index, which changes when"
        " cables are moved",
    )


def _lacking(found: Sequence[DeviceInfo], inputs: int, outputs: int) -> DeviceNotFound:
    device = max(found, key=lambda d: (d.inputs, d.outputs))
    if device.inputs == 0:
        return DeviceNotFound(
            f"{device.name} was found, but it offers 0 inputs right now; another program or a sound server may hold it",
            f"{inputs} inputs",
            "close what uses it (a sound server's profile for it may be set to output only), then rig devices",
        )
    if device.inputs < inputs:
        return DeviceNotFound(
            f"{device.name} offers {device.inputs} input{'s' if device.inputs > 1 else ''}",
            f"{inputs}: the stimulus and the ear, recorded by one device",
            "choose an interface with two inputs; two devices do not share a clock",
        )
    return DeviceNotFound(
        f"{device.name} offers {device.outputs} outputs",
        f"{outputs} at least, since the interface is to play the stimulus",
        "choose an interface with an output, or let a board play: --port auto",
    )
