#ifndef SL_COMM_H
#define SL_COMM_H

/*
 * comm.h - collectives on buffers that lie at equal offsets in every rank's arena
 *
 * Sums go in rank order, in fp32, and are rounded once; every rank owns piece `rank` of a full buffer
 * (the one cut of executor/graph/shard). Offsets are bytes from the arena's start, `shard` counts
 * elements. All ranks call the same collectives in the same order.
 *
 * Shared memory (comm_shm.c) only pulls: a rank reads its peers and writes only its own arena, and
 * of a full buffer only what no peer reads. Which meetings of all ranks that takes, and why no others
 * (graph/schedule.h leaves out those that another one has answered):
 *
 *   collective         before  after  why
 *   broadcast          yes     no     rank 0 has updated; it writes again behind the next merge
 *   reduce             yes     no     all have their sums; who lent writes again in the next step
 *   gather             no      no     shards change only between the merge and the end of a step
 *   reduce-scatter     yes     wait   what was lent is transient: the wait ends its life
 *   reduce in place    yes     no     rank r reads piece r of all and writes its own piece r only
 *   all-gather in pl.  yes     no     piece r is written again in the next step only
 *   norm's merge       yes     no     the partial sums are written again behind the step's end
 *   end of a step      yes     -      no rank begins a step while another still reads the last one
 *
 * ThreadSanitizer, with ranks as threads, is silent, and reports a race for each row's meeting that
 * is taken away (done by hand). It rests on "the optimizer runs between two meetings", so an
 * evaluation must not stand between the merge and the end of a step, and ranks meet once before the
 * first step.
 *
 * A wait sleeps; a failure of any rank (sl_ctl_fail) and the deadline end it. Errors: SL_PEER: a
 * rank failed first, named if known; SL_BUSY: the deadline passed, the message names who is missing.
 * After an error no further call is of use. What a rank waits for stands in its row of the control
 * block.
 */

#include <stdint.h>

#include "executor/ctl.h"
#include "executor/graph/graph.h"
#include "kernels/dev.h"

struct sl_comm_count {
    int64_t calls, bytes; /* bytes: read from peers */
};

struct sl_comm {
    struct sl_ctl *ctl;
    char *const *arena; /* by rank, all mapped here */
    struct sl_dev *dev; /* lent; of this rank alone */
    int rank, n;
    double deadline;     /* seconds a wait may last; 0: for ever */
    uint32_t collective; /* waits so far */
    int64_t step;        /* for the state word */
    double waited;       /* seconds in waits */
    double copied;       /* seconds in sums and copies */
    int64_t waits;
    struct sl_comm_count count[SL_OP_KINDS];
};

/* `arena` is lent and must outlive the communicator. */
void sl_comm_init(struct sl_comm *c, struct sl_ctl *ctl, char *const *arena,
                  struct sl_dev *dev, int rank, int n, double deadline);

/* All ranks have come here. kind: what the wait is about (enum sl_kind or enum sl_ctl_kind). */
int sl_comm_barrier(struct sl_comm *c, int kind, int unit, struct sl_err *err);

/* What a collective is about. */
struct sl_move {
    int unit;
    int64_t shard; /* elements of one rank's piece; a full buffer has ranks * shard */
    enum sl_dtype type;
    int meet; /* all ranks wait for each other before it: the column "before" */
};

/* Rank 0's full buffer into everybody's. */
int sl_comm_broadcast(struct sl_comm *c, const struct sl_move *m, int64_t buf, struct sl_err *err);

/* Everybody's full buffer summed into rank 0's. */
int sl_comm_reduce(struct sl_comm *c, const struct sl_move *m, int64_t buf, struct sl_err *err);

/* All shards (each at `in`) into my full buffer at `out`. */
int sl_comm_gather(struct sl_comm *c, const struct sl_move *m, int64_t in, int64_t out,
                   struct sl_err *err);

/* My piece of everybody's full buffer at `in` summed into my shard at `out`; add: on top of it. */
int sl_comm_reduce_scatter(struct sl_comm *c, const struct sl_move *m, int64_t in, int64_t out,
                           int add, struct sl_err *err);

/* The two halves of an all-reduce, inside the full buffer. */
int sl_comm_reduce_inplace(struct sl_comm *c, const struct sl_move *m, int64_t buf,
                           struct sl_err *err);
int sl_comm_allgather_inplace(struct sl_comm *c, const struct sl_move *m, int64_t buf,
                              struct sl_err *err);

/*
 * All ranks have finished reading what this rank lent of `unit`. meet 0: another collective's
 * meeting in between has answered that.
 */
int sl_comm_wait(struct sl_comm *c, int unit, int meet, struct sl_err *err);

#endif
