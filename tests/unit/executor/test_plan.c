/* The plan: numbers, table, JSON, what fits, and what would make it fit. */
#include "tests/unit/executor/tiny.h"

#include <jansson.h>

#include "executor/plan.h"
#include "executor/remedy.h"

static struct sl_plan plan_of(const struct sl_job *j, int ranks, enum sl_strategy s,
                              const struct sl_plan_limits *lim)
{
    struct sl_err err = {0};
    struct sl_plan p;

    if (sl_plan_make(j, ranks, s, lim, &p, &err))
        fail_msg("%s", err.msg);
    return p;
}

static void a_plan_is_its_programs_arena(void **state)
{
    struct sl_plan_limits lim = {.cores = 1};

    (void)state;
    for (int s = 0; s < SL_STRATEGIES; s++)
        for (int n = 1; n <= 4; n++) {
            struct sl_job j = tiny_job();
            struct sl_plan plan = plan_of(&j, n, (enum sl_strategy)s, &lim);
            struct sl_program *p = make(&j, n, (enum sl_strategy)s, 0);
            int64_t sum0 = 0, sum = 0;

            assert_int_equal(plan.rank0.total, p->arena0);
            assert_int_equal(plan.other.total, p->arena);
            for (int c = 0; c < SL_CATS; c++) {
                sum0 += plan.rank0.bytes[c];
                sum += plan.other.bytes[c];
                assert_true(plan.rank0.peak_bytes[c] >= plan.rank0.bytes[c]);
                assert_true(plan.other.peak_bytes[c] >= plan.other.bytes[c]);
            }
            assert_int_equal(sum0, p->arena0);
            assert_int_equal(sum, p->arena);
            assert_int_equal(plan.together, p->arena0 + (n - 1) * p->arena + n * SL_PLAN_BASE);
            assert_true(plan.fits);
            sl_program_destroy(p);
        }
}

static void json_holds_every_category_and_ranks_that_differ(void **state)
{
    struct sl_job j = tiny_job();
    struct sl_plan_limits lim = {.cores = 3};
    struct sl_plan plan[SL_STRATEGIES];
    struct sl_buf b;
    json_t *root, *list;

    (void)state;
    for (int s = 0; s < SL_STRATEGIES; s++)
        plan[s] = plan_of(&j, 3, (enum sl_strategy)s, &lim);
    sl_buf_init(&b, 1 << 20);
    sl_plan_json(plan, SL_STRATEGIES, &b);
    assert_int_equal(sl_buf_check(&b, NULL), 0);
    root = json_loads(sl_buf_text(&b), 0, NULL);
    assert_non_null(root);
    assert_int_equal(json_integer_value(json_object_get(root, "ranks")), 3);
    list = json_object_get(root, "strategies");
    assert_int_equal(json_array_size(list), SL_STRATEGIES);
    for (int s = 0; s < SL_STRATEGIES; s++) {
        json_t *one = json_array_get(list, (size_t)s), *per = json_object_get(one, "per_rank");
        json_t *cats = json_object_get(one, "categories");
        int64_t sum = 0;

        assert_string_equal(json_string_value(json_object_get(one, "strategy")),
                            sl_strategy_name((enum sl_strategy)s));
        assert_int_equal(json_object_size(cats), SL_CATS);
        for (int c = 0; c < SL_CATS; c++) {
            json_t *cat = json_object_get(cats, sl_cat_names[c]);
            assert_non_null(cat);
            sum += json_integer_value(json_object_get(cat, "bytes"));
            assert_int_equal(json_integer_value(json_object_get(cat, "peak_bytes")),
                             plan[s].rank0.peak_bytes[c]);
        }
        assert_int_equal(sum, json_integer_value(json_object_get(one, "total_bytes")));
        assert_int_equal(sum, plan[s].rank0.total);
        assert_true(json_is_true(json_object_get(one, "fits")));
        assert_int_equal(per != NULL, s == SL_DP);
        if (per) {
            json_t *last = json_array_get(per, 2);
            assert_int_equal(json_array_size(per), 3);
            assert_int_equal(json_integer_value(json_object_get(last, "rank")), 2);
            assert_int_equal(json_integer_value(json_object_get(last, "total_bytes")),
                             plan[s].other.total);
        }
    }
    json_decref(root);
    sl_buf_fini(&b);
}

static void the_table_names_strategies_and_says_what_fits(void **state)
{
    struct sl_job j = tiny_job();
    struct sl_plan_limits lim = {.cores = 1};
    struct sl_plan plan[2];
    struct sl_buf b;

    (void)state;
    lim.per_rank = plan_of(&j, 4, SL_ZERO3, &lim).rank0.total;
    plan[0] = plan_of(&j, 4, SL_DDP, &lim);
    plan[1] = plan_of(&j, 4, SL_ZERO3, &lim);
    assert_false(plan[0].fits);
    assert_true(plan[1].fits); /* a limit is what may be used, not one less */
    sl_buf_init(&b, 1 << 16);
    sl_plan_text(plan, 2, &lim, &b);
    assert_non_null(strstr(sl_buf_text(&b), "ddp"));
    assert_non_null(strstr(sl_buf_text(&b), "  no\n"));
    assert_non_null(strstr(sl_buf_text(&b), "  yes\n"));
    for (int c = 0; c < SL_CATS; c++)
        assert_non_null(strstr(sl_buf_text(&b), sl_cat_names[c]));
    sl_buf_fini(&b);
}

