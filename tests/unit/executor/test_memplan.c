/* Lifetimes, packing and categories, over many random models and many random lifetimes. */
#include "tests/unit/executor/tiny.h"

#include <stdlib.h>

#include "executor/graph/pack.h"

static uint64_t seed;

static int64_t draw(int64_t lo, int64_t hi)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return lo + (int64_t)((seed >> 33) % (uint64_t)(hi - lo + 1));
}

static struct sl_job random_job(int *ranks, enum sl_strategy *s)
{
    struct sl_job j = tiny_job();

    j.model.layers = draw(1, 5);
    j.model.heads = draw(1, 4);
    j.model.width = j.model.heads * draw(1, 30);
    j.model.ffn_width = draw(0, 1) ? 0 : draw(1, 200);
    j.model.context = draw(1, 40);
    j.model.dropout = draw(0, 1) ? 0 : 0.1;
    j.model.tie_embeddings = (int)draw(0, 1);
    j.data.vocab_size = draw(2, 600);
    j.train.micro_batch = draw(1, 5);
    j.train.recompute = draw(0, 1) ? SL_RECOMPUTE_UNIT : SL_RECOMPUTE_NONE;
    j.train.precision = draw(0, 2) ? SL_FP32 : SL_BF16_MIXED;
    *ranks = (int)draw(1, 9);
    *s = (enum sl_strategy)draw(0, SL_STRATEGIES - 1);
    j.train.batch = j.train.micro_batch * *ranks * draw(1, 2);
    return j;
}

static void check_graph(const struct sl_program *p, const struct sl_graph *g)
{
    int64_t sum = 0;

    assert_int_equal(sl_memplan_overlaps(g), 0);
    for (int c = 0; c < SL_CATS; c++) {
        assert_true(g->at_peak[c] >= 0 && g->at_peak[c] <= g->cat_peak[c]);
        sum += g->at_peak[c];
    }
    assert_int_equal(sum, g->arena);
    assert_true(g->arena <= p->arena);
    assert_int_equal(g->persistent, sl_persist_bytes(p->set));
    for (int i = 0; i < g->nb; i++) {
        const struct sl_buffer *b = &g->b[i];
        if (b->first < 0)
            continue;
        assert_int_equal(b->offset % 64, 0);
        if (b->rank0)
            assert_true(b->offset >= p->arena && b->offset + b->bytes <= p->arena0);
        else
            assert_true(b->offset >= 0 && b->offset + b->bytes <= g->arena);
        assert_true(b->persistent ? b->rank0 || b->offset + b->bytes <= g->persistent
                                  : b->offset >= g->persistent);
    }
}

/* Every operand of every operation has a place, lives at that time, and lies in its buffer. */
static void check_operands(const struct sl_graph *g)
{
    for (int i = 0; i < g->nops; i++) {
        const struct sl_op *o = &g->ops[i];
        int t[SL_MAX_IN + SL_MAX_OUT + SL_MAX_ACC + 1], n = 0;

        for (int a = 0; a < SL_MAX_IN; a++)
            t[n++] = o->in[a];
        for (int a = 0; a < SL_MAX_OUT; a++)
            t[n++] = o->out[a];
        for (int a = 0; a < SL_MAX_ACC; a++)
            t[n++] = o->acc[a];
        t[n++] = o->ws;
        for (int k = 0; k < n; k++) {
            const struct sl_tensor *q;
            const struct sl_buffer *b;
            int64_t last;
            if (t[k] < 0)
                continue;
            q = &g->t[t[k]];
            assert_true(q->buf >= 0 && q->buf < g->nb);
            b = &g->b[q->buf];
            assert_true(b->offset >= 0);
            assert_true(b->first <= i && i <= b->last);
            last = q->by_rank ? q->n * g->ranks : q->off + q->n;
            assert_true(last * sl_dtype_size(q->type) <= b->bytes);
        }
    }
}

static void no_plan_of_a_random_model_overlaps(void **state)
{
    (void)state;
    seed = 20240601;
    for (int k = 0; k < 300; k++) {
        int ranks;
        enum sl_strategy s;
        struct sl_job j = random_job(&ranks, &s);
        struct sl_program *p = make(&j, ranks, s, (int)draw(0, 1) * SL_PROGRAM_PREFETCH);

        check_graph(p, p->train);
        check_graph(p, p->eval);
        check_operands(p->train);
        check_operands(p->eval);
        assert_int_equal(p->arena,
                         p->train->arena > p->eval->arena ? p->train->arena : p->eval->arena);
        sl_program_destroy(p);
    }
}

