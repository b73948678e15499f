/* The board in an emulator: the real image on libsimavr, its pins stamped in CPU cycles.
 *
 *   emu IMAGE.hex [--uid HEX]               lock-step: commands on stdin, what happened on stdout, no clock involved
 *   emu IMAGE.hex [--uid HEX] --paced ...   at the pace of the real clock behind a pseudo-terminal: see emu_paced.c
 *
 * Lock-step commands, one a line; each is answered by event lines and then by `at CYCLE`:
 *
 *   run CYCLE [tx]     run up to a cycle; with `tx` stop as soon as the board has begun to send a byte
 *   rx CYCLE HH        a byte that has arrived whole at a cycle; in order
 *   poke ADDRESS HH    writes a byte of data memory
 *   loop 0|1           the pulse is (not) wired to the capture input
 *   hang               the program hangs where it is; only the watchdog can help
 *   reset              the reset pin
 *
 * Events:  ticks CYCLE · tx START HH · pwm CYCLE LEVEL WRITTEN · pulse CYCLE 0|1 · led CYCLE 0|1 · reset CYCLE · overrun CYCLE
 *
 * libsimavr 1.6 differs from the data sheet where it matters here. This file takes its compare events and registers
 * and does the rest itself: the buffer of OCR2A, which the timer takes over at the start of a PWM period; the output
 * of compare unit B with FOC1B; bytes of 10 bits, where it counts 11; the receiver's buffer of two bytes.
 */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <simavr/avr_eeprom.h>
#include <simavr/avr_ioport.h>
#include <simavr/avr_timer.h>
#include <simavr/avr_uart.h>
#include <simavr/sim_avr.h>
#include <simavr/sim_hex.h>
#include <simavr/sim_io.h>

#include "emu.h"

#define QUEUE 65536u
#define REG_TCCR1A 0x80
#define REG_TCCR1B 0x81
#define REG_TCCR1C 0x82
#define REG_UCSR0A 0xC0
#define REG_UBRR0L 0xC4
#define DOR0 0x08
#define COM1B(tccr1a) (((tccr1a) >> 4) & 3)
#define FOC1B 0x40
#define TIMER1_COMPB_VECTOR 12

static avr_t *avr;
static avr_timer_t *timer1, *timer2;
static avr_uart_t *uart;
static int is_looped, saw_tx;
static int pulse_pin = -1;
static avr_cycle_count_t tx_free, deadline;
static struct { avr_cycle_count_t at; uint8_t byte; } rx[QUEUE];
static unsigned rx_head, rx_tail;
static struct { avr_flashaddr_t at; uint8_t old[2]; int is_on; } hang;

static void to_stdout(const char *line, size_t length)
{
    fwrite(line, 1, length, stdout);
}

void (*emu_tell)(const char *line, size_t length) = to_stdout;
void (*emu_on_byte)(uint64_t start, uint64_t end, uint8_t byte);

