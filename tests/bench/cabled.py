"""One step of a calibration on the simulated bench, as rig records it: wired, played, recorded; and what it hears."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rig.acquire.board import Link
from rig.analyse.heard import Channel, hear
from rig.bench.calibration import calibration_plan
from rig.bench.runner import run_plan
from rig.domain.records import ChannelRoles
from rig.domain.waveforms import ideal_waveform
from rig.session.read import Session, SessionRun, open_session
from rig.session.writer import SessionWriter
from rig.sim.bench import SimBench, build_bench
from rig.sim.scenarios import find_scenario
from rig.sim.wiring import rewired

ROLES = ChannelRoles(ref=0, ear=1)
AMPLITUDE = 0.5


def wired(
    scenario: str,
    seed: int,
    wiring: str,
    distance_m: float | None = None,
    ear_snr_db: float | None = None,
    **settings: Any,
) -> SimBench:
    """The scenario's bench, with `settings` of its own, as the hand of the simulated world wires it for a step;
    `ear_snr_db`: with another noise on the ear's input than the hand leaves."""
    spec = find_scenario(scenario).world(settings)
    noise = {} if ear_snr_db is None else {"snr_db": ear_snr_db}
    return build_bench(scenario, seed, **{**settings, **rewired(spec, wiring, distance_m), **noise})


@contextmanager
def recorded(bench: SimBench, wiring: str, count: int = 10, amplitude: float = AMPLITUDE) -> Iterator[Session]:
    """The step as a session on disk, through rig's own bench."""
    with tempfile.TemporaryDirectory() as folder:
        plan = calibration_plan(wiring, "sim", bench.spec.rate_hz, ROLES, 1, count, amplitude)
        manifest = {
            "bench": "simulated",
            "device": "sim",
            "backend": "sim",
            "seed": 1,
            "mode": plan.mode,
            "roles": {"ref": ROLES.ref, "ear": ROLES.ear},
            "runs_planned": len(plan.stimuli),
        }
        writer = SessionWriter.create(Path(folder) / "s", manifest, bench.time)
        link = Link(bench.pipe, bench.time) if wiring == "board" else None
        if link is not None:
            writer.note(board=link.identify())
        run_plan(plan, bench.audio, link, bench.system, bench.time, writer, lambda event, facts: None)
        session = open_session(Path(folder) / "s")
        try:
            yield session
        finally:
            session.close()


def channels(run: SessionRun) -> tuple[Channel, Channel]:
    """Reference and ear of a run."""
    asked = tuple(s.frame for s in run.events.scheduled)
    wave = ideal_waveform(run.plan.kind, run.grant.rate_hz, run.plan.amplitude)
    return hear(run.source, ROLES.ref, asked, wave), hear(run.source, ROLES.ear, asked, wave)
