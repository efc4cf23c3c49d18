/* test_links.c - nodes find each other past strangers and dead addresses, and say so when they do
 * not */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "executor/comm.h"
#include "executor/links.h"

enum { NODES = 3, STRANGERS = 40 /* more than are kept waiting */ };

struct node {
    struct sl_links links;
    struct sl_ctl *ctl;
    const char *text[NODES];
    double deadline;
    int kind; /* of the barrier behind the links; 0: none */
    int rc;
    struct sl_err err;
};

static void *live(void *p)
{
    static const char *const host[NODES] = {"a", "b", "c"};
    struct node *n = p;
    char *arena[NODES] = {0};
    struct sl_comm c;

    n->rc = sl_links_connect(&n->links, n->text, host, n->deadline, n->ctl, &n->err);
    if (n->rc || !n->kind)
        return NULL;
    sl_comm_init(&c, n->ctl, arena, NULL, n->links.node, n->links.nodes, n->deadline);
    n->rc = sl_comm_open_nodes(&c, &n->links, &n->err);
    if (!n->rc)
        n->rc = sl_comm_barrier(&c, n->kind, -1, &n->err);
    sl_comm_fini(&c);
    return NULL;
}

static void listen_all(struct node *v, int n)
{
    for (int q = 0; q < n; q++) {
        v[q] = (struct node){.deadline = 20};
        assert_int_equal(sl_links_listen(&v[q].links, q, n, "lo", NULL), 0);
        v[q].ctl = calloc(1, sl_ctl_size(n, 1));
        assert_non_null(v[q].ctl);
        assert_int_equal(sl_ctl_init(v[q].ctl, n, 1, NULL), 0);
    }
    for (int q = 0; q < n; q++)
        for (int p = 0; p < n; p++)
            v[q].text[p] = v[p].links.text;
}

static void live_all(struct node *v, int n)
{
    pthread_t th[NODES];

    for (int q = 0; q < n; q++)
        assert_int_equal(pthread_create(&th[q], NULL, live, &v[q]), 0);
    for (int q = 0; q < n; q++)
        pthread_join(th[q], NULL);
}

static void close_all(struct node *v, int n)
{
    for (int q = 0; q < n; q++) {
        sl_links_close(&v[q].links);
        free(v[q].ctl);
    }
}

static void addresses_are_read_as_they_are_printed(void **state)
{
    static const char *const good[] = {"10.1.2.3:1", "127.0.0.1:65535", "[fd00::1]:4711"};
    static const char *const bad[]
        = {"", "10.1.2.3", "10.1.2.3:0", "10.1.2.3:65536", "10.1.2:80", "fd00::1:80", "host:80"};
    struct sockaddr_storage a;
    socklen_t len;
    char text[SL_ADDRESS_TEXT];

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(sl_address_parse(good[i], &a, &len), 0);
        sl_address_print(&a, text, sizeof text);
        assert_string_equal(text, good[i]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(sl_address_parse(bad[i], &a, &len), -1);
}

static void a_wrong_interface_is_refused_with_those_there_are(void **state)
{
    struct sl_address a[SL_ADDRESS_MAX];
    struct sl_err err = {0};

    (void)state;
    assert_true(sl_address_list(NULL, a, NULL) >= 1);
    assert_true(sl_address_list("nothing7,lo", a, NULL) >= 1);
    assert_string_equal(a[0].dev, "lo");
    assert_int_equal(sl_address_list("nothing7", a, &err), -1);
    assert_int_equal(err.code, SL_USAGE);
    assert_non_null(strstr(err.msg, "\"nothing7\""));
    assert_non_null(strstr(err.hint, "lo"));
}

static int call(const char *text)
{
    struct sockaddr_storage a;
    socklen_t len;
    char one[SL_ADDRESS_TEXT];
    const char *at = strchr(text, ' ') + 1;
    int fd;

    snprintf(one, sizeof one, "%.*s", (int)strcspn(at, " "), at);
    assert_int_equal(sl_address_parse(one, &a, &len), 0);
    fd = socket(a.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, len), 0);
    return fd;
}

