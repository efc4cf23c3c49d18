#include "store/store.h"

#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/fs.h"
#include "common/mem.h"
#include "store/internal.h"
#include "store/published.h"

enum { APPLICATION = 0x534c5244 }; /* "SLRD" */

extern const unsigned char sl_store_schema_sql[];

/* Version 2: where an attempt went on. NULL: not told yet; 0: from the start. */
static const char resumes[] = "ALTER TABLE attempt ADD COLUMN resumed_step INTEGER;"
                              "ALTER TABLE attempt ADD COLUMN resumed_from TEXT NOT NULL DEFAULT '';";

const int64_t sl_level_width[SL_LEVELS] = {8, 64, 512};

/* WAL keeps its index in shared memory, which other hosts do not see: rows would be lost. */
static int refuse_network(const char *dir, struct sl_err *err)
{
    int rc = sl_fs_is_network(dir, err);

    if (rc <= 0)
        return rc;
    sl_fail(err, SL_SYSTEM, "the folder of the database, \"%s\", is on a network file system", dir);
    return sl_hint(err,
                   "SQLite's write-ahead log does not work there: let TMPDIR, --db or "
                   "SHARDLAUNCH_DB name a folder on a disk of this machine");
}

static int name_folder(struct sl_store *st, const char *path, struct sl_err *err)
{
    char *copy = sl_strdup(path);

    st->path = sl_strdup(path);
    if (copy)
        st->dir = sl_strdup(dirname(copy));
    free(copy);
    if (st->path && st->dir)
        return 0;
    return sl_fail(err, SL_SYSTEM, "cannot hold a store handle: %s", strerror(errno));
}

/* A reader of an older database brings it up to date first, by a handle of its own. */
static int upgrade(const char *path, struct sl_err *err)
{
    struct sl_store *st = sl_store_open(path, SL_STORE_WRITE, err);

    sl_store_close(st);
    return st ? 0 : -1;
}

struct sl_store *sl_store_open(const char *path, enum sl_store_mode mode, struct sl_err *err)
{
    static const char *const steps[] = {(const char *)sl_store_schema_sql, resumes};
    const int latest = sizeof steps / sizeof *steps;
    struct sl_store *st = sl_calloc(1, sizeof *st);
    int version;

    if (!st) {
        sl_fail(err, SL_SYSTEM, "cannot hold a store handle: %s", strerror(errno));
        return NULL;
    }
    if (name_folder(st, path, err))
        goto fail;
    if (mode == SL_STORE_READ && access(path, F_OK)) {
        sl_fail(err, SL_USAGE, "no database \"%s\": %s", path, strerror(errno));
        sl_hint(err, "the first run makes it; --db or SHARDLAUNCH_DB name another one");
        goto fail;
    }
    if (mode == SL_STORE_WRITE && sl_fs_mkdirs(st->dir, 0700, err)) {
        sl_within(err, "the folder of the database \"%s\"", path);
        sl_hint(err,
                "SHARDLAUNCH_STATE names another folder for all files of runs, --db a database");
        goto fail;
    }
    if (refuse_network(st->dir, err) || sl_published_follow(st, err))
        goto fail;
    st->db = sl_db_open(path, mode == SL_STORE_WRITE ? SL_DB_WRITE : SL_DB_READ, err);
    if (!st->db)
        goto fail;
    if (mode == SL_STORE_WRITE) {
        if (sl_db_migrate(st->db, APPLICATION, steps, latest, err))
            goto fail;
        return st;
    }
    if (sl_db_version(st->db, APPLICATION, &version, err))
        goto fail;
    if (version < latest) {
        if (upgrade(path, err))
            goto fail;
    } else if (version > latest) {
        sl_db_migrate(st->db, APPLICATION, steps, latest, err); /* says that it is too new */
        goto fail;
    }
    return st;
fail:
    sl_store_close(st);
    return NULL;
}

void sl_store_close(struct sl_store *st)
{
    if (!st)
        return;
    sl_db_close(st->db);
    free(st->path);
    free(st->dir);
    free(st);
}

void sl_store_timeout(struct sl_store *st, int ms)
{
    sl_db_timeout(st->db, ms);
}

const char *sl_store_path(const struct sl_store *st)
{
    return st->path;
}

const char *sl_store_dir(const struct sl_store *st)
{
    return st->dir;
}
