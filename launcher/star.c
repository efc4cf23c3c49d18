/* star.c - listen, dial, frame */
#include "launcher/star.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "executor/address.h"
#include "executor/ctl.h"

enum { MAGIC = 0x51a7, PIECE = 65536, TICK_MS = 100, CONNECT_MS = 2000, HELLO_MS = 2000, USER_TIMEOUT_MS = 10000 };

struct hello {
    int32_t magic, index;
    unsigned char token[SL_STAR_TOKEN];
};

/* The IPv4 ones of those that ranks would try, too. */
static int add_addresses(char *address, const char *interfaces, struct sl_err *err)
{
    struct sl_address a[SL_ADDRESS_MAX];
    int n = sl_address_list(interfaces, a, err);

    address[0] = '\0';
    for (int i = 0; i < n; i++) {
        size_t len = strlen(address);

        if (a[i].at.ss_family != AF_INET || len + INET_ADDRSTRLEN + 8 > SL_STAR_ADDRESS)
            continue;
        if (len)
            address[len++] = ',';
        inet_ntop(AF_INET, &((struct sockaddr_in *)(void *)&a[i].at)->sin_addr, address + len,
                  INET_ADDRSTRLEN);
    }
    if (n < 0 || *address)
        return n < 0 ? -1 : 0;
    sl_fail(err, SL_USAGE, "this machine has no IPv4 address for the agents to meet at");
    return sl_hint(err, "SHARDLAUNCH_IFNAME names the network interfaces to use.");
}

int sl_star_listen(char address[SL_STAR_ADDRESS], const char *interfaces, struct sl_err *err)
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    socklen_t size = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0 || bind(fd, (void *)&a, sizeof a) || listen(fd, 1024)
        || getsockname(fd, (void *)&a, &size)) {
        sl_fail(err, SL_SYSTEM, "cannot listen for the other agents: %s", strerror(errno));
        goto fail;
    }
    if (add_addresses(address, interfaces, err))
        goto fail;
    snprintf(address + strlen(address), SL_STAR_ADDRESS - strlen(address), ":%d", ntohs(a.sin_port));
    return fd;
fail:
    if (fd >= 0)
        close(fd);
    return -1;
}

static void tune(int fd)
{
    int one = 1, idle = 5, count = 3, ms = USER_TIMEOUT_MS;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}

static void init(struct sl_star_conn *c, int fd)
{
    *c = (struct sl_star_conn){.fd = fd, .heard = sl_ctl_now()};
    sl_buf_init(&c->in, SL_STAR_MAX + sizeof(struct sl_star_head) + PIECE);
    sl_buf_init(&c->out, SL_STAR_MAX);
}

/* Exactly n bytes of a non-blocking socket, while `go_on` says so. ETIMEDOUT, or the cause. */
static int read_all(int fd, void *to, size_t n, int (*go_on)(void *user), void *user)
{
    for (char *p = to; n;) {
        struct pollfd pf = {fd, POLLIN, 0};
        ssize_t k;

        if (!go_on(user)) {
            errno = ETIMEDOUT;
            return -1;
        }
        if (poll(&pf, 1, TICK_MS) <= 0)
            continue;
        k = recv(fd, p, n, MSG_DONTWAIT);
        if (k < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (k <= 0) {
            errno = k ? errno : ECONNRESET;
            return -1;
        }
        p += k;
        n -= (size_t)k;
    }
    return 0;
}

static int in_time(void *end)
{
    return sl_ctl_now() < *(uint64_t *)end;
}

static int connect_to(const char *ip, int port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), err = 0;
    struct pollfd p = {fd, POLLOUT, 0};
    socklen_t size = sizeof err;

    if (fd < 0 || inet_pton(AF_INET, ip, &a.sin_addr) != 1)
        goto fail;
    if (connect(fd, (void *)&a, sizeof a)
        && (errno != EINPROGRESS || poll(&p, 1, CONNECT_MS) != 1
            || getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &size) || err))
        goto fail;
    tune(fd);
    return fd;
fail:
    if (fd >= 0)
        close(fd);
    return -1;
}

int sl_star_dial(struct sl_star_conn *c, const char *address, int index, const unsigned char *theirs,
                 const unsigned char *mine, int (*go_on)(void *user), void *user,
                 struct sl_err *err)
{
    char list[SL_STAR_ADDRESS], *save = NULL, *colon;
    struct hello h = {MAGIC, index, {0}}, back;
    int why = ENETUNREACH;

