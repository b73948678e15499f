/* What any AVR board has beside its timers: a number of its own, memory that can be checked, a watchdog, sleep. For the
 * one main_<board>.c that includes it.
 */
#ifndef RIG_AVR_BOARD_H
#define RIG_AVR_BOARD_H

#include <avr/eeprom.h>
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/sleep.h>
#include <avr/wdt.h>

#include "avr_ticks.h"
#include "frame.h"
#include "port.h"

/* Right after the static data. The stack grows towards it: as long as it is whole, memory is enough. */
#define CANARY_BYTES 8u
#define CANARY 0xC5
extern uint8_t _end[];

static inline void set_canary(void)
{
    for (uint8_t i = 0; i < CANARY_BYTES; i++)
        _end[i] = CANARY;
}

/* While nothing plays: the ring is overwritten. */
static uint8_t memory_is_good(void)
{
    for (uint8_t pattern = 0x55, round = 0; round < 2; round++, pattern = 0xAA) {
        volatile int8_t *ring = rig_player.ring;
        for (uint8_t i = 0; i < RIG_RING_SAMPLES; i++)
            ring[i] = (int8_t)(pattern ^ i);
        for (uint8_t i = 0; i < RIG_RING_SAMPLES; i++)
            if (ring[i] != (int8_t)(pattern ^ i))
                return 0;
    }
    for (uint8_t i = 0; i < CANARY_BYTES; i++)
        if (_end[i] != CANARY)
            return 0;
    return 1;
}

/* The part has no serial number. It makes one once: an EEPROM write is timed by an oscillator of its own, which is off
 * by up to 10 % and jitters against the crystal, and timer 1 (not started otherwise yet) measures it to a cycle. */
struct stored_id {
    uint64_t uid;
    uint16_t crc;
};
static struct stored_id stored_id EEMEM;

static uint64_t make_uid(void)
{
    uint64_t uid = 0xCBF29CE484222325ull; /* FNV-1a of the durations */
    TCCR1B = _BV(CS10);
    for (uint8_t i = 0; i < 32; i++) {
        wdt_reset();
        eeprom_write_byte((uint8_t *)&stored_id, i);
        TCNT1 = 0;
        eeprom_busy_wait();
        uint16_t took = TCNT1;
        uid = (uid ^ (took & 0xFF)) * 0x100000001B3ull;
        uid = (uid ^ (took >> 8)) * 0x100000001B3ull;
    }
    TCCR1B = 0;
    TIFR1 = _BV(TOV1);
    return uid;
}

static uint64_t read_uid(void)
{
    uint64_t uid;
    eeprom_read_block(&uid, &stored_id.uid, sizeof uid);
    uint16_t crc = rig_crc16(0xFFFF, (const uint8_t *)&uid, sizeof uid);
    if (uid && crc == eeprom_read_word(&stored_id.crc))
        return uid;
    uid = make_uid();
    crc = rig_crc16(0xFFFF, (const uint8_t *)&uid, sizeof uid);
    eeprom_update_block(&uid, &stored_id.uid, sizeof uid);
    eeprom_update_word(&stored_id.crc, crc);
    return uid;
}

/* Before anything else: a watchdog that has just bitten goes on with its shortest time until it is told otherwise. */
static void quiet_watchdog(void) __attribute__((naked, used, section(".init3")));
static void quiet_watchdog(void)
{
    MCUSR = 0;
    wdt_disable();
}

void port_alive(void)
{
    wdt_reset();
}

/* Until the next interrupt, unless one came since AWAKE was cleared. The check and the sleep are one: sei lets no
 * interrupt in before the sleep. */
static inline void sleep_unless_awake(void)
{
    cli();
    if (!AWAKE) {
        sleep_enable();
        sei();
        sleep_cpu();
        sleep_disable();
    }
    sei();
}

#endif
