#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "common/loop.h"
#include "common/mem.h"

static const int64_t ms = 1000000;

struct seen {
    struct sl_loop *l;
    int n, fd[2], other[2];
    char text[64];
};

static void keep(void *u, int fd, uint32_t events)
{
    struct seen *s = u;
    ssize_t k;

    assert_true(events & EPOLLIN);
    k = read(fd, s->text, sizeof s->text - 1);
    assert_true(k >= 0);
    s->text[k] = '\0';
    s->n++;
}

static void a_readable_descriptor_is_told(void **state)
{
    struct seen s = {.l = sl_loop_create(NULL)};
    struct sl_err err = {0};

    (void)state;
    assert_int_equal(pipe(s.fd), 0);
    assert_int_equal(sl_loop_fd(s.l, s.fd[0], EPOLLIN, keep, &s, &err), 0);
    assert_int_equal(sl_loop_turn(s.l, 0, &err), 0); /* nothing there yet */
    assert_int_equal(write(s.fd[1], "hello", 5), 5);
    assert_int_equal(sl_loop_turn(s.l, 1000 * ms, &err), 1);
    assert_string_equal(s.text, "hello");
    sl_loop_drop_fd(s.l, s.fd[0]);
    sl_loop_drop_fd(s.l, s.fd[0]);
    sl_loop_drop_fd(s.l, 99999);
    assert_int_equal(write(s.fd[1], "more", 4), 4);
    assert_int_equal(sl_loop_turn(s.l, 0, &err), 0);
    assert_int_equal(sl_loop_fd(s.l, -1, EPOLLIN, keep, &s, &err), -1);
    close(s.fd[0]);
    close(s.fd[1]);
    assert_int_equal(sl_loop_fd(s.l, s.fd[0], EPOLLIN, keep, &s, &err), -1);
    assert_int_equal(err.code, SL_SYSTEM);
    sl_loop_destroy(s.l);
}

/* Whichever runs first drops and closes the other, whose event is already in the batch. */
static void drop_other(void *u, int fd, uint32_t events)
{
    struct seen *s = u;
    int other = fd == s->fd[0] ? s->other[0] : s->fd[0];

    (void)events;
    s->n++;
    sl_loop_drop_fd(s->l, other);
    close(other);
    assert_int_equal(dup2(fd, other), other); /* the number is in use again, and readable */
    assert_int_equal(sl_loop_fd(s->l, other, EPOLLIN, keep, s, NULL), 0);
}

static void an_event_of_a_dropped_descriptor_is_not_delivered(void **state)
{
    struct seen s = {.l = sl_loop_create(NULL)};

    (void)state;
    assert_int_equal(pipe(s.fd), 0);
    assert_int_equal(pipe(s.other), 0);
    assert_int_equal(write(s.fd[1], "x", 1) + write(s.other[1], "x", 1), 2);
    sl_loop_fd(s.l, s.fd[0], EPOLLIN, drop_other, &s, NULL);
    sl_loop_fd(s.l, s.other[0], EPOLLIN, drop_other, &s, NULL);
    assert_int_equal(sl_loop_turn(s.l, 1000 * ms, NULL), 1);
    assert_int_equal(s.n, 1);
    for (int i = 0; i < 2; i++) {
        close(s.fd[i]);
        close(s.other[i]);
    }
    sl_loop_destroy(s.l);
}

static void count(void *u)
{
    ++*(int *)u;
}

struct self {
    struct sl_loop *l;
    int64_t id;
    int n;
};

static void cancel_self(void *u)
{
    struct self *s = u;

    if (++s->n == 3)
        sl_loop_cancel(s->l, s->id);
}

static void add_now(void *u)
{
    struct self *s = u;

    s->n++;
    assert_true(sl_loop_timer(s->l, 0, 0, add_now, s, NULL) > 0);
}

