/* flow.c - one poll over the connections of a rank */
#include "executor/flow.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "executor/comm_how.h"

enum {
    MAGIC = 0x4c464c53, /* "SLFL" */
    NAP_MS = 200,
    AT_ONCE = 1 << 20 /* bytes of one call: the other direction shall not starve */
};

void sl_flow_begin(struct sl_comm *c, int kind, int unit)
{
    struct sl_comm_net *t = c->net;
    struct sl_ctl_rank *me = &c->ctl->r[c->rank];

    atomic_store(&me->kind, kind);
    atomic_store(&me->unit, unit);
    c->waits++;
    sl_ctl_mark(c->ctl, c->rank, ++c->collective, c->step, SL_PHASE_WAIT);
    t->head = (struct sl_flow_head){
        .magic = MAGIC,
        .collective = c->collective,
        .step = (uint32_t)c->step,
        .kind = kind,
        .unit = unit,
    };
    t->moved = sl_ctl_now();
    for (int q = 0; q < c->nodes; q++)
        t->flow[q] = (struct sl_flow){
            .head_out = q == c->node ? 0 : sizeof t->head,
            .head_in = q == c->node ? 0 : sizeof t->head,
        };
}

static int idle(const struct sl_flow *f)
{
    return !f->nout && !f->nin && !f->head_out && !f->head_in;
}

int sl_flow_done(const struct sl_comm *c)
{
    for (int q = 0; q < c->nodes; q++)
        if (!idle(&c->net->flow[q]))
            return 0;
    return 1;
}

static int peer_of(const struct sl_comm *c, int node)
{
    return node * c->nlocal + c->rank - c->first;
}

/* A connection is gone. If this node knows a culprit of its own, that came first. */
static int lost(struct sl_comm *c, int q, int e, struct sl_err *err)
{
    int32_t none = 0;

    if (sl_ctl_failed(c->ctl))
        return sl_comm_peer_failed(c, err);
    atomic_compare_exchange_strong(&c->ctl->lost, &none, q + 1);
    sl_fail(err, SL_PEER, "node %d (%s) failed first: rank %d %s", q, c->net->links->host[q],
            peer_of(c, q), e ? strerror(e) : "has closed its connection");
    sl_hint(err, "See the logs of node %d for the cause.", q);
    sl_ctl_fail(c->ctl, -1);
    return -1;
}

static int too_late(struct sl_comm *c, struct sl_err *err)
{
    int32_t none = 0;
    int q = 0;

    while (q < c->nodes - 1 && idle(&c->net->flow[q]))
        q++;
    atomic_compare_exchange_strong(&c->ctl->lost, &none, q + 1);
    sl_fail(err, SL_BUSY, "waited %g s in %s of step %lld for node %d (%s): nothing from rank %d",
            c->deadline, sl_comm_about(c->net->head.kind), (long long)c->step, q,
            c->net->links->host[q], peer_of(c, q));
    sl_hint(err, "See the logs of node %d; a longer failure.hang_timeout helps only if it is slow.",
            q);
    sl_ctl_fail(c->ctl, -1);
    return -1;
}

static int astray(struct sl_comm *c, int q, struct sl_err *err)
{
    const struct sl_flow_head *a = &c->net->head, *b = &c->net->flow[q].theirs;

    if (b->magic == MAGIC && a->collective == b->collective && a->step == b->step
        && a->kind == b->kind && a->unit == b->unit)
        return 0;
    sl_fail(
        err, SL_BUSY,
        "rank %d has come to another collective (%u: %s of step %u, unit %d) than rank %d (%u: %s"
        " of step %u, unit %d): one of them has skipped one",
        peer_of(c, q), b->collective, sl_ctl_kind_name(b->kind), b->step, b->unit, c->rank,
        a->collective, sl_ctl_kind_name(a->kind), a->step, a->unit);
    sl_ctl_fail(c->ctl, -1);
    return -1;
}

