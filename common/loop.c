#include "common/loop.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"

enum { BATCH = 64, MOST_FDS = 1 << 20, SIGNALS = 65 };

struct watch {
    sl_loop_fd_f f; /* NULL: not watched */
    void *u;
    uint32_t age; /* grows at every add: an event of an older one is stale */
};

struct timer {
    int64_t id, due, every;
    sl_loop_timer_f f;
    void *u;
};

struct sl_loop {
    int epoll, signals, stop;
    uint32_t age;
    struct watch *watches; /* by descriptor */
    int n_watches;
    struct timer *timers;
    int n_timers, room_timers;
    int64_t next_id;
    sigset_t watched, before;
    struct {
        sl_loop_signal_f f;
        void *u;
    } on_signal[SIGNALS];
};

struct sl_loop *sl_loop_create(struct sl_err *err)
{
    struct sl_loop *l = sl_calloc(1, sizeof *l);

    if (!l) {
        sl_fail(err, SL_SYSTEM, "cannot make an event loop: %s", strerror(errno));
        return NULL;
    }
    l->signals = -1;
    l->next_id = 1;
    sigemptyset(&l->watched);
    pthread_sigmask(SIG_BLOCK, NULL, &l->before);
    l->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (l->epoll < 0) {
        sl_fail(err, SL_SYSTEM, "cannot make an event loop: %s", strerror(errno));
        sl_loop_destroy(l);
        return NULL;
    }
    return l;
}

void sl_loop_destroy(struct sl_loop *l)
{
    int saved = errno;

    if (!l)
        return;
    if (l->signals >= 0) {
        close(l->signals);
        pthread_sigmask(SIG_SETMASK, &l->before, NULL);
    }
    if (l->epoll >= 0)
        close(l->epoll);
    free(l->watches);
    free(l->timers);
    free(l);
    errno = saved;
}

static int grow_watches(struct sl_loop *l, int fd)
{
    int n = l->n_watches ? l->n_watches : 64;

    while (n <= fd)
        n *= 2;
    struct watch *w = sl_resize(l->watches, (size_t)n, sizeof *w);
    if (!w)
        return -1;
    memset(w + l->n_watches, 0, (size_t)(n - l->n_watches) * sizeof *w);
    l->watches = w;
    l->n_watches = n;
    return 0;
}

int sl_loop_fd(struct sl_loop *l, int fd, uint32_t events, sl_loop_fd_f f, void *u,
               struct sl_err *err)
{
    if (fd < 0 || fd >= MOST_FDS || !f)
        return sl_fail(err, SL_BUG, "watch descriptor %d: not a descriptor with a callback", fd);
    if (fd >= l->n_watches && grow_watches(l, fd))
        return sl_fail(err, SL_SYSTEM, "watch descriptor %d: %s", fd, strerror(errno));
    struct watch *w = &l->watches[fd];
    int known = w->f != NULL;
    uint32_t age = known ? w->age : ++l->age;
    struct epoll_event e = {.events = events, .data.u64 = (uint64_t)age << 32 | (uint32_t)fd};

    if (epoll_ctl(l->epoll, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &e))
        return sl_fail(err, SL_SYSTEM, "watch descriptor %d: %s", fd, strerror(errno));
    w->f = f;
    w->u = u;
    w->age = age;
    return 0;
}

void sl_loop_drop_fd(struct sl_loop *l, int fd)
{
    if (fd < 0 || fd >= l->n_watches || !l->watches[fd].f)
        return;
    l->watches[fd].f = NULL;
    epoll_ctl(l->epoll, EPOLL_CTL_DEL, fd, NULL); /* fails when it was closed first: same end */
}

int64_t sl_loop_timer(struct sl_loop *l, int64_t after, int64_t every, sl_loop_timer_f f, void *u,
                      struct sl_err *err)
{
    if (l->n_timers == l->room_timers) {
        int room = l->room_timers ? 2 * l->room_timers : 16;
        struct timer *t = sl_resize(l->timers, (size_t)room, sizeof *t);

        if (!t)
            return sl_fail(err, SL_SYSTEM, "set a timer: %s", strerror(errno));
        l->timers = t;
        l->room_timers = room;
    }
    l->timers[l->n_timers++] = (struct timer){
        .id = l->next_id, .due = sl_clock_ns() + (after > 0 ? after : 0), .every = every,
        .f = f, .u = u,
    };
    return l->next_id++;
}

