/* reporter.c - records to the agent, without ever holding up a step */
#include "executor/reporter.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>

#include "common/clock.h"

enum { PATIENCE_MS = 1000 };

void sl_reporter_init(struct sl_reporter *r, int fd, int rank)
{
    *r = (struct sl_reporter){.fd = fd, .rank = rank};
}

/* 0: sent; 1: no room; -1: nobody will ever read it. */
static int put(int fd, const struct sl_report *rep)
{
    ssize_t n;

    do
        n = send(fd, rep, sizeof *rep, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    if (n == (ssize_t)sizeof *rep)
        return 0;
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS) ? 1 : -1;
}

static int wait_room(int fd, int64_t until)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    int64_t left = (until - sl_clock_ns()) / 1000000;

    return left > 0 && (poll(&p, 1, (int)left) >= 0 || errno == EINTR);
}

void sl_reporter_send(void *out, struct sl_report *rep)
{
    struct sl_reporter *r = out;
    int64_t until = sl_clock_ns() + PATIENCE_MS * INT64_C(1000000);
    int rc;

    if (r->fd < 0)
        return;
    rep->rank = r->rank;
    rep->time = sl_clock_real();
    if (rep->type == SL_REPORT_STEP)
        rep->u.step_.dropped = r->dropped;
    while ((rc = put(r->fd, rep)) == 1 && rep->type != SL_REPORT_STEP && wait_room(r->fd, until))
        ;
    if (rc < 0)
        r->fd = -1;
    else if (rep->type == SL_REPORT_STEP)
        r->dropped = rc ? r->dropped + 1 : 0;
}

void sl_report_event(sl_report_f *send_f, void *out, int64_t step, const char *kind,
                     const char *fmt, ...)
{
    struct sl_report rep = {.type = SL_REPORT_EVENT, .step = step};
    va_list ap;

    if (!send_f)
        return;
    snprintf(rep.u.event.kind, sizeof rep.u.event.kind, "%s", kind);
    va_start(ap, fmt);
    vsnprintf(rep.u.event.message, sizeof rep.u.event.message, fmt, ap);
    va_end(ap);
    send_f(out, &rep);
}