/* Bytes that one call moved; 0: not now; -1: the connection is gone. */
static ssize_t some(struct sl_comm *c, int q, ssize_t k, struct sl_err *err)
{
    if (k > 0) {
        c->net->moved = 0; /* now: the caller looks at the clock once a round */
        return k;
    }
    if (k < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    return lost(c, q, k < 0 ? errno : 0, err);
}

static int send_some(struct sl_comm *c, int q, struct sl_err *err)
{
    struct sl_flow *f = &c->net->flow[q];
    int fd = c->net->links->fd[q];
    ssize_t k;

    if (f->head_out) {
        k = some(c, q,
                 send(fd, (const char *)&c->net->head + sizeof c->net->head - f->head_out,
                      f->head_out, MSG_NOSIGNAL | (f->nout ? MSG_MORE : 0)),
                 err);
        if (k < 0)
            return -1;
        f->head_out -= (size_t)k;
    }
    if (f->head_out || !f->nout)
        return 0;
    k = some(c, q, send(fd, f->out, f->nout < AT_ONCE ? f->nout : AT_ONCE, MSG_NOSIGNAL), err);
    if (k < 0)
        return -1;
    f->out += k;
    f->nout -= (size_t)k;
    if (c->net->head.kind >= 0)
        c->count[c->net->head.kind].sent += k;
    return 0;
}

static int receive_some(struct sl_comm *c, int q, struct sl_err *err)
{
    struct sl_flow *f = &c->net->flow[q];
    int fd = c->net->links->fd[q];
    ssize_t k;

    if (f->head_in) {
        k = some(c, q, recv(fd, (char *)&f->theirs + sizeof f->theirs - f->head_in, f->head_in, 0),
                 err);
        if (k < 0)
            return -1;
        f->head_in -= (size_t)k;
        if (!f->head_in && astray(c, q, err))
            return -1;
    }
    if (f->head_in || !f->nin)
        return 0;
    k = some(c, q, recv(fd, f->in, f->nin < AT_ONCE ? f->nin : AT_ONCE, 0), err);
    if (k < 0)
        return -1;
    f->in += k;
    f->nin -= (size_t)k;
    return 0;
}

static int sleep_for_some(struct sl_comm *c, struct sl_err *err)
{
    struct pollfd p[SL_MAX_RANKS];
    struct sl_comm_net *t = c->net;
    uint64_t now = sl_ctl_now();
    nfds_t n = 0;
    int away = -1;

    for (int q = 0; q < c->nodes; q++) {
        const struct sl_flow *f = &t->flow[q];

        if (idle(f))
            continue;
        away = away < 0 ? q : away;
        p[n++] = (struct pollfd){
            .fd = t->links->fd[q],
            .events
            = (short)((f->head_in || f->nin ? POLLIN : 0) | (f->head_out || f->nout ? POLLOUT : 0)),
        };
    }
    atomic_store(&c->ctl->r[c->rank].away, away + 1);
    poll(p, n, NAP_MS);
    c->waited += 1e-9 * (double)(sl_ctl_now() - now);
    if (sl_ctl_failed(c->ctl))
        return sl_comm_peer_failed(c, err);
    if (c->deadline > 0 && 1e-9 * (double)(now - t->moved) > c->deadline)
        return too_late(c, err);
    return 0;
}

int sl_flow_move(struct sl_comm *c, struct sl_err *err)
{
    struct sl_comm_net *t = c->net;
    uint64_t t0 = sl_ctl_now();

    for (int k = 1; k < c->nodes; k++) {
        int q = (c->node + k) % c->nodes;
        const struct sl_flow *f = &t->flow[q];

        if (((f->head_out || f->nout) && send_some(c, q, err))
            || ((f->head_in || f->nin) && receive_some(c, q, err)))
            return -1;
    }
    if (!t->moved) {
        t->moved = sl_ctl_now();
        c->copied += 1e-9 * (double)(t->moved - t0);
        return 0;
    }
    return sleep_for_some(c, err);
}

int sl_flow_finish(struct sl_comm *c, struct sl_err *err)
{
    while (!sl_flow_done(c))
        if (sl_flow_move(c, err))
            return -1;
    sl_flow_end(c);
    return 0;
}

void sl_flow_end(struct sl_comm *c)
{
    atomic_store(&c->ctl->r[c->rank].away, 0);
    sl_ctl_mark(c->ctl, c->rank, c->collective, c->step, SL_PHASE_COMPUTE);
}
