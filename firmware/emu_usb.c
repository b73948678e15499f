/* The USB device controller of an ATmega32U4, in the place of libsimavr's: that one raises an interrupt once where the
 * part holds it until its cause is cleared, knows no data toggles, no stall of one endpoint and no clock, and stops the
 * whole program at an endpoint that does not exist. After the data sheet (7766), chapters 21 and 22.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <simavr/sim_io.h>

#include "emu_usb.h"

#define N_ENDPOINTS 7
#define BANK_BYTES 64
#define USB_MEMORY 832
#define GEN_VECTOR 10
#define COM_VECTOR 11

enum { PLLCSR = 0x49, PLLFRQ = 0x52, UHWCON = 0xD7, USBCON = 0xD8, USBSTA = 0xD9, UDCON = 0xE0, UDINT = 0xE1, UDIEN = 0xE2,
       UDADDR = 0xE3, UDFNUML = 0xE4, UDFNUMH = 0xE5, UEINTX = 0xE8, UENUM = 0xE9, UERST = 0xEA, UECONX = 0xEB,
       UECFG0X = 0xEC, UECFG1X = 0xED, UESTA0X = 0xEE, UEIENX = 0xF0, UEDATX = 0xF1, UEBCLX = 0xF2, UEINT = 0xF4 };
enum { TXINI = 0x01, STALLEDI = 0x02, RXOUTI = 0x04, RXSTPI = 0x08, NAKOUTI = 0x10, RWAL = 0x20, NAKINI = 0x40, FIFOCON = 0x80 };
enum { EPEN = 0x01, RSTDT = 0x08, STALLRQC = 0x10, STALLRQ = 0x20 };
enum { SUSPI = 0x01, SOFI = 0x04, EORSTI = 0x08 };
enum { USBE = 0x80, FRZCLK = 0x20, OTGPADE = 0x10, DETACH = 0x01, ADDEN = 0x80, ALLOC = 0x02, CFGOK = 0x80 };

static struct endpoint {
    uint8_t con, cfg0, cfg1, flags, enabled_flags;
    uint8_t bank[BANK_BYTES];
    unsigned n, at;  /* bytes in the bank; the next that the program reads */
    int is_with_host; /* IN: the bank is full and waits for the host's question */
    int toggle[2]; /* OUT and IN; but for the control endpoint only one is used */
} endpoints[N_ENDPOINTS];

static avr_t *avr;
static avr_int_vector_t *gen, *com;
static int is_plugged = 1, is_looked_at;

static struct endpoint *chosen(void)
{
    return &endpoints[avr->data[UENUM] % N_ENDPOINTS];
}

static int is_control(const struct endpoint *e)
{
    return !(e->cfg0 & 0xC0);
}

static int is_in(const struct endpoint *e)
{
    return e->cfg0 & 1;
}

static unsigned size_of(const struct endpoint *e)
{
    return 8u << ((e->cfg1 >> 4) & 7);
}

/* Whether the memory suffices: it is given out in the order of the numbers. */
static int is_allocated(const struct endpoint *e)
{
    unsigned used = 0;
    for (const struct endpoint *k = endpoints; k <= e; k++)
        if (k->cfg1 & ALLOC)
            used += size_of(k) << ((k->cfg1 >> 2) & 1);
    return (e->cfg1 & ALLOC) && used <= USB_MEMORY && size_of(e) <= BANK_BYTES;
}

static void forget_bank(struct endpoint *e)
{
    e->n = e->at = 0;
    e->is_with_host = 0;
    e->flags = !(e->con & EPEN) ? 0 : is_control(e) ? TXINI : is_in(e) ? TXINI | FIFOCON : 0;
}

/* --- registers ----------------------------------------------------------------------------------------------------- */

static uint8_t read_register(avr_t *a, avr_io_addr_t at, void *param)
{
    struct endpoint *e = chosen();
    (void)a, (void)param;
    switch (at) {
    case UECONX:
        return e->con & (EPEN | STALLRQ);
    case UECFG0X:
        return e->cfg0;
    case UECFG1X:
        return e->cfg1;
    case UESTA0X:
        return is_allocated(e) ? CFGOK : 0;
    case UEIENX:
        return e->enabled_flags;
    case UEINTX: {
        int may = is_in(e) ? (e->flags & TXINI) && e->n < size_of(e) : e->at < e->n;
        return (uint8_t)(e->flags | (may && !is_control(e) && !(e->con & STALLRQ) ? RWAL : 0));
    }
    case UEDATX:
        if (e->at >= e->n)
            emu_happened("underflow", avr->cycle, "");
        return e->at < e->n ? e->bank[e->at++] : 0;
    case UEBCLX:
        return (uint8_t)(e->n - e->at);
    case UEINT: {
        uint8_t which = 0;
        for (int k = 0; k < N_ENDPOINTS; k++)
            if (endpoints[k].flags & endpoints[k].enabled_flags)
                which |= (uint8_t)(1 << k);
        return which;
    }
    case USBSTA:
        return (uint8_t)(0x08 | (is_plugged && (avr->data[USBCON] & OTGPADE)));
    default:
        return avr->data[at];
    }
}

