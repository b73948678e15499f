/* What the board says of itself on USB: a communication device of the abstract control model, which every system has a
 * driver for. USB 2.0, chapter 9; CDC 1.2, chapter 5; PSTN 1.2, chapter 5. For usb.c alone.
 */
#ifndef RIG_USB_DESCRIPTORS_H
#define RIG_USB_DESCRIPTORS_H

#include <stdint.h>

#include <avr/pgmspace.h>

#include "messages.h"
#include "usb.h"

/* The board keeps the identity under which it was sold and under which every program on it runs. */
#define VENDOR_ID 0x2341
#define PRODUCT_ID 0x8036

#define WORD(value) (uint8_t)((value) & 0xFF), (uint8_t)((value) >> 8)

#define EP_CONTROL 0

enum descriptor_type { DEVICE = 1, CONFIGURATION = 2, STRING = 3, INTERFACE = 4, ENDPOINT = 5, CS_INTERFACE = 0x24 };
enum string_index { STRING_LANGUAGES, STRING_MAKER, STRING_PRODUCT, STRING_SERIAL };

static const uint8_t device_descriptor[18] PROGMEM = {
    18, DEVICE, WORD(0x0200),
    2, 0, 0, /* communication device */
    USB_CONTROL_BYTES, WORD(VENDOR_ID), WORD(PRODUCT_ID),
    WORD(RIG_PROTOCOL_LEVEL << 8), /* the release: known before the first command */
    STRING_MAKER, STRING_PRODUCT, STRING_SERIAL,
    1, /* configuration */
};

#define CONFIGURATION_BYTES 67
static const uint8_t configuration_descriptor[CONFIGURATION_BYTES] PROGMEM = {
    9, CONFIGURATION, WORD(CONFIGURATION_BYTES), 2, 1, 0,
    0x80, 50, /* from the bus, 100 mA */
    /* Interface 0 controls the line. Protocol 0: no modem, so that nobody sends it modem commands. */
    9, INTERFACE, 0, 0, 1, 0x02, 0x02, 0x00, 0,
    5, CS_INTERFACE, 0x00, WORD(0x0110),  /* header */
    4, CS_INTERFACE, 0x02, 0x02,          /* line coding and line state can be set */
    5, CS_INTERFACE, 0x06, 0, 1,          /* interface 1 carries the data of interface 0 */
    5, CS_INTERFACE, 0x01, 0, 1,          /* no call management */
    7, ENDPOINT, 0x80 | USB_NOTIFY, 0x03, WORD(USB_NOTIFY_BYTES), 255,
    /* Interface 1 carries the data. */
    9, INTERFACE, 1, 0, 2, 0x0A, 0x00, 0x00, 0,
    7, ENDPOINT, USB_OUT, 0x02, WORD(USB_DATA_BYTES), 0,
    7, ENDPOINT, 0x80 | USB_IN, 0x02, WORD(USB_DATA_BYTES), 0,
};

static const uint8_t languages_descriptor[4] PROGMEM = {4, STRING, WORD(0x0409)}; /* English */
static const char maker[] PROGMEM = "rig";
static const char product[] PROGMEM = "rig board";

/* UECFG0X and UECFG1X. */
#define CONTROL_TYPE 0x00
#define BULK_OUT_TYPE 0x80
#define BULK_IN_TYPE 0x81
#define INTERRUPT_IN_TYPE 0xC1
#define SIZE_8 0x00
#define SIZE_64 (_BV(EPSIZE1) | _BV(EPSIZE0))

/* bmRequestType and bRequest, USB 2.0 tables 9-2 to 9-4 and PSTN 1.2 table 13. */
#define TO_HOST 0x80
#define TYPE 0x60
#define CLASS_TYPE 0x20
#define RECIPIENT 0x1F
#define TO_ENDPOINT 2
enum { GET_STATUS = 0, CLEAR_FEATURE = 1, SET_FEATURE = 3, SET_ADDRESS = 5, GET_DESCRIPTOR = 6, GET_CONFIGURATION = 8,
       SET_CONFIGURATION = 9, GET_INTERFACE = 10, SET_INTERFACE = 11 };
enum { SET_LINE_CODING = 0x20, GET_LINE_CODING = 0x21, SET_CONTROL_LINE_STATE = 0x22 };
#define DTR 1
#define CODING_BYTES 7

struct request {
    uint8_t type, what;
    uint16_t value, index, length;
};

#endif
