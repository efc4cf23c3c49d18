#include "executor/program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "executor/graph/autodiff.h"
#include "executor/graph/memplan.h"
#include "executor/graph/ops.h"
#include "executor/graph/precision.h"
#include "executor/graph/recompute.h"
#include "executor/graph/schedule.h"
#include "executor/graph/shard.h"

/* Describe and transform one graph, up to its memory plan. */
static struct sl_graph *graph(struct sl_program *p, const struct sl_job *job, int training,
                              int flags, struct sl_err *err)
{
    struct sl_model_shape shape = {p->micro, p->vocab, training};
    struct sl_graph *g = sl_graph_create(p->precision == SL_BF16_MIXED ? SL_BF16 : SL_F32, err);

    if (!g)
        return NULL;
    if (p->model->describe(g, &job->model, &shape))
        goto fail;
    if (training) {
        if (sl_autodiff(g)
            || (job->train.recompute == SL_RECOMPUTE_UNIT && sl_recompute(g)))
            goto fail;
    } else {
        g->nfwd = g->nops;
    }
    if (sl_shard(g, (int)p->strategy, p->ranks) || sl_precision(g, p->threads)
        || sl_schedule(g, flags & SL_PROGRAM_PREFETCH))
        goto fail;
    if (sl_persist_add(p->set, g, &g->err)
        || sl_memplan(g, p->set, flags & SL_PROGRAM_NO_SHARING ? SL_PLAN_NO_SHARING : SL_PLAN_PACK))
        goto fail;
    return g;
fail:
    sl_graph_error(g, err);
    sl_graph_destroy(g);
    return NULL;
}

struct sl_program *sl_program_make(const struct sl_job *job, int ranks, enum sl_strategy strategy,
                                   int threads, int flags, struct sl_err *err)
{
    struct sl_program *p = sl_calloc(1, sizeof *p);

    if (!p) {
        sl_fail(err, SL_SYSTEM, "cannot hold the program: %s", strerror(errno));
        return NULL;
    }
    p->ranks = ranks;
    p->strategy = strategy;
    p->precision = job->train.precision;
    p->threads = threads > 0 ? threads : 1;
    p->vocab = job->data.vocab_size;
    p->model = sl_model_find(job->model.kind, err);
    if (!p->model || sl_job_check_ranks(job, ranks, err))
        goto fail;
    p->micro = sl_job_micro(job, ranks);
    p->accum = sl_job_accum(job, ranks);
    if (p->vocab < 1) {
        sl_fail(err, SL_USAGE, "the size of the vocabulary is not known");
        sl_hint(err, "Set data.vocab_size.");
        goto fail;
    }
    p->set = sl_persist_create(err);
    if (!p->set)
        goto fail;
    p->train = graph(p, job, 1, flags, err);
    if (!p->train)
        goto fail;
    p->eval = graph(p, job, 0, flags, err);
    if (!p->eval)
        goto fail;
    if (sl_persist_bytes(p->set) != p->train->persistent) {
        sl_fail(err, SL_BUG, "the evaluation graph keeps a buffer that training does not have");
        goto fail;
    }
    for (int i = 0; i < p->train->npar; i++)
        p->parameters += p->train->par[i].n;
    p->arena = p->train->arena > p->eval->arena ? p->train->arena : p->eval->arena;
    p->arena0 = sl_persist_tail(p->set, p->arena);
    if (sl_persist_bind(p->set, p->train)) { /* now with rank 0's own */
        sl_graph_error(p->train, err);
        goto fail;
    }
    return p;
fail:
    sl_program_destroy(p);
    return NULL;
}

void sl_program_destroy(struct sl_program *p)
{
    if (!p)
        return;
    sl_graph_destroy(p->train);
    sl_graph_destroy(p->eval);
    sl_persist_destroy(p->set);
    free(p);
}

int sl_program_threads(const struct sl_job *job, int ranks, int cores)
{
    if (job->resources.threads > 0)
        return (int)job->resources.threads;
    return ranks > 0 && cores > ranks ? cores / ranks : 1;
}

void sl_program_counts(const struct sl_program *p, int rank, struct sl_program_count *ret)
{
    const struct sl_graph *g = p->train;
    int64_t peers = p->ranks - 1, size = sl_dtype_size(g->ptype);

    memset(ret, 0, SL_OP_KINDS * sizeof *ret);
    for (int i = 0; i < g->nops; i++) {
        const struct sl_op *o = &g->ops[i];
        int64_t times = i >= g->opt_start || o->a.last_micro || o->a.first_micro ? 1 : p->accum;
        int64_t shard = o->a.n * size, bytes = shard * peers;

        if (!sl_op_info(o->kind)->comm)
            continue;
        if (o->kind == SL_OP_REDUCE)
            bytes = rank == 0 ? shard * p->ranks * peers : 0;
        else if (o->kind == SL_OP_BROADCAST)
            bytes = rank == 0 ? 0 : shard * p->ranks;
        ret[o->kind].calls += times;
        ret[o->kind].bytes += times * bytes;
    }
}
