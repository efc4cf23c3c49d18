/* pick.c - which checkpoint an attempt goes on from */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "executor/checkpoint/folder.h"
#include "executor/checkpoint/manifest.h"

int sl_ckpt_find(const char *path, char from[SL_CKPT_PATH], struct sl_err *err)
{
    char file[SL_CKPT_PATH + 16];
    int64_t step;

    if (strlen(path) >= SL_CKPT_PATH)
        return sl_fail(err, SL_USAGE, "the path of a checkpoint has more than %d bytes", SL_CKPT_PATH - 1);
    snprintf(file, sizeof file, "%s/manifest.json", path);
    if (!access(file, F_OK)) {
        snprintf(from, SL_CKPT_PATH, "%s", path);
        return 0;
    }
    if (sl_ckpt_newest(path, 0, from, &step, err))
        return -1;
    if (step)
        return 0;
    sl_fail(err, SL_USAGE, "\"%s\" is no checkpoint and holds none", path);
    return sl_hint(err, "A checkpoint is a folder named step-... with a manifest.json in it.");
}

/* The first attempt of a run, whose folder holds complete checkpoints up to step `newest`. */
static int first(const struct sl_job *job, const char *dir, int64_t newest, char from[SL_CKPT_PATH],
                 struct sl_err *err)
{
    const char *resume = job->checkpoint.resume;

    if (!strcmp(resume, "auto"))
        return 0;
    if (!strcmp(resume, "never")) {
        from[0] = '\0';
        if (!newest)
            return 0;
        sl_fail(err, SL_USAGE, "checkpoint.resume is \"never\", and \"%s\" holds checkpoints up to "
                               "step %lld", dir, (long long)newest);
        return sl_hint(err, "Remove them, or set checkpoint.dir to another folder.");
    }
    return sl_ckpt_find(resume, from, err) ? sl_within(err, "checkpoint.resume") : 0;
}

/* Newer ones than that which is gone on from would be taken for this run's by the next attempt. */
static int check_newer(const char *dir, int64_t newest, int64_t step, const char *from,
                       struct sl_err *err)
{
    if (newest <= step)
        return 0;
    sl_fail(err, SL_USAGE, "\"%s\" is of step %lld, and \"%s\" holds checkpoints up to step %lld",
            from, (long long)step, dir, (long long)newest);
    return sl_hint(err, "Remove the newer ones, or set checkpoint.dir to another folder.");
}

int sl_ckpt_offer(const char *checkpoint, struct sl_err *err)
{
    char dir[SL_CKPT_PATH], before[SL_CKPT_PATH];
    const char *slash = strrchr(checkpoint, '/');
    int64_t step = slash ? sl_ckpt_step_of(slash + 1) : 0, found = 0;

    if (step > 1) {
        snprintf(dir, sizeof dir, "%.*s", (int)(slash - checkpoint), checkpoint);
        if (sl_ckpt_newest(dir, step, before, &found, NULL))
            found = 0;
    }
    if (found && err && !*err->hint)
        sl_hint(err, "The one before it: checkpoint.resume = \"%.200s\" (move the damaged one away).",
                before);
    return -1;
}

int sl_ckpt_pick(const struct sl_job *job, const struct sl_ckpt_conf *conf, int attempt,
                 char from[SL_CKPT_PATH], int64_t *step, struct sl_err *err)
{
    struct sl_ckpt_manifest *m;
    int64_t newest;
    int rc;

    *step = 0;
    if (sl_ckpt_newest(conf->dir, 0, from, &newest, err))
        return -1;
    if ((attempt < 2 || !newest) && first(job, conf->dir, newest, from, err))
        return sl_within(err, "resume");
    if (!*from)
        return 0;
    m = sl_ckpt_manifest_read(from, err);
    rc = m ? 0 : -1;
    if (m && (sl_ckpt_manifest_files(m, from, err)
              || check_newer(conf->dir, newest, m->step, from, err)))
        rc = -1;
    else if (m && sl_ckpt_manifest_fits(m, job, conf->steps, conf->samples, err))
        rc = sl_within(err, "\"%s\"", from);
    if (m && !rc)
        *step = m->step;
    sl_ckpt_manifest_destroy(m);
    if (!rc)
        return 0;
    sl_ckpt_offer(from, err);
    return sl_within(err, "resume");
}
