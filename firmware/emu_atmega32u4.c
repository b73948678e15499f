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
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <simavr/avr_eeprom.h>
#include <simavr/avr_ioport.h>
#include <simavr/avr_timer.h>
#include <simavr/sim_avr.h>
#include <simavr/sim_hex.h>
#include <simavr/sim_io.h>

#include "emu_usb.h"

#define REG_TCCR1A 0x80
#define REG_TCCR1B 0x81
#define REG_TCCR1C 0x82
#define COM1B(tccr1a) (((tccr1a) >> 4) & 3)
#define FOC1B 0x40
#define TIMER1_COMPB_VECTOR 18
#define BOOT_KEY_AT 0x0800
#define BOOT_KEY 0x7777

avr_t *emu_avr;
static avr_t *avr;
static avr_timer_t *timer0, *timer1;
static int is_looped, saw_tx, pulse_pin = -1;
static struct { avr_flashaddr_t at; uint8_t old[2]; int is_on; } hang;

void emu_happened(const char *what, uint64_t cycle, const char *more, ...)
{
    va_list rest;
    printf("%s %llu", what, (unsigned long long)cycle);
    va_start(rest, more);
    vprintf(more, rest);
    va_end(rest);
    putchar('\n');
}

void emu_got(uint64_t cycle, uint8_t byte)
{
    saw_tx = 1;
    emu_happened("tx", cycle, " %02x", byte);
}

/* --- pins ---------------------------------------------------------------------------------------------------------- */

static void set_capture_input(int is_new)
{
    avr_irq_t *pin = avr_io_getirq(avr, AVR_IOCTL_IOPORT_GETIRQ('D'), 4);
    uint32_t level = is_looped ? pulse_pin == 1 : 1; /* not wired: its pull-up */
    if (is_new) /* after a reset the port has forgotten the level, and a pin hears of changes only */
        avr_raise_irq(pin, !level);
    avr_raise_irq(pin, level);
}

static void set_pulse(int level, avr_cycle_count_t cycle)
{
    if (level == pulse_pin)
        return;
    if (pulse_pin >= 0)
        emu_happened("pulse", cycle, " %d", level);
    pulse_pin = level;
    if (is_looped)
        set_capture_input(0);
}

static void on_compare_b(avr_irq_t *irq, uint32_t value, void *param)
{
    (void)irq, (void)param;
    int mode = COM1B(avr->data[REG_TCCR1A]);
    if (!value || mode < 2)
        return;
    /* The match was at a cycle of its own, the library tells of it after the instruction that was running. */
    uint64_t since = timer1->comp[1].comp_cycles;
    set_pulse(mode == 3, timer1->tov_base + (since == timer1->tov_cycles ? 0 : since));
}

static void on_tccr1c(avr_irq_t *irq, uint32_t value, void *param)
{
    (void)irq, (void)param;
    int mode = COM1B(avr->data[REG_TCCR1A]);
    if ((value & FOC1B) && mode >= 2)
        set_pulse(mode == 3, avr->cycle);
}

/* The level is taken over when the next period of the PWM starts. */
static void on_level(avr_irq_t *irq, uint32_t value, void *param)
{
    (void)irq, (void)param;
    uint64_t phase = (avr->cycle - timer0->tov_base) % 256;
    emu_happened("pwm", avr->cycle + 256 - phase, " %u %llu", value, (unsigned long long)avr->cycle);
}

static void on_tccr1b(avr_irq_t *irq, uint32_t value, void *param)
{
    (void)irq, (void)param;
    if ((value & 7) == 2)
        emu_happened("ticks", timer1->tov_base, "");
}

static void on_led(avr_irq_t *irq, uint32_t value, void *param)
{
    (void)param;
    if (irq->value != value)
        emu_happened("led", avr->cycle, " %u", value);
}

/* --- running ------------------------------------------------------------------------------------------------------- */

static avr_cycle_count_t nothing(avr_t *a, avr_cycle_count_t when, void *param)
{
    (void)a, (void)when, (void)param;
    return 0; /* only there so that a sleeping core wakes up for the deadline */
}

static void sleep_not(avr_t *a, avr_cycle_count_t cycles)
{
    (void)a, (void)cycles;
}

static uint16_t word_at(uint16_t address)
{
    return (uint16_t)(avr->data[address] | avr->data[address + 1] << 8);
}

static void after_reset(void)
{
    emu_happened("reset", avr->cycle, "");
    set_pulse(0, avr->cycle);
    if (hang.is_on)
        memcpy(avr->flash + hang.at, hang.old, 2);
    hang.is_on = 0;
    emu_usb_reset();
    emu_host_start();
    set_capture_input(1);
}

