/* ctl.c - the node's shared block: layout, state words, failure */
#include "executor/ctl.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "executor/graph/graph.h"

enum { CTL_MAGIC = 0x4c544353, CTL_VERSION = 2, MAX_UNITS = 1 << 16 };

const char *const sl_phase_names[SL_PHASES]
    = {"starting", "loading", "computing", "waiting", "done", "stopped", "failed"};

size_t sl_ctl_size(int ranks, int units)
{
    if (ranks < 1 || ranks > SL_MAX_RANKS || units < 1 || units > MAX_UNITS)
        return 0;
    return sizeof(struct sl_ctl) + (size_t)ranks * (size_t)units * sizeof(double);
}

int sl_ctl_init(struct sl_ctl *c, int ranks, int units, struct sl_err *err)
{
    if (!sl_ctl_size(ranks, units))
        return sl_fail(err, SL_USAGE, "no control block for %d ranks and %d units", ranks, units);
    c->magic = CTL_MAGIC;
    c->version = CTL_VERSION;
    c->ranks = ranks;
    c->units = units;
    atomic_store(&c->culprit, -1);
    for (int r = 0; r < ranks; r++) {
        atomic_store(&c->r[r].kind, SL_WAIT_NONE);
        atomic_store(&c->r[r].unit, -1);
        c->r[r].bad_param = -1;
        sl_ctl_mark(c, r, 0, 0, SL_PHASE_START);
    }
    return 0;
}

int sl_ctl_check(const struct sl_ctl *c, size_t bytes, int ranks, int units, struct sl_err *err)
{
    if (bytes < sizeof *c || c->magic != CTL_MAGIC || c->version != CTL_VERSION)
        return sl_fail(err, SL_BUG, "the control block is not one of this version");
    if (c->ranks != ranks || c->units != units || bytes < sl_ctl_size(ranks, units))
        return sl_fail(err, SL_BUG,
                       "the control block is for %d ranks and %d units, not for %d and %d",
                       c->ranks, c->units, ranks, units);
    return 0;
}

void sl_ctl_fail(struct sl_ctl *c, int rank)
{
    int32_t none = -1;

    if (rank >= 0)
        atomic_compare_exchange_strong(&c->culprit, &none, rank);
    atomic_fetch_or(&c->epoch, 1u); /* changes the futex word: no waiter can miss it */
    syscall(SYS_futex, &c->epoch, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

int sl_ctl_failed(const struct sl_ctl *c)
{
    return (int)(atomic_load(&c->epoch) & 1u);
}

uint64_t sl_ctl_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void sl_ctl_mark(struct sl_ctl *c, int rank, uint32_t collective, int64_t step, enum sl_phase phase)
{
    struct sl_ctl_rank *me = &c->r[rank];

    atomic_store(&me->since, sl_ctl_now());
    atomic_store(&me->state,
                 (uint64_t)collective << 32 | ((uint64_t)step & 0xffffffu) << 8 | (uint64_t)phase);
}

void sl_ctl_touch(struct sl_ctl *c, int rank)
{
    atomic_store_explicit(&c->r[rank].since, sl_ctl_now(), memory_order_relaxed);
}

const char *sl_ctl_kind_name(int kind)
{
    switch (kind) {
    case SL_WAIT_WIREUP:
        return "wire-up";
    case SL_WAIT_START:
        return "start";
    case SL_WAIT_EVAL:
        return "evaluation";
    case SL_WAIT_SEARCH:
        return "search for the first bad number";
    case SL_WAIT_SAVE:
        return "checkpoint";
    default:
        return kind >= 0 && kind < SL_OP_KINDS ? sl_kind_names[kind] : "nothing yet";
    }
}

/* Lower is further behind: a rank that waits in a collective is ahead of one that has not arrived.
 */
static uint64_t progress(uint64_t state)
{
    return (uint64_t)sl_ctl_collective(state) << 1 | (sl_ctl_phase(state) == SL_PHASE_WAIT);
}

int sl_ctl_behind(const struct sl_ctl *c, char *text, size_t size)
{
    uint64_t low = UINT64_MAX, high = 0, state;
    enum sl_phase ph;
    int who = -1, left = -1;
    double s;

    for (int r = 0; r < c->ranks; r++) {
        uint64_t st = atomic_load(&c->r[r].state), p = progress(st);

        if (sl_ctl_phase(st) == SL_PHASE_DONE || sl_ctl_phase(st) == SL_PHASE_STOPPED) {
            left = left < 0 ? r : left;
            continue;
        }
        if (p < low) {
            low = p;
            who = r;
        }
        if (p > high)
            high = p;
    }
    if (who >= 0 && low == high && left >= 0) {
        state = atomic_load(&c->r[who].state);
        snprintf(text, size,
                 "rank %d has left after step %u while rank %d waits in step %u, collective %u (%s)",
                 left, sl_ctl_step(atomic_load(&c->r[left].state)), who, sl_ctl_step(state),
                 sl_ctl_collective(state), sl_ctl_kind_name(atomic_load(&c->r[who].kind)));
        return left;
    }
    if (who < 0 || low == high) {
        snprintf(text, size, "no rank is behind another");
        return -1;
    }
    state = atomic_load(&c->r[who].state);
    ph = sl_ctl_phase(state);
    s = 1e-9 * (double)(sl_ctl_now() - atomic_load(&c->r[who].since));
    snprintf(text, size, "rank %d is behind: %s for %.1f s in step %u, last collective %u (%s)",
             who, ph < SL_PHASES ? sl_phase_names[ph] : "unknown", s, sl_ctl_step(state),
             sl_ctl_collective(state), sl_ctl_kind_name(atomic_load(&c->r[who].kind)));
    return who;
}
