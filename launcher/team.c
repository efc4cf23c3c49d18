/* team.c - one connection to each other agent */
#include "launcher/team.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/mem.h"
#include "launcher/hand.h"

enum { PING_MS = 500, TICK_MS = 100, ACCEPT_S = 60, LOOK_S = 3, STACK_S = 10, FLUSH_S = 2 };

struct other {
    struct sl_star_conn c;
    int drained, told;
    uint64_t offset; /* add it to the clock of that node */
    int timed;       /* offset is known */
};

/* A fence for which some nodes have come. */
struct meeting {
    int on, seq, came, worst;
    char *got; /* by node */
    struct sl_buf data;
};

struct sl_team {
    struct sl_team_conf conf;
    struct sl_crew *crew;
    struct other *o; /* by task; [0] unused */
    struct sl_local *local; /* NULL: no attempt */
    struct sl_pmix_server *pmix;
    int attempt;
    uint32_t stop;
    int over;
    uint64_t next_ping;
    struct meeting fence;
    struct sl_hang_rank *look; /* wanted now */
    int looks;                 /* that have come */
    int stack_rank, stack_came;
    char *stack;
    size_t stack_size;
};

static void tell_all(struct sl_team *t, enum sl_word w, int a, int b, int c, const void *data,
                     size_t n)
{
    for (int i = 1; i < t->crew->n; i++)
        sl_star_put(&t->o[i].c, w, a, b, c, data, n);
}

/* ---- fences ---- */

static void contribute(struct sl_team *t, int node, int seq, int status, const char *data, size_t n)
{
    struct meeting *f = &t->fence;
    const struct sl_crew *c = t->crew;

    if (!f->on) {
        f->on = 1;
        f->seq = seq;
        f->came = 0;
        f->worst = 0;
        sl_buf_clear(&f->data);
        memset(f->got, 0, (size_t)c->nodes);
    }
    if (seq != f->seq || f->got[node])
        return; /* of an attempt that is over */
    f->got[node] = 1;
    if (!sl_pmix_server_good(status))
        f->worst = status;
    sl_buf_add(&f->data, data, n);
    if (++f->came < c->nodes)
        return;
    f->on = 0;
    if (f->data.failed)
        f->worst = sl_pmix_server_aborted();
    for (int i = 1; i < c->n; i++)
        if (c->m[i].leader == i)
            sl_star_put(&t->o[i].c, SL_WORD_FENCED, t->attempt, seq, f->worst, f->data.p,
                        f->data.len);
    sl_pmix_server_fence_answer(t->pmix, f->worst, f->data.p, f->data.len);
}

static void own_fences(struct sl_team *t)
{
    size_t n;
    char *data;
    int st;

    if (!t->local || t->crew->nodes == 1 || !sl_pmix_server_fence_take(t->pmix, &st, &data, &n))
        return;
    contribute(t, 0, t->fence.on ? t->fence.seq : t->fence.seq + 1, st, data, n);
    free(data);
}

/* ---- what they say ---- */

/* `since` of a rank that has not moved must stay the same, so a clock's offset is taken once. */
static void mirror(struct sl_team *t, struct other *o, const char *data, size_t n)
{
    struct sl_word_states s = {.n = 0};
    struct sl_ctl *ctl;

    if (n > sizeof s || n < offsetof(struct sl_word_states, row))
        return;
    memcpy(&s, data, n);
    if (!t->local || s.attempt != t->attempt || s.first < 0 || s.n < 0
        || s.first + s.n > t->crew->ranks
        || n < offsetof(struct sl_word_states, row) + (size_t)s.n * sizeof s.row[0])
        return;
    if (!o->timed)
        o->offset = sl_ctl_now() - s.now;
    o->timed = 1;
    ctl = sl_local_ctl(t->local);
    for (int i = 0; i < s.n; i++) {
        struct sl_ctl_rank *r = &ctl->r[s.first + i];

        if (sl_local_here(t->local, s.first + i))
            continue;
        atomic_store(&r->pid, s.row[i].pid);
        atomic_store(&r->kind, s.row[i].kind);
        atomic_store(&r->unit, s.row[i].unit);
        atomic_store(&r->away, s.row[i].away);
        atomic_store(&r->stepped, s.row[i].stepped);
        atomic_store(&r->since, s.row[i].since ? s.row[i].since + o->offset : 0);
        atomic_store(&r->state, s.row[i].state);
    }
}

struct from {
    struct sl_team *t;
    int task;
};

