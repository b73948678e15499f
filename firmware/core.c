#include "core.h"

#include "frame.h"
#include "port.h"
#include "tone.h"

#define FIRST_TONE_TICKS (RIG_TICK_HZ / 50u)         /* 20 ms: the answer to fire is out by then */
#define SHORTEST_PAUSE_TICKS (RIG_TICK_HZ / 500u)    /* 2 ms between two tones */
#define SHORTEST_HOLD_TICKS 600u                     /* 0.3 ms: a pong cannot be made sooner */
#define LONGEST_HOLD_TICKS (RIG_TICK_HZ / 500u)      /* 2 ms */
#define SAMPLE_US (RIG_TICKS_A_SAMPLE / 2u)
#define LONGEST_PULSE_US 20000u
#define BUILD_TICKS 400u /* 0.2 ms, in which a pong is made, interrupts and all */
#define POLL_TICKS 64    /* longer than from one poll to the next when there is nothing to do */
#define FILL_AT_ONCE 16u
#define ENOUGH_SAMPLES 48u /* in the ring: what the line asks for waits until there are as many */
#define SCARCE_SAMPLES 32u /* in the ring: with fewer, even listening to the line takes too much time */
#define BARRIER() __asm__ volatile("" ::: "memory") /* the sample is in the ring before the interrupt may see it */

static struct {
    /* Before the plan is fired, slot k + 1 holds spacing k; a tone that has started puts its tick over the slot of its
     * own index, which is not needed any more. */
    uint32_t slot[RIG_MAX_COUNT];
    uint8_t n_loaded;
    uint8_t is_armed;
    uint8_t is_fired;
    uint8_t fire_seq;
    struct rig_arm arm;
    uint16_t n_samples;
    uint32_t first_tick;
    uint8_t n_noted;    /* tones whose start was noted in their slot */
    uint8_t n_reported; /* tones whose end was reported */
    uint8_t fill_index; /* the tone whose samples go into the ring now */
    uint8_t is_made;    /* no samples are left to be made */
} plan;

static struct {
    uint8_t body[RIG_MAX_BODY_BYTES];
    uint8_t n_bytes; /* 0: no reply is owed */
    uint8_t is_held; /* a pong: it leaves at due_tick at the earliest and carries the tick at which it does */
    uint32_t due_tick;
} reply;

static struct {
    uint8_t is_due;
    struct rig_fired fired;
} cut;

static struct {
    uint64_t uid;
    const char *board;
    const char *build;
    uint16_t byte_ns;
    uint32_t random;
} self;

/* --- the plan ------------------------------------------------------------------------------------------------------ */

static void forget_firings(void)
{
    plan.is_fired = 0;
    plan.n_noted = 0;
    plan.n_reported = 0;
    rig_player.count = 0;
    rig_player.n_started = 0;
    rig_player.n_ended = 0;
    rig_player.starved = 0;
}

static uint8_t state(void)
{
    if (plan.is_fired)
        return rig_player.n_ended == rig_player.count ? RIG_STATE_DONE : RIG_STATE_FIRING;
    return plan.is_armed ? RIG_STATE_ARMED : RIG_STATE_IDLE;
}

/* Notes the ticks of the tones that have started, and says how far it is from the next one to the one after it. */
static void note_starts(void)
{
    while (plan.n_noted != rig_player.n_started) {
        plan.slot[plan.n_noted++] = rig_player.start_tick;
        uint8_t after_next = (uint8_t)(plan.n_noted + 1);
        rig_player.spacing = after_next < rig_player.count ? plan.slot[after_next] / RIG_TICKS_A_SAMPLE : RIG_NEVER;
    }
}

/* A tone counts from its first sample on; the player starts it some microseconds before. */
static uint8_t n_fired(uint32_t tick)
{
    note_starts();
    uint8_t n = plan.n_noted;
    return n && (int32_t)(tick - plan.slot[n - 1]) < 0 ? (uint8_t)(n - 1) : n;
}

uint8_t rig_core_is_playing(void)
{
    return plan.is_fired && !plan.is_made;
}

static uint8_t ring_is_below(uint8_t n_samples)
{
    return rig_core_is_playing() && (uint8_t)(rig_player.head - rig_player.tail) < n_samples;
}

/* The tone comes first: a line that never falls silent would take the time in which its samples are made. */
static uint8_t ring_is_low(void)
{
    return ring_is_below(ENOUGH_SAMPLES);
}

