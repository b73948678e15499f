/* The way into the bootloader that boards with an ATmega32U4 are sold with. For usb.c alone. */
#ifndef RIG_AVR_TOUCH_H
#define RIG_AVR_TOUCH_H

#include <stdint.h>
#include <string.h>

#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/wdt.h>

#include "port.h"

/* Opening the port at this rate and closing it asks for the bootloader. It looks for the key at the first address, newer
 * ones at the second, when the watchdog has bitten. */
#define TOUCH_BAUD 1200u
#define BOOT_KEY 0x7777
#define BOOT_KEY_AT ((volatile uint16_t *)0x0800)
#define NEW_BOOT_KEY_AT ((volatile uint16_t *)(RAMEND - 1))

/* Whether a line coding (PSTN 1.2, table 17) asks for it: its rate comes first. */
static inline uint8_t is_touch(const uint8_t *coding)
{
    uint32_t baud;
    memcpy(&baud, coding, sizeof baud);
    return baud == TOUCH_BAUD;
}

static void __attribute__((noreturn)) enter_bootloader(void)
{
    port_stop();
    cli();
    *BOOT_KEY_AT = BOOT_KEY;
    *NEW_BOOT_KEY_AT = BOOT_KEY;
    wdt_enable(WDTO_120MS); /* the host hears the acknowledgement before */
    wdt_reset();
    for (;;)
        ;
}

#endif
