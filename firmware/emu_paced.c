/* The emulated board at the pace of the real clock, behind a pseudo-terminal that a program opens like a board.
 *
 * Its name is the first line on stdout. Ends when its stdin does: nobody can leave one behind. The last line on stdout
 * is `ended RAN_NS CPU_NS BEHIND_NS`: how long it ran, the processor time that took, and the most that it ever was
 * behind the clock.
 *
 * Cycle 0 is the moment of the start, and the map from cycles to CLOCK_MONOTONIC never changes. The board runs in steps
 * up to the present and never ahead of it, so nothing is heard from it before it has happened. Where the machine stood
 * still it comes late and catches up, as fast as the machine can. A byte that the host writes arrives no earlier than
 * it was read here. So stamps bound each other as those of a real board do.
 *
 * The side channel is a Unix socket; everyone who connects is sent lines, and nothing is read from them:
 *
 *   rig-board 1           first; the number changes with the lines
 *   clock CYCLE NS PPB    the board is at CYCLE at NS of CLOCK_MONOTONIC; its clock is PPB parts in 1e9 fast of 16 MHz
 *   (an event as in emu.c)  first those that say how things stand, then as they happen
 *   at CYCLE              everything before that cycle has been told; every few ms
 *   behind CYCLE NS       the board was that much behind the clock when it went on from that cycle
 *
 * One who is more than a megabyte behind is cut off: what is missing must not pass for silence.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "emu.h"

#define STEP_NS 250000ull
#define SLICE (CPU_HZ / 1000) /* while it catches up, the line is served this often */
#define TELL_NS 2000000ull
#define STALL_NS 2000000ull
#define STAMP_SLACK 64 /* a compare match is told of after the instruction that was running */
#define TX_QUEUE 65536u
#define RX_MOST 4096u
#define LOG_BYTES (1u << 20)
#define MOST_CLIENTS 8
#define STANDING 4

static uint64_t start_ns, most_behind_ns;
static long long ppb;

/* --- the clock ----------------------------------------------------------------------------------------------------- */

