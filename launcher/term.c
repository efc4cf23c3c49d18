/* term.c - whole lines to a terminal, pipe or file, without blocking */
#include "launcher/term.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/mem.h"

enum { BACKLOG = 1 << 20, CHUNK = 4096 /* PIPE_BUF: such a write is never torn */, LIVE = 256 };

struct sl_term {
    int fd, own; /* own: a descriptor of our own, set non-blocking, that we close */
    int tty, dead;
    size_t n;
    long dropped;
    char live[LIVE];
    char buf[BACKLOG];
};

struct sl_term *sl_term_open(int fd, struct sl_err *err)
{
    struct sl_term *t = sl_calloc(1, sizeof *t);
    char path[40];
    struct stat st;

    if (!t) {
        sl_fail(err, SL_SYSTEM, "cannot hold the output: %s", strerror(errno));
        return NULL;
    }
    t->fd = fd;
    t->tty = isatty(fd);
    /*
     * O_NONBLOCK belongs to the open file, which other programs share: open it once more. A regular
     * file never blocks (and has a position that must stay shared); a socket cannot be opened.
     */
    if (fstat(fd, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode))) {
        int again;

        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        again = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
        if (again >= 0) {
            t->fd = again;
            t->own = 1;
        }
    }
    return t;
}

int sl_term_live_ok(const struct sl_term *t)
{
    return t->tty;
}

int sl_term_width(const struct sl_term *t)
{
    struct winsize w;

    return t->tty && ioctl(t->fd, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 ? w.ws_col : 80;
}

int sl_term_wants(const struct sl_term *t)
{
    return t->n && !t->dead ? t->fd : -1;
}

/* As many whole lines as one chunk holds, else a chunk of a longer one. */
static size_t next_write(const struct sl_term *t)
{
    size_t n = t->n < CHUNK ? t->n : CHUNK;
    const char *nl = memrchr(t->buf, '\n', n);

    return nl && n < t->n ? (size_t)(nl - t->buf) + 1 : n;
}

void sl_term_flush(struct sl_term *t)
{
    while (t->n && !t->dead) {
        ssize_t k = write(t->fd, t->buf, next_write(t));

        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0 && errno == EAGAIN)
            return;
        if (k < 0) {
            t->dead = 1; /* nobody reads: the run goes on */
            return;
        }
        memmove(t->buf, t->buf + k, t->n - (size_t)k);
        t->n -= (size_t)k;
    }
}

static void add(struct sl_term *t, const char *text, size_t n)
{
    memcpy(t->buf + t->n, text, n);
    t->n += n;
}

static void put_live(struct sl_term *t)
{
    if (t->live[0])
        add(t, t->live, strlen(t->live));
}

static void take_live_away(struct sl_term *t)
{
    if (t->live[0])
        add(t, "\r\033[K", 4);
}

void sl_term_line(struct sl_term *t, const char *text, size_t n)
{
    char note[80];
    size_t room = sizeof t->buf - t->n, extra = sizeof note + 2 * LIVE;

    if (t->dead)
        return;
    if (room < n + extra) {
        t->dropped++;
        return;
    }
    take_live_away(t);
    if (t->dropped) {
        int k = snprintf(note, sizeof note, "(%ld lines not shown: the reader was slow)\n",
                         t->dropped);

        add(t, note, (size_t)k);
        t->dropped = 0;
    }
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];

        t->buf[t->n++] = (c < ' ' && c != '\t') || c == 127 ? '?' : text[i];
    }
    add(t, "\n", 1);
    put_live(t);
    sl_term_flush(t);
}

void sl_term_printf(struct sl_term *t, const char *fmt, ...)
{
    char line[2048];
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    if (n >= (int)sizeof line)
        n = sizeof line - 1;
    if (n >= 0)
        sl_term_line(t, line, (size_t)n);
}

void sl_term_live(struct sl_term *t, const char *text)
{
    if (!t->tty || t->dead || t->n > CHUNK || !strcmp(text, t->live))
        return;
    take_live_away(t);
    snprintf(t->live, sizeof t->live, "%s", text);
    put_live(t);
    sl_term_flush(t);
}

void sl_term_close(struct sl_term *t)
{
    if (!t)
        return;
    sl_term_live(t, "");
    for (int i = 0; i < 20 && t->n && !t->dead; i++) {
        struct pollfd p = {t->fd, POLLOUT, 0};

        poll(&p, 1, 100);
        sl_term_flush(t);
    }
    if (t->own)
        close(t->fd);
    free(t);
}
