#include "tests/unit/executor/team.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/rng.h"
#include "executor/graph/memplan.h"
#include "executor/program.h"
#include "executor/run.h"

/* How the ranks of several nodes find each other, in place of PMIx. */
struct board {
    char text[SL_MAX_RANKS][SL_LINKS_TEXT];
    _Atomic int pinned;
};

struct seat {
    const struct team *t;
    const struct sl_program *program;
    struct sl_ctl *ctl, **ctls; /* of my node; of all nodes */
    char **arena;               /* by rank; NULL on other nodes */
    struct board *board;
    int rank;
    struct team_result *ret; /* shared with the ranks */
    uint64_t before;         /* hash of the state at the beginning of a bad step */
    float *old;              /* my parameters then */
};

static void must(int ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "team: %s\n", what);
    abort();
}

struct team team_tiny(enum sl_strategy strategy, int ranks)
{
    return (struct team){
        .job = {.name = "tiny",
                .model = {.kind = "gpt",
                          .layers = 2,
                          .heads = 3,
                          .width = 39,
                          .ffn_width = 101,
                          .context = 9,
                          .dropout = 0.1,
                          .tie_embeddings = 1},
                .data = {.tokenizer = SL_TOK_WORD, .vocab_size = 211},
                .train = {.strategy = strategy,
                          .precision = SL_FP32,
                          .steps = 20,
                          .batch = 48,
                          .lr = 3e-3,
                          .min_lr = 3e-4,
                          .schedule = SL_COSINE,
                          .warmup = 3,
                          .weight_decay = 0.1,
                          .beta1 = 0.9,
                          .beta2 = 0.95,
                          .eps = 1e-8,
                          .grad_clip = 0.5,
                          .seed = 42,
                          .eval_every = 7}},
        .ranks = ranks,
        .cut = -1,
        .cut_last = -1,
        .deadline = 60,
        .valid_samples = 29,
        .die_rank = -1,
        .stall_rank = -1,
        .refuse = -1,
    };
}

void team_sample(uint64_t seed, int64_t vocab, int64_t context, int64_t sample, int32_t *ids,
                 int32_t *targets)
{
    int64_t tok = (int64_t)sl_rng_below(seed, 1, (uint64_t)sample, 0, (uint64_t)vocab);

    for (int64_t i = 0; i < context; i++) {
        ids[i] = (int32_t)tok;
        tok = (tok * 5 + 3 + (int64_t)sl_rng_below(seed, 2, (uint64_t)sample, (uint64_t)i, 3))
              % vocab;
        targets[i] = (int32_t)tok;
    }
}

/* --- a rank ----------------------------------------------------------------------------------- */

static void fault(const struct seat *s, int64_t step)
{
    if (step != s->t->fault_step)
        return;
    if (s->rank == s->t->die_rank)
        raise(SIGKILL);
    if (s->rank == s->t->stall_rank)
        while (!sl_ctl_failed(s->ctl))
            usleep(2000);
}

static int train_sample(const void *from, int64_t sample, int32_t *ids, int32_t *targets,
                        struct sl_err *err)
{
    const struct seat *s = from;
    const struct sl_job *j = &s->t->job;
    int64_t step = sample / j->train.batch + 1;

    (void)err;
    fault(s, step);
    if (s->rank == 0 && step == s->t->stop_step)
        atomic_store(&s->ctl->stop, SIGINT);
    team_sample(7, s->program->vocab, j->model.context, sample, ids, targets);
    return 0;
}

static int valid_sample(const void *from, int64_t index, int32_t *ids, int32_t *targets,
                        struct sl_err *err)
{
    const struct seat *s = from;

    (void)err;
    team_sample(8, s->program->vocab, s->t->job.model.context, index, ids, targets);
    return 0;
}

static void listen_to(void *out, struct sl_report *rep)
{
    struct seat *s = out;
    struct team_rank *me = &s->ret->r[s->rank];
    int c;

    me->reports++;
    if (rep->step > TEAM_STEPS)
        return;
    switch ((enum sl_report_type)rep->type) {
    case SL_REPORT_STEP:
        me->tokens += rep->u.step_.units;
        if (s->rank == 0)
            s->ret->loss[rep->step] = rep->u.step_.loss;
        break;
    case SL_REPORT_METRIC:
        if (!strcmp(rep->u.metric.name, "grad_norm"))
            s->ret->norm[rep->step] = rep->u.metric.value;
        else if (!strcmp(rep->u.metric.name, "lr"))
            s->ret->lr[rep->step] = rep->u.metric.value;
        else if (!strcmp(rep->u.metric.name, "skipped"))
            me->skipped = rep->u.metric.value;
        else if (!strcmp(rep->u.metric.name, "valid.loss"))
            s->ret->valid[rep->step] = rep->u.metric.value;
        break;
    case SL_REPORT_MEMORY:
        for (c = 0; c < SL_CATS && strcmp(rep->u.memory.category, sl_cat_names[c]); c++)
            ;
        if (c == SL_CATS && strcmp(rep->u.memory.category, "total"))
            c++; /* "process" */
        me->bytes[c] = rep->u.memory.bytes;
        me->peak[c] = rep->u.memory.peak_bytes;
        break;
    case SL_REPORT_EVENT:
        me->events++;
        snprintf(me->event, sizeof me->event, "%s: %s", rep->u.event.kind, rep->u.event.message);
        break;
    case SL_REPORT_HELLO:
        break;
    }
}

