"""What the measuring machine was like: facts for the manifest that nobody can reconstruct later."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from rig import __version__

_GOVERNORS = Path("/sys/devices/system/cpu")
_PROFILE_FILE = Path("/sys/firmware/acpi/platform_profile")


def environment() -> dict[str, Any]:
    """Facts about this machine, ready for a manifest. What cannot be read is None, never a guess."""
    return {
        "os": _os_name(),
        "kernel": f"{platform.system()} {platform.release()}".strip() or None,
        "machine": platform.machine() or None,
        "cpu_governor": _governor(),
        "power_profile": _power_profile(),
        "on_battery": _on_battery(),
        "python": platform.python_version(),
        "rig": __version__,
        "network_note": None,  # the user's own words, when given
    }


def _os_name() -> str | None:
    if sys.platform.startswith("linux"):
        try:
            return platform.freedesktop_os_release().get("PRETTY_NAME")
        except OSError:
            return None
    if sys.platform == "darwin":
        return f"macOS {platform.mac_ver()[0]}".strip()
    return platform.platform() or None


def _governor() -> str | None:
    """The scaling governor of the processors; several are listed, as on processors with two kinds of core."""
    found = {_line(path) for path in sorted(_GOVERNORS.glob("cpu[0-9]*/cpufreq/scaling_governor"))}
    named = sorted(name for name in found if name)
    return ", ".join(named) if named else None


def _power_profile() -> str | None:
    tool = shutil.which("powerprofilesctl")
    if tool is not None:
        try:
            said = subprocess.run([tool, "get"], capture_output=True, text=True, timeout=2.0, check=False)
        except (OSError, subprocess.SubprocessError):
            said = None
        if said is not None and said.returncode == 0 and said.stdout.strip():
            return said.stdout.strip()
    return _line(_PROFILE_FILE)


def _on_battery() -> bool | None:
    """True on battery, False on mains, None where the machine does not say."""
    states = []
    for supply in Path("/sys/class/power_supply").glob("*"):
        if _line(supply / "type") == "Mains":
            states.append(_line(supply / "online"))
    known = [state for state in states if state in ("0", "1")]
    return None if not known else "1" not in known


def _line(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()[:200] or None
    except OSError:
        return None