static int owns(const struct sl_team *t, int task, int rank)
{
    const struct sl_member *m = &t->crew->m[task];

    return rank >= m->first && rank < m->first + m->ranks;
}

static void on_death(struct sl_team *t, int task, const char *data, size_t n)
{
    struct sl_word_death d;

    if (n != sizeof d)
        return;
    memcpy(&d, data, n);
    if (d.attempt == t->attempt && t->local && owns(t, task, d.rank))
        t->conf.death(t->conf.user, d.rank, d.pid, d.wait_status, d.state);
}

static void on_word(void *user, const struct sl_star_head *h, const char *data)
{
    struct from *f = user;
    struct sl_team *t = f->t;
    struct other *o = &t->o[f->task];
    struct sl_report rep;
    char text[900];

    switch (h->type) {
    case SL_WORD_REPORT:
        if (h->len != sizeof rep)
            break;
        memcpy(&rep, data, sizeof rep);
        if (owns(t, f->task, rep.rank))
            t->conf.report(t->conf.user, &rep);
        break;
    case SL_WORD_LINE:
        if (owns(t, f->task, h->a))
            t->conf.line(t->conf.user, h->a, data, h->len);
        break;
    case SL_WORD_DEATH:
        on_death(t, f->task, data, h->len);
        break;
    case SL_WORD_STATES:
        mirror(t, o, data, h->len);
        break;
    case SL_WORD_SIGNAL:
        t->conf.signal(t->conf.user, h->a);
        break;
    case SL_WORD_FENCE:
        if (h->a == t->attempt && t->local)
            contribute(t, t->crew->m[f->task].node, h->b, h->c, data, h->len);
        break;
    case SL_WORD_DRAINED:
        o->drained |= h->a == t->attempt;
        break;
    case SL_WORD_LOOK:
        if (t->look && h->len == sizeof t->look[0] && owns(t, f->task, h->a)) {
            memcpy(&t->look[h->a], data, h->len);
            t->looks++;
        }
        break;
    case SL_WORD_STACK:
        if (!t->stack || h->a != t->stack_rank)
            break;
        snprintf(t->stack, t->stack_size, "%.*s", (int)h->len, data);
        t->stack_came = 1;
        break;
    case SL_WORD_FAIL:
        snprintf(text, sizeof text, "%s: %.*s", t->crew->m[f->task].host,
                 (int)(h->len < 800 ? h->len : 800), data);
        t->conf.fail(t->conf.user, h->a, text);
        break;
    case SL_WORD_LOST:
        snprintf(text, sizeof text, "%s: %d samples or lines of output were dropped: they came faster"
                                    " than the network took them",
                 t->crew->m[f->task].host, h->a);
        t->conf.note(t->conf.user, text);
        break;
    }
}

static void lost(struct sl_team *t, int task, const char *how)
{
    const struct sl_member *m = &t->crew->m[task];
    char text[300], ranks[60];

    if (t->o[task].told)
        return;
    t->o[task].told = 1;
    t->o[task].drained = 1;
    if (m->ranks > 1)
        snprintf(ranks, sizeof ranks, "ranks %d-%d", m->first, m->first + m->ranks - 1);
    else
        snprintf(ranks, sizeof ranks, "rank %d", m->first);
    snprintf(text, sizeof text, "the agent on %s (task %d, %s) %s", m->host, task, ranks, how);
    t->conf.fail(t->conf.user, 5, text);
}

static void hear(struct sl_team *t)
{
    for (int i = 1; i < t->crew->n; i++) {
        struct from f = {t, i};

        if (t->o[i].c.fd >= 0 && sl_star_read(&t->o[i].c, on_word, &f) == 0)
            sl_star_flush(&t->o[i].c);
        if (t->o[i].c.fd < 0)
            lost(t, i, "is gone");
    }
}

void sl_team_serve(struct sl_team *t)
{
    struct sl_err err = {0};

    hear(t);
    own_fences(t);
    if (t->local && sl_hand_serve(t->crew->hand, t->attempt, t->local, t->pmix, &err))
        t->conf.fail(t->conf.user, 5, err.msg);
}

int sl_team_fds(const struct sl_team *t, struct pollfd p[SL_TEAM_FDS])
{
    int n = 0;

    for (int i = 1; i < t->crew->n; i++)
        if (t->o[i].c.fd >= 0)
            p[n++] = (struct pollfd){t->o[i].c.fd,
                                     sl_star_waiting(&t->o[i].c) ? POLLIN | POLLOUT : POLLIN, 0};
    if (t->local) {
        p[n++] = (struct pollfd){t->crew->hand, POLLIN, 0};
        if (t->crew->nodes > 1)
            p[n++] = (struct pollfd){sl_pmix_server_fence_fd(t->pmix), POLLIN, 0};
    }
    return n;
}

