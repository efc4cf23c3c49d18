/* A database: versions, transactions, locks and their errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/db.h"
#include "common/fs.h"

enum { APP = 4711 };

static const char *const steps[] = {
    "CREATE TABLE t (x INTEGER)",
    "ALTER TABLE t ADD COLUMN y TEXT; INSERT INTO t VALUES (7, 'seven')",
    "CREATE TABLE broken (x; this is no SQL",
};

struct place {
    char dir[64], path[80];
};

static int set_up(void **state)
{
    struct place *p = calloc(1, sizeof *p);

    snprintf(p->dir, sizeof p->dir, "/tmp/sl-db-XXXXXX");
    if (!mkdtemp(p->dir))
        return -1;
    snprintf(p->path, sizeof p->path, "%s/t.db", p->dir);
    *state = p;
    return 0;
}

static int tear_down(void **state)
{
    struct place *p = *state;

    sl_fs_remove_tree(p->dir, NULL);
    free(p);
    return 0;
}

static int64_t ask(struct sl_db *db, const char *sql)
{
    struct sl_err e = {0};
    sqlite3_stmt *s = sl_db_query(db, &e, sql, "");
    int64_t x;

    if (!s || sl_db_step(db, s, &e) != 1)
        fail_msg("%s: %s", sql, e.msg);
    x = sqlite3_column_int64(s, 0);
    sl_db_done(s);
    return x;
}

static void a_file_is_brought_up_version_by_version(void **state)
{
    struct place *p = *state;
    struct sl_db *db = sl_db_open(p->path, SL_DB_WRITE, NULL);
    struct sl_err e = {0};
    int version = -1;

    assert_non_null(db);
    assert_int_equal(sl_db_migrate(db, APP, steps, 1, &e), 0);
    assert_int_equal(ask(db, "SELECT count(*) FROM t"), 0);
    assert_int_equal(sl_db_migrate(db, APP, steps, 2, &e), 0);
    assert_int_equal(sl_db_migrate(db, APP, steps, 2, &e), 0); /* nothing twice */
    assert_int_equal(ask(db, "SELECT count(*) FROM t WHERE y = 'seven'"), 1);
    assert_int_equal(sl_db_version(db, APP, &version, &e), 0);
    assert_int_equal(version, 2);
    assert_int_equal(sl_db_migrate(db, APP, steps, 1, &e), -1); /* newer than we know */
    assert_int_equal(e.code, SL_USAGE);
    assert_int_equal(sl_db_migrate(db, APP + 1, steps, 2, &e), -1); /* another program's */
    assert_int_equal(e.code, SL_USAGE);
    sl_db_close(db);
}

static void a_step_that_fails_leaves_the_old_version(void **state)
{
    struct place *p = *state;
    struct sl_db *db = sl_db_open(p->path, SL_DB_WRITE, NULL);
    struct sl_err e = {0};
    int version = -1;

    assert_int_equal(sl_db_migrate(db, APP, steps, 1, NULL), 0);
    assert_int_equal(sl_db_migrate(db, APP, steps, 3, &e), -1);
    assert_non_null(strstr(e.msg, "migrating to version 3"));
    assert_non_null(strstr(e.msg, "syntax error"));
    assert_int_equal(sl_db_version(db, APP, &version, NULL), 0);
    assert_int_equal(version, 1);
    assert_int_equal(ask(db, "SELECT count(*) FROM pragma_table_info('t')"), 1);
    sl_db_close(db);
}

static void a_lock_held_by_another_is_busy_and_named(void **state)
{
    struct place *p = *state;
    struct sl_db *a = sl_db_open(p->path, SL_DB_WRITE, NULL);
    struct sl_db *b;
    struct sl_err e = {0};

    assert_int_equal(sl_db_migrate(a, APP, steps, 1, NULL), 0);
    b = sl_db_open(p->path, SL_DB_WRITE, NULL);
    sl_db_timeout(b, 20);
    assert_int_equal(sl_db_begin(a, &e), 0);
    assert_int_equal(sl_db_begin(b, &e), -1);
    assert_int_equal(e.code, SL_BUSY);
    assert_non_null(strstr(e.msg, "database is locked"));
    assert_int_equal(sl_db_run(a, &e, "INSERT INTO t VALUES (?)", "i", (int64_t)5), 1);
    assert_int_equal(ask(b, "SELECT count(*) FROM t"), 0); /* readers never wait */
    sl_db_rollback(a);
    assert_int_equal(sl_db_begin(b, &e), 0);
    assert_int_equal(sl_db_commit(b, &e), 0);
    assert_int_equal(ask(a, "SELECT count(*) FROM t"), 0);
    sl_db_rollback(b); /* nothing to roll back */
    sl_db_close(a);
    sl_db_close(b);
}