static void write_flags(struct endpoint *e, uint8_t value)
{
    uint8_t cleared = e->flags & (uint8_t)~value;
    if (is_control(e)) {
        if (cleared & RXSTPI) {
            e->n = e->at = 0;
            e->flags |= TXINI;
        }
        if (cleared & RXOUTI)
            e->n = e->at = 0;
        if ((cleared & TXINI) && !(cleared & RXSTPI))
            e->is_with_host = 1;
    } else if (cleared & FIFOCON) {
        if (is_in(e)) {
            e->is_with_host = 1;
            cleared |= TXINI;
        } else {
            e->n = e->at = 0;
            cleared |= RXOUTI;
        }
    }
    if (is_in(e) && !is_control(e) && (value & RXOUTI)) /* KILLBK */
        emu_happened("killed", avr->cycle, "");
    e->flags &= (uint8_t)~cleared;
}

static void write_connection(struct endpoint *e, uint8_t value)
{
    int was_on = e->con & EPEN;
    if (value & RSTDT)
        e->toggle[0] = e->toggle[1] = 0;
    e->con = (uint8_t)((value & EPEN) | ((value & STALLRQ) ? STALLRQ : (value & STALLRQC) ? 0 : e->con & STALLRQ));
    if (!was_on != !(value & EPEN))
        forget_bank(e);
}

static void write_register(avr_t *a, avr_io_addr_t at, uint8_t value, void *param)
{
    struct endpoint *e = chosen();
    (void)a, (void)param;
    is_looked_at = 1;
    switch (at) {
    case UEINTX:
        write_flags(e, value);
        return;
    case UECONX:
        write_connection(e, value);
        return;
    case UECFG0X:
        e->cfg0 = value;
        return;
    case UECFG1X:
        e->cfg1 = value;
        forget_bank(e);
        return;
    case UEIENX:
        e->enabled_flags = value;
        return;
    case UERST:
        for (int k = 0; k < N_ENDPOINTS; k++)
            if (value & (1 << k))
                forget_bank(&endpoints[k]);
        avr->data[at] = value;
        return;
    case UEDATX:
        if (e->is_with_host || e->n >= size_of(e))
            emu_happened("overflow", avr->cycle, "");
        else
            e->bank[e->n++] = value;
        return;
    case UDINT:
        avr->data[at] &= value;
        return;
    case PLLCSR:
        avr->data[at] = (uint8_t)((value & ~1) | ((value & 2) ? 1 : 0));
        return;
    case USBSTA:
    case UEBCLX:
    case UEINT:
        return;
    default:
        avr->data[at] = value;
    }
}

/* --- interrupts ---------------------------------------------------------------------------------------------------- */

static void hold(avr_int_vector_t *vector, int is_due)
{
    if (is_due && !vector->pending)
        avr_raise_interrupt(avr, vector);
    else if (!is_due && vector->pending)
        avr_clear_interrupt(avr, vector);
}

void emu_usb_interrupts(void)
{
    if (!is_looked_at && !gen->pending && !com->pending && !avr->interrupts.running_ptr)
        return;
    is_looked_at = avr->interrupts.running_ptr != 0; /* while one runs, look again after it */
    hold(gen, avr->data[UDINT] & avr->data[UDIEN]);
    hold(com, read_register(avr, UEINT, NULL));
}

static void flag(struct endpoint *e, uint8_t flags)
{
    e->flags |= flags;
    is_looked_at = 1;
    emu_usb_interrupts(); /* a part that sleeps must wake up */
}

static void bus_flag(uint8_t flags)
{
    avr->data[UDINT] |= flags;
    is_looked_at = 1;
    emu_usb_interrupts();
}

/* --- what the host sees -------------------------------------------------------------------------------------------- */

/* 48 MHz from the crystal's 16: halved to 8, times 6; or times 12 and halved again. */
static int is_clocked(void)
{
    uint8_t frequency = avr->data[PLLFRQ] & 0x4F;
    return (avr->data[PLLCSR] & 0x13) == 0x13 && (frequency == 0x04 || frequency == 0x4A);
}

int emu_usb_is_attached(void)
{
    uint8_t con = avr->data[USBCON];
    return is_plugged && (avr->data[UHWCON] & 1) && (con & USBE) && (con & OTGPADE) && !(con & FRZCLK) &&
           !(avr->data[UDCON] & DETACH) && is_clocked();
}

void emu_usb_plug(int now)
{
    is_plugged = now;
}