static void fill_ring(void)
{
    uint8_t budget = FILL_AT_ONCE;
    while (rig_core_is_playing() && budget-- && (uint8_t)(rig_player.head - rig_player.tail) < RIG_RING_SAMPLES) {
        rig_player.ring[rig_player.head & (RIG_RING_SAMPLES - 1u)] = rig_tone_next();
        BARRIER();
        rig_player.head++;
        if (rig_tone.index == plan.n_samples) {
            if (plan.fill_index + 1u >= plan.arm.count) {
                plan.is_made = 1;
                return;
            }
            plan.fill_index++;
            rig_tone_start(plan.arm.kind, plan.arm.amplitude_256ths);
        }
    }
}

static void report(uint8_t index, struct rig_fired *fired)
{
    fired->index = index;
    fired->tick = plan.slot[index];
    fired->played_samples = plan.n_samples;
    fired->done = index + 1u == plan.arm.count;
}

/* Stops the player. A tone that had begun and was not reported becomes the event `cut`. Gives the tones begun. */
static uint8_t stop(void)
{
    port_stop();
    uint32_t tick = port_tick();
    uint8_t n = n_fired(tick);
    if (plan.n_reported < n) {
        report((uint8_t)(n - 1), &cut.fired);
        uint32_t played = (tick - cut.fired.tick) / RIG_TICKS_A_SAMPLE;
        if (played < plan.n_samples)
            cut.fired.played_samples = (uint16_t)played;
        cut.fired.done = 1;
        cut.is_due = 1;
    }
    return n;
}

/* --- commands ------------------------------------------------------------------------------------------------------ */

static void refuse(const uint8_t *command, uint8_t code, uint32_t detail)
{
    struct rig_error error = {command[0], code, detail};
    reply.n_bytes = rig_error_put(reply.body, command[1], &error);
}

static uint8_t refuse_while_firing(const uint8_t *command)
{
    if (state() != RIG_STATE_FIRING)
        return 0;
    refuse(command, RIG_ERROR_BUSY, RIG_STATE_FIRING);
    return 1;
}

static void put_text(char *to, const char *text)
{
    for (uint8_t i = 0; i < RIG_TEXT_BYTES; i++)
        to[i] = *text ? *text++ : 0;
}

static void identify(const uint8_t *command)
{
    struct rig_identity m = {0};
    m.protocol_level = RIG_PROTOCOL_LEVEL;
    m.table_hash = RIG_TABLE_HASH;
    m.tick_hz = RIG_TICK_HZ;
    m.tone_hz = RIG_TICK_HZ / RIG_TICKS_A_SAMPLE;
    m.byte_ns = self.byte_ns;
    m.max_count = RIG_MAX_COUNT;
    m.uid = self.uid;
    put_text(m.board, self.board);
    put_text(m.build, self.build);
    reply.n_bytes = rig_identity_put(reply.body, command[1], &m);
}

/* xorshift of 32 bits (Marsaglia 2003), stirred with the tick of each ping: holds that no two exchanges share. */
static uint16_t draw(uint32_t tick)
{
    uint32_t x = self.random ^ tick;
    if (!x)
        x = 1;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    self.random = x;
    return (uint16_t)(x >> 16);
}

static void ping(const uint8_t *command, uint32_t tick)
{
    struct rig_pong m = {tick, 0};
    reply.n_bytes = rig_pong_put(reply.body, command[1], &m);
    reply.is_held = 1;
    uint32_t range = LONGEST_HOLD_TICKS - SHORTEST_HOLD_TICKS + 1u;
    reply.due_tick = tick + SHORTEST_HOLD_TICKS + ((draw(tick) * range) >> 16);
}

