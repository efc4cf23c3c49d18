/* logs.c - the ranks' output: read pipes, write log files, keep the last lines */
#include "launcher/logs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/mem.h"
#include "launcher/lines.h"

enum { PIECE = 65536, READS = 4 };

struct rank_log {
    struct sl_logs *all;
    int rank, file, fd[SL_LOG_STREAMS];
    struct sl_lines lines[SL_LOG_STREAMS];
    char tail[SL_LOG_TAIL][SL_LOG_TAIL_WIDTH];
    int ntail; /* lines seen; the ring's next place is ntail % SL_LOG_TAIL */
};

struct sl_logs {
    int ranks, trouble, told;
    sl_logs_f show;
    void *user;
    char out[PIECE + 2 * SL_LINE_MAX]; /* lines of one read: a piece and what was kept before it */
    size_t nout;
    struct rank_log r[];
};

static void flush(struct sl_logs *l, struct rank_log *r)
{
    size_t done = 0;

    while (done < l->nout && r->file >= 0) {
        ssize_t k = write(r->file, l->out + done, l->nout - done);

        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0) {
            l->trouble = errno;
            break;
        }
        done += (size_t)k;
    }
    l->nout = 0;
}

static void on_line(void *user, const char *text, size_t n)
{
    struct rank_log *r = user;
    struct sl_logs *l = r->all;
    char *keep = r->tail[r->ntail++ % SL_LOG_TAIL];
    size_t k = n < SL_LOG_TAIL_WIDTH - 1 ? n : SL_LOG_TAIL_WIDTH - 1;

    for (size_t i = 0; i < k; i++)
        keep[i] = (unsigned char)text[i] < ' ' || text[i] == 127 ? ' ' : text[i];
    keep[k] = '\0';
    if (l->nout + n + 1 > sizeof l->out)
        flush(l, r);
    memcpy(l->out + l->nout, text, n);
    l->out[l->nout + n] = '\n';
    l->nout += n + 1;
    if (l->show)
        l->show(l->user, r->rank, text, n);
}

struct sl_logs *sl_logs_open(const char *folder, int ranks, sl_logs_f show, void *user,
                             struct sl_err *err)
{
    struct sl_logs *l = sl_calloc(1, sizeof *l + (size_t)ranks * sizeof l->r[0]);
    char path[4096];

    if (!l) {
        sl_fail(err, SL_SYSTEM, "cannot hold the ranks' logs: %s", strerror(errno));
        return NULL;
    }
    l->ranks = ranks;
    l->show = show;
    l->user = user;
    for (int i = 0; i < ranks; i++) {
        l->r[i] = (struct rank_log){.all = l, .rank = i, .file = -1, .fd = {-1, -1}};
    }
    for (int i = 0; folder && i < ranks; i++) {
        if (snprintf(path, sizeof path, "%s/rank-%d.log", folder, i) < (int)sizeof path)
            l->r[i].file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
        if (l->r[i].file < 0) {
            sl_fail(err, SL_SYSTEM, "cannot write \"%s\": %s", path, strerror(errno));
            sl_logs_close(l);
            return NULL;
        }
    }
    return l;
}

void sl_logs_close(struct sl_logs *l)
{
    if (!l)
        return;
    for (int i = 0; i < l->ranks; i++) {
        sl_logs_finish(l, i);
        if (l->r[i].file >= 0)
            close(l->r[i].file);
    }
    free(l);
}

int sl_logs_attach(struct sl_logs *l, int rank, int stream, int fd, struct sl_err *err)
{
    if (fcntl(fd, F_SETFL, O_NONBLOCK))
        return sl_fail(err, SL_SYSTEM, "cannot read a rank's output: %s", strerror(errno));
    l->r[rank].fd[stream] = fd;
    return 0;
}

int sl_logs_fd(const struct sl_logs *l, int rank, int stream)
{
    return l->r[rank].fd[stream];
}

static void end_stream(struct sl_logs *l, struct rank_log *r, int stream)
{
    sl_lines_end(&r->lines[stream], on_line, r);
    flush(l, r);
    close(r->fd[stream]);
    r->fd[stream] = -1;
}

void sl_logs_read(struct sl_logs *l, int rank, int stream)
{
    struct rank_log *r = &l->r[rank];
    char data[PIECE];

    for (int i = 0; i < READS && r->fd[stream] >= 0; i++) {
        ssize_t k = read(r->fd[stream], data, sizeof data);

        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0 && errno == EAGAIN)
            break;
        if (k <= 0) {
            end_stream(l, r, stream);
            return;
        }
        sl_lines_push(&r->lines[stream], data, (size_t)k, on_line, r);
    }
    flush(l, r);
}

void sl_logs_line(struct sl_logs *l, int rank, const char *text, size_t n)
{
    on_line(&l->r[rank], text, n < SL_LINE_MAX ? n : SL_LINE_MAX);
    flush(l, &l->r[rank]);
}

void sl_logs_finish(struct sl_logs *l, int rank)
{
    for (int s = 0; s < SL_LOG_STREAMS; s++) {
        sl_logs_read(l, rank, s);  /* a pipe holds less than the pieces of one call */
        if (l->r[rank].fd[s] >= 0) /* a grandchild may hold the other end */
            end_stream(l, &l->r[rank], s);
    }
}

const char *sl_logs_tail(const struct sl_logs *l, int rank, int i)
{
    const struct rank_log *r = &l->r[rank];
    int n = r->ntail < SL_LOG_TAIL ? r->ntail : SL_LOG_TAIL;

    return i < n ? r->tail[(r->ntail - n + i) % SL_LOG_TAIL] : NULL;
}

int sl_logs_trouble(struct sl_logs *l)
{
    if (l->told || !l->trouble)
        return 0;
    l->told = 1;
    return l->trouble;
}
