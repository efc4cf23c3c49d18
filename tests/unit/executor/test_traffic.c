/* test_traffic.c - which collectives each strategy calls, how often, on how many bytes; memory */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "executor/plan.h"
#include "tests/unit/executor/team.h"

enum { STEPS = 3 };

static struct team_result x;

static struct team small(int s, int n)
{
    struct team t = team_tiny((enum sl_strategy)s, n);

    t.job.train.steps = STEPS;
    t.valid_samples = 0; /* an evaluation gathers, too */
    return t;
}

static struct sl_program *program(const struct team *t)
{
    struct sl_err err;
    struct sl_program *p
        = sl_program_make(&t->job, t->ranks, t->job.train.strategy, 1, t->flags, &err);

    assert_non_null(p);
    return p;
}

struct want {
    enum sl_kind kind;
    int64_t calls, bytes; /* calls 0: not at all */
};

static void check(const struct team_rank *r, const struct want *w, int n)
{
    int64_t seen = 0, all = 0;

    for (int i = 0; i < n; i++) {
        assert_int_equal(r->count[w[i].kind].calls, w[i].calls);
        assert_int_equal(r->count[w[i].kind].bytes, w[i].bytes);
        seen += w[i].calls;
    }
    for (int k = 0; k < SL_OP_KINDS; k++)
        all += k == SL_OP_COMM_WAIT ? 0 : r->count[k].calls;
    assert_int_equal(seen, all); /* and nothing else */
}

/*
 * With U units that hold P bytes of parameters in all, padding counted, a rank reads (N - 1) / N P
 * from its peers for one pass over everything (arXiv 1910.02054, section 7, counts the same sends).
 */
static void strategies_call_what_their_names_say(void **state)
{
    (void)state;
    for (int n = 2; n <= 3; n++)
        for (int s = 0; s < SL_STRATEGIES; s++)
            for (int accum = 1; accum <= 4; accum += 3) {
                struct team t = small(s, n);
                struct sl_program *p = program(&t);
                int64_t units = p->train->nunits, pass = 0, each = STEPS, micro = STEPS * accum;

                for (int u = 0; u < p->train->nunits; u++)
                    pass += p->train->unit[u].shard * 4 * (n - 1);
                sl_program_destroy(p);
                t.job.train.micro_batch = 48 / n / accum;
                assert_int_equal(team_run(&t, &x), 0);
                for (int r = 0; r < n; r++) {
                    const struct want dp[]
                        = {{SL_OP_REDUCE, units * each, r ? 0 : n * pass * each},
                           {SL_OP_BROADCAST, units * each, r ? n * pass / (n - 1) * each : 0}};
                    const struct want ddp[]
                        = {{SL_OP_REDUCE_INPLACE, units * each, pass * each},
                           {SL_OP_ALLGATHER_INPLACE, units * each, pass * each}};
                    const struct want zero2[]
                        = {{SL_OP_REDUCE_SCATTER, units * micro, pass * micro},
                           {SL_OP_ALLGATHER_INPLACE, units * each, pass * each}};
                    const struct want zero3[]
                        = {{SL_OP_GATHER, 2 * units * micro, 2 * pass * micro},
                           {SL_OP_REDUCE_SCATTER, units * micro, pass * micro}};
                    const struct want *all[] = {dp, ddp, ddp, zero2, zero3};

                    check(&x.r[r], all[s], 2);
                }
            }
}

static void one_rank_calls_no_collective(void **state)
{
    (void)state;
    for (int s = 0; s < SL_STRATEGIES; s++) {
        struct team t = small(s, 1);

        assert_int_equal(team_run(&t, &x), 0);
        check(&x.r[0], NULL, 0);
        assert_int_equal(x.r[0].waits, 0);
    }
}

/* program.h's own count, which the page and the benchmarks print, is what a run does. */
static void the_program_foretells_the_traffic(void **state)
{
    (void)state;
    for (int s = 0; s < SL_STRATEGIES; s++) {
        struct team t = small(s, 3);
        struct sl_program_count want[SL_OP_KINDS];
        struct sl_program *p;

        t.job.train.micro_batch = 4;
        t.job.train.recompute = SL_RECOMPUTE_UNIT;
        p = program(&t);
        assert_int_equal(team_run(&t, &x), 0);
        for (int r = 0; r < 3; r++) {
            sl_program_counts(p, r, want);
            for (int k = 0; k < SL_OP_KINDS; k++) {
                if (k == SL_OP_COMM_WAIT)
                    continue;
                assert_int_equal(x.r[r].count[k].calls, want[k].calls * STEPS);
                assert_int_equal(x.r[r].count[k].bytes, want[k].bytes * STEPS);
            }
        }
        sl_program_destroy(p);
    }
}

/* What a run reports is the plan, category by category, and the pages it used are no more. */
static void a_run_reports_and_touches_its_plan(void **state)
{
    int64_t page = sysconf(_SC_PAGESIZE);
    const struct sl_plan_limits none = {0};

    (void)state;
    for (int n = 1; n <= 4; n++)
        for (int s = 0; s < SL_STRATEGIES; s++)
            for (int v = 0; v < 8; v++) {
                struct team t = team_tiny((enum sl_strategy)s, n);
                struct sl_plan plan;
                struct sl_err err;

                if (n == 2)
                    continue; /* 1, 3 and 4 ranks are what the issue names */
                t.job.train.steps = 1;
                t.job.train.micro_batch = v & 1 ? 48 / n / 4 : 0;
                t.job.train.recompute = v & 2 ? SL_RECOMPUTE_UNIT : SL_RECOMPUTE_NONE;
                t.job.model.tie_embeddings = v & 4 ? 0 : 1;
                t.job.resources.threads = 1;
                assert_int_equal(sl_plan_make(&t.job, n, (enum sl_strategy)s, &none, &plan, &err),
                                 0);
                assert_int_equal(team_run(&t, &x), 0);
                for (int r = 0; r < n; r++) {
                    const struct sl_plan_part *p = r ? &plan.other : &plan.rank0;
                    int64_t sum = 0;

                    for (int c = 0; c < SL_CATS; c++) {
                        assert_int_equal(x.r[r].bytes[c], p->bytes[c]);
                        assert_int_equal(x.r[r].peak[c], p->peak_bytes[c]);
                        sum += x.r[r].bytes[c];
                    }
                    assert_int_equal(x.r[r].bytes[SL_CATS], sum); /* categories sum to the total */
                    assert_int_equal(sum, p->total);
                    assert_true(x.r[r].bytes[SL_CATS + 1] > p->total); /* the process is more */
                    assert_true(x.r[r].touched <= (p->total + page - 1) / page * page);
                    assert_true(x.r[r].touched + 2 * page >= p->total / 100 * 97);
                    assert_true(x.r[r].tokens == (double)(48 / n * 9));
                }
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strategies_call_what_their_names_say),
        cmocka_unit_test(one_rank_calls_no_collective),
        cmocka_unit_test(the_program_foretells_the_traffic),
        cmocka_unit_test(a_run_reports_and_touches_its_plan),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
