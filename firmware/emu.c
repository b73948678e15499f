/* The board in an emulator: the real image on libsimavr, its pins stamped in CPU cycles.
 *
 *   emu IMAGE.hex [--uid HEX]                lock-step: commands on stdin, what happened on stdout, no clock involved
 *   emu IMAGE.hex [--uid HEX] --paced        real time: a pseudo-terminal whose name is the first line on stdout
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
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include <simavr/avr_eeprom.h>
#include <simavr/avr_ioport.h>
#include <simavr/avr_timer.h>
#include <simavr/avr_uart.h>
#include <simavr/sim_avr.h>
#include <simavr/sim_hex.h>
#include <simavr/sim_io.h>

#define CPU_HZ 16000000ull
#define QUEUE 65536u
#define REG_TCCR1A 0x80
#define REG_TCCR1B 0x81
#define REG_TCCR1C 0x82
#define REG_UBRR0L 0xC4
#define COM1B(tccr1a) (((tccr1a) >> 4) & 3)
#define FOC1B 0x40
#define TIMER1_COMPB_VECTOR 12

static avr_t *avr;
static avr_timer_t *timer1, *timer2;
static avr_uart_t *uart;
static int is_paced, is_looped, saw_tx;
static int pulse_pin = -1;
static avr_cycle_count_t tx_free, deadline;
static struct { avr_cycle_count_t at; uint8_t byte; } rx[QUEUE], tx[QUEUE];
static unsigned rx_head, rx_tail, tx_head, tx_tail;
static struct { avr_flashaddr_t at; uint8_t old[2]; int is_on; } hang;

static void happened(const char *what, avr_cycle_count_t cycle, const char *more, ...)
{
    va_list rest;
    printf("%s %llu", what, (unsigned long long)cycle);
    va_start(rest, more);
    vprintf(more, rest);
    va_end(rest);
    putchar('\n');
}

/* --- pins ---------------------------------------------------------------------------------------------------------- */

static void set_capture_input(void)
{
    avr_irq_t *pin = avr_io_getirq(avr, AVR_IOCTL_IOPORT_GETIRQ('B'), 0);
    avr_raise_irq(pin, is_looped ? pulse_pin == 1 : 1); /* not wired: its pull-up */
}

static void set_pulse(int level, avr_cycle_count_t cycle)
{
    if (level == pulse_pin)
        return;
    if (pulse_pin >= 0)
        happened("pulse", cycle, " %d", level);
    pulse_pin = level;
    if (is_looped)
        set_capture_input();
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
    happened("pwm", avr->cycle + 256 - phase, " %u %llu", value, (unsigned long long)avr->cycle);
}

/* Timer 1 starts to count ticks: 16 MHz / 8. */
static void on_tccr1b(avr_irq_t *irq, uint32_t value, void *param)
{
    (void)irq, (void)param;
    if ((value & 7) == 2)
        happened("ticks", timer1->tov_base, "");
}

static void on_led(avr_irq_t *irq, uint32_t value, void *param)
{
    (void)param;
    if (irq->value != value)
        happened("led", avr->cycle, " %u", value);
}

/* --- the serial line ----------------------------------------------------------------------------------------------- */

static avr_cycle_count_t byte_cycles(void)
{
    return (avr->data[REG_UBRR0L] + 1u) * 8u * 10u;
}

static void on_tx(avr_irq_t *irq, uint32_t value, void *param)
{
    (void)irq, (void)param;
    avr_cycle_count_t start = avr->cycle > tx_free ? avr->cycle : tx_free;
    uart->cycles_per_byte = byte_cycles();
    tx_free = start + byte_cycles();
    saw_tx = 1;
    if (is_paced) {
        tx[tx_head % QUEUE].at = tx_free;
        tx[tx_head++ % QUEUE].byte = (uint8_t)value;
    } else {
        happened("tx", start, " %02x", value);
    }
}

static avr_cycle_count_t deliver(avr_t *a, avr_cycle_count_t when, void *param)
{
    (void)a, (void)when, (void)param;
    while (rx_tail != rx_head && rx[rx_tail % QUEUE].at <= avr->cycle) {
        if ((unsigned)(uart->input.write - uart->input.read) % uart_fifo_fifo_size >= 2)
            happened("overrun", avr->cycle, "");
        uart->cycles_per_byte = 1; /* it is here already */
        avr_raise_irq(uart->io.irq + UART_IRQ_INPUT, rx[rx_tail++ % QUEUE].byte);
        uart->cycles_per_byte = byte_cycles();
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
    happened("reset", avr->cycle, "");
    set_pulse(0, avr->cycle);
    tx_free = avr->cycle;
    if (hang.is_on)
        memcpy(avr->flash + hang.at, hang.old, 2);
    hang.is_on = 0;
    set_capture_input();
    set_timers();
}

/* Runs until `until`, or until a byte was sent when `stop_at_tx`. */
static void run(avr_cycle_count_t until, int stop_at_tx)
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
            happened("crash", avr->cycle, " %04x", avr->pc);
            exit(1);
        }
    }
}

