/* The tick: timer 1, widened to 32 bits by two registers that have no other use, are 0 after a reset, take one cycle. */
#ifndef RIG_AVR_TICKS_H
#define RIG_AVR_TICKS_H

#include <stdint.h>

#include <avr/io.h>

/* Set by every interrupt, cleared before the main loop looks around: nothing is slept over. */
#define AWAKE GPIOR0

#define TICK_HIGH_LOW GPIOR1
#define TICK_HIGH_HIGH GPIOR2

/* The tick whose lower half was read from TCNT1 a moment ago; with interrupts off. An overflow that is not counted yet
 * is told by its flag, and by a low half that starts anew. */
static inline uint32_t tick_of(uint16_t low)
{
    uint16_t high = (uint16_t)(TICK_HIGH_LOW | (TICK_HIGH_HIGH << 8));
    if ((TIFR1 & _BV(TOV1)) && low < 0x8000)
        high++;
    return ((uint32_t)high << 16) | low;
}

#endif
