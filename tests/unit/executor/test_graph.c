/* The description of a model, its derivative, and recomputation. */
#include "tests/unit/executor/tiny.h"

#include <stdlib.h>

#include "common/mem.h"
#include "executor/call.h"
#include "executor/graph/autodiff.h"
#include "executor/graph/build.h"
#include "executor/graph/recompute.h"
#include "executor/graph/shard.h"

static struct sl_graph *fresh(void)
{
    struct sl_graph *g = sl_graph_create(SL_F32, NULL);

    assert_non_null(g);
    sl_inputs(g, 2, 5);
    sl_unit_begin(g, "h.7", "h.7.");
    return g;
}

static void assert_refused(struct sl_graph *g, const char *part)
{
    struct sl_err err = {0};

    assert_int_equal(sl_graph_error(g, &err), -1);
    assert_int_equal(err.code, SL_USAGE);
    if (!strstr(err.msg, part))
        fail_msg("\"%s\" does not say \"%s\"", err.msg, part);
    sl_graph_destroy(g);
}

static int input(struct sl_graph *g, int64_t width)
{
    return sl_embed(g, sl_weight(g, "wte", 11, width, 0.02), "wte");
}

static void a_shape_error_names_the_layer(void **state)
{
    struct sl_graph *g = fresh();
    int x;

    (void)state;
    assert_int_equal(sl_linear(g, input(g, 8), 0, "mlp.c_fc", 0.02), -1);
    assert_refused(g, "layer \"h.7.mlp.c_fc\"");

    g = fresh();
    assert_int_equal(sl_attention(g, input(g, 24), 3, "attn"), -1); /* 24 / 3 = 8, no 3 heads */
    assert_refused(g, "layer \"h.7.attn\": 3 heads do not divide a width of 8");

    g = fresh();
    assert_int_equal(sl_attention(g, input(g, 25), 1, "attn"), -1);
    assert_refused(g, "layer \"h.7.attn\"");

    g = fresh();
    x = input(g, 8);
    assert_int_equal(sl_add(g, x, sl_linear(g, x, 9, "up", 0.02), "mlp"), -1);
    assert_refused(g, "layer \"h.7.mlp\": a sum of 10 x 8 and 10 x 9");

    g = fresh();
    x = input(g, 8);
    assert_int_equal(sl_position(g, x, sl_weight(g, "wpe", 4, 8, 0.02), "wpe"), -1);
    assert_refused(g, "layer \"h.7.wpe\"");

    g = fresh();
    x = input(g, 8);
    assert_int_equal(sl_head(g, x, sl_weight(g, "out", 11, 9, 0.02), "lm_head"), -1);
    assert_refused(g, "layer \"h.7.lm_head\"");

    g = fresh();
    assert_int_equal(sl_dropout(g, input(g, 8), 1.0, "drop"), -1);
    assert_refused(g, "layer \"h.7.drop\"");

    g = fresh();
    sl_weight(g, "wte", 3, 4, 0.02);
    assert_int_equal(sl_weight(g, "wte", 3, 4, 0.02), -1);
    assert_refused(g, "a second parameter");
}

static void the_first_error_sticks_and_later_calls_do_nothing(void **state)
{
    struct sl_graph *g = fresh();
    int x = input(g, 8), nops;

    (void)state;
    sl_linear(g, x, -4, "first", 0.02);
    nops = g->nops;
    assert_int_equal(sl_linear(g, x, 8, "second", 0.02), -1);
    assert_int_equal(sl_dropout(g, x, 7, "third"), -1);
    assert_int_equal(sl_head(g, -1, -1, "fourth"), -1);
    assert_int_equal(sl_unit_begin(g, "u", ""), -1);
    assert_int_equal(sl_autodiff(g), -1);
    assert_int_equal(sl_shard(g, SL_ZERO3, 2), -1);
    assert_int_equal(g->nops, nops);
    assert_refused(g, "layer \"h.7.first\"");
}

static const struct sl_op *find(const struct sl_graph *g, enum sl_kind kind)
{
    for (int i = 0; i < g->nops; i++)
        if (g->ops[i].kind == kind)
            return &g->ops[i];
    fail_msg("no operation %s", sl_kind_names[kind]);
    return NULL;
}

static void a_tied_weight_has_one_gradient_that_both_uses_add_to(void **state)
{
    (void)state;
    for (int tie = 0; tie < 2; tie++) {
        struct sl_job j = tiny_job();
        struct sl_program *p;
        int head, embed;

        j.model.tie_embeddings = tie;
        p = make(&j, 1, SL_DDP, 0);
        head = find(p->train, SL_OP_HEAD)->acc[0];
        embed = find(p->train, SL_OP_EMBED_BWD)->acc[0];
        assert_true(head >= 0 && embed >= 0);
        assert_int_equal(head == embed, tie);
        assert_int_equal(count(p->train, SL_OP_ZERO), p->train->nunits); /* once a unit */
        sl_program_destroy(p);
    }
}

