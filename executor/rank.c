/* rank.c - one rank's process: take what the agent hands over, train, leave with a status */
#include "executor/rank.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/mem.h"
#include "executor/data/dataset.h"
#include "executor/train.h"
#include "executor/wireup.h"

struct rank {
    struct sl_rank_start start;
    char *text;
    struct sl_job *job;
    struct sl_program *program;
    struct sl_dataset *data;
    struct sl_dev *dev;
    struct sl_ctl *ctl;
    size_t ctl_bytes;
    char *arena[SL_MAX_RANKS];
    struct sl_wireup wire;
    int wired, first; /* of this node's ranks */
    const char *ifname; /* NULL: not chosen */
    struct sl_links links;
    struct sl_reporter reporter;
    struct sl_comm comm;
    struct sl_trained trained;
};

/* --- what was handed over ------------------------------------------------------------------- */

static int check_start(const struct sl_rank_start *s, struct sl_err *err)
{
    if (s->magic != SL_RANK_MAGIC || s->version != SL_RANK_VERSION)
        return sl_fail(err, SL_BUG, "the start record is not one of this version");
    if (s->ranks < 1 || s->ranks > SL_MAX_RANKS || s->rank < 0 || s->rank >= s->ranks
        || s->nodes < 1 || s->nodes > s->ranks || s->nlocal < 1 || s->nlocal > s->ranks || s->node < 0 || s->node >= s->nodes
        || s->nodes * s->nlocal != s->ranks || s->local < 0 || s->local >= s->nlocal
        || s->node * s->nlocal + s->local != s->rank || s->threads < 1 || s->arena_bytes < 1
        || !(s->hang_timeout >= 0) || s->text_bytes > SL_RANK_MAX_TEXT)
        return sl_fail(err, SL_BUG, "the start record of rank %d of %d makes no sense", s->rank,
                       s->ranks);
    return 0;
}

int sl_rank_start_read(int fd, struct sl_rank_start *ret, char **text, struct sl_err *err)
{
    ssize_t n = pread(fd, ret, sizeof *ret, 0);

    *text = NULL;
    if (n != (ssize_t)sizeof *ret)
        return sl_fail(err, SL_USAGE, "descriptor %d holds no start record", fd);
    if (check_start(ret, err))
        return -1;
    ret->data.train[SL_DATASET_PATH - 1] = ret->data.valid[SL_DATASET_PATH - 1] = 0;
    ret->checkpoints[SL_CKPT_PATH - 1] = ret->from[SL_CKPT_PATH - 1] = 0;
    *text = sl_calloc(ret->text_bytes + 1u, 1);
    if (!*text)
        return sl_fail(err, SL_SYSTEM, "no memory for the job's text");
    n = pread(fd, *text, ret->text_bytes, sizeof *ret);
    if (n == (ssize_t)ret->text_bytes && strlen(*text) == ret->text_bytes)
        return 0;
    free(*text);
    *text = NULL;
    return sl_fail(err, SL_BUG, "the job's text was handed over in part");
}

static void *map(int fd, size_t bytes, int prot, const char *what, struct sl_err *err)
{
    struct stat st;
    void *p;

    if (fstat(fd, &st)) {
        sl_fail(err, SL_SYSTEM, "cannot look at the %s: %s", what, strerror(errno));
        return NULL;
    }
    if (st.st_size < 0 || (size_t)st.st_size < bytes) { /* beyond its end is a SIGBUS */
        sl_fail(err, SL_BUG, "the %s has %lld bytes, not %zu", what, (long long)st.st_size, bytes);
        return NULL;
    }
    p = mmap(NULL, bytes, prot, MAP_SHARED, fd, 0);
    if (p != MAP_FAILED)
        return p;
    sl_fail(err, SL_SYSTEM, "cannot map the %s of %zu bytes: %s", what, bytes, strerror(errno));
    return NULL;
}

/* First of all, so that a rank that hangs later can be named. */
static int map_ctl(struct rank *k, struct sl_err *err)
{
    struct stat st;

    if (fstat(k->start.ctl_fd, &st) || (size_t)st.st_size < sl_ctl_size(k->start.ranks, 1))
        return sl_fail(err, SL_BUG, "descriptor %d is no control block", k->start.ctl_fd);
    k->ctl_bytes = (size_t)st.st_size;
    k->ctl = map(k->start.ctl_fd, k->ctl_bytes, PROT_READ | PROT_WRITE, "control block", err);
    if (!k->ctl)
        return -1;
    atomic_store(&k->ctl->r[k->start.rank].pid, (uint32_t)getpid());
    sl_ctl_mark(k->ctl, k->start.rank, 0, 0, SL_PHASE_START);
    return 0;
}

static int map_arenas(struct rank *k, struct sl_err *err)
{
    size_t bytes = (size_t)k->start.arena_bytes;

    for (int l = 0; l < k->start.nlocal; l++) {
        int r = k->first + l, mine = r == k->start.rank;

        k->arena[r] = map(k->start.arena_fd[l], bytes, mine ? PROT_READ | PROT_WRITE : PROT_READ,
                          "arena", err);
        if (!k->arena[r])
            return sl_within(err, "rank %d", r);
    }
    return 0;
}

