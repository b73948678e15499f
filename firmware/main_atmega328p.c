/* The port for boards with an ATmega328P at 16 MHz: Arduino Uno, Nano and their like.
 *
 *   D0, D1   serial line          USART0
 *   D8       capture input        ICP1    wire it to D10 for the self-test; has a pull-up
 *   D10      pulse                OC1B    its edges are made by the timer, not by the program
 *   D11      tone                 OC2A    PWM of 62.5 kHz, 8 bits, a new level every second period
 *   D13      LED                  PB5
 *
 * Timer 1 counts ticks (16 MHz / 8) and never stops. Timer 2 makes the PWM; it starts with timer 1, so that every 32nd
 * tick is the start of one of its periods. The compare interrupt A comes 32 ticks before each sample. It writes the
 * level into OCR2A, which the timer takes over when the next period starts: 256 cycles are time enough for any other
 * interrupt to end. So neither the pulse nor the tone moves by a cycle, whatever the serial line does.
 */
#include <avr/eeprom.h>
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/sleep.h>
#include <avr/wdt.h>
#include <util/atomic.h>
#include <util/delay_basic.h>

#include "core.h"
#include "frame.h"
#include "port.h"

#if F_CPU != 16000000ul
#error "the tick and sample rates need a 16 MHz clock"
#endif
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

#define HALF_SAMPLE_TICKS (RIG_TICKS_A_SAMPLE / 2u)
#define PULSE_AT_MATCH_SETS (_BV(COM1B1) | _BV(COM1B0))
#define PULSE_AT_MATCH_CLEARS _BV(COM1B1)
#define BYTE_NS (uint16_t)(10ull * 1000000000ull / RIG_BAUD_RATE)

/* Set by every interrupt, cleared before the main loop looks around: nothing is slept over. */
#define AWAKE GPIOR0

/* The upper 16 bits of the tick. These two registers have no other use, are 0 after a reset, and take one cycle. */
#define TICK_HIGH_LOW GPIOR1
#define TICK_HIGH_HIGH GPIOR2

struct rig_player rig_player;

static struct rig_receiver receiver;
static struct {
    uint8_t bytes[RIG_MAX_FRAME_BYTES];
    uint8_t at;
    volatile uint8_t n; /* 0: nothing is being sent */
    uint8_t was_used;
} sender;
static uint8_t next_level = RIG_MIDDLE;
static uint8_t next_step;

/* Right after the static data. The stack grows towards it: as long as it is whole, memory is enough. */
#define CANARY_BYTES 8u
#define CANARY 0xC5
extern uint8_t _end[];

/* --- time ---------------------------------------------------------------------------------------------------------- */

/* The tick whose lower half was read a moment ago; with interrupts off. An overflow that is not counted yet is told by its flag, and by a low half that starts anew. */
static inline uint32_t tick_of(uint16_t low)
{
    uint16_t high = (uint16_t)(TICK_HIGH_LOW | (TICK_HIGH_HIGH << 8));
    if ((TIFR1 & _BV(TOV1)) && low < 0x8000)
        high++;
    return ((uint32_t)high << 16) | low;
}

static inline uint32_t tick_locked(void)
{
    return tick_of(TCNT1);
}

uint32_t port_tick(void)
{
    uint32_t tick;
    ATOMIC_BLOCK(ATOMIC_RESTORESTATE) { tick = tick_locked(); }
    return tick;
}

ISR(TIMER1_OVF_vect)
{
    AWAKE |= _BV(0);
    if (!++TICK_HIGH_LOW)
        TICK_HIGH_HIGH++;
}

/* --- tone and pulse ------------------------------------------------------------------------------------------------ */

ISR(TIMER1_COMPA_vect)
{
    OCR2A = next_level;
    AWAKE |= _BV(0);
    uint16_t match = OCR1A; /* the sample starts half a sample after it; the next one a whole sample later */
    uint8_t what = next_step;
    OCR1A = match + RIG_TICKS_A_SAMPLE;
    /* Too late for the next match, which would then come a whole round of the timer later: all is cut, not moved. */
    if ((uint16_t)(TCNT1 - match) >= RIG_TICKS_A_SAMPLE - 1u) {
        rig_player.starved = 1;
        TIMSK1 &= (uint8_t)~_BV(OCIE1A);
        return;
    }
    if (what) {
        if (what & RIG_STEP_START) {
            uint32_t tick = tick_locked();
            rig_player.start_tick = tick + (uint16_t)(match + 1u + HALF_SAMPLE_TICKS - (uint16_t)tick);
            rig_player.n_started++;
        }
        if (what & RIG_STEP_PULSE_ON)
            PORTB |= _BV(LED);
        if (what & RIG_STEP_PULSE_OFF)
            PORTB &= (uint8_t)~_BV(LED);
        if (what & RIG_STEP_END)
            rig_player.n_ended++;
        if (what & RIG_STEP_LAST) {
            TIMSK1 &= (uint8_t)~_BV(OCIE1A);
            next_step = 0;
            return;
        }
    }
    next_step = what = rig_player_step(&rig_player, &next_level);
    if (what & (RIG_STEP_PULSE_ON | RIG_STEP_PULSE_OFF)) {
        OCR1B = match + RIG_TICKS_A_SAMPLE + HALF_SAMPLE_TICKS;
        TCCR1A = what & RIG_STEP_PULSE_ON ? PULSE_AT_MATCH_SETS : PULSE_AT_MATCH_CLEARS;
    }
}

