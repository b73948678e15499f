/* The part in libsimavr, its pins stamped in CPU cycles.
 *
 * libsimavr 1.6 differs from the data sheets where it matters here. This file takes its compare events and registers
 * and does the rest itself: the buffer of the PWM's compare register, which the timer takes over at the start of a period;
 * the output of compare unit B with FOC1B.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <simavr/avr_eeprom.h>
#include <simavr/avr_ioport.h>
#include <simavr/avr_timer.h>
#include <simavr/sim_hex.h>
#include <simavr/sim_io.h>

#include "emu_part.h"

#define REG_TCCR1A 0x80
#define REG_TCCR1B 0x81
#define REG_TCCR1C 0x82
#define COM1B(tccr1a) (((tccr1a) >> 4) & 3)
#define FOC1B 0x40

avr_t *emu_avr;
static const struct emu_part *part;
static avr_timer_t *timer1, *pwm;
static int is_looped;
static int pulse_pin = -1;
static struct { avr_flashaddr_t at; uint8_t old[2]; int is_on; } hang;

static void to_stdout(const char *line, size_t length)
{
    fwrite(line, 1, length, stdout);
}

void (*emu_tell)(const char *line, size_t length) = to_stdout;
void emu_happened(const char *what, uint64_t cycle, const char *more, ...)
{
    char line[1024];
    va_list rest;
    int n = snprintf(line, sizeof line, "%s %llu", what, (unsigned long long)cycle);
    va_start(rest, more);
    n += vsnprintf(line + n, sizeof line - (size_t)n, more, rest);
    va_end(rest);
    line[n++] = '\n';
    emu_tell(line, (size_t)n);
}

/* --- pins ---------------------------------------------------------------------------------------------------------- */

static void set_capture_input(int is_new)
{
    avr_irq_t *pin = avr_io_getirq(emu_avr, AVR_IOCTL_IOPORT_GETIRQ(part->capture_port), part->capture_pin);
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
    int mode = COM1B(emu_avr->data[REG_TCCR1A]);
    if (!value || mode < 2)
        return;
    /* The match was at a cycle of its own, the library tells of it after the instruction that was running. */
    uint64_t since = timer1->comp[1].comp_cycles;
    set_pulse(mode == 3, timer1->tov_base + (since == timer1->tov_cycles ? 0 : since));
}

static void on_tccr1c(avr_irq_t *irq, uint32_t value, void *param)
{
    (void)irq, (void)param;
    int mode = COM1B(emu_avr->data[REG_TCCR1A]);
    if ((value & FOC1B) && mode >= 2)
        set_pulse(mode == 3, emu_avr->cycle);
}

static void on_level(avr_irq_t *irq, uint32_t value, void *param)
{
    (void)irq, (void)param;
    uint64_t phase = (emu_avr->cycle - pwm->tov_base) % 256;
    emu_happened("pwm", emu_avr->cycle + 256 - phase, " %u %llu", value, (unsigned long long)emu_avr->cycle);
}

/* Timer 1 starts to count ticks: 16 MHz / 8. */
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
        emu_happened("led", emu_avr->cycle, " %u", value);
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

void emu_wake_at(uint64_t cycle)
{
    if (cycle > emu_avr->cycle)
        avr_cycle_timer_register(emu_avr, cycle - emu_avr->cycle, nothing, NULL);
}

int emu_is_bitten(void)
{
    return emu_avr->run != avr_callback_run_raw;
}

void emu_was_reset(void)
{
    emu_happened("reset", emu_avr->cycle, "");
    set_pulse(0, emu_avr->cycle);
    if (hang.is_on)
        memcpy(emu_avr->flash + hang.at, hang.old, 2);
    hang.is_on = 0;
    set_capture_input(1);
}

void emu_check(int state)
{
    if (state == cpu_Done || state == cpu_Crashed) {
        emu_happened("crash", emu_avr->cycle, " %04x", emu_avr->pc);
        exit(1);
    }
}

static void hang_here(void)
{
    if (hang.is_on)
        return;
    hang.at = emu_avr->pc;
    hang.is_on = 1;
    memcpy(hang.old, emu_avr->flash + hang.at, 2);
    memcpy(emu_avr->flash + hang.at, "\xff\xcf", 2); /* rjmp to itself */
}

