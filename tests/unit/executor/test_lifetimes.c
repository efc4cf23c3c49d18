/* test_lifetimes.c - the poison of the run loop notices every lifetime that is too short */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "executor/graph/memplan.h"
#include "tests/unit/executor/team.h"

enum { STEPS = 2 };

static struct team_result ref, x;

/*
 * A buffer that is lent to peers ends with the wait for them. Whether peers are late is a matter of
 * time, so its life is cut before the reduction begins: at the last operation that adds to it.
 */
static int cut_before_lending(const struct sl_graph *g, int b)
{
    const struct sl_op *end = &g->ops[g->b[b].last];

    if (end->kind != SL_OP_COMM_WAIT || g->t[end->in[0]].buf != b)
        return -1;
    for (int i = g->b[b].last; i >= 0; i--)
        if (g->ops[i].kind == SL_OP_REDUCE_SCATTER && g->t[g->ops[i].in[0]].buf == b)
            return i - 1;
    return -1;
}

/* Each buffer's end moved up by one operation: it is full of NaN where its last reader wants it. */
static void a_life_cut_short_is_noticed(void **state)
{
    static const int strategies[] = {SL_ZERO1, SL_ZERO3};

    (void)state;
    for (int i = 0; i < 2; i++)
        for (int precision = SL_FP32; precision <= SL_BF16_MIXED; precision++) {
            struct team t = team_tiny((enum sl_strategy)strategies[i], 2);
            struct sl_program *p;
            int tried = 0, unnoticed = 0;

            t.job.train.steps = STEPS;
            t.job.train.batch = 4;
            t.job.train.precision = (enum sl_precision)precision;
            t.poison = 1;
            assert_int_equal(team_run(&t, &ref), 0);
            p = sl_program_make(&t.job, 2, t.job.train.strategy, 1, 0, NULL);
            assert_non_null(p);
            for (int b = 0; b < p->train->nb; b++) {
                struct sl_buffer keep = p->train->b[b];

                if (b == p->train->t[p->train->loss].buf) /* kept to the end, but taken at once */
                    continue;
                if (sl_memplan_cut(p->train, b))
                    continue;
                p->train->b[b] = keep;
                tried++;
                t.cut = b;
                t.cut_last = cut_before_lending(p->train, b);
                if (!team_run(&t, &x) && team_same(&ref, &x, STEPS)) {
                    unnoticed++;
                    fprintf(stderr, "# buffer %d (%s, operations %d to %d) is not noticed\n", b,
                            sl_cat_names[keep.cat], keep.first, keep.last);
                }
            }
            sl_program_destroy(p);
            assert_true(tried > 30);
            assert_int_equal(unnoticed, 0);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_life_cut_short_is_noticed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
