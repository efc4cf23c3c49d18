#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>

#include <cmocka.h>

#include "common/str.h"

static void sizes_read(void **state)
{
    static const struct {
        const char *text;
        int64_t want; /* -1: refused */
    } cases[] = {
        {"0", 0}, {"100", 100}, {"100B", 100}, {"1KiB", 1024}, {"512MiB", 536870912},
        {"80GiB", 85899345920}, {"1.5GiB", 1610612736}, {"2TiB", 2199023255552},
        {"1kB", 1000}, {"3MB", 3000000}, {"2GB", 2000000000}, {"1TB", 1000000000000},
        {"", -1}, {"-1", -1}, {" 1", -1}, {"1 GiB", -1}, {"1gib", -1}, {"1Gi", -1}, {"GiB", -1},
        {"1e3", -1}, {"0x10", -1}, {"inf", -1}, {"nan", -1}, {"1.5B", -1}, {"9999999TiB", -1},
        {"1GiBx", -1}, {".", -1}, {"1.2.3GiB", -1}, {"10000000000000000000000000000000000000000", -1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sl_err err = {0};
        int64_t got = -1;
        int rc = sl_size_parse(cases[i].text, &got, &err);

        if (got != cases[i].want || rc != (cases[i].want < 0 ? -1 : 0))
            fail_msg("\"%s\": %lld, want %lld", cases[i].text, (long long)got,
                     (long long)cases[i].want);
        assert_int_equal(err.code, rc ? SL_USAGE : SL_OK);
    }
}

static void durations_read(void **state)
{
    static const struct {
        const char *text;
        double want;
    } cases[] = {
        {"0", 0}, {"90", 90}, {"0.5", 0.5}, {"45s", 45}, {"30m", 1800}, {"12h", 43200},
        {"2d", 172800}, {"1h30m", 5400}, {"1d1h1m1s1ms", 90061.001}, {"500ms", 0.5},
        {"", -1}, {"-1s", -1}, {"1x", -1}, {"1h30", -1}, {"30m1h", -1}, {"1h1h", -1}, {"1 h", -1},
        {"h", -1}, {"1e3", -1}, {"nan", -1}, {"12H", -1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sl_err err = {0};
        double got = -1;
        int rc = sl_duration_parse(cases[i].text, &got, &err);

        if (fabs(got - cases[i].want) > 1e-9 || rc != (cases[i].want < 0 ? -1 : 0))
            fail_msg("\"%s\": %g, want %g", cases[i].text, got, cases[i].want);
    }
}

static void exact_forms_read_back(void **state)
{
    static const int64_t sizes[] = {0, 1, 1000, 1024, 1025, 536870912, 85899345920, INT64_MAX / 2};
    static const double times[] = {0, 0.001, 0.1, 1.0 / 3, 1, 59, 60, 90, 3600, 5400, 43200, 86400,
                                   1e7, 123456.789};
    static const double reals[] = {0, 0.1, 1e-5, 3e-4, 1.0 / 3, 1e300, 5e-324, -2.5, 1e16};
    char text[40];

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int64_t back;
        char small[32];

        if (sizes[i] > (1LL << 53)) /* a size is read as a double */
            continue;
        assert_int_equal(sl_size_parse(sl_size_exact(small, sizes[i]), &back, NULL), 0);
        assert_true(back == sizes[i]);
    }
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        double back;

        assert_int_equal(sl_duration_parse(sl_duration_exact(text, times[i]), &back, NULL), 0);
        if (back != times[i])
            fail_msg("%s is %.17g, want %.17g", text, back, times[i]);
    }
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++)
        assert_true(strtod(sl_double_exact(text, reals[i]), NULL) == reals[i]);
    assert_string_equal(sl_double_exact(text, 0.1), "0.1");
    assert_string_equal(sl_duration_exact(text, 43200), "12h");
    assert_string_equal(sl_size_exact(text, 1LL << 29), "512MiB");
}

static void human_forms_are_short(void **state)
{
    char t[40];

    (void)state;
    assert_string_equal(sl_size_human(t, 17), "17 B");
    assert_string_equal(sl_size_human(t, 1024), "1.00 KiB");
    assert_string_equal(sl_size_human(t, 1572864000), "1.46 GiB");
    assert_string_equal(sl_size_human(t, 812LL << 20), "812 MiB");
    assert_string_equal(sl_size_human(t, (1LL << 20) - 1), "1.00 MiB");
    assert_string_equal(sl_duration_human(t, 3.21), "3.2 s");
    assert_string_equal(sl_duration_human(t, 725), "12:05");
    assert_string_equal(sl_duration_human(t, 3723), "1:02:03");
    assert_string_equal(sl_duration_human(t, 2 * 86400 + 3 * 3600 + 4 * 60), "2d 03:04");
    assert_string_equal(sl_duration_human(t, -1), "0.0 s");
}

