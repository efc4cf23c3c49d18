/* launch.c - fork the agent below this process, which becomes its keeper */
#include "launcher/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "launcher/agent.h"
#include "launcher/follow.h"
#include "launcher/keeper.h"
#include "launcher/scratch.h"

enum { FILES_PER_RANK = 6, FILES_BASE = 128 };

/* A descriptor 0, 1 or 2 that is closed would be taken by the first file we open. */
static int fill_std(struct sl_err *err)
{
    for (int fd = 0; fd < 3; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
            continue;
        if (open("/dev/null", O_RDWR) != fd)
            return sl_fail(err, SL_SYSTEM, "cannot open /dev/null: %s", strerror(errno));
    }
    return 0;
}

/* Raise the soft limit of open files to the hard one; a rank costs us a handful. */
static int raise_files(int ranks, struct sl_err *err)
{
    rlim_t want = (rlim_t)FILES_PER_RANK * (rlim_t)ranks + FILES_BASE;
    struct rlimit r;

    if (getrlimit(RLIMIT_NOFILE, &r))
        return sl_fail(err, SL_SYSTEM, "cannot read the limit of open files: %s", strerror(errno));
    if (r.rlim_cur < r.rlim_max) {
        r.rlim_cur = r.rlim_max;
        setrlimit(RLIMIT_NOFILE, &r);
        getrlimit(RLIMIT_NOFILE, &r);
    }
    if (r.rlim_cur >= want)
        return 0;
    sl_fail(err, SL_SYSTEM, "%d ranks need %llu open files, the limit is %llu", ranks,
            (unsigned long long)want, (unsigned long long)r.rlim_cur);
    return sl_hint(err, "Raise it (ulimit -Hn) or use fewer ranks.");
}

static int agent_main(struct sl_agent_conf *c, const sigset_t *set)
{
    struct sl_launch l = *c->launch;
    int status = 5;

    l.out = fcntl(l.out, F_DUPFD_CLOEXEC, 3); /* 2 becomes the agent's own log */
    c->launch = &l;
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* not inherited by fork */
    prctl(PR_SET_NAME, "sl-agent");
    setpgid(0, 0); /* a terminal's Ctrl-C reaches the keeper only, which passes it on */
    signal(SIGTTOU, SIG_IGN);
    c->signals = signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (c->signals >= 0 && l.out >= 0)
        status = l.crew && l.crew->me > 0 ? sl_follow_run(c) : sl_agent_run(c);
    return status;
}

static void all_signals(sigset_t *set)
{
    sigemptyset(set);
    for (const int *s = sl_agent_signals; *s; s++)
        sigaddset(set, *s);
}

void sl_launch_hold(void)
{
    sigset_t set;

    all_signals(&set);
    sigprocmask(SIG_BLOCK, &set, NULL);
}

int sl_launch_run(const struct sl_launch *l, struct sl_err *err)
{
    struct sl_scratch scratch;
    struct sl_lease mine;
    sigset_t set, old;
    int pair[2], sfd, status;
    pid_t agent;

    if (fill_std(err) || raise_files(l->crew && l->crew->me > 0 ? SL_MAX_RANKS : l->ranks, err) || sl_lease_self(&mine, err))
        return -1;
    sl_scratch_sweep();
    if (sl_scratch_open(&scratch, err))
        return -1;
    all_signals(&set);
    sigprocmask(SIG_BLOCK, &set, &old); /* before the fork: none is lost in between */
    signal(SIGPIPE, SIG_IGN); /* nobody reads our messages: no reason to die */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    sfd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (sfd < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
        goto fail;
    fflush(NULL);
    agent = fork();
    if (agent < 0)
        goto fail;
    if (agent == 0) {
        struct sl_agent_conf c
            = {.launch = l, .scratch = &scratch, .from = &mine, .keeper = pair[1]};

        close(pair[0]);
        close(sfd);
        status = agent_main(&c, &set);
        fflush(NULL);
        _exit(status);
    }
    setpgid(agent, agent);    /* the agent does it too: whoever is first */
    signal(SIGTSTP, SIG_IGN); /* a stopped keeper could not pass signals on */
    close(pair[1]);
    status = sl_keeper_run(&(struct sl_keeper_conf){.launch = l,
                                                    .scratch = &scratch,
                                                    .mine = &mine,
                                                    .agent = agent,
                                                    .beats = pair[0],
                                                    .signals = sfd});
    close(pair[0]);
    close(sfd);
    close(scratch.lock);
    sigprocmask(SIG_SETMASK, &old, NULL);
    return status;
fail:
    sl_fail(err, SL_SYSTEM, "cannot start the agent: %s", strerror(errno));
    if (sfd >= 0)
        close(sfd);
    sl_scratch_remove(&scratch);
    close(scratch.lock);
    sigprocmask(SIG_SETMASK, &old, NULL);
    return -1;
}