static void an_unused_parameter_has_no_gradient_and_no_state(void **state)
{
    struct sl_graph *g = fresh();
    int x = input(g, 8), unused, unit;

    (void)state;
    unit = sl_unit_begin(g, "spare", "spare.");
    unused = sl_weight(g, "w", 20, 20, 0.02);
    sl_unit_begin(g, "head", "");
    sl_head(g, x, sl_weight(g, "out", 11, 8, 0.02), "lm_head");
    assert_int_equal(sl_autodiff(g), 0);
    assert_int_equal(sl_shard(g, SL_ZERO3, 2), 0);
    assert_int_equal(g->par[g->t[unused].param].grad, -1);
    assert_int_equal(g->unit[unit].gfull, -1);
    assert_int_equal(g->unit[unit].m, -1);
    assert_true(g->unit[unit].psh >= 0);
    assert_int_equal(count(g, SL_OP_ADAMW), 2);
    assert_int_equal(count(g, SL_OP_GATHER), 2); /* nobody gathers what nobody reads */
    sl_graph_destroy(g);
}

/* Everything up to the block is frozen: nothing is appended for it, nor through it. */
static void frozen_parameters_fall_out_of_the_backward_pass(void **state)
{
    struct sl_graph *g = fresh();
    int wte = sl_weight(g, "wte", 11, 8, 0.02), x = sl_embed(g, wte, "wte"), w, b, y;

    (void)state;
    sl_freeze(g, wte);
    y = sl_linear(g, x, 8, "a", 0.02);
    w = g->par[1].value;
    b = g->par[2].value;
    sl_freeze(g, w);
    sl_freeze(g, b);
    y = sl_gelu(g, y);
    y = sl_linear(g, y, 8, "b", 0.02);
    sl_head(g, y, sl_weight(g, "out", 11, 8, 0.02), "lm_head");
    assert_int_equal(sl_autodiff(g), 0);
    assert_int_equal(count(g, SL_OP_EMBED_BWD), 0);
    assert_int_equal(count(g, SL_OP_GELU_BWD), 0);
    assert_int_equal(count(g, SL_OP_LINEAR_DX), 0);
    assert_int_equal(count(g, SL_OP_LINEAR_DW), 1);
    assert_int_equal(g->par[1].grad, -1);
    assert_true(g->par[3].grad >= 0);
    sl_graph_destroy(g);
}

static void a_model_without_head_or_parameters_is_refused(void **state)
{
    struct sl_graph *g = fresh();

    (void)state;
    input(g, 8);
    sl_autodiff(g);
    assert_refused(g, "no output layer");

    g = fresh();
    int w = sl_weight(g, "wte", 11, 8, 0.02);
    sl_freeze(g, w);
    sl_head(g, sl_embed(g, w, "wte"), w, "lm_head");
    sl_autodiff(g);
    assert_refused(g, "no parameter to train");
}

static void every_described_operation_has_its_backward(void **state)
{
    static const struct {
        enum sl_kind fwd, bwd;
    } pair[] = {{SL_OP_EMBED, SL_OP_EMBED_BWD},     {SL_OP_POSITION, SL_OP_POSITION_BWD},
                {SL_OP_LINEAR, SL_OP_LINEAR_DX},    {SL_OP_LINEAR, SL_OP_LINEAR_DW},
                {SL_OP_GELU, SL_OP_GELU_BWD},       {SL_OP_DROPOUT, SL_OP_DROPOUT_BWD},
                {SL_OP_LAYERNORM, SL_OP_LAYERNORM_BWD},
                {SL_OP_ATTENTION, SL_OP_ATTENTION_BWD}};
    struct sl_job j = tiny_job();
    struct sl_program *p = make(&j, 1, SL_DDP, 0);

    (void)state;
    for (size_t i = 0; i < sizeof pair / sizeof *pair; i++) {
        assert_true(count(p->train, pair[i].fwd) > 0);
        assert_int_equal(count(p->train, pair[i].fwd), count(p->train, pair[i].bwd));
    }
    /* two residuals a block; each joins two gradients once, as a sum */
    assert_int_equal(count(p->train, SL_OP_ADD), 2 * 2 * j.model.layers);
    for (int i = 0; i < p->train->npar; i++)
        assert_true(p->train->par[i].grad >= 0);
    sl_program_destroy(p);
}

