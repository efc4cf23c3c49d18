/* Series: short enough to draw, no spike lost, and read from the roll-ups. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "tests/unit/store/fixture.h"

enum { STEPS = 20000, RANKS = 8 };

/* A number of (rank, step) in [0, 1) without a pattern: the fractional part of a large product. */
static double value(int64_t rank, int64_t step)
{
    double x = sin((double)(step * 12.9898 + rank * 78.233)) * 43758.5453;

    return x - floor(x);
}

static void write_steps(struct fixture *f, int64_t id, int ranks, int64_t from, int64_t to)
{
    struct sl_writer *w = sl_writer_create(f->st, id, 1, NULL);

    assert_non_null(w);
    ok(sl_writer_begin(w, err));
    for (int64_t step = from; step <= to; step++) {
        for (int rank = 0; rank < ranks; rank++) {
            struct sl_sample s = {.rank = rank,
                                  .step = step,
                                  .time = (double)step,
                                  .units = 100,
                                  .unit = "tokens",
                                  .step_ms = 10 + value(rank, step),
                                  .loss = value(0, step)};

            ok(sl_writer_sample(w, &s, err));
        }
        if (step % 1000 == 0) { /* several commits: roll-ups are merged across them */
            ok(sl_writer_commit(w, err));
            ok(sl_writer_begin(w, err));
        }
    }
    ok(sl_writer_commit(w, err));
    sl_writer_destroy(w);
}

/* What a bucket should be, by brute force over the formula. */
static void check_point(const struct sl_point *p, int64_t width, int64_t rank, int64_t last)
{
    double lo = INFINITY, hi = -INFINITY, sum = 0;
    int64_t n = 0;

    for (int64_t s = p->step; s < p->step + width && s <= last; s++, n++) {
        double x = 10 + value(rank, s);

        lo = fmin(lo, x);
        hi = fmax(hi, x);
        sum += x;
    }
    assert_int_equal(p->count, n);
    assert_true(p->min == lo);
    assert_true(p->max == hi);
    assert_true(fabs(p->sum - sum) <= 1e-12 * sum * (double)n);
}

static void a_long_run_is_drawn_from_few_rows(void **state)
{
    struct fixture *f = *state;
    int64_t id = begun_job(f, "long"), rows = 0;

    write_steps(f, id, RANKS, 1, STEPS);
    assert_float_equal(ask(f, "SELECT count(*) FROM rank_throughput"), RANKS * STEPS, 0);
    for (int rank = 0; rank < RANKS; rank++) {
        struct sl_series_query q = {.job = id, .attempt = 1, .metric = "step_ms", .rank = rank};
        struct sl_series s;
        int64_t seen = 0;

        ok(sl_series_read(f->st, &q, &s, err));
        assert_in_range(s.n, 1000, SL_SERIES_POINTS);
        for (int64_t i = 0; i < s.n; i++) {
            check_point(&s.v[i], s.width, rank, STEPS);
            seen += s.v[i].count;
        }
        assert_int_equal(seen, STEPS);
        rows += s.rows;
        sl_series_fini(&s);
    }
    /* 20,000 steps in 2,000 points: 10 a point, read from roll-ups of 8. */
    assert_int_equal(rows, RANKS * STEPS / 8);
}

static void every_number_of_points_is_kept_and_agrees_with_brute_force(void **state)
{
    static const int64_t points[] = {1, 2, 7, 30, 100, 156, 157, 625, 999, 1250, 2000};
    enum { N = 1250 };
    struct fixture *f = *state;
    int64_t id = begun_job(f, "short");

    write_steps(f, id, 1, 1, N);
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        struct sl_series_query q
            = {.job = id, .attempt = 1, .metric = "step_ms", .points = points[i]};
        struct sl_series s;
        int64_t seen = 0;

        ok(sl_series_read(f->st, &q, &s, err));
        assert_in_range(s.n, 1, points[i]);
        for (int64_t k = 0; k < s.n; k++) {
            check_point(&s.v[k], s.width, 0, N);
            seen += s.v[k].count;
        }
        assert_int_equal(seen, N);
        if (points[i] >= N)
            assert_int_equal(s.width, 1);
        sl_series_fini(&s);
    }
}

