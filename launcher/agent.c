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
#include "launcher/lines.h"
#include "launcher/local.h"
#include "launcher/logs.h"
#include "launcher/pmix_server.h"
#include "launcher/meter.h"
#include "launcher/recorder.h"
#include "launcher/stack.h"
#include "launcher/supervise.h"
#include "launcher/term.h"

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
    struct sl_tally tally;
    struct sl_meter meter;
    struct sl_supervise sup;
    uint64_t next_beat;
    int attempt, hellos, nohup, page;
    char folder[3072]; /* of the attempt's logs */
    char own_log[3100];
};

static void beat(void *user)
{
    struct agent *a = user;

    send(a->c->keeper, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
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

static void on_report(struct agent *a, const struct sl_report *rep)
{
    sl_tally_add(&a->tally, rep);
    if (a->rec)
        sl_recorder_put(a->rec, rep);
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

/* The rank is gone: its last words first, so that a report of its death has them. */
static void note_death(struct agent *a, pid_t pid, int wait_status, struct sl_death *ret)
{
    int rank = sl_local_ended(a->local, pid);
    struct sl_report rep;

    *ret = (struct sl_death){.rank = rank, .pid = pid, .wait_status = wait_status};
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

static void stopping(struct agent *a, const char *note)
{
    say(a, "%s", note);
    if (a->rec)
        sl_recorder_state(a->rec, SL_STOPPING, note);
}

static void read_signals(struct agent *a)
{
    struct signalfd_siginfo si;
    char note[200];

    while (read(a->c->signals, &si, sizeof si) == sizeof si) {
        int s = (int)si.ssi_signo;

        if (s == SIGCHLD || (s == SIGHUP && a->nohup))
            continue;
        if (sl_supervise_signal(&a->sup, s, sl_ctl_now(), note, sizeof note))
            stopping(a, note);
    }
    reap(a);
}

/* ---- the loop ---- */

struct slot {
    int kind, rank, stream;
};
enum { AT_SIGNALS, AT_KEEPER, AT_TERM, AT_REPORT, AT_LOG };
enum { MAX_SLOTS = 3 + SL_MAX_RANKS * (1 + SL_LOG_STREAMS) };

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
    for (int r = 0; r < a->l->ranks; r++) {
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
    sl_meter_tick(&a->meter, now);
}

static void loop(struct agent *a)
{
    struct pollfd p[MAX_SLOTS];
    struct slot s[MAX_SLOTS];

    while (!a->sup.over) {
        int n = gather(a, p, s);

        if (poll(p, (nfds_t)n, TICK_MS) > 0)
            for (int i = 0; i < n; i++)
                if (p[i].revents)
                    on_ready(a, &s[i]);
        tick(a);
    }
}

/* ---- the end ---- */

static void report_hang(struct agent *a)
{
    struct sl_ctl *ctl = sl_local_ctl(a->local);
    char text[200], stack[8192], *line, *next;

    for (int r = 0; r < a->l->ranks; r++) {
        sl_watch_rank(ctl, r, text, sizeof text);
        say(a, "%s%s", text, r == a->sup.culprit ? "  <- behind" : "");
    }
    if (a->sup.culprit < 0)
        return;
    sl_stack_read(sl_local_pid(a->local, a->sup.culprit), beat, a, stack, sizeof stack);
    event(a, a->sup.culprit, "stack", stack);
    if (stack[0])
        say(a, "rank %d when it hung:", a->sup.culprit);
    for (line = stack; *line; line = next) {
        next = line + strcspn(line, "\n");
        sl_term_line(a->term, line, (size_t)(next - line));
        next += *next == '\n';
    }
}

static void report_failure(struct agent *a)
{
    int rank = a->sup.culprit;
    const char *line;

    say(a, "%s", a->sup.reason);
    if (a->sup.hint[0])
        say(a, "%s", a->sup.hint);
    if (rank < 0)
        return;
    if (a->sup.status == 6)
        report_hang(a);
    if (sl_logs_tail(a->logs, rank, 0))
        say(a, "last output of rank %d (%s/rank-%d.log):", rank, a->folder, rank);
    else
        say(a, "rank %d has printed nothing", rank);
    for (int i = 0; (line = sl_logs_tail(a->logs, rank, i)); i++)
        sl_term_printf(a->term, "  | %s", line);
}

static void on_reaped(void *user, pid_t pid, int wait_status)
{
    struct sl_death d;

    note_death(user, pid, wait_status, &d);
}

static void end_all(struct agent *a)
{
    if (a->local)
        sl_ctl_fail(sl_local_ctl(a->local), a->sup.culprit);
    if (sl_proc_kill_below(kill_ns, a->local ? on_reaped : NULL, a, NULL) < 0)
        say(a, "some processes do not end: the keeper goes on trying");
}

static void close_all(struct agent *a)
{
    struct stat st;
    struct sl_err err = {0};

    beat(a); /* each of these takes seconds at most */
    if (a->page)
        a->l->page_close(a->l->user);
    beat(a);
    if (a->rec && sl_recorder_close(a->rec, a->sup.state, a->sup.status, a->sup.reason, &err))
        say(a, "%s", err.msg);
    beat(a);
    sl_pmix_server_close(a->pmix);
    sl_local_close(a->local);
    sl_logs_close(a->logs);
    sl_scratch_remove(a->c->scratch);
    if (a->own_log[0] && stat(a->own_log, &st) == 0 && st.st_size == 0)
        unlink(a->own_log);
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

/*
 * The threads of a rank wait for each other hundreds of times a step. libgomp lets a waiter spin for
 * milliseconds, which costs a shared machine two thirds of its time (doc/performance.md); some tens
 * of microseconds bridge the usual wait. It reads this before main, so a rank cannot set it itself.
 */
static void spin_less(void)
{
    if (!getenv("OMP_WAIT_POLICY"))
        setenv("GOMP_SPINCOUNT", "2000", 0);
}

static int open_local(struct agent *a, struct sl_err *err)
{
    const struct sl_launch *l = a->l;
    double hang = l->job->failure.hang_timeout;
    struct sl_local_conf conf = {
        .job = l->id,
        .attempt = a->attempt,
        .ranks = l->ranks,
        .units = l->units,
        .threads = l->threads,
        .hang_timeout = hang > 0 ? hang + RANK_PATIENCE_S : 0,
        .arena_bytes = l->arena_bytes,
        .job_text = l->job_text,
        .checkpoints = l->checkpoints,
        .from = l->from,
        .data = l->data,
    };
    char host[64] = "", nspace[160];

    gethostname(host, sizeof host - 1);
    snprintf(nspace, sizeof nspace, "%s.%d", a->c->scratch->name, a->attempt);
    a->local = sl_local_open(&conf, err);
    if (!a->local)
        return -1;
    sl_supervise_init(&a->sup, sl_local_ctl(a->local), l->ranks, host, hang, l->job->failure.grace,
                      l->job->resources.time_limit, sl_ctl_now());
    spin_less();
    a->pmix = sl_pmix_server_open(a->c->scratch->path, nspace, l->ranks, err);
    return a->pmix ? sl_local_start(a->local, a->pmix, a->logs, err) : -1;
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
            sl_state_name(a->sup.state), a->folder, a->l->db);
}

static void fail_start(struct agent *a, const struct sl_err *err)
{
    sl_supervise_fail(&a->sup, err->code == SL_USAGE ? 2 : 5, SL_FAILED, -1, "%s", err->msg);
    snprintf(a->sup.hint, sizeof a->sup.hint, "%s", err->hint);
}

int sl_agent_run(const struct sl_agent_conf *conf)
{
    const struct sl_launch *l = conf->launch;
    struct agent a = {.c = conf, .l = l};
    struct sigaction hup;
    struct sl_err err = {0};

    a.sup.culprit = -1;
    a.nohup = sigaction(SIGHUP, NULL, &hup) == 0 && hup.sa_handler == SIG_IGN;
    sl_tally_init(&a.tally, l->ranks, l->steps);
    a.term = sl_term_open(l->out, &err);
    if (!a.term)
        return 5;
    sl_meter_init(&a.meter, a.term, &a.tally, l->quiet ? 0 : l->progress);
    if (open_recorder(&a, &err) || open_logs(&a, &err)) {
        fail_start(&a, &err);
    } else {
        open_page(&a);
        if (open_local(&a, &err))
            fail_start(&a, &err);
        else
            loop(&a);
    }
    if (a.sup.state == SL_FAILED)
        report_failure(&a);
    else if (a.sup.state != SL_DONE)
        say(&a, "%s", a.sup.reason);
    end_all(&a);
    if (!l->quiet)
        summary(&a);
    close_all(&a);
    sl_term_close(a.term);
    return a.sup.status;
}