static void load(const uint8_t *command, uint8_t n_bytes)
{
    struct rig_load m;
    if (!rig_load_get(command, n_bytes, &m)) {
        refuse(command, RIG_ERROR_BAD_LENGTH, n_bytes - 2u);
        return;
    }
    if (refuse_while_firing(command))
        return;
    if (m.first_index > plan.n_loaded) {
        refuse(command, RIG_ERROR_BAD_VALUE, 0);
        return;
    }
    if (m.first_index + m.n_spacing_ticks > (uint16_t)(RIG_MAX_COUNT - 1u)) {
        refuse(command, RIG_ERROR_PLAN_TOO_LONG, RIG_MAX_COUNT);
        return;
    }
    uint8_t is_good = m.n_spacing_ticks != 0;
    for (uint8_t i = 0; i < m.n_spacing_ticks; i++)
        is_good &= (uint8_t)(m.spacing_ticks[i] >> 31) ^ 1u;
    if (!is_good) {
        refuse(command, RIG_ERROR_BAD_VALUE, 1);
        return;
    }
    forget_firings();
    plan.is_armed = 0;
    struct rig_loaded done;
    done.first_index = m.first_index;
    done.n_spacing_ticks = m.n_spacing_ticks;
    for (uint8_t i = 0; i < m.n_spacing_ticks; i++) {
        uint32_t samples = (m.spacing_ticks[i] + RIG_TICKS_A_SAMPLE / 2u) / RIG_TICKS_A_SAMPLE;
        done.spacing_ticks[i] = (samples ? samples : 1u) * RIG_TICKS_A_SAMPLE;
        plan.slot[m.first_index + i + 1u] = done.spacing_ticks[i];
    }
    plan.n_loaded = (uint8_t)(m.first_index + m.n_spacing_ticks);
    reply.n_bytes = rig_loaded_put(reply.body, command[1], &done);
}

static void arm(const uint8_t *command, uint8_t n_bytes)
{
    struct rig_arm m;
    if (!rig_arm_get(command, n_bytes, &m)) {
        refuse(command, RIG_ERROR_BAD_LENGTH, n_bytes - 2u);
        return;
    }
    if (refuse_while_firing(command))
        return;
    uint16_t n_samples = rig_tone_samples(m.kind);
    uint8_t wrong = !n_samples ? 0 : m.amplitude_256ths < 1 || m.amplitude_256ths > 256 ? 1 : 0xFF;
    if (wrong == 0xFF && m.count > RIG_MAX_COUNT) {
        refuse(command, RIG_ERROR_PLAN_TOO_LONG, RIG_MAX_COUNT);
        return;
    }
    if (wrong == 0xFF)
        wrong = m.count < 1 ? 2 : m.pulse_us > LONGEST_PULSE_US ? 3 : 0xFF;
    if (wrong != 0xFF) {
        refuse(command, RIG_ERROR_BAD_VALUE, wrong);
        return;
    }
    if (m.count - 1 > plan.n_loaded) {
        refuse(command, RIG_ERROR_PLAN_INCOMPLETE, plan.n_loaded);
        return;
    }
    uint32_t shortest = n_samples * (uint32_t)RIG_TICKS_A_SAMPLE + SHORTEST_PAUSE_TICKS;
    for (uint8_t i = 0; i + 1u < m.count; i++) {
        if (plan.slot[i + 1u] < shortest) {
            refuse(command, RIG_ERROR_SPACING_TOO_SHORT, i);
            return;
        }
    }
    uint16_t pulse_samples = (uint16_t)((m.pulse_us + SAMPLE_US - 1u) / SAMPLE_US);
    if (pulse_samples > n_samples)
        pulse_samples = n_samples;
    m.pulse_us = (uint16_t)(pulse_samples * SAMPLE_US);
    forget_firings();
    plan.is_armed = 1;
    plan.arm = m;
    plan.n_samples = n_samples;
    struct rig_armed done = {m.kind, m.amplitude_256ths, m.count, m.pulse_us, n_samples};
    reply.n_bytes = rig_armed_put(reply.body, command[1], &done);
}

static void start(uint32_t tick)
{
    forget_firings();
    rig_player.head = 0;
    rig_player.tail = 0;
    rig_player.sounding = 0;
    rig_player.samples_left = 0;
    rig_player.pulse_left = 0;
    rig_player.n_samples = plan.n_samples;
    rig_player.pulse_samples = plan.arm.pulse_us / SAMPLE_US;
    rig_player.count = (uint8_t)plan.arm.count;
    rig_player.tones_left = rig_player.count;
    rig_player.spacing = plan.arm.count > 1 ? plan.slot[1] / RIG_TICKS_A_SAMPLE : RIG_NEVER;
    plan.is_fired = 1;
    plan.n_loaded = 0; /* the stamps of the firings take its place */
    plan.fill_index = 0;
    plan.is_made = 0;
    rig_tone_start(plan.arm.kind, plan.arm.amplitude_256ths);
    plan.first_tick = port_sample_tick(tick);
    port_play(plan.first_tick);
}

