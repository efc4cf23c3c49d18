/* folder.c - the folder of a run's checkpoints */
#include "executor/checkpoint/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/fs.h"

static const char step_[] = "step-", part_[] = ".part-", old_[] = ".old-";

static int name(char ret[SL_CKPT_PATH], const char *dir, const char *prefix, int64_t step,
                struct sl_err *err)
{
    int n = snprintf(ret, SL_CKPT_PATH, "%s/%s%08lld", dir, prefix, (long long)step);

    if (n < 0 || n >= SL_CKPT_PATH)
        return sl_fail(err, SL_SYSTEM, "the path of a checkpoint has more than %d bytes",
                       SL_CKPT_PATH - 1);
    return 0;
}

int sl_ckpt_path(const char *dir, int64_t step, char ret[SL_CKPT_PATH], struct sl_err *err)
{
    return name(ret, dir, step_, step, err);
}

int sl_ckpt_part_path(const char *dir, int64_t step, char ret[SL_CKPT_PATH], struct sl_err *err)
{
    return name(ret, dir, part_, step, err);
}

/* The step of a name with this prefix, 0: it is another name. */
static int64_t step_of(const char *file, const char *prefix)
{
    size_t n = strlen(prefix), digits;

    if (strncmp(file, prefix, n))
        return 0;
    digits = strspn(file + n, "0123456789");
    if (digits < 8 || digits > 18 || file[n + digits])
        return 0;
    return strtoll(file + n, NULL, 10);
}

int64_t sl_ckpt_step_of(const char *file)
{
    return step_of(file, step_);
}

/* Only a folder with a manifest counts: the name alone could be anybody's. */
static int complete(const char *dir, int64_t step)
{
    char path[SL_CKPT_PATH + 16];
    struct stat st;

    if (sl_ckpt_path(dir, step, path, NULL))
        return 0;
    strcat(path, "/manifest.json");
    return !stat(path, &st) && S_ISREG(st.st_mode);
}

int sl_ckpt_dir(const struct sl_job *job, int64_t id, const char *run_folder,
                char ret[SL_CKPT_PATH], struct sl_err *err)
{
    const char *rest = job->checkpoint.dir, *hole;
    struct sl_buf b;
    int rc;

    sl_buf_init(&b, SL_CKPT_PATH - 1);
    if (!rest)
        sl_buf_printf(&b, "%s/checkpoints", run_folder);
    for (; rest && (hole = strstr(rest, "{id}")); rest = hole + 4) {
        sl_buf_add(&b, rest, (size_t)(hole - rest));
        sl_buf_printf(&b, "%lld", (long long)id);
    }
    if (rest)
        sl_buf_str(&b, rest);
    rc = sl_buf_check(&b, err) ? sl_within(err, "the folder of checkpoints") : 0;
    if (!rc)
        snprintf(ret, SL_CKPT_PATH, "%s", sl_buf_text(&b));
    sl_buf_fini(&b);
    return rc;
}

int sl_ckpt_sync(const char *dir, struct sl_err *err)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc;

    if (fd < 0)
        return sl_fail(err, SL_SYSTEM, "open folder \"%s\": %s", dir, strerror(errno));
    rc = fsync(fd);
    if (rc && (errno == EINVAL || errno == ENOTSUP))
        rc = 0; /* a file system without durable folders: its files are as safe as it can make them */
    if (rc)
        sl_fail(err, SL_SYSTEM, "write folder \"%s\" to disk: %s", dir, strerror(errno));
    close(fd);
    return rc;
}

int sl_ckpt_publish(const char *dir, int64_t step, struct sl_err *err)
{
    char part[SL_CKPT_PATH], whole[SL_CKPT_PATH];

    if (sl_ckpt_part_path(dir, step, part, err) || sl_ckpt_path(dir, step, whole, err)
        || sl_ckpt_sync(part, err))
        return -1;
    if (rename(part, whole))
        return sl_fail(err, SL_SYSTEM, "rename \"%s\": %s", part, strerror(errno));
    if (sl_ckpt_sync(dir, err))
        return -1;
    if (snprintf(part, sizeof part, "%s/..", dir) < (int)sizeof part)
        sl_ckpt_sync(part, NULL); /* the folder may be new; who may not read the one above cannot */
    return 0;
}

/* Calls `each` for every step of a prefix; a folder that is absent has none. */
static int scan(const char *dir, const char *prefix, void (*each)(void *to, int64_t step), void *to,
                struct sl_err *err)
{
    DIR *d = opendir(dir);
    struct dirent *it;
    int rc = 0;

