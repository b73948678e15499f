/* What the core asks of a board. main_<board>.c has it, and so has the native test bench. */
#ifndef RIG_PORT_H
#define RIG_PORT_H

#include <stdint.h>

#include "player.h"

#define RIG_TICK_HZ 2000000ul
#define RIG_TICKS_A_SAMPLE 64u

extern struct rig_player rig_player;

/* The timer, extended to 32 bits. */
uint32_t port_tick(void);

/* A buffer for the next frame, RIG_MAX_FRAME_BYTES long, or 0 while the last one is still being sent. */
uint8_t *port_frame_buffer(void);

/* Sends that buffer. */
void port_send(uint8_t n_bytes);

/* Sends that buffer so that its first byte goes out at `tick`, which is near, on a quiet line. Gives 0, and sends
 * nothing, when that cannot be: the line is not quiet, or an interrupt has let the tick pass. */
uint8_t port_send_at(uint32_t tick, uint8_t n_bytes);

/* Starts the player so that the first tone sounds at `first_tick`: at least 1000 ticks ahead, on the sample grid. */
void port_play(uint32_t first_tick);

/* The first tick at or after `tick` at which a sample can start. */
uint32_t port_sample_tick(uint32_t tick);

/* Silence, pulse and LED off, at once and in every state. Afterwards the player does not step. */
void port_stop(void);

/* Bit 0: memory, bit 1: timer, bit 7: the pulse is wired to the capture input and was timed there. Only when idle. */
uint8_t port_self_test(void);

/* Tells the watchdog that all is well. */
void port_alive(void);

#endif