/* Serve until `done` says so; 0, or -1 after `seconds`. */
static int wait_for(struct sl_team *t, int (*done)(const struct sl_team *t), double seconds)
{
    uint64_t end = sl_ctl_now() + (uint64_t)(1e9 * seconds);
    struct pollfd p[SL_TEAM_FDS];

    while (!done(t)) {
        if (sl_ctl_now() > end)
            return -1;
        poll(p, (nfds_t)sl_team_fds(t, p), TICK_MS);
        sl_team_serve(t);
        sl_team_tick(t, sl_ctl_now());
        t->conf.alive(t->conf.user);
    }
    return 0;
}

/* ---- the beginning ---- */

static const unsigned char *token_of(void *user, int index)
{
    struct sl_team *t = user;

    return index > 0 && index < t->crew->n && t->o[index].c.fd < 0 ? t->crew->m[index].token : NULL;
}

static int take_all(struct sl_team *t, struct sl_err *err)
{
    uint64_t end = sl_ctl_now() + ACCEPT_S * 1000000000ull;

    for (int left = t->crew->n - 1; left;) {
        struct pollfd p = {t->crew->listen, POLLIN, 0};
        struct sl_star_conn c;
        int i;

        if (poll(&p, 1, TICK_MS) > 0
            && !sl_star_accept(&c, t->crew->listen, t->crew->m[0].token, token_of, t, &i)) {
            t->o[i].c = c;
            left--;
        }
        t->conf.alive(t->conf.user);
        sl_team_ping(t);
        if (!left || sl_ctl_now() < end)
            continue;
        for (i = 1; t->o[i].c.fd >= 0; i++)
            ;
        sl_fail(err, SL_BUSY, "the agent on %s (task %d) did not connect within %d s; mine is %s",
                t->crew->m[i].host, i, ACCEPT_S, t->crew->m[0].address);
        return sl_hint(err, "SHARDLAUNCH_IFNAME names the network interface to use, on all nodes.");
    }
    return 0;
}

static void destroy(struct sl_team *t)
{
    for (int i = 1; t->o && i < t->crew->n; i++)
        sl_star_close(&t->o[i].c);
    sl_buf_fini(&t->fence.data);
    free(t->fence.got);
    free(t->o);
    free(t);
}

struct sl_team *sl_team_open(const struct sl_team_conf *conf, struct sl_err *err)
{
    struct sl_team *t = sl_calloc(1, sizeof *t);

    if (!t) {
        sl_fail(err, SL_SYSTEM, "cannot hold the agents: %s", strerror(errno));
        return NULL;
    }
    t->conf = *conf;
    t->crew = conf->crew;
    sl_buf_init(&t->fence.data, SL_STAR_MAX);
    t->o = sl_calloc((size_t)t->crew->n, sizeof *t->o);
    t->fence.got = sl_calloc((size_t)t->crew->nodes, 1);
    if (!t->o || !t->fence.got) {
        sl_fail(err, SL_SYSTEM, "cannot hold the agents: %s", strerror(errno));
        destroy(t);
        return NULL;
    }
    for (int i = 0; i < t->crew->n; i++)
        t->o[i].c.fd = -1;
    if (!take_all(t, err)) {
        for (int i = 1; i < t->crew->n; i++)
            t->o[i].c.heard = sl_ctl_now();
        return t;
    }
    destroy(t);
    return NULL;
}

void sl_team_start(struct sl_team *t, const struct sl_order *order, const char *text,
                   struct sl_local *local, struct sl_pmix_server *pmix)
{
    struct sl_buf b;

    t->local = local;
    t->pmix = pmix;
    t->attempt = order->attempt;
    t->stop = 0;
    t->over = 0;
    t->fence.on = t->fence.seq = 0;
    for (int i = 1; i < t->crew->n; i++)
        t->o[i].drained = t->o[i].c.fd < 0;
    sl_buf_init(&b, SL_STAR_MAX);
    sl_buf_add(&b, order, sizeof *order);
    sl_buf_str(&b, text);
    if (b.failed)
        t->conf.fail(t->conf.user, 5, "no memory for the order to the other agents");
    else
        tell_all(t, SL_WORD_START, order->attempt, 0, 0, b.p, b.len);
    sl_buf_fini(&b);
}

