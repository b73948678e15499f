"""Which piece of hardware an audio device is: the USB ids and the serial number behind ALSA's card number.

Read from Linux's own files. Elsewhere, and for what is not on USB, name and host API are all there is.
"""

from __future__ import annotations

import re
from pathlib import Path

from rig.domain.calibration import DeviceIdentity

CARDS = Path("/sys/class/sound")
_CARD = re.compile(r"\((?:plug)?hw:(\d+),\d+\)\s*$")
_HEX = re.compile(r"[0-9a-f]{4}")


def identify(bench: str, name: str, host_api: str | None, cards: Path = CARDS) -> DeviceIdentity:
    """The identity of the device that PortAudio calls `name`. What cannot be read is None, never a guess."""
    card = _CARD.search(name)
    if card is None:
        return DeviceIdentity(bench, name, host_api)
    # The card's device is an interface of the USB device, whose own files are one folder up.
    usb = (cards / f"card{card[1]}" / "device").resolve().parent
    vendor, product = _line(usb / "idVendor"), _line(usb / "idProduct")
    if not (vendor and product and _HEX.fullmatch(vendor) and _HEX.fullmatch(product)):
        return DeviceIdentity(bench, name, host_api)
    return DeviceIdentity(bench, name, host_api, f"{vendor}:{product}", _line(usb / "serial"))


def _line(path: Path) -> str | None:
    try:
        text = path.read_text(encoding="utf-8", errors="replace").strip()[:100]
    except OSError:
        return None
    return text if text and text.isprintable() else None
