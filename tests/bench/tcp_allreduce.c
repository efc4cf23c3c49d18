/*
 * tcp_allreduce.c - how much of what a plain TCP stream carries an all-reduce between nodes gets
 *
 * usage: tcp_allreduce [MIB [NODES [RANKS_PER_NODE [ROUNDS [IFNAME]]]]]
 *
 * Ranks are processes, nodes share nothing but connections over IFNAME (lo). In each round an
 * all-reduce (the two halves that ddp uses) of MIB mebibytes of fp32 follows plain streams between
 * as many pairs of processes, which send and receive from a warm buffer and do nothing else: one
 * way, and both ways at once, as an all-reduce does. An all-reduce moves 2 (nodes - 1) / nodes of
 * the buffer out of each node and as much into it. Printed: medians over the rounds in GB/s out of
 * a node, and the ratios. On loopback both ends of all nodes share the processor, so that sums cost
 * what on real machines the network's slowness hides.
 */
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "executor/comm.h"
#include "executor/links.h"

enum { MAX_ROUNDS = 64, BLOCK = 1 << 20 };

struct board {
    char text[SL_MAX_RANKS][SL_LINKS_TEXT];
    _Atomic int pinned, bad;
    double one_way[MAX_ROUNDS], both[MAX_ROUNDS], reduce[MAX_ROUNDS]; /* seconds */
};

static int nodes = 2, nlocal = 1, rounds = 5;
static const char *ifname = "lo";
static int64_t bytes = 64 << 20;
static struct board *board;
static struct sl_ctl *ctl[SL_MAX_RANKS];
static char *arena[SL_MAX_RANKS];

static void must(int ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "tcp_allreduce: %s\n", what);
    _exit(1);
}

static void *shared(size_t n)
{
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    must(p != MAP_FAILED, "no memory");
    return p;
}

static double now(void)
{
    return 1e-9 * (double)sl_ctl_now();
}

/* Every rank sends `out` bytes to the same place on the next node and takes `in` from the one
 * before. */
static void stream(const struct sl_links *l, int64_t out, int64_t in)
{
    static char from[BLOCK], to[BLOCK];
    int next = l->fd[(l->node + 1) % nodes], prev = l->fd[(l->node + nodes - 1) % nodes];

    while (out > 0 || in > 0) {
        struct pollfd p[2] = {{out > 0 ? next : -1, POLLOUT, 0}, {in > 0 ? prev : -1, POLLIN, 0}};
        ssize_t k;

        must(poll(p, 2, 60000) > 0, "a stream stands still");
        k = p[0].revents ? send(next, from, out < BLOCK ? (size_t)out : BLOCK, MSG_NOSIGNAL) : 0;
        out -= k > 0 ? k : 0;
        k = p[1].revents ? recv(prev, to, in < BLOCK ? (size_t)in : BLOCK, 0) : 0;
        must(!p[1].revents || k != 0, "a stream ended");
        in -= k > 0 ? k : 0;
    }
}

static void all_meet(struct sl_comm *c)
{
    struct sl_err err;

    must(!sl_comm_barrier(c, SL_WAIT_START, -1, &err), err.msg);
}

static double timed_streams(struct sl_comm *c, const struct sl_links *l, int both)
{
    int64_t n = 2 * bytes * (nodes - 1) / nodes / nlocal;
    int out = both || l->node % 2 == 0, in = both || ((l->node + nodes - 1) % nodes) % 2 == 0;
    double t0;

    all_meet(c);
    t0 = now();
    stream(l, out ? n : 0, in ? n : 0);
    all_meet(c);
    return now() - t0;
}

static double timed_reduce(struct sl_comm *c)
{
    struct sl_move m = {.shard = bytes / 4 / (nodes * nlocal), .type = SL_F32, .meet = 1};
    struct sl_err err;
    double t0;

    all_meet(c);
    t0 = now();
    must(!sl_comm_reduce_inplace(c, &m, 0, &err), err.msg);
    must(!sl_comm_allgather_inplace(c, &m, 0, &err), err.msg);
    all_meet(c);
    return now() - t0;
}

static void connect_all(struct sl_comm *c, struct sl_links *l, int rank)
{
    const char *text[SL_MAX_RANKS], *host[SL_MAX_RANKS];
    struct sl_err err;

    must(!sl_links_listen(l, rank / nlocal, nodes, ifname, &err), err.msg);
    snprintf(board->text[rank], SL_LINKS_TEXT, "%s", l->text);
    atomic_fetch_add(&board->pinned, 1);
    while (atomic_load(&board->pinned) < nodes * nlocal)
        usleep(1000);
    for (int q = 0; q < nodes; q++) {
        text[q] = board->text[q * nlocal + rank % nlocal];
        host[q] = "here";
    }
    must(!sl_links_connect(l, text, host, 30, c->ctl, &err), err.msg);
    must(!sl_comm_open_nodes(c, l, &err), err.msg);
}

