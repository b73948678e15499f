#include "frame.h"

/* Four bits at a time: a table of 32 bytes, and half the time of a bit-by-bit loop or better. */
static const uint16_t crc_of_nibble[16] = {0x0000, 0x1021, 0x2042, 0x3063, 0x4084, 0x50A5, 0x60C6, 0x70E7,
                                           0x8108, 0x9129, 0xA14A, 0xB16B, 0xC18C, 0xD1AD, 0xE1CE, 0xF1EF};

uint16_t rig_crc16(uint16_t crc, const uint8_t *data, uint16_t n_bytes)
{
    while (n_bytes--) {
        uint8_t byte = *data++;
        crc = (uint16_t)(crc << 4) ^ crc_of_nibble[(uint8_t)(crc >> 12) ^ (byte >> 4)];
        crc = (uint16_t)(crc << 4) ^ crc_of_nibble[(uint8_t)(crc >> 12) ^ (byte & 15)];
    }
    return crc;
}

uint8_t rig_unframe(uint8_t *stuffed, uint8_t n_bytes)
{
    uint8_t from = 0, to = 0;
    if (n_bytes > RIG_STUFFED_BYTES)
        return 0;
    while (from < n_bytes) {
        uint8_t code = stuffed[from++];
        if (!code || (uint8_t)(code - 1) > n_bytes - from)
            return 0;
        while (--code)
            stuffed[to++] = stuffed[from++];
        if (from < n_bytes)
            stuffed[to++] = 0;
    }
    if (to < 4)
        return 0;
    to -= 2;
    uint16_t crc = rig_crc16(0xFFFF, stuffed, to);
    return stuffed[to] == (uint8_t)crc && stuffed[to + 1] == (uint8_t)(crc >> 8) ? to : 0;
}

uint8_t rig_frame(uint8_t *out, const uint8_t *body, uint8_t n_bytes, uint16_t crc)
{
    uint8_t code_at = 1, to = 2;
    out[0] = 0;
    for (uint8_t i = 0; i < n_bytes + 2; i++) {
        uint8_t byte = i < n_bytes ? body[i] : i == n_bytes ? (uint8_t)crc : (uint8_t)(crc >> 8);
        if (byte) {
            out[to++] = byte;
        } else {
            out[code_at] = (uint8_t)(to - code_at);
            code_at = to++;
        }
    }
    out[code_at] = (uint8_t)(to - code_at);
    out[to++] = 0;
    return to;
}
