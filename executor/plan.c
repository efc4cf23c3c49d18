#include "executor/plan.h"

#include <string.h>

#include "common/json.h"
#include "common/str.h"
#include "executor/remedy.h"

/* The higher of both graphs decides; training when they are equal. */
static void read_part(const struct sl_program *p, int rank0, struct sl_plan_part *ret)
{
    const struct sl_graph *top = p->eval->arena > p->train->arena ? p->eval : p->train;

    ret->total = rank0 ? p->arena0 : p->arena;
    for (int c = 0; c < SL_CATS; c++) {
        int64_t own = rank0 ? sl_persist_cat(p->set, (enum sl_cat)c, 1) : 0;
        int64_t a = p->train->cat_peak[c], b = p->eval->cat_peak[c];

        ret->bytes[c] = top->at_peak[c] + own;
        ret->peak_bytes[c] = (a > b ? a : b) + own;
    }
}

int64_t sl_plan_in_flight(const struct sl_program *p)
{
    const struct sl_graph *g = p->train;
    int64_t tied = 0, embedding = 0, other = 0;
    int shared = -1, first = -1;

    if (p->ranks == 1 || (p->strategy != SL_ZERO2 && p->strategy != SL_ZERO3))
        return 0;
    for (int i = 0; i < g->nops; i++)
        if (g->ops[i].kind == SL_OP_EMBED)
            first = g->ops[i].home;
    for (int i = 0; i < g->nops && shared < 0; i++)
        if (g->ops[i].kind == SL_OP_HEAD && g->ops[i].acc[0] >= 0) {
            int par = g->t[g->ops[i].acc[0]].param;
            if (par >= 0 && g->par[par].unit == first)
                shared = first;
        }
    for (int u = 0; u < g->nunits; u++) {
        int64_t full = g->unit[u].shard * p->ranks * sl_dtype_size(g->ptype);

        if (g->unit[u].gfull < 0)
            continue;
        if (u == shared)
            tied = full;
        else if (u == first)
            embedding = full;
        else if (full > other)
            other = full;
    }
    if (p->strategy == SL_ZERO3)
        other *= 2;
    if (shared >= 0)
        return tied + (p->strategy == SL_ZERO3 && tied > other ? tied : other);
    return embedding > other ? embedding : other;
}

void sl_plan_read(const struct sl_program *p, const struct sl_job *job,
                  const struct sl_plan_limits *lim, struct sl_plan *ret)
{
    memset(ret, 0, sizeof *ret);
    ret->ranks = p->ranks;
    ret->threads = p->threads;
    ret->strategy = p->strategy;
    ret->precision = p->precision;
    ret->recompute = job->train.recompute;
    ret->micro = p->micro;
    ret->accum = p->accum;
    ret->parameters = p->parameters;
    read_part(p, 1, &ret->rank0);
    read_part(p, 0, &ret->other);
    ret->persistent = p->train->persistent;
    for (int c = 0; c < SL_CATS; c++)
        ret->persistent += sl_persist_cat(p->set, (enum sl_cat)c, 1);
    ret->in_flight = sl_plan_in_flight(p);
    ret->together = ret->rank0.total + (p->ranks - 1) * ret->other.total + p->ranks * SL_PLAN_BASE;
    ret->fits_rank = !lim->per_rank || ret->rank0.total <= lim->per_rank;
    ret->fits_machine = !lim->machine || ret->together <= lim->machine;
    ret->fits = ret->fits_rank && ret->fits_machine;
}

int sl_plan_make(const struct sl_job *job, int ranks, enum sl_strategy strategy,
                 const struct sl_plan_limits *lim, struct sl_plan *ret, struct sl_err *err)
{
    int threads = sl_program_threads(job, ranks, lim->cores);
    struct sl_program *p = sl_program_make(job, ranks, strategy, threads, 0, err);

    if (!p)
        return -1;
    sl_plan_read(p, job, lim, ret);
    sl_program_destroy(p);
    return 0;
}

int sl_plan_refuse(const struct sl_job *job, const struct sl_plan *plan,
                   const struct sl_plan_limits *lim, struct sl_err *err)
{
    struct sl_remedy fix;
    char need[32], have[32], then[32];

    if (plan->fits)
        return 0;
    if (!plan->fits_rank)
        sl_fail(err, SL_USAGE, "does not fit in memory: a rank needs %s, the limit is %s",
                sl_size_human(need, plan->rank0.total), sl_size_human(have, lim->per_rank));
    else
        sl_fail(err, SL_USAGE,
                "does not fit in memory: %d ranks need %s together with their processes, this "
                "machine allows %s",
                plan->ranks, sl_size_human(need, plan->together),
                sl_size_human(have, lim->machine));
    switch (sl_remedy_find(job, plan, lim, &fix, NULL)) {
    case 1:
        return sl_hint(err, "The cheapest change that makes it fit: %s (then %s a rank).",
                       fix.text, sl_size_human(then, fix.plan.rank0.total));
    case 0:
        return sl_hint(err, "No strategy, recomputation, smaller micro-batch, precision or number "
                            "of ranks makes it fit: make the model smaller or the limit higher.");
    default:
        return sl_hint(err, "What would make it fit could not be worked out here.");
    }
}

