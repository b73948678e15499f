#include "tone.h"

#include "messages.h"

#ifdef __AVR__
#include <avr/pgmspace.h>
#define RIG_TABLE_MEMORY PROGMEM
#define READ_U8(from) pgm_read_byte(from)
#define READ_SWEEP(to, from) memcpy_P(to, from, sizeof *(to))
#else
#define READ_U8(from) (*(const uint8_t *)(from))
#define READ_SWEEP(to, from) memcpy(to, from, sizeof *(to))
#endif

#include "stimulus.h"

struct rig_tone rig_tone;

#define MLS_SAMPLES (RIG_MLS_CHIPS * RIG_MLS_CHIP_SAMPLES)

static uint8_t find_sweep(uint8_t kind, struct rig_sweep *sweep)
{
    for (uint8_t i = 0; i < RIG_N_SWEEPS; i++) {
        READ_SWEEP(sweep, &rig_sweeps[i]);
        if (sweep->kind == kind)
            return 1;
    }
    return 0;
}

uint16_t rig_tone_samples(uint8_t kind)
{
    struct rig_sweep sweep;
    if (find_sweep(kind, &sweep))
        return sweep.n_samples;
    return kind == RIG_KIND_MLS ? MLS_SAMPLES : 0;
}

void rig_tone_start(uint8_t kind, uint16_t steps)
{
    struct rig_sweep sweep;
    memset(&rig_tone, 0, sizeof rig_tone);
    rig_tone.steps = steps;
    rig_tone.is_sweep = find_sweep(kind, &sweep);
    if (rig_tone.is_sweep) {
        rig_tone.n_samples = sweep.n_samples;
        rig_tone.edge_samples = sweep.edge_samples;
        rig_tone.edge_step = sweep.edge_step;
        rig_tone.increment = sweep.first_increment;
        rig_tone.increment_step = sweep.increment_step;
    } else {
        rig_tone.n_samples = MLS_SAMPLES;
        rig_tone.state = RIG_MLS_SEED;
        rig_tone.level = (int8_t)((RIG_FULL_SCALE * steps + 128u) >> 8);
    }
}

static int8_t next_of_sweep(void)
{
    uint16_t gain = rig_tone.steps, to_end = rig_tone.n_samples - 1 - rig_tone.index;
    uint8_t is_rising = rig_tone.index < rig_tone.edge_samples;
    if (is_rising || to_end < rig_tone.edge_samples) {
        if (!is_rising)
            rig_tone.edge_phase -= rig_tone.edge_step; /* the same steps back: a multiplication would take too long */
        uint8_t edge = READ_U8(&rig_edge[(uint8_t)(rig_tone.edge_phase >> 16)]);
        if (is_rising)
            rig_tone.edge_phase += rig_tone.edge_step;
        /* 0 to 256: 255 counts as a whole. 255 * 256 still fits 16 bits, 256 * 256 would not. */
        if (edge != 255)
            gain = (uint16_t)((uint16_t)(edge + (edge >> 7)) * rig_tone.steps) >> 8;
    }
    int8_t sine = (int8_t)READ_U8(&rig_sine[(uint8_t)(rig_tone.phase >> 24)]);
    rig_tone.phase += rig_tone.increment;
    rig_tone.increment += rig_tone.increment_step;
    return (int8_t)((int16_t)(sine * (int16_t)gain + 128) >> 8); /* within 16 bits; rounds halves up */
}

static int8_t next_of_sequence(void)
{
    if (!rig_tone.chip_samples_left)
        rig_tone.chip_samples_left = RIG_MLS_CHIP_SAMPLES;
    uint8_t low = rig_tone.state & 1;
    if (!--rig_tone.chip_samples_left)
        rig_tone.state = (rig_tone.state >> 1) ^ (low ? RIG_MLS_TAPS : 0u);
    return low ? rig_tone.level : (int8_t)-rig_tone.level;
}

int8_t rig_tone_next(void)
{
    if (rig_tone.index >= rig_tone.n_samples)
        return 0;
    int8_t sample = rig_tone.is_sweep ? next_of_sweep() : next_of_sequence();
    rig_tone.index++;
    return sample;
}
