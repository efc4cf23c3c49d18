#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>

#include <cmocka.h>

#include "common/arena.h"
#include "common/mem.h"

static void pieces_are_aligned_zeroed_and_apart(void **state)
{
    struct sl_err err = {0};
    struct sl_arena *a = sl_arena_create(0, &err);
    unsigned char *p[200];

    (void)state;
    for (size_t i = 0; i < 200; i++) {
        size_t n = 1 + i * 37;

        p[i] = sl_arena_alloc(a, n, 1);
        assert_non_null(p[i]);
        assert_int_equal((uintptr_t)p[i] % 16, 0);
        for (size_t k = 0; k < n; k++)
            assert_int_equal(p[i][k], 0);
        memset(p[i], (int)i, n);
    }
    for (size_t i = 0; i < 200; i++)
        for (size_t k = 0; k < 1 + i * 37; k++)
            assert_int_equal(p[i][k], i);
    sl_arena_destroy(a);
}

static void strings_are_copies(void **state)
{
    struct sl_arena *a = sl_arena_create(0, NULL);
    char text[] = "gradient";

    (void)state;
    char *s = sl_arena_strdup(a, text), *cut = sl_arena_strndup(a, text, 4);
    char *made = sl_arena_printf(a, "%s %d", text, 7);
    text[0] = 'X';
    assert_string_equal(s, "gradient");
    assert_string_equal(cut, "grad");
    assert_string_equal(made, "gradient 7");
    assert_string_equal(sl_arena_strndup(a, "ab", 100), "ab");
    sl_arena_destroy(a);
    sl_arena_destroy(NULL);
}

static void past_the_maximum_nothing_is_given(void **state)
{
    struct sl_arena *a = sl_arena_create(1000, NULL);

    (void)state;
    assert_non_null(sl_arena_alloc(a, 960, 1));
    errno = 0;
    assert_null(sl_arena_alloc(a, 64, 1));
    assert_int_equal(errno, ENOMEM);
    assert_non_null(sl_arena_alloc(a, 32, 1)); /* what is left can still be had */
    assert_null(sl_arena_alloc(a, 1, 1));
    assert_null(sl_arena_alloc(a, SIZE_MAX, 2));
    assert_null(sl_arena_alloc(a, SIZE_MAX - 8, 1));
    assert_int_equal(sl_arena_used(a), 992);
    sl_arena_destroy(a);
}

static void no_memory_is_told(void **state)
{
    struct sl_err err = {0};

    (void)state;
    sl_mem_fail_after(0);
    assert_null(sl_arena_create(0, &err));
    assert_int_equal(err.code, SL_SYSTEM);
    sl_mem_fail_after(1);
    struct sl_arena *a = sl_arena_create(0, &err);
    assert_non_null(a);
    assert_null(sl_arena_strdup(a, "x"));
    assert_null(sl_arena_printf(a, "x"));
    sl_mem_fail_after(-1);
    assert_non_null(sl_arena_strdup(a, "x"));
    sl_arena_destroy(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_aligned_zeroed_and_apart),
        cmocka_unit_test(strings_are_copies),
        cmocka_unit_test(past_the_maximum_nothing_is_given),
        cmocka_unit_test(no_memory_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
