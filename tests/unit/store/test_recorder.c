/* The recorder: rows reach the disk within a second, whatever happens to it or to the database. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "common/clock.h"
#include "launcher/recorder.h"
#include "tests/unit/store/fixture.h"

static struct sl_report step_of(int rank, int64_t step)
{
    struct sl_report r
        = {.type = SL_REPORT_STEP, .rank = rank, .step = step, .time = sl_clock_real()};

    r.u.step_.units = 10;
    strcpy(r.u.step_.unit, "tokens");
    r.u.step_.step_ms = 5;
    r.u.step_.loss = 1.0 / (double)step;
    return r;
}

static struct sl_recorder *open_recorder(struct fixture *f, int64_t id, int64_t queue)
{
    struct sl_recorder_conf c = {.db = f->path, .job = id, .from = &f->me, .queue = queue};
    struct sl_err e = {0};
    struct sl_recorder *r = sl_recorder_open(&c, &e);

    if (!r)
        fail_msg("%s", e.msg);
    return r;
}

static void nap(int ms)
{
    sl_clock_sleep_until(sl_clock_ns() + (int64_t)ms * 1000000);
}

/* Ask until the answer is `want` or ten seconds are over. */
static void comes(struct fixture *f, const char *sql, double want)
{
    for (int i = 0; i < 500 && ask(f, sql) != want; i++)
        nap(20);
    assert_float_equal(ask(f, sql), want, 0);
}

static void everything_put_is_in_the_views_after_close(void **state)
{
    struct fixture *f = *state;
    int64_t id = new_job(f, "all");
    struct sl_recorder *r = open_recorder(f, id, 0);
    struct sl_report rep = {.type = SL_REPORT_HELLO, .rank = 1, .time = 1};

    assert_int_equal(sl_recorder_attempt(r), 1);
    rep.u.hello.pid = 77;
    strcpy(rep.u.hello.host, "h");
    strcpy(rep.u.hello.device, "cpu");
    assert_int_equal(sl_recorder_put(r, &rep), 0);
    sl_recorder_state(r, SL_RUNNING, "");
    for (int64_t s = 1; s <= 1000; s++)
        for (int rank = 0; rank < 2; rank++) {
            rep = step_of(rank, s);
            assert_int_equal(sl_recorder_put(r, &rep), 0);
        }
    rep = (struct sl_report){.type = SL_REPORT_MEMORY, .rank = 1};
    strcpy(rep.u.memory.category, "process");
    rep.u.memory.bytes = 5;
    rep.u.memory.peak_bytes = 6;
    assert_int_equal(sl_recorder_put(r, &rep), 0);
    rep = (struct sl_report){.type = SL_REPORT_METRIC, .step = 1};
    strcpy(rep.u.metric.name, "lr");
    rep.u.metric.value = 0.5;
    assert_int_equal(sl_recorder_put(r, &rep), 0);
    sl_recorder_event(r, -1, "note", "%s", "hello <script>alert(1)</script>");
    sl_recorder_rank_end(r, 1, 137);
    ok(sl_recorder_close(r, SL_DONE, 0, "", err));
    assert_float_equal(ask(f, "SELECT count(*) FROM rank_throughput"), 2000, 0);
    assert_float_equal(ask(f, "SELECT sum(loss) FROM rank_throughput WHERE step <= 2"), 3, 0);
    assert_float_equal(ask(f, "SELECT peak_bytes FROM rank_memory WHERE category = 'process'"), 6,
                       0);
    assert_float_equal(ask(f, "SELECT value FROM metrics WHERE name = 'lr'"), 0.5, 0);
    assert_float_equal(ask(f, "SELECT count(*) FROM events WHERE message LIKE '%<script>%'"), 1, 0);
    assert_float_equal(ask(f, "SELECT exit_status FROM rank WHERE rank = 1 AND pid = 77"), 137, 0);
    assert_float_equal(ask(f, "SELECT count(*) FROM jobs WHERE state = 'done' AND exit_status = 0"),
                       1, 0);
}

