/* test_crew.c - nodes, shapes and ranks of made-up tasks; and what is refused */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "launcher/crew.h"

/* "n1 n1 n2": a task on each, nodes in the order of their first task. */
static struct sl_crew make(struct sl_member *m, const char *hosts)
{
    struct sl_crew c = {.m = m, .listen = -1, .hand = -1};
    char list[200], *save = NULL;

    strcpy(list, hosts);
    for (char *h = strtok_r(list, " ", &save); h; h = strtok_r(NULL, " ", &save)) {
        int j = 0;

        m[c.n] = (struct sl_member){.cpus = 4, .cpu_set = 1};
        strcpy(m[c.n].host, h);
        while (strcmp(m[j].host, h))
            j++;
        m[c.n].leader = j;
        m[c.n].node = j == c.n ? c.nodes++ : m[j].node;
        c.n++;
    }
    return c;
}

static const struct {
    const char *hosts;
    int nodes, ranks_per_node;
    const char *layout;  /* "first+ranks" by task; NULL: refused */
    const char *say;     /* part of the message */
    const char *instead; /* part of the hint */
} table[] = {
    {"n1 n2", 1, 1, "0+1 1+1", NULL, NULL},
    {"n1 n2", 2, 4, "0+4 4+4", NULL, NULL},
    {"n1 n1 n2 n2", 1, 1, "0+1 1+1 2+1 3+1", NULL, NULL},
    {"n1 n1 n2 n2", 2, 2, "0+1 1+1 2+1 3+1", NULL, NULL},
    {"n1 n2 n1 n2", 1, 1, "0+1 2+1 1+1 3+1", NULL, NULL}, /* cyclic: blocks per node */
    {"n1 n1", 1, 1, "0+1 1+1", NULL, NULL},
    {"n1 n1 n2", 1, 1, NULL, "different numbers of tasks: n1 2, n2 1", "-N2 --ntasks-per-node=1 prog"},
    {"n1 n2", 3, 1, NULL, "resources.nodes is 3, and 2 tasks were started on 2 nodes (n[1-2])", "-N3"},
    {"n1 n1", 2, 1, NULL, "resources.nodes is 2, and 2 tasks were started on 1 node (n1)", "-N2"},
    {"n1 n1 n2 n2", 1, 4, NULL, "ranks_per_node is 4, and each node has 2 tasks",
     "-N2 --ntasks-per-node=4 prog"},
    {"a b c", 1, 30, NULL, "30 ranks on each of 3 nodes; the most is 64", ""},
};

static void shapes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct sl_member m[8];
        struct sl_crew c = make(m, table[i].hosts);
        struct sl_err err = {0};
        char got[200] = "";
        int each = 0, rc = sl_crew_shape(&c, "prog", table[i].nodes, table[i].ranks_per_node, &each,
                                         &err);

        if (!table[i].layout) {
            assert_int_equal(rc, -1);
            assert_int_equal(err.code, SL_USAGE);
            assert_non_null(strstr(err.msg, table[i].say));
            assert_non_null(strstr(err.hint, table[i].instead));
            continue;
        }
        assert_int_equal(rc, 0);
        sl_crew_number(&c, each);
        for (int t = 0; t < c.n; t++)
            snprintf(got + strlen(got), sizeof got - strlen(got), "%s%d+%d", t ? " " : "", m[t].first,
                     m[t].ranks);
        assert_string_equal(got, table[i].layout);
        assert_int_equal(c.ranks, each * c.nodes);
    }
}

/* Tasks with the same cpus share them; with others they add up; the smallest node counts. */
static void cores(void **state)
{
    struct sl_member m[8];
    struct sl_crew c = make(m, "n1 n1 n2 n2");

    (void)state;
    assert_int_equal(sl_crew_cores(&c), 4);
    for (int t = 0; t < c.n; t++)
        m[t].cpu_set = (uint64_t)t;
    assert_int_equal(sl_crew_cores(&c), 8);
    m[3].cpus = 1;
    assert_int_equal(sl_crew_cores(&c), 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(shapes), cmocka_unit_test(cores)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
