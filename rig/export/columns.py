"""The columns of the exported tables. Names are a contract: columns are added, never renamed or given another unit.

docs/exports.md shows these tables to the user; a test compares the two.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its name, which says the unit, the type of its values, and what they mean. Every value may be null,
    unless `always`."""

    name: str
    type: str  # text | integer | number | flag
    meaning: str
    always: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its name, which is the stem of its file, and its columns in order."""

    name: str
    columns: tuple[Column, ...]


MEASUREMENT = (
    Column("session", "text", "identity of the session; null for a recording that rig did not make"),
    Column("source", "text", "name of a recording that rig did not make"),
    Column("rig_version", "text", "the version that analysed it", always=True),
    Column("bench", "text", "`hardware`, `virtual`, `simulated` or `file`: what the numbers come from", always=True),
    Column("mode", "text", "kind of measurement; different modes do not belong into one statistic", always=True),
    Column("device", "text", "the audio interface, or the simulated scenario"),
    Column("build", "text", "of the system under test, as `--build` of `rig measure` named it"),
    Column("started", "text", "when the measurement began, ISO 8601; null when simulated"),
)
"""The same on every row of a session: which measurement the row belongs to."""

TRIALS = Table(
    "trials",
    (
        *MEASUREMENT,
        Column("run", "integer", "start of the system under test, from 1", always=True),
        Column("run_refusal", "text", "why the run as a whole carries no figure; null: it counts"),
        Column("trial", "integer", "stimulus in the run, from 0", always=True),
        Column(
            "stimulus_s", "number", "the stimulus on the reference channel, after the run's first frame", always=True
        ),
        Column("reference_frame", "number", "the same in frames of the recording", always=True),
        Column("rate_hz", "integer", "sample rate of the recording", always=True),
        Column("valid", "flag", "the trial was accepted", always=True),
        Column("reason", "text", "why it was refused"),
        Column("latency_s", "number", "first arrival at the ear, the figure of the report; null exactly when refused"),
        Column("u_s", "number", "standard uncertainty of `latency_s`, all terms"),
        Column("u_noise_s", "number", "its statistical part"),
        Column("unconfirmed_s", "number", "what a refused trial would have said: evidence, never a result"),
        Column("wide_s", "number", "the same arrival read in the stimulus's full band"),
        Column("precision_s", "number", "interpolated peak of the correlation"),
        Column("crlb_s", "number", "Cramér-Rao bound of `precision_s`"),
        Column("dominant_s", "number", "strongest arrival, where it is not the first"),
        Column("polarity", "integer", "1 upright, -1 inverted"),
        Column("snr_db", "number", "ear channel, in the band, during the stimulus"),
        Column("reference_snr_db", "number", "reference channel"),
        Column("z", "number", "height of the arrival over the noise, in its standard deviations"),
        Column("decoy_db", "number", "arrival against that of the time-reversed stimulus"),
        Column("coherence", "number", "of reference and ear in the band, 0 to 1"),
        Column("split_s", "number", "lag of the stimulus's second half minus that of its first"),
        Column("level_db", "number", "arrival relative to the reference"),
        Column("note", "text", "what else is to be said of the trial"),
    ),
)

STAGES = Table(
    "stages",
    (
        *MEASUREMENT,
        Column("stage", "text", "name of the stage, in the order of the signal's way", always=True),
        Column("by", "text", "who saw it: `software`, `rig` or `calibration`"),
        Column("median_s", "number", "median over the runs"),
        Column("range_s", "number", "largest minus smallest"),
        Column("u95_s", "number", "half length of the 95 % interval of the median"),
        Column("claimed_s", "number", "what software or driver claim for it"),
        Column("undeclared_s", "number", "true minus claimed: the hidden delay"),
        Column("claimed_by", "text", "whose claim it is"),
        Column("distinguishable", "flag", "`undeclared_s` is further from 0 than `u95_s`"),
        Column("low_s", "number", "lower end of the 95 % interval of the median"),
        Column("high_s", "number", "its upper end"),
        Column("p95_s", "number", "95th percentile; null where there are too few values"),
        Column("runs_apart_s", "number", "range of the medians of the runs"),
        Column("n_values", "integer", "values behind the row"),
    ),
)

STAGE_TRIALS = Table(
    "stage_trials",
    (
        *MEASUREMENT,
        Column("run", "integer", "start of the system under test, from 1", always=True),
        Column("trial", "integer", "stimulus in the run, from 0", always=True),
        Column(
            "seq", "integer", "the frame that carried the beginning of its sound, as the marks number it", always=True
        ),
        Column("stage", "text", "name of the stage", always=True),
        Column("by", "text", "who saw it, as in `stages`", always=True),
        Column(
            "value_s", "number", "how long this stage took in this trial; negative ones keep their sign", always=True
        ),
        Column("begun_s", "number", "when it began, after the stimulus at the reference; null where nothing says when"),
    ),
)
