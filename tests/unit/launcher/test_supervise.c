#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "executor/rank.h"
#include "launcher/supervise.h"

/* A wait status as the kernel packs it: the signal in the low seven bits, the exit status above. */
#define EXITED(n) ((n) << 8)
#define KILLED(n) (n)

enum { RANKS = 3, SECOND = 1000000000 };

struct fixture {
    struct sl_ctl *ctl;
    struct sl_supervise s;
    uint64_t now;
    char note[300];
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    if (!f)
        return -1;
    *state = f;
    f->ctl = calloc(1, sl_ctl_size(RANKS, 1));
    if (!f->ctl || sl_ctl_init(f->ctl, RANKS, 1, NULL))
        return -1;
    f->now = 1000ull * SECOND;
    for (int r = 0; r < RANKS; r++)
        atomic_store(&f->ctl->r[r].stepped, 1);
    sl_supervise_init(&f->s, f->ctl, RANKS, "n1", 5, 10, 0, f->now);
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    free(f->ctl);
    free(f);
    return 0;
}

static void die(struct fixture *f, int rank, int wait_status)
{
    struct sl_death d = {.rank = rank,
                         .pid = 100 + rank,
                         .wait_status = wait_status,
                         .state = atomic_load(&f->ctl->r[rank].state),
                         .asked = f->s.asked != SL_STOP_NONE};

    sl_supervise_deaths(&f->s, &d, 1, f->now);
}

/* Time passes in looks of 100 ms, as in the agent's loop. */
static void wait_ms(struct fixture *f, int ms)
{
    for (int i = 0; i < ms; i += 100) {
        f->now += SECOND / 10;
        sl_supervise_tick(&f->s, f->now, f->note, sizeof f->note);
    }
}

static void done_when_all_have_said_so(void **state)
{
    struct fixture *f = *state;

    for (int r = 0; r < RANKS; r++) {
        assert_false(f->s.over);
        sl_ctl_mark(f->ctl, r, 9, 3, SL_PHASE_DONE);
        die(f, r, EXITED(0));
    }
    assert_true(f->s.over);
    assert_int_equal(f->s.status, 0);
    assert_int_equal(f->s.state, SL_DONE);
}

static void an_exit_with_0_before_the_end_is_a_failure(void **state)
{
    struct fixture *f = *state;

    sl_ctl_mark(f->ctl, 1, 9, 3, SL_PHASE_COMPUTE);
    die(f, 1, EXITED(0));
    assert_int_equal(f->s.status, 1);
    assert_int_equal(f->s.culprit, 1);
    assert_non_null(strstr(f->s.reason, "rank 1 on n1 (pid 101) exited with status 0 before"));
}

static void the_cause_is_blamed_though_its_victim_is_heard_first(void **state)
{
    struct fixture *f = *state;

    die(f, 0, EXITED(SL_RANK_PEER));
    wait_ms(f, 200);
    assert_false(f->s.over);
    die(f, 2, KILLED(SIGSEGV));
    assert_true(f->s.over);
    assert_int_equal(f->s.culprit, 2);
    assert_non_null(strstr(f->s.reason, "killed by signal 11"));
}

static void a_victim_alone_is_named_after_a_while(void **state)
{
    struct fixture *f = *state;

    die(f, 0, EXITED(SL_RANK_PEER));
    wait_ms(f, 500);
    assert_true(f->s.over);
    assert_int_equal(f->s.status, 1);
    assert_int_equal(f->s.culprit, 0);
}

/* Two at once: the one that the ranks themselves have found guilty first. */
static void of_two_failures_found_at_once_the_first_is_blamed(void **state)
{
    struct fixture *f = *state;
    struct sl_death d[2]
        = {{.rank = 0, .wait_status = EXITED(5)}, {.rank = 2, .wait_status = EXITED(2)}};

    sl_ctl_fail(f->ctl, 2);
    sl_supervise_deaths(&f->s, d, 2, f->now);
    assert_int_equal(f->s.culprit, 2);
    assert_int_equal(f->s.status, 2);
}