/* `fire`, and with a tick to fire at `fire_at`. */
static void fire(const uint8_t *command, const struct rig_fire_at *at)
{
    if (!plan.is_fired || command[1] != plan.fire_seq) {
        if (refuse_while_firing(command))
            return;
        if (!plan.is_armed || plan.is_fired) {
            refuse(command, RIG_ERROR_NOT_ARMED, state());
            return;
        }
        uint32_t now = port_tick(), soonest = now + FIRST_TONE_TICKS;
        if (at && (int32_t)(at->first_tick - soonest) < 0) {
            refuse(command, RIG_ERROR_TOO_SOON, now);
            return;
        }
        plan.fire_seq = command[1];
        start(at ? at->first_tick : soonest);
    }
    struct rig_firing m = {plan.first_tick};
    reply.n_bytes = rig_firing_put(reply.body, command[1], &m);
    reply.body[0] = command[0] | 0x80; /* the two replies are alike */
}

static void fire_at(const uint8_t *command, uint8_t n_bytes)
{
    struct rig_fire_at m;
    if (rig_fire_at_get(command, n_bytes, &m))
        fire(command, &m);
    else
        refuse(command, RIG_ERROR_BAD_LENGTH, n_bytes - 2u);
}

static void safe(const uint8_t *command)
{
    struct rig_safed m = {0, state() == RIG_STATE_FIRING};
    m.n_fired = stop();
    plan.n_loaded = 0;
    plan.is_armed = 0;
    forget_firings();
    reply.n_bytes = rig_safed_put(reply.body, command[1], &m);
}

static void status(const uint8_t *command, uint16_t n_bad_frames)
{
    uint32_t tick = port_tick();
    uint16_t count = plan.is_armed ? plan.arm.count : 0;
    struct rig_state m = {state(), count, n_fired(tick), n_bad_frames, tick};
    reply.n_bytes = rig_state_put(reply.body, command[1], &m);
}

static void recall(const uint8_t *command, uint8_t n_bytes)
{
    struct rig_recall m;
    if (!rig_recall_get(command, n_bytes, &m)) {
        refuse(command, RIG_ERROR_BAD_LENGTH, n_bytes - 2u);
        return;
    }
    if (!plan.is_fired || m.index >= plan.arm.count) {
        refuse(command, RIG_ERROR_BAD_VALUE, 0);
        return;
    }
    struct rig_fired fired = {m.index, 0, 0, 0};
    note_starts();
    if (m.index < rig_player.n_ended)
        report((uint8_t)m.index, &fired);
    struct rig_recalled done = {fired.index, fired.tick, fired.played_samples, fired.done};
    reply.n_bytes = rig_recalled_put(reply.body, command[1], &done);
}

static void self_test(const uint8_t *command, uint8_t n_bytes)
{
    struct rig_self_test m;
    if (!rig_self_test_get(command, n_bytes, &m)) {
        refuse(command, RIG_ERROR_BAD_LENGTH, n_bytes - 2u);
        return;
    }
    if (refuse_while_firing(command))
        return;
    uint16_t n_samples = rig_tone_samples(m.kind);
    if (!n_samples) {
        refuse(command, RIG_ERROR_BAD_VALUE, 0);
        return;
    }
    uint16_t crc = 0xFFFF;
    rig_tone_start(m.kind, 256);
    for (uint16_t i = 0; i < n_samples; i++) {
        uint8_t sample = (uint8_t)rig_tone_next();
        crc = rig_crc16(crc, &sample, 1);
    }
    struct rig_self_tested done = {m.kind, n_samples, crc, port_self_test()};
    reply.n_bytes = rig_self_tested_put(reply.body, command[1], &done);
}

