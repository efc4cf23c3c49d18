#ifndef SL_CTL_H
#define SL_CTL_H

/*
 * ctl.h - what a node's agent and its ranks share: one block in a memfd made by the agent
 *
 * The agent makes the memfd of sl_ctl_size() bytes, calls sl_ctl_init() once before any rank
 * starts, and hands the descriptor to each rank. Each rank writes its own row; everybody reads all
 * rows. The agent writes `stop` and calls sl_ctl_fail(). Nothing in the block is a pointer.
 *
 * Where a rank is can be seen from outside: `state` is one word, never torn, and `since` says for
 * how long. Collectives are numbered by the points at which a rank may have to wait, the wire-up's
 * fence being 1; behind is the rank with the lowest (collective, waiting). `kind` and `unit` say what
 * the collective is for.
 *
 * Several nodes: each has its own block, with a row for every rank of the job. A rank's partial
 * results come to the blocks of other nodes with each meeting of all ranks (comm.h: sl_comm_barrier,
 * sl_comm_merge) and are old in between. State, since, kind, unit, away, stepped and pid of other
 * nodes' rows are as old as the agents make them (rank.h), on other nodes than the first for ever.
 */

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "executor/job.h"

enum sl_phase {
    SL_PHASE_START,   /* process exists, or does not yet */
    SL_PHASE_LOAD,    /* makes its program, reads its data */
    SL_PHASE_COMPUTE, /* in an operation */
    SL_PHASE_WAIT,    /* has arrived at the collective, waits for others */
    SL_PHASE_DONE,    /* all steps done */
    SL_PHASE_STOPPED, /* left at an agreed step boundary */
    SL_PHASE_FAILED,  /* left with an error */
    SL_PHASES
};

extern const char *const sl_phase_names[SL_PHASES];

struct sl_ctl_rank {
    _Alignas(64) _Atomic uint64_t state; /* collective << 32 | step << 8 | phase */
    _Atomic uint64_t since;              /* CLOCK_MONOTONIC ns: last change of state, or operation */
    _Atomic uint32_t stepped;            /* has finished a step of this attempt */
    _Atomic uint32_t pid;                /* the agent writes it after fork, the rank again */
    _Atomic int32_t kind;                /* enum sl_kind of the last collective, or enum sl_ctl_kind */
    _Atomic int32_t unit;                /* unit it is about, -1: none */
    _Atomic int32_t away;                /* 1 + the node that it waits for by network; 0: none */
    /* partial results: written by the rank before a barrier, read by all after it */
    double loss, eval_loss, eval_tokens;
    uint32_t stop;     /* this rank saw the stop flag before the step's merge */
    _Atomic uint64_t saved[2]; /* by save in turn: step << 1 | ok, this rank's shard; see saver.h */
    int64_t bad_place; /* first operation of the step, done again, with such a result here, -1: none */
    int32_t bad_param; /* first parameter whose gradient is not finite in my shard, -1: none */
};

/* Waits that belong to no operation of the graph; `kind` is enum sl_kind or one of these. */
enum sl_ctl_kind {
    SL_WAIT_NONE = -1,
    SL_WAIT_WIREUP = -2,
    SL_WAIT_START = -3,
    SL_WAIT_EVAL = -4,
    SL_WAIT_SEARCH = -5,
    SL_WAIT_SAVE = -6, /* several nodes: all shards of a checkpoint are on disk, or have failed */
};

struct sl_ctl {
    uint32_t magic, version;
    int32_t ranks, units;
    _Alignas(64) _Atomic uint32_t stop; /* agent: leave after this step; the number of the signal */
    _Atomic int64_t checkpoint; /* step of the last complete one of this attempt, 0: none */
    _Alignas(64) _Atomic int32_t culprit; /* first rank that failed, -1: none known */
    _Atomic int32_t lost; /* 1 + the first node whose connection broke or stayed silent; 0: none */
    _Alignas(64) _Atomic uint32_t arrived;
    _Alignas(64) _Atomic uint32_t epoch; /* futex: + 2 a barrier; bit 0: the attempt is over */
    _Alignas(64) _Atomic uint32_t sleepers;
    struct sl_ctl_rank r[SL_MAX_RANKS];
    double norm[]; /* [units][ranks]: partial sums of squares of a unit's gradient by shard */
};

size_t sl_ctl_size(int ranks, int units); /* bytes; 0: ranks outside 1..SL_MAX_RANKS or units < 1 */

/* Fill a zeroed block. SL_USAGE as for size. */
int sl_ctl_init(struct sl_ctl *c, int ranks, int units, struct sl_err *err);

/* A rank's check of a mapped block of `bytes`. SL_BUG: another version or other numbers. */
int sl_ctl_check(const struct sl_ctl *c, size_t bytes, int ranks, int units, struct sl_err *err);

/*
 * The attempt is over: every rank leaves every wait at once. `rank` is remembered as the culprit
 * when it is the first (-1: nobody is to blame, or not known). For the agent and for ranks.
 */
void sl_ctl_fail(struct sl_ctl *c, int rank);
int sl_ctl_failed(const struct sl_ctl *c);

/* My row's state word; a change of phase alone keeps collective and step. */
void sl_ctl_mark(struct sl_ctl *c, int rank, uint32_t collective, int64_t step,
                 enum sl_phase phase);

/* A sign of life: this rank has begun another operation. */
void sl_ctl_touch(struct sl_ctl *c, int rank);

static inline uint32_t sl_ctl_collective(uint64_t state)
{
    return (uint32_t)(state >> 32);
}
static inline uint32_t sl_ctl_step(uint64_t state) /* low 24 bits of the step */
{
    return (uint32_t)(state >> 8) & 0xffffffu;
}
static inline enum sl_phase sl_ctl_phase(uint64_t state)
{
    return (enum sl_phase)(state & 0xffu);
}

/*
 * The rank that the others wait for: the lowest (collective, waiting) of the ranks that are neither
 * done nor stopped; when these all wait in one, the first that has left without them; -1 when no
 * rank is behind another. `text` gets one line, for instance "rank 2 is
 * behind: computing for 12.0 s in step 7, last collective 31 (reduce_scatter)".
 */
int sl_ctl_behind(const struct sl_ctl *c, char *text, size_t size);

const char *sl_ctl_kind_name(int kind); /* of a row's `kind`, for people */

uint64_t sl_ctl_now(void); /* CLOCK_MONOTONIC, ns */

#endif
