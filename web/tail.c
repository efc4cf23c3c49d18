#include "web/tail.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/mem.h"
#include "store/jobs.h"

/* n bytes from `at`, fewer when the file ends. */
static int64_t read_at(int fd, char *p, int64_t n, int64_t at)
{
    int64_t got = 0;

    while (got < n) {
        ssize_t k = pread(fd, p + got, (size_t)(n - got), at + got);

        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return -1;
        if (k == 0)
            break;
        got += k;
    }
    return got;
}

static int read_part(int fd, const struct sl_tail_query *q, struct sl_buf *text, struct sl_tail *t,
                     struct sl_err *err)
{
    int64_t end = q->before > 0 && q->before < t->size ? q->before : t->size;
    int64_t after = q->before > 0 ? -1 : q->after, max = q->max, n, skip = 0;
    int64_t at = after < 0 ? end - max : after;
    char *p, *line;

    if (at < 0 || at > t->size)
        at = 0;
    if (after < 0 && end - at < max)
        max = end - at;
    p = sl_calloc(1, (size_t)max + 1);
    if (!p)
        return sl_fail(err, SL_SYSTEM, "cannot hold a log's end: %s", strerror(errno));
    n = read_at(fd, p, max, at);
    if (n < 0) {
        free(p);
        return sl_fail(err, SL_SYSTEM, "cannot read a log: %s", strerror(errno));
    }
    if (after < 0 && at > 0 && (line = memchr(p, '\n', (size_t)n)) && line + 1 < p + n)
        skip = line + 1 - p;
    sl_buf_add(text, p + skip, (size_t)(n - skip));
    free(p);
    t->offset = at + skip;
    t->end = at + n;
    return sl_buf_check(text, err);
}

int sl_tail_read(const struct sl_store *st, const struct sl_tail_query *q, struct sl_buf *text,
                 struct sl_tail *ret, struct sl_err *err)
{
    char dir[4096], path[4200];
    struct stat s;
    int fd, rc;

    if (q->max < 1 || q->max > SL_TAIL_MAX)
        return sl_fail(err, SL_USAGE, "bytes must be 1 to %d", SL_TAIL_MAX);
    if (sl_jobs_dir(st, q->job, dir, sizeof dir, err))
        return -1;
    snprintf(path, sizeof path, "%s/attempt-%lld/rank-%lld.log", dir, (long long)q->attempt,
             (long long)q->rank);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0 || fstat(fd, &s) || !S_ISREG(s.st_mode)) {
        sl_fail(err, SL_SYSTEM, "cannot read log \"%s\": %s", path,
                fd < 0 ? strerror(errno) : "it is no file");
        if (fd >= 0)
            close(fd);
        return -1;
    }
    *ret = (struct sl_tail){.size = s.st_size};
    rc = read_part(fd, q, text, ret, err);
    close(fd);
    return rc ? -1 : 1;
}