/* --- the steps of a start --------------------------------------------------------------------- */

static int connect_nodes(struct rank *k, struct sl_err *err)
{
    const char *text[SL_MAX_RANKS], *host[SL_MAX_RANKS];

    for (int q = 0; q < k->start.nodes; q++) {
        const struct sl_card *card = &k->wire.card[q * k->start.nlocal + k->start.local];

        text[q] = card->links;
        host[q] = card->host;
    }
    return sl_links_connect(&k->links, text, host, k->start.hang_timeout, k->ctl, err);
}

static int wire_up(struct rank *k, struct sl_err *err)
{
    struct sl_ctl_rank *me = &k->ctl->r[k->start.rank];

    if (sl_wireup_open(&k->wire, err))
        return -1;
    k->wired = 1;
    if (k->wire.rank != k->start.rank || k->wire.ranks != k->start.ranks)
        return sl_fail(err, SL_BUG, "rank %d of %d by pmix, %d of %d by the agent", k->wire.rank,
                       k->wire.ranks, k->start.rank, k->start.ranks);
    atomic_store(&me->kind, SL_WAIT_WIREUP);
    sl_ctl_mark(k->ctl, k->start.rank, 1, 0, SL_PHASE_WAIT);
    if (k->start.nodes > 1
        && sl_links_listen(&k->links, k->start.node, k->start.nodes, k->ifname, err))
        return -1;
    if (sl_wireup_exchange(&k->wire, k->start.nodes > 1 ? k->links.text : NULL,
                           k->start.hang_timeout, err))
        return -1;
    if (k->start.nodes > 1 && connect_nodes(k, err))
        return -1;
    sl_ctl_mark(k->ctl, k->start.rank, 1, 0, SL_PHASE_LOAD);
    return 0;
}

static int make_program(struct rank *k, struct sl_err *err)
{
    int64_t want;

    k->job = sl_job_parse(k->text, "job", err);
    if (!k->job)
        return -1;
    k->program
        = sl_program_make(k->job, k->start.ranks, k->job->train.strategy, k->start.threads, 0, err);
    if (!k->program)
        return -1;
    want = k->program->arena0;
    if (want != k->start.arena_bytes)
        return sl_fail(err, SL_BUG, "the plan has %lld bytes here and %lld at the agent",
                       (long long)want, (long long)k->start.arena_bytes);
    return sl_ctl_check(k->ctl, k->ctl_bytes, k->start.ranks, k->program->train->nunits, err);
}

static int open_data(struct rank *k, struct sl_err *err)
{
    struct sl_dataset_spec spec;

    spec = sl_dataset_spec(k->job, &k->start.data);
    k->data = sl_dataset_open(&spec, err);
    return k->data ? 0 : -1;
}

static void hello(struct rank *k)
{
    struct sl_report rep = {.type = SL_REPORT_HELLO};

    rep.u.hello.pid = (int)getpid();
    snprintf(rep.u.hello.host, sizeof rep.u.hello.host, "%s", k->wire.card[k->start.rank].host);
    snprintf(rep.u.hello.device, sizeof rep.u.hello.device, "%s", k->dev->name);
    sl_reporter_send(&k->reporter, &rep);
}

/* Which way the bytes go is the first question when they are slow. */
static void tell_network(struct rank *k)
{
    char text[256] = "";
    int at = 0;

    for (int q = 0; q < k->start.nodes; q++)
        if (q != k->start.node && at < (int)sizeof text)
            at += snprintf(text + at, sizeof text - (size_t)at, "%s node %d %s (%s)", at ? "," : "",
                           q, k->links.at[q], k->links.host[q]);
    sl_report_event(sl_reporter_send, &k->reporter, 0, "network", "node %d by %s%s:%s",
                    k->start.node, k->links.dev, k->ifname ? " (SHARDLAUNCH_IFNAME)" : "", text);
}

static int train_sample(const void *from, int64_t sample, int32_t *ids, int32_t *targets,
                        struct sl_err *err)
{
    return sl_dataset_train(from, sample, ids, targets, err);
}

static int valid_sample(const void *from, int64_t index, int32_t *ids, int32_t *targets,
                        struct sl_err *err)
{
    return sl_dataset_valid(from, index, ids, targets, err);
}

static int train(struct rank *k, struct sl_err *err)
{
    struct sl_rank_start *s = &k->start;
    struct sl_ckpt_conf checkpoint = {
        .dir = s->checkpoints,
        .from = *s->from ? s->from : NULL,
        .text = k->text,
        .job = s->job,
        .steps = sl_dataset_steps(k->data, &k->job->train),
        .samples = sl_dataset_train_samples(k->data),
    };
    struct sl_training t = {
        .job = k->job,
        .program = k->program,
        .dev = k->dev,
        .comm = &k->comm,
        .arena = k->arena[k->start.rank],
        .samples = {.train = train_sample,
                    .valid = valid_sample,
                    .from = k->data,
                    .valid_samples = sl_dataset_valid_samples(k->data)},
        .steps = checkpoint.steps,
        .checkpoint = *s->checkpoints ? &checkpoint : NULL,
        .report = sl_reporter_send,
        .report_to = &k->reporter,
    };

    return sl_train(&t, &k->trained, err);
}

