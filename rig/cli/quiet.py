"""Keeps the lines that sound libraries print away from the user, and quotes them where they explain an error."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from rig.acquire.chatter import Chatter
from rig.errors import AudioLost


@contextlib.contextmanager
def quiet_libraries() -> Iterator[Chatter]:
    """Inside, descriptor 2 belongs to the libraries and `sys.stderr` still reaches the screen.

    A lost stream takes with it what the libraries said since the last `mark`."""
    stderr = sys.stderr
    stderr.flush()
    with Chatter() as chatter:
        try:
            ours = stderr.fileno() == 2
        except (OSError, ValueError, AttributeError):
            ours = False  # somebody has put another stream in its place: it needs no help
        screen = chatter.screen() if ours else None
        if screen is not None:
            sys.stderr = screen
        begun = chatter.mark()
        try:
            yield chatter
        except AudioLost as error:
            said = chatter.since(begun)
            if said:
                error.what += f" (the sound library said: {said})"
            raise
        finally:
            if screen is not None:
                sys.stderr = stderr
                screen.close()
