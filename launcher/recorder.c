#include "launcher/recorder.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "common/mem.h"
#include "store/published.h"
#include "store/store.h"
#include "store/writer.h"

enum {
    QUEUE = 8192,      /* records, when the caller does not say */
    COMMIT_MS = 400,   /* leaves room for the commit itself within 0.5 s */
    RETRY_MS = 1000,   /* between two tries while the database does not work */
    TIMEOUT_MS = 2000, /* waiting for another writer's lock */
    CLOSE_MS = 5000,
    WARN_MS = 600000, /* a database that comes and goes is not told more often */
};

enum what { REPORT, RANK_END, RESUMED, NEXT };
enum { RESERVED = 16 }; /* places that only NEXT and RESUMED may take */

struct record {
    enum what what;
    union {
        struct sl_report report;
        struct {
            int rank, exit_status;
        } end;
        struct {
            int64_t step;
            char from[400];
        } resumed;
        struct {
            int exit_status;
            char reason[400];
        } next;
    } u;
};

/* The newest state that the agent told; those before it are history that events tell. */
struct state {
    int fresh, attempt;
    enum sl_state to;
    char reason[200];
};

/* Records in order. Only the owner of the lock (queue) or of the thread (batch) touches one. */
struct list {
    struct record *v;
    int64_t n;
};

struct sl_recorder {
    struct sl_store *st;
    struct sl_writer *writer;
    struct sl_lease me;
    int64_t job;
    pthread_t thread;
    int started;

    pthread_mutex_t lock; /* for all below */
    pthread_cond_t more;
    struct list queue;
    struct state state;
    int attempt; /* that callers are in; `writing` follows */
    int64_t max, stride, dropped, told, written, in_batch;
    int64_t oldest; /* monotonic ns when the first record of the queue came */
    int64_t warned; /* monotonic ns of the last warning */
    int stop, failing;
    char notice[600];

    struct list batch; /* the thread's own, and so are: */
    struct state moving;
    int writing, begun; /* attempt that rows go to; that the store knows */
    int64_t publish, rest; /* monotonic ns: publish what was written; not before. publish 0: nothing was */
};

/* A sample or a metric can be missed; everything else is news. */
static int thinnable(const struct record *r)
{
    return r->what == REPORT
           && (r->u.report.type == SL_REPORT_STEP || r->u.report.type == SL_REPORT_METRIC);
}

static int off_stride(const struct record *r, int64_t stride)
{
    return thinnable(r) && r->u.report.step % stride != 0;
}

/* Keep the samples of every second step of those that are left, until a quarter is free. */
static void thin(struct sl_recorder *r)
{
    while (r->queue.n > r->max - r->max / 4 && r->stride < (int64_t)1 << 32) {
        int64_t kept = 0;

        r->stride *= 2;
        for (int64_t i = 0; i < r->queue.n; i++)
            if (!off_stride(&r->queue.v[i], r->stride))
                r->queue.v[kept++] = r->queue.v[i];
        r->dropped += r->queue.n - kept;
        r->queue.n = kept;
    }
}

/* Called with the lock. */
static int put_locked(struct sl_recorder *r, const struct record *rec)
{
    int64_t room = rec->what == NEXT || rec->what == RESUMED ? r->max + RESERVED : r->max;
    int rc = -1;

    if (r->queue.n >= r->max)
        thin(r);
    if (r->queue.n < room && !off_stride(rec, r->stride)) {
        if (!r->queue.n)
            r->oldest = sl_clock_ns();
        r->queue.v[r->queue.n++] = *rec;
        if (r->queue.n == 1 || r->queue.n == r->max / 2)
            pthread_cond_signal(&r->more);
        rc = 0;
    } else {
        r->dropped++;
    }
    return rc;
}

static int put(struct sl_recorder *r, const struct record *rec)
{
    int rc;

    pthread_mutex_lock(&r->lock);
    rc = put_locked(r, rec);
    pthread_mutex_unlock(&r->lock);
    return rc;
}

/* Text that crossed a process border may have lost its NUL. */
#define CLOSE(text) ((text)[sizeof(text) - 1] = '\0')

