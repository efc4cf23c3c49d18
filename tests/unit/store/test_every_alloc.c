/* Whatever allocation of the store fails, SQLite's own included, its rows are whole or absent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/clock.h"
#include "launcher/recorder.h"
#include "store/internal.h"
#include "tests/lib/every_alloc.h"
#include "tests/unit/store/fixture.h"

enum { STEPS = 20 };

struct scene {
    struct fixture *f;
    int64_t id;  /* of a job that this process holds */
    int64_t had; /* jobs before the act */
};

/* Open, make a job, begin, move, end, close. */
static int a_life(void *u, struct sl_err *err)
{
    struct scene *c = u;
    struct sl_new_job job
        = {.name = "life", .text = "name = \"x\"\n", .ranks = 2, .steps = 100, .strategy = "zero2"};
    struct sl_store *st = sl_store_open(c->f->path, SL_STORE_WRITE, err);
    int attempt, rc = -1;
    int64_t id;

    if (!st)
        return -1;
    if (!sl_jobs_create(st, &job, &id, err)
        && !sl_jobs_begin(st, id, &c->f->me, NULL, &attempt, err)
        && !sl_jobs_move(st, id, &c->f->me, SL_RUNNING, "", err)
        && !sl_jobs_end(st, id, &c->f->me, SL_DONE, 0, "", err))
        rc = sl_jobs_sweep(st, err) < 0 ? -1 : 0;
    sl_store_close(st);
    return rc;
}

/* Every state has its event and every job under way its attempt: no transaction was cut in two. */
static void lives_are_whole(void *u, int rc)
{
    struct scene *c = u;

    (void)rc;
    assert_float_equal(ask(c->f, "SELECT count(*) FROM job WHERE name = 'life' AND state NOT IN "
                                 "('starting', 'running', 'done')"),
                       0, 0);
    assert_float_equal(ask(c->f, "SELECT count(*) FROM job j WHERE name = 'life' AND attempts > 0 "
                                 "AND NOT EXISTS (SELECT 1 FROM attempt a WHERE a.job = j.id)"),
                       0, 0);
    assert_float_equal(ask(c->f, "SELECT count(*) FROM job j WHERE name = 'life' AND state <> "
                                 "'starting' AND NOT EXISTS (SELECT 1 FROM event e WHERE e.job = "
                                 "j.id AND e.kind = j.state)"),
                       0, 0);
    assert_float_equal(ask(c->f, "SELECT count(*) FROM job WHERE name = 'life' AND (state = 'done')"
                                 " <> (ended_at IS NOT NULL)"),
                       0, 0);
    /* away with them: the sweep looks at every live job, and the next try shall need no more */
    ok(sl_db_exec(c->f->st->db, "DELETE FROM event; DELETE FROM job WHERE name = 'life'", err));
}

/* A batch of rows, as the recorder writes it. */
static int a_batch(void *u, struct sl_err *err)
{
    struct scene *c = u;
    struct sl_store *st = sl_store_open(c->f->path, SL_STORE_WRITE, err);
    struct sl_writer *w = st ? sl_writer_create(st, c->id, 1, err) : NULL;
    int rc = -1;

    if (!w || sl_writer_begin(w, err))
        goto out;
    rc = sl_writer_rank(w, 0, "host", 7, "cpu", err)
         || sl_writer_memory(w, 0, 1, "total", 5, 6, err)
         || sl_writer_event(w, -1, 1, "note", "words", err)
         || sl_writer_metric(w, 1, 1, "valid.loss", 2, err);
    for (int64_t step = 1; step <= STEPS && !rc; step++) {
        struct sl_sample s = {.rank = 0, .step = step, .time = 1, .units = 8, .unit = "tokens"};

        s.step_ms = s.loss = 2;
        rc = sl_writer_sample(w, &s, err);
    }
    if (rc)
        sl_writer_rollback(w);
    else
        rc = sl_writer_commit(w, err);
    rc = rc ? -1 : 0;
out:
    sl_writer_destroy(w);
    sl_store_close(st);
    return rc;
}

/* All rows or none, and roll-ups that say the same as the samples. */
static void batches_are_whole(void *u, int rc)
{
    struct scene *c = u;
    double n = ask(c->f, "SELECT count(*) FROM rank_throughput");

    assert_true(n == 0 || n == STEPS);
    assert_true(rc || n == STEPS);
    assert_float_equal(ask(c->f, "SELECT coalesce(sum(count), 0) FROM rollup WHERE width = 8 AND "
                                 "name = (SELECT id FROM metric_name WHERE name = 'loss')"),
                       n, 0);
    assert_float_equal(ask(c->f, "SELECT count(*) FROM metrics"), n > 0, 0);
    assert_float_equal(ask(c->f, "SELECT count(*) FROM rank_memory"), n > 0, 0);
    /* away with them, for the next try */
    ok(sl_db_begin(c->f->st->db, err));
    ok(sl_db_exec(c->f->st->db,
                  "DELETE FROM sample; DELETE FROM rollup; DELETE FROM metric; DELETE FROM memory;"
                  "DELETE FROM event WHERE kind = 'note'",
                  err));
    ok(sl_db_commit(c->f->st->db, err));
}