    memcpy(h.token, theirs, sizeof h.token);
    snprintf(list, sizeof list, "%s", address);
    colon = strrchr(list, ':');
    if (!colon)
        return sl_fail(err, SL_BUG, "\"%s\" is no address", address);
    *colon = '\0';
    for (char *ip = strtok_r(list, ",", &save); ip; ip = strtok_r(NULL, ",", &save)) {
        int fd = connect_to(ip, atoi(colon + 1));

        if (fd < 0)
            continue;
        if (send(fd, &h, sizeof h, MSG_NOSIGNAL) == sizeof h
            && !read_all(fd, &back, sizeof back, go_on, user)
            && back.magic == MAGIC && !memcmp(back.token, mine, sizeof back.token)) {
            init(c, fd);
            return 0;
        }
        why = errno;
        close(fd);
        if (why == ETIMEDOUT)
            break;
    }
    return sl_fail(err, why == ETIMEDOUT ? SL_BUSY : SL_SYSTEM,
                   "no connection to the job's first agent at %s: %s", address, strerror(why));
}

int sl_star_accept(struct sl_star_conn *c, int fd, const unsigned char *mine,
                   const unsigned char *(*token)(void *user, int index), void *user, int *index)
{
    int s = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    uint64_t end = sl_ctl_now() + HELLO_MS * 1000000u;
    const unsigned char *theirs;
    struct hello h;

    if (s < 0)
        return -1;
    if (read_all(s, &h, sizeof h, in_time, &end) || h.magic != MAGIC
        || memcmp(h.token, mine, sizeof h.token) || !(theirs = token(user, h.index)))
        goto fail;
    *index = h.index;
    memcpy(h.token, theirs, sizeof h.token);
    if (send(s, &h, sizeof h, MSG_NOSIGNAL) != sizeof h)
        goto fail;
    tune(s);
    init(c, s);
    return 0;
fail:
    close(s);
    return -1;
}

static int gone(struct sl_star_conn *c)
{
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
    sl_buf_fini(&c->in);
    sl_buf_fini(&c->out);
    return -1;
}

int sl_star_flush(struct sl_star_conn *c)
{
    size_t done = 0;

    if (c->fd < 0)
        return -1;
    while (done < c->out.len) {
        ssize_t k = send(c->fd, c->out.p + done, c->out.len - done, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0 && errno == EAGAIN)
            break;
        if (k < 0)
            return gone(c);
        done += (size_t)k;
    }
    sl_buf_drop(&c->out, done);
    return 0;
}

int sl_star_put(struct sl_star_conn *c, uint32_t type, int a, int b, int d, const void *data,
                size_t len)
{
    struct sl_star_head h = {.type = type, .len = (uint32_t)len, .a = a, .b = b, .c = d};

    if (c->fd < 0)
        return -1;
    if (len > SL_STAR_MAX)
        return gone(c);
    sl_buf_add(&c->out, &h, sizeof h);
    sl_buf_add(&c->out, data, len);
    return c->out.failed ? gone(c) : sl_star_flush(c);
}

size_t sl_star_waiting(const struct sl_star_conn *c)
{
    return c->fd < 0 ? 0 : c->out.len;
}

int sl_star_read(struct sl_star_conn *c, sl_star_f on, void *user)
{
    char piece[PIECE];

    while (c->fd >= 0) {
        size_t off = 0;
        ssize_t k = recv(c->fd, piece, sizeof piece, MSG_DONTWAIT);

        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0 && errno == EAGAIN)
            return 0;
        if (k <= 0)
            return gone(c);
        c->heard = sl_ctl_now();
        sl_buf_add(&c->in, piece, (size_t)k);
        if (c->in.failed)
            return gone(c);
        for (struct sl_star_head h; c->fd >= 0 && c->in.len - off >= sizeof h;) {
            memcpy(&h, c->in.p + off, sizeof h);
            if (h.len > SL_STAR_MAX)
                return gone(c);
            if (c->in.len - off - sizeof h < h.len)
                break;
            on(user, &h, c->in.p + off + sizeof h);
            off += sizeof h + h.len;
        }
        if (c->fd >= 0)
            sl_buf_drop(&c->in, off);
    }
    return -1;
}

void sl_star_close(struct sl_star_conn *c)
{
    if (c->fd < 0)
        return;
    sl_star_flush(c);
    gone(c);
}