int sl_recorder_put(struct sl_recorder *r, const struct sl_report *rep)
{
    struct record rec = {.what = REPORT};

    rec.u.report = *rep;
    if (rep->rank < 0 || rep->rank >= SL_RECORDER_RANKS || rep->step < 0)
        goto bad;
    if (!isfinite(rec.u.report.time)) /* a row needs one */
        rec.u.report.time = sl_clock_real();
    switch (rep->type) {
    case SL_REPORT_HELLO:
        CLOSE(rec.u.report.u.hello.host);
        CLOSE(rec.u.report.u.hello.device);
        break;
    case SL_REPORT_STEP:
        CLOSE(rec.u.report.u.step_.unit);
        break;
    case SL_REPORT_MEMORY:
        CLOSE(rec.u.report.u.memory.category);
        break;
    case SL_REPORT_METRIC:
        CLOSE(rec.u.report.u.metric.name);
        break;
    case SL_REPORT_EVENT:
        CLOSE(rec.u.report.u.event.kind);
        CLOSE(rec.u.report.u.event.message);
        break;
    default:
        goto bad;
    }
    return put(r, &rec);
bad:
    pthread_mutex_lock(&r->lock);
    r->dropped++;
    r->told++; /* no fault of the database */
    pthread_mutex_unlock(&r->lock);
    return -1;
}

static void make_event(struct record *rec, int rank, const char *kind)
{
    memset(rec, 0, sizeof *rec);
    rec->what = REPORT;
    rec->u.report.type = SL_REPORT_EVENT;
    rec->u.report.rank = rank < 0 ? -1 : rank;
    rec->u.report.time = sl_clock_real();
    snprintf(rec->u.report.u.event.kind, sizeof rec->u.report.u.event.kind, "%s", kind);
}

void sl_recorder_event(struct sl_recorder *r, int rank, const char *kind, const char *fmt, ...)
{
    struct record rec;
    va_list ap;

    make_event(&rec, rank, kind);
    va_start(ap, fmt);
    vsnprintf(rec.u.report.u.event.message, sizeof rec.u.report.u.event.message, fmt, ap);
    va_end(ap);
    put(r, &rec);
}

void sl_recorder_rank_end(struct sl_recorder *r, int rank, int exit_status)
{
    struct record rec = {.what = RANK_END, .u.end = {rank, exit_status}};

    put(r, &rec);
}

void sl_recorder_resumed(struct sl_recorder *r, int64_t step, const char *from)
{
    struct record rec = {.what = RESUMED, .u.resumed = {.step = step}};

    snprintf(rec.u.resumed.from, sizeof rec.u.resumed.from, "%s", from);
    put(r, &rec);
}

int sl_recorder_next(struct sl_recorder *r, int exit_status, const char *reason)
{
    struct record rec = {.what = NEXT, .u.next = {.exit_status = exit_status}};
    int rc;

    snprintf(rec.u.next.reason, sizeof rec.u.next.reason, "%s", reason);
    pthread_mutex_lock(&r->lock);
    rc = put_locked(r, &rec);
    if (!rc) {
        r->attempt++;
        r->state.fresh = 0; /* it was about the attempt that is over */
    }
    pthread_mutex_unlock(&r->lock);
    return rc;
}

void sl_recorder_state(struct sl_recorder *r, enum sl_state state, const char *reason)
{
    pthread_mutex_lock(&r->lock);
    r->state.fresh = 1;
    r->state.attempt = r->attempt;
    r->state.to = state;
    snprintf(r->state.reason, sizeof r->state.reason, "%s", reason ? reason : "");
    pthread_cond_signal(&r->more);
    pthread_mutex_unlock(&r->lock);
}

int sl_recorder_notice(struct sl_recorder *r, char *ret, size_t size)
{
    int any;

    pthread_mutex_lock(&r->lock);
    any = r->notice[0] != '\0';
    if (any)
        snprintf(ret, size, "%s", r->notice);
    r->notice[0] = '\0';
    pthread_mutex_unlock(&r->lock);
    return any;
}

void sl_recorder_count(struct sl_recorder *r, struct sl_recorder_count *ret)
{
    pthread_mutex_lock(&r->lock);
    *ret = (struct sl_recorder_count){r->written, r->dropped, r->queue.n + r->in_batch};
    pthread_mutex_unlock(&r->lock);
}

