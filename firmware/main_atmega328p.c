/* The port for boards with an ATmega328P at 16 MHz: Arduino Uno, Nano and their like.
 *
 *   D0, D1   serial line          USART0
 *   D8       capture input        ICP1    wire it to D10 for the self-test; has a pull-up
 *   D10      pulse                OC1B    its edges are made by the timer, not by the program
 *   D11      tone                 OC2A    PWM of 62.5 kHz, 8 bits, a new level every second period
 *   D13      LED                  PB5
 *
 * avr_timer1.h has the time, the tone and the pulse: timer 1 counts ticks, timer 2 makes the PWM.
 */
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/sleep.h>
#include <avr/wdt.h>
#include <util/atomic.h>

#include "core.h"
#include "frame.h"
#include "port.h"

#if F_CPU % (8ul * RIG_BAUD_RATE) != 0
#error "the baud rate cannot be made exactly"
#endif
#ifndef RIG_BUILD
#error "RIG_BUILD names the build"
#endif

#define CAPTURE PB0
#define PULSE PB2
#define TONE PB3
#define LED PB5

#define TONE_LEVEL OCR2A
#define PWM_FLAGS TIFR2
#define PWM_OVERFLOW _BV(TOV2)
#define CAPTURE_IS_HIGH() (PINB & _BV(CAPTURE))
#define LIGHT() (PORTB |= _BV(LED))
#define DARK() (PORTB &= (uint8_t)~_BV(LED))

#include "avr_board.h"
#include "avr_timer1.h"

#define BYTE_NS (uint16_t)(10ull * 1000000000ull / RIG_BAUD_RATE)

static struct rig_receiver receiver;
static struct {
    uint8_t bytes[RIG_MAX_FRAME_BYTES];
    uint8_t at;
    volatile uint8_t n; /* 0: nothing is being sent */
    uint8_t was_used;
} sender;

/* --- the serial line ----------------------------------------------------------------------------------------------- */

ISR(USART_RX_vect)
{
    uint16_t low = TCNT1; /* first of all: it may become the stamp */
    AWAKE |= _BV(0);
    uint8_t errors = UCSR0A & (_BV(FE0) | _BV(DOR0));
    uint8_t byte = UDR0;
    if (errors)
        rig_receive_spoilt(&receiver);
    else if (rig_receive(&receiver, byte))
        receiver.ready_tick = tick_of(low);
}

ISR(USART_UDRE_vect)
{
    AWAKE |= _BV(0);
    UCSR0A = _BV(U2X0) | _BV(TXC0); /* clears TXC0: it shall tell of the byte that goes now */
    uint8_t at = sender.at;
    UDR0 = sender.bytes[at++];
    sender.at = at;
    if (at == sender.n) {
        sender.n = 0;
        UCSR0B &= (uint8_t)~_BV(UDRIE0);
    }
}

uint8_t *port_frame_buffer(void)
{
    return sender.n ? 0 : sender.bytes;
}

static void start_sending(uint8_t first, uint8_t n_bytes)
{
    sender.was_used = 1;
    sender.at = first;
    sender.n = n_bytes;
    UCSR0B |= _BV(UDRIE0); /* with interrupts off: they write it too, and an sbi cannot reach it */
}

void port_send(uint8_t n_bytes)
{
    ATOMIC_BLOCK(ATOMIC_RESTORESTATE) { start_sending(0, n_bytes); }
}

/* Interrupts stay on until four ticks before: with them off for longer, a sample could come late. */
uint8_t port_send_at(uint32_t tick, uint8_t n_bytes)
{
    if (sender.n || (sender.was_used && !(UCSR0A & _BV(TXC0))))
        return 0;
    for (;;) {
        cli();
        int16_t left = (int16_t)((uint16_t)tick - TCNT1);
        if (left <= 4)
            break;
        sei();
        __asm__ volatile("nop\n\tnop"); /* room for an interrupt: the one instruction after sei gives none for sure */
    }
    if ((int16_t)((uint16_t)tick - TCNT1) <= 0) {
        sei();
        return 0;
    }
    while ((int8_t)((uint8_t)tick - TCNT1L) > 0)
        ;
    UDR0 = sender.bytes[0]; /* within 2 ticks, never before */
    UCSR0A = _BV(U2X0) | _BV(TXC0);
    start_sending(1, n_bytes);
    sei();
    return 1;
}

