/* Strategies: bytes by formula, buffers in flight to the byte, collectives counted, barriers. */
#include "tests/unit/executor/tiny.h"

#include "executor/graph/autodiff.h"
#include "executor/graph/build.h"
#include "executor/graph/schedule.h"
#include "executor/graph/shard.h"
#include "executor/plan.h"

static const int worlds[] = {1, 2, 3, 4, 7, 8, 64};
enum { WORLDS = sizeof worlds / sizeof *worlds };

static int64_t units(const struct sl_job *j, int64_t *n)
{
    int64_t k = 0;

    n[k++] = embedding_n(j);
    for (int64_t l = 0; l < j->model.layers; l++)
        n[k++] = block_n(j);
    n[k++] = head_n(j);
    return k;
}

/*
 * Bytes a rank keeps, by DESIGN's table on the padded units: fp32 4 + 4 + 8, bf16 2 + 2 + 12, each
 * full or a shard. dp: rank 0.
 */
static void state_bytes(const struct sl_job *j, int ranks, enum sl_strategy s, int64_t want[3])
{
    int64_t n[16], k = units(j, n);
    int bf16 = j->train.precision == SL_BF16_MIXED;

    want[0] = want[1] = want[2] = 0;
    for (int64_t u = 0; u < k; u++) {
        int64_t shard = cut(j, n[u], ranks), full = shard * ranks;

        want[0] += (bf16 ? 2 : 4) * (s == SL_ZERO3 ? shard : full);
        want[1] += (bf16 ? 2 : 4) * (s == SL_ZERO3 || s == SL_ZERO2 ? shard : full);
        want[2] += (bf16 ? 12 : 8) * (s == SL_DDP || s == SL_DP ? full : shard);
    }
}

static void state_follows_the_formulas_at_every_world_size(void **state)
{
    (void)state;
    for (int w = 0; w < WORLDS; w++)
        for (int s = 0; s < SL_STRATEGIES; s++)
            for (int variant = 0; variant < 4; variant++) {
                struct sl_job j = tiny_job();
                struct sl_program *p;
                int64_t want[3], per_param, real, padded = 0;

                j.train.precision = variant & 1 ? SL_BF16_MIXED : SL_FP32;
                j.model.tie_embeddings = !(variant & 2);
                p = make(&j, worlds[w], (enum sl_strategy)s, 0);
                state_bytes(&j, worlds[w], (enum sl_strategy)s, want);
                assert_int_equal(sl_persist_cat(p->set, SL_CAT_PARAMETERS, 0), want[0]);
                assert_int_equal(sl_persist_cat(p->set, SL_CAT_GRADIENTS, 0), want[1]);
                assert_int_equal(sl_persist_cat(p->set, SL_CAT_OPTIMIZER, 0)
                                     + sl_persist_cat(p->set, SL_CAT_OPTIMIZER, 1),
                                 want[2]);
                assert_int_equal(sl_persist_cat(p->set, SL_CAT_OPTIMIZER, 1),
                                 s == SL_DP && worlds[w] > 1 ? want[2] : 0);
                /* and padding is bounded: 15 elements a parameter, 32 a rank and unit */
                for (int u = 0; u < p->train->nunits; u++)
                    padded += p->train->unit[u].shard * worlds[w];
                real = p->parameters;
                per_param = padded - real;
                assert_true(per_param >= 0);
                assert_true(per_param
                            < 15 * p->train->npar + 32 * worlds[w] * p->train->nunits);
                sl_program_destroy(p);
            }
}

static void with_one_rank_all_strategies_are_one_plan(void **state)
{
    struct sl_job j = tiny_job();
    struct sl_program *ddp = make(&j, 1, SL_DDP, 0);

    (void)state;
    for (int s = 0; s < SL_STRATEGIES; s++) {
        struct sl_program *p = make(&j, 1, (enum sl_strategy)s, 0);

        assert_int_equal(p->arena0, ddp->arena0);
        assert_int_equal(p->arena, p->arena0);
        assert_int_equal(p->train->nops, ddp->train->nops);
        assert_memory_equal(p->train->at_peak, ddp->train->at_peak, sizeof p->train->at_peak);
        for (int i = 0; i < p->train->nops; i++) {
            assert_false(sl_op_info(p->train->ops[i].kind)->comm);
            assert_false(p->train->ops[i].a.barrier);
        }
        sl_program_destroy(p);
    }
    sl_program_destroy(ddp);
}

