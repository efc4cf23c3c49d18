/* saver.c - the thread that saves */
#include "executor/checkpoint/saver.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "common/fs.h"
#include "common/mem.h"
#include "executor/checkpoint/commit.h"
#include "executor/checkpoint/folder.h"
#include "executor/checkpoint/shard_file.h"

enum { LOOK_NS = 2000000, TOUCH_MS = 200 };
/* READ: the arena may change, the disk lags behind; WRITTEN: rank 0 still waits for the others */
enum stage { IDLE, READING, READ, WRITTEN, ENDED };

struct sl_saver {
    const struct sl_ckpt_conf *conf;
    const struct sl_job *job;
    const struct sl_program *program;
    struct sl_ckpt_layout layout;
    char **base;        /* by piece */
    unsigned char *buf; /* a chunk */
    struct sl_ctl *ctl;
    int rank, laid, running; /* running: there is a thread to join */
    int turn; /* 0 and 1, the same on all ranks: a peer can be one save ahead, but not two */
    pthread_t thread;
    _Atomic uint64_t progress;
    _Atomic int quit;
    struct sl_ckpt_at at;
    int64_t began, stall_ns;
    pthread_mutex_t lock; /* of the rest */
    pthread_cond_t change;
    enum stage stage;
    int told; /* poll has handed it out */
    struct sl_saved saved;
};

struct sl_saver *sl_saver_open(const struct sl_ckpt_conf *conf, const struct sl_job *job,
                               const struct sl_program *program, struct sl_err *err)
{
    struct sl_saver *s = sl_calloc(1, sizeof *s);
    pthread_condattr_t attr;

    if (!s) {
        sl_fail(err, SL_SYSTEM, "cannot hold a checkpoint's writer: %s", strerror(errno));
        return NULL;
    }
    s->conf = conf;
    s->job = job;
    s->program = program;
    s->told = 1;
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&s->change, &attr);
    pthread_condattr_destroy(&attr);
    return s;
}

static void stage(struct sl_saver *s, enum stage to)
{
    pthread_mutex_lock(&s->lock);
    s->stage = to;
    pthread_cond_broadcast(&s->change);
    pthread_mutex_unlock(&s->lock);
}

/* ---- the thread ---- */

static void mark(struct sl_saver *s, int ok)
{
    atomic_store(&s->ctl->r[s->rank].saved[s->turn], (uint64_t)s->saved.step << 1 | (uint64_t)ok);
}

/* Rank 0: all ranks have their shards on disk? 0: yes; else the first that has not, + 1. */
static int await_all(struct sl_saver *s)
{
    const struct timespec pause = {.tv_nsec = LOOK_NS};
    int bad = 0;

    for (int k = 0; k < s->program->ranks; k++) {
        uint64_t v;

        while ((v = atomic_load(&s->ctl->r[k].saved[s->turn])) >> 1 != (uint64_t)s->saved.step) {
            if (sl_ctl_failed(s->ctl) || atomic_load(&s->quit))
                return bad ? bad : k + 1;
            nanosleep(&pause, NULL);
        }
        if (!(v & 1) && !bad)
            bad = k + 1;
    }
    return bad;
}

static void remove_part(const struct sl_saver *s)
{
    char part[SL_CKPT_PATH];

    if (!sl_ckpt_part_path(s->conf->dir, s->saved.step, part, NULL))
        sl_fs_remove_tree(part, NULL);
}

static void say(struct sl_saver *s, const struct sl_err *err)
{
    s->saved.ok = err->code == SL_OK;
    if (!s->saved.ok)
        snprintf(s->saved.text, sizeof s->saved.text, "%s", err->msg);
}

static void commit(struct sl_saver *s)
{
    struct sl_err err = {0};
    int bad = await_all(s);

    if (bad && s->saved.ok) { /* it was another rank's shard */
        s->saved.ok = 0;
        snprintf(s->saved.text, sizeof s->saved.text, "rank %d did not write its shard", bad - 1);
    }
    if (!bad && sl_ckpt_commit(s->conf, s->job, s->program, &s->at, &s->saved.bytes,
                               s->saved.warning, &err))
        say(s, &err);
    if (!s->saved.ok)
        remove_part(s);
    else if (!sl_ckpt_path(s->conf->dir, s->saved.step, s->saved.text, NULL))
        atomic_store(&s->ctl->checkpoint, s->saved.step);
}

static void has_read(void *p)
{
    stage(p, READ);
}

static void *save(void *p)
{
    struct sl_saver *s = p;
    struct sl_err err = {0};
    struct sl_ckpt_shard shard = {.layout = &s->layout,
                                  .g = s->program->train,
                                  .base = s->base,
                                  .buf = s->buf,
                                  .progress = &s->progress,
                                  .quit = &s->quit,
                                  .read = has_read,
                                  .user = s};
    char part[SL_CKPT_PATH];

    if (!sl_ckpt_part_path(s->conf->dir, s->saved.step, part, &err)
        && !sl_fs_mkdirs(part, 0777, &err))
        sl_ckpt_shard_write(&shard, part, s->rank, &err);
    say(s, &err);
    mark(s, s->saved.ok);
    if (s->rank == 0) {
        stage(s, WRITTEN);
        commit(s);
    }
    s->saved.seconds = 1e-9 * (double)(sl_clock_ns() - s->began);
    stage(s, ENDED);
    return NULL;
}

