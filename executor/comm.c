/* comm.c - what every way of communication shares: counting, state words, the wait of all ranks */
#include "executor/comm_how.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "kernels/copy/copy.h"

enum { SPINS = 128, NAP_MS = 200 };

void sl_comm_init(struct sl_comm *c, struct sl_ctl *ctl, char *const *arena, struct sl_dev *dev,
                  int rank, int n, double deadline)
{
    memset(c, 0, sizeof *c);
    c->ctl = ctl;
    c->arena = arena;
    c->dev = dev;
    c->rank = rank;
    c->n = c->nlocal = n;
    c->nodes = 1;
    c->how = &sl_comm_shm;
    c->deadline = deadline;
}

int sl_comm_peer_failed(const struct sl_comm *c, struct sl_err *err)
{
    int who = atomic_load(&c->ctl->culprit), node = atomic_load(&c->ctl->lost) - 1;

    if (who < 0 && node >= 0 && c->nodes > 1) {
        sl_fail(err, SL_PEER, "a rank of node %d failed first", node);
        return sl_hint(err, "See the logs of node %d for the cause.", node);
    }
    if (who < 0)
        return sl_fail(err, SL_PEER, "the attempt was ended from outside");
    sl_fail(err, SL_PEER, "rank %d failed first", who);
    return sl_hint(err, "See the log of rank %d for the cause.", who);
}

/* Ranks that have not arrived where I wait; the first of them, or -1. */
static int missing(const struct sl_comm *c, char *text, size_t size)
{
    int first = -1;
    size_t at = 0;

    text[0] = 0;
    for (int r = c->first; r < c->first + c->nlocal; r++) {
        uint64_t st = atomic_load(&c->ctl->r[r].state);
        uint32_t coll = sl_ctl_collective(st);
        int w;

        if (coll > c->collective || (coll == c->collective && sl_ctl_phase(st) == SL_PHASE_WAIT))
            continue;
        w = snprintf(text + at, size - at, "%s%d (%s in step %u)", first < 0 ? "" : ", ", r,
                     sl_phase_names[sl_ctl_phase(st) < SL_PHASES ? sl_ctl_phase(st) : 0],
                     sl_ctl_step(st));
        if (first < 0)
            first = r;
        if (w < 0 || (size_t)w >= size - at)
            break;
        at += (size_t)w;
    }
    return first;
}

const char *sl_comm_about(int kind)
{
    return kind == SL_WAIT_START             ? "the start"
           : kind == SL_WAIT_EVAL            ? "the evaluation"
           : kind == SL_WAIT_SAVE            ? "the checkpoint"
           : kind >= 0 && kind < SL_OP_KINDS ? sl_kind_names[kind]
                                             : "a wait";
}

static int deadline_passed(struct sl_comm *c, int kind, struct sl_err *err)
{
    char who[160];
    int first = missing(c, who, sizeof who);

    sl_fail(err, SL_BUSY, "waited %g s in %s of step %lld, not arrived: rank %s", c->deadline,
            sl_comm_about(kind), (long long)c->step, first < 0 ? "none" : who);
    sl_hint(err, "See the log of rank %d; a longer failure.hang_timeout helps only if it is slow.",
            first < 0 ? 0 : first);
    sl_ctl_fail(c->ctl, first);
    return -1;
}

/* Is there time left? One that waits for the network itself has a better message: let it come
 * first. */
static int in_time(const struct sl_comm *c, uint64_t t0)
{
    double late = 1e-9 * (double)(sl_ctl_now() - t0) - c->deadline;

    if (c->deadline <= 0 || late <= 0)
        return 1;
    for (int r = c->first; r < c->first + c->nlocal; r++)
        if (r != c->rank && atomic_load(&c->ctl->r[r].away))
            return late <= SL_COMM_PATIENCE;
    return 0;
}

static int sleep_until(struct sl_comm *c, uint32_t epoch, uint64_t t0, int kind, struct sl_err *err)
{
    struct sl_ctl *ctl = c->ctl;
    const struct timespec nap = {.tv_nsec = NAP_MS * 1000000L};
    int rc = 0;

    for (int i = 0; i < SPINS; i++) {
        if (atomic_load_explicit(&ctl->epoch, memory_order_acquire) != epoch)
            return 0;
        if (i % 32 == 31)
            sched_yield();
    }
    atomic_fetch_add(&ctl->sleepers, 1);
    while (atomic_load(&ctl->epoch) == epoch) {
        if (!in_time(c, t0)) {
            rc = deadline_passed(c, kind, err);
            break;
        }
        syscall(SYS_futex, &ctl->epoch, FUTEX_WAIT, epoch, &nap, NULL, 0);
    }
    atomic_fetch_sub(&ctl->sleepers, 1);
    return rc;
}

static int same_place(const struct sl_ctl *ctl, int a, int b)
{
    return atomic_load(&ctl->r[a].kind) == atomic_load(&ctl->r[b].kind)
           && atomic_load(&ctl->r[a].unit) == atomic_load(&ctl->r[b].unit)
           && sl_ctl_step(atomic_load(&ctl->r[a].state))
                  == sl_ctl_step(atomic_load(&ctl->r[b].state));
}

/*
 * The last one to arrive looks whether all have come to the same collective: a rank that has missed
 * one would read what is not there yet, and nobody would ever know.
 */
