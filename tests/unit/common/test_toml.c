#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/buf.h"
#include "common/toml.h"

static struct sl_toml *parse(const char *text)
{
    struct sl_err err = {0};
    struct sl_toml *t = sl_toml_parse(text, strlen(text), "f.toml", &err);

    if (!t)
        fail_msg("%s", err.msg);
    return t;
}

static void values_come_in_order_with_places(void **state)
{
    static const struct {
        const char *path;
        enum sl_toml_type type;
        unsigned key_line, key_col, line, col;
    } want[] = {
        {"z", SL_TOML_INT, 1, 1, 1, 5},           {"b", SL_TOML_TABLE, 2, 2, 2, 1},
        {"b.x", SL_TOML_STR, 3, 3, 3, 7},         {"b.r", SL_TOML_REAL, 4, 1, 4, 5},
        {"b.on", SL_TOML_BOOL, 5, 1, 5, 6},       {"a", SL_TOML_TABLE, 6, 2, 6, 1},
        {"a.list", SL_TOML_ARRAY, 7, 1, 7, 8},    {"a.day", SL_TOML_OTHER, 8, 1, 8, 7},
    };
    struct sl_toml *t = parse("z = 7\n[b]\n  x = \"t\\u00e9\"\nr = 1.5\non = true\n[a]\nlist = [1, 2.5]\n"
                              "day = 2026-01-02\n");

    (void)state;
    assert_int_equal(sl_toml_count(t), sizeof want / sizeof *want);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const struct sl_toml_value *v = sl_toml_at(t, i);

        assert_string_equal(v->path, want[i].path);
        assert_int_equal(v->type, want[i].type);
        assert_int_equal(v->key_line, want[i].key_line);
        assert_int_equal(v->key_col, want[i].key_col);
        assert_int_equal(v->line, want[i].line);
        if (v->type != SL_TOML_TABLE)
            assert_int_equal(v->col, want[i].col);
    }
    assert_null(sl_toml_at(t, 8));
    assert_int_equal(sl_toml_find(t, "z")->i, 7);
    assert_string_equal(sl_toml_find(t, "b.x")->s, "t\xc3\xa9");
    assert_true(sl_toml_find(t, "b.r")->r == 1.5);
    const struct sl_toml_value *list = sl_toml_find(t, "a.list");
    assert_int_equal(list->len, 2);
    assert_int_equal(list->items[0].i, 1);
    assert_true(list->items[1].r == 2.5);
    assert_null(sl_toml_find(t, "nothing"));
    sl_toml_destroy(t);
    sl_toml_destroy(NULL);
}

static void dotted_keys_and_inline_tables_are_tables(void **state)
{
    struct sl_toml *t = parse("a.b.c = 1\nd = {e = 2}\n");

    (void)state;
    assert_int_equal(sl_toml_find(t, "a")->type, SL_TOML_TABLE);
    assert_int_equal(sl_toml_find(t, "a.b")->type, SL_TOML_TABLE);
    assert_int_equal(sl_toml_find(t, "a.b.c")->i, 1);
    assert_int_equal(sl_toml_find(t, "d.e")->i, 2);
    sl_toml_destroy(t);
}

