/* The port for boards with an ATmega32U4 at 16 MHz: Arduino Leonardo and Micro, SparkFun Pro Micro and their like.
 *
 *   USB                            serial line    usb.c
 *   D4             PD4  ICP1       capture input  wire it to D10 for the self-test; has a pull-up
 *   D10            PB6  OC1B       pulse          its edges are made by the timer, not by the program
 *   D3             PD0  OC0B       tone           PWM of 62.5 kHz, 8 bits, a new level every second period
 *   D13 (Leonardo) PC7             LED
 *   RX LED         PB0, inverted   LED            on the Pro Micro, which has no other
 *
 * avr_timer1.h has the time, the tone and the pulse: timer 1 counts ticks, timer 0 makes the PWM.
 */
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/sleep.h>
#include <avr/wdt.h>

#include "core.h"
#include "frame.h"
#include "port.h"
#include "usb.h"

#define CAPTURE PD4
#define PULSE PB6
#define TONE PD0
#define LED PC7
#define RX_LED PB0

#define TONE_LEVEL OCR0B
#define PWM_FLAGS TIFR0
#define PWM_OVERFLOW _BV(TOV0)
#define CAPTURE_IS_HIGH() (PIND & _BV(CAPTURE))
#define LIGHT() (PORTC |= _BV(LED), PORTB &= (uint8_t)~_BV(RX_LED))
#define DARK() (PORTC &= (uint8_t)~_BV(LED), PORTB |= _BV(RX_LED))

#include "avr_board.h"
#include "avr_timer1.h"

#ifndef RIG_BUILD
#error "RIG_BUILD names the build"
#endif

static uint64_t uid;

/* --- the line ------------------------------------------------------------------------------------------------------ */

/* One stretch between two delimiters. While it waits the packet behind it waits in the USB controller, and the host with
 * the one after that: nothing is lost, and nothing has to be stored. */
static struct {
    uint8_t bytes[RIG_STUFFED_BYTES];
    uint8_t n; /* more than RIG_STUFFED_BYTES: too long */
    uint8_t is_whole;
    uint16_t n_bad;
    uint32_t tick; /* when the packet with its closing delimiter had arrived */
} stretch;

static struct {
    uint8_t bytes[RIG_MAX_FRAME_BYTES];
    uint8_t at;
    uint8_t n; /* 0: nothing is being sent */
} sender;

static void take_bytes(void)
{
    if (!usb.has_packet || stretch.is_whole)
        return;
    while (usb_has_byte()) {
        uint8_t byte = usb_byte();
        if (byte) {
            if (stretch.n < RIG_STUFFED_BYTES)
                stretch.bytes[stretch.n] = byte;
            if (stretch.n <= RIG_STUFFED_BYTES)
                stretch.n++;
        } else if (stretch.n > RIG_STUFFED_BYTES) {
            stretch.n_bad++;
            stretch.n = 0;
        } else if (stretch.n) {
            stretch.is_whole = 1;
            stretch.tick = usb.packet_tick;
            return; /* what is left of the packet waits */
        }
    }
    usb_next_packet();
}

static void take_frame(void)
{
    if (!stretch.is_whole)
        return;
    uint8_t n_body = rig_unframe(stretch.bytes, stretch.n);
    if (n_body)
        rig_core_take(stretch.bytes, n_body, stretch.tick, stretch.n_bad);
    else
        stretch.n_bad++;
    stretch.n = 0;
    stretch.is_whole = 0;
}

/* A full packet would have to be followed by an empty one: so none is full. */
static uint8_t fill_packet(void)
{
    uint8_t at = sender.at, last = sender.n;
    if (last - at > USB_DATA_BYTES - 1)
        last = (uint8_t)(at + USB_DATA_BYTES - 1);
    while (at < last)
        usb_put(sender.bytes[at++]);
    return at;
}

static void send_some(void)
{
    if (!usb.is_open)
        sender.n = 0; /* nobody is there to read it, and the next one must not */
    if (!sender.n || !usb_may_send())
        return;
    sender.at = fill_packet();
    if (sender.at == sender.n)
        sender.n = 0;
    usb_send();
}