/* Some say nothing, some nonsense, some leave; and they came first. */
static void strangers_keep_no_node_out(void **state)
{
    struct node v[NODES];
    int fd[STRANGERS];

    (void)state;
    listen_all(v, NODES);
    for (int i = 0; i < STRANGERS; i++) {
        fd[i] = call(v[i % 2].links.text);
        if (i % 3 == 1)
            assert_true(send(fd[i], "GET / HTTP/1.0\r\n\r\nand so on and on", 34, 0) > 0);
        if (i % 3 == 2) {
            close(fd[i]);
            fd[i] = -1;
        }
    }
    live_all(v, NODES);
    for (int q = 0; q < NODES; q++) {
        assert_int_equal(v[q].rc, 0);
        for (int p = 0; p < NODES; p++)
            assert_true(p == q || v[q].links.fd[p] >= 0);
    }
    for (int i = 0; i < STRANGERS; i++)
        if (fd[i] >= 0)
            close(fd[i]);
    close_all(v, NODES);
}

/* A port where nobody listens, one where another job's rank does, then the right one. */
static void each_address_is_tried(void **state)
{
    struct node v[2];
    struct sl_links other, gone;
    char text[SL_LINKS_TEXT];

    (void)state;
    listen_all(v, 2);
    assert_int_equal(sl_links_listen(&other, 0, 2, "lo", NULL), 0);
    assert_int_equal(sl_links_listen(&gone, 0, 2, "lo", NULL), 0);
    sl_links_close(&gone);
    snprintf(text, sizeof text, "%.*s%.60s%.60s%s", 2 * SL_LINKS_TOKEN, v[0].links.text,
             strchr(gone.text, ' '), strchr(other.text, ' '), strchr(v[0].links.text, ' '));
    v[1].text[0] = text;
    live_all(v, 2);
    assert_int_equal(v[0].rc, 0);
    assert_int_equal(v[1].rc, 0);
    assert_non_null(strstr(v[0].links.text, v[1].links.at[0]));
    sl_links_close(&other);
    close_all(v, 2);
}

static void a_node_that_is_not_there_is_named(void **state)
{
    struct node v[2];
    struct sl_links gone;

    (void)state;
    listen_all(v, 2);
    assert_int_equal(sl_links_listen(&gone, 0, 2, "lo", NULL), 0);
    sl_links_close(&gone);
    v[1].text[0] = gone.text;
    v[0].deadline = v[1].deadline = 0.5;
    live_all(v, 2);
    assert_int_equal(v[1].err.code, SL_BUSY);
    assert_non_null(strstr(v[1].err.msg, "connection with node 0 (a): "));
    assert_non_null(strstr(v[1].err.msg, "refused"));
    assert_non_null(strstr(v[1].err.hint, "SHARDLAUNCH_IFNAME"));
    assert_int_equal(v[0].err.code, SL_BUSY);
    assert_non_null(strstr(v[0].err.msg, "node 1 (b): it has not called"));
    v[1].text[0] = "0123 nothing of use";
    assert_int_equal(sl_links_connect(&v[1].links, v[1].text, v[1].text, 1, v[1].ctl, &v[1].err),
                     -1);
    assert_int_equal(v[1].err.code, SL_BUG);
    close_all(v, 2);
}

static void an_attempt_that_is_over_waits_for_nobody(void **state)
{
    struct node v[2];

    (void)state;
    listen_all(v, 2);
    sl_ctl_fail(v[0].ctl, -1);
    v[0].deadline = 0;
    live(&v[0]);
    assert_int_equal(v[0].err.code, SL_PEER);
    close_all(v, 2);
}

/* A rank that has missed a collective must not take one's bytes for the other's. */
static void nodes_in_different_collectives_find_out(void **state)
{
    struct node v[2];

    (void)state;
    listen_all(v, 2);
    v[0].kind = SL_WAIT_EVAL;
    v[1].kind = SL_WAIT_START;
    live_all(v, 2);
    for (int q = 0; q < 2; q++) {
        assert_int_equal(v[q].rc, -1);
        assert_true(v[q].err.code == SL_BUSY || v[q].err.code == SL_PEER);
    }
    assert_true(strstr(v[0].err.msg, "another collective")
                || strstr(v[1].err.msg, "another collective"));
    close_all(v, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_read_as_they_are_printed),
        cmocka_unit_test(a_wrong_interface_is_refused_with_those_there_are),
        cmocka_unit_test(strangers_keep_no_node_out),
        cmocka_unit_test(each_address_is_tried),
        cmocka_unit_test(a_node_that_is_not_there_is_named),
        cmocka_unit_test(an_attempt_that_is_over_waits_for_nobody),
        cmocka_unit_test(nodes_in_different_collectives_find_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
