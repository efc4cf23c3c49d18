/* follow.c - dial, obey, tell */
#include "launcher/follow.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/proc.h"
#include "launcher/hand.h"
#include "launcher/local.h"
#include "launcher/logs.h"
#include "launcher/pmix_server.h"
#include "launcher/spin.h"
#include "launcher/stack.h"
#include "launcher/term.h"
#include "launcher/words.h"

enum { TICK_MS = 100, BEAT_MS = 500, STATES_MS = 200, REPORTS = 256, SILENCE_S = 10 };
enum { MAX_SLOTS = 6 + SL_MAX_RANKS * (1 + SL_LOG_STREAMS) };
enum { ROOM = 8 << 20 }; /* bytes that may wait for the network before samples are dropped */
static const int64_t kill_ns = 4000000000;

struct follower {
    const struct sl_agent_conf *c;
    struct sl_crew *crew;
    const struct sl_member *me;
    struct sl_star_conn chief;
    struct sl_term *term;
    struct sl_logs *logs;
    struct sl_local *local;
    struct sl_pmix_server *pmix;
    struct sl_order order; /* of this attempt */
    char *text;
    int hand; /* where the leader answers, -1 */
    int seq, killing, over, status, lost, nohup;
    uint64_t next_beat, next_states;
};

static int leads(const struct follower *f)
{
    return f->me->leader == f->crew->me;
}

