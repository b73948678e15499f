"""What each reason for refusing means, and what to do about it: the table behind every refusal that is printed."""

from __future__ import annotations

from rig.domain.records import Reason

REMEDIES: dict[Reason, tuple[str, str]] = {
    Reason.NO_STIMULUS: (
        "the reference channel carries no stimulus",
        "check the cable from the stimulus source to the reference channel, its gain, and --ref",
    ),
    Reason.WEAK_REFERENCE: (
        "the stimulus on the reference channel is less than 30 dB above its noise",
        "raise the gain of the reference channel or the level of the stimulus; feed it by cable, not by microphone",
    ),
    Reason.NO_ARRIVAL: (
        "nothing on the ear channel matches the stimulus",
        "check that the system is running and unmuted, that the ear microphone is at its loudspeaker, and --ear; a"
        " longer delay needs a longer --max-latency; where noise suppression is at work, try --lead-in speech",
    ),
    Reason.LOW_SNR: (
        "something matches, but too weakly to be trusted",
        "move the ear microphone closer to the loudspeaker, turn the system up, or quieten the room",
    ),
    Reason.AMBIGUOUS: (
        "several arrivals could be the first one: an echo, or the mouth heard directly",
        "shield the ear microphone from the mouth, move it closer to the loudspeaker, or exclude one of them with"
        " --min-latency or --max-latency",
    ),
    Reason.CLIPPED: (
        "samples in the window are at full scale",
        "turn the input gain of that channel down until its peak stays under -3 dBFS",
    ),
    Reason.GAP_IN_WINDOW: (
        "samples were lost between the stimulus and its arrival",
        "close other programs that use audio, use larger buffers, and avoid USB hubs; then measure again",
    ),
    Reason.DIGITAL_SILENCE: (
        "every sample of the channel has the same value",
        "check that the channel is connected and unmuted, and that --ref and --ear name the right ones; macOS records"
        " silence where the terminal has no right to the microphone",
    ),
    Reason.OUTSIDE_WINDOW: (
        "the arrival is cut off by the search window, the next stimulus or the end of the recording",
        "raise --max-latency, space the stimuli more widely than the latency, or record longer after the last one",
    ),
    Reason.CLOCK_WITNESS: (
        "the board's time of the stimulus and its place in the recording disagree: samples were lost unnoticed",
        "close other programs that use audio, use larger buffers, and measure again",
    ),
    Reason.LEAK: (
        "the same arrival is there while the system is muted: the ear hears the mouth, not the system",
        "move mouth and ear apart or shield them, lower the stimulus, or set --min-latency above the leak",
    ),
    Reason.DELAY_CHANGED_IN_CLIP: (
        "the delay changed while the stimulus was passing, so no single figure is true",
        "nothing is wrong with the bench: the system stretches or drops audio; a shorter stimulus is cut less often",
    ),
    Reason.SAME_SIGNAL: (
        "both channels carry the same signal; this is not a measurement",
        "check the wiring and that the recorder does not mix both inputs into one",
    ),
    Reason.SWAPPED_CHANNELS: (
        "the channels look swapped: the stimulus comes later on the reference than on the ear",
        "exchange --ref and --ear, or the two cables",
    ),
    Reason.RATE_MISMATCH: (
        "the spacing of the stimuli on the recording is not the one that was played",
        "the file's sample rate is labelled wrongly, or much audio was lost: record again at one fixed rate",
    ),
    Reason.NO_CONSENSUS: (
        "a tone burst that the other trials of its run do not confirm",
        "use --stimulus chirp, which is validated trial by trial",
    ),
    Reason.TOO_FEW: (
        "fewer than 3 trials, or fewer than half of the run's trials, were accepted",
        "mend what refused the single trials, listed with it",
    ),
}
