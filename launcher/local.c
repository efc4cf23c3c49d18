/* local.c - memfds, start of the ranks, their report sockets */
#include "launcher/local.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/mem.h"
#include "executor/rank.h"

extern char **environ;

struct rank {
    int arena, report;
    pid_t pid;
    int alive;
};

struct sl_local {
    struct sl_local_conf conf;
    size_t ctl_bytes;
    int ctl_fd, null_fd;
    struct sl_ctl *ctl;
    struct rank r[SL_MAX_RANKS];
};

static int make_memfd(const char *name, int64_t bytes, struct sl_err *err)
{
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0 || ftruncate(fd, bytes)
        || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) {
        sl_fail(err, SL_SYSTEM, "cannot make shared memory of %" PRId64 " bytes: %s", bytes,
                strerror(errno));
        if (fd >= 0)
            close(fd);
        return -1;
    }
    return fd;
}

static int per_node(const struct sl_local *l)
{
    return l->conf.ranks / l->conf.nodes;
}

/* Without memory yet. */
static struct sl_local *create(const struct sl_local_conf *conf, struct sl_err *err)
{
    struct sl_local *l = sl_calloc(1, sizeof *l);

    if (!l) {
        sl_fail(err, SL_SYSTEM, "cannot hold the ranks: %s", strerror(errno));
        return NULL;
    }
    l->conf = *conf;
    l->ctl_fd = l->null_fd = -1;
    for (int i = 0; i < SL_MAX_RANKS; i++)
        l->r[i] = (struct rank){.arena = -1, .report = -1};
    l->ctl_bytes = sl_ctl_size(conf->ranks, conf->units);
    if (!l->ctl_bytes) {
        sl_fail(err, SL_USAGE, "no control block for %d ranks and %d units", conf->ranks,
                conf->units);
        goto fail;
    }
    l->null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (l->null_fd < 0) {
        sl_fail(err, SL_SYSTEM, "cannot open /dev/null: %s", strerror(errno));
        goto fail;
    }
    return l;
fail:
    sl_local_close(l);
    return NULL;
}

static int map_ctl(struct sl_local *l, struct sl_err *err)
{
    l->ctl = mmap(NULL, l->ctl_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, l->ctl_fd, 0);
    if (l->ctl != MAP_FAILED)
        return 0;
    l->ctl = NULL;
    return sl_fail(err, SL_SYSTEM, "cannot map the control block: %s", strerror(errno));
}

struct sl_local *sl_local_open(const struct sl_local_conf *conf, struct sl_err *err)
{
    struct sl_local *l = create(conf, err);

    if (!l)
        return NULL;
    l->ctl_fd = make_memfd("shardlaunch-ctl", (int64_t)l->ctl_bytes, err);
    if (l->ctl_fd < 0 || map_ctl(l, err) || sl_ctl_init(l->ctl, conf->ranks, conf->units, err))
        goto fail;
    for (int i = 0; i < per_node(l); i++) {
        struct rank *r = &l->r[conf->node * per_node(l) + i];

        r->arena = make_memfd("shardlaunch-arena", conf->arena_bytes, err);
        if (r->arena < 0)
            goto fail;
    }
    return l;
fail:
    sl_local_close(l);
    return NULL;
}

struct sl_local *sl_local_adopt(const struct sl_local_conf *conf, const int *fds, int n,
                                struct sl_err *err)
{
    struct sl_local *l = create(conf, err);
    struct stat st;

    if (!l || n != 1 + per_node(l)) {
        for (int i = 0; i < n; i++)
            close(fds[i]);
        if (l)
            sl_fail(err, SL_BUG, "%d descriptors were handed over, not %d", n, 1 + per_node(l));
        sl_local_close(l);
        return NULL;
    }
    l->ctl_fd = fds[0];
    for (int i = 1; i < n; i++)
        l->r[conf->node * per_node(l) + i - 1].arena = fds[i];
    if (fstat(l->ctl_fd, &st) || st.st_size < (int64_t)l->ctl_bytes)
        sl_fail(err, SL_BUG, "the control block that was handed over is too short");
    else if (!map_ctl(l, err))
        return l;
    sl_local_close(l);
    return NULL;
}