/* Ranks that are not equally far: what a chart over all ranks of a live run meets. */
static void over_ranks_is_the_least_greatest_and_mean_of_all(void **state)
{
    static const int64_t points[] = {1, 9, 60, 700, 2000};
    enum { N = 1000, R = 3 };
    struct fixture *f = *state;
    int64_t id = begun_job(f, "all");
    struct sl_writer *w;

    write_steps(f, id, R, 1, N);
    write_steps(f, id, 1, N + 1, N + 1);
    w = sl_writer_create(f->st, id, 1, NULL);
    ok(sl_writer_begin(w, err));
    for (int r = 0; r < R; r++)
        ok(sl_writer_rank(w, r, "h", 1, "cpu", err));
    ok(sl_writer_commit(w, err));
    sl_writer_destroy(w);
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        struct sl_series_query q
            = {.job = id, .attempt = 1, .metric = "step_ms", .rank = -1, .points = points[i]};
        int64_t ranks = 0, seen = 0, width;
        struct sl_series s;

        ok(sl_series_over_ranks(f->st, &q, &s, &ranks, err));
        assert_int_equal(ranks, R);
        assert_in_range(s.n, 1, points[i]);
        for (int64_t k = 0; k < s.n; k++) {
            double lo = INFINITY, hi = -INFINITY, sum = 0;
            int64_t n = 0;

            for (int r = 0; r < R; r++)
                for (int64_t t = s.v[k].step; t < s.v[k].step + s.width; t++) {
                    if (t > N + (r == 0))
                        continue;
                    lo = fmin(lo, 10 + value(r, t));
                    hi = fmax(hi, 10 + value(r, t));
                    sum += 10 + value(r, t);
                    n++;
                }
            assert_int_equal(s.v[k].count, n);
            assert_true(s.v[k].min == lo);
            assert_true(s.v[k].max == hi);
            assert_true(fabs(s.v[k].sum - sum) <= 1e-12 * sum * (double)n);
            seen += n;
        }
        assert_int_equal(seen, R * N + 1);
        /* going on from the last point, in the same width, reads only that one again */
        q.width = width = s.width;
        q.from = s.v[s.n - 1].step;
        q.points = 0;
        sl_series_fini(&s);
        ok(sl_series_over_ranks(f->st, &q, &s, &ranks, err));
        assert_int_equal(s.width, width);
        assert_int_equal(s.n, 1);
        assert_int_equal(s.v[0].step, q.from);
        sl_series_fini(&s);
    }
}

static void one_spike_in_a_long_run_is_seen_at_every_width(void **state)
{
    static const int64_t points[] = {3, 20, 200, 2000};
    struct fixture *f = *state;
    int64_t id = begun_job(f, "spike");
    struct sl_writer *w = sl_writer_create(f->st, id, 1, NULL);

    ok(sl_writer_begin(w, err));
    for (int64_t step = 1; step <= 9000; step++)
        ok(sl_writer_metric(w, step, 0, "grad_norm", step == 4711 ? 1e6 : 1, err));
    ok(sl_writer_commit(w, err));
    sl_writer_destroy(w);
    for (int i = 0; i < 4; i++) {
        struct sl_series_query q
            = {.job = id, .attempt = 1, .metric = "grad_norm", .rank = -1, .points = points[i]};
        struct sl_series s;
        int hit = 0;

        ok(sl_series_read(f->st, &q, &s, err));
        for (int64_t k = 0; k < s.n; k++)
            if (s.v[k].max == 1e6) {
                assert_true(s.v[k].step <= 4711 && 4711 < s.v[k].step + s.width);
                hit++;
            }
        assert_int_equal(hit, 1);
        sl_series_fini(&s);
    }
}

static void a_part_of_the_steps_can_be_asked_for(void **state)
{
    struct fixture *f = *state;
    int64_t id = begun_job(f, "part");
    struct sl_series_query q = {.job = id, .attempt = 1, .metric = "loss", .from = 501, .to = 600};
    struct sl_series s;

    write_steps(f, id, 1, 401, 5000); /* as after a resume: it does not begin at 1 */
    ok(sl_series_read(f->st, &q, &s, err));
    assert_int_equal(s.width, 1);
    assert_int_equal(s.n, 100);
    assert_int_equal(s.v[0].step, 501);
    assert_true(s.v[0].min == value(0, 501));
    sl_series_fini(&s);
    q.from = q.to = 0;
    q.points = 4600;
    assert_int_equal(sl_series_read(f->st, &q, &s, NULL), -1); /* more than may be asked for */
    q.points = 2000;
    ok(sl_series_read(f->st, &q, &s, err));
    assert_in_range(s.n, 1000, 2000);
    assert_int_equal(s.v[0].step, 400 / s.width * s.width + 1);
    sl_series_fini(&s);
}

