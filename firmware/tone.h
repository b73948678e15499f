/* The tones, sample by sample: the same integers as board_samples() in rig/domain/waveforms.py. No hardware in here. */
#ifndef RIG_TONE_H
#define RIG_TONE_H

#include <stdint.h>

struct rig_tone {
    uint8_t is_sweep;
    uint16_t n_samples;
    uint16_t index; /* of the next sample */
    uint16_t steps; /* amplitude in 256ths */
    /* a sweep */
    uint16_t edge_samples;
    uint32_t edge_step;
    uint32_t edge_phase; /* edge_step times the samples to the nearer end */
    uint32_t phase;
    uint32_t increment;
    uint32_t increment_step;
    /* a sequence */
    uint16_t state;
    uint8_t chip_samples_left;
    int8_t level;
};

/* The one that is being made. At a fixed address its fields cost half the time of those behind a pointer. */
extern struct rig_tone rig_tone;

/* Length of a tone; 0 for a kind that does not exist. */
uint16_t rig_tone_samples(uint8_t kind);

/* Back to the first sample. `kind` must exist, `steps` is 1 to 256. */
void rig_tone_start(uint8_t kind, uint16_t steps);

/* The next sample, -127 to 127; 0 after the last. */
int8_t rig_tone_next(void);

#endif