static void distance_counts_edits(void **state)
{
    static const char *const names[] = {"layers", "heads", "width", "lr", "min_lr", "warmup"};

    (void)state;
    assert_int_equal(sl_str_distance("kitten", "sitting"), 3); /* the textbook's */
    assert_int_equal(sl_str_distance("", "abc"), 3);
    assert_int_equal(sl_str_distance("ab", "ba"), 1); /* neighbours swapped */
    assert_int_equal(sl_str_distance("LR", "lr"), 0);
    assert_int_equal(sl_str_nearest("layer", names, 6), 0);
    assert_int_equal(sl_str_nearest("wdith", names, 6), 2);
    assert_int_equal(sl_str_nearest("wamrup", names, 6), 5);
    assert_int_equal(sl_str_nearest("qqqqq", names, 6), -1);
    assert_int_equal(sl_str_nearest("zz", names, 6), -1);
    assert_int_equal(sl_str_nearest("", names, 6), -1);
    char longer[5000];
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    assert_int_equal(sl_str_nearest(longer, names, 6), -1);
}

static void one_line_stays_one_line(void **state)
{
    char t[64], small[8];

    (void)state;
    sl_str_escape(t, sizeof t, "a\nb\tc\x1b[1m\x7f \xff \xc3\xa9");
    assert_string_equal(t, "a\\nb\\tc\\x1B[1m\\x7F \\xFF \xc3\xa9");
    /* C1's CSI and NEL, line separator, right-to-left override and isolate: a terminal obeys them */
    sl_str_escape(t, sizeof t, "\xc2\x9b" "31m\xc2\x85|\xe2\x80\xa8|\xe2\x80\xae|\xe2\x81\xa6");
    assert_string_equal(t, "\\u009B31m\\u0085|\\u2028|\\u202E|\\u2066");
    sl_str_escape(t, sizeof t, "\xc2\xa0\xe2\x80\xa7\xe2\x80\xaf\xf0\x9f\x98\x80");
    assert_string_equal(t, "\xc2\xa0\xe2\x80\xa7\xe2\x80\xaf\xf0\x9f\x98\x80");
    assert_null(sl_str_control("\xc2\xa0 \xf0\x9f\x98\x80 <b>"));
    assert_string_equal(sl_str_control("ab\xe2\x80\xaez"), "\xe2\x80\xaez");
    assert_string_equal(sl_str_control("\xc3\xa9\xff"), "\xff");
    assert_int_equal(sl_str_escape(small, sizeof small, "1234567"), 7);
    assert_string_equal(small, "1234567");
    sl_str_escape(small, sizeof small, "12345678");
    assert_string_equal(small, "1234...");
    sl_str_escape(small, sizeof small, "123\xc3\xa9 89"); /* never half a character */
    assert_string_equal(small, "123...");
}

static void utf8_is_checked_whole(void **state)
{
    (void)state;
    assert_int_equal(sl_utf8_len("a", 1), 1);
    assert_int_equal(sl_utf8_len("\xc3\xa9", 2), 2);
    assert_int_equal(sl_utf8_len("\xe2\x82\xac", 3), 3);
    assert_int_equal(sl_utf8_len("\xf0\x9f\x98\x80", 4), 4);
    assert_int_equal(sl_utf8_len("\xf0\x9f\x98", 3), 0);     /* cut */
    assert_int_equal(sl_utf8_len("\xc0\x80", 2), 0);         /* overlong */
    assert_int_equal(sl_utf8_len("\xe0\x80\x80", 3), 0);     /* overlong */
    assert_int_equal(sl_utf8_len("\xed\xa0\x80", 3), 0);     /* surrogate */
    assert_int_equal(sl_utf8_len("\xf4\x90\x80\x80", 4), 0); /* above U+10FFFF */
    assert_int_equal(sl_utf8_len("\x80", 1), 0);
    assert_int_equal(sl_utf8_len("", 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_read),
        cmocka_unit_test(durations_read),
        cmocka_unit_test(exact_forms_read_back),
        cmocka_unit_test(human_forms_are_short),
        cmocka_unit_test(distance_counts_edits),
        cmocka_unit_test(one_line_stays_one_line),
        cmocka_unit_test(utf8_is_checked_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