static void reset_pin(void)
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
    set_capture_input();
}

/* --- lock-step ----------------------------------------------------------------------------------------------------- */

static int obey(const char *line)
{
    unsigned long long number = 0;
    unsigned value = 0;
    char word[8] = "";
    if (sscanf(line, "run %llu %7s", &number, word) >= 1) {
        run(number, !strcmp(word, "tx"));
    } else if (sscanf(line, "rx %llu %x", &number, &value) == 2) {
        rx[rx_head % QUEUE].at = number;
        rx[rx_head++ % QUEUE].byte = (uint8_t)value;
    } else if (sscanf(line, "poke %llx %x", &number, &value) == 2 && number <= avr->ramend) {
        avr->data[number] = (uint8_t)value;
    } else if (sscanf(line, "loop %u", &value) == 1) {
        is_looped = value != 0;
        set_capture_input();
    } else if (!strncmp(line, "hang", 4)) {
        hang_here();
    } else if (!strncmp(line, "reset", 5)) {
        reset_pin();
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

/* --- paced --------------------------------------------------------------------------------------------------------- */

static uint64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

static int open_terminal(void)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
    struct termios settings;
    if (master < 0 || grantpt(master) || unlockpt(master) || tcgetattr(master, &settings)) {
        perror("emu: no pseudo-terminal");
        exit(1);
    }
    cfmakeraw(&settings);
    tcsetattr(master, TCSANOW, &settings);
    close(open(ptsname(master), O_RDWR | O_NOCTTY)); /* from now on the master can tell whether it is open */
    printf("%s\n", ptsname(master));
    fflush(stdout);
    return master;
}

static void exchange(int master)
{
    uint8_t bytes[256];
    ssize_t n = read(master, bytes, sizeof bytes);
    for (ssize_t i = 0; i < n; i++) {
        avr_cycle_count_t last = rx_head != rx_tail ? rx[(rx_head - 1) % QUEUE].at : avr->cycle;
        rx[rx_head % QUEUE].at = (last > avr->cycle ? last : avr->cycle) + byte_cycles();
        rx[rx_head++ % QUEUE].byte = bytes[i];
    }
    for (; tx_tail != tx_head && tx[tx_tail % QUEUE].at <= avr->cycle; tx_tail++)
        if (write(master, &tx[tx_tail % QUEUE].byte, 1) != 1 && errno == EAGAIN)
            break;
}

/* A step each 0.25 ms. Opening the port resets the board, as DTR does on a real one. Ends with its input. */
static int paced(void)
{
    int master = open_terminal(), was_open = 0;
    uint64_t start_ns = clock_ns();
    for (;;) {
        struct pollfd watched[2] = {{.fd = master}, {.fd = STDIN_FILENO, .events = POLLIN}};
        char byte;
        poll(watched, 2, 0);
        if ((watched[1].revents & (POLLIN | POLLHUP)) && read(STDIN_FILENO, &byte, 1) <= 0)
            return 0;
        int is_open = !(watched[0].revents & POLLHUP);
        if (is_open && !was_open)
            reset_pin();
        was_open = is_open;
        uint64_t due = (clock_ns() - start_ns) * (CPU_HZ / 1000000ull) / 1000ull;
        if (due > avr->cycle + CPU_HZ / 10) { /* the machine stood still: the board's clock did too */
            start_ns += (due - avr->cycle) * 1000ull / (CPU_HZ / 1000000ull);
            happened("slip", avr->cycle, " %llu", (unsigned long long)(due - avr->cycle));
            due = avr->cycle;
        }
        exchange(master);
        run(due, 0);
        exchange(master);
        fflush(stdout);
        struct timespec pause = {.tv_nsec = 250000};
        nanosleep(&pause, NULL);
    }
}

int main(int argc, char **argv)
{
    const char *image = NULL, *uid = NULL;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--paced"))
            is_paced = 1;
        else if (!strcmp(argv[i], "--uid") && i + 1 < argc)
            uid = argv[++i];
        else
            image = argv[i];
    }
    if (!image) {
        fprintf(stderr, "usage: emu IMAGE.hex [--uid HEX] [--paced]\n");
        return 2;
    }
    load(image);
    if (uid)
        set_uid(uid);
    return is_paced ? paced() : lock_step();
}
