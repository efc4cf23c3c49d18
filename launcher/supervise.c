/* supervise.c - deaths, signals, limits and hangs: what they mean for the run */
#include "launcher/supervise.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "executor/rank.h"

enum { CAUSE_MS = 300, AGAIN_MS = 300 /* one Ctrl-C may arrive twice, from shell and terminal */ };
enum { LOOK_MS = 250 };

void sl_supervise_init(struct sl_supervise *s, struct sl_ctl *ctl, int ranks, const char *host,
                       double hang_timeout, double grace, double time_limit, uint64_t now)
{
    *s = (struct sl_supervise){
        .ctl = ctl, .ranks = ranks, .grace = grace, .time_limit = time_limit, .start = now};
    snprintf(s->host, sizeof s->host, "%s", host);
    s->oom = sl_death_oom_kills();
    s->culprit = -1;
    sl_watch_init(&s->watch, hang_timeout);
}

void sl_supervise_fail(struct sl_supervise *s, int status, enum sl_state state, int culprit,
                       const char *fmt, ...)
{
    va_list ap;

    if (s->over)
        return;
    s->over = 1;
    s->status = status;
    s->state = state;
    s->culprit = culprit;
    va_start(ap, fmt);
    vsnprintf(s->reason, sizeof s->reason, fmt, ap);
    va_end(ap);
}

static void blame(struct sl_supervise *s, const struct sl_death *d)
{
    long oom = sl_death_oom_kills();
    char text[300];

    if (s->over)
        return;
    if (sl_death_status(d) == SL_RANK_HANG && s->told[0]) {
        int who = atomic_load(&s->ctl->culprit);

        sl_supervise_fail(s, 6, SL_FAILED, who, "hang: %s", s->told);
        s->step = sl_ctl_step(d->state);
        s->retry = !s->asked;
        return;
    }
    sl_death_text(d, d->host ? d->host : s->host, text, sizeof text);
    sl_supervise_fail(s, sl_death_status(d), SL_FAILED, d->rank, "%s", text);
    s->code = sl_death_code(d);
    s->step = sl_ctl_step(d->state);
    s->retry = !s->asked && s->code != SL_RANK_USAGE && s->code != SL_RANK_DIVERGED;
    sl_death_hint(d, oom < 0 || s->oom < 0 ? -1 : oom - s->oom, s->hint, sizeof s->hint);
}

/* All ranks have left in order. */
static void finish(struct sl_supervise *s)
{
    unsigned step = sl_ctl_step(atomic_load(&s->ctl->r[0].state));

    if (!s->stopped)
        sl_supervise_fail(s, 0, SL_DONE, -1, "all steps done");
    else if (s->saved > 0 && (s->saved & 0xffffff) == step)
        sl_supervise_fail(s, 75, SL_STOPPED, -1, "%s: stopped behind step %lld, with a checkpoint",
                          s->asked == SL_STOP_TIME ? "time_limit reached" : strsignal(s->signal),
                          (long long)s->saved);
    else if (s->asked == SL_STOP_TIME)
        sl_supervise_fail(s, 1, SL_STOPPED, -1,
                          "time_limit of %g s reached: stopped after step %u, without a checkpoint",
                          s->time_limit, step);
    else
        sl_supervise_fail(s, 128 + s->signal, SL_STOPPED, -1,
                          "signal %d (%s): stopped after step %u", s->signal, strsignal(s->signal),
                          step);
}

/*
 * Of several found at once: nobody's failure makes another rank die by a signal, but a death can
 * make others give up with a status of their own; of those, the ranks know who was first.
 */
static int guilt(const struct sl_death *d, int told)
{
    return WIFSIGNALED(d->wait_status) ? 2 : d->rank == told;
}

