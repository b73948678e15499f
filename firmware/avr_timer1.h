/* What a port on an AVR at 16 MHz does with timer 1 and an 8-bit timer for the PWM: ticks, tone, pulse, and their checks.
 * For the one main_<board>.c that includes it, after it has said how the board is wired:
 *
 *   TONE_LEVEL          compare register of the PWM, buffered by hardware until a period starts
 *   PWM_FLAGS           the flag register of the PWM's timer, PWM_OVERFLOW its overflow flag
 *   LIGHT(), DARK()     the LED
 *   CAPTURE_IS_HIGH()   level at ICP1
 *
 * Timer 1 counts ticks (16 MHz / 8) and never stops; the PWM's timer starts with it, so that every 32nd tick is the
 * start of a period. Compare interrupt A comes 32 ticks before each sample and writes the level, which the hardware
 * takes over 256 cycles later: time enough for any other interrupt to end. The pulse is made by compare unit B. So
 * neither tone nor pulse moves by a cycle, whatever else goes on.
 */
#ifndef RIG_AVR_TIMER1_H
#define RIG_AVR_TIMER1_H

#include <avr/interrupt.h>
#include <avr/io.h>
#include <util/atomic.h>
#include <util/delay_basic.h>

#include "avr_board.h"
#include "avr_ticks.h"
#include "player.h"
#include "port.h"

#if F_CPU != 16000000ul
#error "the tick and sample rates need a 16 MHz clock"
#endif

#define HALF_SAMPLE_TICKS (RIG_TICKS_A_SAMPLE / 2u)
#define PULSE_AT_MATCH_SETS (_BV(COM1B1) | _BV(COM1B0))
#define PULSE_AT_MATCH_CLEARS _BV(COM1B1)

struct rig_player rig_player;

static uint8_t next_level = RIG_MIDDLE;
static uint8_t next_step;

/* --- time ---------------------------------------------------------------------------------------------------------- */

uint32_t port_tick(void)
{
    uint32_t tick;
    ATOMIC_BLOCK(ATOMIC_RESTORESTATE) { tick = tick_of(TCNT1); }
    return tick;
}

ISR(TIMER1_OVF_vect)
{
    AWAKE |= _BV(0);
    if (!++TICK_HIGH_LOW)
        TICK_HIGH_HIGH++;
}

/* --- tone and pulse ------------------------------------------------------------------------------------------------ */

ISR(TIMER1_COMPA_vect)
{
    TONE_LEVEL = next_level;
    uint16_t match = OCR1A; /* the sample starts half a sample after it; the next one a whole sample later */
    uint8_t what = next_step;
    OCR1A = match + RIG_TICKS_A_SAMPLE;
    AWAKE |= _BV(0);
    /* Too late for the next match, which would then come a whole round of the timer later: all is cut, not moved. */
    if ((uint16_t)(TCNT1 - match) >= RIG_TICKS_A_SAMPLE - 1u) {
        rig_player.starved = 1;
        TIMSK1 &= (uint8_t)~_BV(OCIE1A);
        return;
    }
    if (what) {
        if (what & RIG_STEP_START) {
            uint32_t tick = tick_of(TCNT1);
            rig_player.start_tick = tick + (uint16_t)(match + 1u + HALF_SAMPLE_TICKS - (uint16_t)tick);
            rig_player.n_started++;
        }
        if (what & RIG_STEP_PULSE_ON)
            LIGHT();
        if (what & RIG_STEP_PULSE_OFF)
            DARK();
        if (what & RIG_STEP_END)
            rig_player.n_ended++;
        if (what & RIG_STEP_LAST) {
            TIMSK1 &= (uint8_t)~_BV(OCIE1A);
            next_step = 0;
            return;
        }
    }
    next_step = what = rig_player_step(&rig_player, &next_level);
    if (what & (RIG_STEP_PULSE_ON | RIG_STEP_PULSE_OFF)) {
        OCR1B = match + RIG_TICKS_A_SAMPLE + HALF_SAMPLE_TICKS;
        TCCR1A = what & RIG_STEP_PULSE_ON ? PULSE_AT_MATCH_SETS : PULSE_AT_MATCH_CLEARS;
    }
}

uint32_t port_sample_tick(uint32_t tick)
{
    return (tick + RIG_TICKS_A_SAMPLE - 1u) & ~(uint32_t)(RIG_TICKS_A_SAMPLE - 1u);
}