static uint64_t hash(uint64_t h, const void *p, int64_t bytes)
{
    const unsigned char *b = p;

    for (int64_t i = 0; i < bytes; i++)
        h = (h ^ b[i]) * 1099511628211u;
    return h;
}

static void keep_hashes(struct seat *s, struct sl_run *run)
{
    const struct sl_graph *g = run->g;
    struct team_rank *me = &s->ret->r[s->rank];

    me->shard_hash = me->copy_hash = 14695981039346656037u;
    for (int u = 0; u < g->nunits; u++) {
        int t = g->unit[u].psh, full = g->unit[u].pfull, size = sl_dtype_size(g->ptype);

        me->shard_hash = hash(me->shard_hash, sl_run_at(run, t), g->t[t].n * size);
        if (full >= 0)
            me->copy_hash = hash(me->copy_hash, sl_run_at(run, full), g->t[full].n * size);
    }
}

static uint64_t hash_tensor(uint64_t h, struct sl_run *run, int t)
{
    const struct sl_graph *g = run->g;

    if (t < 0 || (g->b[g->t[t].buf].rank0 && run->comm->rank))
        return h;
    return hash(h, sl_run_at(run, t), g->t[t].n * sl_dtype_size(g->t[t].type));
}

/* Parameters, moments, master copies: all that a step may change. */
static uint64_t hash_state(struct sl_run *run)
{
    uint64_t h = 14695981039346656037u;

    for (int u = 0; u < run->g->nunits; u++) {
        const struct sl_unit *un = &run->g->unit[u];
        const int t[] = {un->psh, un->pfull, un->m, un->v, un->master};

        for (int i = 0; i < 5; i++)
            h = hash_tensor(h, run, t[i]);
    }
    return h;
}

/* fp32: the shards of all units, copied or compared with the copy. */
static double shards(struct seat *s, struct sl_run *run, int copy)
{
    const struct sl_graph *g = run->g;
    double most = 0;
    int64_t at = 0;

    if (!s->old)
        s->old = calloc((size_t)s->program->arena0, 1);
    must(s->old != NULL, "no memory");
    for (int u = 0; u < g->nunits; u++) {
        const struct sl_tensor *t = &g->t[g->unit[u].psh];
        const float *w = sl_run_at(run, g->unit[u].psh);

        for (int64_t i = 0; i < t->n; i++, at++) {
            if (copy)
                s->old[at] = w[i];
            else if (fabs((double)w[i] - (double)s->old[at]) > most)
                most = fabs((double)w[i] - (double)s->old[at]);
        }
    }
    return most;
}

/* Spoil one number of one gradient, and watch what becomes of the state. */
static void spoil(void *user, struct sl_run *run, int op)
{
    struct seat *s = user;
    const struct team *t = s->t;
    struct team_rank *me = &s->ret->r[s->rank];
    const struct sl_op *o = &run->g->ops[op];
    int bad = run->step >= t->bad_from && run->step <= t->bad_to;

    if (run->g != s->program->train)
        return;
    if (bad && op == 0 && run->micro == 0)
        s->before = hash_state(run);
    if (bad && s->rank == t->bad_rank && o->kind == SL_OP_ATTENTION_BWD)
        memset(sl_run_at(run, o->out[0]), 0xff, 4); /* a NaN in f32, two in bf16 */
    if (bad && op == run->g->nops - 1)
        me->bad_changed += hash_state(run) != s->before;
    if (run->g->ptype != SL_F32 || run->step != t->bad_to + 1)
        return;
    if (op == 0 && run->micro == 0)
        shards(s, run, 1);
    if (op == run->g->nops - 1)
        me->first_update = shards(s, run, 0);
}

static int nodes_of(const struct team *t)
{
    return t->nodes > 1 ? t->nodes : 1;
}

static void end_all(const struct seat *s)
{
    for (int q = 0; q < nodes_of(s->t); q++)
        sl_ctl_fail(s->ctls[q], -1);
}

