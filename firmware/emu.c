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
 *   peek ADDRESS       reads one: `peek CYCLE VALUE`
 *   loop 0|1           the pulse is (not) wired to the capture input
 *   hang               the program hangs where it is; only the watchdog can help
 *   reset              the reset pin
 *
 * Events:  ticks CYCLE · tx START HH · pwm CYCLE LEVEL WRITTEN · pulse CYCLE 0|1 · led CYCLE 0|1 · reset CYCLE · overrun CYCLE
 *
 * emu_part.c has the pins. Here is the serial line, and what libsimavr 1.6 has otherwise than the data sheet there: bytes of
 * 10 bits, where it counts 11; the receiver's buffer of two bytes.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <simavr/avr_timer.h>
#include <simavr/avr_uart.h>
#include <simavr/sim_avr.h>
#include <simavr/sim_io.h>

#include "emu.h"

#define QUEUE 65536u
#define REG_UCSR0A 0xC0
#define REG_UBRR0L 0xC4
#define DOR0 0x08

static const struct emu_part atmega328p = {
    .mcu = "atmega328p",
    .pwm_timer = '2',
    .pwm_irq = TIMER_IRQ_OUT_PWM0,
    .capture_port = 'B',
    .capture_pin = 0,
    .led_port = 'B',
    .led_pin = 5,
    .compare_b_vector = 12,
};

static avr_uart_t *uart;
static int saw_tx;
static avr_cycle_count_t tx_free, deadline;
static struct { avr_cycle_count_t at; uint8_t byte; } rx[QUEUE];
static unsigned rx_head, rx_tail;

void (*emu_on_byte)(uint64_t start, uint64_t end, uint8_t byte);

/* --- the serial line ----------------------------------------------------------------------------------------------- */

uint64_t emu_byte_cycles(void)
{
    return (emu_avr->data[REG_UBRR0L] + 1u) * 8u * 10u;
}

static void on_tx(avr_irq_t *irq, uint32_t value, void *param)
{
    (void)irq, (void)param;
    avr_cycle_count_t start = emu_avr->cycle > tx_free ? emu_avr->cycle : tx_free;
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
    while (rx_tail != rx_head && rx[rx_tail % QUEUE].at <= emu_avr->cycle) {
        if ((unsigned)(uart->input.write - uart->input.read) % uart_fifo_fifo_size >= 2) {
            emu_happened("overrun", emu_avr->cycle, "");
            emu_avr->data[REG_UCSR0A] |= DOR0; /* until the next byte is read */
            rx_tail++;
            continue;
        }
        uart->cycles_per_byte = 1; /* it is here already */
        avr_raise_irq(uart->io.irq + UART_IRQ_INPUT, rx[rx_tail++ % QUEUE].byte);
        uart->cycles_per_byte = emu_byte_cycles();
    }
    return rx_tail == rx_head ? 0 : rx[rx_tail % QUEUE].at;
}

/* --- running ------------------------------------------------------------------------------------------------------- */

static void set_timers(void)
{
    if (rx_tail != rx_head) {
        avr_cycle_count_t at = rx[rx_tail % QUEUE].at;
        avr_cycle_timer_register(emu_avr, at > emu_avr->cycle ? at - emu_avr->cycle : 1, deliver, NULL);
    }
    emu_wake_at(deadline);
}

static void after_reset(void)
{
    emu_was_reset();
    tx_free = emu_avr->cycle;
    set_timers();
}

uint64_t emu_cycle(void)
{
    return emu_avr->cycle;
}

void emu_run(uint64_t until, int stop_at_tx)
{
    deadline = until;
    saw_tx = 0;
    set_timers();
    while (emu_avr->cycle < until && !(stop_at_tx && saw_tx)) {
        int is_bitten = emu_is_bitten();
        int state = avr_run(emu_avr);
        if (is_bitten)
            after_reset();
        emu_check(state);
    }
}

void emu_reset(void)
{
    avr_reset(emu_avr);
    after_reset();
}

/* --- lock-step ----------------------------------------------------------------------------------------------------- */

static int obey(const char *line)
{
    unsigned long long number = 0;
    unsigned value = 0;
    char word[8] = "";
    if (sscanf(line, "run %llu %7s", &number, word) >= 1)
        emu_run(number, !strcmp(word, "tx"));
    else if (sscanf(line, "rx %llu %x", &number, &value) == 2)
        emu_receive(number, (uint8_t)value);
    else if (!strncmp(line, "reset", 5))
        emu_reset();
    else
        return 0;
    return 1;
}

static void start_line(void)
{
    uint32_t no_flags = 0;
    for (avr_io_t *io = emu_avr->io_port; io; io = io->next)
        if (!strcmp(io->kind, "uart") && ((avr_uart_t *)io)->name == '0')
            uart = (avr_uart_t *)io;
    avr_ioctl(emu_avr, AVR_IOCTL_UART_SET_FLAGS('0'), &no_flags);
    avr_irq_register_notify(avr_io_getirq(emu_avr, AVR_IOCTL_UART_GETIRQ('0'), UART_IRQ_OUTPUT), on_tx, NULL);
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
    emu_load(&atmega328p, image, uid);
    start_line();
    return is_paced ? emu_paced(&pace) : emu_lock_step(obey);
}
