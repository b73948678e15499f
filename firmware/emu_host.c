/* A host for the emulated USB: it finds the board, asks it who it is, configures it, opens its port as the driver for
 * serial lines of Linux does, and moves the bytes. A transaction at a time, with the data toggles of USB 2.0, 8.6.
 */
#include <string.h>

#include <simavr/sim_cycle_timers.h>

#include "emu_usb.h"

#define MS 16000u
#define DEBOUNCE (100 * MS)
#define RESET (10 * MS)
#define PATIENCE (500 * MS) /* for one control transfer */
#define CONTROL_STEP 2000u  /* from one transaction of a control transfer to the next: 8 a frame */
#define BETWEEN 200u        /* and a transaction for data in between, where there are any */
#define QUEUE 65536u
#define N_TRANSFERS 32u
#define MOST 255u

struct transfer {
    uint8_t setup[8];
    uint8_t data[MOST];
    unsigned n; /* bytes of `data` */
    int is_told;
};


static enum { ABSENT, BEFORE_RESET, IN_RESET, RUNNING } stage;
static struct transfer transfers[N_TRANSFERS];
static unsigned first, last; /* of those that wait */
static unsigned at;          /* bytes moved by the one that goes on */
static int phase, pid;       /* its stage: 0 set-up, 1 data, 2 status */
static avr_cycle_count_t give_up, next_control;
static uint8_t address;
static int n_resets, is_configured, wants_open = 1, is_open, out_pid, in_pid;
static uint32_t wanted_baud = 500000;
static unsigned poll_cycles = 320;
static struct { uint64_t at; uint8_t byte; } written[QUEUE];
static unsigned write_head, write_tail;
static uint8_t packet[64];
static unsigned n_packet;

/* --- what to ask --------------------------------------------------------------------------------------------------- */

static struct transfer *ask(uint8_t type, uint8_t request, uint16_t value, uint16_t index, uint16_t length)
{
    struct transfer *t = &transfers[last++ % N_TRANSFERS];
    uint8_t setup[8] = {type, request, (uint8_t)value, (uint8_t)(value >> 8), (uint8_t)index, (uint8_t)(index >> 8),
                        (uint8_t)length, (uint8_t)(length >> 8)};
    memset(t, 0, sizeof *t);
    memcpy(t->setup, setup, 8);
    return t;
}

/* Linux looks at the device before it has an address, resets it, and then asks in this order. */
static void ask_who_it_is(void)
{
    if (n_resets == 1) {
        ask(0x80, 6, 0x0100, 0, 64);
        return;
    }
    ask(0x00, 5, 9, 0, 0);
    ask(0x80, 6, 0x0100, 0, 18);
    ask(0x80, 6, 0x0200, 0, 9);
    ask(0x80, 6, 0x0200, 0, MOST);
    for (uint16_t text = 0; text <= 3; text++)
        ask(0x80, 6, (uint16_t)(0x0300 | text), text ? 0x0409 : 0, MOST);
    ask(0x00, 9, 1, 0, 0);
}

static void ask_for_line_state(int is_held)
{
    ask(0x21, 0x22, is_held ? 3 : 0, 0, 0);
}

static void ask_for_rate(void)
{
    struct transfer *t = ask(0x21, 0x20, 0, 0, 7);
    uint8_t coding[7] = {(uint8_t)wanted_baud, (uint8_t)(wanted_baud >> 8), (uint8_t)(wanted_baud >> 16),
                         (uint8_t)(wanted_baud >> 24), 0, 0, 8};
    memcpy(t->data, coding, sizeof coding);
    t->n = sizeof coding;
}

/* --- control transfers --------------------------------------------------------------------------------------------- */

