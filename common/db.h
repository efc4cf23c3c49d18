#ifndef SL_DB_H
#define SL_DB_H

/*
 * db.h - a SQLite database: open, migrate, transactions, statements, errors with SQLite's text
 *
 * WAL, synchronous = NORMAL, foreign keys on, a busy timeout. A handle belongs to one thread and
 * does not survive fork. Statements are prepared once a handle and kept.
 *
 * Errors: SL_BUSY locked by somebody else for longer than the timeout; SL_SYSTEM disk, memory,
 * permission; SL_USAGE the file is no SQLite database or made by a newer version; SL_BUG our SQL.
 */

#include <sqlite3.h>
#include <stdint.h>

#include "common/err.h"

struct sl_db; /* opaque */

enum sl_db_mode { SL_DB_READ, SL_DB_WRITE };

/* WRITE makes the file (mode 0600) when it is not there; READ refuses every change. Caller closes.
 */
struct sl_db *sl_db_open(const char *path, enum sl_db_mode mode, struct sl_err *err);
void sl_db_close(struct sl_db *db); /* NULL is fine; an open transaction is rolled back */

const char *sl_db_path(const struct sl_db *db);
void sl_db_timeout(struct sl_db *db, int ms); /* how long to wait for a lock; 5,000 at first */

/*
 * Bring the file to version n by running steps[version] .. steps[n - 1] in one transaction; the
 * version is SQLite's user_version, `app` its application_id. Several processes may call this at
 * once. SL_USAGE: newer than n, or another program's database.
 */
int sl_db_migrate(struct sl_db *db, int32_t app, const char *const *steps, int n,
                  struct sl_err *err);
int sl_db_version(struct sl_db *db, int32_t app, int *ret, struct sl_err *err);

/* BEGIN IMMEDIATE: the write lock is taken now or never, so nothing inside fails as busy. */
int sl_db_begin(struct sl_db *db, struct sl_err *err);
int sl_db_commit(struct sl_db *db, struct sl_err *err); /* on -1 it was rolled back */
void sl_db_rollback(struct sl_db *db);                  /* without a transaction: nothing */

int sl_db_exec(struct sl_db *db, const char *sql, struct sl_err *err); /* no parameters, no rows */

/*
 * Bind `types` ('i' int64_t, 'd' double, 's' text or NULL, 'n' NULL without an argument) to the
 * parameters of `sql`, a string literal. The statement belongs to db; the same literal must not be
 * in use twice at once. Ask for rows with sl_db_step(); sl_db_done() when you leave before the end.
 */
sqlite3_stmt *sl_db_query(struct sl_db *db, struct sl_err *err, const char *sql, const char *types,
                          ...);
int sl_db_step(struct sl_db *db, sqlite3_stmt *s, struct sl_err *err); /* 1 row, 0 end, -1 */
void sl_db_done(sqlite3_stmt *s);                                      /* NULL is fine */

/* A statement without rows. Returns how many rows it changed, or -1. */
int sl_db_run(struct sl_db *db, struct sl_err *err, const char *sql, const char *types, ...);

/*
 * Copy the whole of it, as it is now, into the new file `path` (mode 0600), without locks there: for a
 * folder whose file system has none to trust. On disk when this returns; on -1 nothing is left. The
 * copy keeps no write-ahead log: open it with immutable=1 while it is only ever replaced.
 */
int sl_db_copy(struct sl_db *db, const char *path, struct sl_err *err);

int64_t sl_db_last_id(struct sl_db *db); /* of the last INSERT here */

const char *sl_db_text(sqlite3_stmt *s, int column); /* "" for NULL; lives until the next step */

/* A number that changes whenever another connection commits. -1: cannot be read. */
int64_t sl_db_data_version(struct sl_db *db);

#endif
