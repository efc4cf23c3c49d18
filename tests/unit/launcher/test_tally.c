#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "launcher/meter.h"
#include "launcher/tally.h"

static void step(struct sl_tally *t, int rank, int64_t n, double units, double ms, double loss)
{
    struct sl_report r = {.type = SL_REPORT_STEP, .rank = rank, .step = n};

    r.u.step_.units = units;
    r.u.step_.step_ms = ms;
    r.u.step_.loss = loss;
    strcpy(r.u.step_.unit, "tokens");
    sl_tally_add(t, &r);
}

static void memory(struct sl_tally *t, int rank, const char *category, int64_t bytes)
{
    struct sl_report r = {.type = SL_REPORT_MEMORY, .rank = rank};

    snprintf(r.u.memory.category, sizeof r.u.memory.category, "%s", category);
    r.u.memory.bytes = bytes;
    sl_tally_add(t, &r);
}

/* 2 ranks of 100 tokens in 100 and 200 ms: 200 tokens in the slower one's 0.2 s are 1,000 a second.
 */
static void a_step_counts_when_all_ranks_have_done_it_and_the_slowest_sets_the_pace(void **state)
{
    struct sl_tally t;

    (void)state;
    sl_tally_init(&t, 2, 11);
    step(&t, 0, 1, 100, 100, 2.5);
    assert_int_equal(t.step, 0);
    assert_true(isnan(t.loss));
    step(&t, 1, 1, 100, 200, 2.5);
    assert_int_equal(t.step, 1);
    assert_float_equal(t.loss, 2.5, 0);
    assert_float_equal(t.units_per_second, 1000, 1e-9);
    assert_float_equal(sl_tally_left(&t), 10 * 0.2, 1e-9);
}

static void the_summary_rate_is_all_units_over_all_time(void **state)
{
    struct sl_tally t;

    (void)state;
    sl_tally_init(&t, 1, 0);
    step(&t, 0, 1, 300, 100, 3);
    step(&t, 0, 2, 300, 500, 2);
    assert_float_equal(t.units / t.seconds, 600 / 0.6, 1e-9);
    assert_float_equal(sl_tally_left(&t), -1, 0); /* nobody knows how many steps there are */
}

static void what_the_system_counts_stands_before_the_plan(void **state)
{
    struct sl_tally t;

    (void)state;
    sl_tally_init(&t, 2, 0);
    assert_int_equal(sl_tally_memory(&t), 0);
    memory(&t, 0, "total", 500);
    assert_int_equal(sl_tally_memory(&t), 500);
    memory(&t, 0, "process", 700);
    memory(&t, 0, "process", 600);
    memory(&t, 1, "process", 650);
    assert_int_equal(sl_tally_memory(&t), 650);
    assert_int_equal(t.r[0].process_peak, 700);
}

static void records_of_ranks_that_do_not_exist_are_ignored(void **state)
{
    struct sl_tally t, before;

    (void)state;
    sl_tally_init(&t, 2, 0);
    before = t;
    step(&t, 2, 1, 1, 1, 1);
    step(&t, -1, 1, 1, 1, 1);
    assert_int_equal(t.step, before.step);
    assert_float_equal(t.units, 0, 0);
}

static void numbers_as_people_read_them(void **state)
{
    static const struct {
        double seconds;
        const char *text;
    } times[] = {{7.6, "8s"}, {125, "2m05s"}, {3600, "1h00m"}, {7380, "2h03m"}};
    char s[32];

    (void)state;
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        sl_tally_time(times[i].seconds, s, sizeof s);
        assert_string_equal(s, times[i].text);
    }
    sl_tally_bytes(3 << 19, s, sizeof s);
    assert_string_equal(s, "2 MiB");
    sl_tally_bytes((int64_t)3 << 29, s, sizeof s);
    assert_string_equal(s, "1.50 GiB");
    sl_tally_count(12345, s, sizeof s);
    assert_string_equal(s, "12.3k");
}

static void the_progress_line_says_what_is_known(void **state)
{
    struct sl_tally t;
    char s[256];

    (void)state;
    sl_tally_init(&t, 1, 100);
    step(&t, 0, 1, 2000, 1000, 2.5);
    memory(&t, 0, "process", 812 << 20);
    sl_meter_text(&t, s, sizeof s);
    assert_string_equal(s, "step 1/100  loss 2.5000  2000 tokens/s  812 MiB a rank  1m39s left");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_counts_when_all_ranks_have_done_it_and_the_slowest_sets_the_pace),
        cmocka_unit_test(the_summary_rate_is_all_units_over_all_time),
        cmocka_unit_test(what_the_system_counts_stands_before_the_plan),
        cmocka_unit_test(records_of_ranks_that_do_not_exist_are_ignored),
        cmocka_unit_test(numbers_as_people_read_them),
        cmocka_unit_test(the_progress_line_says_what_is_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