/* ---- the training's side ---- */

/* Wait for at least `want`; a thread that gets on is a sign of life of this rank. */
static void await(struct sl_saver *s, struct sl_run *r, enum stage want)
{
    int64_t t0 = sl_clock_ns();
    uint64_t seen = atomic_load(&s->progress);

    pthread_mutex_lock(&s->lock);
    while (s->stage != IDLE && s->stage < want && !sl_ctl_failed(r->comm->ctl)) {
        struct timespec until;
        uint64_t now = atomic_load(&s->progress);

        if (now != seen)
            sl_ctl_touch(r->comm->ctl, r->comm->rank);
        seen = now;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += TOUCH_MS * 1000000L;
        if (until.tv_nsec >= 1000000000L) {
            until.tv_nsec -= 1000000000L;
            until.tv_sec++;
        }
        pthread_cond_timedwait(&s->change, &s->lock, &until);
    }
    pthread_mutex_unlock(&s->lock);
    s->stall_ns += sl_clock_ns() - t0;
}

static void join(struct sl_saver *s)
{
    if (s->running)
        pthread_join(s->thread, NULL);
    s->running = 0;
}

/* What depends on the arena: made by the first save. */
static int lay_out(struct sl_saver *s, struct sl_run *r, struct sl_err *err)
{
    if (s->laid)
        return 0;
    if (sl_ckpt_layout_init(&s->layout, s->program->train, s->rank, err))
        return -1;
    s->base = sl_calloc((size_t)s->layout.n + 1, sizeof *s->base);
    s->buf = sl_calloc(SL_CKPT_CHUNK, 1);
    if (!s->base || !s->buf) {
        free(s->base);
        free(s->buf);
        s->base = NULL;
        s->buf = NULL;
        sl_ckpt_layout_fini(&s->layout);
        return sl_fail(err, SL_SYSTEM, "no memory to write a checkpoint");
    }
    for (int i = 0; i < s->layout.n; i++) {
        const struct sl_ckpt_piece *p = &s->layout.v[i];

        s->base[i] = (char *)sl_run_at(r, p->tensor)
                     + p->at * sl_dtype_size(r->g->t[p->tensor].type);
    }
    s->laid = 1;
    return 0;
}

static int launch(struct sl_saver *s, struct sl_err *err)
{
    sigset_t all, old;
    int rc;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(&s->thread, NULL, save, s);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    s->running = !rc;
    return rc ? sl_fail(err, SL_SYSTEM, "no thread to write a checkpoint: %s", strerror(rc)) : 0;
}

void sl_saver_start(struct sl_saver *s, struct sl_run *r, int64_t step)
{
    struct sl_err err = {0};
    int64_t t0;

    s->ctl = r->comm->ctl;
    s->rank = r->comm->rank;
    if (s->running) {
        await(s, r, ENDED);
        join(s);
    }
    t0 = sl_clock_ns();
    s->began = t0;
    s->saved = (struct sl_saved){.step = step};
    s->at = (struct sl_ckpt_at){.step = step, .skipped = r->skipped, .bad_row = r->bad_row};
    s->told = 0;
    s->turn = !s->turn;
    s->stage = READING;
    if (lay_out(s, r, &err) || launch(s, &err)) {
        say(s, &err);
        mark(s, 0); /* the others shall not wait */
        s->stage = ENDED;
    }
    s->stall_ns = sl_clock_ns() - t0;
}

void sl_saver_settle(struct sl_saver *s, struct sl_run *r)
{
    await(s, r, READ);
}

void sl_saver_written(struct sl_saver *s, struct sl_run *r)
{
    await(s, r, WRITTEN);
}

int sl_saver_poll(struct sl_saver *s, struct sl_saved *ret)
{
    int over;

    pthread_mutex_lock(&s->lock);
    over = s->stage == ENDED && !s->told;
    pthread_mutex_unlock(&s->lock);
    if (!over)
        return 0;
    join(s);
    s->told = 1;
    s->saved.stall_ms = 1e-6 * (double)s->stall_ns;
    *ret = s->saved;
    return 1;
}

void sl_saver_finish(struct sl_saver *s, struct sl_run *r)
{
    await(s, r, ENDED);
}

void sl_saver_close(struct sl_saver *s)
{
    if (!s)
        return;
    atomic_store(&s->quit, 1);
    join(s);
    pthread_cond_destroy(&s->change);
    pthread_mutex_destroy(&s->lock);
    sl_ckpt_layout_fini(&s->layout);
    free(s->base);
    free(s->buf);
    free(s);
}