/* Publish, wait for all, connect. */
static int connect_nodes(struct seat *s, struct sl_links *l, struct sl_comm *c, struct sl_err *err)
{
    const char *text[SL_MAX_RANKS], *host[SL_MAX_RANKS];
    int nodes = nodes_of(s->t), nlocal = s->t->ranks / nodes;
    int64_t until = sl_clock_ns() + 30000000000ll;

    if (sl_links_listen(l, s->rank / nlocal, nodes, "lo", err))
        return -1;
    snprintf(s->board->text[s->rank], SL_LINKS_TEXT, "%s", l->text);
    atomic_fetch_add(&s->board->pinned, 1);
    while (atomic_load(&s->board->pinned) < s->t->ranks) {
        if (sl_clock_ns() > until)
            return sl_fail(err, SL_BUSY, "not all ranks have come to the board");
        usleep(1000);
    }
    for (int q = 0; q < nodes; q++) {
        text[q] = s->board->text[q * nlocal + s->rank % nlocal];
        host[q] = "loopback";
    }
    if (sl_links_connect(l, text, host, 30, s->ctl, err))
        return -1;
    return sl_comm_open_nodes(c, l, err);
}

static int rank_main(struct seat *s)
{
    struct sl_err err = {.code = SL_OK};
    struct team_rank *me = &s->ret->r[s->rank];
    struct sl_dev *dev = sl_dev_open("cpu", 1, &err);
    struct sl_links links = {0};
    struct sl_comm comm;
    struct sl_run view;

    if (!dev) {
        me->code = (int)err.code;
        snprintf(me->msg, sizeof me->msg, "%s", err.msg);
        sl_ctl_fail(s->ctl, s->rank);
        return -1;
    }
    sl_comm_init(&comm, s->ctl, s->arena, dev, s->rank, s->t->ranks, s->t->deadline);
    struct sl_training tr = {
        .job = &s->t->job,
        .program = s->program,
        .dev = dev,
        .comm = &comm,
        .arena = s->arena[s->rank],
        .samples = {train_sample, valid_sample, s, s->t->valid_samples},
        .steps = s->t->job.train.steps,
        .report = listen_to,
        .report_to = s,
        .checkpoint = s->t->checkpoint,
        .poison = s->t->poison,
        .after = s->t->bad_to ? spoil : NULL,
        .after_user = s,
    };
    int rc = nodes_of(s->t) > 1 ? connect_nodes(s, &links, &comm, &err) : 0;

    if (!rc)
        rc = sl_train(&tr, &me->trained, &err);

    me->code = rc ? (int)err.code : SL_OK;
    snprintf(me->msg, sizeof me->msg, "%s", rc ? err.msg : "");
    memcpy(me->count, comm.count, sizeof me->count);
    me->waits = comm.waits;
    me->collective = comm.collective;
    view = (struct sl_run){.comm = &comm, .arena = s->arena[s->rank], .g = s->program->train};
    if (!rc)
        keep_hashes(s, &view);
    else if (err.code != SL_PEER)
        sl_ctl_fail(s->ctl, err.code == SL_BUSY ? -1 : s->rank);
    sl_comm_fini(&comm);
    sl_links_close(&links);
    if (rc && err.code == SL_BUSY)
        end_all(s);
    sl_dev_close(dev);
    free(s->old);
    return rc;
}

static void *thread_main(void *p)
{
    return rank_main(p) ? p : NULL;
}

/* --- the agent's part ------------------------------------------------------------------------- */

static int as_threads(struct seat *seat, int n)
{
    pthread_t th[SL_MAX_RANKS];
    int bad = 0;

    for (int k = 0; k < n; k++)
        must(!pthread_create(&th[k], NULL, thread_main, &seat[k]), "no thread");
    for (int k = 0; k < n; k++) {
        void *v;

        pthread_join(th[k], &v);
        bad |= v != NULL;
    }
    return bad ? -1 : 0;
}

static int as_processes(struct seat *seat, int n, struct team_result *ret)
{
    pid_t pid[SL_MAX_RANKS];
    int64_t died = 0;
    int bad = 0;

    fflush(NULL);
    for (int k = 0; k < n; k++) { /* before any parallel region of this process */
        pid[k] = fork();
        must(pid[k] >= 0, "no process");
        if (pid[k] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            _exit(rank_main(&seat[k]) ? 1 : 0);
        }
    }
    for (int left = n; left > 0; left--) {
        int st, who = -1;
        pid_t p = waitpid(-1, &st, 0);

        for (int i = 0; i < n; i++)
            if (pid[i] == p)
                who = i;
        must(who >= 0, "somebody else's child");
        if (!st)
            continue;
        bad = 1;
        if (WIFSIGNALED(st)) {
            ret->r[who].code = -1;
            if (ret->first_dead < 0)
                ret->first_dead = who;
            died = sl_clock_ns();
            sl_ctl_fail(seat[who].ctl, who); /* what an agent does */
        }
    }
    if (died)
        ret->seconds_to_end = 1e-9 * (double)(sl_clock_ns() - died);
    return bad ? -1 : 0;
}

