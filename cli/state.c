/* state.c - which database, and opening it for the subcommands that read */
#include "cli/state.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "common/fs.h"
#include "common/str.h"
#include "store/jobs.h"

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

int sl_state_read(const struct sl_args *args, struct sl_store **ret, struct sl_err *err)
{
    char *path = sl_state_db(args, err);

    *ret = NULL;
    if (!path)
        return -1;
    if (!access(path, F_OK)) {
        *ret = sl_store_open(path, SL_STORE_READ, err);
        if (*ret)
            sweep(path);
    } else if (errno == ENOENT) {
        sl_say("no run has made the database \"%s\" yet", path);
        free(path);
        return 0;
    } else {
        sl_fail(err, SL_SYSTEM, "database \"%s\": %s", path, strerror(errno));
    }
    free(path);
    return *ret ? 0 : -1;
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
