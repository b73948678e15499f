#include "usb.h"

#include <string.h>

#include <avr/interrupt.h>

#include "avr_ticks.h"
#include "avr_touch.h"
#include "usb_answer.h"
#include "usb_descriptors.h"

/* The UEINTX flags that are cleared by writing them as 0; all the others stay when written as 1. */
#define CLEAR(flags) (UEINTX = (uint8_t)~(flags))

struct usb usb;

/* The control endpoint: what goes on after the request was read. */
static struct {
    enum { QUIET, ANSWERING, WAITING_FOR_CODING, ACKNOWLEDGING } stage;
    uint8_t new_address;
    uint8_t small[2]; /* answers that are made */
    uint8_t coding[CODING_BYTES];
    const uint8_t *serial;
} control;

/* --- interrupts ---------------------------------------------------------------------------------------------------- */

/* A packet or a request has come. The flags stay set until usb_poll() is done with it: the interrupt is masked. */
ISR(USB_COM_vect)
{
    uint16_t low = TCNT1; /* first of all: it is the stamp */
    AWAKE |= _BV(0);
    uint8_t was = UENUM;
    UENUM = USB_OUT;
    if (UEIENX && (UEINTX & _BV(RXOUTI))) {
        UEIENX = 0;
        usb.packet_tick = tick_of(low);
        usb.has_packet = 1;
    }
    UENUM = EP_CONTROL;
    if (UEINTX & _BV(RXSTPI))
        UEIENX = 0;
    UENUM = was;
}

static inline void listen(void)
{
    UENUM = EP_CONTROL;
    UECONX = _BV(EPEN);
    UECFG0X = CONTROL_TYPE;
    UECFG1X = SIZE_64 | _BV(ALLOC);
    UEIENX = _BV(RXSTPE);
}

/* The host has reset the bus: the part has forgotten the other endpoints and its address. */
ISR(USB_GEN_vect)
{
    AWAKE |= _BV(0);
    uint8_t was = UENUM;
    uint8_t what = UDINT;
    UDINT = (uint8_t)~what;
    if (what & _BV(EORSTI)) {
        listen();
        usb.has_packet = 0;
        usb.was_reset = 1;
    }
    if (what & _BV(SUSPI))
        usb.was_closed = 1; /* the host sleeps, or the plug is out */
    UENUM = was;
}

/* --- requests ------------------------------------------------------------------------------------------------------ */

static void stall(void)
{
    UECONX = _BV(STALLRQ) | _BV(EPEN);
    control.stage = QUIET;
}

static void acknowledge(void)
{
    CLEAR(_BV(TXINI)); /* an empty packet */
    control.stage = ACKNOWLEDGING;
}

static void answer(const struct request *r, uint8_t source, const void *from, uint8_t n_bytes)
{
    if (!r->length) { /* nothing of it is wanted */
        acknowledge();
        return;
    }
    reply.source = source;
    reply.from = from;
    reply.at = 0;
    reply.is_short = n_bytes < r->length;
    reply.n_bytes = reply.is_short ? n_bytes : (uint8_t)r->length;
    control.stage = ANSWERING;
}

static void answer_small(const struct request *r, uint8_t first, uint8_t n_bytes)
{
    control.small[0] = first;
    control.small[1] = 0;
    answer(r, FROM_RAM, control.small, n_bytes);
}

static void describe(const struct request *r)
{
    uint8_t index = (uint8_t)r->value;
    switch (r->value >> 8) {
    case DEVICE:
        answer(r, FROM_FLASH, device_descriptor, sizeof device_descriptor);
        return;
    case CONFIGURATION:
        answer(r, FROM_FLASH, configuration_descriptor, sizeof configuration_descriptor);
        return;
    case STRING:
        if (index == STRING_LANGUAGES)
            answer(r, FROM_FLASH, languages_descriptor, sizeof languages_descriptor);
        else if (index == STRING_MAKER)
            answer(r, TEXT_FROM_FLASH, maker, 2 * sizeof maker);
        else if (index == STRING_PRODUCT)
            answer(r, TEXT_FROM_FLASH, product, 2 * sizeof product);
        else if (index == STRING_SERIAL)
            answer(r, SERIAL_NUMBER, control.serial, 34);
        else
            stall();
        return;
    default:
        stall(); /* no device_qualifier: this part knows full speed alone */
    }
}

