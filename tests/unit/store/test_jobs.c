/* Jobs: views as promised, states by compare-and-swap of the lease's holder, dead holders. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/unit/store/fixture.h"

/* DESIGN.md, "Store": people's SQL depends on these names and on their order. */
static void the_five_views_have_the_promised_columns(void **state)
{
    static const char *const want[][2] = {
        {"jobs", "id,name,state,submitted_at,started_at,ended_at,exit_status,reason,attempts"},
        {"rank_memory", "job,attempt,rank,step,category,bytes,peak_bytes"},
        {"rank_throughput", "job,attempt,rank,step,time,units,unit,units_per_second,step_ms,"
                            "comm_ms,data_ms,loss"},
        {"metrics", "job,attempt,step,time,name,value"},
        {"events", "job,attempt,rank,time,kind,message"},
    };
    struct fixture *f = *state;
    char sql[128], got[256];
    sqlite3 *h;
    sqlite3_stmt *s;

    assert_int_equal(sqlite3_open(f->path, &h), SQLITE_OK);
    for (int i = 0; i < 5; i++) {
        snprintf(sql, sizeof sql, "SELECT * FROM %s", want[i][0]);
        assert_int_equal(sqlite3_prepare_v2(h, sql, -1, &s, NULL), SQLITE_OK);
        got[0] = '\0';
        for (int k = 0; k < sqlite3_column_count(s); k++) {
            if (k)
                strcat(got, ",");
            strcat(got, sqlite3_column_name(s, k));
        }
        assert_string_equal(got, want[i][1]);
        sqlite3_finalize(s);
    }
    sqlite3_close(h);
}

static void the_views_show_what_was_written(void **state)
{
    struct fixture *f = *state;
    int64_t id = begun_job(f, "lm");
    struct sl_writer *w = sl_writer_create(f->st, id, 1, NULL);
    struct sl_sample s = {.rank = 1,
                          .step = 3,
                          .time = 100.5,
                          .units = 512,
                          .unit = "tokens",
                          .step_ms = 250,
                          .comm_ms = 50,
                          .data_ms = 1,
                          .loss = 2.5};

    assert_non_null(w);
    ok(sl_writer_begin(w, err));
    ok(sl_writer_rank(w, 1, "here", 42, "cpu", err));
    ok(sl_writer_sample(w, &s, err));
    s.step = 4;
    s.loss = NAN;
    ok(sl_writer_sample(w, &s, err));
    ok(sl_writer_memory(w, 1, 0, "parameters", 1000, 1001, err));
    ok(sl_writer_memory(w, 1, 4, "parameters", 900, 1001, err));
    ok(sl_writer_metric(w, 3, 100.5, "valid.loss", 1.75, err));
    ok(sl_writer_event(w, -1, 99, "start", "all ranks are up", err));
    ok(sl_writer_event(w, 1, 99, "error", "it's \"quoted\"; DROP TABLE job", err));
    ok(sl_writer_commit(w, err));
    sl_writer_destroy(w);
    assert_float_equal(ask(f, "SELECT units_per_second FROM rank_throughput WHERE step = 3"), 2048,
                       0);
    assert_float_equal(ask(f, "SELECT count(*) FROM rank_throughput WHERE unit = 'tokens'"), 2, 0);
    assert_float_equal(ask(f, "SELECT loss IS NULL FROM rank_throughput WHERE step = 4"), 1, 0);
    assert_float_equal(ask(f, "SELECT bytes FROM rank_memory WHERE category = 'parameters'"
                              " ORDER BY step DESC LIMIT 1"),
                       900, 0);
    assert_float_equal(ask(f, "SELECT value FROM metrics WHERE name = 'valid.loss'"), 1.75, 0);
    assert_float_equal(ask(f, "SELECT count(*) FROM events WHERE rank IS NULL AND kind = 'start'"),
                       1, 0);
    assert_float_equal(ask(f, "SELECT count(*) FROM events WHERE message LIKE '%DROP TABLE job'"),
                       1, 0);
    assert_float_equal(ask(f, "SELECT count(*) FROM jobs WHERE name = 'lm' AND attempts = 1"), 1,
                       0);
}