int sl_local_fds(const struct sl_local *l, int fds[1 + SL_MAX_RANKS])
{
    fds[0] = l->ctl_fd;
    for (int i = 0; i < per_node(l); i++)
        fds[1 + i] = l->r[l->conf.node * per_node(l) + i].arena;
    return 1 + per_node(l);
}

int sl_local_here(const struct sl_local *l, int rank)
{
    return rank >= 0 && rank < l->conf.ranks && rank / per_node(l) == l->conf.node;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void sl_local_close(struct sl_local *l)
{
    if (!l)
        return;
    for (int i = 0; i < SL_MAX_RANKS; i++) {
        close_fd(&l->r[i].arena);
        close_fd(&l->r[i].report);
    }
    if (l->ctl)
        munmap(l->ctl, l->ctl_bytes);
    close_fd(&l->ctl_fd);
    close_fd(&l->null_fd);
    free(l);
}

/* What the rank reads first: a struct and the job's text, in a memfd. */
static int make_start(const struct sl_local *l, int rank, int report, struct sl_err *err)
{
    const struct sl_local_conf *c = &l->conf;
    struct sl_rank_start s = {
        .magic = SL_RANK_MAGIC,
        .version = SL_RANK_VERSION,
        .job = c->job,
        .attempt = c->attempt,
        .rank = rank,
        .ranks = c->ranks,
        .local = rank - c->node * per_node(l),
        .nlocal = per_node(l),
        .node = c->node,
        .nodes = c->nodes,
        .threads = c->threads,
        .hang_timeout = c->hang_timeout,
        .arena_bytes = c->arena_bytes,
        .ctl_fd = l->ctl_fd,
        .report_fd = report,
        .data = c->data,
        .text_bytes = (uint32_t)strlen(c->job_text),
    };
    int fd = memfd_create("shardlaunch-start", MFD_CLOEXEC);

    snprintf(s.checkpoints, sizeof s.checkpoints, "%s", c->checkpoints ? c->checkpoints : "");
    snprintf(s.from, sizeof s.from, "%s", c->from ? c->from : "");
    for (int i = 0; i < SL_MAX_RANKS; i++)
        s.arena_fd[i] = i < per_node(l) ? l->r[c->node * per_node(l) + i].arena : -1;
    if (fd < 0 || pwrite(fd, &s, sizeof s, 0) != sizeof s
        || pwrite(fd, c->job_text, s.text_bytes, sizeof s) != (ssize_t)s.text_bytes) {
        sl_fail(err, SL_SYSTEM, "cannot make the start of rank %d: %s", rank, strerror(errno));
        if (fd >= 0)
            close(fd);
        return -1;
    }
    return fd;
}

/* Between fork and exec: async-signal-safe calls only, libpmix has threads. */
static void child(const struct sl_local *l, pid_t parent, int start, int report, const int out[2],
                  char *const argv[], char *const env[])
{
    static const int ignored[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2};
    static const int defaults[] = {SIGPIPE, SIGTTOU};
    sigset_t none;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127);
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        signal(ignored[i], SIG_IGN);
    for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++)
        signal(defaults[i], SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (dup2(l->null_fd, 0) < 0 || dup2(out[0], 1) < 0 || dup2(out[1], 2) < 0)
        _exit(127);
    fcntl(start, F_SETFD, 0);
    fcntl(report, F_SETFD, 0);
    fcntl(l->ctl_fd, F_SETFD, 0);
    for (int i = 0; i < l->conf.ranks; i++)
        if (l->r[i].arena >= 0)
            fcntl(l->r[i].arena, F_SETFD, 0);
    execve("/proc/self/exe", argv, env);
    _exit(127);
}

/* This process's environment and then "A=1\0B=2\0\0". */
static char **env_with(const char *vars, struct sl_err *err)
{
    size_t n = 0, add = 0;
    char **env;

    while (environ[n])
        n++;
    for (const char *v = vars; *v; v += strlen(v) + 1)
        add++;
    env = sl_calloc(n + add + 1, sizeof *env);
    for (size_t i = 0; env && i < n + add; i++) {
        env[i] = sl_strdup(i < n ? environ[i] : vars);
        if (i >= n)
            vars += strlen(vars) + 1;
        if (!env[i]) {
            sl_pmix_server_free_env(env);
            env = NULL;
        }
    }
    if (!env)
        sl_fail(err, SL_SYSTEM, "cannot make the environment of a rank: %s", strerror(errno));
    return env;
}