struct sum {
    int64_t rows;
};

static int any_job(void *u, const struct sl_job_row *r)
{
    ((struct sum *)u)->rows += r->id > 0 && (unsigned)r->state < SL_STATES && *r->name;
    return 0;
}

static int any_rank(void *u, const struct sl_rank_row *r)
{
    ((struct sum *)u)->rows += *r->host != '\0';
    return 0;
}

static int any_event(void *u, const struct sl_event_row *r)
{
    ((struct sum *)u)->rows += *r->kind != '\0';
    return 0;
}

static int any_metric(void *u, const struct sl_metric_row *r)
{
    ((struct sum *)u)->rows += *r->name != '\0';
    return 0;
}

/*
 * What a page asks for. Rows that come are right ones: no name is lost on the way. Whether a job's
 * holder lives may stay unknown.
 */
static int a_look(void *u, struct sl_err *err)
{
    struct scene *c = u;
    struct sl_store *st = sl_store_open(c->f->path, SL_STORE_READ, err);
    struct sl_series_query q = {.job = c->id, .attempt = 1, .metric = "loss", .rank = 0};
    struct sl_series s = {0};
    struct sum sum = {0};
    int rc = -1;

    if (!st)
        return -1;
    if (!sl_read_jobs(st, 0, 0, 10, any_job, &sum, err)
        && sl_read_job(st, c->id, any_job, &sum, err) > 0
        && !sl_read_ranks(st, c->id, 1, any_rank, &sum, err)
        && !sl_read_events(st, c->id, 0, 3, any_event, &sum, err)
        && !sl_read_metrics(st, c->id, 1, any_metric, &sum, err)
        && !sl_series_read(st, &q, &s, err)) {
        rc = 0;
        if (sum.rows != 1 + 1 + 1 + 2 + 1 || s.n != STEPS)
            rc = sl_fail(err, SL_BUG, "%lld rows, %lld points", (long long)sum.rows,
                         (long long)s.n);
    }
    sl_series_fini(&s);
    sl_store_close(st);
    return rc;
}

/* A recorder that opens, takes reports and closes; its thread allocates, too. */
static int a_recording(void *u, struct sl_err *err)
{
    struct scene *c = u;
    struct sl_recorder_conf conf = {.db = c->f->path, .job = c->id, .from = NULL, .queue = 16};
    struct sl_recorder *r = sl_recorder_open(&conf, err);
    struct sl_report rep = {.type = SL_REPORT_HELLO, .rank = 1, .time = 1};

    if (!r)
        return -1;
    strcpy(rep.u.hello.host, "here");
    sl_recorder_put(r, &rep);
    sl_recorder_event(r, -1, "note", "words");
    return sl_recorder_close(r, SL_STOPPED, 75, "again", err);
}

static void jobs_and_their_attempts(void **state)
{
    struct scene c = {.f = *state};
    struct every_alloc e = {.name = "jobs", .act = a_life, .check = lives_are_whole, .u = &c};

    assert_true(every_alloc(&e) >= 5);
    e.libraries = 1;
    assert_true(every_alloc(&e) >= (every_alloc_ours_alone() ? 0 : 100));
}

static void rows_of_a_run(void **state)
{
    struct scene c = {.f = *state};
    struct every_alloc e = {.name = "writer", .act = a_batch, .check = batches_are_whole, .u = &c};

    c.id = begun_job(c.f, "rows");
    assert_true(every_alloc(&e) >= 1);
    e.libraries = 1;
    assert_true(every_alloc(&e) >= (every_alloc_ours_alone() ? 0 : 20));
}

static void what_readers_get(void **state)
{
    struct scene c = {.f = *state};
    struct every_alloc e = {.name = "reader", .act = a_look, .u = &c, .may_survive = 1};
    struct sl_err err = {0};

    c.id = begun_job(c.f, "rows");
    assert_int_equal(a_batch(&c, &err), 0);
    assert_true(every_alloc(&e) >= 5);
    e.libraries = 1;
    assert_true(every_alloc(&e) >= (every_alloc_ours_alone() ? 0 : 100));
}

static void a_recorder_and_its_thread(void **state)
{
    struct scene c = {.f = *state};
    struct every_alloc e
        = {.name = "recorder", .act = a_recording, .u = &c, .may_survive = 1, .threads = 1};

    c.id = begun_job(c.f, "recorded");
    assert_true(every_alloc(&e) >= 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(jobs_and_their_attempts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(rows_of_a_run, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_readers_get, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_recorder_and_its_thread, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