static void timers_run_when_due(void **state)
{
    struct sl_loop *l = sl_loop_create(NULL);
    struct self self = {.l = l}, now = {.l = l};
    int once = 0, never = 0, often = 0;

    (void)state;
    assert_true(sl_loop_timer(l, 2 * ms, 0, count, &once, NULL) > 0);
    int64_t id = sl_loop_timer(l, 1 * ms, 0, count, &never, NULL);
    sl_loop_cancel(l, id);
    sl_loop_cancel(l, id);
    int64_t start = sl_clock_ns();
    while (!once)
        assert_true(sl_loop_turn(l, 5000 * ms, NULL) >= 0);
    assert_true(sl_clock_ns() - start >= 2 * ms); /* never early */
    assert_int_equal(never, 0);
    sl_loop_timer(l, 0, 1 * ms, count, &often, NULL);
    self.id = sl_loop_timer(l, 0, 1 * ms, cancel_self, &self, NULL);
    while (often < 5)
        assert_true(sl_loop_turn(l, 5000 * ms, NULL) >= 0);
    assert_int_equal(self.n, 3);
    assert_int_equal(once, 1);
    /* a timer that sets itself anew for now runs once a turn: the loop goes on */
    sl_loop_timer(l, 0, 0, add_now, &now, NULL);
    sl_loop_turn(l, 0, NULL);
    assert_int_equal(now.n, 1);
    sl_loop_destroy(l);
}

static void many_timers_all_run(void **state)
{
    struct sl_loop *l = sl_loop_create(NULL);
    int n = 0;

    (void)state;
    for (int i = 0; i < 100; i++)
        assert_true(sl_loop_timer(l, i % 3 * ms, 0, count, &n, NULL) > 0);
    for (int i = 0; i < 1000 && n < 100; i++)
        sl_loop_turn(l, 5 * ms, NULL);
    assert_int_equal(n, 100);
    sl_loop_destroy(l);
}

struct sig {
    struct sl_loop *l;
    int n, signo;
};

static void on_signal(void *u, const struct signalfd_siginfo *si)
{
    struct sig *s = u;

    s->n++;
    s->signo = (int)si->ssi_signo;
    assert_int_equal(si->ssi_pid, getpid());
    sl_loop_stop(s->l);
}

static void signals_come_through_the_loop(void **state)
{
    struct sig s = {.l = sl_loop_create(NULL)};
    sigset_t mask;

    (void)state;
    assert_int_equal(sl_loop_signal(s.l, SIGUSR1, on_signal, &s, NULL), 0);
    assert_int_equal(sl_loop_signal(s.l, SIGUSR2, on_signal, &s, NULL), 0);
    kill(getpid(), SIGUSR2);
    assert_int_equal(sl_loop_run(s.l, NULL), 0);
    assert_int_equal(s.n, 1);
    assert_int_equal(s.signo, SIGUSR2);
    assert_int_equal(sl_loop_signal(s.l, 0, on_signal, &s, NULL), -1);
    assert_int_equal(sl_loop_signal(s.l, 65, on_signal, &s, NULL), -1);
    sl_loop_destroy(s.l);
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    assert_false(sigismember(&mask, SIGUSR1)); /* the mask is as it was */
}

static void no_memory_is_told(void **state)
{
    struct sl_err err = {0};
    struct seen s = {0};
    int n = 0;

    (void)state;
    sl_mem_fail_after(0);
    assert_null(sl_loop_create(&err));
    sl_mem_fail_after(1);
    s.l = sl_loop_create(&err);
    assert_non_null(s.l);
    assert_int_equal(sl_loop_timer(s.l, 0, 0, count, &n, &err), -1);
    assert_int_equal(sl_loop_fd(s.l, 0, EPOLLIN, keep, &s, &err), -1);
    assert_int_equal(err.code, SL_SYSTEM);
    sl_mem_fail_after(-1);
    assert_true(sl_loop_timer(s.l, 0, 0, count, &n, &err) > 0);
    sl_loop_destroy(s.l);
    sl_loop_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_readable_descriptor_is_told),
        cmocka_unit_test(an_event_of_a_dropped_descriptor_is_not_delivered),
        cmocka_unit_test(timers_run_when_due),
        cmocka_unit_test(many_timers_all_run),
        cmocka_unit_test(signals_come_through_the_loop),
        cmocka_unit_test(no_memory_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
