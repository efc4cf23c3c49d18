#include "web/stream.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "common/mem.h"
#include "web/view.h"

enum { LOOK_MS = 250, BEAT_MS = 10000, EVENTS_AT_ONCE = 50, BLOCK = 4096 };

struct stream {
    struct sl_streams *all;
    struct stream *next, **link;
    struct MHD_Connection *c;
    int64_t after;        /* id of the last event that was put into buf */
    int64_t change, beat; /* what it has told of the ticker's counts */
    struct sl_buf buf;    /* text to send */
    int told;             /* that the server closes */
    int asleep;           /* under the lock */
};

struct sl_streams {
    struct sl_store *st;   /* daemon's thread */
    struct sl_store *look; /* ticker's */
    pthread_t ticker;
    int ticking;

    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct stream *list;
    int64_t n, change, beat; /* counts of commits seen and of heartbeats */
    int closing, stop;
};

/* With the lock. */
static void rouse(struct sl_streams *s)
{
    for (struct stream *t = s->list; t; t = t->next)
        if (t->asleep) {
            t->asleep = 0;
            MHD_resume_connection(t->c);
        }
}

static void *tick(void *arg)
{
    struct sl_streams *s = arg;
    int64_t seen = sl_read_version(s->look), now, next_beat = 0;
    struct timespec t;

    pthread_mutex_lock(&s->lock);
    while (!s->stop) {
        int64_t version;

        now = sl_clock_ns() + (int64_t)LOOK_MS * 1000000;
        t = (struct timespec){(time_t)(now / 1000000000), (long)(now % 1000000000)};
        pthread_cond_timedwait(&s->wake, &s->lock, &t);
        pthread_mutex_unlock(&s->lock);
        version = sl_read_version(s->look);
        pthread_mutex_lock(&s->lock);
        if (version != seen && version >= 0) {
            seen = version;
            s->change++;
            rouse(s);
        }
        if (sl_clock_ns() > next_beat) {
            next_beat = sl_clock_ns() + (int64_t)BEAT_MS * 1000000;
            s->beat++;
            rouse(s);
        }
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static int put_event(void *u, const struct sl_event_row *e)
{
    struct stream *t = u;
    struct sl_json j;

    sl_buf_printf(&t->buf, "id: %lld\nevent: event\ndata: ", (long long)e->id);
    sl_json_init(&j, &t->buf);
    sl_view_event(e, &j);
    sl_buf_str(&t->buf, "\n\n");
    t->after = e->id;
    return 0;
}

/* New text into an empty buffer, as of the given counts. */
static int fill(struct stream *t, int64_t change, int64_t beat, int closing)
{
    if (change != t->change
        && sl_read_events(t->all->st, 0, t->after, EVENTS_AT_ONCE, put_event, t, NULL))
        return -1;
    if (change != t->change && !t->buf.len) {
        sl_buf_str(&t->buf, "event: change\ndata: {}\n\n");
        t->change = change;
    }
    if (closing && !t->told && !t->buf.len) {
        sl_buf_str(&t->buf, "event: closing\ndata: {}\n\n");
        t->told = 1;
    }
    if (beat != t->beat && !t->buf.len)
        sl_buf_str(&t->buf, ": still here\n\n");
    t->beat = beat;
    return sl_buf_check(&t->buf, NULL);
}

/* MHD's thread asks for text. 0 only when asleep: the ticker wakes it when there may be more. */
static ssize_t feed(void *cls, uint64_t pos, char *out, size_t max)
{
    struct stream *t = cls;
    struct sl_streams *s = t->all;
    size_t n;

    (void)pos;
    while (!t->buf.len) {
        int64_t change, beat;
        int closing;

        pthread_mutex_lock(&s->lock);
        if (s->stop) {
            pthread_mutex_unlock(&s->lock);
            return MHD_CONTENT_READER_END_OF_STREAM;
        }
        change = s->change;
        beat = s->beat;
        closing = s->closing;
        if (change == t->change && beat == t->beat && (!closing || t->told)) {
            t->asleep = 1;
            MHD_suspend_connection(t->c);
            pthread_mutex_unlock(&s->lock);
            return 0;
        }
        pthread_mutex_unlock(&s->lock);
        if (fill(t, change, beat, closing))
            return MHD_CONTENT_READER_END_WITH_ERROR;
    }
    n = t->buf.len < max ? t->buf.len : max;
    memcpy(out, t->buf.p, n);
    sl_buf_drop(&t->buf, n);
    return (ssize_t)n;
}

static void gone(void *cls)
{
    struct stream *t = cls;

    pthread_mutex_lock(&t->all->lock);
    *t->link = t->next;
    if (t->next)
        t->next->link = t->link;
    t->all->n--;
    pthread_mutex_unlock(&t->all->lock);
    sl_buf_fini(&t->buf);
    free(t);
}

int sl_streams_full(struct sl_streams *s)
{
    int full;

    pthread_mutex_lock(&s->lock);
    full = s->n >= SL_STREAMS;
    pthread_mutex_unlock(&s->lock);
    return full;
}

enum MHD_Result sl_streams_add(struct sl_streams *s, struct MHD_Connection *c, int64_t after,
                               const char *const headers[][2])
{
    struct stream *t = sl_calloc(1, sizeof *t);
    struct MHD_Response *r;
    enum MHD_Result rc;
    int64_t last;

    if (!t)
        return MHD_NO;
    t->all = s;
    t->c = c;
    last = sl_read_last_event(s->st, NULL);
    t->after = after >= 0 && after < last ? after : last; /* an id from another store: as new */
    t->change = -1; /* says at once what has changed since the client looked */
    sl_buf_init(&t->buf, 1 << 20);
    sl_buf_str(&t->buf, "retry: 2000\n\n");
    r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, feed, t, gone);
    if (!r) {
        sl_buf_fini(&t->buf);
        free(t);
        return MHD_NO;
    }
    pthread_mutex_lock(&s->lock);
    t->next = s->list;
    if (t->next)
        t->next->link = &t->next;
    t->link = &s->list;
    s->list = t;
    s->n++;
    pthread_mutex_unlock(&s->lock);
    MHD_add_response_header(r, "Content-Type", "text/event-stream");
    for (int i = 0; headers[i][0]; i++)
        MHD_add_response_header(r, headers[i][0], headers[i][1]);
    rc = MHD_queue_response(c, 200, r);
    MHD_destroy_response(r);
    return rc;
}

static int start_ticker(struct sl_streams *s, struct sl_err *err)
{
    sigset_t all, old;
    int rc;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(&s->ticker, NULL, tick, s);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc)
        return sl_fail(err, SL_SYSTEM, "cannot start a thread: %s", strerror(rc));
    s->ticking = 1;
    return 0;
}