static void set_up_endpoint(uint8_t number, uint8_t type, uint8_t size)
{
    UENUM = number;
    UECONX = _BV(EPEN);
    UECFG0X = type;
    UECFG1X = size | _BV(ALLOC);
    UECONX = _BV(EPEN) | _BV(RSTDT);
}

/* Memory is given out in the order of the numbers. */
static void configure(uint8_t number)
{
    usb.was_closed |= usb.is_open;
    usb.is_open = 0;
    usb.is_configured = number;
    usb.has_packet = 0;
    if (number) {
        set_up_endpoint(USB_NOTIFY, INTERRUPT_IN_TYPE, SIZE_8);
        set_up_endpoint(USB_OUT, BULK_OUT_TYPE, SIZE_64);
        set_up_endpoint(USB_IN, BULK_IN_TYPE, SIZE_64);
        UERST = _BV(USB_NOTIFY) | _BV(USB_OUT) | _BV(USB_IN);
        UERST = 0;
        UENUM = USB_OUT;
        UEIENX = _BV(RXOUTE);
    } else {
        for (uint8_t k = USB_NOTIFY; k <= USB_IN; k++) {
            UENUM = k;
            UEIENX = 0;
            UECONX = 0;
        }
    }
    UENUM = EP_CONTROL;
}

/* Halting an endpoint, or letting it go on. Only the data endpoints know it. */
static void halt(const struct request *r, uint8_t is_set)
{
    uint8_t number = r->index & 0x7F;
    if (r->value || number > USB_IN || !usb.is_configured) {
        stall();
        return;
    }
    if (number != EP_CONTROL) {
        UENUM = number;
        UECONX = is_set ? _BV(STALLRQ) | _BV(EPEN) : _BV(STALLRQC) | _BV(RSTDT) | _BV(EPEN);
        UENUM = EP_CONTROL;
    }
    acknowledge();
}

static void tell_status(const struct request *r)
{
    uint8_t status = 0;
    if ((r->type & RECIPIENT) == TO_ENDPOINT) {
        uint8_t number = r->index & 0x7F;
        if (number > USB_IN) {
            stall();
            return;
        }
        UENUM = number;
        status = UECONX & _BV(STALLRQ) ? 1 : 0;
        UENUM = EP_CONTROL;
    }
    answer_small(r, status, 2);
}

static void set_line_state(uint8_t is_open)
{
    if (usb.is_open && !is_open)
        usb.was_closed = 1;
    usb.is_open = is_open;
}

static void take_standard(const struct request *r)
{
    switch (r->what) {
    case GET_STATUS:
        tell_status(r);
        return;
    case CLEAR_FEATURE:
    case SET_FEATURE:
        if ((r->type & RECIPIENT) == TO_ENDPOINT)
            halt(r, r->what == SET_FEATURE);
        else
            stall();
        return;
    case SET_ADDRESS:
        control.new_address = r->value & 0x7F;
        UDADDR = control.new_address; /* ADDEN follows when the host has heard of it */
        acknowledge();
        return;
    case GET_DESCRIPTOR:
        describe(r);
        return;
    case GET_CONFIGURATION:
        answer_small(r, usb.is_configured, 1);
        return;
    case SET_CONFIGURATION:
        if (r->value > 1) {
            stall();
            return;
        }
        configure((uint8_t)r->value);
        acknowledge();
        return;
    case GET_INTERFACE:
        answer_small(r, 0, 1);
        return;
    case SET_INTERFACE:
        if (r->value)
            stall();
        else
            acknowledge();
        return;
    default:
        stall();
    }
}

