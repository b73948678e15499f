"""Frozen records that pass between the stages: acquire, session, analyse, report.

Units are in the names. A missing value is None, never 0. Asked, granted and done are kept side by side.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class BenchKind(StrEnum):
    """What the numbers come from. Never inferred: the bench says it."""

    HARDWARE = "hardware"
    VIRTUAL = "virtual"
    SIMULATED = "simulated"
    FILE = "file"  # a recording from any recorder: rig did not make it


class Reason(StrEnum):
    """Why a trial, or a whole run, carries no figure."""

    NO_STIMULUS = "no_stimulus"  # the reference channel carries none
    WEAK_REFERENCE = "weak_reference"  # it does, but under 30 dB above its noise
    NO_ARRIVAL = "no_arrival"  # nothing on the ear channel that matches
    LOW_SNR = "low_snr"  # something matches, too weakly to be trusted
    AMBIGUOUS = "ambiguous"  # several arrivals could be the first one
    CLIPPED = "clipped"
    GAP_IN_WINDOW = "gap_in_window"  # samples were lost between stimulus and arrival
    DIGITAL_SILENCE = "digital_silence"  # every sample is the same value
    OUTSIDE_WINDOW = "outside_window"  # the arrival is cut by the window, the next stimulus or the file's end
    CLOCK_WITNESS = "clock_witness"  # the board's stamp and the recording disagree: samples were lost
    LEAK = "leak"  # the arrival is there with the system muted too
    DELAY_CHANGED_IN_CLIP = "delay_changed_in_clip"
    SAME_SIGNAL = "same_signal"  # both channels carry the same signal
    SWAPPED_CHANNELS = "swapped_channels"  # the stimulus comes later on the reference than on the ear
    RATE_MISMATCH = "rate_mismatch"  # spacing on the recording and spacing commanded differ by over 0.5 %
    NO_CONSENSUS = "no_consensus"  # a tone burst that the other trials of its run do not confirm
    TOO_FEW = "too_few"  # fewer than 3 accepted, or fewer than half


@dataclass(frozen=True, slots=True)
class StreamSpec:
    """What is asked of an audio device."""

    device: str
    rate_hz: int
    channels: int
    block_frames: int | None = None  # None: the backend chooses
    latency_s: float | None = None  # None: the backend chooses


@dataclass(frozen=True, slots=True)
class StreamGrant:
    """What the device gave, and what it claims about itself. Claims are shown, never used as corrections."""

    device: str
    host_api: str | None
    rate_hz: int
    channels: int
    block_frames: int | None
    input_latency_claimed_s: float | None
    output_latency_claimed_s: float | None


@dataclass(frozen=True, slots=True)
class Gap:
    """Frames that were lost before `frame` of the recording. `lost_frames` is None where the backend cannot tell."""

    frame: int
    lost_frames: int | None
    flagged_by: str  # "backend" | "clock" | "writer"


@dataclass(frozen=True, slots=True)
class StimulusPlan:
    """What the board or the interface is asked to play in one run."""

    kind: str  # chirp | chirp-nb | click | mls | wav
    count: int
    spacing_s: tuple[float, ...]  # from one stimulus to the next; count - 1 values
    amplitude: float  # of full scale, 0 to 1
    source: str  # mcu | interface
    lead_in: str | None = None  # None | "speech"
    wav: str | None = None  # path, when kind is wav


@dataclass(frozen=True, slots=True)
class ArmedStimulus:
    """What the board answers that it will really do."""

    kind: str
    count: int
    amplitude: float
    spacing_ticks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StimulusFired:
    """One firing, as the board reports it. `tick` is the unwrapped tick of the tone's first sample."""

    index: int
    tick: int
    tick_rate_hz: float


@dataclass(frozen=True, slots=True)
class BoardIdentity:
    """The answer to `identify`."""

    protocol: int
    table_hash: str
    tick_rate_hz: float
    board: str
    build: str
    uid: str


@dataclass(frozen=True, slots=True)
class ClockExchange:
    """One ping: host send, board receive, board send, host receive. Host times in s, board times in unwrapped ticks."""

    host_sent_s: float
    mcu_received_tick: int
    mcu_sent_tick: int
    host_received_s: float


@dataclass(frozen=True, slots=True)
class ChannelRoles:
    """Which channel is which, zero-based."""

    ref: int
    ear: int


@dataclass(frozen=True, slots=True)
class ChannelLevel:
    """Level facts of one channel over a run. dBFS against 1.0 full scale; None where undefined (digital silence)."""

    peak_dbfs: float | None
    noise_dbfs: float | None  # RMS between stimuli
    dc: float
    hum_dbfs: float | None  # strongest mains component (50 or 60 Hz), where one stands out
    clipped_samples: int
    digital_silence: bool


@dataclass(frozen=True, slots=True)
class BlankFloor:
    """What the ear heard with the system muted: the leak from mouth to ear. Lag in s; level in dB of the reference."""

    leak_lag_s: float | None  # None: a blank run was made and found no leak
    leak_db: float | None
    n_trials: int
    tail_db: float | None = None  # strongest thing heard later than the leak: its reflections, in dB of the reference


@dataclass(frozen=True, slots=True)
class AnalysisHints:
    """What the analysis may know beside the samples. Everything is optional."""

    min_latency_s: float | None = None
    max_latency_s: float | None = None
    stimulus: str | None = None  # kind as planned
    lead_in: bool = False
    spacing_s: tuple[float, ...] | None = None  # as commanded
    fired: tuple[StimulusFired, ...] | None = None
    gaps: tuple[Gap, ...] = ()
    blank: BlankFloor | None = None
    elapsed_s: float | None = None  # host time over the recording, to compare with frames received


