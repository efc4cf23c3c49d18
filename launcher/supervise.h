#ifndef SL_SUPERVISE_H
#define SL_SUPERVISE_H

/*
 * supervise.h - what a run's ranks do and how the run ends: the decisions of the agent
 *
 * Told of deaths, signals and time, it decides once: done, stopped, failed with a culprit, hang.
 * The first culprit wins; ranks that left because a peer failed are never the cause, and when only
 * such have been seen, the cause has 300 ms to show. It touches no process: the agent ends them
 * when `over` is set. One thread.
 */

#include <stdint.h>

#include "executor/ctl.h"
#include "launcher/death.h"
#include "launcher/watch.h"
#include "store/jobs.h"

enum sl_stop { SL_STOP_NONE, SL_STOP_SIGNAL, SL_STOP_TIME };

struct sl_supervise {
    /* given */
    struct sl_ctl *ctl;
    int ranks;
    double grace, time_limit; /* seconds; time_limit 0: none */
    char host[64];
    const char *hosts[SL_MAX_RANKS]; /* by rank, lent; NULL: `host` */
    long oom; /* sl_death_oom_kills() at the start */
    /* known */
    struct sl_watch watch;
    enum sl_stop asked;
    int signal;                        /* the first one that asked to stop */
    uint64_t start, asked_at, peer_at; /* ns; 0: not yet */
    struct sl_death peer;              /* first rank that blamed a peer */
    int done, stopped;                 /* ranks that ended so */
    char told[300]; /* the agent tells: what a rank said of a hang it has found itself */
    int64_t saved; /* the agent tells: newest complete checkpoint of this attempt is behind it */
    /* decided */
    int over, status;
    enum sl_state state;
    int culprit; /* rank whose last lines tell why, -1: none */
    int code;    /* its sl_death_code(); 0: it has not died */
    int64_t step; /* that it was in */
    int retry;    /* failed in a way that another attempt may not */
    char reason[400], hint[256];
};

void sl_supervise_init(struct sl_supervise *s, struct sl_ctl *ctl, int ranks, const char *host,
                       double hang_timeout, double grace, double time_limit, uint64_t now);

/* n ranks that were found ended at once. */
void sl_supervise_deaths(struct sl_supervise *s, const struct sl_death *d, int n, uint64_t now);

/* 1 when the signal asked to stop (and was not a repetition), with `note` for people; else 0. */
int sl_supervise_signal(struct sl_supervise *s, int signo, uint64_t now, char *note, size_t size);

/* 1 when it asks to stop now (time limit), with `note`; else 0. Call it often. */
int sl_supervise_tick(struct sl_supervise *s, uint64_t now, char *note, size_t size);

/* The run ends with this, unless something else was decided before. */
void sl_supervise_fail(struct sl_supervise *s, int status, enum sl_state state, int culprit,
                       const char *fmt, ...) __attribute__((format(printf, 5, 6)));

#endif
