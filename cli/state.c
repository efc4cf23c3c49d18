/* state.c - which database, and opening it for the subcommands that read */
#include "cli/state.h"

#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"
#include "store/jobs.h"
#include "store/published.h"

char *sl_state_db(const struct sl_args *args, struct sl_err *err)
{
    const char *env = getenv("SHARDLAUNCH_DB");
    const char *named = sl_args_text(args, "db", env && *env ? env : NULL);
    char *folder, *path;

    if (named)
        return sl_fs_absolute(NULL, named, err);
    folder = sl_fs_state_env(err);
    if (!folder)
        return NULL;
    path = sl_fs_absolute(folder, "shardlaunch.db", err);
    free(folder);
    return path;
}

/* A folder that cannot be written is no reason not to read it. */
static void sweep(const char *path)
{
    struct sl_store *st = sl_store_open(path, SL_STORE_WRITE, NULL);

    if (st)
        sl_jobs_sweep(st, NULL);
    sl_store_close(st);
}

static int folder_of(const char *db, char **ret, struct sl_err *err)
{
    char *copy = sl_strdup(db);

    *ret = copy ? sl_strdup(dirname(copy)) : NULL;
    free(copy);
    return *ret ? 0 : sl_fail(err, SL_SYSTEM, "cannot hold a path: %s", strerror(errno));
}

/* A store of this machine that belongs to the state folder. */
static int open_local(struct sl_opened *s, const char *folder, struct sl_err *err)
{
    if (sl_scratch_open(&s->scratch, err))
        return -1;
    s->local = 1;
    if (sl_published_link(s->scratch.path, folder, err)
        || !(s->db = sl_fs_absolute(s->scratch.path, "shardlaunch.db", err))
        || !(s->st = sl_store_open(s->db, SL_STORE_WRITE, err))) {
        sl_state_close(s);
        return -1;
    }
    return 0;
}

int sl_state_write(const char *db, struct sl_opened *ret, struct sl_err *err)
{
    char *folder;
    int rc;

    *ret = (struct sl_opened){0};
    if (folder_of(db, &folder, err))
        return -1;
    rc = sl_fs_mkdirs(folder, 0700, NULL) ? 0 : sl_published_needed(folder, err);
    if (rc > 0) {
        rc = open_local(ret, folder, err);
    } else if (!rc) {
        ret->db = sl_strdup(db);
        if (!ret->db)
            rc = sl_fail(err, SL_SYSTEM, "cannot hold a path: %s", strerror(errno));
        else
            rc = (ret->st = sl_store_open(db, SL_STORE_WRITE, err)) ? 0 : -1;
        if (rc)
            sl_state_close(ret);
    }
    free(folder);
    return rc;
}

static int gather(struct sl_opened *s, int tell, struct sl_err *err)
{
    struct sl_gathered got;

    if (sl_published_gather(s->st, s->only > 0 ? s->only : 0, s->only != 0, &got, err))
        return -1;
    sl_jobs_sweep(s->st, NULL);
    if (tell && got.jobs)
        sl_say("\"%s\" is on a network file system: shown is what %s published, some seconds old",
               sl_store_dir(s->st), s->only > 0 ? "the job has" : "jobs have");
    if (tell && got.bad)
        sl_say("%d job%s cannot be shown: %s", got.bad, got.bad == 1 ? "" : "s", got.why.msg);
    return 0;
}

int sl_state_refresh(struct sl_opened *s, struct sl_err *err)
{
    return s->local ? gather(s, 0, err) : 0;
}

static int read_file(const char *path, struct sl_opened *ret, struct sl_err *err)
{
    if (!access(path, F_OK)) {
        ret->st = sl_store_open(path, SL_STORE_READ, err);
        if (ret->st)
            sweep(path);
        return ret->st ? 0 : -1;
    }
    if (errno != ENOENT)
        return sl_fail(err, SL_SYSTEM, "database \"%s\": %s", path, strerror(errno));
    sl_say("no run has made the database \"%s\" yet", path);
    return 0;
}

int sl_state_read(const struct sl_args *args, int64_t only, struct sl_opened *ret,
                  struct sl_err *err)
{
    char *path = sl_state_db(args, err), *folder = NULL;
    int rc = -1;

    *ret = (struct sl_opened){.only = only};
    if (path && !folder_of(path, &folder, err))
        rc = sl_published_needed(folder, err);
    if (!rc) {
        rc = read_file(path, ret, err);
    } else if (rc > 0) {
        rc = open_local(ret, folder, err);
        if (!rc && gather(ret, 1, err)) {
            sl_state_close(ret);
            rc = -1;
        }
    }
    free(folder);
    free(path);
    return rc;
}

void sl_state_close(struct sl_opened *s)
{
    sl_store_close(s->st);
    free(s->db);
    if (s->local) {
        sl_scratch_remove(&s->scratch);
        close(s->scratch.lock);
    }
    *s = (struct sl_opened){0};
}

int sl_state_id(const char *text, int64_t *ret, struct sl_err *err)
{
    char shown[64], *end;
    long long x;

    errno = 0;
    x = strtoll(text, &end, 10);
    if (*text >= '0' && *text <= '9' && !*end && !errno) {
        *ret = x;
        return 0;
    }
    sl_str_escape(shown, sizeof shown, text);
    sl_fail(err, SL_USAGE, "\"%s\" is no job id", shown);
    return sl_hint(err, "\"shardlaunch list\" shows the ids.");
}

int sl_state_no_job(int64_t id)
{
    sl_say("no job %" PRId64, id);
    return SL_EXIT_NO_JOB;
}
