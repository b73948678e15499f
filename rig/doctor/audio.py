"""The audio library, the devices that it lists, and what the chosen one is capable of."""

from __future__ import annotations

from collections.abc import Sequence

from rig.acquire.devices import DeviceInfo, argument, quoted
from rig.acquire.portaudio import PortBackend
from rig.doctor.finding import Finding, fail, from_error, ok, warn
from rig.errors import RigError

_NAMED = 3  # devices that a line names


def library_finding(backend: PortBackend, devices: Sequence[DeviceInfo]) -> Finding:
    """PortAudio is there: its version, and how many devices it lists."""
    apis = list(dict.fromkeys(device.host_api for device in devices))
    through = f", through {', '.join(apis)}" if apis else ""
    return ok("portaudio", f"{backend.version()} by {backend.name}: {_count(len(devices), 'device')}{through}")


def devices_finding(devices: Sequence[DeviceInfo]) -> Finding:
    """Whether any device could be measured with, where none was named."""
    able = [device for device in devices if device.inputs >= 2 and not device.monitor]
    hardware = [device for device in able if not device.sound_server]
    if hardware:
        named = ", ".join(quoted(argument(devices, device)) for device in hardware[:_NAMED])
        more = f" and {len(hardware) - _NAMED} more" if len(hardware) > _NAMED else ""
        return ok("devices", f"with two inputs: {named}{more}; name one with --device to have it examined")
    if able:
        named = ", ".join(quoted(device.name) for device in able[:_NAMED])
        return warn(
            "devices",
            f"only names of a sound server have two inputs: {named}",
            "plug an interface with two inputs in; a sound server may resample, and its delay is not the interface's",
        )
    return fail(
        "devices",
        f"none of {_count(len(devices), 'device')} has two inputs" if devices else "there are no audio devices at all",
        "plug an interface with two inputs in, then rig devices; without hardware: --device sim, or rig virtual up",
    )


def choose(backend: PortBackend, wanted: str, inputs: int) -> tuple[DeviceInfo | None, Finding]:
    """The device that `wanted` names, as a measurement would choose it, and what is to be known of it."""
    try:
        device = backend.choose(wanted, inputs)
    except RigError as error:
        return None, from_error("device", error)
    text = f"{device.name} ({device.host_api}, index {device.index}): {device.inputs} in, {device.outputs} out"
    if device.monitor:
        return device, warn(
            "device",
            f"{text}; it is a monitor: it records what the computer plays, not what a cable brings",
            "name the interface that the cables go into (rig devices)",
        )
    if device.sound_server:
        return device, warn(
            "device",
            f"{text}; it is the name of a sound server or a mixer, not of hardware",
            "name the hardware itself (rig devices): what is in between buffers again and may resample",
        )
    return device, ok("device", text)


def rates_finding(backend: PortBackend, device: DeviceInfo, inputs: int, rate_hz: int) -> Finding:
    """Which usual rates the device takes, and whether the wanted one is among them; it is opened once for each."""
    takes = backend.rates_hz(device, inputs)
    listed = ", ".join(str(rate) for rate in takes)
    if rate_hz in takes:
        return ok("rates", f"{rate_hz} Hz is taken; it takes {listed} Hz")
    if not takes:
        return fail(
            "rates",
            f"{device.name} does not open with {_count(inputs, 'input')} at any usual rate now",
            "close the program that holds it; on Linux fuser -v /dev/snd/* names it, often a sound server",
        )
    best = 48000 if 48000 in takes else takes[-1]
    return fail(
        "rates",
        f"{device.name} does not take {rate_hz} Hz, only {listed} Hz",
        f"measure with --rate {best}; a device that resamples would add delay that nobody measures",
    )


def _count(n: int, word: str) -> str:
    return f"{n} {word}" if n == 1 else f"{n} {word}s"