uint32_t port_sample_tick(uint32_t tick)
{
    return (tick + RIG_TICKS_A_SAMPLE - 1u) & ~(uint32_t)(RIG_TICKS_A_SAMPLE - 1u);
}

void port_play(uint32_t first_tick)
{
    ATOMIC_BLOCK(ATOMIC_RESTORESTATE)
    {
        /* The first compare match, with room to set it up. Samples start at multiples of 64 ticks, matches between. */
        uint32_t match = port_sample_tick(tick_locked() + 64u) + HALF_SAMPLE_TICKS;
        OCR1A = (uint16_t)(match - 1u); /* what a compare does shows one tick after the counts are equal */
        /* The step in that interrupt decides on the sample one and a half samples later. */
        rig_player.countdown = (first_tick - match - 3u * HALF_SAMPLE_TICKS) / RIG_TICKS_A_SAMPLE + 1u;
        next_level = RIG_MIDDLE;
        next_step = 0;
        TIFR1 = _BV(OCF1A);
        TIMSK1 |= _BV(OCIE1A);
    }
}

/* Takes the pulse's output low now, through the compare unit, which would keep it high until the next match. */
static inline void pulse_low(void)
{
    TCCR1A = PULSE_AT_MATCH_CLEARS;
    TCCR1C = _BV(FOC1B);
}

void port_stop(void)
{
    ATOMIC_BLOCK(ATOMIC_RESTORESTATE)
    {
        TIMSK1 &= (uint8_t)~_BV(OCIE1A);
        OCR2A = RIG_MIDDLE;
        pulse_low();
        PORTB &= (uint8_t)~_BV(LED);
        next_level = RIG_MIDDLE;
        next_step = 0;
    }
}

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

/* --- self-test ----------------------------------------------------------------------------------------------------- */

static uint8_t memory_is_good(void)
{
    for (uint8_t pattern = 0x55, round = 0; round < 2; round++, pattern = 0xAA) {
        volatile int8_t *ring = rig_player.ring;
        for (uint8_t i = 0; i < RIG_RING_SAMPLES; i++)
            ring[i] = (int8_t)(pattern ^ i);
        for (uint8_t i = 0; i < RIG_RING_SAMPLES; i++)
            if (ring[i] != (int8_t)(pattern ^ i))
                return 0;
    }
    for (uint8_t i = 0; i < CANARY_BYTES; i++)
        if (_end[i] != CANARY)
            return 0;
    return 1;
}

/* 64 periods of timer 2 are 2048 ticks of timer 1; an interrupt at either end makes some ticks more or less. */
static uint8_t timers_agree(void)
{
    uint32_t first = 0;
    for (uint8_t period = 0; period <= 64; period++) {
        TIFR2 = _BV(TOV2);
        for (uint8_t patience = 255; !(TIFR2 & _BV(TOV2)); patience--)
            if (!patience)
                return 0;
        if (!period)
            first = port_tick();
    }
    uint16_t ticks = (uint16_t)(port_tick() - first);
    return ticks >= 2048 - 16 && ticks <= 2048 + 16;
}

/* The pulse, wired to the capture input, must be captured at the very tick at which the compare unit made it. */
static uint8_t capture_is_good(void)
{
    uint16_t edge;
    ATOMIC_BLOCK(ATOMIC_RESTORESTATE)
    {
        TIFR1 = _BV(ICF1);
        edge = (uint16_t)(TCNT1 + 100u);
        OCR1B = (uint16_t)(edge - 1u);
        TCCR1A = PULSE_AT_MATCH_SETS;
    }
    uint32_t until = port_tick() + 300u;
    while (!(TIFR1 & _BV(ICF1)) && (int32_t)(port_tick() - until) < 0)
        ;
    uint8_t is_good;
    ATOMIC_BLOCK(ATOMIC_RESTORESTATE)
    {
        is_good = (TIFR1 & _BV(ICF1)) && (uint16_t)(ICR1 - edge) <= 1u;
        pulse_low();
    }
    return is_good;
}

