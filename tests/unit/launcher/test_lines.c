#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "launcher/lines.h"

struct got {
    struct sl_lines l;
    int n;
    size_t len[64];
    char text[64][SL_LINE_MAX + 1];
};

static void collect(void *user, const char *text, size_t n)
{
    struct got *g = user;

    assert_true(g->n < 64);
    assert_true(n <= SL_LINE_MAX);
    memcpy(g->text[g->n], text, n);
    g->text[g->n][n] = '\0';
    g->len[g->n++] = n;
}

static int start(void **state)
{
    *state = calloc(1, sizeof(struct got));
    return *state ? 0 : -1;
}

static int stop(void **state)
{
    free(*state);
    return 0;
}

static void a_line_comes_whole_however_it_was_cut(void **state)
{
    static const char text[] = "first\n\nthird line\n";
    struct got *g = *state;

    for (size_t i = 0; i < sizeof text - 1; i++)
        sl_lines_push(&g->l, text + i, 1, collect, g);
    assert_int_equal(g->n, 3);
    assert_string_equal(g->text[0], "first");
    assert_string_equal(g->text[1], "");
    assert_string_equal(g->text[2], "third line");
}

static void the_rest_without_a_newline_is_the_last_line(void **state)
{
    struct got *g = *state;

    sl_lines_push(&g->l, "a\nb", 3, collect, g);
    assert_int_equal(g->n, 1);
    sl_lines_end(&g->l, collect, g);
    sl_lines_end(&g->l, collect, g); /* nothing is left for a second one */
    assert_int_equal(g->n, 2);
    assert_string_equal(g->text[1], "b");
}

static void zeros_are_bytes_as_others(void **state)
{
    struct got *g = *state;

    sl_lines_push(&g->l, "a\0b\n", 4, collect, g);
    assert_int_equal(g->len[0], 3);
    assert_memory_equal(g->text[0], "a\0b", 3);
}

/* 2 MAX + 1 bytes and a newline are three pieces; exactly MAX and a newline are one line. */
static void a_long_line_comes_in_pieces_of_bounded_length(void **state)
{
    char *big = malloc(2 * SL_LINE_MAX + 2);
    struct got *g = *state;

    assert_non_null(big);
    memset(big, 'x', 2 * SL_LINE_MAX + 1);
    big[2 * SL_LINE_MAX + 1] = '\n';
    sl_lines_push(&g->l, big, 2 * SL_LINE_MAX + 2, collect, g);
    assert_int_equal(g->n, 3);
    assert_int_equal(g->len[0], SL_LINE_MAX);
    assert_int_equal(g->len[1], SL_LINE_MAX);
    assert_int_equal(g->len[2], 1);
    sl_lines_push(&g->l, big, SL_LINE_MAX, collect, g);
    sl_lines_push(&g->l, "\n", 1, collect, g);
    assert_int_equal(g->n, 4);
    assert_int_equal(g->len[3], SL_LINE_MAX);
    free(big);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_line_comes_whole_however_it_was_cut, start, stop),
        cmocka_unit_test_setup_teardown(the_rest_without_a_newline_is_the_last_line, start, stop),
        cmocka_unit_test_setup_teardown(zeros_are_bytes_as_others, start, stop),
        cmocka_unit_test_setup_teardown(a_long_line_comes_in_pieces_of_bounded_length, start, stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