static uint64_t clock_ns(clockid_t which)
{
    struct timespec now;
    clock_gettime(which, &now);
    return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

static uint64_t cycle_at(uint64_t ns)
{
    uint64_t cycles_per_1e12_ns = CPU_HZ * 1000ull + (uint64_t)((long long)(CPU_HZ / 1000000ull) * ppb);
    return (uint64_t)((unsigned __int128)(ns - start_ns) * cycles_per_1e12_ns / 1000000000000ull);
}

static uint64_t ns_at(uint64_t cycle)
{
    uint64_t cycles_per_1e12_ns = CPU_HZ * 1000ull + (uint64_t)((long long)(CPU_HZ / 1000000ull) * ppb);
    return start_ns + (uint64_t)((unsigned __int128)cycle * 1000000000000ull / cycles_per_1e12_ns);
}

/* --- the side channel ---------------------------------------------------------------------------------------------- */

static char text[LOG_BYTES]; /* the last megabyte of lines, as a ring */
static uint64_t written;
static struct { int fd; uint64_t sent; } clients[MOST_CLIENTS];
static int n_clients;
static struct { const char *what; char line[128]; size_t length; } standing[STANDING] = {
    {.what = "ticks "}, {.what = "pwm "}, {.what = "pulse "}, {.what = "led "}};

static void tell(const char *line, size_t length)
{
    for (size_t i = 0; i < length; i++)
        text[(written + i) % LOG_BYTES] = line[i];
    written += length;
    if (!strncmp(line, "reset ", 6))
        standing[0].length = 0; /* the ticks start anew */
    for (int i = 0; i < STANDING; i++)
        if (!strncmp(line, standing[i].what, strlen(standing[i].what)) && length < sizeof standing[i].line) {
            memcpy(standing[i].line, line, length);
            standing[i].length = length;
        }
}

static void drop_client(int i)
{
    close(clients[i].fd);
    clients[i] = clients[--n_clients];
}

static void push(void)
{
    for (int i = n_clients - 1; i >= 0; i--)
        while (clients[i].sent != written) {
            uint64_t waiting = written - clients[i].sent, at = clients[i].sent % LOG_BYTES;
            size_t size = waiting < LOG_BYTES - at ? waiting : LOG_BYTES - at;
            ssize_t n = waiting > LOG_BYTES ? -1 : send(clients[i].fd, text + at, size, MSG_NOSIGNAL | MSG_DONTWAIT);
            if (n < 0 && waiting <= LOG_BYTES && (errno == EAGAIN || errno == EINTR))
                break;
            if (n < 0) {
                drop_client(i);
                break;
            }
            clients[i].sent += (uint64_t)n;
        }
}

static void admit(int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    if (n_clients == MOST_CLIENTS) {
        close(fd);
        return;
    }
    char hello[1024];
    size_t n = (size_t)snprintf(hello, sizeof hello, "rig-board 1\nclock 0 %llu %lld\n",
                                (unsigned long long)start_ns, ppb);
    for (int i = 0; i < STANDING; i++) {
        memcpy(hello + n, standing[i].line, standing[i].length);
        n += standing[i].length;
    }
    if (send(fd, hello, n, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)n) { /* a new socket takes this at once */
        close(fd);
        return;
    }
    clients[n_clients].fd = fd;
    clients[n_clients++].sent = written;
}

/* --- the line ------------------------------------------------------------------------------------------------------ */

static struct { uint64_t at; uint8_t byte; } tx[TX_QUEUE];
static unsigned tx_head, tx_tail;
static int opens = -1; /* tells of everyone who opens or closes the port */
static int is_open;

static void on_byte(uint64_t start, uint64_t end, uint8_t byte)
{
    (void)start;
    tx[tx_head % TX_QUEUE].at = end;
    tx[tx_head++ % TX_QUEUE].byte = byte;
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
    opens = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (opens >= 0)
        inotify_add_watch(opens, ptsname(master), IN_OPEN | IN_CLOSE);
    printf("%s\n", ptsname(master));
    fflush(stdout);
    return master;
}

/* Whether the port was opened since the last call while nobody had it open. A look at the terminal now and then would
 * miss one who closes it and opens it again at once, so everyone who comes and goes is counted; the terminal, looked at
 * afterwards, corrects the count, and stands in for it where the system does not tell. */
static int was_opened(int master)
{
    static int n_open;
    char events[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
    const struct inotify_event *event;
    struct pollfd terminal = {.fd = master};
    int opened = 0, was_open = is_open;
    ssize_t n = opens < 0 ? 0 : read(opens, events, sizeof events);
    for (ssize_t at = 0; at < n; at += (ssize_t)(sizeof *event + event->len)) {
        event = (const struct inotify_event *)(events + at);
        if ((event->mask & IN_OPEN) && n_open++ == 0)
            opened = 1;
        if ((event->mask & IN_CLOSE) && n_open)
            n_open--;
    }
    poll(&terminal, 1, 0);
    is_open = !(terminal.revents & POLLHUP);
    if (!is_open)
        n_open = 0;
    return opens < 0 ? is_open && !was_open : opened;
}

static void take_bytes(int master)
{
    uint8_t bytes[256];
    uint64_t at = 0;
    if (emu_receiving(&at) > RX_MOST)
        return; /* the terminal holds the rest */
    ssize_t n = read(master, bytes, sizeof bytes);
    uint64_t now = cycle_at(clock_ns(CLOCK_MONOTONIC));
    at = at > now ? at : now;
    for (ssize_t i = 0; i < n; i++)
        emu_receive(at += emu_byte_cycles(), bytes[i]);
}

/* Bytes that nobody takes are lost, as on a line without flow control. */
static void give_bytes(int master)
{
    for (; tx_tail != tx_head && tx[tx_tail % TX_QUEUE].at <= emu_cycle(); tx_tail++)
        if (is_open && write(master, &tx[tx_tail % TX_QUEUE].byte, 1) != 1)
            continue;
}

/* --- the pace ------------------------------------------------------------------------------------------------------ */

static void note_stall(uint64_t now_ns)
{
    static int is_behind;
    uint64_t due_ns = ns_at(emu_cycle());
    uint64_t behind_ns = now_ns > due_ns ? now_ns - due_ns : 0;
    if (behind_ns > most_behind_ns)
        most_behind_ns = behind_ns;
    if (behind_ns > STALL_NS && !is_behind)
        emu_happened("behind", emu_cycle(), " %llu", (unsigned long long)behind_ns);
    is_behind = behind_ns > STALL_NS;
}

static void pause_until(uint64_t ns)
{
    struct timespec at = {.tv_sec = (time_t)(ns / 1000000000ull), .tv_nsec = (long)(ns % 1000000000ull)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

int emu_paced(const struct pace *pace)
{
    uint64_t told_ns = 0;
    for (const int *number = (int[]){SIGINT, SIGTERM, SIGHUP, SIGPIPE, 0}; *number; number++)
        signal(*number, SIG_IGN); /* what is meant for its parent: that ends it through stdin */
    ppb = pace->ppb;
    emu_tell = tell;
    emu_on_byte = on_byte;
    atexit(push); /* the last words of a board that crashed */
    int master = open_terminal();
    start_ns = clock_ns(CLOCK_MONOTONIC);
    for (;;) {
        struct pollfd watched[2] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = pace->listener, .events = POLLIN}};
        char byte;
        poll(watched, 2, 0);
        if ((watched[0].revents & (POLLIN | POLLHUP)) && read(STDIN_FILENO, &byte, 1) <= 0)
            break;
        if (watched[1].revents & POLLIN)
            admit(pace->listener);
        if (was_opened(master)) {
            tx_tail = tx_head; /* what it sent to nobody */
            if (!pace->no_reset)
                emu_reset();
        }
        take_bytes(master);
        uint64_t now_ns = clock_ns(CLOCK_MONOTONIC), due = cycle_at(now_ns);
        note_stall(now_ns);
        emu_run(due < emu_cycle() + SLICE ? due : emu_cycle() + SLICE, 0);
        give_bytes(master);
        if (now_ns >= told_ns + TELL_NS) {
            told_ns = now_ns;
            emu_happened("at", emu_cycle() > STAMP_SLACK ? emu_cycle() - STAMP_SLACK : 0, "");
            push();
        }
        if (emu_cycle() >= due)
            pause_until(now_ns + STEP_NS);
    }
    printf("ended %llu %llu %llu\n", (unsigned long long)(clock_ns(CLOCK_MONOTONIC) - start_ns),
           (unsigned long long)clock_ns(CLOCK_PROCESS_CPUTIME_ID), (unsigned long long)most_behind_ns);
    return 0;
}
