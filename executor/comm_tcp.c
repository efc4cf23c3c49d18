/* comm_tcp.c - collectives of several nodes: memory inside a node, connections between nodes */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "executor/comm_how.h"
#include "executor/flow.h"
#include "kernels/reduce/reduce.h"

enum { CHUNK_MOST = 512 << 10, LINE = 64 };

/* A rank's partial results, as they travel. */
struct row {
    double loss, eval_loss, eval_tokens;
    uint64_t saved[2];
    int64_t bad_place;
    uint32_t stop;
    int32_t bad_param;
};

/* --- open and close ----------------------------------------------------------------------------
 */

/* All blocks of one meeting: a row for each rank and the norm's sums, whoever has made them. */
static size_t block_bytes(const struct sl_comm *c)
{
    size_t n = (size_t)c->n;

    return n * sizeof(struct row) + n * (size_t)c->ctl->units * sizeof(double);
}

int sl_comm_open_nodes(struct sl_comm *c, struct sl_links *links, struct sl_err *err)
{
    struct sl_comm_net *t = sl_calloc(1, sizeof *t);
    int64_t bytes = SL_COMM_STAGING / (2 * links->nodes) / LINE * LINE;
    int places = 0;

    if (!t)
        return sl_fail(err, SL_SYSTEM, "no memory for other nodes: %s", strerror(errno));
    bytes = bytes < CHUNK_MOST ? bytes : CHUNK_MOST;
    t->links = links;
    t->chunk = bytes / (int64_t)sizeof(float);
    t->staging = sl_calloc((size_t)(2 * links->nodes) * (size_t)bytes, 1);
    t->row_out = sl_calloc(block_bytes(c), 1);
    t->row_in = sl_calloc(block_bytes(c), 1);
    c->net = t;
    if (!t->staging || !t->row_out || !t->row_in) {
        sl_comm_fini(c);
        return sl_fail(err, SL_SYSTEM, "no memory for other nodes");
    }
    t->mine = (float *)(void *)(t->staging + bytes * places++);
    for (int q = 0; q < links->nodes; q++) {
        if (q == links->node)
            continue;
        t->out[q] = (float *)(void *)(t->staging + bytes * places++);
        t->in[q] = (float *)(void *)(t->staging + bytes * places++);
    }
    c->nodes = links->nodes;
    c->node = links->node;
    c->nlocal = c->n / c->nodes;
    c->first = c->node * c->nlocal;
    c->how = &sl_comm_tcp;
    return 0;
}

void sl_comm_fini(struct sl_comm *c)
{
    if (!c->net)
        return;
    free(c->net->staging);
    free(c->net->row_out);
    free(c->net->row_in);
    free(c->net);
    c->net = NULL;
}

/* --- meetings of all ranks -----------------------------------------------------------------------
 */

/* Columns lo..hi-1 of the norm that a node's ranks have made. */
static void columns(const struct sl_comm *c, int node, int norm, int *lo, int *hi)
{
    *lo = *hi = 0;
    if (norm == 1) {
        *lo = node * c->nlocal;
        *hi = *lo + c->nlocal;
    } else if (norm == 2 && node == 0)
        *hi = c->n;
}

static size_t bytes_of(const struct sl_comm *c, int node, int norm)
{
    int lo, hi;

    columns(c, node, norm, &lo, &hi);
    return (size_t)c->nlocal * sizeof(struct row)
           + (size_t)(hi - lo) * (size_t)c->ctl->units * sizeof(double);
}

static void pack(const struct sl_comm *c, int norm, char *to)
{
    int lo, hi;

    for (int r = c->first; r < c->first + c->nlocal; r++, to += sizeof(struct row)) {
        const struct sl_ctl_rank *it = &c->ctl->r[r];
        struct row row = {
            .loss = it->loss,
            .eval_loss = it->eval_loss,
            .eval_tokens = it->eval_tokens,
            .saved = {atomic_load(&it->saved[0]), atomic_load(&it->saved[1])},
            .bad_place = it->bad_place,
            .stop = it->stop,
            .bad_param = it->bad_param,
        };

        memcpy(to, &row, sizeof row);
    }
    columns(c, c->node, norm, &lo, &hi);
    for (int u = 0; u < c->ctl->units && hi > lo; u++) {
        size_t n = (size_t)(hi - lo) * sizeof(double);

        memcpy(to, c->ctl->norm + (int64_t)u * c->n + lo, n);
        to += n;
    }
}

