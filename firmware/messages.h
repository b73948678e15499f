/* Generated from rig/acquire/wire.py. Do not edit. */
#ifndef RIG_MESSAGES_H
#define RIG_MESSAGES_H

#include <stdint.h>
#include <string.h>

#define RIG_PROTOCOL_LEVEL 1u
#define RIG_TABLE_HASH 0x6AD804B7ul
#define RIG_BAUD_RATE 500000ul
#define RIG_MAX_FRAME_BYTES 64u
#define RIG_MAX_BODY_BYTES 59u
#define RIG_MAX_SPACINGS 12u
#define RIG_TEXT_BYTES 12u

enum rig_message_id {
    RIG_ID_IDENTIFY = 1,
    RIG_ID_IDENTITY = 129,
    RIG_ID_PING = 2,
    RIG_ID_PONG = 130,
    RIG_ID_LOAD = 3,
    RIG_ID_LOADED = 131,
    RIG_ID_ARM = 4,
    RIG_ID_ARMED = 132,
    RIG_ID_FIRE = 5,
    RIG_ID_FIRING = 133,
    RIG_ID_SAFE = 6,
    RIG_ID_SAFED = 134,
    RIG_ID_STATUS = 7,
    RIG_ID_STATE = 135,
    RIG_ID_RECALL = 8,
    RIG_ID_RECALLED = 136,
    RIG_ID_SELF_TEST = 9,
    RIG_ID_SELF_TESTED = 137,
    RIG_ID_FIRE_AT = 10,
    RIG_ID_FIRING_AT = 138,
    RIG_ID_FIRED = 64,
    RIG_ID_ERROR = 255,
};

enum rig_error_code {
    RIG_ERROR_UNKNOWN_MESSAGE = 1,
    RIG_ERROR_BAD_LENGTH = 2,
    RIG_ERROR_BAD_VALUE = 3,
    RIG_ERROR_NOT_ARMED = 4,
    RIG_ERROR_BUSY = 5,
    RIG_ERROR_PLAN_INCOMPLETE = 6,
    RIG_ERROR_PLAN_TOO_LONG = 7,
    RIG_ERROR_SPACING_TOO_SHORT = 8,
    RIG_ERROR_TOO_SOON = 9,
};

enum rig_kind_number {
    RIG_KIND_CHIRP = 0,
    RIG_KIND_CHIRP_NB = 1,
    RIG_KIND_CLICK = 2,
    RIG_KIND_MLS = 3,
};

enum rig_state_number {
    RIG_STATE_IDLE = 0,
    RIG_STATE_ARMED = 1,
    RIG_STATE_FIRING = 2,
    RIG_STATE_DONE = 3,
};

/* Little-endian, byte by byte: no alignment and no byte order of the machine comes into it. */
static inline uint64_t rig_get(const uint8_t *from, uint8_t n_bytes)
{
    uint64_t value = 0;
    while (n_bytes--)
        value = (value << 8) | from[n_bytes];
    return value;
}

static inline void rig_put(uint8_t *to, uint8_t n_bytes, uint64_t value)
{
    for (; n_bytes--; value >>= 8)
        *to++ = (uint8_t)value;
}

/* command identify: who is there; answered in every state, and the same at every level */
static inline uint8_t rig_identify_put(uint8_t *body, uint8_t seq)
{
    body[0] = RIG_ID_IDENTIFY;
    body[1] = seq;
    return 2;
}

