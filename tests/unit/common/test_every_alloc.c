/* Whatever allocation of common/ fails, the caller hears of it and nothing is left half done. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/conf.h"
#include "common/db.h"
#include "common/fs.h"
#include "common/json.h"
#include "common/loop.h"
#include "common/proc.h"
#include "tests/lib/every_alloc.h"

struct place {
    char dir[64], path[96];
};

static int set_up(void **state)
{
    struct place *p = calloc(1, sizeof *p);

    snprintf(p->dir, sizeof p->dir, "/tmp/sl-alloc-XXXXXX");
    if (!mkdtemp(p->dir))
        return -1;
    snprintf(p->path, sizeof p->path, "%s/f", p->dir);
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

static int arenas(void *u, struct sl_err *err)
{
    struct sl_arena *a = sl_arena_create(0, err);
    int rc = -1;

    (void)u;
    if (!a)
        return -1;
    size_t before = sl_arena_used(a);
    if (!sl_arena_alloc(a, 5, 20000) || !sl_arena_strdup(a, "word")
        || !sl_arena_printf(a, "%0*d", 20000, 1)) {
        if (sl_arena_used(a) < before)
            sl_fail(err, SL_BUG, "a failed call changed the arena");
        else
            sl_fail(err, SL_SYSTEM, "no memory");
    } else
        rc = 0;
    sl_arena_destroy(a);
    return rc;
}

static int texts(void *u, struct sl_err *err)
{
    struct sl_buf b;
    struct sl_json j;
    char *text;

    (void)u;
    sl_buf_init(&b, 1 << 20);
    sl_json_init(&j, &b);
    sl_json_array(&j);
    for (int i = 0; i < 400; i++) {
        size_t before = b.len;

        sl_json_str(&j, "a word of some length");
        if (b.failed && b.len > before && b.p[b.len])
            return sl_fail(err, SL_BUG, "the text has lost its end");
    }
    sl_json_end(&j);
    text = sl_buf_take(&b, err);
    sl_buf_fini(&b);
    if (!text)
        return -1;
    free(text);
    return 0;
}

struct box {
    int64_t count;
    const char *name;
};

static const struct sl_conf_opt opts[] = {
    {.key = "name", .type = SL_CONF_STR, .at = offsetof(struct box, name), .max = 50, .def = "\"\""},
    {.key = "a.count", .type = SL_CONF_INT, .at = offsetof(struct box, count), .max = 9, .def = "3"},
};

static int settings(void *u, struct sl_err *err)
{
    static const char text[] = "name = \"somebody\"\n[a]\ncount = 4\n";
    struct sl_arena *a = sl_arena_create(0, err);
    struct sl_conf *c = a ? sl_conf_create(opts, 2, err) : NULL;
    struct box box = {.count = -1};
    int rc = -1;

    (void)u;
    if (c && !sl_conf_text(c, text, sizeof text - 1, "f.toml", err)
        && !sl_conf_set(c, "a.count=5", err)) {
        rc = sl_conf_read(c, &box, a, err);
        if (!rc && (box.count != 5 || strcmp(box.name, "somebody")))
            rc = sl_fail(err, SL_BUG, "values were lost");
    }
    sl_conf_destroy(c);
    sl_arena_destroy(a);
    return rc;
}

static int files(void *u, struct sl_err *err)
{
    struct place *p = u;
    char deep[128], *text;
    int rc;

    snprintf(deep, sizeof deep, "%s/some/deep/folder", p->dir);
    if (sl_fs_mkdirs(deep, 0700, err) || sl_fs_write_atomic(p->path, "new", 3, 0600, err))
        return -1;
    text = sl_fs_read(p->path, 100, NULL, err);
    if (!text)
        return -1;
    free(text);
    text = sl_fs_absolute(p->dir, "x", err);
    if (!text)
        return -1;
    free(text);
    text = sl_fs_state_dir(NULL, p->dir, NULL, err);
    if (!text)
        return -1;
    free(text);
    snprintf(deep, sizeof deep, "%s/some", p->dir);
    rc = sl_fs_remove_tree(deep, err);
    return rc || sl_fs_is_network(p->dir, err) < 0 ? -1 : 0;
}

/* The file is the old one or the new one, and nothing else lies beside it. */
static void the_file_is_whole(void *u, int rc)
{
    struct place *p = u;
    char name[128], *text = sl_fs_read(p->path, 100, NULL, NULL);
    struct stat st;

    (void)rc;
    assert_non_null(text);
    assert_true(!strcmp(text, "old") || !strcmp(text, "new"));
    free(text);
    assert_int_equal(sl_fs_write_atomic(p->path, "old", 3, 0600, NULL), 0);
    snprintf(name, sizeof name, "%s/some", p->dir);
    assert_int_equal(sl_fs_remove_tree(name, NULL), 0);
    assert_int_equal(stat(p->dir, &st), 0);
}

static void on_timer(void *u)
{
    ++*(int *)u;
}

static void on_fd(void *u, int fd, uint32_t events)
{
    (void)fd;
    (void)events;
    ++*(int *)u;
}

static void on_signal(void *u, const struct signalfd_siginfo *si)
{
    (void)si;
    ++*(int *)u;
}

