/* What is played and when, counted in samples: one step for each sample of the board's tone clock. No hardware in here.
 *
 * The step runs in the sample interrupt, a whole sample ahead of the one that it decides on; the port carries out what
 * it gives at the next interrupt, and counts. The core keeps the ring filled and reads the counters. */
#ifndef RIG_PLAYER_H
#define RIG_PLAYER_H

#include <stdint.h>

#define RIG_RING_SAMPLES 64u /* 2 ms: longer than the slowest command takes while the board fires */
#define RIG_MIDDLE 128u      /* silence: half of the supply, so that a tone starts without a step */
#define RIG_NEVER 0xFFFFFFFFul

enum rig_step {
    RIG_STEP_START = 1,     /* the level is the first of a tone: n_started grows */
    RIG_STEP_END = 2,       /* the tone before this level is over: n_ended grows */
    RIG_STEP_PULSE_ON = 4,  /* the pulse begins with this sample */
    RIG_STEP_PULSE_OFF = 8, /* the pulse is over when this sample begins */
    RIG_STEP_LAST = 16,     /* nothing is left to play */
};

struct rig_player {
    int8_t ring[RIG_RING_SAMPLES];
    volatile uint8_t head; /* written by the core */
    uint8_t tail;          /* read by the interrupt */
    uint8_t sounding;
    volatile uint8_t starved; /* the ring ran dry: the tone was cut */
    uint16_t n_samples;
    uint16_t pulse_samples;
    uint16_t samples_left;
    uint16_t pulse_left;
    uint8_t count; /* one byte each: the core reads them without locking the interrupt out */
    uint8_t tones_left;
    volatile uint8_t n_started;
    volatile uint8_t n_ended;
    uint32_t countdown;         /* steps to the next start */
    volatile uint32_t spacing;  /* what follows the next start, in samples; RIG_NEVER: nothing */
    volatile uint32_t start_tick; /* of the tone that was started last; kept by the port */
};

static inline uint8_t rig_player_step(struct rig_player *p, uint8_t *level)
{
    uint8_t what = 0;
    *level = RIG_MIDDLE;
    if (!--p->countdown) {
        what = RIG_STEP_START;
        p->countdown = p->spacing;
        p->samples_left = p->n_samples;
        p->tones_left--;
        p->sounding = 1;
        if (p->pulse_samples) {
            p->pulse_left = p->pulse_samples + 1u;
            what |= RIG_STEP_PULSE_ON;
        }
    }
    if (p->samples_left) {
        uint8_t tail = p->tail;
        if (tail == p->head) {
            p->starved = 1;
            p->samples_left = 0;
            return what | RIG_STEP_LAST;
        }
        *level = (uint8_t)(RIG_MIDDLE + (uint8_t)p->ring[tail & (RIG_RING_SAMPLES - 1u)]);
        p->tail = (uint8_t)(tail + 1);
        p->samples_left--;
    } else if (p->sounding) {
        p->sounding = 0;
        what |= RIG_STEP_END;
        if (!p->tones_left)
            what |= RIG_STEP_LAST;
    }
    if (p->pulse_left && !--p->pulse_left)
        what |= RIG_STEP_PULSE_OFF;
    return what;
}

#endif
