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
 * Several nodes (comm_tcp.c): the table holds for the ranks of a node, who alone read each other's
 * memory; between nodes data is sent, and what has come has been computed. So "all ranks" above is
 * "all ranks of a node", except for the norm's merge, the start, an evaluation and a checkpoint.
 * Rank (node p, local l) exchanges with the ranks (q, l) alone. Sums: it sends each of them its own
 * node's sum of that one's piece, made in rank order and fp32; the owner adds the nodes' sums in node
 * order and rounds once. With one rank a node these are one node's bits; else the order of sums
 * differs from one node's, but not between strategies nor between runs. From each node
 * (nodes - 1) / nodes of the buffer leaves (as fp32), all its ranks sending at once. Gathers send a
 * shard once to each node, to the rank of the same local number, and local ranks take it from there:
 * at most two more meetings of the node's ranks. Buffers for it: SL_COMM_STAGING bytes for chunks at
 * most, and two blocks of all ranks' partial results (8 bytes a unit and rank, and a little); they
 * belong to the process's fixed base, not to the plan.
 *
 * A wait sleeps; a failure of any rank (sl_ctl_fail) and the deadline end it. Errors: SL_PEER: a
 * rank failed first, named if known; SL_BUSY: the deadline passed, the message names who is missing.
 * A node whose connection breaks has failed first (SL_PEER, the message names it). A wait for the
 * network ends `deadline` seconds after the last byte. Ranks that wait for one that waits for the
 * network give it SL_COMM_PATIENCE seconds more, so that its message, the better one, comes first.
 * After an error no further call is of use. What a rank waits for stands in its row of the control
 * block.
 */

#include <stdint.h>

#include "executor/ctl.h"
#include "executor/graph/graph.h"
#include "executor/links.h"
#include "kernels/dev.h"

enum { SL_COMM_STAGING = 3 << 20, SL_COMM_PATIENCE = 2 };

struct sl_comm_count {
    int64_t calls, bytes; /* bytes: read from peers of this node */
    int64_t sent;         /* bytes to other nodes, heads not counted */
};

struct sl_comm_how; /* comm_how.h */
struct sl_comm_net; /* flow.h */

struct sl_comm {
    struct sl_ctl *ctl;
    char *const *arena; /* by rank; those of this node are mapped here */
    struct sl_dev *dev; /* lent; of this rank alone */
    int rank, n;
    int first, nlocal; /* ranks first .. first + nlocal - 1 are on this node */
    int node, nodes;
    const struct sl_comm_how *how;
    struct sl_comm_net *net; /* NULL: one node */
    double deadline;     /* seconds a wait may last; 0: for ever */
    uint32_t collective; /* waits so far */
    int64_t step;        /* for the state word */
    double waited;       /* seconds in waits */
    double copied;       /* seconds in sums and copies */
    int64_t waits;
    struct sl_comm_count count[SL_OP_KINDS];
};

/* One node. `arena` is lent and must outlive the communicator. */
void sl_comm_init(struct sl_comm *c, struct sl_ctl *ctl, char *const *arena,
                  struct sl_dev *dev, int rank, int n, double deadline);

/*
 * Several nodes: behind init; ranks are in blocks, n / nodes on each. `links` are connected, lent,
 * and must outlive the communicator. Caller calls fini. SL_SYSTEM: no memory.
 */
int sl_comm_open_nodes(struct sl_comm *c, struct sl_links *links, struct sl_err *err);
void sl_comm_fini(struct sl_comm *c);

/*
 * All ranks have come here, and each one's partial results in the control block (loss, eval_loss,
 * eval_tokens, stop, saved, bad_param, bad_place) are on every node. kind: what the wait is about (enum sl_kind
 * or enum sl_ctl_kind).
 */
int sl_comm_barrier(struct sl_comm *c, int kind, int unit, struct sl_err *err);

/* The same, and the partial sums of the norm. all: rank 0 has made those of all ranks (dp). */
int sl_comm_merge(struct sl_comm *c, int all, struct sl_err *err);

/* All ranks that share memory with this one have come here. */
int sl_comm_meet(struct sl_comm *c, int kind, int unit, struct sl_err *err);

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