static int64_t max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/*
 * doc/design/memory.md: zero2 = tied + block, zero3 = tied + max(tied, 2 blocks); untied, the
 * embedding's and the head's unit each stand for themselves, and embedding_bwd reads no weight.
 */
static void buffers_in_flight_follow_the_published_formula(void **state)
{
    (void)state;
    for (int w = 1; w < WORLDS; w++)
        for (int variant = 0; variant < 8; variant++)
            for (int s = 0; s < SL_STRATEGIES; s++) {
                struct sl_job j = tiny_job();
                struct sl_program *p;
                int64_t size = variant & 1 ? 2 : 4, n = worlds[w], e, b, h, want = 0, got;

                j.train.precision = variant & 1 ? SL_BF16_MIXED : SL_FP32;
                j.model.tie_embeddings = !(variant & 2);
                j.train.recompute = variant & 4 ? SL_RECOMPUTE_UNIT : SL_RECOMPUTE_NONE;
                e = cut(&j, embedding_n(&j), worlds[w]) * n * size;
                b = cut(&j, block_n(&j), worlds[w]) * n * size;
                h = cut(&j, head_n(&j), worlds[w]) * n * size;
                if (s == SL_ZERO2)
                    want = j.model.tie_embeddings ? e + b : max(e, max(b, h));
                if (s == SL_ZERO3)
                    want = j.model.tie_embeddings ? e + max(e, 2 * b) : max(e, 2 * max(b, h));
                p = make(&j, worlds[w], (enum sl_strategy)s, 0);
                got = max(p->train->cat_peak[SL_CAT_COMMUNICATION],
                          p->eval->cat_peak[SL_CAT_COMMUNICATION]);
                assert_int_equal(got, want);
                assert_int_equal(sl_plan_in_flight(p), want);
                sl_program_destroy(p);
            }
}

/* The next stay's weights are there one stay early: a block more, or the head's unit at the head. */
static void prefetch_adds_one_unit_in_flight(void **state)
{
    (void)state;
    for (int w = 1; w < WORLDS; w++) {
        struct sl_job j = tiny_job();
        int64_t n = 4 * worlds[w], e = cut(&j, embedding_n(&j), worlds[w]) * n,
                b = cut(&j, block_n(&j), worlds[w]) * n, h = cut(&j, head_n(&j), worlds[w]) * n;
        struct sl_program *p = make(&j, worlds[w], SL_ZERO3, SL_PROGRAM_PREFETCH);

        assert_int_equal(p->train->cat_peak[SL_CAT_COMMUNICATION], e + max(e + h, 3 * b));
        assert_int_equal(sl_memplan_overlaps(p->train), 0);
        sl_program_destroy(p);
    }
}

