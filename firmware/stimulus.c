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

void rig_tone_start(struct rig_tone *tone, uint8_t kind, uint16_t steps)
{
    struct rig_sweep sweep;
    memset(tone, 0, sizeof *tone);
    tone->steps = steps;
    tone->is_sweep = find_sweep(kind, &sweep);
    if (tone->is_sweep) {
        tone->n_samples = sweep.n_samples;
        tone->edge_samples = sweep.edge_samples;
        tone->edge_step = sweep.edge_step;
        tone->increment = sweep.first_increment;
        tone->increment_step = sweep.increment_step;
    } else {
        tone->n_samples = MLS_SAMPLES;
        tone->state = RIG_MLS_SEED;
        tone->level = (int8_t)((RIG_FULL_SCALE * steps + 128u) >> 8);
    }
}

static int8_t next_of_sweep(struct rig_tone *tone)
{
    uint16_t from_end = tone->n_samples - 1 - tone->index;
    if (tone->index < from_end)
        from_end = tone->index;
    uint16_t gain = tone->steps;
    if (from_end < tone->edge_samples) {
        uint8_t edge = READ_U8(&rig_edge[(uint8_t)((from_end * tone->edge_step) >> 16)]);
        /* 0 to 256: 255 counts as a whole. 255 * 256 still fits 16 bits, 256 * 256 would not. */
        if (edge != 255)
            gain = (uint16_t)((uint16_t)(edge + (edge >> 7)) * tone->steps) >> 8;
    }
    int8_t sine = (int8_t)READ_U8(&rig_sine[(uint8_t)(tone->phase >> 24)]);
    tone->phase += tone->increment;
    tone->increment += tone->increment_step;
    return (int8_t)((int16_t)(sine * (int16_t)gain + 128) >> 8); /* within 16 bits; rounds halves up */
}

static int8_t next_of_sequence(struct rig_tone *tone)
{
    if (!tone->chip_samples_left)
        tone->chip_samples_left = RIG_MLS_CHIP_SAMPLES;
    uint8_t low = tone->state & 1;
    if (!--tone->chip_samples_left)
        tone->state = (tone->state >> 1) ^ (low ? RIG_MLS_TAPS : 0u);
    return low ? tone->level : (int8_t)-tone->level;
}

int8_t rig_tone_next(struct rig_tone *tone)
{
    if (tone->index >= tone->n_samples)
        return 0;
    int8_t sample = tone->is_sweep ? next_of_sweep(tone) : next_of_sequence(tone);
    tone->index++;
    return sample;
}
