/* links.c - listen, dial, show each other's token */
#include "executor/links.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum {
    MAGIC = 0x4b4c5253, /* "SRLK" */
    STRANGERS = 32,     /* accepted connections that have not shown a token yet */
    TRY_MS = 2000, /* an address may take so long to answer the first time, then twice that, ... */
    TRY_MOST_MS = 20000,
    AGAIN_MS = 100, /* between two rounds over a peer's addresses */
    NAP_MS = 200,
    IDLE_S = 10, /* keep-alive: a silent peer is asked after so long, */
    BEAT_S = 5,  /* again after this, */
    BEATS = 6    /* so often */
};

struct hello {
    uint32_t magic;
    int32_t node;
    unsigned char token[SL_LINKS_TOKEN]; /* of the one who gets it */
};

/* A connection on its way: dialled (node >= 0) or accepted. */
struct way {
    int fd; /* -1: none */
    int node;
    int connected;
    size_t have; /* bytes of `in` */
    struct hello in;
    uint64_t until; /* ns: given up then */
};

/* A peer as its text says, and how far dialling it has come. */
struct peer {
    unsigned char token[SL_LINKS_TOKEN];
    struct sockaddr_storage addr[SL_ADDRESS_MAX];
    socklen_t len[SL_ADDRESS_MAX];
    int n, next, round;
    uint64_t rest; /* ns: not dialled before */
    char why[160]; /* the last failure */
};

struct dial {
    struct sl_links *l;
    struct peer peer[SL_MAX_RANKS];
    struct way to[SL_MAX_RANKS]; /* by node */
    struct way from[STRANGERS];
    double deadline;
};

/* --- listening -------------------------------------------------------------------------------- */

static int listen_at(struct sl_links *l, struct sl_address *a, char *text, struct sl_err *err)
{
    int one = 1, fd = socket(a->at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return sl_fail(err, SL_SYSTEM, "no socket: %s", strerror(errno));
    if (a->at.ss_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
    if (bind(fd, (struct sockaddr *)&a->at, a->len) || listen(fd, SL_MAX_RANKS)
        || getsockname(fd, (struct sockaddr *)&a->at, &a->len)) {
        sl_fail(err, SL_SYSTEM, "cannot listen on %s: %s", a->dev, strerror(errno));
        close(fd);
        return -1;
    }
    l->listener[l->listeners++] = fd;
    sl_address_print(&a->at, text, SL_ADDRESS_TEXT);
    return 0;
}

int sl_links_listen(struct sl_links *l, int node, int nodes, const char *ifname, struct sl_err *err)
{
    struct sl_address a[SL_ADDRESS_MAX];
    char text[SL_ADDRESS_TEXT];
    int n, at = 0;

    memset(l, 0, sizeof *l);
    l->node = node;
    l->nodes = nodes;
    for (int q = 0; q < SL_MAX_RANKS; q++)
        l->fd[q] = -1;
    if (getrandom(l->token, sizeof l->token, 0) != (ssize_t)sizeof l->token)
        return sl_fail(err, SL_SYSTEM, "no random numbers: %s", strerror(errno));
    n = sl_address_list(ifname, a, err);
    if (n < 0)
        return -1;
    for (int i = 0; i < SL_LINKS_TOKEN; i++)
        at += snprintf(l->text + at, sizeof l->text - (size_t)at, "%02x", l->token[i]);
    for (int i = 0; i < n; i++) {
        if (listen_at(l, &a[i], text, err)) {
            if (i + 1 < n || l->listeners) /* an address that is still tentative, say */
                continue;
            return -1;
        }
        if (l->listeners == 1)
            snprintf(l->dev, sizeof l->dev, "%s", a[i].dev);
        at += snprintf(l->text + at, sizeof l->text - (size_t)at, " %s", text);
    }
    return 0;
}

/* --- a peer's text ---------------------------------------------------------------------------- */

static int hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int read_peer(struct peer *p, const char *text, int node, struct sl_err *err)
{
    char one[SL_ADDRESS_TEXT];

    for (int i = 0; i < SL_LINKS_TOKEN; i++, text += 2) {
        int hi = hex(text[0]), lo = hi < 0 ? -1 : hex(text[1]);

        if (lo < 0)
            goto bad;
        p->token[i] = (unsigned char)(hi << 4 | lo);
    }
    while (*text == ' ' && p->n < SL_ADDRESS_MAX) {
        size_t n = strcspn(++text, " ");

        if (n >= sizeof one)
            goto bad;
        memcpy(one, text, n);
        one[n] = 0;
        if (sl_address_parse(one, &p->addr[p->n], &p->len[p->n]))
            goto bad;
        p->n++;
        text += n;
    }
    if (p->n && !*text)
        return 0;
bad:
    return sl_fail(err, SL_BUG, "node %d has published no address", node);
}

/* --- dialling and being dialled -----------------------------------------------------------------
 */

static void drop(struct way *w)
{
    if (w->fd >= 0)
        close(w->fd);
    w->fd = -1;
}

static void set_options(int fd, double deadline)
{
    unsigned ms = deadline > 0 && deadline < 1e6 ? (unsigned)(1e3 * deadline) + 1000 : 0;
    int one = 1, idle = IDLE_S, beat = BEAT_S, beats = BEATS;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &beat, sizeof beat);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &beats, sizeof beats);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
}