/* A kind that one of the tables lacks would only show when a job runs it, as a crash. */
static void every_kind_has_a_name_of_its_own_and_a_caller(void **state)
{
    (void)state;
    for (int k = 0; k < SL_OP_KINDS; k++) {
        if (!sl_kind_names[k] || !sl_callers[k])
            fail_msg("kind %d has no %s", k, sl_kind_names[k] ? "caller" : "name");
        for (int i = 0; i < k; i++)
            assert_string_not_equal(sl_kind_names[i], sl_kind_names[k]);
    }
}

static void names_shapes_and_init_are_gpt2s(void **state)
{
    static const struct {
        const char *name;
        int64_t d0, d1;
        enum sl_init init;
        double scale; /* 0.02, and 0.02 / sqrt(2 * 3) for what writes into the residual */
        int decay;
    } want[] = {{"wte.weight", 211, 39, SL_INIT_NORMAL, 0.02, 1},
                {"wpe.weight", 9, 39, SL_INIT_NORMAL, 0.02, 1},
                {"h.0.ln_1.weight", 39, 0, SL_INIT_ONE, 0, 0},
                {"h.0.ln_1.bias", 39, 0, SL_INIT_ZERO, 0, 0},
                {"h.1.attn.c_attn.weight", 117, 39, SL_INIT_NORMAL, 0.02, 1},
                {"h.1.attn.c_attn.bias", 117, 0, SL_INIT_ZERO, 0, 0},
                {"h.2.attn.c_proj.weight", 39, 39, SL_INIT_NORMAL, 0.008164965809277261, 1},
                {"h.2.mlp.c_fc.weight", 101, 39, SL_INIT_NORMAL, 0.02, 1},
                {"h.2.mlp.c_proj.weight", 39, 101, SL_INIT_NORMAL, 0.008164965809277261, 1},
                {"ln_f.weight", 39, 0, SL_INIT_ONE, 0, 0}};
    struct sl_job j = tiny_job();
    struct sl_program *p = make(&j, 1, SL_DDP, 0);

    (void)state;
    assert_int_equal(p->train->npar, 2 + 12 * 3 + 2);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const struct sl_param *q = NULL;
        for (int k = 0; k < p->train->npar; k++)
            if (!strcmp(p->train->par[k].name, want[i].name))
                q = &p->train->par[k];
        assert_non_null(q);
        assert_int_equal(q->dim[0], want[i].d0);
        assert_int_equal(q->dim[1], want[i].d1);
        assert_int_equal(q->init, want[i].init);
        assert_true(q->scale > want[i].scale * (1 - 1e-12) - 1e-300);
        assert_true(q->scale < want[i].scale * (1 + 1e-12) + 1e-300);
        assert_int_equal(q->decay, want[i].decay);
    }
    /* 12 w^2 + 13 w a block when ffn = 4 w; here by hand for ffn = 101 */
    assert_int_equal(p->parameters, 211 * 39 + 9 * 39
                                        + 3 * (4 * 39 * 39 + 2 * 39 * 101 + 101 + 9 * 39) + 2 * 39);
    assert_string_equal(p->train->unit[p->train->nunits - 1].name, "head");
    sl_program_destroy(p);
}

/* A random stream is named by the place in the description: same in every program of the model. */
static void ids_depend_on_the_description_alone(void **state)
{
    struct sl_job j = tiny_job();
    int want[16], n = 0;

    (void)state;
    for (int variant = 0; variant < 6; variant++) {
        struct sl_program *p;
        int k = 0;

        j.train.recompute = variant == 5 ? SL_RECOMPUTE_UNIT : SL_RECOMPUTE_NONE;
        p = make(&j, variant < 5 ? 2 : 3, variant < 5 ? (enum sl_strategy)variant : SL_ZERO3,
                 variant == 4 ? SL_PROGRAM_PREFETCH : 0);
        for (int i = 0; i < p->train->nops && p->train->ops[i].kind != SL_OP_HEAD; i++) {
            if (p->train->ops[i].kind != SL_OP_DROPOUT)
                continue;
            if (!variant)
                want[n++] = p->train->ops[i].id;
            else
                assert_int_equal(p->train->ops[i].id, want[k]);
            k++;
        }
        assert_int_equal(k, 7);
        sl_program_destroy(p);
    }
    for (int i = 0; i < n; i++)
        for (int k = 0; k < i; k++)
            assert_int_not_equal(want[i], want[k]);
}

