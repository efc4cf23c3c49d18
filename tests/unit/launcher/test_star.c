/* test_star.c - two ends of a connection on this machine: handshake, framing, limits */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "launcher/star.h"

static const unsigned char chief[SL_STAR_TOKEN] = "chief's token..";
static const unsigned char mine[SL_STAR_TOKEN] = "my own token...";
static const unsigned char wrong[SL_STAR_TOKEN] = "somebody else..";

struct dialler {
    char address[SL_STAR_ADDRESS];
    const unsigned char *theirs;
    struct sl_star_conn c;
    struct sl_err err;
    int rc, patience;
};

static int go_on(void *user)
{
    struct dialler *d = user;

    return d->patience-- > 0;
}

static void *dial(void *user)
{
    struct dialler *d = user;

    d->rc = sl_star_dial(&d->c, d->address, 3, d->theirs, mine, go_on, d, &d->err);
    return NULL;
}

static const unsigned char *token_of(void *user, int index)
{
    (void)user;
    return index == 3 ? mine : NULL;
}

/* Both ends, or the dialler's failure. */
static int meet(const unsigned char *theirs, struct dialler *d, struct sl_star_conn *c)
{
    int fd, index = -1, rc = -1;
    pthread_t t;

    *d = (struct dialler){.theirs = theirs, .patience = 30};
    fd = sl_star_listen(d->address, NULL, &d->err);
    assert_true(fd >= 0);
    assert_int_equal(pthread_create(&t, NULL, dial, d), 0);
    for (int i = 0; i < 40 && rc; i++) {
        struct pollfd p = {fd, POLLIN, 0};

        if (poll(&p, 1, 100) > 0) {
            rc = sl_star_accept(c, fd, chief, token_of, NULL, &index);
            if (rc)
                break;
        }
    }
    pthread_join(t, NULL);
    close(fd);
    assert_true(rc || index == 3);
    return rc;
}

struct seen {
    int n;
    struct sl_star_head last;
    size_t bytes;
    int whole;
};

static void on(void *user, const struct sl_star_head *h, const char *data)
{
    struct seen *s = user;

    s->n++;
    s->last = *h;
    s->bytes += h->len;
    for (uint32_t i = 0; i < h->len; i++)
        s->whole &= data[i] == (char)(i * 7);
}

static void messages_come_whole_and_in_order(void **state)
{
    static char big[3 << 20];
    struct seen s = {.whole = 1};
    struct sl_star_conn c;
    struct dialler d;

    (void)state;
    for (size_t i = 0; i < sizeof big; i++)
        big[i] = (char)(i * 7);
    assert_int_equal(meet(chief, &d, &c), 0);
    assert_int_equal(d.rc, 0);
    for (int i = 0; i < 100; i++)
        assert_int_equal(sl_star_put(&d.c, 7, i, -i, 0, big, (size_t)i * 3), 0);
    assert_int_equal(sl_star_put(&d.c, 8, 1, 2, 3, big, sizeof big), 0); /* more than a socket takes */
    for (int i = 0; i < 2000 && s.n < 101; i++) {
        struct pollfd p = {c.fd, POLLIN, 0};

        sl_star_flush(&d.c);
        poll(&p, 1, 10);
        assert_int_equal(sl_star_read(&c, on, &s), 0);
    }
    assert_int_equal(s.n, 101);
    assert_int_equal(s.bytes, 3 * 99 * 100 / 2 + sizeof big);
    assert_true(s.whole);
    assert_true(s.last.type == 8 && s.last.a == 1 && s.last.b == 2 && s.last.c == 3);
    sl_star_close(&d.c);
    assert_int_equal(sl_star_read(&c, on, &s), -1);
    assert_int_equal(c.fd, -1);
    assert_int_equal(sl_star_put(&c, 7, 0, 0, 0, NULL, 0), -1);
}

static void a_wrong_token_is_turned_away(void **state)
{
    struct sl_star_conn c;
    struct dialler d;

    (void)state;
    assert_int_equal(meet(wrong, &d, &c), -1);
    assert_int_equal(d.rc, -1);
    assert_non_null(strstr(d.err.msg, "no connection to the job's first agent"));
}

static void a_length_beyond_the_limit_ends_the_connection(void **state)
{
    struct sl_star_head h = {.type = 7, .len = SL_STAR_MAX + 1u};
    struct seen s = {.whole = 1};
    struct sl_star_conn c;
    struct dialler d;
    int rc = 0;

    (void)state;
    assert_int_equal(meet(chief, &d, &c), 0);
    assert_int_equal(send(d.c.fd, &h, sizeof h, MSG_NOSIGNAL), sizeof h);
    for (int i = 0; i < 100 && !rc; i++) {
        struct pollfd p = {c.fd, POLLIN, 0};

        poll(&p, 1, 50);
        rc = sl_star_read(&c, on, &s);
    }
    assert_int_equal(rc, -1);
    assert_int_equal(s.n, 0);
    sl_star_close(&d.c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_come_whole_and_in_order),
        cmocka_unit_test(a_wrong_token_is_turned_away),
        cmocka_unit_test(a_length_beyond_the_limit_ends_the_connection),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