/* reply identity: what the board is; later levels keep the first two fields as they are */
struct rig_identity {
    uint8_t protocol_level; /* level of this protocol */
    uint32_t table_hash; /* hash of the message table the board was built with */
    uint32_t tick_hz; /* nominal rate of the timer that all ticks count */
    uint16_t tone_hz; /* nominal rate of the tone's samples */
    uint16_t byte_ns; /* time that a byte takes on the wire; 0: no fixed line speed (native USB) */
    uint16_t max_count; /* most stimuli in one plan */
    uint64_t uid; /* persistent number of this very board */
    char board[RIG_TEXT_BYTES]; /* kind of board; padded with 0 */
    char build[RIG_TEXT_BYTES]; /* firmware build; padded with 0 */
};
#define RIG_IDENTITY_FIXED_BYTES 49u
static inline uint8_t rig_identity_put(uint8_t *body, uint8_t seq, const struct rig_identity *m)
{
    body[0] = RIG_ID_IDENTITY;
    body[1] = seq;
    rig_put(body + 2, 1, m->protocol_level);
    rig_put(body + 3, 4, m->table_hash);
    rig_put(body + 7, 4, m->tick_hz);
    rig_put(body + 11, 2, m->tone_hz);
    rig_put(body + 13, 2, m->byte_ns);
    rig_put(body + 15, 2, m->max_count);
    rig_put(body + 17, 8, m->uid);
    memcpy(body + 25, m->board, RIG_TEXT_BYTES);
    memcpy(body + 37, m->build, RIG_TEXT_BYTES);
    return (uint8_t)(49);
}
/* 1, or 0 when the body has another length; n_bytes counts id and sequence too. */
static inline uint8_t rig_identity_get(const uint8_t *body, uint8_t n_bytes, struct rig_identity *m)
{
    if (n_bytes != 49)
        return 0;
    m->protocol_level = (uint8_t)rig_get(body + 2, 1);
    m->table_hash = (uint32_t)rig_get(body + 3, 4);
    m->tick_hz = (uint32_t)rig_get(body + 7, 4);
    m->tone_hz = (uint16_t)rig_get(body + 11, 2);
    m->byte_ns = (uint16_t)rig_get(body + 13, 2);
    m->max_count = (uint16_t)rig_get(body + 15, 2);
    m->uid = (uint64_t)rig_get(body + 17, 8);
    memcpy(m->board, body + 25, RIG_TEXT_BYTES);
    memcpy(m->build, body + 37, RIG_TEXT_BYTES);
    return 1;
}

/* command ping: the clock exchange; the board holds the reply for a random 0 to 2 ms */
static inline uint8_t rig_ping_put(uint8_t *body, uint8_t seq)
{
    body[0] = RIG_ID_PING;
    body[1] = seq;
    return 2;
}

/* reply pong: the board's two stamps of the exchange */
struct rig_pong {
    uint32_t received_tick; /* when the last byte of the ping had arrived */
    uint32_t sent_tick; /* when the first byte of this frame goes out */
};
#define RIG_PONG_FIXED_BYTES 10u
static inline uint8_t rig_pong_put(uint8_t *body, uint8_t seq, const struct rig_pong *m)
{
    body[0] = RIG_ID_PONG;
    body[1] = seq;
    rig_put(body + 2, 4, m->received_tick);
    rig_put(body + 6, 4, m->sent_tick);
    return (uint8_t)(10);
}
/* 1, or 0 when the body has another length; n_bytes counts id and sequence too. */
static inline uint8_t rig_pong_get(const uint8_t *body, uint8_t n_bytes, struct rig_pong *m)
{
    if (n_bytes != 10)
        return 0;
    m->received_tick = (uint32_t)rig_get(body + 2, 4);
    m->sent_tick = (uint32_t)rig_get(body + 6, 4);
    return 1;
}

/* command load: part of the spacing list; first_index 0 starts a new list, no holes, may be repeated */
struct rig_load {
    uint16_t first_index; /* position of the first spacing given, from 0 */
    uint8_t n_spacing_ticks;
    uint32_t spacing_ticks[RIG_MAX_SPACINGS]; /* from the start of one tone to the start of the next */
};
#define RIG_LOAD_FIXED_BYTES 4u
static inline uint8_t rig_load_put(uint8_t *body, uint8_t seq, const struct rig_load *m)
{
    body[0] = RIG_ID_LOAD;
    body[1] = seq;
    rig_put(body + 2, 2, m->first_index);
    for (uint8_t i = 0; i < m->n_spacing_ticks; i++)
        rig_put(body + 4 + 4 * i, 4, m->spacing_ticks[i]);
    return (uint8_t)(4 + 4 * m->n_spacing_ticks);
}
/* 1, or 0 when the body has another length; n_bytes counts id and sequence too. */
static inline uint8_t rig_load_get(const uint8_t *body, uint8_t n_bytes, struct rig_load *m)
{
    if (n_bytes < 4 || (n_bytes - 4) % 4 != 0 || (n_bytes - 4) / 4 > (int)RIG_MAX_SPACINGS)
        return 0;
    m->first_index = (uint16_t)rig_get(body + 2, 2);
    m->n_spacing_ticks = (uint8_t)((n_bytes - 4) / 4);
    for (uint8_t i = 0; i < m->n_spacing_ticks; i++)
        m->spacing_ticks[i] = (uint32_t)rig_get(body + 4 + 4 * i, 4);
    return 1;
}

