#include "executor/remedy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MICROS = 8, CHANGES = 512 };

struct change {
    enum sl_strategy strategy;
    enum sl_recompute recompute;
    enum sl_precision precision;
    int64_t micro;
    int ranks, cost;
};

struct list {
    struct change v[CHANGES];
    int n;
};

static int by_cost(const void *pa, const void *pb)
{
    const struct change *a = pa, *b = pb;

    if (a->cost != b->cost)
        return a->cost - b->cost;
    if (a->ranks != b->ranks)
        return a->ranks - b->ranks;
    if (a->strategy != b->strategy)
        return (int)a->strategy - (int)b->strategy;
    return a->micro < b->micro ? 1 : a->micro > b->micro ? -1 : 0; /* the larger one first */
}

static int halvings(int64_t from, int64_t to)
{
    int n = 0;

    for (; from > to; from /= 2)
        n++;
    return n;
}

/* Every combination at one number of ranks, with micro-batches that divide the present one. */
static void collect(struct list *l, const struct sl_job *job, const struct sl_plan *plan, int ranks)
{
    static const int strategy_cost[SL_STRATEGIES] = {
        [SL_DP] = 0, [SL_DDP] = 0, [SL_ZERO1] = 1, [SL_ZERO2] = 1, [SL_ZERO3] = 8};
    int64_t share = job->train.batch / ranks, seen = 0;

    l->n = 0;
    for (int64_t m = plan->micro; m >= 1 && seen < MICROS; m--) {
        if (share % m || plan->micro % m)
            continue;
        seen++;
        for (int s = (int)plan->strategy; s < SL_STRATEGIES; s++)
            for (int k = 0; k < 4; k++) {
                struct change c = {.strategy = (enum sl_strategy)s, .micro = m, .ranks = ranks};

                c.recompute = k & 1 ? SL_RECOMPUTE_UNIT : plan->recompute;
                c.precision = k & 2 ? SL_BF16_MIXED : plan->precision;
                if ((k & 1 && plan->recompute == SL_RECOMPUTE_UNIT)
                    || (k & 2 && plan->precision == SL_BF16_MIXED)
                    || (ranks == 1 && s != (int)plan->strategy) || l->n == CHANGES)
                    continue;
                c.cost = s == (int)plan->strategy ? 0 : strategy_cost[s];
                c.cost += 2 * halvings(plan->micro, m) + (k & 1 ? 30 : 0) + (k & 2 ? 100 : 0)
                          + 200 * halvings(ranks, plan->ranks);
                l->v[l->n++] = c;
            }
    }
    qsort(l->v, (size_t)l->n, sizeof *l->v, by_cost);
}

static int try_change(const struct sl_job *job, const struct change *c,
                      const struct sl_plan_limits *lim, struct sl_plan *ret, struct sl_err *err)
{
    struct sl_job other = *job;

    other.train.recompute = c->recompute;
    other.train.precision = c->precision;
    other.train.micro_batch = c->micro;
    return sl_plan_make(&other, c->ranks, c->strategy, lim, ret, err);
}

/* When nothing fits with the smallest micro-batch, nothing does at these ranks. */
static int hopeless(const struct sl_job *job, const struct list *l,
                    const struct sl_plan_limits *lim, int *answer, struct sl_err *err)
{
    struct sl_plan plan;
    int64_t least = INT64_MAX;

    for (int i = 0; i < l->n; i++)
        if (l->v[i].micro < least)
            least = l->v[i].micro;
    *answer = 1;
    for (int i = l->n - 1; i >= 0 && *answer; i--) {
        if (l->v[i].micro != least)
            continue;
        if (try_change(job, &l->v[i], lim, &plan, err))
            return -1;
        *answer = !plan.fits;
    }
    return 0;
}

static void also(char *text, size_t size, const char *what)
{
    size_t n = strlen(text);

    snprintf(text + n, size - n, "%s%s", n ? " and " : "", what);
}

static void describe(const struct sl_plan *from, const struct change *c, int nodes,
                     struct sl_remedy *ret)
{
    char word[64];

    ret->text[0] = 0;
    ret->cost = c->cost;
    if (c->strategy != from->strategy) {
        snprintf(word, sizeof word, "train.strategy = \"%s\"", sl_strategy_name(c->strategy));
        also(ret->text, sizeof ret->text, word);
    }
    if (c->micro != from->micro) {
        snprintf(word, sizeof word, "train.micro_batch = %lld", (long long)c->micro);
        also(ret->text, sizeof ret->text, word);
    }
    if (c->recompute != from->recompute)
        also(ret->text, sizeof ret->text, "train.recompute = \"unit\"");
    if (c->precision != from->precision)
        also(ret->text, sizeof ret->text, "train.precision = \"bf16\"");
    if (c->ranks != from->ranks) {
        snprintf(word, sizeof word, "resources.ranks_per_node = %d", c->ranks / nodes);
        also(ret->text, sizeof ret->text, word);
    }
}

int sl_remedy_find(const struct sl_job *job, const struct sl_plan *plan,
                   const struct sl_plan_limits *lim, struct sl_remedy *ret, struct sl_err *err)
{
    struct list l;

    for (int ranks = plan->ranks; ranks <= SL_MAX_RANKS; ranks *= 2) {
        int no;

        if (job->train.batch % ranks)
            continue;
        collect(&l, job, plan, ranks);
        if (hopeless(job, &l, lim, &no, err))
            return -1;
        for (int i = 0; i < l.n && !no; i++) {
            if (try_change(job, &l.v[i], lim, &ret->plan, err))
                return -1;
            if (!ret->plan.fits)
                continue;
            describe(plan, &l.v[i], (int)job->resources.nodes, ret);
            return 1;
        }
    }
    return 0;
}