struct sl_streams *sl_streams_create(struct sl_store *st, const char *db, struct sl_err *err)
{
    struct sl_streams *s = sl_calloc(1, sizeof *s);
    pthread_condattr_t attr;

    if (!s) {
        sl_fail(err, SL_SYSTEM, "cannot hold the streams: %s", strerror(errno));
        return NULL;
    }
    s->st = st;
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&s->wake, &attr);
    pthread_condattr_destroy(&attr);
    s->look = sl_store_open(db, SL_STORE_READ, err);
    if (!s->look || start_ticker(s, err)) {
        sl_streams_destroy(s);
        return NULL;
    }
    return s;
}

int64_t sl_streams_say_closing(struct sl_streams *s)
{
    int64_t n;

    pthread_mutex_lock(&s->lock);
    s->closing = 1;
    s->change++; /* whatever the ticker has not seen yet */
    n = s->n;
    rouse(s);
    pthread_mutex_unlock(&s->lock);
    return n;
}

void sl_streams_stop(struct sl_streams *s)
{
    if (!s->ticking)
        return;
    pthread_mutex_lock(&s->lock);
    s->stop = 1;
    pthread_cond_signal(&s->wake);
    rouse(s);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->ticker, NULL);
    s->ticking = 0;
}

void sl_streams_destroy(struct sl_streams *s)
{
    if (!s)
        return;
    sl_streams_stop(s);
    sl_store_close(s->look);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->wake);
    free(s);
}
