"""What the name of an audio device says."""

from __future__ import annotations

import re
import unicodedata

SOUND_SERVERS = ("default", "sysdefault", "pulse", "pipewire", "dmix", "dsnoop")
"""ALSA's names for a sound server or a software mixer: what is recorded there has been buffered again, or resampled."""

_HARDWARE = re.compile(r"\s*\((?:plug)?hw:[^()]*\)\s*$")  # ALSA's card and device number behind a name


def folded(name: str) -> str:
    """A name as it is compared: without ALSA's `(hw:1,0)`, without case, in one form of Unicode."""
    return unicodedata.normalize("NFC", _HARDWARE.sub("", name)).casefold().strip()


def is_sound_server(name: str) -> bool:
    """Whether the name is one of a sound server's or a mixer's, not of a piece of hardware."""
    return folded(name) in SOUND_SERVERS or name.casefold().startswith(("pulse", "pipewire"))
