/* hand.c - memfds over SCM_RIGHTS */
#include "launcher/hand.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

struct ask {
    int32_t attempt, rank;
};

union control {
    struct cmsghdr head;
    char space[CMSG_SPACE(SL_HAND_FDS * sizeof(int))];
};

static socklen_t address(struct sockaddr_un *u, const char *name)
{
    *u = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(u->sun_path + 1, sizeof u->sun_path - 1, "%s", name); /* a leading NUL: no file */
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
}

int sl_hand_listen(const char *name, struct sl_err *err)
{
    struct sockaddr_un u;
    socklen_t size = address(&u, name);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd >= 0 && !bind(fd, (void *)&u, size) && !listen(fd, SL_MAX_RANKS))
        return fd;
    sl_fail(err, SL_SYSTEM, "cannot listen for the node's other tasks: %s", strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

int sl_hand_ask(const char *name, int attempt, int rank, struct sl_err *err)
{
    struct ask q = {attempt, rank};
    struct sockaddr_un u;
    socklen_t size = address(&u, name);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    if (fd >= 0 && !connect(fd, (void *)&u, size)
        && send(fd, &q, sizeof q, MSG_NOSIGNAL) == sizeof q)
        return fd;
    sl_fail(err, SL_SYSTEM, "cannot ask the node's first task for memory: %s", strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

static int answer(int fd, const struct ask *q, struct sl_local *l, struct sl_pmix_server *pmix,
                  struct sl_err *err)
{
    int fds[SL_HAND_FDS], n = sl_local_fds(l, fds);
    union control c = {.space = {0}};
    struct iovec io;
    struct msghdr m = {.msg_iov = &io, .msg_iovlen = 1, .msg_control = c.space};
    struct sl_buf vars;
    int rc = -1;

    sl_buf_init(&vars, SL_HAND_BYTES);
    if (sl_pmix_server_vars(pmix, q->rank, &vars, err))
        goto end;
    io = (struct iovec){vars.p, vars.len};
    m.msg_controllen = CMSG_SPACE((size_t)n * sizeof(int));
    c.head = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
                              .cmsg_type = SCM_RIGHTS,
                              .cmsg_len = CMSG_LEN((size_t)n * sizeof(int))};
    memcpy(CMSG_DATA(&c.head), fds, (size_t)n * sizeof(int));
    rc = sendmsg(fd, &m, MSG_NOSIGNAL) < 0
             ? sl_fail(err, SL_SYSTEM, "cannot hand memory to rank %d: %s", q->rank, strerror(errno))
             : 0;
end:
    sl_buf_fini(&vars);
    return rc;
}

int sl_hand_serve(int fd, int attempt, struct sl_local *l, struct sl_pmix_server *pmix,
                  struct sl_err *err)
{
    int s = accept4(fd, NULL, NULL, SOCK_CLOEXEC), rc = 0;
    struct timeval patience = {.tv_sec = 2};
    struct ucred who;
    socklen_t size = sizeof who;
    struct ask q;

    if (s < 0)
        return 0;
    setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (!getsockopt(s, SOL_SOCKET, SO_PEERCRED, &who, &size) && who.uid == geteuid()
        && recv(s, &q, sizeof q, 0) == sizeof q && q.attempt == attempt
        && sl_local_here(l, q.rank))
        rc = answer(s, &q, l, pmix, err);
    close(s);
    return rc;
}

int sl_hand_take(int fd, int fds[SL_HAND_FDS], int *n, char vars[SL_HAND_BYTES], struct sl_err *err)
{
    union control c = {.space = {0}};
    struct iovec io = {vars, SL_HAND_BYTES};
    struct msghdr m = {.msg_iov = &io,
                       .msg_iovlen = 1,
                       .msg_control = c.space,
                       .msg_controllen = sizeof c.space};
    ssize_t k = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);
    struct cmsghdr *h = k > 0 ? CMSG_FIRSTHDR(&m) : NULL;

    if (k <= 0)
        return sl_fail(err, SL_PEER, "the node's first task is gone");
    if (!h || h->cmsg_type != SCM_RIGHTS)
        return sl_fail(err, SL_BUG, "the node's first task has sent no memory");
    *n = (int)((h->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    memcpy(fds, CMSG_DATA(h), (size_t)*n * sizeof(int));
    if (k >= 2 && !vars[k - 1] && !vars[k - 2] && !(m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
        return 0;
    while (*n > 0)
        close(fds[--*n]);
    return sl_fail(err, SL_BUG, "what the node's first task has sent is not whole");
}