void emu_happened(const char *what, uint64_t cycle, const char *more, ...)
{
    char line[128];
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
    avr_irq_t *pin = avr_io_getirq(avr, AVR_IOCTL_IOPORT_GETIRQ('B'), 0);
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

static void on_level(avr_irq_t *irq, uint32_t value, void *param)
{
    (void)irq, (void)param;
    uint64_t phase = (avr->cycle - timer2->tov_base) % 256;
    emu_happened("pwm", avr->cycle + 256 - phase, " %u %llu", value, (unsigned long long)avr->cycle);
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
        emu_happened("led", avr->cycle, " %u", value);
}

/* --- the serial line ----------------------------------------------------------------------------------------------- */

uint64_t emu_byte_cycles(void)
{
    return (avr->data[REG_UBRR0L] + 1u) * 8u * 10u;
}

static void on_tx(avr_irq_t *irq, uint32_t value, void *param)
{
    (void)irq, (void)param;
    avr_cycle_count_t start = avr->cycle > tx_free ? avr->cycle : tx_free;
    uart->cycles_per_byte = emu_byte_cycles();
    tx_free = start + emu_byte_cycles();
    saw_tx = 1;
    emu_happened("tx", start, " %02x", value);
    if (emu_on_byte)
        emu_on_byte(start, tx_free, (uint8_t)value);
}

void emu_receive(uint64_t at, uint8_t byte)
{
    rx[rx_head % QUEUE].at = at;
    rx[rx_head++ % QUEUE].byte = byte;
}

unsigned emu_receiving(uint64_t *last_at)
{
    if (rx_head != rx_tail)
        *last_at = rx[(rx_head - 1) % QUEUE].at;
    return rx_head - rx_tail;
}

static avr_cycle_count_t deliver(avr_t *a, avr_cycle_count_t when, void *param)
{
    (void)a, (void)when, (void)param;
    while (rx_tail != rx_head && rx[rx_tail % QUEUE].at <= avr->cycle) {
        if ((unsigned)(uart->input.write - uart->input.read) % uart_fifo_fifo_size >= 2) {
            emu_happened("overrun", avr->cycle, "");
            avr->data[REG_UCSR0A] |= DOR0; /* until the next byte is read */
            rx_tail++;
            continue;
        }
        uart->cycles_per_byte = 1; /* it is here already */
        avr_raise_irq(uart->io.irq + UART_IRQ_INPUT, rx[rx_tail++ % QUEUE].byte);
        uart->cycles_per_byte = emu_byte_cycles();
    }
    return rx_tail == rx_head ? 0 : rx[rx_tail % QUEUE].at;
}

static avr_cycle_count_t nothing(avr_t *a, avr_cycle_count_t when, void *param)
{
    (void)a, (void)when, (void)param;
    return 0; /* only there so that a sleeping core wakes up for the deadline */
}

/* --- running ------------------------------------------------------------------------------------------------------- */

static void sleep_not(avr_t *a, avr_cycle_count_t cycles)
{
    (void)a, (void)cycles;
}

static void set_timers(void)
{
    if (rx_tail != rx_head) {
        avr_cycle_count_t at = rx[rx_tail % QUEUE].at;
        avr_cycle_timer_register(avr, at > avr->cycle ? at - avr->cycle : 1, deliver, NULL);
    }
    if (deadline > avr->cycle)
        avr_cycle_timer_register(avr, deadline - avr->cycle, nothing, NULL);
}

static void after_reset(void)
{
    emu_happened("reset", avr->cycle, "");
    set_pulse(0, avr->cycle);
    tx_free = avr->cycle;
    if (hang.is_on)
        memcpy(avr->flash + hang.at, hang.old, 2);
    hang.is_on = 0;
    set_capture_input(1);
    set_timers();
}

uint64_t emu_cycle(void)
{
    return avr->cycle;
}

void emu_run(uint64_t until, int stop_at_tx)
{
    deadline = until;
    saw_tx = 0;
    set_timers();
    while (avr->cycle < until && !(stop_at_tx && saw_tx)) {
        int is_bitten = avr->run != avr_callback_run_raw; /* by the watchdog: the next step resets */
        int state = avr_run(avr);
        if (is_bitten)
            after_reset();
        if (state == cpu_Done || state == cpu_Crashed) {
            emu_happened("crash", avr->cycle, " %04x", avr->pc);
            exit(1);
        }
    }
}

void emu_reset(void)
{
    avr_reset(avr);
    after_reset();
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

static avr_io_t *find_part(const char *kind, char name)
{
    for (avr_io_t *io = avr->io_port; io; io = io->next) {
        if (!strcmp(io->kind, "timer") && !strcmp(kind, "timer") && ((avr_timer_t *)io)->name == name)
            return io;
        if (!strcmp(io->kind, "uart") && !strcmp(kind, "uart") && ((avr_uart_t *)io)->name == name)
            return io;
    }
    fprintf(stderr, "emu: the part has no %s %c\n", kind, name);
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
    avr_ioctl(avr, AVR_IOCTL_EEPROM_SET, &where);
}

static void load(const char *path)
{
    uint32_t size = 0, start = 0, no_flags = 0;
    avr_global_logger_set(quiet);
    avr = avr_make_mcu_by_name("atmega328p");
    uint8_t *image = read_ihex_file(path, &size, &start);
    if (!avr || !image) {
        fprintf(stderr, "emu: %s cannot be loaded\n", path);
        exit(1);
    }
    avr_init(avr);
    avr->frequency = CPU_HZ;
    avr->sleep = sleep_not;
    avr_loadcode(avr, image, size, start);
    avr->codeend = start + size;
    free(image);
    timer1 = (avr_timer_t *)find_part("timer", '1');
    timer2 = (avr_timer_t *)find_part("timer", '2');
    uart = (avr_uart_t *)find_part("uart", '0');
    avr_ioctl(avr, AVR_IOCTL_UART_SET_FLAGS('0'), &no_flags);
    avr_irq_register_notify(avr_get_interrupt_irq(avr, TIMER1_COMPB_VECTOR), on_compare_b, NULL);
    avr_irq_register_notify(avr_iomem_getirq(avr, REG_TCCR1C, "tccr1c", AVR_IOMEM_IRQ_ALL), on_tccr1c, NULL);
    avr_irq_register_notify(avr_iomem_getirq(avr, REG_TCCR1B, "tccr1b", AVR_IOMEM_IRQ_ALL), on_tccr1b, NULL);
    avr_irq_register_notify(avr_io_getirq(avr, AVR_IOCTL_TIMER_GETIRQ('2'), TIMER_IRQ_OUT_PWM0), on_level, NULL);
    avr_irq_register_notify(avr_io_getirq(avr, AVR_IOCTL_IOPORT_GETIRQ('B'), 5), on_led, NULL);
    avr_irq_register_notify(avr_io_getirq(avr, AVR_IOCTL_UART_GETIRQ('0'), UART_IRQ_OUTPUT), on_tx, NULL);
    set_capture_input(0);
}

/* --- lock-step ----------------------------------------------------------------------------------------------------- */

static int obey(const char *line)
{
    unsigned long long number = 0;
    unsigned value = 0;
    char word[8] = "";
    if (sscanf(line, "run %llu %7s", &number, word) >= 1) {
        emu_run(number, !strcmp(word, "tx"));
    } else if (sscanf(line, "rx %llu %x", &number, &value) == 2) {
        emu_receive(number, (uint8_t)value);
    } else if (sscanf(line, "poke %llx %x", &number, &value) == 2 && number <= avr->ramend) {
        avr->data[number] = (uint8_t)value;
    } else if (sscanf(line, "loop %u", &value) == 1) {
        is_looped = value != 0;
        set_capture_input(0);
    } else if (!strncmp(line, "hang", 4)) {
        hang_here();
    } else if (!strncmp(line, "reset", 5)) {
        emu_reset();
    } else {
        return 0;
    }
    return 1;
}

static int lock_step(void)
{
    char line[128];
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

int main(int argc, char **argv)
{
    const char *image = NULL, *uid = NULL;
    struct pace pace = {.listener = -1};
    int is_paced = 0;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--paced"))
            is_paced = 1;
        else if (!strcmp(argv[i], "--no-reset"))
            pace.no_reset = 1;
        else if (!strcmp(argv[i], "--uid") && i + 1 < argc)
            uid = argv[++i];
        else if (!strcmp(argv[i], "--ppb") && i + 1 < argc)
            pace.ppb = atoll(argv[++i]);
        else if (!strcmp(argv[i], "--listener") && i + 1 < argc)
            pace.listener = atoi(argv[++i]);
        else
            image = argv[i];
    }
    if (!image) {
        fprintf(stderr, "usage: emu IMAGE.hex [--uid HEX] [--paced [--ppb N] [--listener FD] [--no-reset]]\n");
        return 2;
    }
    load(image);
    if (uid)
        set_uid(uid);
    return is_paced ? emu_paced(&pace) : lock_step();
}
