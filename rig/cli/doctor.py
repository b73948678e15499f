"""`rig doctor`: what would go wrong with a measurement on this machine, and how to mend it."""

from __future__ import annotations

from typing import Annotated

import typer

from rig.cli.options import AsJson, Backend, Ear, Quiet, Ref, check_channels
from rig.errors import BenchNotReady


def doctor(
    device: Annotated[
        str | None,
        typer.Option("--device", metavar="NAME|sim[:SCENARIO]", help="examine this interface too (rig devices)"),
    ] = None,
    port: Annotated[
        str | None,
        typer.Option("--port", metavar="auto|PATH|none", help="the board; left out: one that is found is examined"),
    ] = None,
    backend: Backend = "sounddevice",
    rate: Annotated[int, typer.Option("--rate", min=8000, max=192_000, help="sample rate in Hz")] = 48_000,
    sut: Annotated[
        str | None, typer.Option("--sut", metavar="CMD", help="command that starts the system, for the ear")
    ] = None,
    silent: Annotated[
        bool, typer.Option("--silent", help="play nothing: which channel is which is not checked then")
    ] = False,
    ref: Ref = None,
    ear: Ear = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Say what would go wrong with a measurement here, and how to mend it. Exit code 4 where anything fails.

    With --device the interface is listened to for 5 s, and three chirps are played.
    """
    import json

    ref_channel, ear_channel = 1 if ref is None else ref, 2 if ear is None else ear
    check_channels(ref_channel, ear_channel)

    from rig.cli.examination import Examination, Wishes
    from rig.cli.output import show
    from rig.cli.quiet import quiet_libraries
    from rig.doctor.finding import document, failed, lines
    from rig.domain.records import ChannelRoles

    wishes = Wishes(
        device=device,
        port=port,
        backend=backend,
        rate_hz=rate,
        sut=sut,
        silent=silent,
        roles=ChannelRoles(ref_channel - 1, ear_channel - 1),
        quiet=quiet,
    )
    with quiet_libraries() as chatter:
        examination = Examination(wishes, chatter)
        findings = examination.run()
    if as_json:
        facts = {"bench": examination.kind.value, "device": examination.device, "port": examination.port}
        show(json.dumps(document(findings, facts), indent=1, ensure_ascii=False) + "\n")
    else:
        show("\n".join(lines(findings, examination.device)) + "\n")
    if failed(findings):
        raise typer.Exit(BenchNotReady.exit_code)