static int start_rank(struct sl_local *l, int rank, struct sl_pmix_server *pmix, const char *vars,
                      struct sl_logs *logs, struct sl_err *err)
{
    int report[2] = {-1, -1}, out[2] = {-1, -1}, in[2] = {-1, -1}, p[2];
    int start = -1, rc = -1;
    pid_t self = getpid(), pid;
    char **env = NULL, num[16];
    char *argv[] = {"shardlaunch", "rank", num, NULL};

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, report)) {
        sl_fail(err, SL_SYSTEM, "cannot make a socket for rank %d: %s", rank, strerror(errno));
        goto end;
    }
    for (int s = 0; s < SL_LOG_STREAMS; s++) {
        if (pipe2(p, O_CLOEXEC)) {
            sl_fail(err, SL_SYSTEM, "cannot make a pipe for rank %d: %s", rank, strerror(errno));
            goto end;
        }
        in[s] = p[0];
        out[s] = p[1];
    }
    start = make_start(l, rank, report[1], err);
    if (start >= 0)
        env = pmix ? sl_pmix_server_env(pmix, rank, err) : env_with(vars, err);
    if (!env)
        goto end;
    snprintf(num, sizeof num, "%d", start);
    pid = fork();
    if (pid == 0)
        child(l, self, start, report[1], out, argv, env);
    if (pid < 0) {
        sl_fail(err, SL_SYSTEM, "cannot start rank %d: %s", rank, strerror(errno));
        goto end;
    }
    l->r[rank].pid = pid;
    l->r[rank].alive = 1;
    l->r[rank].report = report[0];
    report[0] = -1;
    atomic_store(&l->ctl->r[rank].pid, (uint32_t)pid); /* it may hang before it can do so */
    rc = 0;
    for (int s = 0; s < SL_LOG_STREAMS; s++) {
        if (sl_logs_attach(logs, rank, s, in[s], err))
            rc = -1;
        else
            in[s] = -1;
    }
end:
    sl_pmix_server_free_env(env);
    close_fd(&start);
    for (int i = 0; i < 2; i++) {
        close_fd(&report[i]);
        close_fd(&in[i]);
        close_fd(&out[i]);
    }
    return rc;
}

int sl_local_start(struct sl_local *l, struct sl_pmix_server *pmix, const char *vars,
                   struct sl_logs *logs, struct sl_err *err)
{
    for (int i = 0; i < l->conf.mine; i++)
        if (start_rank(l, l->conf.first + i, pmix, vars, logs, err))
            return -1;
    return 0;
}

struct sl_ctl *sl_local_ctl(struct sl_local *l)
{
    return l->ctl;
}

pid_t sl_local_pid(const struct sl_local *l, int rank)
{
    return l->r[rank].pid;
}

int sl_local_lives(const struct sl_local *l, int rank)
{
    return l->r[rank].alive;
}

int sl_local_alive(const struct sl_local *l)
{
    int n = 0;

    for (int i = 0; i < l->conf.ranks; i++)
        n += l->r[i].alive;
    return n;
}

int sl_local_ended(struct sl_local *l, pid_t pid)
{
    for (int i = 0; i < l->conf.ranks; i++) {
        if (l->r[i].pid != pid || !l->r[i].alive)
            continue;
        l->r[i].alive = 0;
        return i;
    }
    return -1;
}

int sl_local_report_fd(const struct sl_local *l, int rank)
{
    return l->r[rank].report;
}

int sl_local_report(struct sl_local *l, int rank, struct sl_report *ret)
{
    for (;;) {
        char buf[sizeof *ret + 1]; /* a longer record shows as longer */
        int fd = l->r[rank].report;
        ssize_t n = fd < 0 ? -1 : recv(fd, buf, sizeof buf, MSG_DONTWAIT);

        if (n < 0 && fd >= 0 && errno == EINTR)
            continue;
        if (n < 0 && fd >= 0 && errno == EAGAIN)
            return 0;
        if (n <= 0) {
            close_fd(&l->r[rank].report);
            return 0;
        }
        if (n != sizeof *ret)
            continue;
        memcpy(ret, buf, sizeof *ret);
        if (ret->rank == rank)
            return 1;
    }
}