void rig_core_take(const uint8_t *body, uint8_t n_bytes, uint32_t tick, uint16_t n_bad_frames)
{
    uint8_t has_fields = 0;
    reply.is_held = 0;
    switch (body[0]) {
    case RIG_ID_LOAD:
        load(body, n_bytes);
        return;
    case RIG_ID_ARM:
        arm(body, n_bytes);
        return;
    case RIG_ID_RECALL:
        recall(body, n_bytes);
        return;
    case RIG_ID_FIRE_AT:
        fire_at(body, n_bytes);
        return;
    case RIG_ID_SELF_TEST:
        self_test(body, n_bytes);
        return;
    case RIG_ID_IDENTIFY:
    case RIG_ID_PING:
    case RIG_ID_FIRE:
    case RIG_ID_SAFE:
    case RIG_ID_STATUS:
        has_fields = n_bytes != 2;
        break;
    default:
        refuse(body, RIG_ERROR_UNKNOWN_MESSAGE, body[0]);
        return;
    }
    if (has_fields)
        refuse(body, RIG_ERROR_BAD_LENGTH, n_bytes - 2u);
    else if (body[0] == RIG_ID_IDENTIFY)
        identify(body);
    else if (body[0] == RIG_ID_PING)
        ping(body, tick);
    else if (body[0] == RIG_ID_FIRE)
        fire(body, 0);
    else if (body[0] == RIG_ID_SAFE)
        safe(body);
    else
        status(body, n_bad_frames);
}

/* --- what goes out ------------------------------------------------------------------------------------------------- */

static void send(uint8_t *buffer, const uint8_t *body, uint8_t n_bytes)
{
    uint16_t crc = rig_crc16(0xFFFF, body, n_bytes);
    fill_ring(); /* a long frame takes its time */
    port_send(rig_frame(buffer, body, n_bytes, crc));
}

/* The stamp is chosen, the frame made with it, and then sent at that very tick. When an interrupt lets the tick pass,
 * the next poll tries again with a later one. */
static void send_pong(uint8_t *buffer)
{
    uint32_t tick = port_tick() + BUILD_TICKS;
    int32_t ahead = (int32_t)(reply.due_tick - tick);
    if (ahead > POLL_TICKS)
        return;
    if (ahead > 0)
        tick = reply.due_tick;
    uint8_t *body = reply.body;
    for (uint8_t i = 0; i < 4; i++)
        body[6 + i] = (uint8_t)(tick >> (8 * i));
    if (port_send_at(tick, rig_frame(buffer, body, reply.n_bytes, rig_crc16(0xFFFF, body, reply.n_bytes))))
        reply.n_bytes = 0;
}

static uint8_t event_is_due(void)
{
    return cut.is_due || (plan.is_fired && plan.n_reported < rig_player.n_ended);
}

static void send_what_is_due(void)
{
    uint8_t *buffer = port_frame_buffer();
    if (!buffer)
        return;
    if (event_is_due()) {
        struct rig_fired fired = cut.fired;
        if (!cut.is_due)
            report(plan.n_reported++, &fired);
        cut.is_due = 0;
        uint8_t body[RIG_FIRED_FIXED_BYTES];
        send(buffer, body, rig_fired_put(body, (uint8_t)fired.index, &fired));
    } else if (reply.n_bytes && reply.is_held) {
        send_pong(buffer);
    } else if (reply.n_bytes) {
        send(buffer, reply.body, reply.n_bytes);
        reply.n_bytes = 0;
    }
}

void rig_core_start(uint64_t uid, const char *board, const char *build, uint16_t byte_ns)
{
    memset(&plan, 0, sizeof plan);
    memset(&reply, 0, sizeof reply);
    memset(&cut, 0, sizeof cut);
    self.uid = uid;
    self.board = board;
    self.build = build;
    self.byte_ns = byte_ns;
    self.random = (uint32_t)uid ^ (uint32_t)(uid >> 32);
    forget_firings();
}

uint8_t rig_core_is_free(void)
{
    return !reply.n_bytes && !event_is_due() && !ring_is_low();
}

void rig_core_poll(void)
{
    if (plan.is_fired) {
        note_starts();
        fill_ring();
        if (rig_player.starved) { /* what cannot be played in time is not played at all */
            stop();
            plan.n_loaded = 0;
            plan.is_armed = 0;
            forget_firings();
        }
    }
    if (!ring_is_low())
        send_what_is_due();
}

uint8_t rig_core_is_pressed(void)
{
    return ring_is_below(SCARCE_SAMPLES) || (rig_core_is_playing() && reply.n_bytes && !reply.is_held);
}

uint8_t rig_core_is_idle(void)
{
    if (!rig_core_is_free())
        return 0;
    return !rig_core_is_playing() || (uint8_t)(rig_player.head - rig_player.tail) == RIG_RING_SAMPLES;
}