static void *shared(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    must(p != MAP_FAILED, "no memory");
    return p;
}

static void finish(struct team_result *ret, int n)
{
    ret->hash = 14695981039346656037u;
    ret->copies_agree = 1;
    for (int k = 0; k < n; k++) {
        ret->hash = hash(ret->hash, &ret->r[k].shard_hash, sizeof ret->r[k].shard_hash);
        ret->copies_agree &= ret->r[k].copy_hash == ret->r[0].copy_hash;
    }
}

int team_run(const struct team *t, struct team_result *out)
{
    struct sl_err err = {.code = SL_OK};
    struct sl_program *prog
        = sl_program_make(&t->job, t->ranks, t->job.train.strategy, 1, t->flags, &err);
    struct team_result *ret = shared(sizeof *ret);
    struct seat seat[SL_MAX_RANKS];
    int nodes = nodes_of(t), nlocal = t->ranks / nodes;
    char *arena[SL_MAX_RANKS][SL_MAX_RANKS]; /* by node, by rank */
    struct board *board = shared(sizeof *board);
    int fd[SL_MAX_RANKS], rc;
    struct sl_ctl *ctl[SL_MAX_RANKS];
    size_t size, bytes;

    must(prog != NULL, err.msg);
    must(t->job.train.steps <= TEAM_STEPS, "too many steps");
    must(t->cut < 0 || !sl_memplan_cut(prog->train, t->cut), "this buffer cannot be cut");
    if (t->cut >= 0 && t->cut_last >= 0)
        prog->train->b[t->cut].last = t->cut_last;
    size = sl_ctl_size(t->ranks, prog->train->nunits);
    bytes = (size_t)prog->arena0;
    must(nodes * nlocal == t->ranks, "nodes of different sizes");
    memset(arena, 0, sizeof arena);
    for (int q = 0; q < nodes; q++) {
        ctl[q] = shared(size);
        must(!sl_ctl_init(ctl[q], t->ranks, prog->train->nunits, &err), err.msg);
    }
    ret->first_dead = -1;
    for (int i = 0; i <= TEAM_STEPS; i++)
        ret->loss[i] = ret->norm[i] = ret->lr[i] = ret->valid[i] = NAN;
    for (int k = 0; k < t->ranks; k++) {
        fd[k] = memfd_create("arena", MFD_CLOEXEC);
        must(fd[k] >= 0 && !ftruncate(fd[k], (off_t)bytes), "no memfd");
        int q = k / nlocal;

        arena[q][k] = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd[k], 0);
        must(arena[q][k] != MAP_FAILED, "cannot map an arena");
        seat[k] = (struct seat){.t = t,
                                .program = prog,
                                .ctl = ctl[q],
                                .ctls = ctl,
                                .arena = arena[q],
                                .board = board,
                                .rank = k,
                                .ret = ret};
    }
    if (t->refuse >= 0)
        sl_mem_fail_once(t->refuse);
    rc = t->processes ? as_processes(seat, t->ranks, ret) : as_threads(seat, t->ranks);
    ret->refused = sl_mem_refused();
    sl_mem_fail_after(-1);
    for (int k = 0; k < t->ranks; k++) {
        struct stat st;

        must(!fstat(fd[k], &st), "fstat");
        ret->r[k].touched = st.st_blocks * 512;
        munmap(arena[k / nlocal][k], bytes);
        close(fd[k]);
    }
    finish(ret, t->ranks);
    ret->arena = prog->arena0;
    *out = *ret;
    munmap(ret, sizeof *ret);
    for (int q = 0; q < nodes; q++)
        munmap(ctl[q], size);
    munmap(board, sizeof *board);
    sl_program_destroy(prog);
    return rc;
}

int team_same(const struct team_result *a, const struct team_result *b, int steps)
{
    size_t bytes = (size_t)(steps + 1) * sizeof(double);

    return !memcmp(a->loss, b->loss, bytes) && !memcmp(a->norm, b->norm, bytes)
           && !memcmp(a->valid, b->valid, bytes) && a->hash == b->hash;
}

double team_gap(const struct team_result *a, const struct team_result *b, int steps)
{
    double worst = 0;

    for (int s = 1; s <= steps; s++) {
        double x = fabs(a->loss[s] - b->loss[s]) / fabs(a->loss[s]);
        double y = fabs(a->norm[s] - b->norm[s]) / fabs(a->norm[s]);

        if (!isfinite(x) || !isfinite(y))
            return INFINITY;
        worst = fmax(worst, fmax(x, y));
    }
    return worst;
}