/* reply loaded: the same part as the board holds it, rounded to its sample period */
struct rig_loaded {
    uint16_t first_index; /* as in the command */
    uint8_t n_spacing_ticks;
    uint32_t spacing_ticks[RIG_MAX_SPACINGS]; /* what will really be done */
};
#define RIG_LOADED_FIXED_BYTES 4u
static inline uint8_t rig_loaded_put(uint8_t *body, uint8_t seq, const struct rig_loaded *m)
{
    body[0] = RIG_ID_LOADED;
    body[1] = seq;
    rig_put(body + 2, 2, m->first_index);
    for (uint8_t i = 0; i < m->n_spacing_ticks; i++)
        rig_put(body + 4 + 4 * i, 4, m->spacing_ticks[i]);
    return (uint8_t)(4 + 4 * m->n_spacing_ticks);
}
/* 1, or 0 when the body has another length; n_bytes counts id and sequence too. */
static inline uint8_t rig_loaded_get(const uint8_t *body, uint8_t n_bytes, struct rig_loaded *m)
{
    if (n_bytes < 4 || (n_bytes - 4) % 4 != 0 || (n_bytes - 4) / 4 > (int)RIG_MAX_SPACINGS)
        return 0;
    m->first_index = (uint16_t)rig_get(body + 2, 2);
    m->n_spacing_ticks = (uint8_t)((n_bytes - 4) / 4);
    for (uint8_t i = 0; i < m->n_spacing_ticks; i++)
        m->spacing_ticks[i] = (uint32_t)rig_get(body + 4 + 4 * i, 4);
    return 1;
}

/* command arm: prepares the plan; may be repeated */
struct rig_arm {
    uint8_t kind; /* number of the stimulus kind */
    uint16_t amplitude_256ths; /* amplitude, 1 to 256; 256 is full scale */
    uint16_t count; /* how many stimuli; needs count - 1 spacings loaded before */
    uint16_t pulse_us; /* width of the pulse that starts with each tone; 0: none */
};
#define RIG_ARM_FIXED_BYTES 9u
static inline uint8_t rig_arm_put(uint8_t *body, uint8_t seq, const struct rig_arm *m)
{
    body[0] = RIG_ID_ARM;
    body[1] = seq;
    rig_put(body + 2, 1, m->kind);
    rig_put(body + 3, 2, m->amplitude_256ths);
    rig_put(body + 5, 2, m->count);
    rig_put(body + 7, 2, m->pulse_us);
    return (uint8_t)(9);
}
/* 1, or 0 when the body has another length; n_bytes counts id and sequence too. */
static inline uint8_t rig_arm_get(const uint8_t *body, uint8_t n_bytes, struct rig_arm *m)
{
    if (n_bytes != 9)
        return 0;
    m->kind = (uint8_t)rig_get(body + 2, 1);
    m->amplitude_256ths = (uint16_t)rig_get(body + 3, 2);
    m->count = (uint16_t)rig_get(body + 5, 2);
    m->pulse_us = (uint16_t)rig_get(body + 7, 2);
    return 1;
}

/* reply armed: what will really be done */
struct rig_armed {
    uint8_t kind; /* number of the stimulus kind */
    uint16_t amplitude_256ths; /* amplitude, 1 to 256; 256 is full scale */
    uint16_t count; /* how many stimuli; needs count - 1 spacings loaded before */
    uint16_t pulse_us; /* width of the pulse that starts with each tone; 0: none */
    uint16_t tone_samples; /* length of one tone */
};
#define RIG_ARMED_FIXED_BYTES 11u
static inline uint8_t rig_armed_put(uint8_t *body, uint8_t seq, const struct rig_armed *m)
{
    body[0] = RIG_ID_ARMED;
    body[1] = seq;
    rig_put(body + 2, 1, m->kind);
    rig_put(body + 3, 2, m->amplitude_256ths);
    rig_put(body + 5, 2, m->count);
    rig_put(body + 7, 2, m->pulse_us);
    rig_put(body + 9, 2, m->tone_samples);
    return (uint8_t)(11);
}
/* 1, or 0 when the body has another length; n_bytes counts id and sequence too. */
static inline uint8_t rig_armed_get(const uint8_t *body, uint8_t n_bytes, struct rig_armed *m)
{
    if (n_bytes != 11)
        return 0;
    m->kind = (uint8_t)rig_get(body + 2, 1);
    m->amplitude_256ths = (uint16_t)rig_get(body + 3, 2);
    m->count = (uint16_t)rig_get(body + 5, 2);
    m->pulse_us = (uint16_t)rig_get(body + 7, 2);
    m->tone_samples = (uint16_t)rig_get(body + 9, 2);
    return 1;
}

