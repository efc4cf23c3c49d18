/* keeper.c - wait for the agent, pass signals on, clean up after it */
#include "launcher/keeper.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/proc.h"
#include "launcher/term.h"
#include "store/store.h"

enum { TICK_MS = 500 };
static const int64_t kill_ns = 5000000000;

struct keeper {
    const struct sl_keeper_conf *c;
    struct sl_lease agent; /* its lease; pid 0 until it took the job over */
    int quiet_ticks;       /* ticks without a beat: counted, so that our own sleep does not count */
    int over, wait_status, silent;
};

static void read_beats(struct keeper *k)
{
    char buf[sizeof k->agent + 1];
    ssize_t n;

    while ((n = recv(k->c->beats, buf, sizeof buf, MSG_DONTWAIT)) > 0) {
        k->quiet_ticks = 0;
        if (n == sizeof k->agent)
            memcpy(&k->agent, buf, sizeof k->agent);
    }
}

static void read_signals(struct keeper *k)
{
    struct signalfd_siginfo si;
    int st;
    pid_t p;

    while (read(k->c->signals, &si, sizeof si) == sizeof si)
        if (si.ssi_signo != SIGCHLD)
            kill(k->c->agent, (int)si.ssi_signo);
    while ((p = waitpid(-1, &st, WNOHANG)) > 0) {
        if (p != k->c->agent)
            continue;
        k->over = 1;
        k->wait_status = st;
        return; /* its pid is free now: no signal may go there */
    }
}

static int mark_failed(const struct keeper *k, const char *reason, struct sl_err *err)
{
    const struct sl_launch *l = k->c->launch;
    const struct sl_lease *holder = k->agent.pid ? &k->agent : k->c->mine;
    struct sl_store *st = sl_store_open(l->db, SL_STORE_WRITE, err);
    int rc;

    if (!st)
        return -1;
    rc = sl_jobs_end(st, l->id, holder, SL_FAILED, 5, reason, err);
    sl_store_close(st);
    return rc;
}

static void report(struct keeper *k, int left)
{
    const struct sl_launch *l = k->c->launch;
    struct sl_err err = {0};
    struct sl_term *t = sl_term_open(l->out, NULL);
    char why[160];

    snprintf(why, sizeof why, "the agent (pid %d) %s signal %d (%s)", (int)k->c->agent,
             k->silent ? "gave no sign and was ended by" : "was killed by",
             WTERMSIG(k->wait_status), strsignal(WTERMSIG(k->wait_status)));
    if (l->db)
        mark_failed(k, why, &err);
    if (!t)
        return;
    if (left < 0)
        sl_term_printf(t, "shardlaunch: %s; some processes below it do not end", why);
    else
        sl_term_printf(t, "shardlaunch: %s; ended %d process%s that it left", why, left,
                       left == 1 ? "" : "es");
    if (err.code)
        sl_term_printf(t, "shardlaunch: job %" PRId64 " is not marked as failed: %s", l->id,
                       err.msg);
    sl_term_close(t);
}

int sl_keeper_run(const struct sl_keeper_conf *conf)
{
    struct keeper k = {.c = conf};
    double silence = conf->launch->silence > 0 ? conf->launch->silence : 10;
    struct pollfd p[2] = {{conf->signals, POLLIN, 0}, {conf->beats, POLLIN, 0}};
    int left;

    while (!k.over) {
        int n = poll(p, 2, TICK_MS);

        if (p[1].revents & (POLLHUP | POLLERR))
            p[1].fd = -1; /* the agent is about to end: SIGCHLD says how */
        if (n > 0) {
            read_beats(&k);
            read_signals(&k);
        } else if (n == 0 && ++k.quiet_ticks * TICK_MS >= silence * 1000 && !k.silent) {
            k.silent = 1;
            kill(conf->agent, SIGKILL);
        }
    }
    left = sl_proc_kill_below(kill_ns, NULL, NULL, NULL);
    sl_scratch_remove(conf->scratch);
    if (WIFEXITED(k.wait_status))
        return WEXITSTATUS(k.wait_status);
    report(&k, left);
    return 5;
}