static void tell(const struct transfer *t, const char *how)
{
    char text[2 * MOST + 1] = "";
    for (unsigned k = 0; k < at && (t->setup[0] & 0x80); k++) {
        text[2 * k] = "0123456789abcdef"[t->data[k] >> 4];
        text[2 * k + 1] = "0123456789abcdef"[t->data[k] & 15];
        text[2 * k + 2] = 0;
    }
    if (t->is_told)
        emu_happened("control", emu_avr->cycle, " %s %s", how, text);
    else if (strcmp(how, "ok"))
        emu_happened("refused", emu_avr->cycle, " %02x %02x %s", t->setup[0], t->setup[1], how);
}

/* What a transfer that was carried out means for the host. */
static void note(const struct transfer *t)
{
    if (t->setup[0] == 0x00 && t->setup[1] == 5)
        address = t->setup[2];
    if (t->setup[0] == 0x00 && t->setup[1] == 9) {
        is_configured = t->setup[2];
        out_pid = in_pid = 0;
        n_packet = 0;
    }
    if (t->setup[0] == 0x02 && t->setup[1] == 1) {
        if (t->setup[4] & 0x80)
            in_pid = 0;
        else
            out_pid = 0;
    }
    if (t->setup[0] == 0x21 && t->setup[1] == 0x22) {
        is_open = t->setup[2] & 1;
        emu_happened(is_open ? "open" : "closed", emu_avr->cycle, "");
    }
}

static void end(const char *how)
{
    const struct transfer *t = &transfers[first % N_TRANSFERS];
    tell(t, how);
    if (!strcmp(how, "ok"))
        note(t);
    first++;
    phase = 0;
}

/* Gives how many cycles later the next transaction comes. */
static unsigned step_control(void)
{
    struct transfer *t = &transfers[first % N_TRANSFERS];
    unsigned length = t->setup[6] | (unsigned)t->setup[7] << 8;
    int is_to_host = t->setup[0] & 0x80, got;
    uint8_t data[64];
    if (!phase) {
        give_up = emu_avr->cycle + PATIENCE;
        at = 0;
        pid = 1;
        if (emu_usb_setup(address, t->setup) < 0)
            end("silent");
        else
            phase = length ? 1 : 2;
        return CONTROL_STEP;
    }
    if (emu_avr->cycle > give_up) {
        end("timeout");
        return CONTROL_STEP;
    }
    if (phase == 1 && is_to_host) {
        int told = pid;
        got = emu_usb_in(address, 0, &told, data);
        if (got >= 0 && told == pid) {
            pid ^= 1;
            memcpy(t->data + at, data, at + (unsigned)got > MOST ? MOST - at : (unsigned)got);
            at += (unsigned)got;
            if (got < 64 || at >= length)
                phase = 2;
        }
    } else if (phase == 1) {
        unsigned n = t->n - at > 64 ? 64 : t->n - at;
        got = emu_usb_out(address, 0, pid, t->data + at, n);
        if (got >= 0) {
            pid ^= 1;
            at += n;
            if (at == t->n)
                phase = 2;
        }
    } else {
        int told = 1;
        got = length && is_to_host ? emu_usb_out(address, 0, 1, data, 0) : emu_usb_in(address, 0, &told, data);
        if (got >= 0) {
            end("ok");
            return first == last ? CONTROL_STEP : MS;
        }
    }
    if (got == USB_STALL)
        end("stall");
    return CONTROL_STEP;
}

/* --- data ---------------------------------------------------------------------------------------------------------- */

static int is_due(void)
{
    return write_tail != write_head && written[write_tail % QUEUE].at <= emu_avr->cycle;
}

/* A packet that the board has no room for is sent again after the next question. */
static void send_packet(void)
{
    if (emu_usb_out(address, 2, out_pid, packet, n_packet) < 0)
        return;
    emu_happened("packet", emu_avr->cycle, " %u", n_packet);
    out_pid ^= 1;
    n_packet = 0;
}

static void ask_for_data(void)
{
    uint8_t data[64];
    int told = in_pid;
    int got = emu_usb_in(address, 3, &told, data);
    if (got >= 0 && told != in_pid) {
        emu_happened("toggle", emu_avr->cycle, " in 3");
    } else if (got >= 0) {
        in_pid ^= 1;
        for (int k = 0; k < got; k++)
            emu_got(emu_avr->cycle, data[k]);
    }
}

