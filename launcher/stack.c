/* stack.c - run gdb on a process that hangs; read /proc */
#include "launcher/stack.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "executor/ctl.h"
#include "launcher/lines.h"

enum { LIMIT_MS = 8000, TICK_MS = 200, FRAME = 200 };
extern char **environ;

struct out {
    char *ret;
    size_t size, n;
    int frames;
};

static void add(struct out *o, const char *what, const char *text, size_t n)
{
    int k;

    if (n > FRAME)
        n = FRAME;
    if (o->size - o->n < n + strlen(what) + 8)
        return;
    k = snprintf(o->ret + o->n, o->size - o->n, "  %s%.*s\n", what, (int)n, text);
    o->n += (size_t)k;
}

static void add_proc(struct out *o, pid_t pid, const char *file, const char *begin)
{
    char path[64], line[256];
    FILE *f;

    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
    f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, begin, strlen(begin)) || !line[0])
            continue;
        add(o, begin[0] ? "" : "waits in: ", line, strlen(line));
        break;
    }
    if (f)
        fclose(f);
}

static void on_line(void *user, const char *text, size_t n)
{
    struct out *o = user;

    if (!n || text[0] != '#')
        return;
    o->frames++;
    add(o, "", text, n);
}

static pid_t start_gdb(pid_t pid, int *ret_fd)
{
    char who[16];
    char *argv[] = {"gdb", "-nx", "-q", "-batch", "-p", who, "-ex", "bt 24", NULL};
    sigset_t none;
    posix_spawn_file_actions_t fa;
    posix_spawnattr_t at;
    pid_t gdb = -1;
    int p[2];

    if (pipe2(p, O_CLOEXEC))
        return -1;
    snprintf(who, sizeof who, "%d", (int)pid);
    posix_spawn_file_actions_init(&fa);
    posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&fa, p[1], 1);
    posix_spawn_file_actions_addopen(&fa, 2, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_init(&at);
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&at, &none);
    posix_spawnattr_setflags(&at, POSIX_SPAWN_SETSIGMASK);
    if (posix_spawnp(&gdb, "gdb", &fa, &at, argv, environ))
        gdb = -1;
    posix_spawnattr_destroy(&at);
    posix_spawn_file_actions_destroy(&fa);
    close(p[1]);
    if (gdb < 0)
        close(p[0]);
    *ret_fd = p[0];
    return gdb;
}

void sl_stack_read(pid_t pid, void (*alive)(void *user), void *user, char *ret, size_t size)
{
    struct out o = {.ret = ret, .size = size};
    struct sl_lines lines = {0};
    uint64_t end = sl_ctl_now() + LIMIT_MS * 1000000ull;
    char data[4096];
    int fd = -1, st;
    pid_t gdb;

    ret[0] = '\0';
    add_proc(&o, pid, "status", "State:");
    gdb = start_gdb(pid, &fd);
    while (gdb > 0 && sl_ctl_now() < end) {
        struct pollfd p = {fd, POLLIN, 0};
        ssize_t k;

        if (alive)
            alive(user);
        if (poll(&p, 1, TICK_MS) <= 0)
            continue;
        k = read(fd, data, sizeof data);
        if (k <= 0)
            break;
        sl_lines_push(&lines, data, (size_t)k, on_line, &o);
    }
    if (gdb > 0) {
        sl_lines_end(&lines, on_line, &o);
        close(fd);
        kill(gdb, SIGKILL); /* our own child, not yet waited for: the pid is still its */
        waitpid(gdb, &st, 0);
    }
    if (!o.frames)
        add_proc(&o, pid, "wchan", "");
}