static void of_several_found_at_once_a_signal_is_the_cause(void **state)
{
    struct fixture *f = *state;
    struct sl_death d[3] = {{.rank = 0, .wait_status = EXITED(5)},
                            {.rank = 1, .wait_status = KILLED(SIGKILL)},
                            {.rank = 2, .wait_status = EXITED(6)}};

    sl_ctl_fail(f->ctl, 2);
    sl_supervise_deaths(&f->s, d, 3, f->now);
    assert_int_equal(f->s.culprit, 1);
    assert_int_equal(f->s.status, 1);
}

static void a_signal_stops_at_a_step_and_gives_128_and_its_number(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(sl_supervise_signal(&f->s, SIGINT, f->now, f->note, sizeof f->note), 1);
    assert_int_equal(atomic_load(&f->ctl->stop), SIGINT);
    for (int r = 0; r < RANKS; r++) {
        sl_ctl_mark(f->ctl, r, 9, 7, SL_PHASE_STOPPED);
        die(f, r, EXITED(SL_RANK_STOPPED));
    }
    assert_int_equal(f->s.status, 130);
    assert_int_equal(f->s.state, SL_STOPPED);
    assert_non_null(strstr(f->s.reason, "stopped after step 7"));
}

static void the_same_signal_in_the_same_moment_counts_once_and_later_ends_at_once(void **state)
{
    struct fixture *f = *state;

    sl_supervise_signal(&f->s, SIGTERM, f->now, f->note, sizeof f->note);
    f->now += SECOND / 100;
    assert_int_equal(sl_supervise_signal(&f->s, SIGTERM, f->now, f->note, sizeof f->note), 0);
    assert_false(f->s.over);
    f->now += SECOND;
    sl_supervise_signal(&f->s, SIGTERM, f->now, f->note, sizeof f->note);
    assert_true(f->s.over);
    assert_int_equal(f->s.status, 143);
    assert_int_equal(f->s.state, SL_CANCELLED);
}

static void stopped_without_being_asked_is_a_failure(void **state)
{
    struct fixture *f = *state;

    sl_ctl_mark(f->ctl, 0, 9, 7, SL_PHASE_STOPPED);
    die(f, 0, EXITED(SL_RANK_STOPPED));
    assert_int_equal(f->s.status, 1);
    assert_int_equal(f->s.state, SL_FAILED);
}

static void grace_ends(void **state)
{
    struct fixture *f = *state;

    f->s.watch.timeout = 0;
    sl_supervise_signal(&f->s, SIGUSR2, f->now, f->note, sizeof f->note);
    wait_ms(f, 9900);
    assert_false(f->s.over);
    wait_ms(f, 300);
    assert_true(f->s.over);
    assert_int_equal(f->s.status, 128 + SIGUSR2);
}

static void a_time_limit_asks_to_stop_and_is_no_success(void **state)
{
    struct fixture *f = *state;

    f->s.time_limit = 2;
    wait_ms(f, 1900);
    assert_int_equal(atomic_load(&f->ctl->stop), 0);
    wait_ms(f, 200);
    assert_int_not_equal(atomic_load(&f->ctl->stop), 0);
    for (int r = 0; r < RANKS; r++)
        die(f, r, EXITED(SL_RANK_STOPPED));
    assert_int_equal(f->s.status, 1);
    assert_int_equal(f->s.state, SL_STOPPED);
}

static void a_hang_is_when_no_rank_moves(void **state)
{
    struct fixture *f = *state;

    sl_ctl_mark(f->ctl, 0, 8, 2, SL_PHASE_WAIT);
    sl_ctl_mark(f->ctl, 1, 7, 2, SL_PHASE_COMPUTE);
    sl_ctl_mark(f->ctl, 2, 8, 2, SL_PHASE_WAIT);
    wait_ms(f, 4500);
    sl_ctl_mark(f->ctl, 1, 7, 2, SL_PHASE_COMPUTE); /* a sign of life of the one behind */
    wait_ms(f, 4500);
    assert_false(f->s.over);
    wait_ms(f, 2000);
    assert_true(f->s.over);
    assert_int_equal(f->s.status, 6);
    assert_int_equal(f->s.culprit, 1);
    assert_non_null(strstr(f->s.reason, "rank 1 is behind"));
}

