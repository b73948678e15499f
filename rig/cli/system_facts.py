"""What is known of how the system under test was set: kept with the session, so that a comparison can see what changed.

The words of its command become names and values: "my-app --buffer 256" is the command my-app and --buffer, 256. What
looks like a secret is not kept.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

from rig.errors import UsageError
from rig.report.digits import plain

_SECRET = re.compile(r"key|token|secret|passw|credential|auth", re.I)
_NUMBER = re.compile(r"-?\.?\d")
_LOGIN = re.compile(r"//[^/@\s]+@")
NOT_KEPT = "(not kept)"
MOST_CHARACTERS = 200


def system_facts(
    command: str | None,
    environment: Mapping[str, str] | None = None,
    config: Mapping[str, Any] | None = None,
    world: Mapping[str, Any] | None = None,
) -> dict[str, str]:
    """Names and values: of the command's options as typed, `$NAME` of its environment, `config NAME` of what is sent to
    it, `world NAME` of a simulated world. Raises UsageError for a command that cannot be split into words."""
    found = {} if command is None else _of_command(command)
    found |= {f"${name}": value for name, value in (environment or {}).items()}
    found |= {f"config {name}": plain(value) for name, value in (config or {}).items()}
    found |= {f"world {name}": plain(value) for name, value in (world or {}).items()}
    return {name: NOT_KEPT if _SECRET.search(name) else _kept(value) for name, value in found.items()}


def _of_command(command: str) -> dict[str, str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(
            f"the command {command!r} cannot be read: {error}", "words, quoted as in a shell", "mend the quotes"
        ) from error
    bare: list[str] = []
    options: dict[str, list[str]] = {}
    rest = iter(range(len(words)))
    for k in rest:
        word = words[k]
        if not word.startswith("-") or len(word) == 1 or _NUMBER.match(word):
            bare.append(word)
            continue
        name, equals, value = word.partition("=")
        following = words[k + 1] if k + 1 < len(words) else None
        if not equals and following is not None and (not following.startswith("-") or _NUMBER.match(following)):
            value, equals = following, "="
            next(rest)
        options.setdefault(name, []).append(value if equals else "yes")
    return {"command": " ".join(bare), **{name: ", ".join(values) for name, values in options.items()}}


def _kept(value: str) -> str:
    value = _LOGIN.sub("//", value)
    return value if len(value) <= MOST_CHARACTERS else value[: MOST_CHARACTERS - 1] + "…"