static void what_is_not_a_number_is_left_out(void **state)
{
    struct fixture *f = *state;
    int64_t id = begun_job(f, "nan");
    struct sl_series_query q = {.job = id, .attempt = 1, .metric = "loss", .points = 1};
    struct sl_writer *w = sl_writer_create(f->st, id, 1, NULL);
    struct sl_sample sample = {.unit = "tokens", .step_ms = 1};
    struct sl_series s;

    ok(sl_writer_begin(w, err));
    for (sample.step = 1; sample.step <= 32; sample.step++) {
        sample.loss = sample.step < 20 ? (double)sample.step : sample.step < 30 ? NAN : INFINITY;
        ok(sl_writer_sample(w, &sample, err));
    }
    ok(sl_writer_commit(w, err));
    ok(sl_series_read(f->st, &q, &s, err));
    assert_int_equal(s.n, 1);
    assert_int_equal(s.v[0].count, 19);
    assert_true(s.v[0].max == 19);
    sl_series_fini(&s);
    sl_writer_destroy(w);
}

/* A batch that is written again after a failure must not count twice. */
static void rows_that_come_twice_count_once(void **state)
{
    struct fixture *f = *state;
    int64_t id = begun_job(f, "twice");
    struct sl_series_query q = {.job = id, .attempt = 1, .metric = "loss", .points = 1};
    struct sl_series s;

    write_steps(f, id, 1, 1, 16);
    write_steps(f, id, 1, 9, 24);
    ok(sl_series_read(f->st, &q, &s, err));
    assert_int_equal(s.v[0].count, 24);
    sl_series_fini(&s);
}

static void a_rolled_back_batch_leaves_no_trace(void **state)
{
    struct fixture *f = *state;
    int64_t id = begun_job(f, "back");
    struct sl_writer *w = sl_writer_create(f->st, id, 1, NULL);
    struct sl_series_query q = {.job = id, .attempt = 1, .metric = "loss", .points = 1};
    struct sl_sample sample = {.step = 1, .unit = "tokens", .step_ms = 1, .loss = 100};
    struct sl_series s;

    ok(sl_writer_begin(w, err));
    ok(sl_writer_sample(w, &sample, err));
    sl_writer_rollback(w);
    ok(sl_writer_begin(w, err));
    sample.step = 2;
    sample.loss = 1;
    ok(sl_writer_sample(w, &sample, err));
    ok(sl_writer_commit(w, err));
    sl_writer_destroy(w);
    ok(sl_series_read(f->st, &q, &s, err));
    assert_int_equal(s.n, 1);
    assert_true(s.v[0].max == 1 && s.v[0].count == 1);
    assert_float_equal(ask(f, "SELECT max(max) FROM rollup WHERE name = 5"), 1, 0);
    sl_series_fini(&s);
}

static void unknown_things_give_an_empty_series(void **state)
{
    struct fixture *f = *state;
    struct sl_series_query q = {.job = 99, .attempt = 1, .metric = "loss"};
    struct sl_series s;

    ok(sl_series_read(f->st, &q, &s, err));
    assert_int_equal(s.n, 0);
    q.metric = "no.such.metric";
    q.rank = -1;
    ok(sl_series_read(f->st, &q, &s, err));
    assert_int_equal(s.n, 0);
    q.rank = 0;
    assert_int_equal(sl_series_read(f->st, &q, &s, NULL), -1);
    q = (struct sl_series_query){.job = 99, .attempt = 1, .metric = "loss", .from = 9, .to = 3};
    assert_int_equal(sl_series_read(f->st, &q, &s, NULL), -1);
}

static int keep_rank(void *u, const struct sl_rank_row *row)
{
    struct sl_rank_row *keep = u;

    if (row->rank == 1)
        *keep = *row;
    return 0;
}

static void the_newest_sample_of_a_rank_comes_with_its_recent_speed(void **state)
{
    struct fixture *f = *state;
    int64_t id = begun_job(f, "speed");
    struct sl_rank_row row = {0};
    double ms = 0;

    write_steps(f, id, 2, 1, 50);
    ok(sl_read_ranks(f->st, id, 1, keep_rank, &row, err));
    for (int step = 31; step <= 50; step++)
        ms += 10 + value(1, step);
    assert_int_equal(row.step, 50);
    assert_float_equal(row.units_per_second, 20 * 100 * 1000 / ms, 1e-9 * row.units_per_second);
    assert_true(row.loss == value(0, 50));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_long_run_is_drawn_from_few_rows, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_number_of_points_is_kept_and_agrees_with_brute_force,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_spike_in_a_long_run_is_seen_at_every_width, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(over_ranks_is_the_least_greatest_and_mean_of_all, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_part_of_the_steps_can_be_asked_for, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_not_a_number_is_left_out, set_up, tear_down),
        cmocka_unit_test_setup_teardown(rows_that_come_twice_count_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_rolled_back_batch_leaves_no_trace, set_up, tear_down),
        cmocka_unit_test_setup_teardown(unknown_things_give_an_empty_series, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_newest_sample_of_a_rank_comes_with_its_recent_speed,
                                        set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
