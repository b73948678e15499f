/* The board with an ATmega32U4 in an emulator: the real image on libsimavr, its pins stamped in CPU cycles, a host at its
 * USB plug.
 *
 *   emu_atmega32u4 IMAGE.hex [--uid HEX] [--closed]    lock-step: commands on stdin, what happened on stdout
 *
 * Commands, one a line; each is answered by event lines and then by `at CYCLE`:
 *
 *   run CYCLE [tx]     run up to a cycle; with `tx` stop as soon as the host has got a byte
 *   rx CYCLE HH        a byte that a program on the host has written by a cycle; in order
 *   poke ADDRESS HH    writes a byte of data memory
 *   peek ADDRESS       reads one: `peek CYCLE VALUE`
 *   loop 0|1           the pulse is (not) wired to the capture input
 *   hang               the program hangs where it is; only the watchdog can help
 *   reset              the reset pin
 *   open BAUD, close   a program on the host opens or closes the port; without --closed it opens it when it appears
 *   plug 0|1           the USB plug
 *   poll CYCLES        how often the host asks for data; 0: once a frame
 *   control HEX [HEX]  a control transfer: its eight bytes, its data; soon answered by `control CYCLE ok|stall|timeout HEX`
 *
 * Events: those of emu.c, and open CYCLE · closed CYCLE · packet CYCLE N (the board has taken N bytes) · bootkey CYCLE (a watchdog reset that asks for the bootloader)
 * · refused CYCLE TYPE REQUEST HOW (a request of the host's own) · toggle, overflow, underflow, killed CYCLE (mistakes of
 * the program's with the USB controller)
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <simavr/avr_timer.h>

#include "emu_part.h"
#include "emu_usb.h"

#define BOOT_KEY_AT 0x0800
#define BOOT_KEY 0x7777

static const struct emu_part atmega32u4 = {
    .mcu = "atmega32u4",
    .pwm_timer = '0',
    .pwm_irq = TIMER_IRQ_OUT_PWM1,
    .capture_port = 'D',
    .capture_pin = 4,
    .led_port = 'C',
    .led_pin = 7,
    .compare_b_vector = 18,
};

static int saw_tx;

void emu_got(uint64_t cycle, uint8_t byte)
{
    saw_tx = 1;
    emu_happened("tx", cycle, " %02x", byte);
}

/* --- running ------------------------------------------------------------------------------------------------------- */

static uint16_t word_at(uint16_t address)
{
    return (uint16_t)(emu_avr->data[address] | emu_avr->data[address + 1] << 8);
}

static void after_reset(void)
{
    emu_was_reset();
    emu_usb_reset();
    emu_host_start();
}

static void run(uint64_t until, int stop_at_tx)
{
    saw_tx = 0;
    emu_wake_at(until);
    while (emu_avr->cycle < until && !(stop_at_tx && saw_tx)) {
        int is_bitten = emu_is_bitten();
        if (is_bitten && word_at(BOOT_KEY_AT) == BOOT_KEY && word_at((uint16_t)(emu_avr->ramend - 1)) == BOOT_KEY)
            emu_happened("bootkey", emu_avr->cycle, "");
        int state = avr_run(emu_avr);
        emu_usb_interrupts();
        if (is_bitten) {
            after_reset();
            emu_wake_at(until);
        }
        emu_check(state);
    }
}

/* --- lock-step ----------------------------------------------------------------------------------------------------- */

static unsigned bytes_of(const char *hex, uint8_t *to, unsigned most)
{
    unsigned n = 0, value;
    while (n < most && sscanf(hex + 2 * n, "%2x", &value) == 1)
        to[n++] = (uint8_t)value;
    return n;
}

static int obey(const char *line)
{
    unsigned long long number = 0;
    unsigned value = 0;
    char word[8] = "", setup[20] = "", data[132] = "";
    uint8_t eight[8] = {0}, bytes[64];
    if (sscanf(line, "run %llu %7s", &number, word) >= 1) {
        run(number, !strcmp(word, "tx"));
    } else if (sscanf(line, "rx %llu %x", &number, &value) == 2) {
        emu_host_write(number, (uint8_t)value);
    } else if (!strncmp(line, "reset", 5)) {
        avr_reset(emu_avr);
        after_reset();
    } else if (sscanf(line, "open %u", &value) == 1) {
        emu_host_open(value);
    } else if (!strncmp(line, "close", 5)) {
        emu_host_close();
    } else if (sscanf(line, "plug %u", &value) == 1) {
        emu_usb_plug(value != 0);
        emu_host_start();
    } else if (sscanf(line, "poll %u", &value) == 1) {
        emu_host_poll_every(value);
    } else if (sscanf(line, "control %19s %131s", setup, data) >= 1 && bytes_of(setup, eight, 8) == 8) {
        emu_host_control(eight, bytes, bytes_of(data, bytes, sizeof bytes));
    } else {
        return 0;
    }
    return 1;
}

int main(int argc, char **argv)
{
    const char *image = NULL, *uid = NULL;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--uid") && i + 1 < argc)
            uid = argv[++i];
        else if (!strcmp(argv[i], "--closed"))
            emu_host_close();
        else
            image = argv[i];
    }
    if (!image) {
        fprintf(stderr, "usage: emu_atmega32u4 IMAGE.hex [--uid HEX] [--closed]\n");
        return 2;
    }
    emu_load(&atmega32u4, image, uid);
    emu_usb_init(emu_avr);
    emu_host_start();
    return emu_lock_step(obey);
}
