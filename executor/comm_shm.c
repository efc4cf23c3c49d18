/* comm_shm.c - collectives of one node: sums and copies straight from the peers' mapped arenas */
#include "executor/comm.h"

#include "kernels/copy/copy.h"
#include "kernels/reduce/reduce.h"

static char *at(const struct sl_comm *c, int rank, int64_t byte)
{
    return c->arena[rank] + byte;
}

/* Bytes from a full buffer's start to the piece of `rank`. */
static int64_t piece(const struct sl_move *m, int rank)
{
    return m->shard * rank * sl_dtype_size(m->type);
}

/* Count the call, tell the outside, and meet if that is asked for. */
static int begin(struct sl_comm *c, enum sl_kind kind, const struct sl_move *m, struct sl_err *err)
{
    c->count[kind].calls++;
    if (m->meet)
        return sl_comm_barrier(c, (int)kind, m->unit, err);
    atomic_store(&c->ctl->r[c->rank].kind, (int)kind);
    atomic_store(&c->ctl->r[c->rank].unit, m->unit);
    return 0;
}

/* n elements from byte `from` of every arena, summed in rank order into `out` of mine. */
static int sum(struct sl_comm *c, enum sl_kind kind, int64_t from, int64_t out, int64_t n,
               enum sl_dtype type, int add, struct sl_err *err)
{
    const void *part[SL_MAX_RANKS];
    struct sl_k_reduce a = {
        .x = part,
        .y = at(c, c->rank, out),
        .xtype = type,
        .ytype = type,
        .k = c->n,
        .n = n,
        .add = add,
    };
    uint64_t t0 = sl_ctl_now();
    int rc;

    c->count[kind].bytes += (c->n - 1) * n * sl_dtype_size(type);
    for (int r = 0; r < c->n; r++)
        part[r] = at(c, r, from);
    rc = sl_k_reduce(c->dev, &a, err);
    c->copied += 1e-9 * (double)(sl_ctl_now() - t0);
    return rc;
}

static int copy(struct sl_comm *c, enum sl_kind kind, int peer, int64_t from, int64_t to,
                int64_t bytes, struct sl_err *err)
{
    struct sl_k_copy a = {.x = at(c, peer, from), .y = at(c, c->rank, to), .bytes = bytes};
    uint64_t t0 = sl_ctl_now();
    int rc;

    c->count[kind].bytes += peer == c->rank ? 0 : bytes;
    rc = sl_k_copy(c->dev, &a, err);

    c->copied += 1e-9 * (double)(sl_ctl_now() - t0);
    return rc;
}

int sl_comm_broadcast(struct sl_comm *c, const struct sl_move *m, int64_t buf, struct sl_err *err)
{
    if (begin(c, SL_OP_BROADCAST, m, err))
        return -1;
    return c->rank ? copy(c, SL_OP_BROADCAST, 0, buf, buf, piece(m, c->n), err) : 0;
}

int sl_comm_reduce(struct sl_comm *c, const struct sl_move *m, int64_t buf, struct sl_err *err)
{
    if (begin(c, SL_OP_REDUCE, m, err))
        return -1;
    return c->rank ? 0 : sum(c, SL_OP_REDUCE, buf, buf, m->shard * c->n, m->type, 0, err);
}

int sl_comm_gather(struct sl_comm *c, const struct sl_move *m, int64_t in, int64_t out,
                   struct sl_err *err)
{
    if (begin(c, SL_OP_GATHER, m, err))
        return -1;
    for (int k = 0; k < c->n; k++) { /* my own first, then round: no two ranks read one at once */
        int r = (c->rank + k) % c->n;

        if (copy(c, SL_OP_GATHER, r, in, out + piece(m, r), piece(m, 1), err))
            return -1;
    }
    return 0;
}

int sl_comm_reduce_scatter(struct sl_comm *c, const struct sl_move *m, int64_t in, int64_t out,
                           int add, struct sl_err *err)
{
    if (begin(c, SL_OP_REDUCE_SCATTER, m, err))
        return -1;
    return sum(c, SL_OP_REDUCE_SCATTER, in + piece(m, c->rank), out, m->shard, m->type, add, err);
}

int sl_comm_reduce_inplace(struct sl_comm *c, const struct sl_move *m, int64_t buf,
                           struct sl_err *err)
{
    int64_t mine = buf + piece(m, c->rank);

    if (begin(c, SL_OP_REDUCE_INPLACE, m, err))
        return -1;
    return sum(c, SL_OP_REDUCE_INPLACE, mine, mine, m->shard, m->type, 0, err);
}

int sl_comm_allgather_inplace(struct sl_comm *c, const struct sl_move *m, int64_t buf,
                              struct sl_err *err)
{
    if (begin(c, SL_OP_ALLGATHER_INPLACE, m, err))
        return -1;
    for (int k = 1; k < c->n; k++) {
        int64_t p = buf + piece(m, (c->rank + k) % c->n);

        if (copy(c, SL_OP_ALLGATHER_INPLACE, (c->rank + k) % c->n, p, p, piece(m, 1), err))
            return -1;
    }
    return 0;
}

int sl_comm_wait(struct sl_comm *c, int unit, int meet, struct sl_err *err)
{
    c->count[SL_OP_COMM_WAIT].calls++;
    return meet ? sl_comm_barrier(c, SL_OP_COMM_WAIT, unit, err) : 0;
}
