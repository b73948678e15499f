"""One pass over a recording, a block at a time: events on the reference become windows to examine. Flat memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from rig.analyse.examine import PRE_S, Window
from rig.analyse.gate import Event, Gate, is_silent_between, natural_hold_s, trim
from rig.analyse.spectrum import Real
from rig.analyse.stimulus import Shape, recognise, similarity
from rig.domain.records import AnalysisHints, ChannelRoles
from rig.domain.seams import Frames, FrameSource
from rig.domain.waveforms import ideal_waveform

BLOCK_FRAMES = 1 << 17
LAG_LIMIT_S = 6.0
"""Longest latency looked for when nobody says otherwise; the spacing limits it further."""

SURVEY_EVENTS = 14
SURVEY_S = 90.0
SIMILAR = 0.6
"""An event whose best correlation with the run's template is below this is not the stimulus (a pop, a word)."""

WORD_PAUSE_S = 0.3

PAUSE_S = 0.5
"""How much of the pause before a stimulus is kept to know the noise from."""


@dataclass(frozen=True, slots=True)
class Survey:
    """What a first look at the recording's beginning found. `template` None: every stimulus is its own waveform.

    `silent`: the reference is digital silence between the stimuli.
    """

    hold_s: float
    clips: tuple[tuple[int, int], ...]  # [start, stop) of the accepted events of the first stretch
    template: Real | None
    shape: Shape | None
    rejected: int
    silent: bool = False


@dataclass(frozen=True, slots=True)
class LagRange:
    """Where responses are looked for, in seconds after the stimulus. `high_s` None: up to the next stimulus."""

    low_s: float
    high_s: float | None
    limit_s: float


class Reel:
    """The last stretch of a recording, by absolute frame."""

    def __init__(self) -> None:
        self.start = 0
        self._frames = np.zeros((0, 2), dtype=np.float32)

    @property
    def stop(self) -> int:
        return self.start + len(self._frames)

    def append(self, block: Frames) -> None:
        self._frames = np.concatenate((self._frames, block)) if len(self._frames) else block

    def forget(self, before: int) -> None:
        cut = min(max(0, before - self.start), len(self._frames))
        if cut:
            self._frames = self._frames[cut:]
            self.start += cut

    def cut(self, start: int, stop: int, channel: int) -> Real:
        low, high = max(0, start - self.start), max(0, stop - self.start)
        return np.ascontiguousarray(self._frames[low:high, channel])


def blocks(source: FrameSource, roles: ChannelRoles, limit: int | None = None) -> Iterator[Frames]:
    """The reference and the ear as columns 0 and 1, in blocks, up to `limit` frames."""
    total = source.n_frames if limit is None else min(limit, source.n_frames)
    columns = [roles.ref, roles.ear]
    for start in range(0, total, BLOCK_FRAMES):
        block = source.read(start, min(BLOCK_FRAMES, total - start))
        if not len(block):
            return
        yield np.ascontiguousarray(block[:, columns])