int sl_recorder_attempt(struct sl_recorder *r)
{
    int n;

    pthread_mutex_lock(&r->lock);
    n = r->attempt;
    pthread_mutex_unlock(&r->lock);
    return n;
}

static int write_report(struct sl_recorder *r, const struct sl_report *p, struct sl_err *err)
{
    struct sl_sample s;

    switch (p->type) {
    case SL_REPORT_HELLO:
        return sl_writer_rank(r->writer, p->rank, p->u.hello.host, p->u.hello.pid,
                              p->u.hello.device, err);
    case SL_REPORT_STEP:
        s = (struct sl_sample){
            .rank = p->rank,
            .step = p->step,
            .time = p->time,
            .units = p->u.step_.units,
            .unit = p->u.step_.unit,
            .step_ms = p->u.step_.step_ms,
            .comm_ms = p->u.step_.comm_ms,
            .data_ms = p->u.step_.data_ms,
            .loss = p->u.step_.loss,
        };
        return sl_writer_sample(r->writer, &s, err);
    case SL_REPORT_MEMORY:
        return sl_writer_memory(r->writer, p->rank, p->step, p->u.memory.category,
                                p->u.memory.bytes, p->u.memory.peak_bytes, err);
    case SL_REPORT_METRIC:
        return sl_writer_metric(r->writer, p->step, p->time, p->u.metric.name, p->u.metric.value,
                                err);
    default:
        return sl_writer_event(r->writer, p->rank, p->time, p->u.event.kind, p->u.event.message,
                               err);
    }
}

static int write_row(struct sl_recorder *r, const struct record *rec, struct sl_err *err)
{
    switch (rec->what) {
    case REPORT:
        return write_report(r, &rec->u.report, err);
    case RANK_END:
        return sl_writer_rank_end(r->writer, rec->u.end.rank, rec->u.end.exit_status, err);
    case RESUMED:
        return sl_writer_resumed(r->writer, rec->u.resumed.step, rec->u.resumed.from, err);
    case NEXT:
        break;
    }
    return sl_fail(err, SL_BUG, "a record without a row");
}

/*
 * The first n rows of the batch in one transaction; they stay in memory when that fails. A record that
 * the database refuses for what it says would be refused for ever: it is left out, the others go on.
 */
static int write_rows(struct sl_recorder *r, int64_t n, struct sl_err *err)
{
    struct sl_err why = {0};
    int64_t refused = 0;

    if (sl_writer_begin(r->writer, err))
        return -1;
    for (int64_t i = 0; i < n; i++) {
        int rc = write_row(r, &r->batch.v[i], err);

        if (rc && err->code == SL_BUG) {
            why = *err;
            refused++;
        } else if (rc) {
            sl_writer_rollback(r->writer);
            return -1;
        }
    }
    if (sl_writer_commit(r->writer, err))
        return -1;
    if (refused)
        sl_recorder_event(r, -1, "recorder", "%lld records were refused: %s", (long long)refused,
                          why.msg);
    return 0;
}

static void drop_front(struct sl_recorder *r, int64_t n)
{
    memmove(r->batch.v, r->batch.v + n, (size_t)(r->batch.n - n) * sizeof *r->batch.v);
    pthread_mutex_lock(&r->lock);
    r->written += n;
    r->batch.n -= n;
    r->in_batch = r->batch.n;
    pthread_mutex_unlock(&r->lock);
}

/* The first record of the batch is a NEXT: two steps, each done once. */
static int write_next(struct sl_recorder *r, struct sl_err *err)
{
    const struct record *rec = &r->batch.v[0];

    if (r->begun == r->writing
        && sl_jobs_next(r->st, r->job, &r->me, rec->u.next.exit_status, rec->u.next.reason,
                        &r->begun, err))
        return -1;
    if (sl_writer_attempt(r->writer, r->begun, err))
        return -1;
    r->writing = r->begun;
    return 0;
}

/* What is written leaves the batch, attempt by attempt. */
static int write_all(struct sl_recorder *r, struct sl_err *err)
{
    while (r->batch.n) {
        int64_t n = 0;

        while (n < r->batch.n && r->batch.v[n].what != NEXT)
            n++;
        if (n ? write_rows(r, n, err) : write_next(r, err))
            return -1;
        drop_front(r, n ? n : 1);
    }
    return 0;
}