static void what_is_no_toml_has_a_place_on_one_line(void **state)
{
    static const struct {
        const char *text, *place;
    } bad[] = {
        {"a = ", "f.toml:1:5: "},
        {"a = 1\na = 2\n", "f.toml:2:"},
        {"[train]\nsteps = 10x\n", "f.toml:2:11: "},
        {"[train\nsteps=1", "f.toml:1:7: "},
        {"s = \"abc\nd\"", "f.toml:1:9: "},
        {"t = [1, 2\n", "f.toml:"},
        {"[a]\nb=1\n[a]\nc=2", "f.toml:3:"},
        {"i = 99999999999999999999\n", "f.toml:1:25: "},
        {"u = \"\xff\"\n", "f.toml:1:"},
        {"k v\n", "f.toml:1:3: "},
        {"= 1", "f.toml:1:1: "},
        {"[,a]\n", "f.toml:1:2: "}, /* toml++ itself asserts here */
        {"[[=]]\n", "f.toml:1:3: "},
        {"a.[ = 1\n", "f.toml:1:3: "},
        {"a = {,}\n", "f.toml:1:"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct sl_err err = {0};

        assert_null(sl_toml_parse(bad[i].text, strlen(bad[i].text), "f.toml", &err));
        assert_int_equal(err.code, SL_USAGE);
        if (strncmp(err.msg, bad[i].place, strlen(bad[i].place)))
            fail_msg("\"%s\": %s, want %s...", bad[i].text, err.msg, bad[i].place);
        assert_null(strchr(err.msg, '\n'));
    }
}

static void a_text_without_end_is_refused(void **state)
{
    size_t n = (1 << 20) + 1;
    char *big = malloc(n);
    struct sl_err err = {0};

    (void)state;
    memset(big, '\n', n);
    struct sl_toml *t = sl_toml_parse(big, n - 1, "f.toml", &err);
    assert_non_null(t);
    assert_int_equal(sl_toml_count(t), 0);
    sl_toml_destroy(t);
    assert_null(sl_toml_parse(big, n, "f.toml", &err));
    assert_string_equal(err.msg, "f.toml:1:1: has 1048577 bytes; at most 1048576 are read");
    free(big);
}

/* A deep nest must be an error, not the end of the stack. */
static void a_deep_nest_is_refused(void **state)
{
    char deep[20000] = "a = ";
    struct sl_err err = {0};

    (void)state;
    memset(deep + 4, '[', sizeof deep - 5);
    assert_null(sl_toml_parse(deep, sizeof deep - 1, "f.toml", &err));
    assert_int_equal(err.code, SL_USAGE);
}

/* toml++ walks keys by recursion and does not bound them: these crashed it. */
static void a_deep_key_is_refused(void **state)
{
    static const char *const begin[] = {"x", "[x", "[[x", "a = {x", "'x'", "\"x\\\"\"", "[a]\n#\n x"};
    size_t n = 500000;
    char *deep = malloc(n);

    (void)state;
    for (size_t i = 0; i < sizeof begin / sizeof *begin; i++) {
        struct sl_err err = {0};
        size_t k = strlen(begin[i]);

        memcpy(deep, begin[i], k);
        for (size_t j = k; j < n; j++)
            deep[j] = (j - k) % 2 ? 'x' : '.';
        assert_null(sl_toml_parse(deep, n, "f.toml", &err));
        assert_int_equal(err.code, SL_USAGE);
        if (!strstr(err.msg, "a key of more than 64 parts"))
            fail_msg("%s", err.msg);
        if (i == 6)
            assert_string_equal(err.msg, "f.toml:3:131: a key of more than 64 parts");
    }
    free(deep);
}

/* Points in strings, comments, numbers and arrays are no parts of keys. */
static void other_points_are_no_depth(void **state)
{
    struct sl_buf b;
    struct sl_err err = {0};
    struct sl_toml *t;

    (void)state;
    sl_buf_init(&b, 1 << 16);
    sl_buf_str(&b, "# ");
    for (int i = 0; i < 100; i++)
        sl_buf_str(&b, "...");
    sl_buf_str(&b, "\na = [");
    for (int i = 0; i < 100; i++)
        sl_buf_str(&b, "1.5, ");
    sl_buf_str(&b, "]\nb = \"\"\"\"\\\"\n");
    for (int i = 0; i < 100; i++)
        sl_buf_str(&b, "..\n..");
    sl_buf_str(&b, "\"\"\"\nc = '");
    for (int i = 0; i < 100; i++)
        sl_buf_str(&b, "..");
    sl_buf_str(&b, "\\'\n'....' = 1\n");
    t = sl_toml_parse(sl_buf_text(&b), b.len, "f.toml", &err);
    if (!t)
        fail_msg("%s", err.msg);
    assert_int_equal(sl_toml_find(t, "c")->len, 201);
    sl_toml_destroy(t);
    sl_buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_come_in_order_with_places),
        cmocka_unit_test(dotted_keys_and_inline_tables_are_tables),
        cmocka_unit_test(what_is_no_toml_has_a_place_on_one_line),
        cmocka_unit_test(a_text_without_end_is_refused),
        cmocka_unit_test(a_deep_nest_is_refused),
        cmocka_unit_test(a_deep_key_is_refused),
        cmocka_unit_test(other_points_are_no_depth),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
