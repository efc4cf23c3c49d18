/* state.c - which database */
#include "cli/state.h"

#include <stdlib.h>

#include "common/fs.h"

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
