"""`rig`: the verbs, and what becomes of an error. One exit code for each party who must act (docs/errors.md).

The verbs import what they need when they run, so that `rig --help` starts as fast as typer does.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from rig import __version__
from rig.cli.analyze import analyze
from rig.cli.calibrate import calibrate_app
from rig.cli.compare import compare
from rig.cli.devices import devices
from rig.cli.doctor import doctor
from rig.cli.experiment import experiment
from rig.cli.export import export
from rig.cli.firmware import firmware_app
from rig.cli.import_marks import import_marks
from rig.cli.levels import levels
from rig.cli.marks import marks
from rig.cli.measure import measure
from rig.cli.reconcile import reconcile
from rig.cli.report import report
from rig.cli.sessions import sessions_app
from rig.cli.sim import sim_app
from rig.cli.sut import sut_app
from rig.cli.validate import validate
from rig.cli.virtual import virtual_app
from rig.errors import EXIT_INTERRUPTED, RigError, UsageError

app = typer.Typer(
    name="rig",
    help="True mouth-to-ear latency of a real-time voice system.",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,  # rich would be imported for every help page
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("measure")(measure)
app.command("analyze")(analyze)
app.command("compare")(compare)
app.command("experiment")(experiment)
app.command("export")(export)
app.command("import")(import_marks)
app.command("marks")(marks)
app.command("reconcile")(reconcile)
app.command("analyse", hidden=True)(analyze)
app.command("devices")(devices)
app.command("doctor")(doctor)
app.command("levels")(levels)
app.command("report")(report)
app.command("validate")(validate)
app.add_typer(calibrate_app, name="calibrate")
app.add_typer(firmware_app, name="firmware")
app.add_typer(sessions_app, name="sessions")
app.add_typer(sim_app, name="sim")
app.add_typer(sut_app, name="sut")
app.add_typer(virtual_app, name="virtual")


@app.command("version")
def version() -> None:
    """Print the version."""
    print(__version__)


@app.callback(invoke_without_command=True)
def top(
    show_version: Annotated[bool, typer.Option("--version", help="print the version", is_eager=True)] = False,
) -> None:
    """True mouth-to-ear latency of a real-time voice system, and who owns each millisecond."""
    if show_version:
        print(__version__)
        raise typer.Exit(0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code. Errors that a user can act on are three lines on stderr."""
    try:
        result = app(args=arguments, prog_name="rig", standalone_mode=False)
        sys.stdout.flush()
    except RigError as error:
        explain(error)
        return error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        _say("rig: stopped")
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader of stdout has gone, as in `rig analyze ... | head -1`; Python must not flush into it again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # carries the help page, which is the best answer
            _say(str(error))
            return UsageError.exit_code
        usage = _as_usage_error(error)
        if usage is None:
            import traceback

            traceback.print_exc()
            _say("rig: this is a fault of rig itself; the lines above say where")
            return 1
        explain(usage)
        return usage.exit_code
    return result if isinstance(result, int) else 0


def run() -> None:
    """The console entry point."""
    sys.exit(main())


def explain(error: RigError) -> None:
    """What happened, what was expected, what to do: three lines on stderr."""
    _say(f"rig: {error.what}")
    _say(f"  expected: {error.expected}")
    _say(f"  remedy: {error.remedy}")


def _as_usage_error(error: Exception) -> UsageError | None:
    """A complaint of the option parser in our own form. typer brings its own copy of click or uses the package,
    depending on its version: hence no click type here."""
    text: Any = getattr(error, "format_message", None)
    if text is None:
        return None
    context: Any = getattr(error, "ctx", None)
    path = "rig" if context is None else context.command_path
    message = str(text()).strip().rstrip(".")
    what = message[:1].lower() + message[1:] if message else "no command was given"
    usage = " ".join(context.get_usage().split()).removeprefix("Usage: ") if context is not None else "rig VERB"
    return UsageError(what.replace("\n", " "), usage, f"{path} --help lists what there is")


def _say(line: str) -> None:
    print(line.encode("utf-8", "replace").decode("utf-8"), file=sys.stderr)
