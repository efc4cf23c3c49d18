/* test_nodes.c - several nodes, by loopback: the same bits, the same ends, the traffic promised */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "executor/program.h"
#include "tests/unit/executor/saved.h"

enum { STEPS = 8, SHAPES = 4 };

static const struct shape {
    int nodes, ranks;
} shapes[SHAPES] = {{2, 2}, {2, 4}, {3, 6}, {2, 6}}; /* 2x1, 2x2, 3x2, 2x3 */

static struct team_result many[SHAPES][SL_STRATEGIES], x, y;

static struct team team_of(int s, struct shape p)
{
    struct team t = team_tiny((enum sl_strategy)s, p.ranks);

    t.nodes = p.nodes;
    t.job.train.steps = STEPS;
    return t;
}

static void run(const struct team *t, struct team_result *ret)
{
    int rc = team_run(t, ret);

    for (int k = 0; rc && k < t->ranks; k++)
        fprintf(stderr, "# rank %d: %d %s\n", k, ret->r[k].code, ret->r[k].msg);
    assert_int_equal(rc, 0);
}

/* --- bits ------------------------------------------------------------------------------------- */

static void strategies_agree_to_the_bit_at_each_layout(void **state)
{
    (void)state;
    for (int p = 0; p < SHAPES; p++)
        for (int s = 0; s < SL_STRATEGIES; s++) {
            struct team t = team_of(s, shapes[p]);

            run(&t, &many[p][s]);
            assert_true(team_same(&many[p][0], &many[p][s], STEPS));
            assert_true(many[p][s].copies_agree);
            for (int r = 1; r < t.ranks; r++) /* waits are numbered alike on all nodes */
                assert_int_equal(many[p][s].r[r].collective, many[p][s].r[0].collective);
        }
    assert_true(many[0][SL_DDP].loss[STEPS] < many[0][SL_DDP].loss[1]);
}

/* With one rank a node, node order is rank order, and a node's sum is the one rank's numbers. */
static void one_rank_a_node_has_one_nodes_bits(void **state)
{
    (void)state;
    for (int bf16 = 0; bf16 < 2; bf16++)
        for (int n = 2; n <= 4; n += 2) {
            struct team t = team_of(bf16 ? SL_ZERO3 : SL_ZERO2, (struct shape){n, n});

            t.job.train.precision = bf16 ? SL_BF16_MIXED : SL_FP32;
            run(&t, &x);
            t.nodes = 1;
            run(&t, &y);
            assert_true(team_same(&x, &y, STEPS));
        }
}

static void a_layout_changes_sums_within_rounding(void **state)
{
    (void)state;
    for (int p = 1; p < SHAPES; p++) {
        struct team t = team_of(SL_ZERO3, (struct shape){1, shapes[p].ranks});

        run(&t, &x);
        assert_true(team_gap(&x, &many[p][SL_ZERO3], STEPS) < 1e-5);
        for (int s = 1; s <= STEPS; s++)
            if (isfinite(x.valid[s]))
                assert_true(fabs(x.valid[s] - many[p][SL_ZERO3].valid[s]) < 1e-5);
    }
}

static void two_runs_are_one_as_threads_and_as_processes(void **state)
{
    struct team t = team_of(SL_ZERO3, shapes[2]);

    (void)state;
    t.processes = 1;
    run(&t, &x);
    assert_true(team_same(&x, &many[2][SL_ZERO3], STEPS));
}

static void accumulation_and_bf16_keep_their_classes(void **state)
{
    (void)state;
    for (int bf16 = 0; bf16 < 2; bf16++) {
        static struct team_result a[SL_STRATEGIES];

        for (int s = 0; s < SL_STRATEGIES; s++) {
            struct team t = team_of(s, shapes[1]);

            t.job.train.micro_batch = 48 / 4 / 2;
            t.job.train.precision = bf16 ? SL_BF16_MIXED : SL_FP32;
            run(&t, &a[s]);
        }
        assert_true(team_same(&a[SL_DDP], &a[SL_DP], STEPS));
        assert_true(team_same(&a[SL_DDP], &a[SL_ZERO1], STEPS));
        assert_true(team_same(&a[SL_ZERO2], &a[SL_ZERO3], STEPS));
    }
}