def survey(source: FrameSource, roles: ChannelRoles, hints: AnalysisHints) -> Survey:
    """Looks at the first stretch: which pauses separate stimuli, what they look like, which band they are read in."""
    rate = float(source.rate_hz)
    reel = Reel()
    for block in blocks(source, roles, round(SURVEY_S * rate)):
        reel.append(block)
    silent = is_silent_between(reel.cut(0, reel.stop, 0), rate)
    short = Gate(rate, 0.012 if hints.lead_in else 0.02, silent)
    end = 0
    while end < reel.stop and len(short.finished) <= 8 * SURVEY_EVENTS:
        start, end = end, min(end + BLOCK_FRAMES, reel.stop)
        short.feed(reel.cut(start, end, 0))
    short.finish()
    if not short.finished:
        return Survey(0.02, (), None, None, 0, silent)
    hold_s = 0.012 if hints.lead_in else natural_hold_s(short.finished, rate)
    if hints.stimulus == "wav":  # speech, or something like it: a pause between two words does not end it
        hold_s = max(hold_s, WORD_PAUSE_S)
    gate = Gate(rate, hold_s, silent)
    for start in range(0, end, BLOCK_FRAMES):
        gate.feed(reel.cut(start, min(start + BLOCK_FRAMES, end), 0))
    if end >= source.n_frames:
        gate.finish()
    events = gate.finished[: 4 * SURVEY_EVENTS]
    spans = [span for span in (_trimmed(reel, event, rate) for event in events) if span is not None]
    clips = [reel.cut(a, b, 0) for a, b in spans]
    if not clips:
        return Survey(hold_s, (), None, None, len(events), silent)
    if hints.lead_in and hints.stimulus is not None:
        template: Real | None = _best_like(clips, ideal_waveform(hints.stimulus, source.rate_hz, 0.5))
    else:
        template = _medoid(clips)
    if template is None:
        longest = clips[int(np.argmax([len(c) for c in clips]))]
        kept = [s for s in spans if s[1] - s[0] > 0.05 * rate]
        shape = recognise(longest, rate, hints.stimulus, _pause_before(reel, spans, longest, clips, rate))
        return Survey(hold_s, tuple(kept), None, shape, len(spans) - len(kept), silent)
    kept = [s for s, c in zip(spans, clips, strict=True) if similarity(template, c)[0] >= SIMILAR]
    shape = recognise(template, rate, hints.stimulus, _pause_before(reel, spans, template, clips, rate))
    return Survey(hold_s, tuple(kept), template, shape, len(spans) - len(kept), silent)


def _pause_before(
    reel: Reel, spans: list[tuple[int, int]], chosen: Real, clips: list[Real], rate: float
) -> Real | None:
    """The reference between the chosen clip and whatever stood before it, up to 0.3 s."""
    k = next((i for i, clip in enumerate(clips) if clip is chosen), 0)
    start = spans[k][0]
    floor = spans[k - 1][1] if k else reel.start
    pause = reel.cut(max(floor, start - round(0.3 * rate)), start - round(0.004 * rate), 0)
    return pause if len(pause) else None


def _trimmed(reel: Reel, event: Event, rate_hz: float) -> tuple[int, int] | None:
    """The event's stimulus as absolute [start, stop), or None when it is cut by an end of the recording."""
    margin = round(0.020 * rate_hz)
    low, high = max(reel.start, event.start - margin), min(reel.stop, event.stop + margin)
    clip = reel.cut(low, high, 0)
    if len(clip) < 0.001 * rate_hz:
        return None
    start, stop = trim(clip, rate_hz)
    if stop - start < 0.001 * rate_hz:
        return None
    return low + start, low + stop


def _medoid(clips: list[Real]) -> Real | None:
    """The clip that most others look like; None when they are all different (running speech)."""
    if len(clips) == 1:
        return clips[0]
    chosen = clips[:SURVEY_EVENTS]
    alike = np.array([[similarity(a, b)[0] if a is not b else 1.0 for b in chosen] for a in chosen])
    votes = (alike >= SIMILAR).sum(axis=1)
    best = int(np.argmax(votes + 1e-3 * alike.sum(axis=1)))
    if votes[best] < max(2, 0.4 * len(chosen)) and len(chosen) > 2:
        return None
    if len(chosen) == 2 and votes[best] < 2:  # two events that differ: the longer is likelier than the pop
        return chosen[int(np.argmax([len(c) for c in chosen]))]
    return chosen[best]


def _best_like(clips: list[Real], wave: Real) -> Real | None:
    scores = [similarity(wave, clip)[0] for clip in clips]
    best = int(np.argmax(scores))
    return clips[best] if scores[best] >= SIMILAR else None


@dataclass(slots=True)
class _Pending:
    index: int
    start: int
    stop: int
    similar: float
    offset: float
    pause_from: int  # end of whatever stood before it on the reference


