/* The firmware without its hardware, for the machine that runs the tests: built with sanitizers, fed with anything.
 *
 *   native tone KIND STEPS      the samples of a tone, one byte each, on stdout
 *   native line                 bytes of the serial line on stdin; what the board sends on stdout, and on stderr how many
 *                               plans were started
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"
#include "frame.h"
#include "port.h"
#include "tone.h"

#define BYTE_TICKS 40u

struct rig_player rig_player;
static struct rig_receiver receiver;
static uint8_t frame[RIG_MAX_FRAME_BYTES], level, next_step, is_playing;
static uint32_t now, next_match, n_plans;

uint32_t port_tick(void) { return now; }
uint8_t *port_frame_buffer(void) { return frame; }
void port_send(uint8_t n_bytes) { fwrite(frame, 1, n_bytes, stdout); }
uint8_t port_self_test(void) { return 0; }
uint32_t port_sample_tick(uint32_t tick) { return (tick + 63u) & ~63u; }

uint8_t port_send_at(uint32_t tick, uint8_t n_bytes)
{
    (void)tick;
    port_send(n_bytes);
    return 1;
}

void port_play(uint32_t first_tick)
{
    n_plans++;
    is_playing = 1;
    next_step = 0;
    next_match = port_sample_tick(now + 64u) + 32u;
    rig_player.countdown = (first_tick - next_match - 96u) / 64u + 1u;
}

void port_stop(void) { is_playing = 0; }

/* What the sample interrupt of a board does. */
static void sample_interrupt(void)
{
    if (next_step & RIG_STEP_START) {
        rig_player.start_tick = next_match + 32u;
        rig_player.n_started++;
    }
    if (next_step & RIG_STEP_END)
        rig_player.n_ended++;
    if (next_step & RIG_STEP_LAST) {
        is_playing = 0;
        return;
    }
    next_step = rig_player_step(&rig_player, &level);
    next_match += 64u;
}

static void pass(uint32_t n_ticks)
{
    for (uint32_t end = now + n_ticks; now != end; now += BYTE_TICKS) {
        while (is_playing && (int32_t)(now - next_match) >= 0)
            sample_interrupt();
        for (int i = 0; i < 4; i++) {
            rig_core_poll();
            uint8_t n = receiver.n_ready;
            if (!n || !rig_core_is_free())
                continue;
            uint8_t *bytes = receiver.bytes[receiver.filling ^ 1];
            uint8_t n_body = rig_unframe(bytes, n);
            receiver.n_bad += !n_body;
            if (n_body)
                rig_core_take(bytes, n_body, receiver.ready_tick, receiver.n_bad);
            receiver.n_ready = 0;
        }
        rig_core_is_idle();
    }
}

static int tone(uint8_t kind, uint16_t steps)
{
    rig_tone_start(kind, steps);
    for (uint16_t i = 0; i < rig_tone_samples(kind); i++)
        putchar((uint8_t)rig_tone_next());
    return rig_tone_next(); /* nothing after the last */
}

static int line(void)
{
    int byte;
    rig_core_start(0x123456789ABCDEFull, "native", "test", 20000);
    while ((byte = getchar()) != EOF) {
        if (rig_receive(&receiver, (uint8_t)byte))
            receiver.ready_tick = now;
        pass(BYTE_TICKS);
    }
    pass(200u * BYTE_TICKS);
    fprintf(stderr, "%u\n", n_plans);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 4 && !strcmp(argv[1], "tone"))
        return tone((uint8_t)atoi(argv[2]), (uint16_t)atoi(argv[3]));
    return argc == 2 && !strcmp(argv[1], "line") ? line() : 2;
}