static void only_the_holder_moves_a_job(void **state)
{
    struct fixture *f = *state;
    int64_t id = begun_job(f, "mine");
    struct sl_lease other = f->me;
    struct sl_err e = {0};

    ok(sl_jobs_move(f->st, id, &f->me, SL_RUNNING, "", err));
    other.start_time++; /* a later process with the same pid */
    assert_int_equal(sl_jobs_move(f->st, id, &other, SL_STOPPING, "", &e), -1);
    assert_int_equal(e.code, SL_USAGE);
    assert_int_equal(sl_jobs_end(f->st, id, &other, SL_DONE, 0, "", &e), -1);
    assert_float_equal(ask(f, "SELECT count(*) FROM jobs WHERE state = 'running'"), 1, 0);
    ok(sl_jobs_end(f->st, id, &f->me, SL_FAILED, 1, "rank 2 died", err));
    assert_float_equal(ask(f, "SELECT count(*) FROM jobs WHERE state = 'failed' AND exit_status = 1"
                              " AND ended_at >= started_at AND reason = 'rank 2 died'"),
                       1, 0);
    assert_int_equal(sl_jobs_move(f->st, id, &f->me, SL_RUNNING, "", &e), -1);
    /* and what happened can be read: starting, running, failed, nothing of the other one */
    assert_float_equal(ask(f, "SELECT group_concat(kind) = 'starting,running,failed' FROM events"),
                       1, 0);
}

static void a_running_job_is_not_taken_from_a_living_holder(void **state)
{
    struct fixture *f = *state;
    int64_t id = begun_job(f, "mine");
    struct sl_lease other = f->me;
    struct sl_err e = {0};
    int attempt = 0;

    other.pid = 1;
    assert_int_equal(sl_jobs_begin(f->st, id, &f->me, &other, &attempt, &e), -1);
    assert_int_equal(e.code, SL_BUSY);
    assert_int_equal(sl_jobs_begin(f->st, id + 1, &f->me, NULL, &attempt, &e), -1);
    assert_int_equal(e.code, SL_USAGE);
    ok(sl_jobs_begin(f->st, id, &f->me, &f->me, &attempt, err)); /* handed over: attempt 2 */
    assert_int_equal(attempt, 2);
    assert_float_equal(ask(f, "SELECT state = 'lost' FROM attempt WHERE attempt = 1"), 1, 0);
    ok(sl_jobs_end(f->st, id, &f->me, SL_DONE, 0, "", err));
    assert_int_equal(sl_jobs_begin(f->st, id, &f->me, NULL, &attempt, &e), -1);
    assert_int_equal(e.code, SL_USAGE);
}

static int state_of(void *u, const struct sl_job_row *row)
{
    *(enum sl_state *)u = row->state;
    return 0;
}

/* A scheduler has started it again: the holder, here this very process, counts as dead. */
static void a_live_job_can_be_declared_lost_once_and_taken_up_again(void **state)
{
    struct fixture *f = *state;
    struct sl_new_job job = {.name = "again"};
    enum sl_state seen = SL_STATES;
    int64_t id;

    ok(sl_jobs_create(f->st, &job, &id, err));
    assert_int_equal(sl_jobs_again(f->st, id, &job, NULL), -1);
    assert_int_equal(sl_jobs_lose(f->st, id, "started again", NULL), 1);
    assert_int_equal(sl_jobs_lose(f->st, id, "started again", NULL), 0);
    assert_int_equal(sl_jobs_lose(f->st, id + 1, "started again", NULL), 0);
    assert_int_equal(sl_read_job(f->st, id, state_of, &seen, NULL), 1);
    assert_int_equal(seen, SL_LOST);
    assert_int_equal(sl_jobs_again(f->st, id, &job, NULL), 1);
}