def windows(
    source: FrameSource,
    roles: ChannelRoles,
    found: Survey,
    lags: LagRange,
    on_block: Callable[[Frames], None],
    limit_events: int | None = None,
) -> Iterator[tuple[Window, float, float]]:
    """Every stimulus of the recording with the ear's samples that may hold its response.

    Yields (window, similarity to the template, offset against the template in samples). `on_block` sees every block
    once, in order (levels are metered there). With `limit_events` it stops early.
    """
    rate = float(source.rate_hz)
    gate = Gate(rate, found.hold_s, found.silent)
    reel = Reel()
    queue: list[_Pending] = []
    state = _Counter()
    for block in blocks(source, roles):
        on_block(block)
        reel.append(block)
        gate.feed(block[:, 0])
        yield from _step(gate, reel, queue, state, found, lags, rate, ended=False)
        if limit_events is not None and state.yielded >= limit_events:
            return
    gate.finish()
    yield from _step(gate, reel, queue, state, found, lags, rate, ended=True)


@dataclass(slots=True)
class _Counter:
    index: int = 0
    yielded: int = 0
    last_stop: int = 0


def _step(
    gate: Gate,
    reel: Reel,
    queue: list[_Pending],
    state: _Counter,
    found: Survey,
    lags: LagRange,
    rate: float,
    ended: bool,
) -> Iterator[tuple[Window, float, float]]:
    for event in gate.finished:
        span = _trimmed(reel, event, rate)
        previous, state.last_stop = state.last_stop, event.stop
        if span is None:
            continue
        clip = reel.cut(*span, 0)
        similar, offset = (1.0, 0.0) if found.template is None else similarity(found.template, clip)
        if similar < SIMILAR or (found.template is None and len(clip) < 0.05 * rate):
            continue
        queue.append(_Pending(state.index, span[0], span[1], similar, offset, previous))
        state.index += 1
    gate.finished.clear()
    horizon = round(lags.limit_s * rate)
    while queue:
        head = queue[0]
        following = queue[1].start if len(queue) > 1 else None
        open_since = gate.open_since
        if following is None and not ended:
            undecided = open_since is not None and open_since < head.start + horizon
            if undecided or reel.stop < head.start + horizon + round(found.hold_s * rate):
                break
        high = _last_lag(head, following, lags, rate)
        needed = head.start + high + (head.stop - head.start) + round(0.045 * rate)
        if reel.stop < needed and not ended:
            break
        queue.pop(0)
        state.yielded += 1
        yield _window(head, reel, high, lags, rate), head.similar, head.offset
    keep = queue[0].start if queue else (gate.open_since if gate.open_since is not None else reel.stop)
    reel.forget(keep - round((PAUSE_S + 0.1) * rate) + min(0, round(lags.low_s * rate)))


def _last_lag(head: _Pending, following: int | None, lags: LagRange, rate: float) -> int:
    limit = round(lags.limit_s * rate)
    if lags.high_s is not None:
        return round(lags.high_s * rate)
    return limit if following is None else min(limit, following - head.start)


def _window(head: _Pending, reel: Reel, last_lag: int, lags: LagRange, rate: float) -> Window:
    n = head.stop - head.start
    first = head.start + (round(lags.low_s * rate) if lags.low_s > 0 else -round(max(PRE_S, -lags.low_s) * rate))
    first = max(first, reel.start)
    pause = max(head.pause_from, head.start - round(PAUSE_S * rate), reel.start)
    quiet = head.start - round(0.004 * rate)
    return Window(
        index=head.index,
        start=head.start,
        clip=reel.cut(head.start, head.stop, 0),
        ear=reel.cut(first, head.start + last_lag + n, 1),
        ear_start=first,
        last_lag=last_lag,
        before_ref=reel.cut(pause, max(pause, quiet), 0),
        before_ear=reel.cut(max(reel.start, head.start - round(PAUSE_S * rate)), quiet, 1),
    )
