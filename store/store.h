#ifndef SL_STORE_H
#define SL_STORE_H

/*
 * store.h - the database of jobs and measurements: opening it
 *
 * One SQLite file, WAL and NORMAL; all SQL of the product lives in store/. A handle belongs to one
 * thread and does not survive fork: open again in the child. People read the five views of
 * schema.sql with any SQLite tool. Its folder is the state folder (runs/, token).
 */

#include "common/err.h"

struct sl_store; /* opaque */

enum sl_store_mode {
    SL_STORE_WRITE, /* made and migrated when needed, with its folder (mode 0700) */
    SL_STORE_READ,  /* must exist; never changed through this handle               */
};

/*
 * SL_USAGE: made by a newer shardlaunch, not a database of ours, or none there to read; SL_SYSTEM:
 * cannot be opened, or lies on a network file system, where WAL loses data (with a hint): there runs
 * publish their rows (published.h). Caller closes.
 */
struct sl_store *sl_store_open(const char *path, enum sl_store_mode mode, struct sl_err *err);
void sl_store_close(struct sl_store *st); /* NULL is fine */

void sl_store_timeout(struct sl_store *st, int ms); /* how long to wait for another writer */

const char *sl_store_path(const struct sl_store *st);
const char *sl_store_dir(const struct sl_store *st); /* the state folder */

#endif