/* --- the part ------------------------------------------------------------------------------------------------------ */

static avr_timer_t *find_timer(char name)
{
    for (avr_io_t *io = emu_avr->io_port; io; io = io->next)
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

static uint16_t crc16(const uint8_t *data, size_t n)
{
    uint16_t crc = 0xFFFF;
    while (n--) {
        crc ^= (uint16_t)(*data++ << 8);
        for (int bit = 0; bit < 8; bit++)
            crc = (uint16_t)(crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1);
    }
    return crc;
}

static void set_uid(const char *hex)
{
    uint8_t stored[10];
    uint64_t uid = strtoull(hex, NULL, 16);
    for (int i = 0; i < 8; i++)
        stored[i] = (uint8_t)(uid >> (8 * i));
    uint16_t crc = crc16(stored, 8);
    stored[8] = (uint8_t)crc;
    stored[9] = (uint8_t)(crc >> 8);
    avr_eeprom_desc_t where = {.ee = stored, .offset = 0, .size = sizeof stored};
    avr_ioctl(emu_avr, AVR_IOCTL_EEPROM_SET, &where);
}

void emu_load(const struct emu_part *which, const char *path, const char *uid)
{
    uint32_t size = 0, start = 0;
    part = which;
    avr_global_logger_set(quiet);
    emu_avr = avr_make_mcu_by_name(part->mcu);
    uint8_t *image = read_ihex_file(path, &size, &start);
    if (!emu_avr || !image) {
        fprintf(stderr, "emu: %s cannot be loaded\n", path);
        exit(1);
    }
    avr_init(emu_avr);
    emu_avr->frequency = CPU_HZ;
    emu_avr->sleep = sleep_not;
    avr_loadcode(emu_avr, image, size, start);
    emu_avr->codeend = start + size;
    free(image);
    timer1 = find_timer('1');
    pwm = find_timer(part->pwm_timer);
    avr_irq_register_notify(avr_get_interrupt_irq(emu_avr, part->compare_b_vector), on_compare_b, NULL);
    avr_irq_register_notify(avr_iomem_getirq(emu_avr, REG_TCCR1C, "tccr1c", AVR_IOMEM_IRQ_ALL), on_tccr1c, NULL);
    avr_irq_register_notify(avr_iomem_getirq(emu_avr, REG_TCCR1B, "tccr1b", AVR_IOMEM_IRQ_ALL), on_tccr1b, NULL);
    avr_irq_t *level = avr_io_getirq(emu_avr, AVR_IOCTL_TIMER_GETIRQ(part->pwm_timer), part->pwm_irq);
    avr_irq_register_notify(level, on_level, NULL);
    avr_irq_t *led = avr_io_getirq(emu_avr, AVR_IOCTL_IOPORT_GETIRQ(part->led_port), part->led_pin);
    avr_irq_register_notify(led, on_led, NULL);
    set_capture_input(0);
    if (uid)
        set_uid(uid);
}

/* --- commands ------------------------------------------------------------------------------------------------------ */

int emu_obey(const char *line)
{
    unsigned long long number = 0;
    unsigned value = 0;
    if (sscanf(line, "poke %llx %x", &number, &value) == 2 && number <= emu_avr->ramend) {
        emu_avr->data[number] = (uint8_t)value;
    } else if (sscanf(line, "peek %llx", &number) == 1 && number <= emu_avr->ramend) {
        emu_happened("peek", emu_avr->cycle, " %u", emu_avr->data[number]);
    } else if (sscanf(line, "loop %u", &value) == 1) {
        is_looped = value != 0;
        set_capture_input(0);
    } else if (!strncmp(line, "hang", 4)) {
        hang_here();
    } else {
        return 0;
    }
    return 1;
}

int emu_lock_step(int (*obey)(const char *line))
{
    char line[256];
    while (fgets(line, sizeof line, stdin)) {
        if (!emu_obey(line) && !obey(line)) {
            fprintf(stderr, "emu: not understood: %s", line);
            return 2;
        }
        printf("at %llu\n", (unsigned long long)emu_avr->cycle);
        fflush(stdout);
    }
    return 0;
}