static void fill(float *x, int rank)
{
    for (int64_t i = 0; i < bytes / 4; i++)
        x[i] = (float)(rank + 1) * (float)(1 + i % 7);
}

static void check(const float *x)
{
    int n = nodes * nlocal;

    for (int64_t i = 0; i < bytes / 4; i += 1009)
        must(x[i] == (float)(n * (n + 1) / 2) * (float)(1 + i % 7), "a sum is wrong");
}

static int rank_main(int rank)
{
    struct sl_err err;
    struct sl_dev *dev = sl_dev_open("cpu", 1, &err);
    struct sl_links l;
    struct sl_comm c;
    char *mine[SL_MAX_RANKS] = {0};

    must(dev != NULL, err.msg);
    for (int r = rank / nlocal * nlocal; r < (rank / nlocal + 1) * nlocal; r++)
        mine[r] = arena[r];
    sl_comm_init(&c, ctl[rank / nlocal], mine, dev, rank, nodes * nlocal, 60);
    connect_all(&c, &l, rank);
    fill((float *)(void *)mine[rank], rank);
    timed_reduce(&c);
    check((const float *)(const void *)mine[rank]);
    for (int i = 0; i < rounds; i++) {
        double a = timed_streams(&c, &l, 0), b = timed_streams(&c, &l, 1), r = timed_reduce(&c);

        if (rank)
            continue;
        board->one_way[i] = a;
        board->both[i] = b;
        board->reduce[i] = r;
    }
    sl_comm_fini(&c);
    sl_links_close(&l);
    sl_dev_close(dev);
    return 0;
}

static int order(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *v)
{
    qsort(v, (size_t)rounds, sizeof *v, order);
    return v[rounds / 2];
}

int main(int argc, char **argv)
{
    struct sl_err err;
    double one, both, all, gb;
    int st, bad = 0;

    bytes = argc > 1 ? (int64_t)atoi(argv[1]) << 20 : bytes;
    nodes = argc > 2 ? atoi(argv[2]) : nodes;
    nlocal = argc > 3 ? atoi(argv[3]) : nlocal;
    rounds = argc > 4 ? atoi(argv[4]) : rounds;
    ifname = argc > 5 ? argv[5] : ifname;
    must(nodes >= 2 && nlocal >= 1 && nodes * nlocal <= SL_MAX_RANKS && rounds >= 1
             && rounds <= MAX_ROUNDS && bytes > 0,
         "usage: tcp_allreduce [MIB [NODES [RANKS_PER_NODE [ROUNDS [IFNAME]]]]]");
    bytes = bytes / (64 * nodes * nlocal) * (64 * nodes * nlocal);
    board = shared(sizeof *board);
    for (int q = 0; q < nodes; q++) {
        ctl[q] = shared(sl_ctl_size(nodes * nlocal, 1));
        must(!sl_ctl_init(ctl[q], nodes * nlocal, 1, &err), err.msg);
    }
    for (int r = 0; r < nodes * nlocal; r++)
        arena[r] = shared((size_t)bytes);
    for (int r = 0; r < nodes * nlocal; r++) {
        pid_t p = fork();

        must(p >= 0, "no process");
        if (p == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            _exit(rank_main(r));
        }
    }
    for (int r = 0; r < nodes * nlocal; r++) {
        must(wait(&st) > 0, "no child");
        bad |= st;
        for (int q = 0; st && q < nodes; q++)
            sl_ctl_fail(ctl[q], -1);
    }
    must(!bad, "a rank failed");
    gb = 1e-9 * 2 * (double)bytes * (nodes - 1) / nodes;
    one = gb / median(board->one_way);
    both = gb / median(board->both);
    all = gb / median(board->reduce);
    printf("%lld MiB, %d nodes of %d, GB/s out of a node: plain one way %.2f, both ways %.2f,"
           " all-reduce %.2f\n",
           (long long)(bytes >> 20), nodes, nlocal, one, both, all);
    printf("ratio to both ways %.2f", all / both);
    if (nodes == 2) /* one way, one node sends; in an all-reduce both do */
        printf(", of all bytes through the wire to one way %.2f", 2 * all / one);
    printf("\n");
    return 0;
}