void emu_usb_bus_reset(void)
{
    memset(&endpoints[1], 0, sizeof endpoints - sizeof endpoints[0]);
    endpoints[0].con &= EPEN;
    endpoints[0].enabled_flags = 0;
    forget_bank(&endpoints[0]);
    avr->data[UDADDR] = 0;
    bus_flag(EORSTI);
}

void emu_usb_frame(void)
{
    uint16_t frame = (uint16_t)(avr->data[UDFNUML] | avr->data[UDFNUMH] << 8);
    frame = (frame + 1) & 0x7FF;
    avr->data[UDFNUML] = (uint8_t)frame;
    avr->data[UDFNUMH] = (uint8_t)(frame >> 8);
    bus_flag(SOFI);
}

void emu_usb_suspend(void)
{
    bus_flag(SUSPI);
}

static struct endpoint *addressed(uint8_t address, uint8_t number)
{
    uint8_t own = avr->data[UDADDR] & ADDEN ? avr->data[UDADDR] & 0x7F : 0;
    struct endpoint *e = &endpoints[number % N_ENDPOINTS];
    return emu_usb_is_attached() && address == own && (e->con & EPEN) && is_allocated(e) ? e : NULL;
}

int emu_usb_setup(uint8_t address, const uint8_t *eight)
{
    struct endpoint *e = addressed(address, 0);
    if (!e)
        return USB_SILENT;
    memcpy(e->bank, eight, 8);
    e->n = 8;
    e->at = 0;
    e->is_with_host = 0;
    e->con &= (uint8_t)~STALLRQ;
    e->toggle[0] = e->toggle[1] = 1;
    e->flags = 0;
    flag(e, RXSTPI);
    return 0;
}

int emu_usb_out(uint8_t address, uint8_t number, int data_pid, const uint8_t *data, unsigned n)
{
    struct endpoint *e = addressed(address, number);
    if (!e || n > size_of(e) || (!is_control(e) && is_in(e)))
        return USB_SILENT;
    if (e->con & STALLRQ) {
        flag(e, STALLEDI);
        return USB_STALL;
    }
    if ((e->flags & (RXOUTI | RXSTPI)) || (!is_control(e) && (e->flags & FIFOCON))) {
        flag(e, NAKOUTI);
        return USB_NAK;
    }
    if (data_pid != e->toggle[0]) {
        emu_happened("toggle", avr->cycle, " out %u", number);
        return 0; /* acknowledged, and taken for a repetition */
    }
    e->toggle[0] ^= 1;
    if (n)
        memcpy(e->bank, data, n);
    e->n = n;
    e->at = 0;
    e->is_with_host = 0;
    flag(e, is_control(e) ? RXOUTI : RXOUTI | FIFOCON);
    return 0;
}

int emu_usb_in(uint8_t address, uint8_t number, int *data_pid, uint8_t *data)
{
    struct endpoint *e = addressed(address, number);
    if (!e || (!is_control(e) && !is_in(e)))
        return USB_SILENT;
    if (e->con & STALLRQ) {
        flag(e, STALLEDI);
        return USB_STALL;
    }
    if (!e->is_with_host) {
        flag(e, NAKINI);
        return USB_NAK;
    }
    unsigned n = e->n;
    memcpy(data, e->bank, n);
    *data_pid = e->toggle[1];
    e->toggle[1] ^= 1;
    e->n = e->at = 0;
    e->is_with_host = 0;
    flag(e, is_control(e) ? TXINI : TXINI | FIFOCON);
    return (int)n;
}

/* --- start --------------------------------------------------------------------------------------------------------- */

static avr_int_vector_t *find_vector(uint8_t number)
{
    for (int k = 0; k < avr->interrupts.vector_count; k++)
        if (avr->interrupts.vector[k]->vector == number)
            return avr->interrupts.vector[k];
    fprintf(stderr, "emu: the part has no interrupt %u\n", number);
    exit(1);
}

void emu_usb_reset(void)
{
    memset(endpoints, 0, sizeof endpoints);
    for (avr_io_addr_t at = UHWCON; at <= UEINT; at++)
        avr->data[at] = 0;
    avr->data[USBCON] = FRZCLK;
    avr->data[UDCON] = DETACH;
    avr->data[PLLCSR] = 0;
    avr->data[PLLFRQ] = 0x04;
}

void emu_usb_init(avr_t *a)
{
    avr = a;
    gen = find_vector(GEN_VECTOR);
    com = find_vector(COM_VECTOR);
    for (unsigned at = UHWCON; at <= UEINT; at++) {
        avr->io[AVR_DATA_TO_IO(at)].r.c = read_register;
        avr->io[AVR_DATA_TO_IO(at)].w.c = write_register;
    }
    avr->io[AVR_DATA_TO_IO(PLLCSR)].w.c = write_register;
    emu_usb_reset();
}