/* The child makes and runs a job, then is killed: shown as lost at once, made lost by a sweep. */
static void a_job_whose_holder_died_is_lost(void **state)
{
    struct fixture *f = *state;
    enum sl_state seen = SL_STATES;
    int fd[2], status;
    char c;
    pid_t pid;

    assert_int_equal(pipe(fd), 0);
    pid = fork();
    if (pid == 0) {
        struct sl_store *st = sl_store_open(f->path, SL_STORE_WRITE, NULL);
        struct sl_new_job job = {.name = "orphan"};
        struct sl_lease me;
        int64_t id;
        int attempt;

        if (!st || sl_lease_self(&me, NULL) || sl_jobs_create(st, &job, &id, NULL)
            || sl_jobs_begin(st, id, &me, NULL, &attempt, NULL)
            || sl_jobs_move(st, id, &me, SL_RUNNING, "", NULL) || write(fd[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(fd[1]);
    assert_int_equal(read(fd[0], &c, 1), 1);
    close(fd[0]);
    ok(sl_jobs_sweep(f->st, err));
    assert_int_equal(sl_read_job(f->st, 1, state_of, &seen, NULL), 1);
    assert_int_equal(seen, SL_RUNNING);
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    assert_int_equal(sl_read_job(f->st, 1, state_of, &seen, NULL), 1);
    assert_int_equal(seen, SL_LOST);
    assert_float_equal(ask(f, "SELECT count(*) FROM jobs WHERE state = 'running'"), 1, 0);
    assert_int_equal(sl_jobs_sweep(f->st, NULL), 1);
    assert_int_equal(sl_jobs_sweep(f->st, NULL), 0);
    assert_float_equal(ask(f, "SELECT count(*) FROM jobs WHERE state = 'lost'"), 1, 0);
    assert_float_equal(ask(f, "SELECT count(*) FROM events WHERE kind = 'lost'"), 1, 0);
}

static void holders_on_other_hosts_and_before_a_reboot_are_told_apart(void **state)
{
    struct fixture *f = *state;
    struct sl_lease l = f->me;

    assert_int_equal(sl_lease_alive(&l), 1);
    l.start_time++;
    assert_int_equal(sl_lease_alive(&l), 0);
    l = f->me;
    l.boot[0] ^= 1;
    assert_int_equal(sl_lease_alive(&l), 0);
    l = f->me;
    strcpy(l.host, "another-host");
    assert_int_equal(sl_lease_alive(&l), -1);
}

static void the_run_folder_and_the_database_are_private(void **state)
{
    struct fixture *f = *state;
    char dir[256];
    struct stat st;
    int64_t id = new_job(f, "x");

    ok(sl_jobs_dir(f->st, id, dir, sizeof dir, err));
    assert_int_equal(stat(dir, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    assert_int_equal(stat(f->path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(sl_jobs_dir(f->st, id, dir, 10, NULL), -1);
}

static void a_newer_or_foreign_database_is_refused(void **state)
{
    struct fixture *f = *state;
    struct sl_err e = {0};
    char path[128];
    sqlite3 *h;
    FILE *fp;

    assert_int_equal(sqlite3_open(f->path, &h), SQLITE_OK);
    assert_int_equal(sqlite3_exec(h, "PRAGMA user_version = 99", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(h);
    assert_null(sl_store_open(f->path, SL_STORE_READ, &e));
    assert_int_equal(e.code, SL_USAGE);
    assert_non_null(strstr(e.msg, "version 99"));
    assert_null(sl_store_open(f->path, SL_STORE_WRITE, &e));
    assert_int_equal(e.code, SL_USAGE);

    snprintf(path, sizeof path, "%s/foreign.db", f->dir);
    assert_int_equal(sqlite3_open(path, &h), SQLITE_OK);
    assert_int_equal(sqlite3_exec(h, "CREATE TABLE t (x)", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(h);
    assert_null(sl_store_open(path, SL_STORE_WRITE, &e));
    assert_int_equal(e.code, SL_USAGE);
    assert_non_null(strstr(e.msg, "another program"));

    snprintf(path, sizeof path, "%s/text.db", f->dir);
    fp = fopen(path, "w");
    fprintf(fp, "this is no database, only a text that is long enough to be looked at by SQLite; "
                "it wants at least a hundred bytes of header before it says so\n");
    fclose(fp);
    assert_null(sl_store_open(path, SL_STORE_WRITE, &e));
    assert_int_equal(e.code, SL_USAGE);

    snprintf(path, sizeof path, "%s/none.db", f->dir);
    assert_null(sl_store_open(path, SL_STORE_READ, &e));
    assert_int_equal(e.code, SL_USAGE);
    assert_int_equal(access(path, F_OK), -1);
}

/* A database as the first version made it: its attempts are kept, and can be told how they went on. */
static void a_database_of_version_1_is_brought_up_to_date(void **state)
{
    struct fixture *f = *state;
    sqlite3 *h;

    begun_job(f, "old");
    sl_store_close(f->st);
    f->st = NULL;
    assert_int_equal(sqlite3_open(f->path, &h), SQLITE_OK);
    assert_int_equal(sqlite3_exec(h,
                                  "ALTER TABLE attempt DROP COLUMN resumed_step;"
                                  "ALTER TABLE attempt DROP COLUMN resumed_from;"
                                  "PRAGMA user_version = 1",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(h);
    f->st = sl_store_open(f->path, SL_STORE_WRITE, NULL);
    assert_non_null(f->st);
    assert_float_equal(ask(f, "SELECT count(*) FROM attempt WHERE resumed_step IS NULL"), 1, 0);
}

static void only_the_holder_begins_a_next_attempt(void **state)
{
    struct fixture *f = *state;
    int64_t id = begun_job(f, "next");
    struct sl_lease other = f->me;
    struct sl_err e = {0};
    int attempt = 0;

    other.pid = 1;
    assert_int_equal(sl_jobs_next(f->st, id, &other, 1, "x", &attempt, &e), -1);
    assert_int_equal(e.code, SL_USAGE);
    assert_float_equal(ask(f, "SELECT count(*) FROM attempt"), 1, 0);
    ok(sl_jobs_next(f->st, id, &f->me, 1, "x", &attempt, err));
    assert_int_equal(attempt, 2);
    ok(sl_jobs_end(f->st, id, &f->me, SL_FAILED, 1, "y", err));
    assert_float_equal(ask(f, "SELECT count(*) FROM attempt WHERE state = 'failed'"), 2, 0);
    assert_int_equal(sl_jobs_next(f->st, id, &f->me, 1, "x", &attempt, &e), -1);
}

static void a_reader_cannot_write(void **state)
{
    struct fixture *f = *state;
    struct sl_store *st = sl_store_open(f->path, SL_STORE_READ, NULL);
    struct sl_new_job job = {.name = "x"};
    struct sl_err e = {0};
    int64_t id = 0;

    assert_non_null(st);
    assert_int_equal(sl_jobs_create(st, &job, &id, &e), -1);
    assert_int_equal(e.code, SL_SYSTEM);
    sl_store_close(st);
}

/* Four processes make jobs at once: nobody is refused as busy, every id is given once. */
static void many_processes_make_jobs_at_once(void **state)
{
    struct fixture *f = *state;
    pid_t pid[4];

    for (int i = 0; i < 4; i++)
        if ((pid[i] = fork()) == 0) {
            struct sl_store *st = sl_store_open(f->path, SL_STORE_WRITE, NULL);
            struct sl_new_job job = {.name = "crowd"};
            int64_t id;
            int bad = !st;

            for (int k = 0; k < 25 && !bad; k++)
                bad = sl_jobs_create(st, &job, &id, NULL);
            _exit(bad);
        }
    for (int i = 0; i < 4; i++) {
        int status = -1;

        waitpid(pid[i], &status, 0);
        assert_int_equal(status, 0);
    }
    assert_float_equal(ask(f, "SELECT count(DISTINCT id) FROM jobs"), 100, 0);
    assert_float_equal(ask(f, "SELECT max(id) FROM jobs"), 100, 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(the_five_views_have_the_promised_columns),
        T(the_views_show_what_was_written),
        T(only_the_holder_moves_a_job),
        T(a_running_job_is_not_taken_from_a_living_holder),
        T(a_live_job_can_be_declared_lost_once_and_taken_up_again),
        T(a_job_whose_holder_died_is_lost),
        T(holders_on_other_hosts_and_before_a_reboot_are_told_apart),
        T(the_run_folder_and_the_database_are_private),
        T(a_newer_or_foreign_database_is_refused),
        T(a_database_of_version_1_is_brought_up_to_date),
        T(only_the_holder_begins_a_next_attempt),
        T(a_reader_cannot_write),
        T(many_processes_make_jobs_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