/* Leave a line for the agent, at most one in ten minutes unless it is the first of its kind. */
static void warn(struct sl_recorder *r, const struct sl_err *err, const char *then)
{
    int64_t now = sl_clock_ns();

    pthread_mutex_lock(&r->lock);
    if (!r->warned || now - r->warned > (int64_t)WARN_MS * 1000000) {
        snprintf(r->notice, sizeof r->notice, "cannot record this run: %s; %s", err->msg, then);
        r->warned = now;
    }
    pthread_mutex_unlock(&r->lock);
}

/* -1: try again. A state that is not ours to set is told and let go: rows are still written. */
static int write_state(struct sl_recorder *r, struct sl_err *err)
{
    if (r->moving.fresh && r->moving.attempt > r->writing)
        return 0; /* its rows come first */
    if (r->moving.fresh && r->moving.attempt == r->writing
        && sl_jobs_move(r->st, r->job, &r->me, r->moving.to, r->moving.reason, err)) {
        if (err->code != SL_USAGE)
            return -1;
        warn(r, err, "its rows are still written");
    }
    r->moving.fresh = 0;
    return 0;
}

static void wrote(struct sl_recorder *r)
{
    int64_t lost;

    pthread_mutex_lock(&r->lock);
    r->failing = 0;
    r->stride = 1;
    lost = r->dropped - r->told;
    r->told = r->dropped;
    pthread_mutex_unlock(&r->lock);
    if (lost)
        sl_recorder_event(r, -1, "recorder",
                          "%lld records were dropped: the database was busy, full or too slow",
                          (long long)lost);
}

/* One try. Rows and state are two transactions; rows that come twice are ignored by the store. */
static int write_batch(struct sl_recorder *r)
{
    struct sl_err err = {0};

    if (write_state(r, &err) || write_all(r, &err) || write_state(r, &err)) {
        warn(r, &err, "it goes on: events are kept in memory, samples are thinned");
        pthread_mutex_lock(&r->lock);
        r->failing = 1;
        pthread_mutex_unlock(&r->lock);
        return -1;
    }
    wrote(r);
    return 0;
}

static void wait_until(struct sl_recorder *r, int64_t ns)
{
    struct timespec t = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

    pthread_cond_timedwait(&r->more, &r->lock, &t); /* the condition uses the monotonic clock */
}

/* Sleep until there is something to write or to stop for. Called and left with the lock. */
static void wait_for_work(struct sl_recorder *r)
{
    int64_t retry = sl_clock_ns() + (int64_t)RETRY_MS * 1000000;

    if (r->failing) {
        while (!r->stop && sl_clock_ns() < retry)
            wait_until(r, retry);
        return;
    }
    while (!r->stop && !r->queue.n && !r->state.fresh) {
        if (!r->publish)
            pthread_cond_wait(&r->more, &r->lock);
        else if (sl_clock_ns() < r->publish)
            wait_until(r, r->publish);
        else
            return;
    }
    while (!r->stop && !r->state.fresh && r->queue.n < r->max / 2
           && sl_clock_ns() < r->oldest + (int64_t)COMMIT_MS * 1000000)
        wait_until(r, r->oldest + (int64_t)COMMIT_MS * 1000000);
}

/* Hand over to the thread: the state, and the queue when the last batch is written. */
static void take(struct sl_recorder *r)
{
    struct list empty = r->batch;

    if (r->state.fresh)
        r->moving = r->state;
    r->state.fresh = 0;
    if (r->batch.n)
        return;
    r->batch = r->queue;
    r->queue = empty;
    r->in_batch = r->batch.n;
}

/* Where rows are published; a failure is told, and tried again when it is due again. */
static void publish(struct sl_recorder *r, int wrote_some)
{
    int64_t begun = sl_clock_ns();
    struct sl_err err = {0};

    if (!sl_published_is(r->st))
        return;
    if (r->publish && begun >= r->publish) {
        int bad = sl_published_write(r->st, r->job, &err);

        if (bad)
            warn(r, &err, "it is not published, and tried again");
        r->rest = sl_published_next(begun, sl_clock_ns());
        r->publish = bad ? r->rest : 0;
    } else if (wrote_some && !r->publish) {
        r->publish = r->rest;
    }
}

