/* scratch.c - temporary folders: make, lock, remove, sweep */
#include "launcher/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/fs.h"
#include "common/mem.h"

#define PREFIX "shardlaunch-"
enum { YOUNG_S = 10, MAX_ENV = 1 << 18 }; /* a younger folder may not be locked yet */

static const char *base(void)
{
    const char *s = getenv("TMPDIR");

    return s && s[0] == '/' ? s : "/tmp";
}

int sl_scratch_open(struct sl_scratch *s, struct sl_err *err)
{
    s->lock = -1;
    if (strlen(base()) > 80) {
        sl_fail(err, SL_SYSTEM, "TMPDIR \"%s\" is longer than 80 characters", base());
        return sl_hint(err, "Set TMPDIR to a shorter path.");
    }
    snprintf(s->path, sizeof s->path, "%.80s/" PREFIX "XXXXXX", base());
    if (!mkdtemp(s->path))
        return sl_fail(err, SL_SYSTEM, "cannot make a folder in \"%s\": %s", base(),
                       strerror(errno));
    s->name = strrchr(s->path, '/') + 1;
    s->lock = open(s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->lock < 0 || flock(s->lock, LOCK_EX)) {
        sl_fail(err, SL_SYSTEM, "cannot lock \"%s\": %s", s->path, strerror(errno));
        rmdir(s->path);
        return -1;
    }
    return 0;
}

void sl_scratch_remove(const struct sl_scratch *s)
{
    if (s->path[0])
        sl_fs_remove_tree(s->path, NULL);
}

/* A namespace is the folder's name, a dot, the attempt. */
static void kill_marked(const char *name)
{
    char want[160], path[300], *env = sl_calloc(1, MAX_ENV);
    size_t w = (size_t)snprintf(want, sizeof want, "PMIX_NAMESPACE=%s.", name);
    DIR *d = opendir("/proc");
    struct dirent *e;

    while (env && d && (e = readdir(d))) {
        int pid = atoi(e->d_name), fd;
        ssize_t n;

        if (pid <= 1 || pid == getpid())
            continue;
        snprintf(path, sizeof path, "/proc/%d/environ", pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            continue;
        n = read(fd, env, MAX_ENV);
        close(fd);
        if (n > 0 && memmem(env, (size_t)n, want, w))
            kill(pid, SIGKILL);
    }
    if (d)
        closedir(d);
    free(env);
}

int sl_scratch_sweep(void)
{
    DIR *d = opendir(base());
    struct dirent *e;
    int n = 0;

    while (d && (e = readdir(d))) {
        struct sl_scratch s;
        struct stat st;

        if (strncmp(e->d_name, PREFIX, strlen(PREFIX)) || strlen(e->d_name) != strlen(PREFIX) + 6
            || snprintf(s.path, sizeof s.path, "%s/%s", base(), e->d_name) >= (int)sizeof s.path)
            continue;
        s.lock = openat(dirfd(d), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (s.lock < 0)
            continue;
        if (fstat(s.lock, &st) == 0 && st.st_uid == geteuid() && time(NULL) - st.st_mtime >= YOUNG_S
            && flock(s.lock, LOCK_EX | LOCK_NB) == 0) {
            kill_marked(e->d_name);
            sl_scratch_remove(&s);
            n++;
        }
        close(s.lock);
    }
    if (d)
        closedir(d);
    return n;
}
