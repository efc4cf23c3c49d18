#ifndef SL_COMM_HOW_H
#define SL_COMM_HOW_H

/*
 * comm_how.h - between comm.c and the ways of communication: the table of calls, and what they
 * share
 *
 * Arguments as in comm.h. `barrier` gets what sl_comm_merge adds: norm 0: no norm, 1: each rank's
 * own column, 2: rank 0 has made all columns.
 */

#include "executor/comm.h"

struct sl_comm_how {
    int (*barrier)(struct sl_comm *c, int kind, int unit, int norm, struct sl_err *err);
    int (*broadcast)(struct sl_comm *c, const struct sl_move *m, int64_t buf, struct sl_err *err);
    int (*reduce)(struct sl_comm *c, const struct sl_move *m, int64_t buf, struct sl_err *err);
    int (*gather)(struct sl_comm *c, const struct sl_move *m, int64_t in, int64_t out,
                  struct sl_err *err);
    int (*reduce_scatter)(struct sl_comm *c, const struct sl_move *m, int64_t in, int64_t out,
                          int add, struct sl_err *err);
    int (*reduce_inplace)(struct sl_comm *c, const struct sl_move *m, int64_t buf,
                          struct sl_err *err);
    int (*allgather_inplace)(struct sl_comm *c, const struct sl_move *m, int64_t buf,
                             struct sl_err *err);
};

extern const struct sl_comm_how sl_comm_shm, sl_comm_tcp;

static inline char *sl_comm_at(const struct sl_comm *c, int rank, int64_t byte)
{
    return c->arena[rank] + byte;
}

/* Bytes from a full buffer's start to the piece of `rank`. */
static inline int64_t sl_comm_piece(const struct sl_move *m, int rank)
{
    return m->shard * rank * sl_dtype_size(m->type);
}

/* Count the call, tell the outside, and meet if that is asked for. */
int sl_comm_begin(struct sl_comm *c, enum sl_kind kind, const struct sl_move *m,
                  struct sl_err *err);

/* From byte `from` of a peer of this node to byte `to` of mine, counted. */
int sl_comm_copy(struct sl_comm *c, enum sl_kind kind, int peer, int64_t from, int64_t to,
                 int64_t bytes, struct sl_err *err);

/* SL_PEER, with the rank or node that failed first where it is known. */
int sl_comm_peer_failed(const struct sl_comm *c, struct sl_err *err);

/* What a wait is about, for messages. */
const char *sl_comm_about(int kind);

#endif