/* Calls and bytes read from peers, in one step of `accum` micro-steps, by hand. */
static void collectives_are_those_of_the_strategy(void **state)
{
    (void)state;
    for (int w = 1; w < WORLDS; w++)
        for (int s = 0; s < SL_STRATEGIES; s++) {
            struct sl_job j = tiny_job();
            int n = worlds[w];
            int64_t len[16], k, layers = j.model.layers, pulled = 0, stays, full = 0;
            struct sl_program *p = make(&j, n, (enum sl_strategy)s, 0);
            struct sl_program_count c[SL_OP_KINDS], other[SL_OP_KINDS];
            int64_t accum = j.train.batch / (3 * n);

            k = units(&j, len);
            for (int64_t u = 0; u < k; u++) {
                pulled += 4 * cut(&j, len[u], n) * (n - 1); /* one pass over all units */
                full += 4 * cut(&j, len[u], n) * n;
            }
            assert_int_equal(p->accum, accum);
            sl_program_counts(p, 0, c);
            sl_program_counts(p, n - 1, other);
            assert_int_equal(c[SL_OP_REDUCE].calls, s == SL_DP ? k : 0);
            assert_int_equal(c[SL_OP_REDUCE].bytes, s == SL_DP ? full * (n - 1) : 0);
            assert_int_equal(other[SL_OP_REDUCE].bytes, 0);
            assert_int_equal(c[SL_OP_BROADCAST].calls, s == SL_DP ? k : 0);
            assert_int_equal(c[SL_OP_BROADCAST].bytes, 0);
            assert_int_equal(other[SL_OP_BROADCAST].bytes, s == SL_DP ? full : 0);
            assert_int_equal(c[SL_OP_REDUCE_INPLACE].calls, s == SL_DDP || s == SL_ZERO1 ? k : 0);
            assert_int_equal(c[SL_OP_REDUCE_INPLACE].bytes,
                             s == SL_DDP || s == SL_ZERO1 ? pulled : 0);
            assert_int_equal(c[SL_OP_ALLGATHER_INPLACE].calls,
                             s == SL_DDP || s == SL_ZERO1 || s == SL_ZERO2 ? k : 0);
            assert_int_equal(c[SL_OP_ALLGATHER_INPLACE].bytes,
                             s == SL_DDP || s == SL_ZERO1 || s == SL_ZERO2 ? pulled : 0);
            assert_int_equal(c[SL_OP_REDUCE_SCATTER].calls, s >= SL_ZERO2 ? accum * k : 0);
            assert_int_equal(c[SL_OP_REDUCE_SCATTER].bytes, s >= SL_ZERO2 ? accum * pulled : 0);
            /* embedding, blocks, final norm, output layer (the embedding's); back: final norm,
             * blocks; the embedding's backward reads no weight */
            stays = 1 + layers + 1 + 1 + 1 + layers;
            assert_int_equal(c[SL_OP_GATHER].calls, s == SL_ZERO3 ? accum * stays : 0);
            assert_int_equal(c[SL_OP_GATHER].bytes, s == SL_ZERO3 ? accum * 2 * pulled : 0);
            assert_memory_equal(&c[SL_OP_GATHER], &other[SL_OP_GATHER], sizeof *c);
            sl_program_destroy(p);
        }
}

/* How often ranks meet in a step: see doc/design/executor.md. */
static void barriers_are_only_where_peers_memory_changed(void **state)
{
    struct sl_job j = tiny_job();
    int u = (int)j.model.layers + 2;
    /* the sums, the waits, the norm, the parameters, the end */
    const int want[] = {[SL_DP] = 1 + 0 + 1 + 1 + 1,
                        [SL_DDP] = u + 0 + 1 + 0 + 1,
                        [SL_ZERO1] = 1 + 0 + 1 + 1 + 1,
                        [SL_ZERO2] = u + (u - 1) + 1 + 1 + 1, /* one wait is answered by a sum */
                        [SL_ZERO3] = u + (u - 1) + 1 + 0 + 1};

    (void)state;
    for (int s = 0; s < SL_STRATEGIES; s++) {
        struct sl_program *p = make(&j, 3, (enum sl_strategy)s, 0);
        int n = 0;

        for (int i = 0; i < p->train->nops; i++)
            n += p->train->ops[i].a.barrier;
        assert_int_equal(n, want[s]);
        for (int i = 0; i < p->eval->nops; i++)
            assert_false(p->eval->ops[i].a.barrier);
        sl_program_destroy(p);
    }
}

/*
 * Without knowing the pass: between a write of a buffer by its rank and a peer's read of it, and
 * between a peer's read and the end of the buffer's life, all ranks have met.
 */