void sl_loop_cancel(struct sl_loop *l, int64_t id)
{
    for (int i = 0; i < l->n_timers; i++)
        if (l->timers[i].id == id) {
            l->timers[i] = l->timers[--l->n_timers];
            return;
        }
}

static void read_signals(void *u, int fd, uint32_t events)
{
    struct sl_loop *l = u;
    struct signalfd_siginfo si;

    (void)events;
    while (read(fd, &si, sizeof si) == (ssize_t)sizeof si)
        if (si.ssi_signo < SIGNALS && l->on_signal[si.ssi_signo].f)
            l->on_signal[si.ssi_signo].f(l->on_signal[si.ssi_signo].u, &si);
}

int sl_loop_signal(struct sl_loop *l, int signo, sl_loop_signal_f f, void *u, struct sl_err *err)
{
    sigset_t one;

    if (signo < 1 || signo >= SIGNALS || !f)
        return sl_fail(err, SL_BUG, "watch signal %d: not a signal with a callback", signo);
    sigemptyset(&one);
    sigaddset(&one, signo);
    sigaddset(&l->watched, signo);
    pthread_sigmask(SIG_BLOCK, &one, NULL);
    int fd = signalfd(l->signals, &l->watched, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        return sl_fail(err, SL_SYSTEM, "watch signal %d: %s", signo, strerror(errno));
    l->on_signal[signo].f = f;
    l->on_signal[signo].u = u;
    if (l->signals >= 0)
        return 0;
    l->signals = fd;
    return sl_loop_fd(l, fd, EPOLLIN, read_signals, l, err);
}

/* Run every timer that is due at `now`; one that a callback adds waits for the next turn. */
static int run_timers(struct sl_loop *l, int64_t now)
{
    int ran = 0;
    int64_t newest = l->next_id;

    for (int again = 1; again;) {
        again = 0;
        for (int i = 0; i < l->n_timers; i++) {
            struct timer *t = &l->timers[i], copy = *t;

            if (t->due > now || t->id >= newest)
                continue;
            if (copy.every > 0)
                t->due = copy.due + copy.every > now ? copy.due + copy.every : now + copy.every;
            else
                sl_loop_cancel(l, copy.id);
            copy.f(copy.u);
            ran++;
            again = 1; /* the callback may have moved the table */
            break;
        }
    }
    return ran;
}

int sl_loop_turn(struct sl_loop *l, int64_t ns, struct sl_err *err)
{
    struct epoll_event ev[BATCH];
    int64_t now = sl_clock_ns(), end = ns < 0 || ns > INT64_MAX - now ? INT64_MAX : now + ns;
    int ran = 0, wait = -1;

    for (int i = 0; i < l->n_timers; i++)
        if (l->timers[i].due < end)
            end = l->timers[i].due;
    if (end != INT64_MAX) {
        int64_t ms = end > now ? (end - now + 999999) / 1000000 : 0;
        wait = ms > 86400000 ? 86400000 : (int)ms;
    }
    int n = epoll_wait(l->epoll, ev, BATCH, wait);
    if (n < 0 && errno != EINTR)
        return sl_fail(err, SL_SYSTEM, "wait for events: %s", strerror(errno));
    for (int i = 0; i < n; i++) {
        int fd = (int)(uint32_t)ev[i].data.u64;
        const struct watch *w = &l->watches[fd];

        if (!w->f || w->age != (uint32_t)(ev[i].data.u64 >> 32))
            continue;
        w->f(w->u, fd, ev[i].events);
        ran++;
    }
    return ran + run_timers(l, sl_clock_ns());
}

int sl_loop_run(struct sl_loop *l, struct sl_err *err)
{
    l->stop = 0;
    while (!l->stop)
        if (sl_loop_turn(l, -1, err) < 0)
            return -1;
    return 0;
}

void sl_loop_stop(struct sl_loop *l)
{
    l->stop = 1;
}