    if (!d && errno == ENOENT)
        return 0;
    if (!d)
        return sl_fail(err, SL_SYSTEM, "open folder \"%s\": %s", dir, strerror(errno));
    while (errno = 0, (it = readdir(d))) {
        int64_t step = step_of(it->d_name, prefix);

        if (step > 0)
            each(to, step);
    }
    if (errno)
        rc = sl_fail(err, SL_SYSTEM, "read folder \"%s\": %s", dir, strerror(errno));
    closedir(d);
    return rc;
}

struct search {
    const char *dir;
    int64_t below, newest, oldest, n;
};

static void look(void *to, int64_t step)
{
    struct search *s = to;

    if ((s->below && step >= s->below) || !complete(s->dir, step))
        return;
    s->n++;
    if (step > s->newest)
        s->newest = step;
    if (!s->oldest || step < s->oldest)
        s->oldest = step;
}

int sl_ckpt_newest(const char *dir, int64_t below, char ret[SL_CKPT_PATH], int64_t *step,
                   struct sl_err *err)
{
    struct search s = {.dir = dir, .below = below};

    *step = 0;
    ret[0] = '\0';
    if (scan(dir, step_, look, &s, err) || (s.newest && sl_ckpt_path(dir, s.newest, ret, err)))
        return -1;
    *step = s.newest;
    return 0;
}

/* Out of sight first: a checkpoint that is half removed must not look like one. */
static int discard(const char *dir, int64_t step, struct sl_err *err)
{
    char path[SL_CKPT_PATH], old[SL_CKPT_PATH];

    if (sl_ckpt_path(dir, step, path, err) || name(old, dir, old_, step, err))
        return -1;
    if (sl_fs_remove_tree(old, err))
        return -1;
    if (rename(path, old))
        return sl_fail(err, SL_SYSTEM, "rename \"%s\": %s", path, strerror(errno));
    return sl_fs_remove_tree(old, err);
}

int sl_ckpt_prune(const char *dir, int64_t keep, struct sl_err *err)
{
    if (keep < 1)
        return 0;
    for (;;) {
        struct search s = {.dir = dir};

        if (scan(dir, step_, look, &s, err))
            return -1;
        if (s.n <= keep)
            return 0;
        if (discard(dir, s.oldest, err))
            return -1;
    }
}

struct broom {
    const char *dir, *prefix;
    struct sl_err *err;
    int rc;
};

static void remove_one(void *to, int64_t step)
{
    struct broom *b = to;
    char path[SL_CKPT_PATH];

    if (!b->rc)
        b->rc = name(path, b->dir, b->prefix, step, b->err) || sl_fs_remove_tree(path, b->err) ? -1
                                                                                              : 0;
}

int sl_ckpt_sweep(const char *dir, struct sl_err *err)
{
    const char *const prefixes[] = {part_, old_};

    for (int i = 0; i < 2; i++) {
        struct broom b = {.dir = dir, .prefix = prefixes[i], .err = err};

        if (scan(dir, prefixes[i], remove_one, &b, err) || b.rc)
            return -1;
    }
    return 0;
}

int sl_ckpt_lock(const char *dir, int *ret, struct sl_err *err)
{
    char path[SL_CKPT_PATH + 8];
    int fd;

    if (sl_fs_mkdirs(dir, 0777, err))
        return sl_within(err, "the folder of checkpoints");
    snprintf(path, sizeof path, "%.*s/.lock", SL_CKPT_PATH, dir);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0 || access(dir, W_OK | X_OK)) { /* a lock of before says nothing about the folder */
        sl_fail(err, SL_SYSTEM, "cannot write checkpoints in \"%s\": %s", dir, strerror(errno));
        sl_hint(err, "Make it writable, or set checkpoint.dir to another folder.");
        goto fail;
    }
    if (flock(fd, LOCK_EX | LOCK_NB)) {
        if (errno == EWOULDBLOCK)
            sl_fail(err, SL_USAGE, "another run writes its checkpoints in \"%s\"", dir);
        else
            sl_fail(err, SL_SYSTEM, "cannot lock \"%s\": %s", path, strerror(errno));
        sl_hint(err, "Give each run a folder of its own: checkpoint.dir may hold {id} and {name}.");
        goto fail;
    }
    if (sl_ckpt_sweep(dir, err))
        goto fail;
    *ret = fd;
    return 0;
fail:
    if (fd >= 0)
        close(fd);
    return -1;
}