static void run(uint64_t until, int stop_at_tx)
{
    saw_tx = 0;
    if (until > avr->cycle)
        avr_cycle_timer_register(avr, until - avr->cycle, nothing, NULL);
    while (avr->cycle < until && !(stop_at_tx && saw_tx)) {
        int is_bitten = avr->run != avr_callback_run_raw; /* by the watchdog: the next step resets */
        if (is_bitten && word_at(BOOT_KEY_AT) == BOOT_KEY && word_at((uint16_t)(avr->ramend - 1)) == BOOT_KEY)
            emu_happened("bootkey", avr->cycle, "");
        int state = avr_run(avr);
        emu_usb_interrupts();
        if (is_bitten) {
            after_reset();
            if (until > avr->cycle)
                avr_cycle_timer_register(avr, until - avr->cycle, nothing, NULL);
        }
        if (state == cpu_Done || state == cpu_Crashed) {
            emu_happened("crash", avr->cycle, " %04x", avr->pc);
            exit(1);
        }
    }
}

static void hang_here(void)
{
    if (hang.is_on)
        return;
    hang.at = avr->pc;
    hang.is_on = 1;
    memcpy(hang.old, avr->flash + hang.at, 2);
    memcpy(avr->flash + hang.at, "\xff\xcf", 2); /* rjmp to itself */
}

static avr_timer_t *find_timer(char name)
{
    for (avr_io_t *io = avr->io_port; io; io = io->next)
        if (!strcmp(io->kind, "timer") && ((avr_timer_t *)io)->name == name)
            return (avr_timer_t *)io;
    fprintf(stderr, "emu: the part has no timer %c\n", name);
    exit(1);
}

static void quiet(avr_t *a, const int level, const char *format, va_list rest)
{
    (void)a;
    if (level == LOG_ERROR)
        vfprintf(stderr, format, rest);
}

static void set_uid(const char *hex)
{
    uint8_t stored[10];
    uint64_t uid = strtoull(hex, NULL, 16);
    uint16_t crc = 0xFFFF;
    for (int i = 0; i < 8; i++) {
        stored[i] = (uint8_t)(uid >> (8 * i));
        crc ^= (uint16_t)(stored[i] << 8);
        for (int bit = 0; bit < 8; bit++)
            crc = (uint16_t)(crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1);
    }
    stored[8] = (uint8_t)crc;
    stored[9] = (uint8_t)(crc >> 8);
    avr_eeprom_desc_t where = {.ee = stored, .offset = 0, .size = sizeof stored};
    avr_ioctl(avr, AVR_IOCTL_EEPROM_SET, &where);
}

static void load(const char *path)
{
    uint32_t size = 0, start = 0;
    avr_global_logger_set(quiet);
    avr = emu_avr = avr_make_mcu_by_name("atmega32u4");
    uint8_t *image = read_ihex_file(path, &size, &start);
    if (!avr || !image) {
        fprintf(stderr, "emu: %s cannot be loaded\n", path);
        exit(1);
    }
    avr_init(avr);
    avr->frequency = 16000000;
    avr->sleep = sleep_not;
    avr_loadcode(avr, image, size, start);
    avr->codeend = start + size;
    free(image);
    timer0 = find_timer('0');
    timer1 = find_timer('1');
    avr_irq_register_notify(avr_get_interrupt_irq(avr, TIMER1_COMPB_VECTOR), on_compare_b, NULL);
    avr_irq_register_notify(avr_iomem_getirq(avr, REG_TCCR1C, "tccr1c", AVR_IOMEM_IRQ_ALL), on_tccr1c, NULL);
    avr_irq_register_notify(avr_iomem_getirq(avr, REG_TCCR1B, "tccr1b", AVR_IOMEM_IRQ_ALL), on_tccr1b, NULL);
    avr_irq_register_notify(avr_io_getirq(avr, AVR_IOCTL_TIMER_GETIRQ('0'), TIMER_IRQ_OUT_PWM1), on_level, NULL);
    avr_irq_register_notify(avr_io_getirq(avr, AVR_IOCTL_IOPORT_GETIRQ('C'), 7), on_led, NULL);
    set_capture_input(0);
    emu_usb_init(avr);
    emu_host_start();
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
    } else if (sscanf(line, "poke %llx %x", &number, &value) == 2 && number <= avr->ramend) {
        avr->data[number] = (uint8_t)value;
    } else if (sscanf(line, "peek %llx", &number) == 1 && number <= avr->ramend) {
        emu_happened("peek", avr->cycle, " %u", avr->data[number]);
    } else if (sscanf(line, "loop %u", &value) == 1) {
        is_looped = value != 0;
        set_capture_input(0);
    } else if (!strncmp(line, "hang", 4)) {
        hang_here();
    } else if (!strncmp(line, "reset", 5)) {
        avr_reset(avr);
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
    char line[256];
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
    load(image);
    if (uid)
        set_uid(uid);
    while (fgets(line, sizeof line, stdin)) {
        if (!obey(line)) {
            fprintf(stderr, "emu: not understood: %s", line);
            return 2;
        }
        printf("at %llu\n", (unsigned long long)avr->cycle);
        fflush(stdout);
    }
    return 0;
}
