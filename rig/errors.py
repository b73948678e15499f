"""The error tree: one branch, and one exit code, for each party who must act.

Every error says what happened, what was expected and what to do about it. The command line prints the three on stderr,
without a traceback. A single bad trial is data (a `Reason`), not an exception; an exception ends the command.
"""

from __future__ import annotations


class RigError(Exception):
    """Root of every error that a user can act on.

    `what` is what happened (with its numbers), `expected` what would have been right, `remedy` the next step.
    """

    exit_code = 1

    def __init__(self, what: str, expected: str, remedy: str) -> None:
        super().__init__(what)
        self.what = what
        self.expected = expected
        self.remedy = remedy


class UsageError(RigError):
    """The caller must act: a wrong option, plan or file."""

    exit_code = 2


class BadInput(UsageError):
    """A file that cannot be used: absent, unreadable, not audio, truncated, too few channels, malformed session."""


class BenchNotReady(RigError):
    """The operator must act: device, port or firmware are not there or not usable."""

    exit_code = 4


class DeviceNotFound(BenchNotReady):
    """No audio device or scenario answers to the name that was given."""


class DeviceAmbiguous(BenchNotReady):
    """Several devices answer to the name; the message lists an argument for each."""


class PortNotFound(BenchNotReady):
    """No serial port at the path, or none that answers the identity question."""


class PortDenied(BenchNotReady):
    """The serial port exists, but this user may not open it, or another program holds it."""


class FirmwareMismatch(BenchNotReady):
    """The board speaks another protocol level or message table."""


class MissingLibrary(BenchNotReady):
    """A library that this command needs is not installed."""


class CalibrationError(RigError):
    """The operator must calibrate: a record is missing, stale, malformed or of another device."""

    exit_code = 5


class AcquisitionLost(RigError):
    """The recording or the link was lost while measuring. What was recorded before is kept."""

    exit_code = 6


class LinkTimeout(AcquisitionLost):
    """The board did not answer before the deadline."""


class LinkCorrupt(AcquisitionLost):
    """The board's answers cannot be read, however often the question is repeated."""


class LinkLost(AcquisitionLost):
    """The serial port disappeared while it was in use."""


class AudioLost(AcquisitionLost):
    """The audio stream stopped delivering."""


class Refused(RigError):
    """Recorded, but the evidence does not support a number. The reasons are counted in the report."""

    exit_code = 7


EXIT_OVER_LIMIT = 3
"""Exit code of a valid measurement over the limit asked for: an outcome, not an error."""

EXIT_INTERRUPTED = 130
"""Exit code after Ctrl-C: bench made safe, the part recorded so far kept and marked."""