uint8_t *port_frame_buffer(void)
{
    send_some();
    return sender.n ? 0 : sender.bytes;
}

void port_send(uint8_t n_bytes)
{
    sender.at = 0;
    sender.n = n_bytes;
    send_some();
}

/* The packet lies ready before, and is given to the controller at the tick, never before it. After it, where interrupts
 * came in between, which is no reason to refuse: the host takes the packet when it asks next, up to a frame later, so that
 * the stamp is a bound in any case. */
uint8_t port_send_at(uint32_t tick, uint8_t n_bytes)
{
    if (!usb.is_open)
        return 1;
    if (sender.n || !usb_may_send())
        return 0;
    sender.at = 0;
    sender.n = n_bytes;
    sender.at = fill_packet();
    if (sender.at == n_bytes)
        sender.n = 0;
    while ((int32_t)(tick - port_tick()) > 0)
        ;
    usb_send();
    return 1;
}

/* The program on the host has closed the port, or the host is gone: what it had armed must not go on without it. */
static void safe_when_closed(void)
{
    static const uint8_t safe[2] = {RIG_ID_SAFE, 0};
    if (!usb.was_closed || !rig_core_is_free())
        return;
    usb.was_closed = 0;
    stretch.n = 0;
    stretch.is_whole = 0;
    rig_core_take(safe, sizeof safe, port_tick(), stretch.n_bad);
}

/* --- start --------------------------------------------------------------------------------------------------------- */

static void start_pins(void)
{
    PORTB = (uint8_t)~_BV(PULSE); /* what is not used is held by its pull-up, the inverted LED is dark */
    DDRB = _BV(PULSE) | _BV(RX_LED);
    PORTC = (uint8_t)~_BV(LED);
    DDRC = _BV(LED);
    PORTD = (uint8_t)~_BV(TONE);
    DDRD = _BV(TONE);
    PORTE = 0xFF;
    PORTF = 0xFF;
}

/* A bootloader may have been at work before: what it used, and is not set below, is switched off. */
static void quiet_parts(void)
{
    usb_off();
    TIMSK0 = TIMSK1 = TIMSK3 = 0;
    TCCR0A = TCCR0B = TCCR1A = TCCR1B = TCCR3B = 0;
    UCSR1B = 0;
    SPCR = 0;
}

static void start_tone(void)
{
    TCCR0A = _BV(COM0B1) | _BV(WGM01) | _BV(WGM00);
    TCCR0B = _BV(CS00);
    raise_tone();
    TCCR0B = 0;
}

/* Both timers from 0 at the same time, to a few cycles that are the same at every start. */
static void start_timers(void)
{
    ready_timer1();
    TCNT0 = 0;
    uint8_t start_1 = _BV(ICES1) | _BV(CS11), start_0 = _BV(CS00);
    GTCCR = _BV(TSM) | _BV(PSRSYNC);
    __asm__ volatile("sts %0, %2\n\tout %1, %3\n\tout %4, __zero_reg__"
                     :
                     : "n"(_SFR_MEM_ADDR(TCCR1B)), "I"(_SFR_IO_ADDR(TCCR0B)), "r"(start_1), "r"(start_0),
                       "I"(_SFR_IO_ADDR(GTCCR)));
}

/* The long check is made with interrupts on. The plug is looked at after each: timer 1 overflows every 33 ms. */
static void rest(void)
{
    if (!rig_core_is_idle() || stretch.is_whole || usb.has_packet || sender.n || usb.was_closed || usb_is_busy())
        return;
    sleep_unless_awake();
}

int main(void)
{
    wdt_enable(WDTO_500MS);
    set_canary();
    start_pins();
    quiet_parts();
    uid = read_uid();
    rig_core_start(uid, "atmega32u4", RIG_BUILD, 0);
    start_tone();
    start_timers();
    usb_start((const uint8_t *)&uid);
    set_sleep_mode(SLEEP_MODE_IDLE);
    sei();
    for (;;) {
        port_alive();
        AWAKE = 0;
        usb_poll();
        send_some();
        safe_when_closed();
        rig_core_poll();
        if (rig_core_is_free()) {
            take_bytes();
            take_frame();
        }
        rest();
    }
}
