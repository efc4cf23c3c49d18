#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>

#include <cmocka.h>

#include "common/buf.h"
#include "common/mem.h"

static void it_grows_and_stays_terminated(void **state)
{
    struct sl_buf b;
    char want[12001] = "";

    (void)state;
    sl_buf_init(&b, 1 << 20);
    assert_string_equal(sl_buf_text(&b), "");
    for (int i = 0; i < 1000; i++) {
        sl_buf_printf(&b, "%04d,", i);
        sl_buf_str(&b, "abc");
        sl_buf_char(&b, ';');
        sl_buf_add(&b, "xyz", 3);
        snprintf(want + 12 * i, 13, "%04d,abc;xyz", i);
    }
    assert_int_equal(b.len, 12000);
    assert_string_equal(sl_buf_text(&b), want);
    sl_buf_drop(&b, 11988);
    assert_string_equal(sl_buf_text(&b), "0999,abc;xyz");
    sl_buf_drop(&b, 100);
    assert_string_equal(sl_buf_text(&b), "");
    sl_buf_fini(&b);
    sl_buf_drop(&b, 1);
}

static void the_maximum_is_exact_and_failure_sticks(void **state)
{
    struct sl_err err = {0};
    struct sl_buf b;

    (void)state;
    sl_buf_init(&b, 10);
    sl_buf_str(&b, "0123456789"); /* fits to the byte */
    assert_int_equal(sl_buf_check(&b, &err), 0);
    sl_buf_str(&b, "x");
    sl_buf_add(&b, "", 0);
    assert_int_equal(sl_buf_check(&b, &err), -1);
    assert_string_equal(err.msg, "text is longer than 10 bytes");
    assert_string_equal(sl_buf_text(&b), "0123456789");
    assert_null(sl_buf_take(&b, &err));
    sl_buf_clear(&b);
    sl_buf_printf(&b, "%s", "ok");
    char *p = sl_buf_take(&b, &err);
    assert_string_equal(p, "ok");
    free(p);
    p = sl_buf_take(&b, &err); /* empty after it was taken */
    assert_string_equal(p, "");
    free(p);
    sl_buf_fini(&b);
}

static void no_memory_leaves_the_bytes_alone(void **state)
{
    struct sl_err err = {0};
    struct sl_buf b;
    char big[1000];

    (void)state;
    memset(big, 'x', sizeof big);
    sl_buf_init(&b, 1 << 20);
    sl_buf_str(&b, "kept");
    sl_mem_fail_after(0);
    sl_buf_add(&b, big, sizeof big);
    sl_mem_fail_after(-1);
    sl_buf_str(&b, "not added, since the piece before is missing");
    assert_int_equal(b.failed, ENOMEM);
    assert_string_equal(sl_buf_text(&b), "kept");
    assert_int_equal(sl_buf_check(&b, &err), -1);
    assert_int_equal(err.code, SL_SYSTEM);
    sl_buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_grows_and_stays_terminated),
        cmocka_unit_test(the_maximum_is_exact_and_failure_sticks),
        cmocka_unit_test(no_memory_leaves_the_bytes_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
