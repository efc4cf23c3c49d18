#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/conf.h"
#include "common/mem.h"

struct box {
    int64_t count, bytes;
    double rate, wait, pair[2];
    int on, mode;
    const char *name, *word;
};

static const char *const modes[] = {"slow", "fast", NULL};
static const char *const aliases[] = {"quick", "fast", NULL};

static const char *not_yet(const char *text)
{
    return strcmp(text, "warp") ? NULL : "not in this version";
}

#define AT(f) offsetof(struct box, f)
static const struct sl_conf_opt opts[] = {
    {.key = "name", .type = SL_CONF_STR, .at = AT(name), .max = 5, .def = "\"\""},
    {.key = "a.count", .type = SL_CONF_INT, .at = AT(count), .min = 1, .max = 9, .def = "3"},
    {.key = "a.bytes", .type = SL_CONF_SIZE, .at = AT(bytes), .max = 1 << 30, .def = "\"1KiB\""},
    {.key = "a.rate", .type = SL_CONF_REAL, .at = AT(rate), .min = 0, .max = 1,
     .flags = SL_CONF_ABOVE | SL_CONF_BELOW},
    {.key = "a.wait", .type = SL_CONF_DURATION, .at = AT(wait), .max = 3600, .def = "\"1m\""},
    {.key = "b.pair", .type = SL_CONF_PAIR, .at = AT(pair), .max = 1, .def = "[0, 0.5]"},
    {.key = "b.on", .type = SL_CONF_BOOL, .at = AT(on), .def = "false"},
    {.key = "b.mode", .type = SL_CONF_ENUM, .at = AT(mode), .words = modes, .aliases = aliases,
     .def = "\"slow\"", .refuse = not_yet},
    {.key = "b.word", .type = SL_CONF_WORD, .at = AT(word), .words = modes, .def = "\"fast\""},
    {.key = "b.later", .type = SL_CONF_ABSENT, .why_not = "not in this version"},
};
enum { N = sizeof opts / sizeof *opts };

static int text(struct sl_conf *c, const char *s, struct sl_err *err)
{
    return sl_conf_text(c, s, strlen(s), "f.toml", err);
}

static void defaults_stand_until_something_is_given(void **state)
{
    struct sl_err err = {0};
    struct box b = {.name = "old"};
    struct sl_arena *a = sl_arena_create(0, &err);
    struct sl_conf *c = sl_conf_create(opts, N, &err);

    (void)state;
    assert_non_null(c);
    assert_int_equal(text(c, "a.rate = 0.5\na.wait = 2\n[b]\nmode = \"quick\"\n", &err), 0);
    assert_int_equal(sl_conf_set(c, "a.count=4", &err), 0);
    assert_int_equal(sl_conf_read(c, &b, a, &err), 0);
    assert_int_equal(b.count, 4);
    assert_int_equal(b.bytes, 1024);
    assert_true(b.rate == 0.5 && b.wait == 2 && b.pair[0] == 0 && b.pair[1] == 0.5);
    assert_int_equal(b.on, 0);
    assert_int_equal(b.mode, 1);
    assert_null(b.name); /* "" is NULL */
    assert_string_equal(b.word, "fast");
    assert_true(sl_conf_given(c, "a.count") && sl_conf_given(c, "b.mode"));
    assert_false(sl_conf_given(c, "b.word"));
    sl_conf_destroy(c);
    sl_arena_destroy(a);
}

static void printed_values_read_back(void **state)
{
    struct box b = {.count = 7, .bytes = 3 << 20, .rate = 0.1, .wait = 90, .pair = {0.25, 1},
                    .on = 1, .mode = 1, .name = "a\"\\\x01", .word = modes[0]}, back = {0};
    struct sl_arena *a = sl_arena_create(0, NULL);
    struct sl_err err = {0};
    struct sl_buf out;

    (void)state;
    sl_buf_init(&out, 1 << 16);
    sl_conf_print(opts, N, &b, &out);
    assert_string_equal(sl_buf_text(&out),
                        "name = \"a\\\"\\\\\\u0001\"\n\n[a]\ncount = 7\nbytes = \"3MiB\"\nrate = 0.1\n"
                        "wait = \"90s\"\n\n[b]\npair = [0.25, 1]\non = true\nmode = \"fast\"\n"
                        "word = \"slow\"\n");
    struct sl_conf *c = sl_conf_create(opts, N, &err);
    assert_int_equal(text(c, sl_buf_text(&out), &err), 0);
    assert_int_equal(sl_conf_read(c, &back, a, &err), 0);
    assert_string_equal(back.name, b.name);
    assert_string_equal(back.word, b.word);
    back.name = b.name;
    back.word = b.word;
    assert_memory_equal(&back, &b, sizeof b);
    sl_conf_destroy(c);
    sl_arena_destroy(a);
    sl_buf_fini(&out);
}

