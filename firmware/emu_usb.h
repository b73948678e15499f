/* The emulated USB of an ATmega32U4: the device controller as the data sheet has it, and the host at the other end. */
#ifndef EMU_USB_H
#define EMU_USB_H

#include <stdint.h>

#include <simavr/sim_avr.h>

#include "emu_part.h"

/* --- the controller (emu_usb.c): what the host sees of it ----------------------------------------------------------- */

enum usb_answer { USB_SILENT = -1, USB_NAK = -2, USB_STALL = -3 };

void emu_usb_init(avr_t *avr);

/* After a reset of the part. */
void emu_usb_reset(void);

/* The plug: VBUS comes or goes. */
void emu_usb_plug(int is_in);

/* Whether the pull-up shows a full-speed device: attached, its pads on, its clock at 48 MHz. */
int emu_usb_is_attached(void);

/* The host resets the bus, begins a frame, or has been silent for 3 ms. */
void emu_usb_bus_reset(void);
void emu_usb_frame(void);
void emu_usb_suspend(void);

/* One transaction. `data_pid` is 0 or 1. 0 or the number of bytes when it was acknowledged, else an enum usb_answer. */
int emu_usb_setup(uint8_t address, const uint8_t *eight);
int emu_usb_out(uint8_t address, uint8_t endpoint, int data_pid, const uint8_t *data, unsigned n);
int emu_usb_in(uint8_t address, uint8_t endpoint, int *data_pid, uint8_t *data);

/* Lets interrupts that are due be seen. To be called after every instruction; costs nothing when none is. */
void emu_usb_interrupts(void);

/* --- the host (emu_host.c) ------------------------------------------------------------------------------------------ */

/* Starts the host's schedule anew: after a reset of the part, or the plug. */
void emu_host_start(void);

/* A program on the host opens the port at a rate, or closes it. */
void emu_host_open(uint32_t baud);
void emu_host_close(void);

/* How often the host asks for data, in cycles; 0: once a frame. */
void emu_host_poll_every(unsigned cycles);

/* A byte that a program on the host has written by a cycle. */
void emu_host_write(uint64_t cycle, uint8_t byte);

/* A control transfer beside the others: 8 bytes of set-up, and the data of one towards the board. Its end is told as
 * `control CYCLE ok HEX`, or `stall`. */
void emu_host_control(const uint8_t *eight, const uint8_t *data, unsigned n);

/* --- the board (emu_atmega32u4.c) ----------------------------------------------------------------------------------- */

/* A byte that the host has got, in a packet that began at a cycle. */
void emu_got(uint64_t cycle, uint8_t byte);

#endif
