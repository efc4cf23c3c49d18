/* test_idset.c - every form of a node list that Slurm prints */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "common/idset.h"

static const struct {
    const char *list, *names, *folded; /* folded NULL: as `list` */
} table[] = {
    {"", "", NULL},
    {"login", "login", NULL},
    {"n1", "n1", NULL},
    {"n[1-3]", "n1 n2 n3", NULL},
    {"n1,n2,n3", "n1 n2 n3", "n[1-3]"},
    {"a-b[01-03,7],c", "a-b01 a-b02 a-b03 a-b7 c", "a-b[01-03],a-b7,c"},
    {"n[1-2]x[3-4]", "n1x3 n1x4 n2x3 n2x4", "n1x[3-4],n2x[3-4]"},
    {"rack[1,3]-gpu[08-10].cluster", "rack1-gpu08.cluster rack1-gpu09.cluster rack1-gpu10.cluster "
                                     "rack3-gpu08.cluster rack3-gpu09.cluster rack3-gpu10.cluster",
     "rack1-gpu[08-10].cluster,rack3-gpu[08-10].cluster"},
    {"x[9-11]", "x9 x10 x11", "x9,x[10-11]"},
    {"x[098-101]", "x098 x099 x100 x101", NULL},
    {"[1-3]", "1 2 3", NULL},
    {"n2,n1", "n2 n1", NULL},
    {"n1,n1", "n1 n1", NULL},
    {"a,b[2],c[1-1]", "a b2 c1", "a,b2,c1"},
};

static void expands_and_folds(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct sl_err err = {0};
        struct sl_idset s, back;
        char got[1000] = "", text[1000];

        sl_idset_init(&s);
        assert_int_equal(sl_idset_parse(&s, table[i].list, &err), 0);
        for (int k = 0; k < s.n; k++)
            snprintf(got + strlen(got), sizeof got - strlen(got), "%s%s", k ? " " : "", s.name[k]);
        assert_string_equal(got, table[i].names);
        sl_idset_text(&s, text, sizeof text);
        assert_string_equal(text, table[i].folded ? table[i].folded : table[i].list);
        sl_idset_init(&back);
        assert_int_equal(sl_idset_parse(&back, text, &err), 0);
        assert_int_equal(back.n, s.n);
        for (int k = 0; k < s.n; k++)
            assert_string_equal(back.name[k], s.name[k]);
        sl_idset_fini(&back);
        sl_idset_fini(&s);
    }
}

static void refuses_what_is_no_list(void **state)
{
    static const char *const wrong[] = {"n[1-", "n[1-3",   "n]1",   "n[]",  "n[3-1]",   "a,,b",  ",a", "a,",
                                        "n[a]", "n[1-2-3]", "n[1 2]", "n 1", "n[1-99999]", "n[1-400]x[1-400]",
                                        "n[12345678901234567890]"};

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct sl_err err = {0};
        struct sl_idset s;

        sl_idset_init(&s);
        if (sl_idset_parse(&s, wrong[i], &err) == 0)
            fail_msg("\"%s\" was taken for %d hosts", wrong[i], s.n);
        assert_int_equal(err.code, SL_USAGE);
        sl_idset_fini(&s);
    }
}

static void cuts_what_does_not_fit(void **state)
{
    struct sl_err err = {0};
    struct sl_idset s;
    char text[16];

    (void)state;
    sl_idset_init(&s);
    assert_int_equal(sl_idset_parse(&s, "alpha,beta,gamma,delta", &err), 0);
    assert_string_equal(sl_idset_text(&s, text, sizeof text), "alpha,beta...");
    sl_idset_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expands_and_folds),
        cmocka_unit_test(refuses_what_is_no_list),
        cmocka_unit_test(cuts_what_does_not_fit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