static void mistakes_name_place_and_range(void **state)
{
    static const struct {
        const char *text, *msg;
    } cases[] = {
        {"[a]\ncount = 10", "f.toml:2:9: a.count is 10; use an integer from 1 to 9"},
        {"[a]\nrate = 0", "f.toml:2:8: a.rate is 0; use a number above 0 and below 1"},
        {"[a]\nrate = 1", "f.toml:2:8: a.rate is 1; use a number above 0 and below 1"},
        {"[a]\nbytes = \"2GiB\"",
         "f.toml:2:9: a.bytes is \"2GiB\"; use a size as \"512MiB\" from 0 to 1GiB"},
        {"[a]\nwait = \"2h\"",
         "f.toml:2:8: a.wait is \"2h\"; use a time as \"12h\" or seconds from 0 to 1h"},
        {"[b]\nmode = \"warp\"", "f.toml:2:8: b.mode is \"warp\": not in this version"},
        {"[b]\nlater = 1", "f.toml:2:1: b.later: not in this version"},
        {"name = \"123456\"", "f.toml:1:8: name is \"123456\"; use a text of at most 5 bytes"},
        {"name = \"a\\u0000b\"", "f.toml:1:8: name is \"a\"; use a text of at most 5 bytes"},
        {"[[a]]\ncount = 1", "f.toml:1:3: unknown key \"a\""},
        {"[a.b]\n", "f.toml:1:4: unknown table [a.b]"},
        {"\"a.count\" = 3", "f.toml:1:1: unknown key \"'a.count'\""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sl_err err = {0};
        struct sl_conf *c = sl_conf_create(opts, N, &err);

        assert_int_equal(text(c, cases[i].text, &err), -1);
        if (strcmp(err.msg, cases[i].msg))
            print_error("\"%s\": %s\n", cases[i].text, err.msg);
        assert_string_equal(err.msg, cases[i].msg);
        assert_int_equal(err.code, SL_USAGE);
        sl_conf_destroy(c);
    }
}

static void what_is_missing_points_at_its_table(void **state)
{
    struct sl_err err = {0};
    struct sl_arena *a = sl_arena_create(0, NULL);
    struct box b;

    (void)state;
    struct sl_conf *c = sl_conf_create(opts, N, &err);
    assert_int_equal(text(c, "[b]\n[a]\n", &err), 0);
    assert_int_equal(sl_conf_read(c, &b, a, &err), -1);
    assert_string_equal(err.msg, "f.toml:2:2: a.rate is missing; give a number above 0 and below 1");
    sl_conf_destroy(c);
    sl_arena_destroy(a);
}

static void a_wrong_default_is_our_bug(void **state)
{
    static const struct sl_conf_opt broken = {.key = "x", .type = SL_CONF_INT, .max = 1, .def = "2"};
    struct sl_err err = {0};

    (void)state;
    assert_null(sl_conf_create(&broken, 1, &err));
    assert_int_equal(err.code, SL_BUG);
}

static void overrides_are_bounded(void **state)
{
    struct sl_err err = {0};
    struct sl_conf *c = sl_conf_create(opts, N, &err);
    int n = 0;

    (void)state;
    while (n < 1000 && !sl_conf_set(c, "a.count=4", &err))
        n++;
    assert_int_equal(n, 255);
    assert_string_equal(err.msg, "more than 254 overrides");
    sl_conf_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_stand_until_something_is_given),
        cmocka_unit_test(printed_values_read_back),
        cmocka_unit_test(mistakes_name_place_and_range),
        cmocka_unit_test(what_is_missing_points_at_its_table),
        cmocka_unit_test(a_wrong_default_is_our_bug),
        cmocka_unit_test(overrides_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