static void unpack(struct sl_comm *c, int node, int norm, const char *from)
{
    int lo, hi;

    for (int l = 0; l < c->nlocal; l++, from += sizeof(struct row)) {
        struct sl_ctl_rank *it = &c->ctl->r[node * c->nlocal + l];
        struct row row;

        memcpy(&row, from, sizeof row);
        it->loss = row.loss;
        it->eval_loss = row.eval_loss;
        it->eval_tokens = row.eval_tokens;
        it->stop = row.stop;
        it->bad_param = row.bad_param;
        it->bad_place = row.bad_place;
        for (int k = 0; k < 2; k++)
            atomic_store(&it->saved[k], row.saved[k]);
    }
    columns(c, node, norm, &lo, &hi);
    for (int u = 0; u < c->ctl->units && hi > lo; u++) {
        size_t n = (size_t)(hi - lo) * sizeof(double);

        memcpy(c->ctl->norm + (int64_t)u * c->n + lo, from, n);
        from += n;
    }
}

/* The node's first rank, while the others of the node wait in a meeting. */
static int swap_rows(struct sl_comm *c, int kind, int unit, int norm, struct sl_err *err)
{
    struct sl_comm_net *t = c->net;
    size_t at = 0;

    pack(c, norm, t->row_out);
    sl_flow_begin(c, kind, unit);
    for (int q = 0; q < c->nodes; q++) {
        if (q == c->node)
            continue;
        t->flow[q].out = t->row_out;
        t->flow[q].nout = bytes_of(c, c->node, norm);
        t->flow[q].in = t->row_in + at;
        t->flow[q].nin = bytes_of(c, q, norm);
        at += t->flow[q].nin;
    }
    if (sl_flow_finish(c, err))
        return -1;
    at = 0;
    for (int q = 0; q < c->nodes; q++) {
        if (q == c->node)
            continue;
        unpack(c, q, norm, t->row_in + at);
        at += bytes_of(c, q, norm);
    }
    return 0;
}

static int barrier(struct sl_comm *c, int kind, int unit, int norm, struct sl_err *err)
{
    if (sl_comm_meet(c, kind, unit, err))
        return -1;
    if (c->rank != c->first)
        c->collective++; /* the exchange: all ranks number alike */
    else if (swap_rows(c, kind, unit, norm, err))
        return -1;
    return sl_comm_meet(c, kind, unit, err);
}

/* --- sums ----------------------------------------------------------------------------------------
 */

/* Who gets a sum of what: byte offsets in every arena, -1: nothing. */
struct sums {
    enum sl_kind kind;
    int64_t of[SL_MAX_RANKS]; /* by node: where my peer's range begins */
    int64_t out;              /* my sum, in my arena */
    int64_t n;                /* elements of a range */
    enum sl_dtype type;
    int add;
    int64_t made[SL_MAX_RANKS]; /* by node: elements sent, or being sent */
    int64_t asked, done;        /* of mine: elements being received, elements summed */
};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/*
 * This node's sum, in rank order and fp32, of n elements at element `at` of a range: in `place`, or
 * where the one rank of a node has them anyway. NULL: failed.
 */
static const float *node_sum(struct sl_comm *c, const struct sums *s, int64_t of, int64_t at,
                             int64_t n, float *place, struct sl_err *err)
{
    const void *part[SL_MAX_RANKS];
    int64_t from = of + at * sl_dtype_size(s->type);
    struct sl_k_reduce a = {
        .x = part,
        .y = place,
        .xtype = s->type,
        .ytype = SL_F32,
        .k = c->nlocal,
        .n = n,
    };
    uint64_t t0 = sl_ctl_now();
    int rc;

    c->count[s->kind].bytes += (c->nlocal - 1) * n * sl_dtype_size(s->type);
    for (int l = 0; l < c->nlocal; l++)
        part[l] = sl_comm_at(c, c->first + l, from);
    if (c->nlocal == 1 && s->type == SL_F32)
        return part[0];
    rc = sl_k_reduce(c->dev, &a, err);
    c->copied += 1e-9 * (double)(sl_ctl_now() - t0);
    return rc ? NULL : place;
}

/* The next chunk for node q, if the last one has left. */
static int feed(struct sl_comm *c, struct sums *s, int q, struct sl_err *err)
{
    struct sl_flow *f = &c->net->flow[q];
    int64_t n = least(c->net->chunk, s->n - s->made[q]);

    if (q == c->node || s->of[q] < 0 || f->nout || !n)
        return 0;
    f->out = (const char *)node_sum(c, s, s->of[q], s->made[q], n, c->net->out[q], err);
    if (!f->out)
        return -1;
    f->nout = (size_t)n * sizeof(float);
    s->made[q] += n;
    return 0;
}

