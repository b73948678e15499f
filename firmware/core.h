/* The board's side of the protocol: commands in, replies and events out. No hardware in here. */
#ifndef RIG_CORE_H
#define RIG_CORE_H

#include <stdint.h>

#define RIG_MAX_COUNT 128u /* stimuli in a plan: 4 bytes of memory each */

/* Forgets everything. `uid` is the persistent number of this board, `board` and `build` its texts (up to 12). */
void rig_core_start(uint64_t uid, const char *board, const char *build, uint16_t byte_ns);

/* Carries out a frame. `body` holds n_bytes >= 2; it came whole at `tick`. Only while rig_core_is_free(). */
void rig_core_take(const uint8_t *body, uint8_t n_bytes, uint32_t tick, uint16_t n_bad_frames);

/* Whether the last command has been answered, so that the next may be taken. */
uint8_t rig_core_is_free(void);

/* Keeps the ring filled, sends what is due. To be called all the time. */
void rig_core_poll(void);

/* Whether samples of a plan are still to be made. */
uint8_t rig_core_is_playing(void);

/* Whether a tone will run dry unless its samples are made now. Where the line costs time for each byte, it must wait. */
uint8_t rig_core_is_pressed(void);

/* Whether there is nothing to do before the next interrupt. */
uint8_t rig_core_is_idle(void);

#endif
