/* Frames on the line: 0x00, COBS(body, CRC), 0x00. No hardware in here. docs/protocol.md describes the format. */
#ifndef RIG_FRAME_H
#define RIG_FRAME_H

#include <stdint.h>

#include "messages.h"

#define RIG_STUFFED_BYTES (RIG_MAX_FRAME_BYTES - 2u) /* what may stand between two delimiters */

/* CRC-16/IBM-3740, continued: start with 0xFFFF. */
uint16_t rig_crc16(uint16_t crc, const uint8_t *data, uint16_t n_bytes);

/* The body of what stood between two delimiters, unstuffed in place; 0 when it is not a whole frame. */
uint8_t rig_unframe(uint8_t *stuffed, uint8_t n_bytes);

/* Puts the bytes on the wire for a body into `out`, which holds RIG_MAX_FRAME_BYTES; gives how many there are. The CRC
 * of the body is an argument, so that most of it can be computed before the last bytes are known. */
uint8_t rig_frame(uint8_t *out, const uint8_t *body, uint8_t n_bytes, uint16_t crc);

/* What comes in. One stretch fills while the one before it waits; it is all that the receive interrupt touches. */
struct rig_receiver {
    uint8_t bytes[2][RIG_STUFFED_BYTES];
    uint8_t n_filling;        /* more than RIG_STUFFED_BYTES: too long, or spoilt */
    uint8_t filling;          /* which of the two */
    volatile uint8_t n_ready; /* of the other one; 0: nothing waits */
    uint16_t n_bad;           /* stretches dropped: too long, spoilt, or one too many */
    uint32_t ready_tick;      /* when the closing delimiter of the waiting one had arrived */
};

/* Takes one byte. Gives 1 when it has completed a stretch: then set ready_tick. */
static inline uint8_t rig_receive(struct rig_receiver *r, uint8_t byte)
{
    uint8_t n = r->n_filling;
    if (byte) {
        if (n < RIG_STUFFED_BYTES)
            r->bytes[r->filling][n] = byte;
        if (n <= RIG_STUFFED_BYTES)
            r->n_filling = (uint8_t)(n + 1);
        return 0;
    }
    r->n_filling = 0;
    if (!n)
        return 0;
    if (n > RIG_STUFFED_BYTES || r->n_ready) {
        r->n_bad++;
        return 0;
    }
    r->n_ready = n;
    r->filling ^= 1;
    return 1;
}

/* The byte that just came was damaged on the line: what it belongs to is no frame. */
static inline void rig_receive_spoilt(struct rig_receiver *r)
{
    r->n_filling = (uint8_t)(RIG_STUFFED_BYTES + 1);
}

#endif
