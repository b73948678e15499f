/* What the two ways to run the emulated board share. emu.c is the board, emu_paced.c the pace of the real clock. */
#ifndef EMU_H
#define EMU_H

#include <stdint.h>

#include "emu_part.h"

/* Told of every byte that the board sends, where set: its start bit begins at `start`, its stop bit ends at `end`. */
extern void (*emu_on_byte)(uint64_t start, uint64_t end, uint8_t byte);

uint64_t emu_cycle(void);

/* How long a byte takes on the line, in cycles. */
uint64_t emu_byte_cycles(void);

/* Runs until a cycle (one instruction further at most), or until a byte was sent when `stop_at_tx`. */
void emu_run(uint64_t until, int stop_at_tx);

/* Pulls the reset pin. */
void emu_reset(void);

/* A byte that has arrived whole at a cycle; in order. */
void emu_receive(uint64_t at, uint8_t byte);

/* How many bytes are on their way to the board, and when the last of them arrives. */
unsigned emu_receiving(uint64_t *last_at);

struct pace {
    int listener;  /* of the side channel: a Unix socket that listens already; -1: none */
    long long ppb; /* how much the board's clock is fast, in parts per thousand million */
    int no_reset;  /* opening the port does not reset the board, as on native USB */
};

int emu_paced(const struct pace *pace);

#endif
