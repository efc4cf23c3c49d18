#ifndef SL_TEST_STORE_FIXTURE_H
#define SL_TEST_STORE_FIXTURE_H

/* fixture.h - a database in a folder of its own, gone after the test; include after cmocka.h */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/db.h"
#include "common/fs.h"
#include "store/jobs.h"
#include "store/reader.h"
#include "store/series.h"
#include "store/store.h"
#include "store/writer.h"

struct fixture {
    char dir[64], path[96];
    struct sl_store *st; /* for writing */
    struct sl_lease me;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    snprintf(f->dir, sizeof f->dir, "/tmp/sl-store-XXXXXX");
    if (!mkdtemp(f->dir))
        return -1;
    snprintf(f->path, sizeof f->path, "%s/state/t.db", f->dir);
    f->st = sl_store_open(f->path, SL_STORE_WRITE, NULL);
    if (!f->st || sl_lease_self(&f->me, NULL))
        return -1;
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    sl_store_close(f->st);
    sl_fs_remove_tree(f->dir, NULL);
    free(f);
    return 0;
}

#define ok(call)                                                                                   \
    do {                                                                                           \
        struct sl_err err_ = {0}, *err = &err_;                                                    \
        if ((call) < 0)                                                                            \
            fail_msg("%s: %s", #call, err->msg);                                                   \
    } while (0)

static inline int64_t new_job(struct fixture *f, const char *name)
{
    struct sl_new_job job
        = {.name = name, .text = "name = \"x\"\n", .ranks = 2, .steps = 100, .strategy = "zero2"};
    int64_t id = 0;

    ok(sl_jobs_create(f->st, &job, &id, err));
    return id;
}

/* A job with one attempt that this process holds. */
static inline int64_t begun_job(struct fixture *f, const char *name)
{
    int64_t id = new_job(f, name);
    int attempt = 0;

    ok(sl_jobs_begin(f->st, id, &f->me, NULL, &attempt, err));
    assert_int_equal(attempt, 1);
    return id;
}

/* The only value of a query's only row, as a number, read with SQLite alone. */
static inline double ask(struct fixture *f, const char *sql)
{
    sqlite3 *h;
    sqlite3_stmt *s;
    double x;

    assert_int_equal(sqlite3_open_v2(f->path, &h, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    sqlite3_busy_timeout(h, 5000);
    assert_int_equal(sqlite3_prepare_v2(h, sql, -1, &s, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    x = sqlite3_column_double(s, 0);
    sqlite3_finalize(s);
    sqlite3_close(h);
    return x;
}

#endif