static void no_peer_reads_what_is_not_ready_or_gone(void **state)
{
    (void)state;
    for (int s = 0; s < SL_STRATEGIES; s++)
        for (int variant = 0; variant < 4; variant++) {
            struct sl_job j = tiny_job();
            struct sl_program *p;
            const struct sl_graph *g;

            j.train.recompute = variant & 1 ? SL_RECOMPUTE_UNIT : SL_RECOMPUTE_NONE;
            p = make(&j, 2, (enum sl_strategy)s, variant & 2 ? SL_PROGRAM_PREFETCH : 0);
            g = p->train;
            for (int i = 0; i < g->nops; i++) {
                const struct sl_op *o = &g->ops[i];
                int how = sl_op_info(o->kind)->reads_peers, buf, met = o->a.barrier, w;

                if (!how)
                    continue;
                buf = g->t[how == 1 ? o->in[0] : o->acc[0]].buf;
                for (w = i - 1; w >= 0 && !met; w--) { /* the last write before me */
                    const struct sl_op *q = &g->ops[w];
                    int writes = 0;
                    for (int a = 0; a < SL_MAX_ACC; a++)
                        writes |= q->acc[a] >= 0 && g->t[q->acc[a]].buf == buf;
                    for (int a = 0; a < SL_MAX_OUT; a++)
                        writes |= q->out[a] >= 0 && g->t[q->out[a]].buf == buf;
                    assert_false(writes);
                    met = q->a.barrier;
                }
                if (g->b[buf].persistent)
                    continue;
                for (w = i + 1, met = 0; w <= g->b[buf].last && !met; w++)
                    met = g->ops[w].a.barrier;
                assert_true(met); /* it lives until they have met again */
                assert_true(g->b[buf].last < g->opt_start);
            }
            sl_program_destroy(p);
        }
}

static void a_tensor_smaller_than_the_number_of_ranks_is_padded(void **state)
{
    struct sl_graph *g = sl_graph_create(SL_F32, NULL);
    int x, u;

    (void)state;
    sl_inputs(g, 1, 1);
    sl_unit_begin(g, "e", "");
    x = sl_embed(g, sl_weight(g, "wte", 2, 1, 0.02), "wte"); /* 2 elements for 64 ranks */
    u = sl_unit_begin(g, "n", "");
    x = sl_layernorm(g, x, "ln"); /* two parameters of one element */
    sl_head(g, x, g->par[0].value, "lm_head");
    assert_int_equal(sl_autodiff(g), 0);
    assert_int_equal(sl_shard(g, SL_ZERO3, 64), 0);
    assert_int_equal(sl_schedule(g, 0), 0);
    assert_int_equal(g->unit[0].shard, 16);
    assert_int_equal(g->unit[u].shard, 16);
    for (int i = 0; i < g->nops; i++)
        if (g->ops[i].kind == SL_OP_ZERO) /* padding is zeroed: the norm sees it */
            assert_int_equal(g->t[g->ops[i].out[0]].n, 16 * 64);
    sl_graph_destroy(g);
}

static void what_cannot_be_sharded_is_refused(void **state)
{
    struct sl_job j = tiny_job();
    struct sl_err err = {0};

    (void)state;
    assert_null(sl_program_make(&j, 5, SL_ZERO2, 1, 0, &err)); /* no multiple of 15 */
    assert_int_equal(err.code, SL_USAGE);
    assert_null(sl_program_make(&j, 0, SL_ZERO2, 1, 0, &err));
    assert_null(sl_program_make(&j, 65, SL_ZERO2, 1, 0, &err));
    j.data.vocab_size = 0;
    assert_null(sl_program_make(&j, 2, SL_ZERO2, 1, 0, &err));
    assert_non_null(strstr(err.msg, "vocabulary"));
    j = tiny_job();
    j.model.kind = "gtp";
    assert_null(sl_program_make(&j, 2, SL_ZERO2, 1, 0, &err));
    assert_non_null(strstr(err.msg, "gtp"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(state_follows_the_formulas_at_every_world_size),
        cmocka_unit_test(with_one_rank_all_strategies_are_one_plan),
        cmocka_unit_test(buffers_in_flight_follow_the_published_formula),
        cmocka_unit_test(prefetch_adds_one_unit_in_flight),
        cmocka_unit_test(collectives_are_those_of_the_strategy),
        cmocka_unit_test(barriers_are_only_where_peers_memory_changed),
        cmocka_unit_test(no_peer_reads_what_is_not_ready_or_gone),
        cmocka_unit_test(a_tensor_smaller_than_the_number_of_ranks_is_padded),
        cmocka_unit_test(what_cannot_be_sharded_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