static void take_class(const struct request *r)
{
    switch (r->what) {
    case SET_LINE_CODING:
        if (r->length == CODING_BYTES)
            control.stage = WAITING_FOR_CODING;
        else
            stall();
        return;
    case GET_LINE_CODING:
        answer(r, FROM_RAM, control.coding, CODING_BYTES);
        return;
    case SET_CONTROL_LINE_STATE:
        acknowledge();
        if (usb.is_open && !(r->value & DTR) && is_touch(control.coding))
            enter_bootloader();
        set_line_state(r->value & DTR);
        return;
    default:
        stall();
    }
}

/* --- a packet at a time -------------------------------------------------------------------------------------------- */

static void take_request(void)
{
    struct request r;
    for (uint8_t *to = (uint8_t *)&r, k = 0; k < sizeof r; k++)
        to[k] = UEDATX;
    control.stage = QUIET;
    control.new_address = 0;
    CLEAR(_BV(RXSTPI));
    if ((r.type & TYPE) == 0)
        take_standard(&r);
    else if ((r.type & TYPE) == CLASS_TYPE)
        take_class(&r);
    else
        stall();
    UEIENX = _BV(RXSTPE);
}

static void send_answer(void)
{
    uint8_t n = 0;
    if (!reply.n_bytes && !reply.is_short)
        return; /* all is sent: the host's empty packet will end it */
    while (n < USB_CONTROL_BYTES && reply.at < reply.n_bytes) {
        UEDATX = next_byte();
        n++;
    }
    if (reply.at == reply.n_bytes) {
        reply.is_short = reply.is_short && n == USB_CONTROL_BYTES;
        reply.at = reply.n_bytes = 0;
    }
    CLEAR(_BV(TXINI));
}

static void take_coding(void)
{
    for (uint8_t k = 0; k < CODING_BYTES; k++)
        control.coding[k] = UEDATX;
    CLEAR(_BV(RXOUTI));
    acknowledge();
}

void usb_poll(void)
{
    if (usb.was_reset) {
        usb.was_reset = 0;
        control.stage = QUIET;
        usb.is_configured = 0;
        usb.is_open = 0;
        usb.was_closed = 1;
    }
    if (USBSTA & _BV(VBUS)) {
        UDCON = 0; /* attached, at full speed */
    } else if (!(UDCON & _BV(DETACH))) {
        UDCON = _BV(DETACH);
        usb.was_reset = 1; /* as good as */
    }
    UENUM = EP_CONTROL;
    uint8_t flags = UEINTX;
    if (flags & _BV(RXSTPI)) {
        take_request();
    } else if (control.stage == ANSWERING) {
        if (flags & _BV(RXOUTI)) {
            CLEAR(_BV(RXOUTI)); /* the host has what it wanted */
            control.stage = QUIET;
        } else if (flags & _BV(TXINI)) {
            send_answer();
        }
    } else if (control.stage == WAITING_FOR_CODING) {
        if (flags & _BV(RXOUTI))
            take_coding();
    } else if (control.stage == ACKNOWLEDGING && (flags & _BV(TXINI))) {
        if (control.new_address)
            UDADDR = control.new_address | _BV(ADDEN);
        control.stage = QUIET;
    } else if (flags & _BV(RXOUTI)) {
        CLEAR(_BV(RXOUTI));
    }
}

uint8_t usb_is_busy(void)
{
    return control.stage != QUIET || usb.was_reset;
}

/* --- start --------------------------------------------------------------------------------------------------------- */

void usb_off(void)
{
    UDIEN = 0;
    UDCON = _BV(DETACH);
    USBCON = _BV(FRZCLK);
    PLLCSR = 0;
}

/* The order is that of the data sheet. The PLL makes 48 MHz of the crystal's 16. */
void usb_start(const uint8_t *serial)
{
    control.serial = serial;
    UHWCON = _BV(UVREGE);
    PLLFRQ = _BV(PDIV2);
    PLLCSR = _BV(PINDIV) | _BV(PLLE);
    while (!(PLLCSR & _BV(PLOCK)))
        ;
    USBCON = _BV(USBE) | _BV(FRZCLK);
    USBCON = _BV(USBE) | _BV(OTGPADE);
    UDINT = 0;
    UDIEN = _BV(EORSTE) | _BV(SUSPE);
}
