/* The USB device of an ATmega32U4 as a serial line: attaching, the control endpoint, and the registers of the two data
 * endpoints. Written from the part's data sheet (7766), chapters 21 and 22, USB 2.0 chapter 9 and CDC/PSTN 1.2.
 *
 * The interrupts only stamp and take note; all else is done by usb_poll(), a packet at a time, so that neither the tone
 * nor the core ever waits for the host.
 */
#ifndef RIG_USB_H
#define RIG_USB_H

#include <stdint.h>

#include <avr/io.h>

/* Endpoints and their sizes. No bank is doubled: then a packet is only accepted when the one before was read, and its
 * interrupt comes when it arrives. */
#define USB_NOTIFY 1
#define USB_OUT 2
#define USB_IN 3
#define USB_CONTROL_BYTES 64
#define USB_NOTIFY_BYTES 8
#define USB_DATA_BYTES 64

struct usb {
    uint32_t packet_tick;        /* when the packet that waits in USB_OUT had arrived */
    volatile uint8_t has_packet; /* it waits */
    volatile uint8_t was_reset;  /* by the host */
    uint8_t is_configured;
    uint8_t is_open;    /* a program on the host holds the port (DTR) */
    volatile uint8_t was_closed; /* the host has gone away, whatever the way; its reader clears it */
};
extern struct usb usb;

/* Everything off, as after a reset: a bootloader may have left it on. */
void usb_off(void);

/* Switches the device on. `serial` are its 16 hexadecimal digits as 8 bytes, lowest first, which stay there. */
void usb_start(const uint8_t *serial);

/* Does what the host asked for. To be called all the time. */
void usb_poll(void);

/* Whether the host waits for the next part of an answer. */
uint8_t usb_is_busy(void);

/* The next byte of the packet in USB_OUT; only after usb_has_byte(). Both select the endpoint. */
static inline uint8_t usb_has_byte(void)
{
    UENUM = USB_OUT;
    return UEINTX & _BV(RWAL);
}

static inline uint8_t usb_byte(void)
{
    return UEDATX;
}

/* Gives the bank back to the host, and lets the interrupt tell of the next packet. */
static inline void usb_next_packet(void)
{
    UENUM = USB_OUT;
    usb.has_packet = 0;
    UEINTX = (uint8_t)~(_BV(FIFOCON) | _BV(RXOUTI) | _BV(NAKOUTI));
    UEIENX = _BV(RXOUTE);
}

/* Whether USB_IN is empty, so that a packet may be written; selects the endpoint. */
static inline uint8_t usb_may_send(void)
{
    UENUM = USB_IN;
    return usb.is_configured && (UEINTX & _BV(TXINI));
}

static inline void usb_put(uint8_t byte)
{
    UEDATX = byte;
}

/* The packet goes with the host's next question. RXOUTI has another meaning here (KILLBK): it must be written as 0. */
static inline void usb_send(void)
{
    UENUM = USB_IN;
    UEINTX = (uint8_t)~(_BV(FIFOCON) | _BV(TXINI) | _BV(NAKINI) | _BV(RXOUTI));
}

#endif