/* command fire: starts the armed plan; repeated with the same sequence it only answers again */
static inline uint8_t rig_fire_put(uint8_t *body, uint8_t seq)
{
    body[0] = RIG_ID_FIRE;
    body[1] = seq;
    return 2;
}

/* reply firing: the plan runs */
struct rig_firing {
    uint32_t first_tick; /* when the first tone will start */
};
#define RIG_FIRING_FIXED_BYTES 6u
static inline uint8_t rig_firing_put(uint8_t *body, uint8_t seq, const struct rig_firing *m)
{
    body[0] = RIG_ID_FIRING;
    body[1] = seq;
    rig_put(body + 2, 4, m->first_tick);
    return (uint8_t)(6);
}
/* 1, or 0 when the body has another length; n_bytes counts id and sequence too. */
static inline uint8_t rig_firing_get(const uint8_t *body, uint8_t n_bytes, struct rig_firing *m)
{
    if (n_bytes != 6)
        return 0;
    m->first_tick = (uint32_t)rig_get(body + 2, 4);
    return 1;
}

/* command safe: silence and an empty plan at once, in every state; may be repeated */
static inline uint8_t rig_safe_put(uint8_t *body, uint8_t seq)
{
    body[0] = RIG_ID_SAFE;
    body[1] = seq;
    return 2;
}

/* reply safed: everything is off */
struct rig_safed {
    uint16_t n_fired; /* tones of the plan that were started */
    uint8_t was_firing; /* 1: a plan was running */
};
#define RIG_SAFED_FIXED_BYTES 5u
static inline uint8_t rig_safed_put(uint8_t *body, uint8_t seq, const struct rig_safed *m)
{
    body[0] = RIG_ID_SAFED;
    body[1] = seq;
    rig_put(body + 2, 2, m->n_fired);
    rig_put(body + 4, 1, m->was_firing);
    return (uint8_t)(5);
}
/* 1, or 0 when the body has another length; n_bytes counts id and sequence too. */
static inline uint8_t rig_safed_get(const uint8_t *body, uint8_t n_bytes, struct rig_safed *m)
{
    if (n_bytes != 5)
        return 0;
    m->n_fired = (uint16_t)rig_get(body + 2, 2);
    m->was_firing = (uint8_t)rig_get(body + 4, 1);
    return 1;
}

/* command status: how the board is */
static inline uint8_t rig_status_put(uint8_t *body, uint8_t seq)
{
    body[0] = RIG_ID_STATUS;
    body[1] = seq;
    return 2;
}

/* reply state: how the board is */
struct rig_state {
    uint8_t state; /* number of the state */
    uint16_t count; /* stimuli in the plan */
    uint16_t n_fired; /* tones of the plan that were started */
    uint16_t bad_frames; /* frames dropped for a wrong CRC or length, since reset, modulo 65536 */
    uint32_t tick; /* the timer when this was made */
};
#define RIG_STATE_FIXED_BYTES 13u
static inline uint8_t rig_state_put(uint8_t *body, uint8_t seq, const struct rig_state *m)
{
    body[0] = RIG_ID_STATE;
    body[1] = seq;
    rig_put(body + 2, 1, m->state);
    rig_put(body + 3, 2, m->count);
    rig_put(body + 5, 2, m->n_fired);
    rig_put(body + 7, 2, m->bad_frames);
    rig_put(body + 9, 4, m->tick);
    return (uint8_t)(13);
}
/* 1, or 0 when the body has another length; n_bytes counts id and sequence too. */
static inline uint8_t rig_state_get(const uint8_t *body, uint8_t n_bytes, struct rig_state *m)
{
    if (n_bytes != 13)
        return 0;
    m->state = (uint8_t)rig_get(body + 2, 1);
    m->count = (uint16_t)rig_get(body + 3, 2);
    m->n_fired = (uint16_t)rig_get(body + 5, 2);
    m->bad_frames = (uint16_t)rig_get(body + 7, 2);
    m->tick = (uint32_t)rig_get(body + 9, 4);
    return 1;
}