/* NaN over every buffer at its end of life, and everywhere at first. */
static void the_plan_lends_no_byte_too_early(void **state)
{
    (void)state;
    for (int s = 0; s < SL_STRATEGIES; s++) {
        struct team t = team_of(s, shapes[1]);

        t.poison = 1;
        run(&t, &x);
        assert_true(team_same(&x, &many[1][s], STEPS));
        for (int r = 0; r < t.ranks; r++)
            assert_true(x.r[r].touched <= (x.arena + 4095) / 4096 * 4096);
    }
}

/* --- traffic ---------------------------------------------------------------------------------- */

/*
 * P nodes of M ranks; S is the bytes of all units' shards. A reduction or a gather sends (P - 1) S
 * from each rank: (P - 1) / P of the buffer from each node. Under dp, node 0 sends a buffer to each
 * other node and gets one from each.
 */
static void a_node_sends_its_part_and_no_more(void **state)
{
    (void)state;
    for (int p = 0; p < SHAPES; p++)
        for (int s = 0; s < SL_STRATEGIES; s++) {
            struct team t = team_of(s, shapes[p]);
            int64_t others = t.nodes - 1, pass = 0;
            struct sl_err err;
            struct sl_program *prog
                = sl_program_make(&t.job, t.ranks, t.job.train.strategy, 1, 0, &err);

            assert_non_null(prog);
            for (int u = 0; u < prog->train->nunits; u++)
                pass += prog->train->unit[u].shard * 4;
            sl_program_destroy(prog);
            t.valid_samples = 0;
            t.job.train.steps = 2;
            run(&t, &x);
            for (int r = 0; r < t.ranks; r++) {
                const struct sl_comm_count *c = x.r[r].count;
                int first = r < t.ranks / t.nodes; /* on node 0 */
                int64_t add = s == SL_ZERO2 || s == SL_ZERO3 ? c[SL_OP_REDUCE_SCATTER].sent
                              : s == SL_DP                   ? c[SL_OP_REDUCE].sent
                                                             : c[SL_OP_REDUCE_INPLACE].sent;
                int64_t share = s == SL_ZERO3 ? c[SL_OP_GATHER].sent / 2 /* forward, backward */
                                : s == SL_DP  ? c[SL_OP_BROADCAST].sent
                                              : c[SL_OP_ALLGATHER_INPLACE].sent;

                if (s == SL_DP) {
                    assert_int_equal(add, first ? 0 : 2 * t.nodes * pass);
                    assert_int_equal(share, first ? 2 * others * t.nodes * pass : 0);
                    continue;
                }
                assert_int_equal(add, 2 * others * pass);
                assert_int_equal(share, 2 * others * pass);
            }
        }
}

/* --- ends --------------------------------------------------------------------------------------
 */

static void a_killed_rank_ends_the_other_nodes_ranks(void **state)
{
    (void)state;
    for (int s = SL_DDP; s <= SL_ZERO3; s += SL_ZERO3 - SL_DDP)
        for (int k = 0; k < 4; k += 3) {
            struct team t = team_of(s, shapes[1]);
            int there = k / 2, named = 0;
            char want[64];

            t.processes = 1;
            t.die_rank = k;
            t.fault_step = 4;
            assert_int_equal(team_run(&t, &x), -1);
            assert_int_equal(x.first_dead, k);
            snprintf(want, sizeof want, "node %d", there);
            for (int r = 0; r < 4; r++) {
                if (r == k)
                    continue;
                assert_int_equal(x.r[r].code, SL_PEER); /* woken, not timed out */
                named += r / 2 != there && strstr(x.r[r].msg, want) != NULL;
            }
            assert_int_equal(named, 2);
            print_message("# all ranks left %.3f s after rank %d's death\n", x.seconds_to_end, k);
        }
}

