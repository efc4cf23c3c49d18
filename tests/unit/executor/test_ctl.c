/* test_ctl.c - the shared block: who is behind, who failed; and the report socket */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "executor/ctl.h"
#include "executor/graph/graph.h"
#include "executor/reporter.h"

static struct sl_ctl *control(int ranks, int units)
{
    struct sl_ctl *c = calloc(1, sl_ctl_size(ranks, units));

    assert_non_null(c);
    assert_int_equal(sl_ctl_init(c, ranks, units, NULL), 0);
    return c;
}

static void sizes_are_checked(void **state)
{
    struct sl_ctl *c = control(3, 5);
    struct sl_err err;

    (void)state;
    assert_int_equal(sl_ctl_size(0, 1), 0);
    assert_int_equal(sl_ctl_size(SL_MAX_RANKS + 1, 1), 0);
    assert_int_equal(sl_ctl_size(1, 0), 0);
    assert_int_equal(sl_ctl_size(3, 5) - sl_ctl_size(3, 4), 3 * sizeof(double));
    assert_int_equal(sl_ctl_init(c, 0, 5, &err), -1);
    assert_int_equal(sl_ctl_check(c, sl_ctl_size(3, 5), 3, 5, &err), 0);
    assert_int_equal(sl_ctl_check(c, sl_ctl_size(3, 5) - 1, 3, 5, &err), -1);
    assert_int_equal(sl_ctl_check(c, sl_ctl_size(3, 5), 3, 6, &err), -1);
    c->version++;
    assert_int_equal(sl_ctl_check(c, sl_ctl_size(3, 5), 3, 5, &err), -1);
    assert_int_equal(err.code, SL_BUG);
    free(c);
}

static void a_state_word_holds_three_numbers(void **state)
{
    struct sl_ctl *c = control(1, 1);
    uint64_t w;

    (void)state;
    sl_ctl_mark(c, 0, 0xfedcba98u, 0x123456, SL_PHASE_WAIT);
    w = atomic_load(&c->r[0].state);
    assert_int_equal(sl_ctl_collective(w), 0xfedcba98u);
    assert_int_equal(sl_ctl_step(w), 0x123456);
    assert_int_equal(sl_ctl_phase(w), SL_PHASE_WAIT);
    free(c);
}

static void the_rank_behind_is_the_lowest_not_waiting(void **state)
{
    struct sl_ctl *c = control(4, 1);
    char text[200];

    (void)state;
    assert_int_equal(sl_ctl_behind(c, text, sizeof text), -1);
    for (int r = 0; r < 4; r++) {
        sl_ctl_mark(c, r, 31, 7, SL_PHASE_WAIT);
        atomic_store(&c->r[r].kind, SL_OP_REDUCE_SCATTER);
    }
    assert_int_equal(sl_ctl_behind(c, text, sizeof text), -1); /* all there: not a rank's fault */
    sl_ctl_mark(c, 2, 30, 7, SL_PHASE_COMPUTE);
    assert_int_equal(sl_ctl_behind(c, text, sizeof text), 2);
    assert_non_null(strstr(text, "rank 2 is behind: computing for 0.0 s in step 7"));
    assert_non_null(strstr(text, "last collective 30 (reduce_scatter)"));
    sl_ctl_mark(c, 1, 30, 7, SL_PHASE_WAIT); /* waits in an older one: ahead of 2, behind 0 and 3 */
    assert_int_equal(sl_ctl_behind(c, text, sizeof text), 2);
    sl_ctl_mark(c, 2, 31, 7, SL_PHASE_WAIT);
    assert_int_equal(sl_ctl_behind(c, text, sizeof text), 1);
    sl_ctl_mark(c, 1, 30, 7, SL_PHASE_DONE); /* it left without the others, who wait for it */
    assert_int_equal(sl_ctl_behind(c, text, sizeof text), 1);
    assert_non_null(strstr(text, "rank 1 has left after step 7 while rank 0 waits in step 7,"));
    for (int r = 0; r < 4; r++)
        sl_ctl_mark(c, r, 31, 7, SL_PHASE_DONE);
    assert_int_equal(sl_ctl_behind(c, text, sizeof text), -1);
    free(c);
}

static void the_first_culprit_stays(void **state)
{
    struct sl_ctl *c = control(4, 1);

    (void)state;
    assert_false(sl_ctl_failed(c));
    sl_ctl_fail(c, -1);
    assert_true(sl_ctl_failed(c));
    assert_int_equal(atomic_load(&c->culprit), -1);
    sl_ctl_fail(c, 3);
    sl_ctl_fail(c, 1);
    assert_int_equal(atomic_load(&c->culprit), 3);
    free(c);
}

static void steps_that_do_not_fit_are_dropped_and_counted(void **state)
{
    struct sl_report rep = {.type = SL_REPORT_STEP}, got;
    struct sl_reporter r;
    int fd[2], kept = 0, last = 0;

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd), 0);
    sl_reporter_init(&r, fd[0], 5);
    for (int i = 1; i <= 5000; i++) {
        rep.step = i;
        sl_reporter_send(&r, &rep); /* nobody reads: the socket fills, and this still returns */
    }
    assert_true(r.dropped > 0);
    while (recv(fd[1], &got, sizeof got, MSG_DONTWAIT) == (ssize_t)sizeof got) {
        kept++;
        assert_int_equal(got.rank, 5);
        assert_int_equal(got.u.step_.dropped, 0);
        last = (int)got.step;
    }
    assert_int_equal(last, kept); /* the first ones, in order */
    assert_int_equal(r.dropped, 5000 - kept);
    sl_reporter_send(&r, &rep);
    assert_int_equal(recv(fd[1], &got, sizeof got, MSG_DONTWAIT), sizeof got);
    assert_int_equal(got.u.step_.dropped, 5000 - kept);
    assert_int_equal(r.dropped, 0);
    close(fd[1]);
    sl_report_event(sl_reporter_send, &r, 1, "note", "into the void %d", 1); /* no SIGPIPE */
    assert_int_equal(r.fd, -1);
    close(fd[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_checked),
        cmocka_unit_test(a_state_word_holds_three_numbers),
        cmocka_unit_test(the_rank_behind_is_the_lowest_not_waiting),
        cmocka_unit_test(the_first_culprit_stays),
        cmocka_unit_test(steps_that_do_not_fit_are_dropped_and_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