/* command recall: asks again for a firing whose event was lost */
struct rig_recall {
    uint16_t index; /* from 0 */
};
#define RIG_RECALL_FIXED_BYTES 4u
static inline uint8_t rig_recall_put(uint8_t *body, uint8_t seq, const struct rig_recall *m)
{
    body[0] = RIG_ID_RECALL;
    body[1] = seq;
    rig_put(body + 2, 2, m->index);
    return (uint8_t)(4);
}
/* 1, or 0 when the body has another length; n_bytes counts id and sequence too. */
static inline uint8_t rig_recall_get(const uint8_t *body, uint8_t n_bytes, struct rig_recall *m)
{
    if (n_bytes != 4)
        return 0;
    m->index = (uint16_t)rig_get(body + 2, 2);
    return 1;
}

/* reply recalled: as in the event; played_samples 0: not fired, or not over yet */
struct rig_recalled {
    uint16_t index; /* which stimulus of the plan, from 0 */
    uint32_t tick; /* tick of the tone's first sample */
    uint16_t played_samples; /* samples really played: fewer than armed when cut off by safe */
    uint8_t done; /* 1: nothing of the plan is left to play */
};
#define RIG_RECALLED_FIXED_BYTES 11u
static inline uint8_t rig_recalled_put(uint8_t *body, uint8_t seq, const struct rig_recalled *m)
{
    body[0] = RIG_ID_RECALLED;
    body[1] = seq;
    rig_put(body + 2, 2, m->index);
    rig_put(body + 4, 4, m->tick);
    rig_put(body + 8, 2, m->played_samples);
    rig_put(body + 10, 1, m->done);
    return (uint8_t)(11);
}
/* 1, or 0 when the body has another length; n_bytes counts id and sequence too. */
static inline uint8_t rig_recalled_get(const uint8_t *body, uint8_t n_bytes, struct rig_recalled *m)
{
    if (n_bytes != 11)
        return 0;
    m->index = (uint16_t)rig_get(body + 2, 2);
    m->tick = (uint32_t)rig_get(body + 4, 4);
    m->played_samples = (uint16_t)rig_get(body + 8, 2);
    m->done = (uint8_t)rig_get(body + 10, 1);
    return 1;
}

/* command self_test: makes one tone in memory */
struct rig_self_test {
    uint8_t kind; /* number of the kind */
};
#define RIG_SELF_TEST_FIXED_BYTES 3u
static inline uint8_t rig_self_test_put(uint8_t *body, uint8_t seq, const struct rig_self_test *m)
{
    body[0] = RIG_ID_SELF_TEST;
    body[1] = seq;
    rig_put(body + 2, 1, m->kind);
    return (uint8_t)(3);
}
/* 1, or 0 when the body has another length; n_bytes counts id and sequence too. */
static inline uint8_t rig_self_test_get(const uint8_t *body, uint8_t n_bytes, struct rig_self_test *m)
{
    if (n_bytes != 3)
        return 0;
    m->kind = (uint8_t)rig_get(body + 2, 1);
    return 1;
}

/* reply self_tested: proof that board and host mean the same tone */
struct rig_self_tested {
    uint8_t kind; /* as in the command */
    uint16_t tone_samples; /* length of the tone */
    uint16_t tone_crc; /* CRC of its samples at full amplitude, one byte each */
    uint8_t failed_bits; /* bit 0: memory, bit 1: timer; 0: all well */
};
#define RIG_SELF_TESTED_FIXED_BYTES 8u
static inline uint8_t rig_self_tested_put(uint8_t *body, uint8_t seq, const struct rig_self_tested *m)
{
    body[0] = RIG_ID_SELF_TESTED;
    body[1] = seq;
    rig_put(body + 2, 1, m->kind);
    rig_put(body + 3, 2, m->tone_samples);
    rig_put(body + 5, 2, m->tone_crc);
    rig_put(body + 7, 1, m->failed_bits);
    return (uint8_t)(8);
}
/* 1, or 0 when the body has another length; n_bytes counts id and sequence too. */
static inline uint8_t rig_self_tested_get(const uint8_t *body, uint8_t n_bytes, struct rig_self_tested *m)
{
    if (n_bytes != 8)
        return 0;
    m->kind = (uint8_t)rig_get(body + 2, 1);
    m->tone_samples = (uint16_t)rig_get(body + 3, 2);
    m->tone_crc = (uint16_t)rig_get(body + 5, 2);
    m->failed_bits = (uint8_t)rig_get(body + 7, 1);
    return 1;
}

