#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/err.h"

static void a_long_message_ends_in_dots(void **state)
{
    struct sl_err err = {0};
    char text[600];

    (void)state;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    sl_fail(&err, SL_USAGE, "%s", text);
    assert_int_equal(err.code, SL_USAGE);
    assert_int_equal(strlen(err.msg), sizeof err.msg - 1);
    assert_string_equal(err.msg + sizeof err.msg - 4, "...");
}

static void within_says_where_and_keeps_the_cause(void **state)
{
    struct sl_err err = {0};

    (void)state;
    sl_fail(&err, SL_SYSTEM, "no space left");
    sl_within(&err, "write \"%s\"", "a.db");
    assert_string_equal(err.msg, "write \"a.db\": no space left");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_long_message_ends_in_dots),
        cmocka_unit_test(within_says_where_and_keeps_the_cause),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