static void mib(struct sl_buf *out, int64_t bytes)
{
    sl_buf_printf(out, " %14.1f", (double)bytes / (1 << 20));
}

static int parts_differ(const struct sl_plan *p)
{
    return memcmp(&p->rank0, &p->other, sizeof p->rank0) != 0;
}

static void text_row(const char *name, const struct sl_plan_part *part, struct sl_buf *out)
{
    sl_buf_printf(out, "%-14s", name);
    mib(out, part->total);
    for (int c = 0; c < SL_CATS; c++)
        mib(out, part->bytes[c]);
}

void sl_plan_text(const struct sl_plan *plan, int n, const struct sl_plan_limits *lim,
                  struct sl_buf *out)
{
    char a[32];

    if (n < 1)
        return;
    sl_buf_printf(out, "%lld parameters, %s, %d rank%s of %d thread%s, micro-batch %lld x %lld%s\n",
                  (long long)plan->parameters, sl_precision_name(plan->precision), plan->ranks,
                  plan->ranks == 1 ? "" : "s", plan->threads, plan->threads == 1 ? "" : "s",
                  (long long)plan->micro, (long long)plan->accum,
                  plan->recompute == SL_RECOMPUTE_UNIT ? ", recompute by unit" : "");
    sl_buf_printf(out, "MiB per rank at its highest; each process adds at most %s\n\n",
                  sl_size_human(a, SL_PLAN_BASE));
    sl_buf_printf(out, "%-14s %14s", "strategy", "total");
    for (int c = 0; c < SL_CATS; c++)
        sl_buf_printf(out, " %14.14s", sl_cat_names[c]);
    sl_buf_str(out, lim->per_rank || lim->machine ? "  fits\n" : "\n");
    for (int i = 0; i < n; i++) {
        char name[32] = "";

        strncat(name, sl_strategy_name(plan[i].strategy), 8);
        text_row(name, &plan[i].rank0, out);
        if (lim->per_rank || lim->machine)
            sl_buf_str(out, plan[i].fits          ? "  yes"
                            : plan[i].fits_rank ? "  no (machine)"
                                                : "  no");
        sl_buf_char(out, '\n');
        if (parts_differ(&plan[i])) {
            strcat(name, ", others");
            text_row(name, &plan[i].other, out);
            sl_buf_char(out, '\n');
        }
    }
}

static void json_part(struct sl_json *j, const struct sl_plan_part *part)
{
    sl_json_put_int(j, "total_bytes", part->total);
    sl_json_key(j, "categories");
    sl_json_object(j);
    for (int c = 0; c < SL_CATS; c++) {
        sl_json_key(j, sl_cat_names[c]);
        sl_json_object(j);
        sl_json_put_int(j, "bytes", part->bytes[c]);
        sl_json_put_int(j, "peak_bytes", part->peak_bytes[c]);
        sl_json_end(j);
    }
    sl_json_end(j);
}

void sl_plan_json(const struct sl_plan *plan, int n, struct sl_buf *out)
{
    struct sl_json j;

    sl_json_init(&j, out);
    sl_json_object(&j);
    sl_json_put_int(&j, "ranks", n > 0 ? plan->ranks : 0);
    sl_json_key(&j, "strategies");
    sl_json_array(&j);
    for (int i = 0; i < n; i++) {
        sl_json_object(&j);
        sl_json_put_str(&j, "strategy", sl_strategy_name(plan[i].strategy));
        json_part(&j, &plan[i].rank0); /* the per-rank maximum */
        sl_json_put_bool(&j, "fits", plan[i].fits);
        sl_json_put_int(&j, "persistent_bytes", plan[i].persistent);
        sl_json_put_int(&j, "in_flight_bytes", plan[i].in_flight);
        sl_json_put_int(&j, "machine_bytes", plan[i].together);
        sl_json_put_int(&j, "threads", plan[i].threads);
        if (parts_differ(&plan[i])) {
            sl_json_key(&j, "per_rank");
            sl_json_array(&j);
            for (int r = 0; r < plan[i].ranks; r++) {
                sl_json_object(&j);
                sl_json_put_int(&j, "rank", r);
                json_part(&j, r == 0 ? &plan[i].rank0 : &plan[i].other);
                sl_json_end(&j);
            }
            sl_json_end(&j);
        }
        sl_json_end(&j);
    }
    sl_json_end(&j);
    sl_json_end(&j);
    sl_buf_char(out, '\n');
}