static void a_stalled_node_is_named_at_the_deadline(void **state)
{
    (void)state;
    for (int p = 0; p < 2; p++) {
        struct team t = team_of(SL_ZERO3, shapes[p]);
        int stalled = t.ranks - 1, late = 0;

        t.stall_rank = stalled;
        t.fault_step = 3;
        t.deadline = 1;
        assert_int_equal(team_run(&t, &x), -1);
        for (int r = 0; r < stalled; r++) {
            const char *m = x.r[r].msg;

            assert_true(x.r[r].code == SL_BUSY || x.r[r].code == SL_PEER);
            if (x.r[r].code != SL_BUSY)
                continue;
            late++;
            if (r < t.ranks / 2)
                assert_non_null(strstr(m, "of step 3 for node 1 (loopback): nothing from rank"));
            else
                assert_non_null(strstr(m, "not arrived: rank 3 (computing"));
        }
        assert_true(late >= 1);
    }
}

static void a_stop_on_one_node_stops_all_at_one_step(void **state)
{
    (void)state;
    for (int s = 0; s < SL_STRATEGIES; s++) {
        struct team t = team_of(s, shapes[1]);

        t.stop_step = 3;
        run(&t, &x);
        for (int r = 0; r < t.ranks; r++) {
            assert_int_equal(x.r[r].trained.step, 3);
            assert_int_equal(x.r[r].trained.stopped, 1);
        }
    }
}

static void a_bad_step_on_one_node_is_skipped_by_all(void **state)
{
    (void)state;
    for (int s = 0; s < SL_STRATEGIES; s++) {
        struct team t = team_of(s, shapes[1]);

        t.job.failure.on_nan = SL_NAN_SKIP;
        t.bad_rank = 3;
        t.bad_from = t.bad_to = 3;
        run(&t, &x);
        assert_true(isnan(x.norm[3]) && isfinite(x.norm[4]));
        for (int r = 0; r < t.ranks; r++) {
            assert_int_equal(x.r[r].bad_changed, 0);
            assert_int_equal(x.r[r].trained.skipped, 1);
        }
    }
}

/* --- checkpoints -------------------------------------------------------------------------------
 */

static void a_resumed_run_of_two_nodes_is_bit_identical(void **state)
{
    static const enum sl_strategy strategies[] = {SL_DP, SL_DDP, SL_ZERO3};
    size_t rest = sizeof(double) * (SAVED_STEPS - 10);

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct saved s;

        saved_open(&s, strategies[i], i == 2 ? SL_BF16_MIXED : SL_FP32, 4);
        s.team.nodes = 2;
        saved_run(&s, 5, 0, &x); /* behind 5 and 10, and at the end */
        saved_run(&s, 0, 10, &y);
        assert_memory_equal(x.loss + 11, y.loss + 11, rest);
        assert_memory_equal(x.norm + 11, y.norm + 11, rest);
        assert_true(x.hash == y.hash);
        s.team.nodes = 1; /* and one node goes on from there */
        saved_run(&s, 0, 10, &y);
        for (int k = 11; k <= SAVED_STEPS; k++)
            assert_true(fabs(x.loss[k] - y.loss[k]) < (i == 2 ? 1e-2 : 1e-5));
        saved_close(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_killed_rank_ends_the_other_nodes_ranks),
        cmocka_unit_test(strategies_agree_to_the_bit_at_each_layout),
        cmocka_unit_test(one_rank_a_node_has_one_nodes_bits),
        cmocka_unit_test(a_layout_changes_sums_within_rounding),
        cmocka_unit_test(two_runs_are_one_as_threads_and_as_processes),
        cmocka_unit_test(accumulation_and_bf16_keep_their_classes),
        cmocka_unit_test(the_plan_lends_no_byte_too_early),
        cmocka_unit_test(a_node_sends_its_part_and_no_more),
        cmocka_unit_test(a_stalled_node_is_named_at_the_deadline),
        cmocka_unit_test(a_stop_on_one_node_stops_all_at_one_step),
        cmocka_unit_test(a_bad_step_on_one_node_is_skipped_by_all),
        cmocka_unit_test(a_resumed_run_of_two_nodes_is_bit_identical),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