/* The dialled peer's present address failed: the next one, and a rest behind the last. */
static void next_address(struct dial *d, int q, const char *why)
{
    struct peer *p = &d->peer[q];
    char at[SL_ADDRESS_TEXT];

    sl_address_print(&p->addr[p->next], at, sizeof at);
    snprintf(p->why, sizeof p->why, "%s: %s", at, why);
    drop(&d->to[q]);
    if (++p->next < p->n)
        return;
    p->next = 0;
    p->round++;
    p->rest = sl_ctl_now() + AGAIN_MS * 1000000ull;
}

static void dial(struct dial *d, int q)
{
    struct peer *p = &d->peer[q];
    struct way *w = &d->to[q];
    uint64_t ms = TRY_MS * (1ull + (unsigned)p->round);

    w->fd = socket(p->addr[p->next].ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    w->node = q;
    w->connected = 0;
    w->have = 0;
    w->until = sl_ctl_now() + (ms < TRY_MOST_MS ? ms : TRY_MOST_MS) * 1000000ull;
    if (w->fd < 0
        || (connect(w->fd, (struct sockaddr *)&p->addr[p->next], p->len[p->next])
            && errno != EINPROGRESS))
        next_address(d, q, strerror(errno));
}

static int say_hello(const struct dial *d, int fd, int q)
{
    struct hello h = {.magic = MAGIC, .node = d->l->node};

    memcpy(h.token, d->peer[q].token, sizeof h.token);
    return send(fd, &h, sizeof h, MSG_NOSIGNAL) == (ssize_t)sizeof h
               ? 0
               : -1; /* into an empty buffer */
}

/* 1: the whole hello is here and good; 0: more to come; -1: no peer. */
static int hear_hello(const struct dial *d, struct way *w)
{
    ssize_t k = recv(w->fd, (char *)&w->in + w->have, sizeof w->in - w->have, 0);

    if (k < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (k <= 0)
        return -1;
    w->have += (size_t)k;
    if (w->have < sizeof w->in)
        return 0;
    if (w->in.magic != MAGIC || w->in.node < 0 || w->in.node >= d->l->nodes
        || memcmp(w->in.token, d->l->token, sizeof w->in.token) != 0)
        return -1;
    return 1;
}

static void settle(struct dial *d, struct way *w, int q)
{
    struct sockaddr_storage a;
    socklen_t len = sizeof a;

    set_options(w->fd, d->deadline);
    if (!getpeername(w->fd, (struct sockaddr *)&a, &len))
        sl_address_print(&a, d->l->at[q], SL_ADDRESS_TEXT);
    d->l->fd[q] = w->fd;
    w->fd = -1;
}

static void dialled_moves(struct dial *d, int q, short what)
{
    struct way *w = &d->to[q];
    int e = 0, heard;
    socklen_t len = sizeof e;

    if (!w->connected) {
        if (!what)
            return;
        if (getsockopt(w->fd, SOL_SOCKET, SO_ERROR, &e, &len) || e) {
            next_address(d, q, strerror(e ? e : errno));
            return;
        }
        w->connected = 1;
        if (say_hello(d, w->fd, q))
            next_address(d, q, strerror(errno));
        return;
    }
    heard = what ? hear_hello(d, w) : 0;
    if (heard < 0 || (heard > 0 && w->in.node != q))
        next_address(d, q, "somebody else answers there");
    else if (heard > 0)
        settle(d, w, q);
}

static void accepted_moves(struct dial *d, struct way *w)
{
    int heard = hear_hello(d, w), q = w->in.node;

    if (heard > 0 && q > d->l->node && !say_hello(d, w->fd, q)) {
        if (d->l->fd[q] >= 0) /* its dialler has given the first one up */
            close(d->l->fd[q]);
        settle(d, w, q);
    } else if (heard)
        drop(w);
}

static void take_in(struct dial *d, int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct way *w = NULL;

    for (int i = 0; i < STRANGERS && fd >= 0; i++)
        if (d->from[i].fd < 0)
            w = &d->from[i];
    if (!w) { /* too many who say nothing: a peer dials again */
        if (fd >= 0)
            close(fd);
        return;
    }
    *w = (struct way){
        .fd = fd, .node = -1, .connected = 1, .until = sl_ctl_now() + TRY_MOST_MS * 1000000ull};
}

static int missing_node(const struct sl_links *l)
{
    for (int q = 0; q < l->nodes; q++)
        if (q != l->node && l->fd[q] < 0)
            return q;
    return -1;
}

static void start_and_expire(struct dial *d)
{
    uint64_t now = sl_ctl_now();

    for (int q = 0; q < d->l->node; q++) {
        struct way *w = &d->to[q];

        if (w->fd >= 0 && now > w->until)
            next_address(d, q, w->connected ? "no answer" : "cannot be reached");
        if (d->l->fd[q] < 0 && w->fd < 0 && now >= d->peer[q].rest)
            dial(d, q);
    }
    for (int i = 0; i < STRANGERS; i++)
        if (d->from[i].fd >= 0 && now > d->from[i].until)
            drop(&d->from[i]);
}

static void look(struct dial *d)
{
    struct pollfd p[SL_ADDRESS_MAX + SL_MAX_RANKS + STRANGERS];
    struct sl_links *l = d->l;
    nfds_t n = 0, at;

    start_and_expire(d);
    for (int i = 0; i < l->listeners; i++)
        p[n++] = (struct pollfd){.fd = l->listener[i], .events = POLLIN};
    for (int q = 0; q < l->node; q++)
        p[n++]
            = (struct pollfd){.fd = d->to[q].fd, .events = d->to[q].connected ? POLLIN : POLLOUT};
    for (int i = 0; i < STRANGERS; i++)
        p[n++] = (struct pollfd){.fd = d->from[i].fd, .events = POLLIN};
    if (poll(p, n, AGAIN_MS) <= 0)
        return;
    at = (nfds_t)l->listeners;
    for (int q = 0; q < l->node; q++, at++)
        if (d->to[q].fd >= 0)
            dialled_moves(d, q, p[at].revents);
    for (int i = 0; i < STRANGERS; i++, at++)
        if (d->from[i].fd >= 0 && p[at].revents)
            accepted_moves(d, &d->from[i]);
    for (int i = 0; i < l->listeners; i++)
        if (p[i].revents)
            take_in(d, l->listener[i]);
}

static int too_late(const struct dial *d, int q, struct sl_err *err)
{
    const char *why = *d->peer[q].why ? d->peer[q].why : "it has not called";

    sl_fail(err, SL_BUSY, "waited %g s for a connection with node %d (%s): %s", d->deadline, q,
            d->l->host[q], why);
    return sl_hint(err,
                   "Set SHARDLAUNCH_IFNAME to the interface that connects the nodes (here %s).",
                   d->l->dev);
}

int sl_links_connect(struct sl_links *l, const char *const *text, const char *const *host,
                     double deadline, const struct sl_ctl *ctl, struct sl_err *err)
{
    struct dial d = {.l = l, .deadline = deadline};
    uint64_t t0 = sl_ctl_now();
    int q, rc = 0;

    for (q = 0; q < SL_MAX_RANKS; q++)
        d.to[q].fd = -1;
    for (int i = 0; i < STRANGERS; i++)
        d.from[i].fd = -1;
    for (q = 0; q < l->nodes; q++) {
        snprintf(l->host[q], sizeof l->host[q], "%s", host[q]);
        if (q != l->node && read_peer(&d.peer[q], text[q], q, err))
            return -1;
    }
    while (!rc && (q = missing_node(l)) >= 0) {
        look(&d);
        if (sl_ctl_failed(ctl))
            rc = sl_fail(err, SL_PEER, "the attempt was ended while nodes were being connected");
        else if (deadline > 0 && 1e-9 * (double)(sl_ctl_now() - t0) > deadline)
            rc = too_late(&d, q, err);
    }
    for (q = 0; q < SL_MAX_RANKS; q++)
        drop(&d.to[q]);
    for (int i = 0; i < STRANGERS; i++)
        drop(&d.from[i]);
    for (; l->listeners > 0; l->listeners--)
        close(l->listener[l->listeners - 1]);
    return rc;
}

void sl_links_close(struct sl_links *l)
{
    for (; l->listeners > 0; l->listeners--)
        close(l->listener[l->listeners - 1]);
    for (int q = 0; q < l->nodes; q++) {
        if (l->fd[q] >= 0)
            close(l->fd[q]);
        l->fd[q] = -1;
    }
}
