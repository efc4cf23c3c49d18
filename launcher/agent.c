/* agent.c - the agent's life: open all, loop, close all */
#include "launcher/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/proc.h"
#include "executor/checkpoint/checkpoint.h"
#include "launcher/failure.h"
#include "launcher/lines.h"
#include "launcher/local.h"
#include "launcher/logs.h"
#include "launcher/pmix_server.h"
#include "launcher/meter.h"
#include "launcher/recorder.h"
#include "launcher/restart.h"
#include "launcher/spin.h"
#include "launcher/supervise.h"
#include "launcher/team.h"
#include "launcher/term.h"
#include "store/published.h"
#include "store/store.h"

enum { TICK_MS = 100, BEAT_MS = 500, REPORTS = 256 };
static const int64_t kill_ns = 4000000000;
enum { RANK_PATIENCE_S = 10 }; /* a rank's own deadline comes after the agent's, which knows more */

const int sl_agent_signals[] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, 0};

struct agent {
    const struct sl_agent_conf *c;
    const struct sl_launch *l;
    struct sl_term *term;
    struct sl_recorder *rec;
    struct sl_logs *logs;
    struct sl_local *local;
    struct sl_pmix_server *pmix;
    struct sl_team *team; /* the other agents; NULL: alone */
    struct sl_tally tally;
    struct sl_meter meter;
    struct sl_supervise sup;
    struct sl_restart restart;
    uint64_t began, next_beat;
    int attempt; /* of the job, from 1 */
    int hellos, nohup, page, resumed; /* resumed: where this attempt goes on is known */
    char from[SL_CKPT_PATH]; /* checkpoint that this attempt goes on from; "": none */
    char folder[3072]; /* of the attempt's logs */
    char own_log[3100];
};