/* Of 600 graphs; no packing at all may exist at the bound, so a rare one is a little further off. */
static void packing_is_within_one_per_cent_of_the_bound(void **state)
{
    int far = 0, exact = 0;

    (void)state;
    seed = 7;
    for (int k = 0; k < 300; k++) {
        int ranks;
        enum sl_strategy s;
        struct sl_job j = random_job(&ranks, &s);
        struct sl_program *p = make(&j, ranks, s, 0);
        const struct sl_graph *both[] = {p->train, p->eval};

        for (int i = 0; i < 2; i++) {
            int64_t hole = both[i]->arena - both[i]->lower_bound;

            assert_true(hole >= 0);
            assert_true(hole * 1000 <= both[i]->lower_bound * 15);
            far += hole * 100 > both[i]->lower_bound;
            exact += hole == 0;
        }
        sl_program_destroy(p);
    }
    assert_true(far <= 1);
    assert_true(exact >= 580);
}

/* Lifetimes without any structure: never overlapping, never below the bound. */
static void random_lifetimes_are_packed_without_overlap(void **state)
{
    enum { N = 60, TIME = 40 };
    int exact = 0;

    (void)state;
    seed = 99;
    for (int k = 0; k < 200; k++) {
        struct sl_pack_item v[N];
        int64_t off[N], bound = 0, top, again[N];
        int n = (int)draw(1, N);

        for (int i = 0; i < n; i++) {
            v[i].first = (int)draw(0, TIME - 1);
            v[i].last = (int)draw(v[i].first, TIME - 1);
            v[i].bytes = 64 * draw(1, 50);
        }
        for (int t = 0; t < TIME; t++) {
            int64_t sum = 0;
            for (int i = 0; i < n; i++)
                if (v[i].first <= t && t <= v[i].last)
                    sum += v[i].bytes;
            if (sum > bound)
                bound = sum;
        }
        top = sl_pack(v, n, bound, off, NULL);
        assert_true(top >= bound && top * 100 <= bound * 115);
        exact += top == bound;
        for (int i = 0; i < n; i++) {
            assert_true(off[i] >= 0 && off[i] + v[i].bytes <= top);
            for (int q = 0; q < i; q++)
                assert_true(v[i].last < v[q].first || v[q].last < v[i].first
                            || off[i] + v[i].bytes <= off[q] || off[q] + v[q].bytes <= off[i]);
        }
        assert_int_equal(sl_pack(v, n, bound, again, NULL), top);
        assert_memory_equal(off, again, sizeof *off * (size_t)n);
    }
    assert_true(exact > 100);
}

static void the_overlap_check_sees_an_overlap(void **state)
{
    struct sl_job j = tiny_job();
    struct sl_program *p = make(&j, 2, SL_ZERO3, 0);
    struct sl_graph *g = p->train;
    int a = -1, b = -1;

    (void)state;
    for (int i = 0; i < g->nb && b < 0; i++)
        for (int k = 0; k < i; k++)
            if (!g->b[i].persistent && !g->b[k].persistent && g->b[i].alias < 0
                && g->b[k].alias < 0 && g->b[i].first >= 0 && g->b[k].first >= 0
                && g->b[i].first <= g->b[k].last && g->b[k].first <= g->b[i].last) {
                a = k;
                b = i;
                break;
            }
    assert_true(b >= 0);
    g->b[b].offset = g->b[a].offset;
    assert_true(sl_memplan_overlaps(g) > 0);
    sl_program_destroy(p);
}

static void results_take_the_place_of_dying_inputs(void **state)
{
    struct sl_job j = tiny_job();
    struct sl_program *p = make(&j, 1, SL_DDP, 0), *wide;
    int placed = 0;

    (void)state;
    for (int i = 0; i < p->train->nops; i++) {
        const struct sl_op *o = &p->train->ops[i];
        const struct sl_buffer *in, *out;

        if (o->kind != SL_OP_POSITION && o->kind != SL_OP_DROPOUT_BWD && o->kind != SL_OP_HEAD)
            continue;
        in = &p->train->b[p->train->t[o->in[o->kind == SL_OP_POSITION]].buf];
        out = &p->train->b[p->train->t[o->out[o->kind == SL_OP_HEAD]].buf];
        placed += in->offset == out->offset;
    }
    assert_true(placed >= 2); /* the embedding's sum, and dx of the head */
    wide = make(&j, 1, SL_DDP, SL_PROGRAM_NO_SHARING);
    for (int i = 0; i < wide->train->nb; i++)
        assert_int_equal(wide->train->b[i].alias, -1);
    assert_true(wide->arena > p->arena);
    sl_program_destroy(wide);
    sl_program_destroy(p);
}

