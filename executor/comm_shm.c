/* comm_shm.c - collectives of one node: sums and copies straight from the peers' mapped arenas */
#include "executor/comm_how.h"

#include "kernels/reduce/reduce.h"

/* n elements from byte `from` of every arena, summed in rank order into `out` of mine. */
static int sum(struct sl_comm *c, enum sl_kind kind, int64_t from, int64_t out, int64_t n,
               enum sl_dtype type, int add, struct sl_err *err)
{
    const void *part[SL_MAX_RANKS];
    struct sl_k_reduce a = {
        .x = part,
        .y = sl_comm_at(c, c->rank, out),
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
        part[r] = sl_comm_at(c, r, from);
    rc = sl_k_reduce(c->dev, &a, err);
    c->copied += 1e-9 * (double)(sl_ctl_now() - t0);
    return rc;
}

static int broadcast(struct sl_comm *c, const struct sl_move *m, int64_t buf, struct sl_err *err)
{
    if (sl_comm_begin(c, SL_OP_BROADCAST, m, err))
        return -1;
    return c->rank ? sl_comm_copy(c, SL_OP_BROADCAST, 0, buf, buf, sl_comm_piece(m, c->n), err) : 0;
}

static int reduce(struct sl_comm *c, const struct sl_move *m, int64_t buf, struct sl_err *err)
{
    if (sl_comm_begin(c, SL_OP_REDUCE, m, err))
        return -1;
    return c->rank ? 0 : sum(c, SL_OP_REDUCE, buf, buf, m->shard * c->n, m->type, 0, err);
}

static int gather(struct sl_comm *c, const struct sl_move *m, int64_t in, int64_t out,
                  struct sl_err *err)
{
    if (sl_comm_begin(c, SL_OP_GATHER, m, err))
        return -1;
    for (int k = 0; k < c->n; k++) { /* my own first, then round: no two ranks read one at once */
        int r = (c->rank + k) % c->n;

        if (sl_comm_copy(c, SL_OP_GATHER, r, in, out + sl_comm_piece(m, r), sl_comm_piece(m, 1),
                         err))
            return -1;
    }
    return 0;
}

static int reduce_scatter(struct sl_comm *c, const struct sl_move *m, int64_t in, int64_t out,
                          int add, struct sl_err *err)
{
    if (sl_comm_begin(c, SL_OP_REDUCE_SCATTER, m, err))
        return -1;
    return sum(c, SL_OP_REDUCE_SCATTER, in + sl_comm_piece(m, c->rank), out, m->shard, m->type, add,
               err);
}

static int reduce_inplace(struct sl_comm *c, const struct sl_move *m, int64_t buf,
                          struct sl_err *err)
{
    int64_t mine = buf + sl_comm_piece(m, c->rank);

    if (sl_comm_begin(c, SL_OP_REDUCE_INPLACE, m, err))
        return -1;
    return sum(c, SL_OP_REDUCE_INPLACE, mine, mine, m->shard, m->type, 0, err);
}

static int allgather_inplace(struct sl_comm *c, const struct sl_move *m, int64_t buf,
                             struct sl_err *err)
{
    if (sl_comm_begin(c, SL_OP_ALLGATHER_INPLACE, m, err))
        return -1;
    for (int k = 1; k < c->n; k++) {
        int64_t p = buf + sl_comm_piece(m, (c->rank + k) % c->n);

        if (sl_comm_copy(c, SL_OP_ALLGATHER_INPLACE, (c->rank + k) % c->n, p, p,
                         sl_comm_piece(m, 1), err))
            return -1;
    }
    return 0;
}

static int barrier(struct sl_comm *c, int kind, int unit, int norm, struct sl_err *err)
{
    (void)norm; /* the rows are one for all */
    return sl_comm_meet(c, kind, unit, err);
}

const struct sl_comm_how sl_comm_shm = {
    .barrier = barrier,
    .broadcast = broadcast,
    .reduce = reduce,
    .gather = gather,
    .reduce_scatter = reduce_scatter,
    .reduce_inplace = reduce_inplace,
    .allgather_inplace = allgather_inplace,
};