static void beat(void *user)
{
    struct follower *f = user;

    send(f->c->keeper, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    sl_star_put(&f->chief, SL_WORD_PING, 0, 0, 0, NULL, 0);
}

static void end(struct follower *f, int status, const char *why)
{
    if (f->over)
        return;
    f->over = 1;
    f->status = status;
    if (why)
        sl_term_printf(f->term, "shardlaunch: %s: %s", f->me->host, why);
}

/* ---- what the ranks say ---- */

static int room(struct follower *f)
{
    if (sl_star_waiting(&f->chief) < ROOM)
        return 1;
    f->lost++;
    return 0;
}

static void on_line(void *user, int rank, const char *text, size_t n)
{
    struct follower *f = user;

    if (room(f))
        sl_star_put(&f->chief, SL_WORD_LINE, rank, 0, 0, text, n);
}

static void on_report(struct follower *f, const struct sl_report *rep)
{
    int must = rep->type == SL_REPORT_EVENT || rep->type == SL_REPORT_HELLO;

    if (must || room(f))
        sl_star_put(&f->chief, SL_WORD_REPORT, 0, 0, 0, rep, sizeof *rep);
}

static void read_reports(struct follower *f, int rank)
{
    struct sl_report rep;

    for (int i = 0; i < REPORTS && sl_local_report(f->local, rank, &rep); i++)
        on_report(f, &rep);
}

static void on_reaped(void *user, pid_t pid, int wait_status)
{
    struct follower *f = user;
    int rank = f->local ? sl_local_ended(f->local, pid) : -1;
    struct sl_word_death d = {f->order.attempt, rank, pid, wait_status, 0};
    struct sl_report rep;

    if (rank < 0)
        return; /* an orphan that we inherited */
    while (sl_local_report(f->local, rank, &rep))
        on_report(f, &rep);
    sl_logs_finish(f->logs, rank);
    d.state = atomic_load(&sl_local_ctl(f->local)->r[rank].state);
    sl_star_put(&f->chief, SL_WORD_DEATH, 0, 0, 0, &d, sizeof d);
}

static void read_signals(struct follower *f)
{
    struct signalfd_siginfo si;
    pid_t p;
    int st;

    while (read(f->c->signals, &si, sizeof si) == sizeof si)
        if (si.ssi_signo != SIGCHLD && !(si.ssi_signo == SIGHUP && f->nohup))
            sl_star_put(&f->chief, SL_WORD_SIGNAL, (int)si.ssi_signo, 0, 0, NULL, 0);
    while ((p = waitpid(-1, &st, WNOHANG)) > 0)
        on_reaped(f, p, st);
}

/* The rows of the node's ranks; its leader sends them. */
static void send_states(struct follower *f)
{
    struct sl_ctl *ctl = sl_local_ctl(f->local);
    struct sl_word_states s = {.attempt = f->order.attempt,
                               .first = f->me->node * f->order.per_node,
                               .n = f->order.per_node,
                               .now = sl_ctl_now()};

    for (int i = 0; i < s.n; i++) {
        struct sl_ctl_rank *r = &ctl->r[s.first + i];

        s.row[i] = (struct sl_word_row){.state = atomic_load(&r->state),
                                        .since = atomic_load(&r->since),
                                        .stepped = atomic_load(&r->stepped),
                                        .pid = atomic_load(&r->pid),
                                        .kind = atomic_load(&r->kind),
                                        .unit = atomic_load(&r->unit),
                                        .away = atomic_load(&r->away)};
    }
    sl_star_put(&f->chief, SL_WORD_STATES, 0, 0, 0, &s,
                offsetof(struct sl_word_states, row) + (size_t)s.n * sizeof s.row[0]);
}

/* ---- an attempt ---- */

static void close_attempt(struct follower *f)
{
    if (f->hand >= 0)
        close(f->hand);
    f->hand = -1;
    sl_local_close(f->local);
    sl_logs_close(f->logs);
    f->local = NULL;
    f->logs = NULL;
}

static void end_ranks(struct follower *f)
{
    f->killing = 1;
    if (f->local)
        sl_ctl_fail(sl_local_ctl(f->local), -1);
    if (f->pmix)
        sl_pmix_server_fence_answer(f->pmix, sl_pmix_server_aborted(), NULL, 0);
    if (sl_proc_kill_below(kill_ns, on_reaped, f, NULL) < 0)
        sl_term_printf(f->term, "shardlaunch: %s: some processes do not end: the keeper goes on trying",
                       f->me->host);
}

static int take_order(struct follower *f, const char *data, size_t n, struct sl_err *err)
{
    struct sl_order *o = &f->order;

    if (n < sizeof *o)
        return sl_fail(err, SL_BUG, "an order that is too short");
    memcpy(o, data, sizeof *o);
    o->nspace[sizeof o->nspace - 1] = '\0';
    free(f->text);
    f->text = sl_calloc(o->text_bytes + 1u, 1);
    if (!f->text)
        return sl_fail(err, SL_SYSTEM, "no memory for the job's text");
    if (n != sizeof *o + o->text_bytes || o->ranks < 1 || o->ranks > SL_MAX_RANKS
        || o->per_node * f->crew->nodes != o->ranks)
        return sl_fail(err, SL_BUG, "an order that makes no sense");
    memcpy(f->text, data + sizeof *o, o->text_bytes);
    sl_crew_number(f->crew, o->per_node);
    return 0;
}

/* My ranks cannot run: the chief ends the run, and says this. */
static void refuse(struct follower *f, const struct sl_err *err)
{
    char text[800];
    int n = snprintf(text, sizeof text, "%s%s%s", err->msg, *err->hint ? ". " : "", err->hint);

    sl_star_put(&f->chief, SL_WORD_FAIL, err->code == SL_USAGE ? 2 : 5, 0, 0, text, (size_t)n);
}

static int check_shared(const struct follower *f, const char *path, struct sl_err *err)
{
    if (!*path || !access(path, R_OK))
        return 0;
    return sl_fail(err, SL_USAGE, "the token file \"%s\" of %s cannot be read here: %s", path,
                   f->crew->m[0].host, strerror(errno));
}

/* Ranks read the data themselves: every node must see it. */
static int check_files(struct follower *f, struct sl_err *err)
{
    struct sl_order *o = &f->order;

    o->data.train[SL_DATASET_PATH - 1] = o->data.valid[SL_DATASET_PATH - 1] = '\0';
    o->checkpoints[SL_CKPT_PATH - 1] = o->from[SL_CKPT_PATH - 1] = '\0';
    if (!check_shared(f, o->data.train, err)
        && !check_shared(f, o->data.valid, err))
        return 0;
    return sl_hint(err, "Set SHARDLAUNCH_CACHE to a folder that all nodes share.");
}

static struct sl_local_conf local_conf(const struct follower *f)
{
    const struct sl_order *o = &f->order;

    return (struct sl_local_conf){.job = o->job,
                                  .attempt = o->attempt,
                                  .ranks = o->ranks,
                                  .units = o->units,
                                  .threads = o->threads,
                                  .node = f->me->node,
                                  .nodes = f->crew->nodes,
                                  .first = f->me->first,
                                  .mine = f->me->ranks,
                                  .hang_timeout = o->hang_timeout,
                                  .arena_bytes = o->arena_bytes,
                                  .job_text = f->text,
                                  .checkpoints = o->checkpoints,
                                  .from = o->from,
                                  .data = o->data};
}

static int lead(struct follower *f, struct sl_err *err)
{
    struct sl_local_conf conf = local_conf(f);
    const char *host[SL_MAX_RANKS];
    struct sl_pmix_map map = {f->order.ranks, f->crew->nodes, f->me->node, host};

    sl_crew_names(f->crew, host);
    f->local = sl_local_open(&conf, err);
    if (!f->local)
        return -1;
    if (!f->pmix)
        f->pmix = sl_pmix_server_open(f->c->scratch->path, f->me->host, err);
    if (!f->pmix || sl_pmix_server_job(f->pmix, f->order.nspace, &map, err))
        return -1;
    return sl_local_start(f->local, f->pmix, NULL, f->logs, err);
}

static void start(struct follower *f, const char *data, size_t n)
{
    struct sl_err err = {0};
    int rc;

    close_attempt(f);
    f->seq = f->killing = 0;
    rc = take_order(f, data, n, &err) || check_files(f, &err) ? -1 : 0;
    if (!rc) {
        f->logs = sl_logs_open(NULL, f->order.ranks, on_line, f, &err);
        rc = f->logs ? 0 : -1;
    }
    sl_spin_less();
    if (!rc && leads(f)) {
        rc = lead(f, &err);
    } else if (!rc) {
        f->hand = sl_hand_ask(f->crew->m[f->me->leader].hand, f->order.attempt, f->me->first, &err);
        rc = f->hand < 0 ? -1 : 0;
    }
    if (rc)
        refuse(f, &err);
}

/* The leader's answer: start my rank in its memory. */
static void take_hand(struct follower *f)
{
    struct sl_local_conf conf = local_conf(f);
    char vars[SL_HAND_BYTES];
    int fds[SL_HAND_FDS], n, rc;
    struct sl_err err = {0};

    rc = sl_hand_take(f->hand, fds, &n, vars, &err);
    close(f->hand);
    f->hand = -1;
    if (!rc) {
        f->local = sl_local_adopt(&conf, fds, n, &err);
        rc = f->local ? sl_local_start(f->local, NULL, vars, f->logs, &err) : -1;
    }
    if (rc)
        refuse(f, &err);
}

static void serve_mates(struct follower *f)
{
    struct sl_err err = {0};

    if (sl_hand_serve(f->crew->hand, f->order.attempt, f->local, f->pmix, &err))
        refuse(f, &err);
}

static void take_fence(struct follower *f)
{
    char *data;
    size_t n;
    int st;

    if (!sl_pmix_server_fence_take(f->pmix, &st, &data, &n))
        return;
    if (f->killing)
        sl_pmix_server_fence_answer(f->pmix, sl_pmix_server_aborted(), NULL, 0);
    else
        sl_star_put(&f->chief, SL_WORD_FENCE, f->order.attempt, ++f->seq, st, data, n);
    free(data);
}

/* ---- what the chief says ---- */

static void look(struct follower *f)
{
    struct sl_hang_rank ret[SL_MAX_RANKS];
    int first = f->me->first, n = f->me->ranks;

    if (!f->local)
        return;
    sl_hang_look(sl_local_ctl(f->local), first, n, beat, f, ret);
    for (int r = first; r < first + n; r++)
        sl_star_put(&f->chief, SL_WORD_LOOK, r, 0, 0, &ret[r], sizeof ret[r]);
}

static void stack(struct follower *f, int rank)
{
    char text[8192] = "";

    if (f->local && rank >= f->me->first && rank < f->me->first + f->me->ranks
        && sl_local_lives(f->local, rank))
        sl_stack_read(sl_local_pid(f->local, rank), beat, f, text, sizeof text);
    sl_star_put(&f->chief, SL_WORD_STACK, rank, 0, 0, text, strlen(text));
}

static void on_word(void *user, const struct sl_star_head *h, const char *data)
{
    struct follower *f = user;

    switch (h->type) {
    case SL_WORD_START:
        start(f, data, h->len);
        break;
    case SL_WORD_FENCED:
        if (f->pmix && h->a == f->order.attempt && h->b == f->seq && !f->killing)
            sl_pmix_server_fence_answer(f->pmix, h->c, data, h->len);
        break;
    case SL_WORD_STOP:
        if (f->local && leads(f))
            atomic_store(&sl_local_ctl(f->local)->stop, (uint32_t)h->a);
        break;
    case SL_WORD_OVER:
        if (f->local && leads(f))
            sl_ctl_fail(sl_local_ctl(f->local), h->a);
        break;
    case SL_WORD_KILL:
        end_ranks(f);
        sl_star_put(&f->chief, SL_WORD_DRAINED, h->a, 0, 0, NULL, 0);
        break;
    case SL_WORD_LOOKQ:
        look(f);
        break;
    case SL_WORD_STACKQ:
        stack(f, h->a);
        break;
    case SL_WORD_QUIT:
        end(f, h->a, NULL);
        break;
    }
}

static void hear(struct follower *f)
{
    if (sl_star_read(&f->chief, on_word, f) == 0)
        sl_star_flush(&f->chief);
    if (f->chief.fd < 0)
        end(f, 5, "the job's first agent is gone: ending");
}

/* ---- the loop ---- */

enum { AT_SIGNALS, AT_KEEPER, AT_CHIEF, AT_HAND, AT_MATES, AT_FENCE, AT_REPORT, AT_LOG };

struct slot {
    int kind, rank, stream;
};

static void slot(struct pollfd *p, struct slot *s, int *n, int kind, int fd, short events, int rank,
                 int stream)
{
    if (fd < 0)
        return;
    p[*n] = (struct pollfd){fd, events, 0};
    s[*n] = (struct slot){kind, rank, stream};
    (*n)++;
}

static int gather(struct follower *f, struct pollfd *p, struct slot *s)
{
    short out = sl_star_waiting(&f->chief) ? POLLIN | POLLOUT : POLLIN;
    int n = 0;

    slot(p, s, &n, AT_SIGNALS, f->c->signals, POLLIN, 0, 0);
    slot(p, s, &n, AT_KEEPER, f->c->keeper, POLLIN, 0, 0);
    slot(p, s, &n, AT_CHIEF, f->chief.fd, out, 0, 0);
    slot(p, s, &n, AT_HAND, f->hand, POLLIN, 0, 0);
    if (f->local && leads(f)) {
        if (!f->killing) /* else a mate may ask for the next attempt, of which we have not heard */
            slot(p, s, &n, AT_MATES, f->crew->hand, POLLIN, 0, 0);
        if (f->crew->nodes > 1)
            slot(p, s, &n, AT_FENCE, sl_pmix_server_fence_fd(f->pmix), POLLIN, 0, 0);
    }
    for (int r = f->me->first; f->local && r < f->me->first + f->me->ranks; r++) {
        slot(p, s, &n, AT_REPORT, sl_local_report_fd(f->local, r), POLLIN, r, 0);
        for (int k = 0; k < SL_LOG_STREAMS; k++)
            slot(p, s, &n, AT_LOG, sl_logs_fd(f->logs, r, k), POLLIN, r, k);
    }
    return n;
}

static void on_ready(struct follower *f, const struct slot *s)
{
    switch (s->kind) {
    case AT_SIGNALS:
        read_signals(f);
        break;
    case AT_KEEPER: /* the keeper never writes: this is its end */
        end(f, 5, "the keeper is gone: ending");
        break;
    case AT_HAND:
        if (f->hand >= 0)
            take_hand(f);
        break;
    case AT_MATES:
        if (f->local && !f->killing)
            serve_mates(f);
        break;
    case AT_FENCE:
        take_fence(f);
        break;
    case AT_REPORT:
        if (f->local)
            read_reports(f, s->rank);
        break;
    case AT_LOG:
        if (f->logs && sl_logs_fd(f->logs, s->rank, s->stream) >= 0)
            sl_logs_read(f->logs, s->rank, s->stream);
        break;
    }
}

static void tick(struct follower *f)
{
    uint64_t now = sl_ctl_now();

    if (now >= f->next_beat) {
        beat(f);
        f->next_beat = now + BEAT_MS * 1000000u;
        if (f->lost && sl_star_waiting(&f->chief) < ROOM / 2) {
            sl_star_put(&f->chief, SL_WORD_LOST, f->lost, 0, 0, NULL, 0);
            f->lost = 0;
        }
    }
    if (f->local && leads(f) && now >= f->next_states) {
        send_states(f);
        f->next_states = now + STATES_MS * 1000000u;
    }
    if (now > f->chief.heard && now - f->chief.heard > SILENCE_S * 1000000000ull)
        end(f, 5, "the job's first agent is silent: ending");
}

static void loop(struct follower *f)
{
    struct pollfd p[MAX_SLOTS];
    struct slot s[MAX_SLOTS];

    while (!f->over) {
        int n = gather(f, p, s);

        if (poll(p, (nfds_t)n, TICK_MS) > 0)
            for (int i = 0; i < n; i++)
                if (p[i].revents && s[i].kind != AT_CHIEF)
                    on_ready(f, &s[i]);
        hear(f); /* last: it may replace what the slots are about */
        tick(f);
    }
}

/* While the chief has not answered yet: it reads the job and makes the data ready. */
static int go_on(void *user)
{
    struct follower *f = user;
    sigset_t set;
    char c;

    if (sl_ctl_now() >= f->next_beat) {
        send(f->c->keeper, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
        f->next_beat = sl_ctl_now() + BEAT_MS * 1000000u;
    }
    if (recv(f->c->keeper, &c, 1, MSG_DONTWAIT | MSG_PEEK) == 0)
        return 0;
    if (sigpending(&set))
        return 1;
    for (const int *s = sl_agent_signals; *s; s++)
        if (*s != SIGCHLD && !(*s == SIGHUP && f->nohup) && sigismember(&set, *s)) {
            f->status = 128 + *s;
            return 0;
        }
    return 1;
}

static int dial(struct follower *f, struct sl_err *err)
{
    const struct sl_crew *c = f->crew;

    return sl_star_dial(&f->chief, c->m[0].address, c->me, c->m[0].token, f->me->token, go_on, f,
                        err);
}

int sl_follow_run(const struct sl_agent_conf *conf)
{
    struct follower *f = sl_calloc(1, sizeof *f);
    struct sl_err err = {0};
    struct sigaction hup;
    char log[200];
    int status, fd;

    if (!f)
        return 5;
    f->c = conf;
    f->crew = conf->launch->crew;
    f->me = &f->crew->m[f->crew->me];
    f->hand = f->chief.fd = -1;
    f->nohup = sigaction(SIGHUP, NULL, &hup) == 0 && hup.sa_handler == SIG_IGN;
    f->term = sl_term_open(conf->launch->out, &err);
    if (!f->term) {
        free(f);
        return 5;
    }
    sl_pmix_server_scrub(); /* also where a mate hosts no server */
    snprintf(log, sizeof log, "%s/agent.log", conf->scratch->path);
    fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd >= 0) {
        dup2(fd, 2); /* what libraries print is not for people */
        close(fd);
    }
    if (dial(f, &err))
        end(f, f->status ? f->status : 5, f->status ? NULL : err.msg);
    else
        loop(f);
    end_ranks(f);
    status = f->status;
    sl_star_close(&f->chief);
    close_attempt(f);
    sl_pmix_server_close(f->pmix);
    sl_scratch_remove(conf->scratch);
    sl_term_close(f->term);
    free(f->text);
    free(f);
    return status;
}
