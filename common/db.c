#include "common/db.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/mem.h"

enum { KEPT = 96, WAIT_MS = 5000 };

struct kept {
    const char *sql;
    sqlite3_stmt *stmt;
};

struct sl_db {
    sqlite3 *h;
    char *path;
    struct kept kept[KEPT];
    int n;
};

static enum sl_code code_of(int rc)
{
    switch (rc & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return SL_BUSY;
    case SQLITE_NOTADB:
        return SL_USAGE;
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
    case SQLITE_CORRUPT:
    case SQLITE_NOMEM:
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_AUTH:
    case SQLITE_PROTOCOL:
    case SQLITE_NOLFS:
        return SL_SYSTEM;
    default:
        return SL_BUG;
    }
}

static int fail(struct sl_db *db, int rc, struct sl_err *err)
{
    int sys = sqlite3_system_errno(db->h);

    sl_fail(err, code_of(rc), "database \"%s\": %s", db->path, sqlite3_errmsg(db->h));
    switch (rc & 0xff) {
    case SQLITE_BUSY:
        sl_hint(err, "another process writes to it for long; try again");
        break;
    case SQLITE_FULL:
        sl_hint(err, "make room on its disk, or name another place with --db");
        break;
    case SQLITE_CANTOPEN:
    case SQLITE_IOERR:
        if (sys)
            sl_hint(err, "the system says: %s", strerror(sys));
        break;
    case SQLITE_NOTADB:
        sl_hint(err, "name another file with --db or SHARDLAUNCH_DB");
        break;
    }
    return -1;
}

/*
 * SQLite would make the file with the umask's mode; what a run records is its owner's business. A file
 * that exists is never opened here: closing any descriptor of it would drop the locks of the process's
 * other connections (POSIX), and the next reader to leave would delete the log that they still write.
 */
static int make_file(const char *path, struct sl_err *err)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd >= 0)
        close(fd);
    else if (errno != EEXIST) {
        sl_fail(err, SL_SYSTEM, "cannot make database \"%s\": %s", path, strerror(errno));
        return sl_hint(err, "name another place with --db or SHARDLAUNCH_DB");
    }
    return 0;
}

/*
 * SQLite answers "locked" at once, without its busy handler, to all but one of those that turn a new
 * database to WAL in the same moment: the wait is ours.
 */
static int to_wal(struct sl_db *db, struct sl_err *err)
{
    struct sl_err why = {0};

    for (int ms = 0;; ms += 5) {
        if (!sl_db_exec(db, "PRAGMA journal_mode = WAL", &why))
            return 0;
        if (why.code != SL_BUSY || ms >= WAIT_MS)
            break;
        usleep(5000);
    }
    if (err)
        *err = why;
    return -1;
}

struct sl_db *sl_db_open(const char *path, enum sl_db_mode mode, struct sl_err *err)
{
    struct sl_db *db = sl_calloc(1, sizeof *db);
    int rc;

    if (!db || !(db->path = sl_strdup(path))) {
        sl_fail(err, SL_SYSTEM, "cannot hold a database handle: %s", strerror(errno));
        goto fail;
    }
    if (mode == SL_DB_WRITE && make_file(path, err))
        goto fail;
    /* A reader of a WAL database must be able to write its shared-memory file: not READONLY. */
    rc = sqlite3_open_v2(path, &db->h,
                         SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI, /* URI: for ATTACH */
                         NULL);
    if (rc != SQLITE_OK) {
        if (!db->h)
            sl_fail(err, SL_SYSTEM, "database \"%s\": out of memory", path);
        else
            fail(db, rc, err);
        goto fail;
    }
    sqlite3_extended_result_codes(db->h, 1);
    sqlite3_busy_timeout(db->h, WAIT_MS);
    if (mode == SL_DB_WRITE && to_wal(db, err))
        goto fail;
    if (sl_db_exec(db, "PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON", err))
        goto fail;
    if (mode == SL_DB_READ && sl_db_exec(db, "PRAGMA query_only = ON", err))
        goto fail;
    return db;
fail:
    sl_db_close(db);
    return NULL;
}

void sl_db_close(struct sl_db *db)
{
    int saved = errno;

    if (!db)
        return;
    for (int i = 0; i < db->n; i++)
        sqlite3_finalize(db->kept[i].stmt);
    sqlite3_close(db->h);
    free(db->path);
    free(db);
    errno = saved;
}