/* --- start --------------------------------------------------------------------------------------------------------- */

static void start_pins(void)
{
    PORTB = (uint8_t)~(_BV(PULSE) | _BV(TONE) | _BV(LED)); /* what is not used is held by its pull-up */
    DDRB = _BV(PULSE) | _BV(TONE) | _BV(LED);
    PORTC = 0xFF;
    PORTD = 0xFF;
}

static void start_tone(void)
{
    TCCR2A = _BV(COM2A1) | _BV(WGM21) | _BV(WGM20);
    TCCR2B = _BV(CS20);
    raise_tone();
    TCCR2B = 0;
}

/* Both timers from 0 at the same time, to a few cycles that are the same at every start. */
static void start_timers(void)
{
    ready_timer1();
    TCNT2 = 0;
    uint8_t start_1 = _BV(ICES1) | _BV(CS11), start_2 = _BV(CS20);
    GTCCR = _BV(TSM) | _BV(PSRSYNC);
    __asm__ volatile("sts %0, %2\n\tsts %1, %3\n\tout %4, __zero_reg__"
                     :
                     : "n"(_SFR_MEM_ADDR(TCCR1B)), "n"(_SFR_MEM_ADDR(TCCR2B)), "r"(start_1), "r"(start_2),
                       "I"(_SFR_IO_ADDR(GTCCR)));
}

static void start_line(void)
{
    UBRR0 = F_CPU / 8ul / RIG_BAUD_RATE - 1ul;
    UCSR0A = _BV(U2X0);
    UCSR0C = _BV(UCSZ01) | _BV(UCSZ00);
    UCSR0B = _BV(RXEN0) | _BV(TXEN0) | _BV(RXCIE0);
}

/* While it does not listen, bytes are lost in the receiver, which tells: what they belonged to is no frame. */
static void listen(uint8_t is_listening)
{
    ATOMIC_BLOCK(ATOMIC_RESTORESTATE)
    {
        uint8_t control = UCSR0B & (uint8_t)~_BV(RXCIE0);
        UCSR0B = is_listening ? control | _BV(RXCIE0) : control;
    }
}

static void take_frame(void)
{
    uint8_t n_bytes = receiver.n_ready;
    if (!n_bytes)
        return;
    if (rig_core_is_playing())
        listen(0); /* the host waits for the answer; who does not shall not take time from the tone */
    uint8_t *bytes = receiver.bytes[receiver.filling ^ 1]; /* does not change hands before n_ready is 0 */
    uint8_t n_body = rig_unframe(bytes, n_bytes);
    uint16_t n_bad;
    ATOMIC_BLOCK(ATOMIC_RESTORESTATE)
    {
        if (!n_body)
            receiver.n_bad++;
        n_bad = receiver.n_bad;
    }
    if (n_body)
        rig_core_take(bytes, n_body, receiver.ready_tick, n_bad);
    receiver.n_ready = 0;
}

/* The long check is made with interrupts on. */
static void rest(void)
{
    if (!rig_core_is_idle() || receiver.n_ready)
        return;
    sleep_unless_awake();
}

int main(void)
{
    wdt_enable(WDTO_500MS);
    set_canary();
    start_pins();
    rig_core_start(read_uid(), "atmega328p", RIG_BUILD, BYTE_NS);
    start_tone();
    start_timers();
    start_line();
    set_sleep_mode(SLEEP_MODE_IDLE);
    sei();
    for (;;) {
        port_alive();
        AWAKE = 0;
        listen(!rig_core_is_pressed());
        rig_core_poll();
        if (rig_core_is_free())
            take_frame();
        rest();
    }
}
