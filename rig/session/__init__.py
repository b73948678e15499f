"""The session: a folder that holds everything a measurement recorded, written while it records.

    manifest.json   what was planned, asked and granted; status; SHA-256 of every other file once finished
    run-001.wav …   one per run, 24-bit PCM, all channels; blank.wav for the run with the system muted
    events.jsonl    one line per serial frame, firing, clock exchange, loss of samples
    marks.jsonl     what the system under test wrote (the name is reserved)
    truth.json      only when simulated

docs/session-format.md is the contract. A session is written once: analysis reads it and never writes into it.
"""

from rig.session.read import Session, SessionRun, open_session
from rig.session.writer import RunWriter, SessionWriter

__all__ = ["RunWriter", "Session", "SessionRun", "SessionWriter", "open_session"]