static int loops(void *u, struct sl_err *err)
{
    struct sl_loop *l = sl_loop_create(err);
    int fd[2], n = 0, rc = -1;

    (void)u;
    if (!l)
        return -1;
    if (pipe(fd)) {
        sl_loop_destroy(l);
        return sl_fail(err, SL_BUG, "no pipe");
    }
    if (!sl_loop_fd(l, fd[0], EPOLLIN, on_fd, &n, err)
        && sl_loop_timer(l, 0, 0, on_timer, &n, err) > 0
        && sl_loop_timer(l, 0, 0, on_timer, &n, err) > 0
        && !sl_loop_signal(l, SIGUSR1, on_signal, &n, err)) {
        rc = 0;
        while (n < 2 && !rc)
            rc = sl_loop_turn(l, 1000000000, err) < 0 ? -1 : 0;
    }
    sl_loop_destroy(l);
    close(fd[0]);
    close(fd[1]);
    return rc;
}

/* A signal that the loop had is the process's again. */
static void the_mask_is_given_back(void *u, int rc)
{
    sigset_t now;

    (void)u;
    (void)rc;
    assert_int_equal(sigprocmask(SIG_BLOCK, NULL, &now), 0);
    assert_int_equal(sigismember(&now, SIGUSR1), 0);
}

static int processes(void *u, struct sl_err *err)
{
    char id[40];
    int64_t pss;

    (void)u;
    if (sl_proc_boot_id(id, err) || sl_proc_pss(getpid(), &pss, err))
        return -1;
    if (sl_proc_kill_below(0, NULL, NULL, err) < 0)
        return -1;
    return sl_proc_start_time(getpid()) < 0 ? sl_fail(err, SL_SYSTEM, "no memory for /proc") : 0;
}

static const char *const steps[] = {"CREATE TABLE t (x INTEGER, y TEXT)"};

static int databases(void *u, struct sl_err *err)
{
    struct place *p = u;
    struct sl_db *db = sl_db_open(p->path, SL_DB_WRITE, err);
    sqlite3_stmt *s;
    int rc = -1;

    if (!db)
        return -1;
    if (sl_db_migrate(db, 4711, steps, 1, err) || sl_db_begin(db, err))
        goto out;
    for (int i = 0; i < 3; i++)
        if (sl_db_run(db, err, "INSERT INTO t VALUES (?, ?)", "is", (int64_t)i, "text") < 0)
            goto out;
    if (sl_db_commit(db, err))
        goto out;
    s = sl_db_query(db, err, "SELECT count(*) FROM t WHERE y = ?", "s", "text");
    if (!s || sl_db_step(db, s, err) != 1)
        goto out;
    rc = sqlite3_column_int64(s, 0) % 3 ? sl_fail(err, SL_BUG, "rows were lost") : 0;
    sl_db_done(s);
out:
    sl_db_close(db);
    return rc;
}

/* All three rows of a transaction or none, in a file that is sound. */
static void rows_come_by_threes(void *u, int rc)
{
    struct place *p = u;
    struct sl_err err = {0};
    struct sl_db *db = sl_db_open(p->path, SL_DB_WRITE, &err);
    sqlite3_stmt *s;

    (void)rc;
    assert_non_null(db);
    assert_int_equal(sl_db_migrate(db, 4711, steps, 1, &err), 0);
    s = sl_db_query(db, &err, "SELECT count(*) FROM t", "");
    assert_non_null(s);
    assert_int_equal(sl_db_step(db, s, &err), 1);
    assert_int_equal(sqlite3_column_int64(s, 0) % 3, 0);
    sl_db_done(s);
    s = sl_db_query(db, &err, "PRAGMA quick_check", "");
    assert_non_null(s);
    assert_int_equal(sl_db_step(db, s, &err), 1);
    assert_string_equal(sl_db_text(s, 0), "ok");
    sl_db_done(s);
    sl_db_close(db);
}

static void memory_of_one_parse(void **state)
{
    struct every_alloc arena = {.name = "arena", .act = arenas};
    struct every_alloc text = {.name = "buf and json", .act = texts};
    struct every_alloc conf = {.name = "conf", .act = settings};

    (void)state;
    assert_true(every_alloc(&arena) >= 3);
    assert_true(every_alloc(&text) >= 5);
    assert_true(every_alloc(&conf) >= 5);
}

static void files_and_folders(void **state)
{
    struct place *p = *state;
    struct every_alloc e = {.name = "fs", .act = files, .check = the_file_is_whole, .u = p};

    assert_true(every_alloc(&e) >= 3);
    e.libraries = 1;
    assert_true(every_alloc(&e) >= (every_alloc_ours_alone() ? 0 : 5));
}

static void descriptors_timers_signals(void **state)
{
    struct every_alloc e = {.name = "loop", .act = loops, .check = the_mask_is_given_back};

    (void)state;
    assert_true(every_alloc(&e) >= 3);
}

static void what_proc_says(void **state)
{
    struct every_alloc e = {.name = "proc", .act = processes, .libraries = 1};

    (void)state;
    assert_true(every_alloc(&e) >= (every_alloc_ours_alone() ? 0 : 5));
}

static void transactions(void **state)
{
    struct place *p = *state;
    struct every_alloc e
        = {.name = "db", .act = databases, .check = rows_come_by_threes, .u = p};

    assert_true(every_alloc(&e) >= 1);
    e.libraries = 1;
    assert_true(every_alloc(&e) >= (every_alloc_ours_alone() ? 0 : 50));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_of_one_parse),
        cmocka_unit_test_setup_teardown(files_and_folders, set_up, tear_down),
        cmocka_unit_test(descriptors_timers_signals),
        cmocka_unit_test(what_proc_says),
        cmocka_unit_test_setup_teardown(transactions, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