static void until_the_first_step_is_done_the_limit_is_doubled(void **state)
{
    struct fixture *f = *state;

    atomic_store(&f->ctl->r[1].stepped, 0);
    wait_ms(f, 9500);
    assert_false(f->s.over);
    wait_ms(f, 1000);
    assert_int_equal(f->s.status, 6);
}

static void a_rank_that_names_the_hang_itself_is_believed(void **state)
{
    struct fixture *f = *state;

    snprintf(f->s.told, sizeof f->s.told, "rank 2 has come to another collective");
    sl_ctl_fail(f->ctl, 2);
    die(f, 0, EXITED(SL_RANK_HANG));
    assert_int_equal(f->s.status, 6);
    assert_int_equal(f->s.culprit, 2);
    assert_string_equal(f->s.reason, "hang: rank 2 has come to another collective");
}

static void stop_all(struct fixture *f, int64_t step)
{
    for (int r = 0; r < RANKS; r++) {
        sl_ctl_mark(f->ctl, r, 9, step, SL_PHASE_STOPPED);
        die(f, r, EXITED(SL_RANK_STOPPED));
    }
}

static void a_stop_behind_a_checkpoint_is_75(void **state)
{
    struct fixture *f = *state;

    sl_supervise_signal(&f->s, SIGTERM, f->now, f->note, sizeof f->note);
    f->s.saved = 7;
    stop_all(f, 7);
    assert_int_equal(f->s.status, 75);
    assert_int_equal(f->s.state, SL_STOPPED);
}

/* An older checkpoint would lose steps that were said to be done: 75 promises that none is lost. */
static void a_stop_behind_an_older_checkpoint_is_not(void **state)
{
    struct fixture *f = *state;

    sl_supervise_signal(&f->s, SIGTERM, f->now, f->note, sizeof f->note);
    f->s.saved = 5;
    stop_all(f, 7);
    assert_int_equal(f->s.status, 128 + SIGTERM);
}

/* The agent was stopped for an hour: the ranks were perhaps, too. */
static void our_own_sleep_is_no_hang(void **state)
{
    struct fixture *f = *state;

    wait_ms(f, 1000);
    f->now += 3600ull * SECOND;
    sl_supervise_tick(&f->s, f->now, f->note, sizeof f->note);
    assert_false(f->s.over);
}

static void sigkill_has_a_hint(void **state)
{
    struct fixture *f = *state;

    die(f, 0, KILLED(SIGKILL));
    assert_string_not_equal(f->s.hint, "");
    assert_non_null(strstr(f->s.hint, "memory"));
}

/* A rank that finds a failure has marked the last step that it had finished. */
static void where_a_rank_failed_is_told_in_steps_done(void **state)
{
    struct fixture *f = *state;

    sl_ctl_mark(f->ctl, 0, 9, 3, SL_PHASE_FAILED);
    die(f, 0, EXITED(SL_RANK_DIVERGED));
    assert_string_equal(
        f->s.reason, "rank 0 on n1 (pid 100) stopped: loss or gradient is not finite after step 3");
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(done_when_all_have_said_so),
        CASE(an_exit_with_0_before_the_end_is_a_failure),
        CASE(the_cause_is_blamed_though_its_victim_is_heard_first),
        CASE(a_victim_alone_is_named_after_a_while),
        CASE(of_two_failures_found_at_once_the_first_is_blamed),
        CASE(of_several_found_at_once_a_signal_is_the_cause),
        CASE(a_signal_stops_at_a_step_and_gives_128_and_its_number),
        CASE(the_same_signal_in_the_same_moment_counts_once_and_later_ends_at_once),
        CASE(stopped_without_being_asked_is_a_failure),
        CASE(grace_ends),
        CASE(a_time_limit_asks_to_stop_and_is_no_success),
        CASE(a_hang_is_when_no_rank_moves),
        CASE(until_the_first_step_is_done_the_limit_is_doubled),
        CASE(a_rank_that_names_the_hang_itself_is_believed),
        CASE(a_stop_behind_a_checkpoint_is_75),
        CASE(a_stop_behind_an_older_checkpoint_is_not),
        CASE(our_own_sleep_is_no_hang),
        CASE(sigkill_has_a_hint),
        CASE(where_a_rank_failed_is_told_in_steps_done),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
