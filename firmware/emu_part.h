/* What the emulators of all parts share: the image, the pins, and the commands that every one obeys. */
#ifndef EMU_PART_H
#define EMU_PART_H

#include <stddef.h>
#include <stdint.h>

#include <simavr/sim_avr.h>

#define CPU_HZ 16000000ull

/* A part as the firmware for it uses it. */
struct emu_part {
    const char *mcu;
    char pwm_timer; /* makes the tone */
    int pwm_irq;
    char capture_port, led_port;
    int capture_pin, led_pin;
    int compare_b_vector; /* of timer 1, which makes the pulse */
};

extern avr_t *emu_avr;

/* Where event lines go, each with its newline. */
extern void (*emu_tell)(const char *line, size_t length);

/* Prints an event: `WHAT CYCLE` and what `more` says. */
void emu_happened(const char *what, uint64_t cycle, const char *more, ...);

/* Makes the part with an image, and with a number of its own unless `uid` is NULL. Ends the program where it cannot. */
void emu_load(const struct emu_part *part, const char *path, const char *uid);

/* Tells of a reset that has just been, and puts back what does not survive one. */
void emu_was_reset(void);

/* Whether the watchdog has bitten: the next step resets. */
int emu_is_bitten(void);

/* Lets a sleeping core wake up for a cycle. */
void emu_wake_at(uint64_t cycle);

/* Ends the program when a step left the core in no state to go on. */
void emu_check(int state);

/* `poke`, `peek`, `loop` and `hang`. Gives 0 for another command. */
int emu_obey(const char *line);

/* Takes commands from stdin; `obey` knows those that emu_obey does not. Gives the program's exit code. */
int emu_lock_step(int (*obey)(const char *line));

#endif