/* Apply a remedy by its words, as a person would, and plan again: it must fit. */
static void the_cheapest_remedy_really_fits_and_none_cheaper_does(void **state)
{
    struct sl_job j = tiny_job();
    struct sl_plan_limits lim = {.cores = 1};
    struct sl_plan now, tight;
    struct sl_remedy fix;
    struct sl_err err = {0};

    (void)state;
    j.train.batch = 48;
    j.train.micro_batch = 12;
    now = plan_of(&j, 4, SL_DDP, &lim);

    lim.per_rank = now.rank0.total - 1; /* one byte short: any cheap change will do */
    tight = plan_of(&j, 4, SL_DDP, &lim);
    assert_int_equal(sl_remedy_find(&j, &tight, &lim, &fix, &err), 1);
    assert_string_equal(fix.text, "train.strategy = \"zero1\"");
    assert_true(plan_of(&j, 4, SL_ZERO1, &lim).fits);

    j.train.micro_batch = 1; /* activations cannot shrink by accumulating */
    lim.per_rank = 0;
    lim.per_rank = plan_of(&j, 4, SL_ZERO3, &lim).rank0.total;
    tight = plan_of(&j, 4, SL_DDP, &lim);
    assert_int_equal(sl_remedy_find(&j, &tight, &lim, &fix, &err), 1);
    assert_string_equal(fix.text, "train.strategy = \"zero3\"");
    assert_int_equal(fix.plan.rank0.total, lim.per_rank);

    j.train.micro_batch = 12; /* activations rule; with one rank no strategy helps */
    lim.per_rank = 0;
    now = plan_of(&j, 1, SL_ZERO2, &lim);
    j.train.micro_batch = 6;
    lim.per_rank = plan_of(&j, 1, SL_ZERO2, &lim).rank0.total;
    j.train.micro_batch = 12;
    assert_true(lim.per_rank < now.rank0.total);
    tight = plan_of(&j, 1, SL_ZERO2, &lim);
    assert_int_equal(sl_remedy_find(&j, &tight, &lim, &fix, &err), 1);
    assert_string_equal(fix.text, "train.micro_batch = 6");

    lim.per_rank = 4096;
    tight = plan_of(&j, 1, SL_ZERO2, &lim);
    assert_int_equal(sl_remedy_find(&j, &tight, &lim, &fix, &err), 0);
}

static void a_refusal_says_need_limit_and_remedy(void **state)
{
    struct sl_job j = tiny_job();
    struct sl_plan_limits lim = {.cores = 1};
    struct sl_plan plan = plan_of(&j, 4, SL_DDP, &lim);
    struct sl_err err = {0};

    (void)state;
    assert_int_equal(sl_plan_refuse(&j, &plan, &lim, &err), 0);
    lim.per_rank = plan_of(&j, 4, SL_ZERO2, &lim).rank0.total;
    plan = plan_of(&j, 4, SL_DDP, &lim);
    assert_int_equal(sl_plan_refuse(&j, &plan, &lim, &err), -1);
    assert_int_equal(err.code, SL_USAGE);
    assert_non_null(strstr(err.msg, "does not fit"));
    assert_non_null(strstr(err.hint, "train."));
    lim.per_rank = 64;
    plan = plan_of(&j, 4, SL_DDP, &lim);
    assert_int_equal(sl_plan_refuse(&j, &plan, &lim, &err), -1);
    assert_non_null(strstr(err.hint, "smaller"));
}

static void the_machine_holds_the_sum_of_its_ranks(void **state)
{
    struct sl_job j = tiny_job();
    struct sl_plan_limits lim = {.cores = 1};
    int64_t all = plan_of(&j, 4, SL_ZERO2, &lim).together;
    struct sl_plan plan;
    struct sl_err err = {0};

    (void)state;
    lim.machine = all;
    assert_true(plan_of(&j, 4, SL_ZERO2, &lim).fits);
    lim.machine = all - 1;
    plan = plan_of(&j, 4, SL_ZERO2, &lim);
    assert_true(plan.fits_rank);
    assert_false(plan.fits_machine || plan.fits);
    assert_int_equal(sl_plan_refuse(&j, &plan, &lim, &err), -1);
    assert_non_null(strstr(err.msg, "4 ranks"));
    assert_non_null(strstr(err.msg, "machine"));
}

static void a_hundred_layers_on_64_ranks_can_be_planned(void **state)
{
    struct sl_job j = tiny_job();
    struct sl_plan_limits lim = {.cores = 2};

    (void)state;
    j.model.layers = 100;
    j.model.heads = 64;
    j.model.width = 6400;
    j.model.ffn_width = 0;
    j.model.context = 2048;
    j.data.vocab_size = 50304;
    j.train.batch = 64;
    j.train.micro_batch = 1;
    for (int s = 0; s < SL_STRATEGIES; s++) {
        struct sl_plan plan = plan_of(&j, 64, (enum sl_strategy)s, &lim);
        /* 12 w^2 + 13 w a block, both embeddings, the final norm */
        assert_int_equal(plan.parameters, 100LL * (12LL * 6400 * 6400 + 13 * 6400)
                                              + (50304 + 2048) * 6400LL + 2 * 6400);
        assert_true(plan.rank0.total > plan.persistent);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_is_its_programs_arena),
        cmocka_unit_test(json_holds_every_category_and_ranks_that_differ),
        cmocka_unit_test(the_table_names_strategies_and_says_what_fits),
        cmocka_unit_test(the_cheapest_remedy_really_fits_and_none_cheaper_does),
        cmocka_unit_test(a_refusal_says_need_limit_and_remedy),
        cmocka_unit_test(the_machine_holds_the_sum_of_its_ranks),
        cmocka_unit_test(a_hundred_layers_on_64_ranks_can_be_planned),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
