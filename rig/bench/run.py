"""One run: a stream is opened, the stimuli are played, and every block goes to the session as it comes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from rig.bench.gapwatch import GapWatch
from rig.bench.plan import BenchPlan, check_fits, playback, stimulus_length_s
from rig.domain.records import Gap, StimulusPlan, StreamGrant
from rig.domain.seams import AudioBackend, AudioBlock, AudioStream, HostTime, ProgressSink, StimulusLink
from rig.domain.timebase import Duration
from rig.errors import AudioLost, BenchNotReady, LinkCorrupt, LinkTimeout, RigError
from rig.session.writer import RunWriter, SessionWriter

SILENT_FOR_S = 1.0
"""No block for this long: the stream is lost."""

FIRST_BLOCK_WITHIN_S = 3.0
"""A stream may take this long to start."""

_READ_S = 0.1  # the longest wait for a block, so that the board is heard in between
_PLAY_AHEAD_S = 0.5  # stimuli are handed to the interface this long before they are due
_PING_DITHER_S = 0.001  # one full-speed USB frame
_BOARD_CLOCK_SLACK = 0.01  # a ceramic resonator may be 0.5 % off
_BLOCK_LOG_EVERY_S = 0.25  # arrival times and the driver's claims are logged this often


@dataclass(slots=True)
class _Pending:
    """A stimulus whose response may still be on its way, and the recording's frame by which it has passed."""

    index: int
    near_frame: int
    passed_frame: int


def record_run(
    number: int,
    kind: str,
    stimuli: StimulusPlan,
    plan: BenchPlan,
    audio: AudioBackend,
    link: StimulusLink | None,
    time: HostTime,
    writer: SessionWriter,
    progress: ProgressSink,
) -> None:
    """Records one run into the session. Raises what the stream or the link raises; the run is closed then, not ok."""
    stream = audio.open(plan.stream)
    try:
        grant = stream.granted
        _check_grant(grant, plan)
        run = writer.start_run(number, kind, grant=grant, plan=stimuli, asked=plan.stream)
        recorder = _Recorder(run, stream, grant, stimuli, plan, link, time, progress)
        progress("run_started", {"run": number, "kind": kind, "count": stimuli.count, "granted": grant})
        try:
            recorder.record()
            recorder.end()
        except BaseException:
            with contextlib.suppress(RigError):  # a disk that is full must not hide why the run ended
                recorder.end()
            run.close(ok=False, elapsed_s=recorder.elapsed_s, xruns=recorder.xruns)
            raise
        run.close(ok=True, elapsed_s=recorder.elapsed_s, xruns=recorder.xruns)
        progress("run_done", {"run": number, "kind": kind, "n_frames": run.n_frames, "path": run.path})
    finally:
        stream.close()


def _check_grant(grant: StreamGrant, plan: BenchPlan) -> None:
    needed = max(plan.roles.ref, plan.roles.ear) + 1
    if grant.channels < needed:
        raise BenchNotReady(
            f"{grant.device} gives {grant.channels} input channels",
            f"at least {needed}, for the reference and the ear",
            "choose an interface with two inputs, or other channels with --ref and --ear",
        )