@dataclass(frozen=True, slots=True)
class BudgetLine:
    """One term of the uncertainty budget (GUM). `kind` A: from statistics, B: from other knowledge."""

    term: str
    u_s: float
    kind: str
    source: str


@dataclass(frozen=True, slots=True)
class Correction:
    """A calibrated correction; `value_s` is added to the latency as found."""

    name: str
    value_s: float
    u_s: float
    calibration: str


@dataclass(frozen=True, slots=True)
class Trial:
    """One stimulus and what became of it. `latency_s` is None exactly when `valid` is False."""

    index: int
    reference_frame: float  # where the stimulus starts on the reference channel
    valid: bool
    reason: Reason | None
    latency_s: float | None  # first significant arrival in the run's band
    u_s: float | None  # standard uncertainty of this trial, all terms
    u_noise_s: float | None  # its statistical part: estimator noise alone
    unconfirmed_s: float | None = None  # the refused figure, where there was one: evidence, never a result
    wide_s: float | None = None  # the same arrival read in the stimulus's full band
    precision_s: float | None = None  # interpolated correlation peak
    crlb_s: float | None = None  # Cramer-Rao bound of the precision figure
    dominant_s: float | None = None  # strongest arrival, where it is not the first
    polarity: int | None = None  # +1 upright, -1 inverted
    snr_db: float | None = None  # ear channel, in the band, during the stimulus
    reference_snr_db: float | None = None
    z: float | None = None
    decoy_db: float | None = None
    coherence: float | None = None
    split_s: float | None = None  # lag of the second half of the stimulus minus lag of the first
    level_db: float | None = None  # arrival relative to the reference
    note: str | None = None


@dataclass(frozen=True, slots=True)
class BlockArrival:
    """A block of samples as it reached the program (host time), with the driver's own times where it gives any.

    `frame` counts the recording, not the stream."""

    arrived_s: float
    frame: int
    n_frames: int
    adc_time_claimed_s: float | None
    now_claimed_s: float | None


@dataclass(frozen=True, slots=True)
class ClockEvidence:
    """What a run recorded about its clocks. `scheduled` holds (index, frame of the recording asked for) of what the
    interface played; `tick_rate_hz` is the board's nominal rate, None without a board."""

    exchanges: tuple[ClockExchange, ...] = ()
    fired: tuple[StimulusFired, ...] = ()
    tick_rate_hz: float | None = None
    gaps: tuple[Gap, ...] = ()
    blocks: tuple[BlockArrival, ...] = ()
    scheduled: tuple[tuple[int, int], ...] = ()
    kind: str | None = None  # of the stimulus, as planned
    untied: str | None = None  # why a tone is not where its stamp is: rates can be compared then, and times cannot


@dataclass(frozen=True, slots=True)
class ClockDrift:
    """How fast one clock ran against another over a stretch, ppm: estimate, and the interval that holds the truth."""

    ppm: float
    low_ppm: float
    high_ppm: float


@dataclass(frozen=True, slots=True)
class Span:
    """A figure in s and the interval that holds the truth."""

    value_s: float
    low_s: float
    high_s: float


@dataclass(frozen=True, slots=True)
class ClockFacts:
    """The clocks of one run beside each other, and the driver's claims beside what the clocks say.

    Drifts are positive when the clock named first runs fast. Delays are medians over `n_blocks` blocks of samples as
    they reached the program; None where a clock or a claim is missing, `refusal` says why clocks are.
    """

    audio_host: ClockDrift | None
    mcu_host: ClockDrift | None
    audio_mcu: ClockDrift | None
    n_exchanges: int
    n_pulses: int
    first_s: float | None  # of the recording: the stretch that was compared
    last_s: float | None
    margin_s: float | None  # of the line between the exchanges' bounds
    half_width_s: float | None  # host time of any sample of the stretch is known within this
    refusal: str | None
    n_blocks: int = 0
    after_last_s: Span | None = None  # from a block's last sample to the program
    after_first_s: Span | None = None  # from its first
    adc_claim_age_s: float | None = None  # the same from its first sample, by the driver's own times
    adc_claim_error_s: Span | None = None  # the driver's capture times; positive: it claims later than true
    output_s: Span | None = None  # from the frame that the interface was asked to play at to the sound on the reference


@dataclass(frozen=True, slots=True)
class RunAnalysis:
    """Everything that the analysis says of one run."""

    run: int  # one-based
    trials: tuple[Trial, ...]
    refusal: Reason | None  # a reason that holds for the whole run; None: at least the trials speak for themselves
    refusal_detail: str | None
    stimulus: str | None  # kind, as told or as recognised
    band_hz: tuple[float, float] | None
    rate_hz: int
    n_frames: int
    levels: tuple[ChannelLevel, ChannelLevel] | None  # reference, ear
    budget: tuple[BudgetLine, ...] = ()
    caveats: tuple[str, ...] = ()
    drift_ppm: float | None = None  # audio clock against the board's; positive: audio fast
    latency_slope_ppm: float | None = None  # latency against time inside the run
    first_frame_s: float = 0.0
    extra: dict[str, float | None] = field(default_factory=dict)
    clocks: ClockFacts | None = None