static void all_graphs_share_one_set_of_persistent_buffers(void **state)
{
    (void)state;
    for (int s = 0; s < SL_STRATEGIES; s++) {
        struct sl_job j = tiny_job();
        struct sl_program *p = make(&j, 4, (enum sl_strategy)s, 0);

        assert_int_equal(p->train->nunits, p->eval->nunits);
        for (int u = 0; u < p->train->nunits; u++) {
            const struct sl_tensor *a = &p->train->t[p->train->unit[u].psh];
            const struct sl_tensor *b = &p->eval->t[p->eval->unit[u].psh];
            assert_int_equal(p->train->b[a->buf].offset, p->eval->b[b->buf].offset);
            assert_int_equal(a->by_rank, b->by_rank);
            assert_int_equal(a->n, b->n);
        }
        /* evaluation overwrites nothing that training keeps: gradients of a step, moments */
        for (int i = 0; i < p->eval->nb; i++)
            if (!p->eval->b[i].persistent && p->eval->b[i].first >= 0)
                assert_true(p->eval->b[i].offset >= p->train->persistent);
        sl_program_destroy(p);
    }
}

static void dps_optimizer_lies_behind_everything_on_rank_0_alone(void **state)
{
    struct sl_job j = tiny_job();
    struct sl_program *dp = make(&j, 2, SL_DP, 0), *ddp = make(&j, 2, SL_DDP, 0);
    int64_t own = sl_persist_cat(dp->set, SL_CAT_OPTIMIZER, 1);

    (void)state;
    assert_true(own > 0);
    assert_int_equal(dp->arena0, dp->arena + own);
    assert_int_equal(dp->arena0, ddp->arena);
    for (int u = 0; u < dp->train->nunits; u++) {
        assert_true(dp->train->b[dp->train->t[dp->train->unit[u].m].buf].offset >= dp->arena);
        assert_true(dp->train->b[dp->train->t[dp->train->unit[u].v].buf].offset >= dp->arena);
    }
    sl_program_destroy(dp);
    sl_program_destroy(ddp);
}

static void a_lifetime_can_be_cut_for_tests(void **state)
{
    struct sl_job j = tiny_job();
    struct sl_program *p = make(&j, 2, SL_ZERO3, 0);
    int cuts = 0;

    (void)state;
    for (int b = 0; b < p->train->nb; b++) {
        struct sl_buffer was = p->train->b[b];
        int ok = sl_memplan_cut(p->train, b) == 0;

        assert_int_equal(ok, !was.persistent && was.alias < 0 && was.first >= 0
                                 && was.last > was.first);
        assert_int_equal(p->train->b[b].last, was.last - ok);
        assert_int_equal(p->train->b[b].offset, was.offset);
        cuts += ok;
    }
    assert_int_equal(sl_memplan_cut(p->train, -1), -1);
    assert_int_equal(sl_memplan_cut(p->train, p->train->nb), -1);
    assert_true(cuts > 20);
    sl_program_destroy(p);
}

/* What peers read of a gradient lives until the wait; a plan without the wait would reuse it. */
static void a_lent_gradient_lives_until_its_wait(void **state)
{
    struct sl_job j = tiny_job();
    struct sl_program *p = make(&j, 2, SL_ZERO2, 0);
    int waits = 0;

    (void)state;
    for (int i = 0; i < p->train->nops; i++) {
        const struct sl_op *o = &p->train->ops[i];
        if (o->kind != SL_OP_COMM_WAIT)
            continue;
        waits++;
        assert_int_equal(p->train->b[p->train->t[o->in[0]].buf].last, i);
    }
    assert_int_equal(waits, p->train->nunits);
    sl_program_destroy(p);
}

static void inputs_live_from_the_start_and_the_loss_to_the_end(void **state)
{
    struct sl_job j = tiny_job();
    struct sl_program *p = make(&j, 2, SL_ZERO2, 0);
    const struct sl_graph *g = p->train;

    (void)state;
    assert_int_equal(g->b[g->t[g->ids].buf].first, 0);
    assert_int_equal(g->b[g->t[g->targets].buf].first, 0);
    assert_int_equal(g->b[g->t[g->loss].buf].last, g->nops - 1);
    assert_int_equal(g->t[g->ids].n, p->micro * j.model.context);
    sl_program_destroy(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_plan_of_a_random_model_overlaps),
        cmocka_unit_test(packing_is_within_one_per_cent_of_the_bound),
        cmocka_unit_test(random_lifetimes_are_packed_without_overlap),
        cmocka_unit_test(the_overlap_check_sees_an_overlap),
        cmocka_unit_test(results_take_the_place_of_dying_inputs),
        cmocka_unit_test(all_graphs_share_one_set_of_persistent_buffers),
        cmocka_unit_test(dps_optimizer_lies_behind_everything_on_rank_0_alone),
        cmocka_unit_test(a_lifetime_can_be_cut_for_tests),
        cmocka_unit_test(a_lent_gradient_lives_until_its_wait),
        cmocka_unit_test(inputs_live_from_the_start_and_the_loss_to_the_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