const char *sl_db_path(const struct sl_db *db)
{
    return db->path;
}

void sl_db_timeout(struct sl_db *db, int ms)
{
    sqlite3_busy_timeout(db->h, ms);
}

int sl_db_exec(struct sl_db *db, const char *sql, struct sl_err *err)
{
    int rc = sqlite3_exec(db->h, sql, NULL, NULL, NULL);

    return rc == SQLITE_OK ? 0 : fail(db, rc, err);
}

static int pragma(struct sl_db *db, const char *sql, int64_t *ret, struct sl_err *err)
{
    sqlite3_stmt *s = sl_db_query(db, err, sql, "");

    if (!s || sl_db_step(db, s, err) != 1)
        return -1;
    *ret = sqlite3_column_int64(s, 0);
    sl_db_done(s);
    return 0;
}

int sl_db_version(struct sl_db *db, int32_t app, int *ret, struct sl_err *err)
{
    int64_t version, id, tables;

    if (pragma(db, "PRAGMA user_version", &version, err)
        || pragma(db, "PRAGMA application_id", &id, err)
        || pragma(db, "SELECT count(*) FROM sqlite_schema", &tables, err))
        return -1;
    if (id != app && (version || tables)) {
        sl_fail(err, SL_USAGE, "database \"%s\" belongs to another program", db->path);
        return sl_hint(err, "name another file with --db or SHARDLAUNCH_DB");
    }
    *ret = (int)version;
    return 0;
}

static int too_new(struct sl_db *db, int version, int n, struct sl_err *err)
{
    sl_fail(err, SL_USAGE, "database \"%s\" has version %d, this program knows %d at most",
            db->path, version, n);
    return sl_hint(err, "a newer shardlaunch made it: use that one, or another file with --db");
}

int sl_db_migrate(struct sl_db *db, int32_t app, const char *const *steps, int n,
                  struct sl_err *err)
{
    int version;
    char sql[96];

    if (sl_db_version(db, app, &version, err))
        return -1;
    if (version > n)
        return too_new(db, version, n, err);
    if (version == n)
        return 0;
    if (sl_db_begin(db, err))
        return -1;
    if (sl_db_version(db, app, &version, err)) /* somebody else may have been faster */
        goto fail;
    if (version > n) {
        too_new(db, version, n, err);
        goto fail;
    }
    for (; version < n; version++)
        if (sl_db_exec(db, steps[version], err)) {
            sl_within(err, "migrating to version %d", version + 1);
            goto fail;
        }
    snprintf(sql, sizeof sql, "PRAGMA user_version = %d; PRAGMA application_id = %d", n, (int)app);
    if (sl_db_exec(db, sql, err))
        goto fail;
    return sl_db_commit(db, err);
fail:
    sl_db_rollback(db);
    return -1;
}

int sl_db_begin(struct sl_db *db, struct sl_err *err)
{
    return sl_db_run(db, err, "BEGIN IMMEDIATE", "") < 0 ? -1 : 0;
}

int sl_db_commit(struct sl_db *db, struct sl_err *err)
{
    if (sl_db_run(db, err, "COMMIT", "") >= 0)
        return 0;
    sl_db_rollback(db);
    return -1;
}

void sl_db_rollback(struct sl_db *db)
{
    if (!sqlite3_get_autocommit(db->h))
        sl_db_run(db, NULL, "ROLLBACK", "");
}

static sqlite3_stmt *prepare(struct sl_db *db, const char *sql, struct sl_err *err)
{
    sqlite3_stmt *s;
    int rc;

    for (int i = 0; i < db->n; i++)
        if (db->kept[i].sql == sql || !strcmp(db->kept[i].sql, sql))
            return db->kept[i].stmt;
    if (db->n == KEPT) {
        sl_fail(err, SL_BUG, "more than %d statements on one database handle", KEPT);
        return NULL;
    }
    rc = sqlite3_prepare_v3(db->h, sql, -1, SQLITE_PREPARE_PERSISTENT, &s, NULL);
    if (rc != SQLITE_OK) {
        fail(db, rc, err);
        return NULL;
    }
    db->kept[db->n++] = (struct kept){sql, s};
    return s;
}