static void recompute_lowers_activations_and_keeps_ids(void **state)
{
    struct sl_job j = tiny_job();
    struct sl_program *plain, *again;

    (void)state;
    j.model.layers = 6;
    plain = make(&j, 2, SL_ZERO2, 0);
    j.train.recompute = SL_RECOMPUTE_UNIT;
    again = make(&j, 2, SL_ZERO2, 0);
    assert_true(again->train->cat_peak[SL_CAT_ACTIVATIONS] * 2
                < plain->train->cat_peak[SL_CAT_ACTIVATIONS]);
    assert_true(again->arena < plain->arena);
    /* of a block all but what only the next block reads: c_proj of the mlp, its dropout, its add */
    assert_int_equal(count(again->train, SL_OP_LINEAR), 6 * (4 + 3));
    assert_int_equal(count(again->train, SL_OP_ATTENTION), 6 * 2);
    assert_int_equal(count(again->train, SL_OP_LAYERNORM), 6 * 4 + 1); /* the head's is kept */
    assert_int_equal(count(again->train, SL_OP_EMBED), 1);
    for (int i = 0; i < again->train->nops; i++) {
        const struct sl_op *o = &again->train->ops[i];
        int twins = 0;
        if (o->kind != SL_OP_DROPOUT)
            continue;
        for (int k = 0; k < plain->train->nops; k++)
            twins += plain->train->ops[k].kind == SL_OP_DROPOUT
                     && plain->train->ops[k].id == o->id && plain->train->ops[k].a.p == o->a.p;
        assert_int_equal(twins, 1);
    }
    sl_program_destroy(plain);
    sl_program_destroy(again);
}

/* 2^44 rows of 2^20 numbers are 2^64, which is 0: such a model was described, and planned, as small. */
static void a_size_that_overflows_is_refused(void **state)
{
    struct sl_graph *g = sl_graph_create(SL_F32, NULL);
    struct sl_job j = tiny_job();
    struct sl_err err = {0};

    (void)state;
    sl_inputs(g, 1 << 24, 1 << 20);
    assert_refused(g, "a micro-batch of 16777216 samples of 1048576 tokens is more than 2147483647");

    g = sl_graph_create(SL_F32, NULL);
    sl_inputs(g, 1 << 11, (1 << 20) - 1); /* in range: 2^31 rows x 2^16 numbers x 4 bytes, 2^5 times */
    sl_unit_begin(g, "h.0", "h.0.");
    for (int i = 0, x = sl_embed(g, sl_weight(g, "w", 11, 65536, 1), "w"); i < 40; i++)
        x = sl_gelu(g, x);
    assert_refused(g, "more than 16 PiB a rank");

    j.model.heads = 1;
    j.model.width = 65536;
    j.model.ffn_width = 1 << 20;
    j.model.layers = 100;
    j.model.context = 1 << 20;
    j.train.batch = 1 << 11;
    j.train.micro_batch = 1 << 10;
    assert_null(sl_program_make(&j, 1, SL_ZERO2, 1, 0, &err));
    assert_int_equal(err.code, SL_USAGE);
    if (!strstr(err.msg, "more than 16 PiB a rank"))
        fail_msg("%s", err.msg);
}

/* Whatever allocation fails, making a program ends with an error and nothing leaks or crashes. */
static void memory_that_runs_out_anywhere_is_an_error(void **state)
{
    struct sl_job j = tiny_job();
    struct sl_program *p = NULL;
    long n = 0;

    (void)state;
    j.model.layers = 1;
    j.train.recompute = SL_RECOMPUTE_UNIT;
    j.train.precision = SL_BF16_MIXED;
    for (; !p && n < 2000; n++) {
        struct sl_err err = {0};
        sl_mem_fail_after(n);
        p = sl_program_make(&j, 2, SL_ZERO3, 1, SL_PROGRAM_PREFETCH, &err);
        sl_mem_fail_after(-1);
        if (!p)
            assert_int_equal(err.code, SL_SYSTEM);
    }
    assert_non_null(p);
    assert_true(n > 30);
    sl_program_destroy(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_has_a_name_of_its_own_and_a_caller),
        cmocka_unit_test(a_shape_error_names_the_layer),
        cmocka_unit_test(the_first_error_sticks_and_later_calls_do_nothing),
        cmocka_unit_test(a_tied_weight_has_one_gradient_that_both_uses_add_to),
        cmocka_unit_test(an_unused_parameter_has_no_gradient_and_no_state),
        cmocka_unit_test(frozen_parameters_fall_out_of_the_backward_pass),
        cmocka_unit_test(a_model_without_head_or_parameters_is_refused),
        cmocka_unit_test(every_described_operation_has_its_backward),
        cmocka_unit_test(names_shapes_and_init_are_gpt2s),
        cmocka_unit_test(ids_depend_on_the_description_alone),
        cmocka_unit_test(recompute_lowers_activations_and_keeps_ids),
        cmocka_unit_test(a_size_that_overflows_is_refused),
        cmocka_unit_test(memory_that_runs_out_anywhere_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