static int astray(struct sl_comm *c, struct sl_err *err)
{
    const struct sl_ctl *ctl = c->ctl;
    int other = -1, with_me = 0, odd, most;
    char place[2][80];

    for (int r = c->first; r < c->first + c->nlocal; r++) {
        if (same_place(ctl, r, c->rank))
            with_me++;
        else if (other < 0)
            other = r;
    }
    if (other < 0)
        return 0;
    odd = 2 * with_me > c->nlocal ? other : c->rank;
    most = odd == other ? c->rank : other;
    for (int i = 0; i < 2; i++) {
        const struct sl_ctl_rank *it = &ctl->r[i ? most : odd];

        snprintf(place[i], sizeof place[i], "%s of step %u, unit %d",
                 sl_ctl_kind_name(atomic_load(&it->kind)), sl_ctl_step(atomic_load(&it->state)),
                 atomic_load(&it->unit));
    }
    sl_fail(err, SL_BUSY,
            "rank %d has come to another collective (%s) than rank %d (%s):"
            " one of them has skipped one",
            odd, place[0], most, place[1]);
    sl_ctl_fail(c->ctl, 2 * with_me == c->nlocal ? -1 : odd);
    return -1;
}

int sl_comm_meet(struct sl_comm *c, int kind, int unit, struct sl_err *err)
{
    struct sl_ctl *ctl = c->ctl;
    struct sl_ctl_rank *me = &ctl->r[c->rank];
    uint32_t e = atomic_load(&ctl->epoch);
    uint64_t t0 = sl_ctl_now();

    atomic_store(&me->kind, kind);
    atomic_store(&me->unit, unit);
    c->waits++;
    sl_ctl_mark(ctl, c->rank, ++c->collective, c->step, SL_PHASE_WAIT);
    if (e & 1)
        return sl_comm_peer_failed(c, err);
    if (atomic_fetch_add(&ctl->arrived, 1) + 1 == (uint32_t)c->nlocal) {
        if (astray(c, err))
            return -1;
        atomic_store(&ctl->arrived, 0);
        atomic_fetch_add(&ctl->epoch, 2);
        if (atomic_load(&ctl->sleepers))
            syscall(SYS_futex, &ctl->epoch, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    } else if (sleep_until(c, e, t0, kind, err))
        return -1;
    c->waited += 1e-9 * (double)(sl_ctl_now() - t0);
    /* Behind a finished wait a failure of somebody is seen at the next one. */
    if (atomic_load(&ctl->epoch) == (e | 1))
        return sl_comm_peer_failed(c, err);
    sl_ctl_mark(ctl, c->rank, c->collective, c->step, SL_PHASE_COMPUTE);
    return 0;
}

/* --- what the ways share ---------------------------------------------------------------------- */

int sl_comm_begin(struct sl_comm *c, enum sl_kind kind, const struct sl_move *m, struct sl_err *err)
{
    c->count[kind].calls++;
    if (m->meet)
        return sl_comm_meet(c, (int)kind, m->unit, err);
    atomic_store(&c->ctl->r[c->rank].kind, (int)kind);
    atomic_store(&c->ctl->r[c->rank].unit, m->unit);
    return 0;
}

int sl_comm_copy(struct sl_comm *c, enum sl_kind kind, int peer, int64_t from, int64_t to,
                 int64_t bytes, struct sl_err *err)
{
    struct sl_k_copy a = {
        .x = sl_comm_at(c, peer, from),
        .y = sl_comm_at(c, c->rank, to),
        .bytes = bytes,
    };
    uint64_t t0 = sl_ctl_now();
    int rc;

    c->count[kind].bytes += peer == c->rank ? 0 : bytes;
    rc = sl_k_copy(c->dev, &a, err);
    c->copied += 1e-9 * (double)(sl_ctl_now() - t0);
    return rc;
}

/* --- the calls ---------------------------------------------------------------------------------
 */

int sl_comm_barrier(struct sl_comm *c, int kind, int unit, struct sl_err *err)
{
    return c->how->barrier(c, kind, unit, 0, err);
}

int sl_comm_merge(struct sl_comm *c, int all, struct sl_err *err)
{
    return c->how->barrier(c, SL_OP_NORM_MERGE, -1, all ? 2 : 1, err);
}

int sl_comm_broadcast(struct sl_comm *c, const struct sl_move *m, int64_t buf, struct sl_err *err)
{
    return c->how->broadcast(c, m, buf, err);
}

int sl_comm_reduce(struct sl_comm *c, const struct sl_move *m, int64_t buf, struct sl_err *err)
{
    return c->how->reduce(c, m, buf, err);
}

int sl_comm_gather(struct sl_comm *c, const struct sl_move *m, int64_t in, int64_t out,
                   struct sl_err *err)
{
    return c->how->gather(c, m, in, out, err);
}

int sl_comm_reduce_scatter(struct sl_comm *c, const struct sl_move *m, int64_t in, int64_t out,
                           int add, struct sl_err *err)
{
    return c->how->reduce_scatter(c, m, in, out, add, err);
}

int sl_comm_reduce_inplace(struct sl_comm *c, const struct sl_move *m, int64_t buf,
                           struct sl_err *err)
{
    return c->how->reduce_inplace(c, m, buf, err);
}

int sl_comm_allgather_inplace(struct sl_comm *c, const struct sl_move *m, int64_t buf,
                              struct sl_err *err)
{
    return c->how->allgather_inplace(c, m, buf, err);
}

int sl_comm_wait(struct sl_comm *c, int unit, int meet, struct sl_err *err)
{
    c->count[SL_OP_COMM_WAIT].calls++;
    return meet ? sl_comm_meet(c, SL_OP_COMM_WAIT, unit, err) : 0;
}