static void *work(void *arg)
{
    struct sl_recorder *r = arg;
    int64_t deadline = 0;
    int done = 0, some, bad;

    while (!done) {
        pthread_mutex_lock(&r->lock);
        wait_for_work(r);
        if (r->stop && !deadline)
            deadline = sl_clock_ns() + (int64_t)CLOSE_MS * 1000000;
        take(r);
        pthread_mutex_unlock(&r->lock);
        some = r->batch.n > 0 || r->moving.fresh;
        bad = write_batch(r);
        publish(r, some);
        if (bad && deadline)
            sl_clock_sleep_until(sl_clock_ns() + 100000000);
        pthread_mutex_lock(&r->lock);
        done = deadline /* a stop that came while we wrote is seen in the next turn */
               && (!(r->queue.n + r->batch.n + r->state.fresh + r->moving.fresh)
                   || sl_clock_ns() > deadline);
        pthread_mutex_unlock(&r->lock);
    }
    return NULL;
}

static void destroy(struct sl_recorder *r)
{
    sl_writer_destroy(r->writer);
    sl_store_close(r->st);
    free(r->queue.v);
    free(r->batch.v);
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->more);
    free(r);
}

/* Signals are the agent's: the thread takes none. */
static int start(struct sl_recorder *r, struct sl_err *err)
{
    sigset_t all, old;
    int rc;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(&r->thread, NULL, work, r);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc)
        return sl_fail(err, SL_SYSTEM, "cannot start the recorder's thread: %s", strerror(rc));
    return 0;
}

struct sl_recorder *sl_recorder_open(const struct sl_recorder_conf *conf, struct sl_err *err)
{
    struct sl_recorder *r = sl_calloc(1, sizeof *r);
    pthread_condattr_t attr;

    if (!r) {
        sl_fail(err, SL_SYSTEM, "cannot hold a recorder: %s", strerror(errno));
        return NULL;
    }
    pthread_mutex_init(&r->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&r->more, &attr);
    pthread_condattr_destroy(&attr);
    r->job = conf->job;
    r->stride = 1;
    r->max = conf->queue ? conf->queue : QUEUE;
    r->queue.v = sl_calloc((size_t)r->max + RESERVED, sizeof *r->queue.v);
    r->batch.v = sl_calloc((size_t)r->max + RESERVED, sizeof *r->batch.v);
    if (!r->queue.v || !r->batch.v) {
        sl_fail(err, SL_SYSTEM, "cannot hold the recorder's queue: %s", strerror(errno));
        goto fail;
    }
    if (sl_lease_self(&r->me, err) || !(r->st = sl_store_open(conf->db, SL_STORE_WRITE, err))
        || sl_jobs_begin(r->st, r->job, &r->me, conf->from, &r->attempt, err)
        || !(r->writer = sl_writer_create(r->st, r->job, r->attempt, err)))
        goto fail;
    r->writing = r->begun = r->attempt;
    r->rest = 1; /* the first rows are published at once */
    sl_store_timeout(r->st, TIMEOUT_MS);
    if (start(r, err))
        goto fail;
    return r;
fail:
    destroy(r);
    return NULL;
}

static int64_t finish(struct sl_recorder *r)
{
    pthread_mutex_lock(&r->lock);
    r->stop = 1;
    pthread_cond_signal(&r->more);
    pthread_mutex_unlock(&r->lock);
    pthread_join(r->thread, NULL);
    return r->queue.n + r->batch.n;
}

int sl_recorder_close(struct sl_recorder *r, enum sl_state state, int exit_status,
                      const char *reason, struct sl_err *err)
{
    int64_t left = finish(r);
    int rc = sl_jobs_end(r->st, r->job, &r->me, state, exit_status, reason, err);

    if (!rc && left)
        rc = sl_fail(err, SL_SYSTEM, "%lld records of job %lld could not be written%s%s",
                     (long long)left, (long long)r->job, r->notice[0] ? ": " : "",
                     r->notice); /* the last flush may be the first to fail: nobody was told why */
    destroy(r);
    return rc;
}

void sl_recorder_drop(struct sl_recorder *r)
{
    finish(r);
    destroy(r);
}