static void beat(void *user)
{
    struct agent *a = user;

    send(a->c->keeper, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (a->team)
        sl_team_ping(a->team);
}

static void say(struct agent *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(struct agent *a, const char *fmt, ...)
{
    char text[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    sl_term_printf(a->term, "shardlaunch: %s", text);
}

/* ---- what the ranks say ---- */

static void on_log_line(void *user, int rank, const char *text, size_t n)
{
    struct agent *a = user;
    char line[SL_LINE_MAX + 32];
    int k = snprintf(line, sizeof line, "[rank %d] ", rank);

    memcpy(line + k, text, n);
    sl_term_line(a->term, line, (size_t)k + n);
}

/* A rank says so when it has read its checkpoint, or by its first step. */
static void resumed(struct agent *a, int64_t step)
{
    a->resumed = 1;
    if (a->rec)
        sl_recorder_resumed(a->rec, step, step ? a->from : "");
    if (!a->restart.used)
        return; /* who started the run has said it */
    if (step)
        say(a, "attempt %d goes on behind step %" PRId64 ", from %s", a->attempt, step, a->from);
    else
        say(a, "attempt %d begins at the first step: there is no checkpoint", a->attempt);
}

/* What ranks tell about checkpoints and hangs is for the agent, too. */
static void on_news(struct agent *a, const struct sl_report *rep)
{
    const char *kind = rep->u.event.kind;

    if (!strncmp(kind, "hang", sizeof rep->u.event.kind))
        snprintf(a->sup.told, sizeof a->sup.told, "%.290s", rep->u.event.message);
    else if (!strncmp(kind, "warning", sizeof rep->u.event.kind))
        say(a, "rank %d: %.*s", rep->rank, (int)sizeof rep->u.event.message, rep->u.event.message);
    else if (rep->rank == 0 && !strncmp(kind, "checkpoint", sizeof rep->u.event.kind))
        a->sup.saved = rep->step > a->sup.saved ? rep->step : a->sup.saved;
    else if (rep->rank == 0 && !strncmp(kind, "resume", sizeof rep->u.event.kind))
        resumed(a, rep->step);
}

static void on_report(struct agent *a, const struct sl_report *rep)
{
    sl_tally_add(&a->tally, rep);
    if (a->rec)
        sl_recorder_put(a->rec, rep);
    if (rep->type == SL_REPORT_EVENT)
        on_news(a, rep);
    if (rep->type == SL_REPORT_STEP && rep->rank == 0 && !a->resumed)
        resumed(a, 0);
    if (rep->type == SL_REPORT_HELLO && ++a->hellos == a->l->ranks && a->rec && !a->sup.asked)
        sl_recorder_state(a->rec, SL_RUNNING, "");
}

static void read_reports(struct agent *a, int rank)
{
    struct sl_report rep;

    for (int i = 0; i < REPORTS && sl_local_report(a->local, rank, &rep); i++)
        on_report(a, &rep);
}

/* ---- how they end ---- */

static void event(struct agent *a, int rank, const char *kind, const char *text)
{
    if (a->rec)
        sl_recorder_event(a->rec, rank, kind, "%s", text);
}

static const char *host_of(const struct agent *a, int rank)
{
    const struct sl_crew *c = a->l->crew;

    for (int i = 0; c && i < c->n; i++)
        if (rank >= c->m[i].first && rank < c->m[i].first + c->m[i].ranks)
            return c->m[i].host;
    return NULL;
}

/* The rank is gone: its last words first, so that a report of its death has them. */
static void note_death(struct agent *a, pid_t pid, int wait_status, struct sl_death *ret)
{
    int rank = sl_local_ended(a->local, pid);
    struct sl_report rep;

    *ret = (struct sl_death){
        .rank = rank, .pid = pid, .wait_status = wait_status, .host = host_of(a, rank)};
    if (rank < 0)
        return;
    while (sl_local_report(a->local, rank, &rep))
        on_report(a, &rep);
    sl_logs_finish(a->logs, rank);
    ret->state = atomic_load(&sl_local_ctl(a->local)->r[rank].state);
    ret->asked = a->sup.asked != SL_STOP_NONE;
    if (a->rec)
        sl_recorder_rank_end(a->rec, rank, sl_death_code(ret));
}

static void reap(struct agent *a)
{
    struct sl_death d[SL_MAX_RANKS];
    int n = 0, st;
    pid_t p;

    while (n < SL_MAX_RANKS && (p = waitpid(-1, &st, WNOHANG)) > 0) {
        note_death(a, p, st, &d[n]);
        n += d[n].rank >= 0; /* others are orphans that we inherited */
    }
    if (n)
        sl_supervise_deaths(&a->sup, d, n, sl_ctl_now());
}

static void on_death(void *user, int rank, pid_t pid, int wait_status, uint64_t state)
{
    struct agent *a = user;
    struct sl_death d = {.rank = rank,
                         .pid = pid,
                         .wait_status = wait_status,
                         .state = state,
                         .asked = a->sup.asked != SL_STOP_NONE,
                         .host = host_of(a, rank)};

    if (a->rec)
        sl_recorder_rank_end(a->rec, rank, sl_death_code(&d));
    sl_supervise_deaths(&a->sup, &d, 1, sl_ctl_now());
}

static void stopping(struct agent *a, const char *note)
{
    say(a, "%s", note);
    if (a->rec)
        sl_recorder_state(a->rec, SL_STOPPING, note);
}

/* Under a launcher every agent gets it, and some twice: the first counts. */
static void on_signal(void *user, int s)
{
    struct agent *a = user;
    char note[200];

    if (sl_supervise_signal(&a->sup, s, sl_ctl_now(), note, sizeof note))
        stopping(a, note);
}

static void read_signals(struct agent *a)
{
    struct signalfd_siginfo si;

    while (read(a->c->signals, &si, sizeof si) == sizeof si) {
        int s = (int)si.ssi_signo;

        if (s == SIGCHLD || (s == SIGHUP && a->nohup))
            continue;
        on_signal(a, s);
    }
    reap(a);
}

/* ---- the loop ---- */

struct slot {
    int kind, rank, stream;
};
enum { AT_SIGNALS, AT_KEEPER, AT_TERM, AT_TEAM, AT_REPORT, AT_LOG };
enum { MAX_SLOTS = 3 + SL_TEAM_FDS + SL_MAX_RANKS * (1 + SL_LOG_STREAMS) };

static int gather(struct agent *a, struct pollfd *p, struct slot *s)
{
    int n = 0;

    p[n] = (struct pollfd){a->c->signals, POLLIN, 0};
    s[n++] = (struct slot){AT_SIGNALS, 0, 0};
    p[n] = (struct pollfd){a->c->keeper, POLLIN, 0};
    s[n++] = (struct slot){AT_KEEPER, 0, 0};
    if (sl_term_wants(a->term) >= 0) {
        p[n] = (struct pollfd){sl_term_wants(a->term), POLLOUT, 0};
        s[n++] = (struct slot){AT_TERM, 0, 0};
    }
    for (int k = a->team ? sl_team_fds(a->team, p + n) : 0; k > 0; k--)
        s[n++] = (struct slot){AT_TEAM, 0, 0};
    for (int r = 0; a->local && r < a->l->ranks; r++) {
        if (sl_local_report_fd(a->local, r) >= 0) {
            p[n] = (struct pollfd){sl_local_report_fd(a->local, r), POLLIN, 0};
            s[n++] = (struct slot){AT_REPORT, r, 0};
        }
        for (int k = 0; k < SL_LOG_STREAMS; k++) {
            if (sl_logs_fd(a->logs, r, k) < 0)
                continue;
            p[n] = (struct pollfd){sl_logs_fd(a->logs, r, k), POLLIN, 0};
            s[n++] = (struct slot){AT_LOG, r, k};
        }
    }
    return n;
}

static void on_ready(struct agent *a, const struct slot *s)
{
    switch (s->kind) {
    case AT_SIGNALS:
        read_signals(a);
        break;
    case AT_KEEPER: /* the keeper never writes: this is its end */
        sl_supervise_fail(&a->sup, 5, SL_FAILED, -1, "the keeper (pid %d) is gone",
                          (int)a->c->from->pid);
        break;
    case AT_TERM:
        sl_term_flush(a->term);
        break;
    case AT_TEAM: /* served after all others */
        break;
    case AT_REPORT:
        read_reports(a, s->rank);
        break;
    case AT_LOG:
        if (sl_logs_fd(a->logs, s->rank, s->stream) >= 0) /* not closed since by a death */
            sl_logs_read(a->logs, s->rank, s->stream);
        break;
    }
}

static void tick(struct agent *a)
{
    uint64_t now = sl_ctl_now();
    char note[300];
    int trouble = sl_logs_trouble(a->logs);

    if (now >= a->next_beat) {
        beat(a);
        a->next_beat = now + BEAT_MS * 1000000u;
    }
    if (trouble) {
        snprintf(note, sizeof note, "cannot write the ranks' logs in \"%.200s\": %s", a->folder,
                 strerror(trouble));
        say(a, "%s", note);
        event(a, -1, "log", note);
    }
    if (a->rec && sl_recorder_notice(a->rec, note, sizeof note))
        say(a, "%s", note);
    if (sl_supervise_tick(&a->sup, now, note, sizeof note))
        stopping(a, note);
    if (a->team)
        sl_team_tick(a->team, now);
    sl_meter_tick(&a->meter, now);
}

/* One turn: wait at most `ms`, then all that is due. */
static void serve(struct agent *a, int ms)
{
    struct pollfd p[MAX_SLOTS];
    struct slot s[MAX_SLOTS];
    int n = gather(a, p, s);

    if (poll(p, (nfds_t)n, ms) > 0)
        for (int i = 0; i < n; i++)
            if (p[i].revents)
                on_ready(a, &s[i]);
    if (a->team)
        sl_team_serve(a->team);
    tick(a);
}

static void loop(struct agent *a)
{
    while (!a->sup.over)
        serve(a, TICK_MS);
}

/* ---- the end ---- */

static void report_failure(struct agent *a)
{
    struct sl_failure f = {.sup = &a->sup,
                           .term = a->term,
                           .rec = a->rec,
                           .local = a->local,
                           .team = a->team,
                           .logs = a->logs,
                           .folder = a->folder,
                           .ranks = a->l->ranks,
                           .mine = a->l->crew ? a->l->crew->m[0].ranks : a->l->ranks,
                           .alive = beat,
                           .user = a};

    sl_failure_tell(&f);
}

static void on_reaped(void *user, pid_t pid, int wait_status)
{
    struct sl_death d;

    note_death(user, pid, wait_status, &d);
}

static int end_all(struct agent *a)
{
    struct sl_err err = {0};
    int rc = 0;

    if (a->local)
        sl_ctl_fail(sl_local_ctl(a->local), a->sup.culprit);
    if (a->team)
        sl_team_kill(a->team);
    if (sl_proc_kill_below(kill_ns, a->local ? on_reaped : NULL, a, NULL) < 0) {
        say(a, "some processes do not end: the keeper goes on trying");
        rc = -1;
    }
    if (a->team && sl_team_drain(a->team, 1.5e-9 * (double)kill_ns, &err)) {
        say(a, "%s", err.msg);
        rc = -1;
    }
    return rc;
}

static void close_attempt(struct agent *a)
{
    struct stat st;

    sl_local_close(a->local);
    sl_logs_close(a->logs);
    a->local = NULL;
    a->logs = NULL;
    if (a->own_log[0] && stat(a->own_log, &st) == 0 && st.st_size == 0)
        unlink(a->own_log);
}

/* The keeper's process publishes the end, which may take longer than it lets us be silent; without it, we do. */
static void publish_alone(struct agent *a)
{
    struct sl_err err = {0};
    struct sl_store *st;

    if (!a->l->db || getppid() == a->c->from->pid)
        return;
    st = sl_store_open(a->l->db, SL_STORE_WRITE, &err);
    if (!st || sl_published_write(st, a->l->id, &err))
        say(a, "%s", err.msg);
    sl_store_close(st);
}

static void close_all(struct agent *a)
{
    struct sl_err err = {0};

    sl_team_quit(a->team, a->sup.status);
    a->team = NULL;
    beat(a); /* each of these takes seconds at most */
    if (a->rec && sl_recorder_close(a->rec, a->sup.state, a->sup.status, a->sup.reason, &err))
        say(a, "%s", err.msg);
    publish_alone(a);
    beat(a);
    if (a->page) /* last, for open pages to see the end */
        a->l->page_close(a->l->user);
    beat(a);
    sl_pmix_server_close(a->pmix);
    close_attempt(a);
    sl_scratch_remove(a->c->scratch);
}

/* ---- the beginning ---- */

static int open_recorder(struct agent *a, struct sl_err *err)
{
    struct sl_recorder_conf conf = {.db = a->l->db, .job = a->l->id, .from = a->c->from};
    struct sl_lease me;

    a->attempt = 1;
    if (!a->l->db)
        return 0;
    a->rec = sl_recorder_open(&conf, err);
    if (!a->rec)
        return -1;
    a->attempt = sl_recorder_attempt(a->rec);
    if (sl_lease_self(&me, err))
        return -1;
    send(a->c->keeper, &me, sizeof me, MSG_DONTWAIT | MSG_NOSIGNAL);
    return 0;
}

/* What libraries print (libpmix does when a rank dies early) is kept, but not shown to people. */
static int own_stderr(struct agent *a)
{
    int fd, rc;

    snprintf(a->own_log, sizeof a->own_log, "%s/agent.log", a->folder);
    fd = open(a->own_log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0)
        return -1;
    rc = dup2(fd, 2) < 0 ? -1 : 0;
    close(fd);
    return rc;
}

static int open_logs(struct agent *a, struct sl_err *err)
{
    int n = snprintf(a->folder, sizeof a->folder, "%s/attempt-%d", a->l->folder, a->attempt);

    if (n >= (int)sizeof a->folder)
        return sl_fail(err, SL_SYSTEM, "the path of the run's folder is too long");
    if (mkdir(a->folder, 0700) && errno != EEXIST)
        return sl_fail(err, SL_SYSTEM, "cannot make \"%s\": %s", a->folder, strerror(errno));
    if (own_stderr(a))
        return sl_fail(err, SL_SYSTEM, "cannot write in \"%s\": %s", a->folder, strerror(errno));
    a->logs = sl_logs_open(a->folder, a->l->ranks, a->l->show_logs ? on_log_line : NULL, a, err);
    return a->logs ? 0 : -1;
}

static void name_space(const struct agent *a, char ret[160])
{
    snprintf(ret, 160, "%s.%d", a->c->scratch->name, a->attempt);
}

static int open_pmix(struct agent *a, struct sl_err *err)
{
    const struct sl_crew *c = a->l->crew;
    const char *host[SL_MAX_RANKS] = {"localhost"};
    struct sl_pmix_map map = {a->l->ranks, c ? c->nodes : 1, 0, host};
    char nspace[160], name[64] = "";

    if (c)
        sl_crew_names(c, host);
    else if (!gethostname(name, sizeof name - 1))
        host[0] = name;
    if (!a->pmix)
        a->pmix = sl_pmix_server_open(a->c->scratch->path, host[0], err);
    name_space(a, nspace);
    return a->pmix ? sl_pmix_server_job(a->pmix, nspace, &map, err) : -1;
}

/* The other agents start their ranks of this attempt. */
static void order(struct agent *a, const struct sl_local_conf *c)
{
    struct sl_order o = {.attempt = c->attempt,
                         .ranks = c->ranks,
                         .per_node = c->ranks / c->nodes,
                         .units = c->units,
                         .threads = c->threads,
                         .text_bytes = (uint32_t)strlen(c->job_text),
                         .job = c->job,
                         .arena_bytes = c->arena_bytes,
                         .hang_timeout = c->hang_timeout,
                         .data = c->data};

    name_space(a, o.nspace);
    snprintf(o.checkpoints, sizeof o.checkpoints, "%s", c->checkpoints ? c->checkpoints : "");
    snprintf(o.from, sizeof o.from, "%s", c->from ? c->from : "");
    sl_team_start(a->team, &o, c->job_text, a->local, a->pmix);
}

static int open_local(struct agent *a, struct sl_err *err)
{
    const struct sl_launch *l = a->l;
    double hang = l->job->failure.hang_timeout;
    struct sl_local_conf conf = {
        .job = l->id,
        .attempt = a->attempt,
        .ranks = l->ranks,
        .nodes = l->crew ? l->crew->nodes : 1,
        .mine = l->crew ? l->crew->m[0].ranks : l->ranks,
        .units = l->units,
        .threads = l->threads,
        .hang_timeout = hang > 0 ? SL_WATCH_FIRST * hang + RANK_PATIENCE_S : 0,
        .arena_bytes = l->arena_bytes,
        .job_text = l->job_text,
        .checkpoints = l->checkpoints,
        .from = a->from,
        .data = l->data,
    };
    char host[64] = "";

    gethostname(host, sizeof host - 1);
    a->local = sl_local_open(&conf, err);
    if (!a->local)
        return -1;
    sl_supervise_init(&a->sup, sl_local_ctl(a->local), l->ranks, host, hang, l->job->failure.grace,
                      l->job->resources.time_limit, a->began);
    for (int r = 0; r < l->ranks; r++)
        a->sup.hosts[r] = host_of(a, r);
    sl_spin_less();
    if (open_pmix(a, err))
        return -1;
    if (a->team)
        order(a, &conf);
    return sl_local_start(a->local, a->pmix, NULL, a->logs, err);
}

static void on_line(void *user, int rank, const char *text, size_t n)
{
    struct agent *a = user;

    if (a->logs)
        sl_logs_line(a->logs, rank, text, n);
}

static void on_rank_report(void *user, const struct sl_report *rep)
{
    on_report(user, rep);
}

static void on_fail(void *user, int status, const char *text)
{
    struct agent *a = user;

    sl_supervise_fail(&a->sup, status, SL_FAILED, -1, "%s", text);
}

static void on_note(void *user, const char *text)
{
    struct agent *a = user;

    say(a, "%s", text);
    event(a, -1, "lost", text);
}

static int open_team(struct agent *a, struct sl_err *err)
{
    struct sl_team_conf conf = {.crew = a->l->crew,
                                .report = on_rank_report,
                                .line = on_line,
                                .death = on_death,
                                .signal = on_signal,
                                .fail = on_fail,
                                .note = on_note,
                                .alive = beat,
                                .user = a};

    if (!a->l->crew)
        return 0;
    a->team = sl_team_open(&conf, err);
    return a->team ? 0 : -1;
}

static void open_page(struct agent *a)
{
    struct sl_err err = {0};
    char line[300] = "";

    if (!a->l->page_open)
        return;
    if (a->l->page_open(a->l->user, line, sizeof line, &err)) {
        say(a, "no page: %s", err.msg);
        return;
    }
    a->page = 1;
    if (line[0] && !a->l->quiet)
        sl_term_printf(a->term, "%s", line);
}

static void summary(struct agent *a)
{
    sl_meter_summary(&a->meter);
    if (a->l->db)
        say(a, "job %" PRId64 " %s: logs in %s, numbers in %s", a->l->id,
            sl_state_name(a->sup.state), a->folder,
            a->l->numbers ? a->l->numbers : a->l->db);
    if (a->l->db && a->sup.status == 75)
        say(a, "to go on: shardlaunch retry %" PRId64, a->l->id);
}

static void fail_start(struct agent *a, const struct sl_err *err)
{
    sl_supervise_fail(&a->sup, err->code == SL_USAGE ? 2 : 5, SL_FAILED, -1, "%s", err->msg);
    snprintf(a->sup.hint, sizeof a->sup.hint, "%s", err->hint);
}

/* ---- attempts ---- */

/* Where this attempt goes on: the first as the caller says, others from the newest checkpoint. */
static int pick(struct agent *a, struct sl_err *err)
{
    const struct sl_launch *l = a->l;
    struct sl_ckpt_conf conf = {.dir = l->checkpoints,
                                .text = l->job_text,
                                .job = l->id,
                                .steps = l->steps,
                                .samples = l->samples};
    int64_t step;

    a->from[0] = '\0';
    if (!a->restart.used) {
        snprintf(a->from, sizeof a->from, "%s", l->from ? l->from : "");
        return 0;
    }
    if (!l->checkpoints || !*l->checkpoints)
        return 0;
    return sl_ckpt_pick(l->job, &conf, 1 + (int)a->restart.used, a->from, &step, err);
}

/* From the start of its ranks to their end; what came of it stands in a->sup. */
static void attempt(struct agent *a)
{
    struct sl_err err = {0};

    a->sup = (struct sl_supervise){.culprit = -1};
    a->hellos = a->resumed = 0;
    if ((!a->logs && open_logs(a, &err)) || pick(a, &err) || open_local(a, &err))
        fail_start(a, &err);
    else
        loop(a);
    if (a->sup.state == SL_FAILED)
        report_failure(a);
    else if (a->sup.state != SL_DONE)
        say(a, "%s", a->sup.reason);
}

/*
 * Between two attempts, when no rank runs: signals, the keeper and the terminal are served. -1: the
 * run ends here, as somebody wishes.
 */
static int pause_for(struct agent *a, double seconds)
{
    struct sl_supervise failed = a->sup;
    uint64_t end = sl_ctl_now() + (uint64_t)(1e9 * seconds);

    a->sup.over = 0;
    a->sup.peer_at = 0;
    a->sup.watch.timeout = 0;
    do {
        int64_t left = ((int64_t)end - (int64_t)sl_ctl_now()) / 1000000;

        serve(a, left < 0 ? 0 : left < TICK_MS ? (int)left : TICK_MS);
    } while (!a->sup.over && !a->sup.asked && sl_ctl_now() < end);
    if (a->sup.over)
        return -1;
    failed.asked = a->sup.asked;
    failed.signal = a->sup.signal;
    a->sup = failed;
    return a->sup.asked ? -1 : 0;
}

/* Asked to stop while no rank ran: what the next attempt would have gone on from is still there. */
static void stopped_between(struct agent *a)
{
    struct sl_supervise *s = &a->sup;
    struct sl_err err = {0};

    if (pick(a, &err))
        return; /* then the failure is the reason */
    s->state = SL_STOPPED;
    s->status = *a->from ? 75 : s->asked == SL_STOP_TIME ? 1 : 128 + s->signal;
    snprintf(s->reason, sizeof s->reason, "%s: stopped before attempt %d, %s%.280s",
             s->asked == SL_STOP_TIME ? "time_limit reached" : strsignal(s->signal),
             a->attempt + 1, *a->from ? "which can go on from " : "without a checkpoint", a->from);
    say(a, "%s", s->reason);
}

/* 1: another attempt is to be made, and the recorder knows of it. */
static int once_more(struct agent *a)
{
    size_t n = strlen(a->sup.reason);
    char why[200] = "";
    double delay = 0;
    int again = !end_all(a) && sl_restart_ask(&a->restart, &a->sup, &delay, why, sizeof why);

    if (why[0])
        say(a, "%s", why);
    if (!again) {
        if (why[0])
            snprintf(a->sup.reason + n, sizeof a->sup.reason - n, " (%s)", why);
        return 0;
    }
    event(a, -1, "restart", why);
    if (pause_for(a, delay)) {
        if (a->sup.asked && a->sup.state == SL_FAILED)
            stopped_between(a);
        return 0;
    }
    if (a->rec && sl_recorder_next(a->rec, a->sup.status, a->sup.reason)) {
        say(a, "the next attempt cannot be recorded: none is made");
        return 0;
    }
    close_attempt(a);
    a->attempt++;
    sl_tally_again(&a->tally);
    return 1;
}

int sl_agent_run(const struct sl_agent_conf *conf)
{
    const struct sl_launch *l = conf->launch;
    struct agent a = {.c = conf, .l = l, .began = sl_ctl_now()};
    struct sigaction hup;
    struct sl_err err = {0};

    a.sup.culprit = -1;
    a.nohup = sigaction(SIGHUP, NULL, &hup) == 0 && hup.sa_handler == SIG_IGN;
    sl_tally_init(&a.tally, l->ranks, l->steps);
    sl_restart_init(&a.restart, l->job->failure.max_restarts);
    a.term = sl_term_open(l->out, &err);
    if (!a.term)
        return 5;
    sl_meter_init(&a.meter, a.term, &a.tally, l->quiet ? 0 : l->progress);
    if (open_team(&a, &err) || open_recorder(&a, &err) || open_logs(&a, &err)) {
        fail_start(&a, &err);
        report_failure(&a);
        end_all(&a);
    } else {
        open_page(&a);
        do
            attempt(&a);
        while (once_more(&a));
    }
    if (!l->quiet)
        summary(&a);
    close_all(&a);
    sl_term_close(a.term);
    return a.sup.status;
}
