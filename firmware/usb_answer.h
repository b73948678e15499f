/* An answer of the control endpoint, byte by byte: it is made as it goes. For usb.c alone. */
#ifndef RIG_USB_ANSWER_H
#define RIG_USB_ANSWER_H

#include <stdint.h>

#include <avr/pgmspace.h>

#include "usb_descriptors.h"

static struct {
    enum { FROM_FLASH, FROM_RAM, TEXT_FROM_FLASH, SERIAL_NUMBER } source;
    const uint8_t *from;
    uint8_t at, n_bytes;
    uint8_t is_short; /* it is shorter than asked for: a packet that is not full ends it */
} reply;

static uint8_t next_byte(void)
{
    const uint8_t *from = reply.from;
    uint8_t at = reply.at++;
    switch (reply.source) {
    case FROM_FLASH:
        return pgm_read_byte(from + at);
    case FROM_RAM:
        return from[at];
    default:
        break;
    }
    /* A text: its length, its type, and then two bytes a character. */
    if (at < 2)
        return at ? STRING : reply.source == SERIAL_NUMBER ? 34 : (uint8_t)(2 + 2 * strlen_P((const char *)from));
    if (at & 1)
        return 0;
    uint8_t k = (uint8_t)(at / 2 - 1);
    if (reply.source == TEXT_FROM_FLASH)
        return pgm_read_byte(from + k);
    uint8_t digit = (from[7 - k / 2] >> (k & 1 ? 0 : 4)) & 15;
    return (uint8_t)(digit + (digit < 10 ? '0' : 'a' - 10));
}

#endif