void sl_team_ping(struct sl_team *t)
{
    uint64_t now = sl_ctl_now();

    if (now < t->next_ping)
        return;
    t->next_ping = now + PING_MS * 1000000u;
    tell_all(t, SL_WORD_PING, 0, 0, 0, NULL, 0);
}

void sl_team_tick(struct sl_team *t, uint64_t now)
{
    struct sl_ctl *ctl = t->local ? sl_local_ctl(t->local) : NULL;

    if (ctl && atomic_load(&ctl->stop) != t->stop) {
        t->stop = atomic_load(&ctl->stop);
        tell_all(t, SL_WORD_STOP, (int)t->stop, 0, 0, NULL, 0);
    }
    if (ctl && !t->over && sl_ctl_failed(ctl)) {
        t->over = 1;
        tell_all(t, SL_WORD_OVER, atomic_load(&ctl->culprit), 0, 0, NULL, 0);
    }
    if (now < t->next_ping)
        return;
    sl_team_ping(t);
    for (int i = 1; i < t->crew->n; i++)
        if (t->o[i].c.fd >= 0 && now > t->o[i].c.heard
            && now - t->o[i].c.heard > SL_TEAM_SILENCE * 1000000000ull) {
            sl_star_close(&t->o[i].c);
            lost(t, i, "is silent: ended, stopped or cut off");
        }
}

/* ---- looking ---- */

static int looked(const struct sl_team *t)
{
    int want = 0;

    for (int i = 1; i < t->crew->n; i++)
        if (t->o[i].c.fd >= 0)
            want += t->crew->m[i].ranks;
    return t->looks >= want;
}

void sl_team_look(struct sl_team *t, struct sl_hang_rank *ret)
{
    for (int i = 1; i < t->crew->n; i++)
        for (int r = t->crew->m[i].first; r < t->crew->m[i].first + t->crew->m[i].ranks; r++) {
            sl_watch_rank(sl_local_ctl(t->local), r, ret[r].text, sizeof ret[r].text);
            snprintf(ret[r].verdict, sizeof ret[r].verdict, "its agent on %s did not answer",
                     t->crew->m[i].host);
        }
    t->look = ret;
    t->looks = 0;
    tell_all(t, SL_WORD_LOOKQ, 0, 0, 0, NULL, 0);
    wait_for(t, looked, LOOK_S);
    t->look = NULL;
}

static int has_stack(const struct sl_team *t)
{
    return t->stack_came;
}

int sl_team_stack(struct sl_team *t, int rank, char *ret, size_t size)
{
    for (int i = 1; i < t->crew->n; i++) {
        if (!owns(t, i, rank))
            continue;
        ret[0] = '\0';
        t->stack = ret;
        t->stack_size = size;
        t->stack_rank = rank;
        t->stack_came = t->o[i].c.fd < 0;
        sl_star_put(&t->o[i].c, SL_WORD_STACKQ, rank, 0, 0, NULL, 0);
        wait_for(t, has_stack, STACK_S);
        t->stack = NULL;
        return 1;
    }
    return 0;
}

/* ---- the end ---- */

static int drained(const struct sl_team *t)
{
    for (int i = 1; i < t->crew->n; i++)
        if (!t->o[i].drained)
            return 0;
    return 1;
}

void sl_team_kill(struct sl_team *t)
{
    if (!t->local)
        return;
    tell_all(t, SL_WORD_KILL, t->attempt, 0, 0, NULL, 0);
    sl_pmix_server_fence_answer(t->pmix, sl_pmix_server_aborted(), NULL, 0);
}

int sl_team_drain(struct sl_team *t, double seconds, struct sl_err *err)
{
    int late;

    if (!t->local)
        return 0;
    late = wait_for(t, drained, seconds);
    t->local = NULL;
    if (!late)
        return 0;
    for (int i = 1; i < t->crew->n; i++)
        if (!t->o[i].drained)
            return sl_fail(err, SL_BUSY, "the agent on %s (task %d) did not end its ranks in %g s",
                           t->crew->m[i].host, i, seconds);
    return 0;
}

static int flushed(const struct sl_team *t)
{
    for (int i = 1; i < t->crew->n; i++)
        if (sl_star_waiting(&t->o[i].c))
            return 0;
    return 1;
}

void sl_team_quit(struct sl_team *t, int status)
{
    if (!t)
        return;
    tell_all(t, SL_WORD_QUIT, status, 0, 0, NULL, 0);
    for (int i = 1; i < t->crew->n; i++)
        t->o[i].told = 1; /* from now on they may go */
    wait_for(t, flushed, FLUSH_S);
    destroy(t);
}