void sl_supervise_deaths(struct sl_supervise *s, const struct sl_death *d, int n, uint64_t now)
{
    const struct sl_death *first = NULL;
    int told = atomic_load(&s->ctl->culprit);

    for (int i = 0; i < n; i++) {
        switch (sl_death_kind(&d[i])) {
        case SL_END_DONE:
            s->done++;
            break;
        case SL_END_STOPPED:
            s->stopped++;
            break;
        case SL_END_PEER:
            if (!s->peer_at) {
                s->peer_at = now;
                s->peer = d[i];
            }
            break;
        case SL_END_FAULT:
            if (!first || guilt(&d[i], told) > guilt(first, told))
                first = &d[i];
            break;
        }
    }
    if (first)
        blame(s, first);
    else if (s->done + s->stopped == s->ranks)
        finish(s);
}

static void ask(struct sl_supervise *s, enum sl_stop why, int signo, uint64_t now)
{
    s->asked = why;
    s->signal = signo;
    s->asked_at = now;
    atomic_store(&s->ctl->stop, (uint32_t)signo);
}

int sl_supervise_signal(struct sl_supervise *s, int signo, uint64_t now, char *note, size_t size)
{
    if (s->over)
        return 0;
    if (signo == SIGQUIT || (s->asked && now - s->asked_at > AGAIN_MS * 1000000u)) {
        sl_supervise_fail(s, 128 + signo, SL_CANCELLED, -1, "ended at once by signal %d (%s)",
                          signo, strsignal(signo));
        return 0;
    }
    if (s->asked)
        return 0;
    ask(s, SL_STOP_SIGNAL, signo, now);
    snprintf(note, size,
             "signal %d (%s): stopping after this step, within %g s; once more ends it"
             " at once",
             signo, strsignal(signo), s->grace);
    return 1;
}

static void hang(struct sl_supervise *s)
{
    char text[200];
    int who = sl_ctl_behind(s->ctl, text, sizeof text);
    double limit = sl_watch_limit(&s->watch, s->ctl);

    if (who >= 0)
        sl_supervise_fail(s, 6, SL_FAILED, who, "hang: nothing moved for %g s; %s, on %s, pid %u",
                          limit, text, s->hosts[who] ? s->hosts[who] : s->host,
                          atomic_load(&s->ctl->r[who].pid));
    else
        sl_supervise_fail(s, 6, SL_FAILED, -1, "hang: nothing moved for %g s; %s", limit, text);
    s->step = who < 0 ? 0 : sl_ctl_step(atomic_load(&s->ctl->r[who].state));
    s->retry = !s->asked;
}

int sl_supervise_tick(struct sl_supervise *s, uint64_t now, char *note, size_t size)
{
    double waited = s->asked ? 1e-9 * (double)(now - s->asked_at) : 0;

    if (s->over)
        return 0;
    if (s->peer_at && now - s->peer_at > CAUSE_MS * 1000000u) {
        blame(s, &s->peer);
        return 0;
    }
    if (s->asked && waited > s->grace) {
        if (s->asked == SL_STOP_TIME)
            sl_supervise_fail(s, 1, SL_FAILED, -1,
                              "time_limit of %g s reached, and no step's end"
                              " within %g s after it",
                              s->time_limit, s->grace);
        else
            sl_supervise_fail(s, 128 + s->signal, SL_CANCELLED, -1,
                              "signal %d (%s): no step's end"
                              " within %g s: ended",
                              s->signal, strsignal(s->signal), s->grace);
        return 0;
    }
    if (!s->peer_at && (!s->watch.last || now - s->watch.last >= LOOK_MS * 1000000u)
        && sl_watch_look(&s->watch, s->ctl, now)) {
        hang(s);
        return 0;
    }
    if (!s->asked && s->time_limit > 0 && 1e-9 * (double)(now - s->start) >= s->time_limit) {
        ask(s, SL_STOP_TIME, SIGALRM, now);
        snprintf(note, size, "time_limit of %g s reached: stopping after this step", s->time_limit);
        return 1;
    }
    return 0;
}