/* command fire_at: as fire, and the first tone starts with the first sample at or after a tick, 20 ms ahead at least */
struct rig_fire_at {
    uint32_t first_tick; /* the tick */
};
#define RIG_FIRE_AT_FIXED_BYTES 6u
static inline uint8_t rig_fire_at_put(uint8_t *body, uint8_t seq, const struct rig_fire_at *m)
{
    body[0] = RIG_ID_FIRE_AT;
    body[1] = seq;
    rig_put(body + 2, 4, m->first_tick);
    return (uint8_t)(6);
}
/* 1, or 0 when the body has another length; n_bytes counts id and sequence too. */
static inline uint8_t rig_fire_at_get(const uint8_t *body, uint8_t n_bytes, struct rig_fire_at *m)
{
    if (n_bytes != 6)
        return 0;
    m->first_tick = (uint32_t)rig_get(body + 2, 4);
    return 1;
}

/* reply firing_at: the plan waits for its tick */
struct rig_firing_at {
    uint32_t first_tick; /* when the first tone will start */
};
#define RIG_FIRING_AT_FIXED_BYTES 6u
static inline uint8_t rig_firing_at_put(uint8_t *body, uint8_t seq, const struct rig_firing_at *m)
{
    body[0] = RIG_ID_FIRING_AT;
    body[1] = seq;
    rig_put(body + 2, 4, m->first_tick);
    return (uint8_t)(6);
}
/* 1, or 0 when the body has another length; n_bytes counts id and sequence too. */
static inline uint8_t rig_firing_at_get(const uint8_t *body, uint8_t n_bytes, struct rig_firing_at *m)
{
    if (n_bytes != 6)
        return 0;
    m->first_tick = (uint32_t)rig_get(body + 2, 4);
    return 1;
}

/* event fired: a tone has ended; the sequence counts the events of one plan from 0; sent once */
struct rig_fired {
    uint16_t index; /* which stimulus of the plan, from 0 */
    uint32_t tick; /* tick of the tone's first sample */
    uint16_t played_samples; /* samples really played: fewer than armed when cut off by safe */
    uint8_t done; /* 1: nothing of the plan is left to play */
};
#define RIG_FIRED_FIXED_BYTES 11u
static inline uint8_t rig_fired_put(uint8_t *body, uint8_t seq, const struct rig_fired *m)
{
    body[0] = RIG_ID_FIRED;
    body[1] = seq;
    rig_put(body + 2, 2, m->index);
    rig_put(body + 4, 4, m->tick);
    rig_put(body + 8, 2, m->played_samples);
    rig_put(body + 10, 1, m->done);
    return (uint8_t)(11);
}
/* 1, or 0 when the body has another length; n_bytes counts id and sequence too. */
static inline uint8_t rig_fired_get(const uint8_t *body, uint8_t n_bytes, struct rig_fired *m)
{
    if (n_bytes != 11)
        return 0;
    m->index = (uint16_t)rig_get(body + 2, 2);
    m->tick = (uint32_t)rig_get(body + 4, 4);
    m->played_samples = (uint16_t)rig_get(body + 8, 2);
    m->done = (uint8_t)rig_get(body + 10, 1);
    return 1;
}

/* reply error: the command was not carried out */
struct rig_error {
    uint8_t command; /* id of the command */
    uint8_t code; /* error code */
    uint32_t detail; /* see the code */
};
#define RIG_ERROR_FIXED_BYTES 8u
static inline uint8_t rig_error_put(uint8_t *body, uint8_t seq, const struct rig_error *m)
{
    body[0] = RIG_ID_ERROR;
    body[1] = seq;
    rig_put(body + 2, 1, m->command);
    rig_put(body + 3, 1, m->code);
    rig_put(body + 4, 4, m->detail);
    return (uint8_t)(8);
}
/* 1, or 0 when the body has another length; n_bytes counts id and sequence too. */
static inline uint8_t rig_error_get(const uint8_t *body, uint8_t n_bytes, struct rig_error *m)
{
    if (n_bytes != 8)
        return 0;
    m->command = (uint8_t)rig_get(body + 2, 1);
    m->code = (uint8_t)rig_get(body + 3, 1);
    m->detail = (uint32_t)rig_get(body + 4, 4);
    return 1;
}

#endif
