/* requeue.c - a file per step of a Slurm job */
#include "cli/requeue.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fs.h"

static const char *word(const char *name, const char *otherwise)
{
    const char *s = getenv(name);

    return s && *s && strlen(s) < 64 && !strchr(s, '/') ? s : otherwise;
}

/* 1: we are in a Slurm job, and `ret` is the file's name. */
static int file_name(char ret[256])
{
    const char *job = word("SLURM_JOB_ID", NULL);

    if (!job)
        return 0;
    snprintf(ret, 256, "%s.%s.%s", word("SLURM_CLUSTER_NAME", "cluster"), job,
             word("SLURM_STEP_ID", "batch"));
    return 1;
}

int sl_requeue_again(void)
{
    return atoi(word("SLURM_RESTART_COUNT", "0")) > 0;
}

int sl_requeue_find(const char *folder, int64_t *id, struct sl_err *err)
{
    char name[256], path[4096], *text, *end;
    size_t n;

    if (!sl_requeue_again() || !file_name(name))
        return 0;
    if (snprintf(path, sizeof path, "%s/slurm/%s", folder, name) >= (int)sizeof path)
        return sl_fail(err, SL_SYSTEM, "the state folder's path is too long");
    text = sl_fs_read(path, 64, &n, NULL);
    if (!text)
        return 0; /* the first time it did not come as far as an id */
    *id = strtoll(text, &end, 10);
    n = end != text && *id > 0;
    free(text);
    return (int)n;
}

int sl_requeue_note(const char *folder, int64_t id, struct sl_err *err)
{
    char name[256], path[4096], text[32];
    int n = snprintf(text, sizeof text, "%" PRId64 "\n", id);

    if (!file_name(name))
        return 0;
    if (snprintf(path, sizeof path, "%s/slurm", folder) >= (int)sizeof path - 256)
        return sl_fail(err, SL_SYSTEM, "the state folder's path is too long");
    if (sl_fs_mkdirs(path, 0700, err))
        return -1;
    snprintf(path + strlen(path), sizeof path - strlen(path), "/%s", name);
    return sl_fs_write_atomic(path, text, (size_t)n, 0600, err);
}