class _Recorder:
    """The state of one run while it is recorded.

    Frames of the recording count what was written, frames of the stream what was sent: they differ by what was lost.
    """

    def __init__(
        self,
        run: RunWriter,
        stream: AudioStream,
        grant: StreamGrant,
        stimuli: StimulusPlan,
        plan: BenchPlan,
        link: StimulusLink | None,
        time: HostTime,
        progress: ProgressSink,
    ) -> None:
        self._run = run
        self._stream = stream
        self._grant = grant
        self._stimuli = stimuli
        self._plan = plan
        self._link = link
        self._time = time
        self._progress = progress
        self._length_s = stimulus_length_s(stimuli)
        self._next_frame: int | None = None  # of the stream
        self._first: AudioBlock | None = None
        self._last_arrived_s = 0.0
        self._heard_s = time.now().seconds  # when a block last came
        self._logged_s = float("-inf")
        self._next_ping_s = self._heard_s
        self._ping_pause_s = plan.ping_every_s
        self._pings = 0
        self._fired: set[int] = set()
        self._pending: list[_Pending] = []
        self._last_near = 0  # frame of the recording near which the last stimulus started
        self._overflows = 0
        self._overflow_known = False
        self._watch = GapWatch(grant.rate_hz)
        self._unflagged = 0

    @property
    def xruns(self) -> int | None:
        """Losses that the backend flagged or the clock showed; None: there were none, and the backend cannot tell."""
        return self._overflows + self._unflagged if self._overflow_known or self._unflagged else None

    @property
    def elapsed_s(self) -> float | None:
        """Host time over the recording: from the first sample (its block's arrival less its length) to the last."""
        if self._first is None:
            return None
        first_s = self._first.arrived.seconds - len(self._first.frames) / self._grant.rate_hz
        return self._last_arrived_s - first_s

    def record(self) -> None:
        settled_frames = round(self._plan.settle_s * self._grant.rate_hz)
        self._pump(lambda: self._first is not None and self._run.n_frames >= settled_frames)
        if self._stimuli.source == "mcu":
            self._play_from_board()
        else:
            self._play_from_interface()
        self._pass_stimuli(everything=True)

    def end(self) -> None:
        """No more blocks will be read: what the clock could not be sure of yet is written down."""
        self._write_down(self._watch.end(), self._last_arrived_s)

    def _play_from_board(self) -> None:
        assert self._link is not None, "a plan for the board was checked to have one"
        armed = self._link.arm(self._stimuli)
        self._run.armed(armed)
        self._run.event("armed", stimulus=armed.kind, count=armed.count, spacing_ticks=armed.spacing_ticks)
        self._progress("armed", {"run": self._run.number, "armed": armed})
        self._link.fire()
        self._run.event("fire")
        fire_s = self._time.now().seconds
        planned_s = sum(self._stimuli.spacing_s) * (1.0 + _BOARD_CLOCK_SLACK)
        rest_s = self._length_s + self._plan.tail_s
        # The board's reports of firings can be lost on the wire; the recording is the evidence, so it goes on without.
        end_s = fire_s + planned_s + rest_s + SILENT_FOR_S

        def done() -> bool:
            if len(self._fired) >= self._stimuli.count:
                heard_out = self._last_near + rest_s * self._grant.rate_hz
                return self._run.n_frames >= heard_out or self._last_arrived_s >= end_s
            return self._last_arrived_s >= end_s

        self._pump(done)
        missing = self._stimuli.count - len(self._fired)
        if missing > 0:
            self._run.event("firings_unreported", missing=missing)
        if missing == self._stimuli.count:
            raise LinkTimeout(
                f"the board reported none of {missing} firings",
                "a report of each",
                "check the cable, and the board's firmware with `rig firmware info`",
            )

    def _play_from_interface(self) -> None:
        assert self._next_frame is not None, "settling has read a block"
        rate_hz = self._grant.rate_hz
        check_fits(self._stimuli, len(playback(self._stimuli, rate_hz, 0).wave) / rate_hz)
        index = 0
        due = self._next_frame + round(_PLAY_AHEAD_S * rate_hz)  # of the stream; where the wave with its lead-in starts
        last_end = due

        def done() -> bool:
            nonlocal index, due, last_end
            assert self._next_frame is not None
            while index < self._stimuli.count and self._next_frame >= due - round(_PLAY_AHEAD_S * rate_hz):
                wave = playback(self._stimuli, rate_hz, index)
                given = self._stream.play(wave.wave, due)
                lost = self._next_frame - self._run.n_frames
                frame = given + wave.stimulus_at - lost
                self._run.event(
                    "scheduled", index=index, frame=frame, asked=due + wave.stimulus_at, given=given + wave.stimulus_at
                )
                last_end = given + len(wave.wave)
                self._await(index, frame, len(wave.wave) - wave.stimulus_at)
                if index < len(self._stimuli.spacing_s):
                    due = given + round(self._stimuli.spacing_s[index] * rate_hz)
                index += 1
            played = index >= self._stimuli.count
            return played and self._next_frame >= last_end + round(self._plan.tail_s * rate_hz)

        self._pump(done)

    def _await(self, index: int, near_frame: int, length: int) -> None:
        passed = near_frame + length + round(self._plan.response_s * self._grant.rate_hz)
        self._pending.append(_Pending(index, near_frame, passed))
        self._last_near = max(self._last_near, near_frame)

    def _pump(self, done: Callable[[], bool]) -> None:
        """Reads blocks, hears the board and exchanges clocks until `done`. Raises AudioLost when blocks stop coming."""
        while not done():
            block = self._stream.read(self._time.now().plus(Duration(_READ_S)))
            if block is None:
                self._check_silence()
            else:
                self._take(block)
            if self._link is not None:
                self._hear_board(self._link)
            self._pass_stimuli()

    def _check_silence(self) -> None:
        silent_s = self._time.now().seconds - self._heard_s
        if silent_s >= (SILENT_FOR_S if self._first is not None else FIRST_BLOCK_WITHIN_S):
            raise AudioLost(
                f"{self._grant.device} delivered nothing for {silent_s:.1f} s"
                f" after {self._run.n_frames / self._grant.rate_hz:.2f} s of run {self._run.number}",
                "a block of samples every few milliseconds",
                "check that the interface is still plugged in and no other program took it, then measure again",
            )

    def _take(self, block: AudioBlock) -> None:
        run = self._run
        self._heard_s = self._time.now().seconds
        self._last_arrived_s = block.arrived.seconds
        if self._first is None:
            self._first = block
            self._next_frame = block.first_frame
            self._overflow_known = block.overflow is not None
            run.event("first_block", first_frame=block.first_frame, overflow_known=self._overflow_known)
        assert self._next_frame is not None
        jump = block.first_frame - self._next_frame
        if block.overflow:
            self._overflows += 1
            self._overflow_known = True
            run.event("overflow", at_s=block.arrived.seconds, frame=run.n_frames)
        if jump != 0 or block.overflow:
            # A jump says how much was lost; a flag alone does not. A count that went back says only that it is wrong.
            lost = jump if jump > 0 else None
            run.event("gap", at_s=block.arrived.seconds, frame=run.n_frames, lost_frames=lost, flagged_by="backend")
            self._watch.flagged(run.n_frames)
        if block.underflow:
            run.event("underflow", at_s=block.arrived.seconds, frame=run.n_frames)
        self._watch_clock(block)
        if block.arrived.seconds - self._logged_s >= _BLOCK_LOG_EVERY_S:
            self._logged_s = block.arrived.seconds
            run.event(
                "block",
                at_s=block.arrived.seconds,
                frame=run.n_frames,
                n=len(block.frames),
                adc_time_claimed_s=block.adc_time_claimed_s,
                now_claimed_s=block.now_claimed_s,
            )
        run.write(block.frames)
        self._next_frame = block.first_frame + len(block.frames)
        facts = {"run": run.number, "n_frames": run.n_frames, "rate_hz": self._grant.rate_hz, "frames": block.frames}
        self._progress("block", facts)

    def _watch_clock(self, block: AudioBlock) -> None:
        """Writes down the losses that the clock shows, and counts those that the backend did not flag."""
        end = block.first_frame + len(block.frames)
        self._write_down(self._watch.hear(self._run.n_frames, end, block.arrived.seconds), block.arrived.seconds)

    def _write_down(self, gaps: list[Gap], at_s: float) -> None:
        for gap in gaps:
            self._run.event("gap", at_s=at_s, frame=gap.frame, lost_frames=gap.lost_frames, flagged_by=gap.flagged_by)
        if self._watch.is_new(gaps):
            self._unflagged += 1

    def _hear_board(self, link: StimulusLink) -> None:
        now = self._time.now()
        if now.seconds >= self._next_ping_s:
            self._ping(link)
        now = self._time.now()
        for fired in link.poll(now):
            if fired.index in self._fired:
                continue
            self._fired.add(fired.index)
            facts = {"index": fired.index, "tick": fired.tick, "tick_rate_hz": fired.tick_rate_hz}
            self._run.event("fired", at_s=now.seconds, **facts)
            ahead_s = now.seconds - self._last_arrived_s if self._first is not None else 0.0
            near = self._run.n_frames + round(ahead_s * self._grant.rate_hz)
            self._await(fired.index, near, round(self._length_s * self._grant.rate_hz))

    def _ping(self, link: StimulusLink) -> None:
        """One clock exchange. A failed one is logged, and the next waits twice as long: the recording comes first.

        Pings come after blocks, and blocks in step with the USB frames: without a wait of its own every ping would meet
        the same phase of a frame, and one direction would never show its shortest delay. The fractions of the golden
        ratio fill the frame evenly and are the same in every run.
        """
        self._pings += 1
        wait_s = _PING_DITHER_S * (self._pings * 0.6180339887498949 % 1.0)
        self._time.sleep_until(self._time.now().plus(Duration(wait_s)))
        try:
            exchange = link.exchange_clock()
        except (LinkTimeout, LinkCorrupt) as error:
            self._ping_pause_s *= 2.0
            self._run.event("ping_failed", why=error.what)
        else:
            self._ping_pause_s = self._plan.ping_every_s
            self._run.event(
                "ping",
                host_sent_s=exchange.host_sent_s,
                mcu_received_tick=exchange.mcu_received_tick,
                mcu_sent_tick=exchange.mcu_sent_tick,
                host_received_s=exchange.host_received_s,
            )
        self._next_ping_s = self._time.now().seconds + self._ping_pause_s

    def _pass_stimuli(self, everything: bool = False) -> None:
        """Tells progress of each stimulus whose response has passed, in order."""
        waiting = []
        for item in sorted(self._pending, key=lambda item: item.index):
            if not everything and self._run.n_frames < item.passed_frame:
                waiting.append(item)
                continue
            facts = {"index": item.index, "near_frame": item.near_frame, "count": self._stimuli.count}
            self._progress(
                "stimulus", {"run": self._run.number, "rate_hz": self._grant.rate_hz, "path": self._run.path, **facts}
            )
        self._pending = waiting