static unsigned step_data(void)
{
    static int is_on_the_bus; /* a packet, which ends now */
    if (is_on_the_bus)
        send_packet();
    is_on_the_bus = 0;
    ask_for_data();
    while (is_due() && n_packet < sizeof packet)
        packet[n_packet++] = written[write_tail++ % QUEUE].byte;
    if (!n_packet)
        return poll_cycles ? poll_cycles : MS;
    is_on_the_bus = 1;
    return (n_packet + 13) * 11; /* at 12 Mbit/s, with what goes around the data */
}

/* --- the schedule -------------------------------------------------------------------------------------------------- */

static unsigned step(void)
{
    if (!emu_usb_is_attached()) {
        stage = ABSENT;
        is_configured = is_open = 0;
        first = last;
        return MS;
    }
    switch (stage) {
    case ABSENT:
        stage = BEFORE_RESET;
        n_resets = 0;
        return DEBOUNCE;
    case BEFORE_RESET:
        stage = IN_RESET;
        return RESET;
    case IN_RESET:
        emu_usb_bus_reset();
        address = 0;
        phase = 0;
        n_resets++;
        ask_who_it_is();
        stage = RUNNING;
        return RESET;
    default:
        break;
    }
    if (first != last && emu_avr->cycle >= next_control) {
        unsigned pause = step_control();
        next_control = emu_avr->cycle + pause;
        return is_open ? BETWEEN : pause;
    }
    if (first == last && n_resets == 1) {
        stage = IN_RESET;
        return RESET;
    }
    if (first == last && is_configured && wants_open != is_open) {
        if (wants_open)
            ask_for_rate();
        ask_for_line_state(wants_open);
    }
    return is_open ? step_data() : first != last ? CONTROL_STEP : MS;
}

static avr_cycle_count_t on_step(avr_t *avr, avr_cycle_count_t when, void *param)
{
    (void)when, (void)param;
    return avr->cycle + step();
}

static avr_cycle_count_t on_frame(avr_t *avr, avr_cycle_count_t when, void *param)
{
    (void)avr, (void)param;
    if (stage == RUNNING)
        emu_usb_frame();
    return when + MS;
}

static avr_cycle_count_t on_silence(avr_t *avr, avr_cycle_count_t when, void *param)
{
    (void)avr, (void)when, (void)param;
    emu_usb_suspend();
    return 0;
}

void emu_host_start(void)
{
    stage = ABSENT;
    phase = 0;
    is_configured = is_open = 0;
    first = last;
    n_packet = 0;
    avr_cycle_timer_cancel(emu_avr, on_step, NULL);
    avr_cycle_timer_cancel(emu_avr, on_frame, NULL);
    avr_cycle_timer_register(emu_avr, MS, on_step, NULL);
    avr_cycle_timer_register(emu_avr, MS, on_frame, NULL);
    if (!emu_usb_is_attached())
        avr_cycle_timer_register(emu_avr, 3 * MS, on_silence, NULL);
}

void emu_host_open(uint32_t baud)
{
    wants_open = 1;
    wanted_baud = baud;
}

void emu_host_close(void)
{
    wants_open = 0;
    write_tail = write_head;
    n_packet = 0;
}

void emu_host_poll_every(unsigned cycles)
{
    poll_cycles = cycles;
}

void emu_host_write(uint64_t cycle, uint8_t byte)
{
    written[write_head % QUEUE].at = cycle;
    written[write_head++ % QUEUE].byte = byte;
}

void emu_host_control(const uint8_t *eight, const uint8_t *data, unsigned n)
{
    struct transfer *t = ask(eight[0], eight[1], (uint16_t)(eight[2] | eight[3] << 8), (uint16_t)(eight[4] | eight[5] << 8),
                             (uint16_t)(eight[6] | eight[7] << 8));
    memcpy(t->data, data, n);
    t->n = n;
    t->is_told = 1;
}