static void what_is_bound_comes_back(void **state)
{
    static const char evil[] = "'; DROP TABLE t; --";
    struct place *p = *state;
    struct sl_db *db = sl_db_open(p->path, SL_DB_WRITE, NULL);
    struct sl_err e = {0};
    sqlite3_stmt *s;

    assert_int_equal(sl_db_exec(db, "CREATE TABLE v (i, d, s, n, t)", &e), 0);
    assert_int_equal(sl_db_run(db, &e, "INSERT INTO v VALUES (?, ?, ?, ?, ?)", "idsns", INT64_MIN,
                               0.1, evil, NULL),
                     1);
    s = sl_db_query(db, &e, "SELECT * FROM v", "");
    assert_int_equal(sl_db_step(db, s, &e), 1);
    assert_true(sqlite3_column_int64(s, 0) == INT64_MIN);
    assert_true(sqlite3_column_double(s, 1) == 0.1);
    assert_string_equal(sl_db_text(s, 2), evil);
    assert_int_equal(sqlite3_column_type(s, 3), SQLITE_NULL);
    assert_string_equal(sl_db_text(s, 4), "");
    assert_int_equal(sl_db_step(db, s, &e), 0);
    assert_null(sl_db_query(db, &e, "SELECT nothing FROM nowhere", ""));
    assert_int_equal(e.code, SL_BUG);
    sl_db_close(db);
}

static void opening_says_why_it_cannot(void **state)
{
    struct place *p = *state;
    struct sl_err e = {0};
    char path[128];

    assert_null(sl_db_open(p->path, SL_DB_READ, &e)); /* not there, and not made */
    assert_int_equal(e.code, SL_SYSTEM);
    assert_int_equal(access(p->path, F_OK), -1);
    snprintf(path, sizeof path, "%s/no/such/folder.db", p->dir);
    assert_null(sl_db_open(path, SL_DB_WRITE, &e));
    assert_int_equal(e.code, SL_SYSTEM);
    assert_non_null(strstr(e.msg, strerror(ENOENT)));
}

/*
 * Another process opens, reads and leaves while this one has two handles and has closed a third: had a
 * handle's opening or closing dropped our locks, that process would delete the log below us.
 */
static void coming_and_going_never_costs_the_log(void **state)
{
    struct place *p = *state;
    int go[2], status = -1;
    char log[96], c;
    struct sl_db *a, *b;
    pid_t pid;

    assert_int_equal(pipe(go), 0);
    pid = fork(); /* before this process knows the file */
    if (pid == 0) {
        close(go[1]);
        if (read(go[0], &c, 1) != 1)
            _exit(1);
        a = sl_db_open(p->path, SL_DB_READ, NULL);
        c = a && ask(a, "SELECT count(*) FROM t") == 1;
        sl_db_close(a);
        _exit(!c);
    }
    close(go[0]);
    a = sl_db_open(p->path, SL_DB_WRITE, NULL);
    assert_int_equal(sl_db_migrate(a, APP, steps, 1, NULL), 0);
    assert_int_equal(sl_db_run(a, NULL, "INSERT INTO t VALUES (1)", ""), 1);
    b = sl_db_open(p->path, SL_DB_WRITE, NULL);
    sl_db_close(b);
    b = sl_db_open(p->path, SL_DB_READ, NULL);
    assert_int_equal(write(go[1], "x", 1), 1);
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
    snprintf(log, sizeof log, "%s-wal", p->path);
    assert_int_equal(access(log, F_OK), 0);
    sl_db_close(a);
    sl_db_close(b);
    assert_int_equal(access(log, F_OK), -1); /* the last one does */
    close(go[1]);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(a_file_is_brought_up_version_by_version),
        T(a_step_that_fails_leaves_the_old_version),
        T(a_lock_held_by_another_is_busy_and_named),
        T(what_is_bound_comes_back),
        T(opening_says_why_it_cannot),
        T(coming_and_going_never_costs_the_log),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