/* Pages of my arena that were ever used must be inside the plan. */
static int check_touched(struct rank *k, struct sl_err *err)
{
    int64_t page = sysconf(_SC_PAGESIZE), plan = (k->start.arena_bytes + page - 1) / page * page;
    struct stat st;

    if (fstat(k->start.arena_fd[k->start.local], &st) || st.st_blocks * 512 <= plan)
        return 0;
    return sl_fail(err, SL_BUG, "%lld bytes of the arena were used, the plan has %lld",
                   (long long)st.st_blocks * 512, (long long)k->start.arena_bytes);
}

static int life(struct rank *k, struct sl_err *err)
{
    k->first = k->start.rank - k->start.local;
    if (map_ctl(k, err))
        return -1;
    sl_reporter_init(&k->reporter, k->start.report_fd, k->start.rank);
    if (wire_up(k, err) || make_program(k, err) || map_arenas(k, err) || open_data(k, err))
        return -1;
    k->dev = sl_dev_open("cpu", k->start.threads, err);
    if (!k->dev)
        return -1;
    sl_comm_init(&k->comm, k->ctl, k->arena, k->dev, k->start.rank, k->start.ranks,
                 k->start.hang_timeout);
    k->comm.collective = 1; /* the wire-up */
    hello(k);
    if (k->start.nodes > 1) {
        if (sl_comm_open_nodes(&k->comm, &k->links, err))
            return -1;
        if (k->start.local == 0)
            tell_network(k);
    }
    if (train(k, err) || check_touched(k, err))
        return -1;
    k->wired = 0;
    return sl_wireup_close(&k->wire, err);
}

/* --- the end ---------------------------------------------------------------------------------- */

static enum sl_rank_status status_of(const struct rank *k, const struct sl_err *err)
{
    switch (err->code) {
    case SL_OK:
        return k->trained.stopped ? SL_RANK_STOPPED : SL_RANK_DONE;
    case SL_USAGE:
        return k->trained.diverged ? SL_RANK_DIVERGED : SL_RANK_USAGE;
    case SL_PEER:
        return SL_RANK_PEER;
    case SL_BUSY:
        return SL_RANK_HANG;
    case SL_SYSTEM:
        return SL_RANK_MACHINE;
    case SL_BUG:
        break;
    }
    return SL_RANK_FAILED;
}

/* One line for the log, one record for the store, and the others need not wait for me. */
static void say_failed(struct rank *k, enum sl_rank_status st, const struct sl_err *err)
{
    const char *kind = k->trained.diverged ? "nan" : st == SL_RANK_HANG ? "hang" : "error";

    fprintf(stderr, "rank %d: %s%s%s\n", k->start.rank, err->msg, *err->hint ? ". " : "",
            err->hint);
    if (!k->ctl)
        return;
    if (st != SL_RANK_PEER) {
        sl_report_event(sl_reporter_send, &k->reporter, k->trained.step, kind, "%s", err->msg);
        sl_ctl_fail(k->ctl, st == SL_RANK_HANG ? -1 : k->start.rank);
    }
    sl_ctl_mark(k->ctl, k->start.rank, k->comm.collective, k->trained.step, SL_PHASE_FAILED);
}

static void release(struct rank *k)
{
    struct sl_err ignored;

    if (k->wired)
        sl_wireup_close(&k->wire, &ignored);
    sl_comm_fini(&k->comm);
    sl_links_close(&k->links);
    sl_dev_close(k->dev);
    sl_dataset_close(k->data);
    sl_program_destroy(k->program);
    sl_job_destroy(k->job);
    for (int r = 0; r < SL_MAX_RANKS; r++)
        if (k->arena[r])
            munmap(k->arena[r], (size_t)k->start.arena_bytes);
    if (k->ctl)
        munmap(k->ctl, k->ctl_bytes);
    free(k->text);
}

int sl_rank_main(int fd)
{
    struct rank *k = sl_calloc(1, sizeof *k);
    struct sl_err err = {.code = SL_OK};
    enum sl_rank_status st;

    if (!k) {
        fprintf(stderr, "rank: no memory\n");
        return SL_RANK_MACHINE;
    }
    k->ifname = getenv("SHARDLAUNCH_IFNAME");
    if (k->ifname && !*k->ifname)
        k->ifname = NULL;
    if (!sl_rank_start_read(fd, &k->start, &k->text, &err))
        life(k, &err);
    close(fd);
    st = status_of(k, &err);
    if (err.code != SL_OK)
        say_failed(k, st, &err);
    release(k);
    free(k);
    return st;
}