static void rows_are_seen_while_the_run_goes_on(void **state)
{
    struct fixture *f = *state;
    int64_t id = new_job(f, "live");
    struct sl_recorder *r = open_recorder(f, id, 0);
    struct sl_report rep = step_of(0, 1);

    sl_recorder_put(r, &rep);
    sl_recorder_state(r, SL_RUNNING, "");
    comes(f, "SELECT count(*) FROM rank_throughput", 1);
    comes(f, "SELECT count(*) FROM jobs WHERE state = 'running'", 1);
    rep = step_of(0, 2);
    sl_recorder_put(r, &rep);
    comes(f, "SELECT count(*) FROM rank_throughput", 2);
    sl_recorder_drop(r);
    assert_float_equal(ask(f, "SELECT count(*) FROM jobs WHERE state = 'running'"), 1, 0);
}

static void reports_that_are_no_reports_are_refused(void **state)
{
    struct fixture *f = *state;
    struct sl_recorder *r = open_recorder(f, new_job(f, "bad"), 0);
    struct sl_recorder_count c;
    struct sl_report rep = step_of(0, 1);

    rep.type = 99;
    assert_int_equal(sl_recorder_put(r, &rep), -1);
    rep = step_of(-1, 1);
    assert_int_equal(sl_recorder_put(r, &rep), -1);
    rep = step_of(SL_RECORDER_RANKS, 1);
    assert_int_equal(sl_recorder_put(r, &rep), -1);
    rep = (struct sl_report){.type = SL_REPORT_EVENT};
    memset(rep.u.event.message, 'x', sizeof rep.u.event.message); /* no NUL */
    memset(rep.u.event.kind, 'k', sizeof rep.u.event.kind);
    assert_int_equal(sl_recorder_put(r, &rep), 0);
    sl_recorder_count(r, &c);
    assert_int_equal(c.dropped, 3);
    ok(sl_recorder_close(r, SL_FAILED, 1, "why", err));
    assert_float_equal(ask(f, "SELECT length(message) FROM events WHERE kind LIKE 'kk%'"), 399, 0);
    assert_float_equal(ask(f, "SELECT count(*) FROM events WHERE kind LIKE 'kk%'"), 1, 0);
}

/*
 * While somebody else holds the write lock for longer than the timeout, callers do not wait,
 * samples are thinned by steps, the event and the state survive, and one notice is given.
 */
