#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <math.h>

#include <cmocka.h>
#include <jansson.h>

#include "common/json.h"

static void another_reader_gets_the_same(void **state)
{
    struct sl_json j;
    struct sl_buf b;
    json_error_t why;

    (void)state;
    sl_buf_init(&b, 1 << 16);
    sl_json_init(&j, &b);
    sl_json_object(&j);
    sl_json_put_str(&j, "name", "a \"b\" \\ \n\t\x01 </script> \xc3\xa9");
    sl_json_put_int(&j, "big", INT64_MIN);
    sl_json_put_real(&j, "third", 1.0 / 3);
    sl_json_put_real(&j, "nan", NAN);
    sl_json_put_bool(&j, "yes", 1);
    sl_json_put_str(&j, "none", NULL);
    sl_json_key(&j, "list");
    sl_json_array(&j);
    sl_json_int(&j, 1);
    sl_json_array(&j);
    sl_json_end(&j);
    sl_json_object(&j);
    sl_json_end(&j);
    sl_json_real(&j, 2);
    sl_json_end(&j);
    sl_json_put_str(&j, "last", "");
    sl_json_end(&j);
    assert_int_equal(sl_buf_check(&b, NULL), 0);
    assert_null(strchr(sl_buf_text(&b), '<')); /* may stand inside a page */
    json_t *v = json_loads(sl_buf_text(&b), 0, &why);
    if (!v)
        fail_msg("%s: %s", why.text, sl_buf_text(&b));
    assert_string_equal(json_string_value(json_object_get(v, "name")),
                        "a \"b\" \\ \n\t\x01 </script> \xc3\xa9");
    assert_true(json_integer_value(json_object_get(v, "big")) == INT64_MIN);
    assert_true(json_real_value(json_object_get(v, "third")) == 1.0 / 3);
    assert_true(json_is_null(json_object_get(v, "nan")));
    assert_true(json_is_true(json_object_get(v, "yes")));
    assert_true(json_is_null(json_object_get(v, "none")));
    assert_int_equal(json_array_size(json_object_get(v, "list")), 4);
    assert_int_equal(json_object_size(v), 8);
    json_decref(v);
    sl_buf_fini(&b);
}

static void bytes_that_are_no_text_are_replaced(void **state)
{
    struct sl_json j;
    struct sl_buf b;

    (void)state;
    sl_buf_init(&b, 1 << 16);
    sl_json_init(&j, &b);
    sl_json_strn(&j, "a\xff\xc3z\0b", 6);
    assert_string_equal(sl_buf_text(&b), "\"a\xEF\xBF\xBD\xEF\xBF\xBDz\\u0000b\"");
    sl_buf_fini(&b);
}

static void calls_out_of_place_are_refused(void **state)
{
    struct sl_json j;
    struct sl_buf b;

    (void)state;
    sl_buf_init(&b, 1 << 16);
    for (int i = 0; i < 5; i++) {
        sl_buf_clear(&b);
        sl_json_init(&j, &b);
        if (i == 0) { /* a value without a key */
            sl_json_object(&j);
            sl_json_int(&j, 1);
        } else if (i == 1) { /* a key in an array */
            sl_json_array(&j);
            sl_json_key(&j, "k");
        } else if (i == 2) { /* an end too many */
            sl_json_end(&j);
        } else if (i == 3) { /* a key without a value */
            sl_json_object(&j);
            sl_json_key(&j, "k");
            sl_json_end(&j);
        } else { /* too deep */
            for (int k = 0; k < 33; k++)
                sl_json_array(&j);
        }
        assert_int_equal(b.failed, EINVAL);
    }
    sl_buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_reader_gets_the_same),
        cmocka_unit_test(bytes_that_are_no_text_are_replaced),
        cmocka_unit_test(calls_out_of_place_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