void port_play(uint32_t first_tick)
{
    ATOMIC_BLOCK(ATOMIC_RESTORESTATE)
    {
        /* The first compare match, with room to set it up. Samples start at multiples of 64 ticks, matches between. */
        uint32_t match = port_sample_tick(tick_of(TCNT1) + 64u) + HALF_SAMPLE_TICKS;
        OCR1A = (uint16_t)(match - 1u); /* what a compare does shows one tick after the counts are equal */
        /* The step in that interrupt decides on the sample one and a half samples later. */
        rig_player.countdown = (first_tick - match - 3u * HALF_SAMPLE_TICKS) / RIG_TICKS_A_SAMPLE + 1u;
        next_level = RIG_MIDDLE;
        next_step = 0;
        TIFR1 = _BV(OCF1A);
        TIMSK1 |= _BV(OCIE1A);
    }
}

/* Takes the pulse's output low now, through the compare unit, which would keep it high until the next match. */
static inline void pulse_low(void)
{
    TCCR1A = PULSE_AT_MATCH_CLEARS;
    TCCR1C = _BV(FOC1B);
}

void port_stop(void)
{
    ATOMIC_BLOCK(ATOMIC_RESTORESTATE)
    {
        TIMSK1 &= (uint8_t)~_BV(OCIE1A);
        TONE_LEVEL = RIG_MIDDLE;
        pulse_low();
        DARK();
        next_level = RIG_MIDDLE;
        next_step = 0;
    }
}

/* --- start --------------------------------------------------------------------------------------------------------- */

/* The tone's output, its PWM running, rises to the middle within 32 ms rather than at once: no loud step from the filter
 * behind it. */
static void raise_tone(void)
{
    for (uint8_t level = 0; level < RIG_MIDDLE; level++) {
        TONE_LEVEL = level;
        _delay_loop_2(1000); /* 4000 cycles */
    }
    TONE_LEVEL = RIG_MIDDLE;
    _delay_loop_2(256);
}

/* Timer 1 at 0, its pulse low, ready to be started together with the PWM's timer. */
static inline void ready_timer1(void)
{
    pulse_low();
    TCNT1 = 0;
    TIFR1 = 0xFF;
    TIMSK1 = _BV(TOIE1);
}

/* --- checks -------------------------------------------------------------------------------------------------------- */

/* 64 periods of the PWM are 2048 ticks of timer 1; an interrupt at either end makes some ticks more or less. */
static uint8_t timers_agree(void)
{
    uint32_t first = 0;
    for (uint8_t period = 0; period <= 64; period++) {
        PWM_FLAGS = PWM_OVERFLOW;
        for (uint8_t patience = 255; !(PWM_FLAGS & PWM_OVERFLOW); patience--)
            if (!patience)
                return 0;
        if (!period)
            first = port_tick();
    }
    uint16_t ticks = (uint16_t)(port_tick() - first);
    return ticks >= 2048 - 16 && ticks <= 2048 + 16;
}

/* The pulse, wired to the capture input, must be captured at the very tick at which the compare unit made it. */
static uint8_t capture_is_good(void)
{
    uint16_t edge;
    ATOMIC_BLOCK(ATOMIC_RESTORESTATE)
    {
        TIFR1 = _BV(ICF1);
        edge = (uint16_t)(TCNT1 + 100u);
        OCR1B = (uint16_t)(edge - 1u);
        TCCR1A = PULSE_AT_MATCH_SETS;
    }
    uint32_t until = port_tick() + 300u;
    while (!(TIFR1 & _BV(ICF1)) && (int32_t)(port_tick() - until) < 0)
        ;
    uint8_t is_good;
    ATOMIC_BLOCK(ATOMIC_RESTORESTATE)
    {
        is_good = (TIFR1 & _BV(ICF1)) && (uint16_t)(ICR1 - edge) <= 1u;
        pulse_low();
    }
    return is_good;
}

uint8_t port_self_test(void)
{
    uint8_t failed = (memory_is_good() ? 0 : 1) | (timers_agree() ? 0 : 2);
    if (CAPTURE_IS_HIGH())
        return failed; /* the pull-up wins: nothing is wired to it */
    return failed | 0x80 | (capture_is_good() ? 0 : 2);
}

#endif