/* All nodes' sums of a chunk, in node order, into my arena. */
static int add_up(struct sl_comm *c, struct sums *s, struct sl_err *err)
{
    int64_t n = s->asked - s->done;
    const void *part[SL_MAX_RANKS];
    struct sl_k_reduce a = {
        .x = part,
        .y = sl_comm_at(c, c->rank, s->out + s->done * sl_dtype_size(s->type)),
        .xtype = SL_F32,
        .ytype = s->type,
        .k = c->nodes,
        .n = n,
        .add = s->add,
    };
    uint64_t t0;
    int rc;

    for (int q = 0; q < c->nodes; q++)
        part[q] = q == c->node ? node_sum(c, s, s->of[q], s->done, n, c->net->mine, err)
                               : c->net->in[q];
    if (!part[c->node])
        return -1;
    t0 = sl_ctl_now();
    rc = sl_k_reduce(c->dev, &a, err);
    c->copied += 1e-9 * (double)(sl_ctl_now() - t0);
    s->done = s->asked;
    return rc;
}

/* Ask for the next chunk of mine when the last one is in; sum what is in. */
static int take(struct sl_comm *c, struct sums *s, struct sl_err *err)
{
    if (s->of[c->node] < 0)
        return 0;
    for (int q = 0; q < c->nodes; q++)
        if (c->net->flow[q].nin)
            return 0;
    if (s->asked > s->done && add_up(c, s, err))
        return -1;
    s->asked += least(c->net->chunk, s->n - s->done);
    for (int q = 0; q < c->nodes && s->asked > s->done; q++) {
        if (q == c->node)
            continue;
        c->net->flow[q].in = (char *)c->net->in[q];
        c->net->flow[q].nin = (size_t)(s->asked - s->done) * sizeof(float);
    }
    return 0;
}

static int sums(struct sl_comm *c, struct sums *s, int unit, struct sl_err *err)
{
    sl_flow_begin(c, (int)s->kind, unit);
    for (;;) {
        for (int q = 0; q < c->nodes; q++)
            if (feed(c, s, q, err))
                return -1;
        if (take(c, s, err))
            return -1;
        if (sl_flow_done(c))
            break;
        if (sl_flow_move(c, err))
            return -1;
    }
    sl_flow_end(c);
    return 0;
}

/* The rank on node q that this one exchanges with. */
static int peer(const struct sl_comm *c, int q)
{
    return q * c->nlocal + c->rank - c->first;
}

/* My piece of the full buffers at `in` to `out`. */
static int scatter(struct sl_comm *c, enum sl_kind kind, const struct sl_move *m, int64_t in,
                   int64_t out, int add, struct sl_err *err)
{
    struct sums s = {.kind = kind, .out = out, .n = m->shard, .type = m->type, .add = add};

    if (sl_comm_begin(c, kind, m, err))
        return -1;
    for (int q = 0; q < c->nodes; q++)
        s.of[q] = in + sl_comm_piece(m, peer(c, q));
    return sums(c, &s, m->unit, err);
}

static int reduce_scatter(struct sl_comm *c, const struct sl_move *m, int64_t in, int64_t out,
                          int add, struct sl_err *err)
{
    return scatter(c, SL_OP_REDUCE_SCATTER, m, in, out, add, err);
}

static int reduce_inplace(struct sl_comm *c, const struct sl_move *m, int64_t buf,
                          struct sl_err *err)
{
    return scatter(c, SL_OP_REDUCE_INPLACE, m, buf, buf + sl_comm_piece(m, c->rank), 0, err);
}

/* --- copies --------------------------------------------------------------------------------------
 */

/* Behind the exchange: have all ranks of this node what they were sent? */
static int met(struct sl_comm *c, enum sl_kind kind, const struct sl_move *m, struct sl_err *err)
{
    return c->nlocal > 1 ? sl_comm_meet(c, (int)kind, m->unit, err) : 0;
}

/* The pieces that my node's other ranks have got or had, from their full buffers into mine. */
static int take_over(struct sl_comm *c, enum sl_kind kind, const struct sl_move *m, int64_t buf,
                     struct sl_err *err)
{
    for (int k = 1; k < c->nlocal; k++) {
        int local = (c->rank - c->first + k) % c->nlocal;

        for (int q = 0; q < c->nodes; q++) {
            int64_t p = buf + sl_comm_piece(m, q * c->nlocal + local);

            if (sl_comm_copy(c, kind, c->first + local, p, p, sl_comm_piece(m, 1), err))
                return -1;
        }
    }
    return 0;
}