static sqlite3_stmt *query(struct sl_db *db, struct sl_err *err, const char *sql, const char *types,
                           va_list ap)
{
    sqlite3_stmt *s = prepare(db, sql, err);
    const char *text;
    int rc = SQLITE_OK;

    if (!s)
        return NULL;
    sqlite3_reset(s);
    for (int i = 1; rc == SQLITE_OK && *types; types++, i++)
        switch (*types) {
        case 'i':
            rc = sqlite3_bind_int64(s, i, va_arg(ap, int64_t));
            break;
        case 'd':
            rc = sqlite3_bind_double(s, i, va_arg(ap, double)); /* NaN becomes NULL */
            break;
        case 's':
            text = va_arg(ap, const char *);
            rc = sqlite3_bind_text(s, i, text, -1, SQLITE_TRANSIENT); /* NULL becomes NULL */
            break;
        case 'n':
            rc = sqlite3_bind_null(s, i);
            break;
        default:
            rc = SQLITE_MISUSE;
        }
    if (rc == SQLITE_OK)
        return s;
    fail(db, rc, err);
    return NULL;
}

sqlite3_stmt *sl_db_query(struct sl_db *db, struct sl_err *err, const char *sql, const char *types,
                          ...)
{
    sqlite3_stmt *s;
    va_list ap;

    va_start(ap, types);
    s = query(db, err, sql, types, ap);
    va_end(ap);
    return s;
}

int sl_db_step(struct sl_db *db, sqlite3_stmt *s, struct sl_err *err)
{
    int rc = sqlite3_step(s);

    if (rc == SQLITE_ROW)
        return 1;
    if (rc != SQLITE_DONE)
        fail(db, rc, err);
    sqlite3_reset(s);
    return rc == SQLITE_DONE ? 0 : -1;
}

void sl_db_done(sqlite3_stmt *s)
{
    if (s)
        sqlite3_reset(s);
}

int sl_db_run(struct sl_db *db, struct sl_err *err, const char *sql, const char *types, ...)
{
    sqlite3_stmt *s;
    va_list ap;
    int rc;

    va_start(ap, types);
    s = query(db, err, sql, types, ap);
    va_end(ap);
    if (!s)
        return -1;
    while ((rc = sl_db_step(db, s, err)) == 1)
        ;
    return rc < 0 ? -1 : sqlite3_changes(db->h);
}

/* Versions 1 at bytes 18 and 19 of the header: no log (SQLite's file format, 1.3.3). */
static int seal(const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC), bad;

    if (fd < 0)
        return -1;
    bad = pwrite(fd, "\1\1", 2, 18) != 2 || fsync(fd);
    return close(fd) || bad ? -1 : 0;
}

int sl_db_copy(struct sl_db *db, const char *path, struct sl_err *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600), rc;
    sqlite3_backup *b = NULL;
    sqlite3 *to = NULL;

    if (fd < 0)
        return sl_fail(err, SL_SYSTEM, "make \"%s\": %s", path, strerror(errno));
    close(fd);
    rc = sqlite3_open_v2(path, &to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, "unix-none");
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(to, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF", NULL, NULL,
                          NULL);
    if (rc == SQLITE_OK && (b = sqlite3_backup_init(to, "main", db->h, "main"))) {
        sqlite3_backup_step(b, -1);
        rc = sqlite3_backup_finish(b);
    } else if (rc == SQLITE_OK) {
        rc = sqlite3_errcode(to);
    }
    if (rc != SQLITE_OK)
        sl_fail(err, code_of(rc), "copy the database to \"%s\": %s", path,
                to ? sqlite3_errmsg(to) : "out of memory");
    sqlite3_close(to);
    if (rc == SQLITE_OK && !seal(path))
        return 0;
    if (rc == SQLITE_OK)
        sl_fail(err, SL_SYSTEM, "write \"%s\": %s", path, strerror(errno));
    unlink(path);
    return -1;
}

int64_t sl_db_last_id(struct sl_db *db)
{
    return sqlite3_last_insert_rowid(db->h);
}

const char *sl_db_text(sqlite3_stmt *s, int column)
{
    const char *text = (const char *)sqlite3_column_text(s, column);

    return text ? text : "";
}

int64_t sl_db_data_version(struct sl_db *db)
{
    int64_t v;

    return pragma(db, "PRAGMA data_version", &v, NULL) ? -1 : v;
}
