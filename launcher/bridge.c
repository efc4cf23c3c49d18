/* bridge.c - put, fence, get, finalize in a child; its answer comes through a socket */
#include "launcher/bridge.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <pmix.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"

enum { TICK_MS = 100, PATIENCE_S = 2 /* the server's own deadline comes first */ };
static const char key[] = "sl.task";

struct answer {
    int32_t me, n;
    struct sl_err err; /* code SL_OK: n cards follow */
};

/* ---- the child ---- */

static int refused(struct sl_err *err, const char *what, pmix_status_t st)
{
    return sl_fail(err, SL_SYSTEM, "the launcher's PMIx server: %s: %s", what,
                   PMIx_Error_string(st));
}

static int put_card(const void *card, size_t size, struct sl_err *err)
{
    pmix_value_t val;
    pmix_status_t st;

    PMIX_VALUE_CONSTRUCT(&val);
    val.type = PMIX_BYTE_OBJECT;
    val.data.bo.bytes = (char *)(uintptr_t)card; /* copied by put */
    val.data.bo.size = size;
    st = PMIx_Put(PMIX_GLOBAL, key, &val);
    if (st == PMIX_SUCCESS)
        st = PMIx_Commit();
    return st == PMIX_SUCCESS ? 0 : refused(err, "put", st);
}

/* Data must be collected: Slurm's default fence without data is no barrier between nodes. */
static int fence(const pmix_proc_t *all, double seconds, struct sl_err *err)
{
    int limit = (int)ceil(seconds);
    bool yes = true;
    pmix_info_t in[2];
    pmix_status_t st;

    PMIX_INFO_LOAD(&in[0], PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
    PMIX_INFO_LOAD(&in[1], PMIX_TIMEOUT, &limit, PMIX_INT);
    st = PMIx_Fence(all, 1, in, 2);
    return st == PMIX_SUCCESS ? 0 : refused(err, "fence of all tasks", st);
}

static int get_card(const pmix_proc_t *p, char *to, size_t size, struct sl_err *err)
{
    pmix_value_t *v;
    pmix_status_t st = PMIx_Get(p, key, NULL, 0, &v);
    int rc = 0;

    if (st != PMIX_SUCCESS)
        return refused(err, "get", st);
    if (v->type == PMIX_BYTE_OBJECT && v->data.bo.size == size)
        memcpy(to, v->data.bo.bytes, size);
    else
        rc = sl_fail(err, SL_USAGE, "task %d runs another version of this program", (int)p->rank);
    PMIX_VALUE_RELEASE(v);
    return rc;
}

static char *talk(const void *card, size_t size, double seconds, struct answer *a)
{
    pmix_proc_t me, all, p;
    pmix_value_t *v;
    char *cards = NULL;
    pmix_status_t st = PMIx_Init(&me, NULL, 0);

    if (st != PMIX_SUCCESS) {
        refused(&a->err, "connect", st);
        return NULL;
    }
    all = p = me;
    all.rank = PMIX_RANK_WILDCARD;
    st = PMIx_Get(&all, PMIX_JOB_SIZE, NULL, 0, &v);
    if (st != PMIX_SUCCESS) {
        refused(&a->err, "size of the job", st);
        return NULL;
    }
    a->me = (int32_t)me.rank;
    a->n = (int32_t)v->data.uint32;
    PMIX_VALUE_RELEASE(v);
    if (a->n < 1 || a->n > SL_BRIDGE_TASKS) {
        sl_fail(&a->err, SL_USAGE, "started as %d tasks; the most is %d", a->n, SL_BRIDGE_TASKS);
        return NULL;
    }
    cards = sl_calloc((size_t)a->n, size);
    if (!cards)
        sl_fail(&a->err, SL_SYSTEM, "cannot hold the cards of %d tasks", a->n);
    else if (!put_card(card, size, &a->err) && !fence(&all, seconds, &a->err)) {
        int bad = 0;

        for (p.rank = 0; !bad && (int)p.rank < a->n; p.rank++)
            bad = get_card(&p, cards + p.rank * size, size, &a->err);
    }
    st = PMIx_Finalize(NULL, 0);
    if (st != PMIX_SUCCESS && a->err.code == SL_OK)
        refused(&a->err, "finalize", st);
    return cards;
}

static int write_all(int fd, const void *from, size_t n)
{
    for (const char *p = from; n;) {
        ssize_t k = send(fd, p, n, MSG_NOSIGNAL);

        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return -1;
        p += k;
        n -= (size_t)k;
    }
    return 0;
}

static int child(int fd, const void *card, size_t size, double seconds)
{
    struct answer a = {.n = 0};
    char *cards;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "sl-bridge");
    cards = talk(card, size, seconds, &a);
    if (write_all(fd, &a, sizeof a) || a.err.code != SL_OK
        || write_all(fd, cards, (size_t)a.n * size))
        return 1;
    return 0;
}

/* ---- the caller ---- */

/* -1: it has ended, or is late. */
static int read_all(int fd, void *to, size_t n, int64_t end)
{
    for (char *p = to; n;) {
        struct pollfd pf = {fd, POLLIN, 0};
        ssize_t k;

        if (sl_clock_ns() > end) {
            errno = ETIMEDOUT;
            return -1;
        }
        if (poll(&pf, 1, TICK_MS) <= 0)
            continue;
        k = recv(fd, p, n, 0);
        if (k < 0 && errno == EINTR)
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

static int hear(int fd, size_t size, double seconds, struct sl_bridge *ret, struct sl_err *err)
{
    int64_t end = sl_clock_ns() + (int64_t)(1e9 * (seconds + PATIENCE_S));
    struct answer a;

    if (read_all(fd, &a, sizeof a, end))
        goto lost;
    if (a.err.code != SL_OK) {
        *err = a.err;
        return -1;
    }
    ret->me = a.me;
    ret->n = a.n;
    ret->cards = sl_calloc((size_t)a.n, size);
    if (!ret->cards)
        return sl_fail(err, SL_SYSTEM, "cannot hold the cards of %d tasks", a.n);
    if (!read_all(fd, ret->cards, (size_t)a.n * size, end))
        return 0;
    free(ret->cards);
    ret->cards = NULL;
lost:
    if (errno == ETIMEDOUT)
        return sl_fail(err, SL_BUSY, "not all tasks came to the exchange within %g s", seconds);
    return sl_fail(err, SL_SYSTEM, "the exchange with the other tasks ended early: %s",
                   strerror(errno));
}

int sl_bridge_exchange(const void *card, size_t size, double seconds, struct sl_bridge *ret,
                       struct sl_err *err)
{
    struct sl_err here = {0};
    int pair[2], st, rc;
    pid_t pid;

    *ret = (struct sl_bridge){.n = 0};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
        return sl_fail(err, SL_SYSTEM, "cannot make a socket: %s", strerror(errno));
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        close(pair[0]);
        _exit(child(pair[1], card, size, seconds));
    }
    close(pair[1]);
    if (pid < 0) {
        close(pair[0]);
        return sl_fail(err, SL_SYSTEM, "cannot start a process: %s", strerror(errno));
    }
    rc = hear(pair[0], size, seconds, ret, &here);
    close(pair[0]);
    if (rc)
        kill(pid, SIGKILL);
    while (waitpid(pid, &st, 0) < 0 && errno == EINTR)
        ;
    if (rc && err)
        *err = here;
    return rc;
}