/* My shard at `from` to my peers, theirs into the full buffer at `to`. */
static int swap_shards(struct sl_comm *c, enum sl_kind kind, const struct sl_move *m, int64_t from,
                       int64_t to, struct sl_err *err)
{
    sl_flow_begin(c, (int)kind, m->unit);
    for (int q = 0; q < c->nodes; q++) {
        struct sl_flow *f = &c->net->flow[q];

        if (q == c->node)
            continue;
        f->out = sl_comm_at(c, c->rank, from);
        f->in = sl_comm_at(c, c->rank, to + sl_comm_piece(m, peer(c, q)));
        f->nout = f->nin = (size_t)sl_comm_piece(m, 1);
    }
    return sl_flow_finish(c, err);
}

static int gather(struct sl_comm *c, const struct sl_move *m, int64_t in, int64_t out,
                  struct sl_err *err)
{
    int64_t own = out + sl_comm_piece(m, c->rank);

    if (sl_comm_begin(c, SL_OP_GATHER, m, err)
        || sl_comm_copy(c, SL_OP_GATHER, c->rank, in, own, sl_comm_piece(m, 1), err)
        || swap_shards(c, SL_OP_GATHER, m, in, out, err) || met(c, SL_OP_GATHER, m, err)
        || take_over(c, SL_OP_GATHER, m, out, err))
        return -1;
    return met(c, SL_OP_GATHER, m, err); /* the buffer's place may be another's right after */
}

static int allgather_inplace(struct sl_comm *c, const struct sl_move *m, int64_t buf,
                             struct sl_err *err)
{
    const enum sl_kind kind = SL_OP_ALLGATHER_INPLACE;

    if (sl_comm_begin(c, kind, m, err)
        || swap_shards(c, kind, m, buf + sl_comm_piece(m, c->rank), buf, err)
        || met(c, kind, m, err))
        return -1;
    return take_over(c, kind, m, buf, err);
}

/* --- rank 0's: a buffer is cut into nlocal parts, each of `nodes` pieces
 * --------------------------- */

static int64_t part_of(const struct sl_comm *c, const struct sl_move *m, int local)
{
    return sl_comm_piece(m, local * c->nodes);
}

static int broadcast(struct sl_comm *c, const struct sl_move *m, int64_t buf, struct sl_err *err)
{
    const enum sl_kind kind = SL_OP_BROADCAST;
    int local = c->rank - c->first;
    size_t bytes = (size_t)part_of(c, m, 1);

    if (sl_comm_begin(c, kind, m, err))
        return -1;
    sl_flow_begin(c, (int)kind, m->unit);
    for (int q = 1; q < c->nodes && c->node == 0; q++) {
        c->net->flow[q].out = sl_comm_at(c, 0, buf + part_of(c, m, local));
        c->net->flow[q].nout = bytes;
    }
    if (c->node > 0) {
        c->net->flow[0].in = sl_comm_at(c, c->rank, buf + part_of(c, m, local));
        c->net->flow[0].nin = bytes;
    }
    if (sl_flow_finish(c, err) || met(c, kind, m, err))
        return -1;
    if (c->node == 0)
        return c->rank ? sl_comm_copy(c, kind, 0, buf, buf, sl_comm_piece(m, c->n), err) : 0;
    for (int l = 0; l < c->nlocal; l++) {
        int64_t p = buf + part_of(c, m, l);

        if (l != local && sl_comm_copy(c, kind, c->first + l, p, p, (int64_t)bytes, err))
            return -1;
    }
    return 0;
}

static int reduce(struct sl_comm *c, const struct sl_move *m, int64_t buf, struct sl_err *err)
{
    const enum sl_kind kind = SL_OP_REDUCE;
    int64_t part = buf + part_of(c, m, c->rank - c->first);
    struct sums s = {.kind = kind, .out = part, .n = m->shard * c->nodes, .type = m->type};

    for (int q = 0; q < c->nodes; q++)
        s.of[q] = q == 0 ? part : -1;
    if (sl_comm_begin(c, kind, m, err) || sums(c, &s, m->unit, err) || met(c, kind, m, err))
        return -1;
    for (int l = 1; l < c->nlocal && c->rank == 0; l++) {
        int64_t p = buf + part_of(c, m, l);

        if (sl_comm_copy(c, kind, l, p, p, part_of(c, m, 1), err))
            return -1;
    }
    return 0;
}

const struct sl_comm_how sl_comm_tcp = {
    .barrier = barrier,
    .broadcast = broadcast,
    .reduce = reduce,
    .gather = gather,
    .reduce_scatter = reduce_scatter,
    .reduce_inplace = reduce_inplace,
    .allgather_inplace = allgather_inplace,
};