uint8_t port_self_test(void)
{
    uint8_t failed = (memory_is_good() ? 0 : 1) | (timers_agree() ? 0 : 2);
    if (PINB & _BV(CAPTURE))
        return failed; /* the pull-up wins: nothing is wired to it */
    return failed | 0x80 | (capture_is_good() ? 0 : 2);
}

/* --- who this is --------------------------------------------------------------------------------------------------- */

/* The part has no serial number. It makes one once: an EEPROM write is timed by an oscillator of its own, which is off
 * by up to 10 % and jitters against the crystal, and timer 1 (not started otherwise yet) measures it to a cycle. */
struct stored_id {
    uint64_t uid;
    uint16_t crc;
};
static struct stored_id stored_id EEMEM;

static uint64_t make_uid(void)
{
    uint64_t uid = 0xCBF29CE484222325ull; /* FNV-1a of the durations */
    TCCR1B = _BV(CS10);
    for (uint8_t i = 0; i < 32; i++) {
        wdt_reset();
        eeprom_write_byte((uint8_t *)&stored_id, i);
        TCNT1 = 0;
        eeprom_busy_wait();
        uint16_t took = TCNT1;
        uid = (uid ^ (took & 0xFF)) * 0x100000001B3ull;
        uid = (uid ^ (took >> 8)) * 0x100000001B3ull;
    }
    TCCR1B = 0;
    TIFR1 = _BV(TOV1);
    return uid;
}

static uint64_t read_uid(void)
{
    uint64_t uid;
    eeprom_read_block(&uid, &stored_id.uid, sizeof uid);
    uint16_t crc = rig_crc16(0xFFFF, (const uint8_t *)&uid, sizeof uid);
    if (uid && crc == eeprom_read_word(&stored_id.crc))
        return uid;
    uid = make_uid();
    crc = rig_crc16(0xFFFF, (const uint8_t *)&uid, sizeof uid);
    eeprom_update_block(&uid, &stored_id.uid, sizeof uid);
    eeprom_update_word(&stored_id.crc, crc);
    return uid;
}

/* --- start --------------------------------------------------------------------------------------------------------- */

/* Before anything else: a watchdog that has just bitten goes on with its shortest time until it is told otherwise. */
static void quiet_watchdog(void) __attribute__((naked, used, section(".init3")));
static void quiet_watchdog(void)
{
    MCUSR = 0;
    wdt_disable();
}

static void start_pins(void)
{
    PORTB = (uint8_t)~(_BV(PULSE) | _BV(TONE) | _BV(LED)); /* what is not used is held by its pull-up */
    DDRB = _BV(PULSE) | _BV(TONE) | _BV(LED);
    PORTC = 0xFF;
    PORTD = 0xFF;
}

/* The tone's output rises to the middle within 32 ms rather than at once: no loud step from the filter behind it. */
static void start_tone(void)
{
    TCCR2A = _BV(COM2A1) | _BV(WGM21) | _BV(WGM20);
    TCCR2B = _BV(CS20);
    for (uint8_t level = 0; level < RIG_MIDDLE; level++) {
        OCR2A = level;
        _delay_loop_2(1000); /* 4000 cycles */
    }
    OCR2A = RIG_MIDDLE;
    _delay_loop_2(256);
    TCCR2B = 0;
}

/* Both timers from 0 at the same time, to a few cycles that are the same at every start. */
static void start_timers(void)
{
    TCCR1A = PULSE_AT_MATCH_CLEARS;
    TCCR1C = _BV(FOC1B);
    TCNT1 = 0;
    TCNT2 = 0;
    TIFR1 = 0xFF;
    TIMSK1 = _BV(TOIE1);
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

void port_alive(void)
{
    wdt_reset();
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

/* Sleeps until the next interrupt, unless one came since the loop began to look around. The last check and the sleep
 * are one: sei lets no interrupt in before the sleep. The long check is made with interrupts on. */
static void rest(void)
{
    if (!rig_core_is_idle() || receiver.n_ready)
        return;
    cli();
    if (!AWAKE) {
        sleep_enable();
        sei();
        sleep_cpu();
        sleep_disable();
    }
    sei();
}

int main(void)
{
    wdt_enable(WDTO_500MS);
    for (uint8_t i = 0; i < CANARY_BYTES; i++)
        _end[i] = CANARY;
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