static void a_locked_database_costs_samples_only(void **state)
{
    struct fixture *f = *state;
    struct sl_recorder *r = open_recorder(f, new_job(f, "locked"), 64);
    struct sl_recorder_count c;
    char notice[400] = "", again[400];
    sqlite3 *h;

    assert_int_equal(sqlite3_open(f->path, &h), SQLITE_OK);
    assert_int_equal(sqlite3_exec(h, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    sl_recorder_event(r, -1, "note", "before");
    nap(500); /* now the thread waits for the lock with this one event */
    for (int64_t s = 1; s <= 400; s++) {
        struct sl_report rep = step_of(0, s);

        sl_recorder_put(r, &rep);
    }
    sl_recorder_event(r, -1, "note", "amid");
    sl_recorder_state(r, SL_RUNNING, "");
    for (int i = 0; i < 500 && !sl_recorder_notice(r, notice, sizeof notice); i++)
        nap(20);
    assert_non_null(strstr(notice, "locked"));
    assert_int_equal(sl_recorder_notice(r, again, sizeof again), 0);
    sl_recorder_count(r, &c);
    assert_in_range(c.dropped, 300, 400);
    assert_in_range(c.waiting, 1, 2 * 64);
    assert_int_equal(sqlite3_exec(h, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(h);
    comes(f, "SELECT count(*) FROM events WHERE kind = 'recorder'", 1);
    ok(sl_recorder_close(r, SL_DONE, 0, "", err));
    assert_float_equal(ask(f, "SELECT count(*) FROM events WHERE kind = 'note'"), 2, 0);
    assert_float_equal(ask(f, "SELECT count(*) FROM jobs WHERE state = 'done'"), 1, 0);
    /* what is left is spread over all the steps: every 16th, not the first or the last ones */
    assert_true(ask(f, "SELECT max(step) FROM rank_throughput") > 350);
    assert_true(ask(f, "SELECT min(step) FROM rank_throughput") < 50);
    assert_in_range((int)ask(f, "SELECT count(*) FROM rank_throughput"), 12, 64);
}

/* A disk that takes no more bytes, made with the limit on the size of files. */
static void a_full_disk_does_not_stop_the_run(void **state)
{
    struct fixture *f = *state;
    struct sl_recorder *r = open_recorder(f, new_job(f, "full"), 256);
    struct rlimit old, tight;
    char notice[400] = "";

    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    tight = old;
    tight.rlim_cur = 4096;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    for (int64_t s = 1; s <= 1000; s++) {
        struct sl_report rep = step_of(0, s);

        sl_recorder_put(r, &rep);
    }
    sl_recorder_event(r, -1, "note", "amid");
    for (int i = 0; i < 500 && !sl_recorder_notice(r, notice, sizeof notice); i++)
        nap(20);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_non_null(strstr(notice, "cannot record this run"));
    ok(sl_recorder_close(r, SL_DONE, 0, "", err));
    assert_float_equal(ask(f, "SELECT count(*) FROM events WHERE message = 'amid'"), 1, 0);
    assert_true(ask(f, "SELECT count(*) FROM rank_throughput") > 100);
    assert_float_equal(ask(f, "SELECT count(*) FROM jobs WHERE state = 'done'"), 1, 0);
}

static void a_close_that_cannot_write_says_so(void **state)
{
    struct fixture *f = *state;
    struct sl_recorder *r = open_recorder(f, new_job(f, "stuck"), 64);
    struct sl_err e = {0};
    sqlite3 *h;

    assert_int_equal(sqlite3_open(f->path, &h), SQLITE_OK);
    assert_int_equal(sqlite3_exec(h, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    sl_recorder_event(r, -1, "note", "never");
    assert_int_equal(sl_recorder_close(r, SL_DONE, 0, "", &e), -1);
    assert_int_equal(e.code, SL_BUSY);
    sqlite3_close(h);
}

static int run_forever(struct fixture *f, int64_t id, int fd)
{
    struct sl_recorder_conf c = {.db = f->path, .job = id};
    struct sl_recorder *r = sl_recorder_open(&c, NULL);

    if (!r)
        return 1;
    sl_recorder_state(r, SL_RUNNING, "");
    for (int64_t step = 1;; step++) {
        struct sl_report rep = step_of((int)(step % 4), (step + 3) / 4);

        sl_recorder_put(r, &rep);
        if (write(fd, &rep.time, sizeof rep.time) != sizeof rep.time)
            return 1;
        nap(1);
    }
}

/*
 * Killed at five different moments: the file opens, is whole, and lacks at most the last second
 * (four times of five at least: a starved machine may hold a commit back once).
 */
static void kill_minus_nine_loses_at_most_a_second(void **state)
{
    struct fixture *f = *state;
    int within = 0;

    for (int turn = 0; turn < 5; turn++) {
        int64_t id = new_job(f, "killed");
        double last = 0, told;
        int fd[2], status;
        char sql[128];
        pid_t pid;

        assert_int_equal(pipe(fd), 0);
        pid = fork();
        if (pid == 0) {
            close(fd[0]);
            _exit(run_forever(f, id, fd[1]));
        }
        close(fd[1]);
        for (double begin = 0; read(fd[0], &told, sizeof told) == sizeof told; last = told) {
            if (begin == 0)
                begin = told;
            if (told - begin > 0.65 + 0.11 * turn)
                kill(pid, SIGKILL);
        }
        close(fd[0]);
        waitpid(pid, &status, 0);
        assert_true(WIFSIGNALED(status));
        snprintf(sql, sizeof sql, "SELECT max(time) FROM rank_throughput WHERE job = %d", (int)id);
        assert_true(ask(f, sql) > 0);
        within += last - ask(f, sql) < 1.0;
        assert_float_equal(ask(f, "SELECT integrity_check = 'ok' FROM pragma_integrity_check"), 1,
                           0);
    }
    assert_in_range(within, 4, 5);
    ok(sl_jobs_sweep(f->st, err));
    assert_float_equal(ask(f, "SELECT count(*) FROM jobs WHERE state = 'lost'"), 5, 0);
}

static void *read_on(void *arg)
{
    struct fixture *f = arg;
    struct sl_store *st = sl_store_open(f->path, SL_STORE_READ, NULL);
    intptr_t bad = !st;
    int64_t last = 0;

    for (int i = 0; i < 300 && !bad; i++) {
        struct sl_series_query q = {.job = 1, .attempt = 1, .metric = "loss"};
        struct sl_progress p;
        struct sl_series s;

        bad = sl_read_progress(st, 1, 1, &p, NULL) || p.step < last
              || sl_series_read(st, &q, &s, NULL);
        if (bad)
            break;
        bad = s.n && s.v[s.n - 1].step < p.step - s.width; /* never older than what was seen */
        last = p.step;
        sl_series_fini(&s);
        nap(2);
    }
    sl_store_close(st);
    return (void *)bad;
}

static void readers_see_whole_commits_while_the_writer_writes(void **state)
{
    struct fixture *f = *state;
    int64_t id = new_job(f, "read");
    struct sl_recorder *r = open_recorder(f, id, 0);
    pthread_t t[4];
    void *bad;

    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&t[i], NULL, read_on, f), 0);
    for (int64_t s = 1; s <= 3000; s++) {
        struct sl_report rep = step_of(0, s);

        assert_int_equal(sl_recorder_put(r, &rep), 0);
        if (s % 5 == 0)
            nap(1);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(t[i], &bad);
        assert_null(bad);
    }
    ok(sl_recorder_close(r, SL_DONE, 0, "", err));
    assert_float_equal(ask(f, "SELECT count(*) FROM rank_throughput"), 3000, 0);
}

static void a_job_taken_from_us_is_told(void **state)
{
    struct fixture *f = *state;
    int64_t id = new_job(f, "taken");
    struct sl_recorder *r = open_recorder(f, id, 0);
    struct sl_lease other = f->me;
    struct sl_err e = {0};
    char notice[400] = "";
    int attempt;

    other.pid = 1;
    ok(sl_jobs_begin(f->st, id, &other, NULL, &attempt, err));
    sl_recorder_state(r, SL_RUNNING, "");
    for (int i = 0; i < 500 && !sl_recorder_notice(r, notice, sizeof notice); i++)
        nap(20);
    assert_non_null(strstr(notice, "no longer held"));
    assert_int_equal(sl_recorder_close(r, SL_DONE, 0, "", &e), -1);
    assert_float_equal(ask(f, "SELECT count(*) FROM jobs WHERE state = 'starting'"), 1, 0);
}

/* Two attempts through one queue; nothing of one lands in the other, also when the disk is late. */
static void put_two_attempts(struct sl_recorder *r)
{
    for (int64_t s = 1; s <= 5; s++) {
        struct sl_report rep = step_of(0, s);

        assert_int_equal(sl_recorder_put(r, &rep), 0);
    }
    sl_recorder_state(r, SL_RUNNING, "of the first");
    sl_recorder_rank_end(r, 1, 137);
    assert_int_equal(sl_recorder_next(r, 1, "rank 1 was killed"), 0);
    assert_int_equal(sl_recorder_attempt(r), 2);
    sl_recorder_resumed(r, 2, "ckpt/step-2");
    for (int64_t s = 3; s <= 8; s++) {
        struct sl_report rep = step_of(0, s);

        assert_int_equal(sl_recorder_put(r, &rep), 0);
    }
    sl_recorder_state(r, SL_RUNNING, "of the second");
}

static void check_attempts(struct fixture *f)
{
    const char *const ones[] = {
        "SELECT attempts = 2 AND state = 'done' FROM jobs",
        "SELECT group_concat(step) = '1,2,3,4,5' FROM sample WHERE attempt = 1",
        "SELECT group_concat(step) = '3,4,5,6,7,8' FROM sample WHERE attempt = 2",
        "SELECT state = 'failed' AND exit_status = 1 AND reason = 'rank 1 was killed'"
        " AND ended_at NOT NULL AND resumed_step IS NULL FROM attempt WHERE attempt = 1",
        "SELECT state = 'done' AND exit_status = 0 AND resumed_step = 2"
        " AND resumed_from = 'ckpt/step-2' FROM attempt WHERE attempt = 2",
        "SELECT exit_status = 137 FROM rank WHERE attempt = 1 AND rank = 1",
        "SELECT count(*) = 1 FROM events WHERE attempt = 2 AND kind = 'starting'"
        " AND message = 'attempt 2, after: rank 1 was killed'",
        "SELECT count(*) = 1 FROM events WHERE attempt = 2 AND message = 'of the second'",
        "SELECT count(*) = 0 FROM events WHERE attempt = 2 AND message = 'of the first'",
        /* the roll-up of losses of each attempt alone: 5 and 6 of them */
        "SELECT sum(count) = 5 FROM rollup WHERE attempt = 1 AND name = 5 AND width = 8",
        "SELECT sum(count) = 6 FROM rollup WHERE attempt = 2 AND name = 5 AND width = 8",
    };

    for (size_t i = 0; i < sizeof ones / sizeof *ones; i++)
        if (ask(f, ones[i]) != 1)
            fail_msg("%s", ones[i]);
}

static void a_next_attempt_has_its_own_rows(void **state)
{
    struct fixture *f = *state;
    struct sl_recorder *r = open_recorder(f, new_job(f, "two"), 0);

    put_two_attempts(r);
    ok(sl_recorder_close(r, SL_DONE, 0, "", err));
    check_attempts(f);
}

static void a_next_attempt_waits_for_a_locked_database(void **state)
{
    struct fixture *f = *state;
    struct sl_recorder *r = open_recorder(f, new_job(f, "late"), 0);
    char notice[400] = "";
    sqlite3 *h;

    assert_int_equal(sqlite3_open(f->path, &h), SQLITE_OK);
    assert_int_equal(sqlite3_exec(h, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    put_two_attempts(r);
    for (int i = 0; i < 500 && !sl_recorder_notice(r, notice, sizeof notice); i++)
        nap(20);
    assert_non_null(strstr(notice, "locked"));
    assert_int_equal(sqlite3_exec(h, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(h);
    ok(sl_recorder_close(r, SL_DONE, 0, "", err));
    check_attempts(f);
}

/* A close that comes while a batch is being written, with more of them waiting, loses nothing. */
static void a_close_amid_writing_loses_nothing(void **state)
{
    struct fixture *f = *state;

    for (int turn = 0; turn < 5; turn++) {
        struct sl_recorder *r = open_recorder(f, new_job(f, "amid"), 0);
        double n;

        for (int64_t s = 1; s <= 7000; s++) { /* the thread begins when the queue is half full */
            struct sl_report rep = step_of(0, s);

            assert_int_equal(sl_recorder_put(r, &rep), 0);
            if (s == 4096)
                nap(turn);
        }
        ok(sl_recorder_close(r, SL_DONE, 0, "", err));
        n = ask(f, "SELECT count(*) FROM sample WHERE job = (SELECT max(id) FROM job)");
        assert_float_equal(n, 7000, 0);
    }
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(everything_put_is_in_the_views_after_close),
        T(rows_are_seen_while_the_run_goes_on),
        T(reports_that_are_no_reports_are_refused),
        T(a_locked_database_costs_samples_only),
        T(a_full_disk_does_not_stop_the_run),
        T(a_close_that_cannot_write_says_so),
        T(kill_minus_nine_loses_at_most_a_second),
        T(readers_see_whole_commits_while_the_writer_writes),
        T(a_job_taken_from_us_is_told),
        T(a_close_amid_writing_loses_nothing),
        T(a_next_attempt_has_its_own_rows),
        T(a_next_attempt_waits_for_a_locked_database),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
