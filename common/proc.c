#include "common/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/fs.h"

enum { DEEPEST = 64 };

int sl_proc_subreaper(struct sl_err *err)
{
    if (prctl(PR_SET_CHILD_SUBREAPER, 1))
        return sl_fail(err, SL_SYSTEM, "become the parent of orphans: %s", strerror(errno));
    return 0;
}

static void kill_below(pid_t pid, int depth);

static void kill_children_of(const char *path, int depth)
{
    FILE *f = fopen(path, "re");

    if (!f)
        return;
    for (int child; fscanf(f, "%d", &child) == 1;) {
        if (depth < DEEPEST)
            kill_below(child, depth + 1);
        kill(child, SIGKILL);
    }
    fclose(f);
}

/* Deepest first: a killed parent would hand its children up before we had read their list. */
static void kill_below(pid_t pid, int depth)
{
    char path[300];

    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *d = opendir(path);
    if (!d)
        return;
    for (struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "/proc/%d/task/%.200s/children", (int)pid, e->d_name);
        kill_children_of(path, depth);
    }
    closedir(d);
}

int sl_proc_kill_below(int64_t ns, sl_proc_reaped_f reaped, void *u, struct sl_err *err)
{
    int64_t end = sl_clock_ns() + ns, pause = 1000000;
    int n = 0, status;

    for (;;) {
        kill_below(getpid(), 0);
        for (;;) {
            pid_t p = waitpid(-1, &status, WNOHANG | __WALL);

            if (p < 0 && errno == EINTR)
                continue;
            if (p < 0)
                return n; /* ECHILD: nobody left */
            if (p == 0)
                break;
            n++;
            if (reaped)
                reaped(u, p, status);
        }
        int64_t now = sl_clock_ns();
        if (now > end)
            return sl_fail(err, SL_BUSY, "processes are left that do not end when killed");
        sl_clock_sleep_until(now + pause);
        if (pause < 50000000)
            pause *= 2;
    }
}

int sl_proc_pidfd(pid_t pid, struct sl_err *err)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);

    if (fd < 0)
        return sl_fail(err, SL_SYSTEM, "watch process %d: %s", (int)pid, strerror(errno));
    return fd; /* close-on-exec by definition */
}

/*
 * The state letter and field 22 of /proc/PID/stat. Fields are counted behind the last ")". -1 with
 * errno ENOENT or ESRCH: no such process; other values: it cannot be told (descriptors run out).
 */
static int read_stat(pid_t pid, char *state, int64_t *start)
{
    char path[40], line[1024], *p;
    int field = 3, fd, saved;
    ssize_t n;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    n = read(fd, line, sizeof line - 1);
    saved = errno;
    close(fd);
    errno = saved;
    if (n < 0)
        return -1;
    line[n] = '\0';
    errno = EPROTO;
    p = strrchr(line, ')');
    if (!p || p[1] != ' ')
        return -1;
    p += 2;
    *state = *p;
    for (; field < 22 && p; field++) {
        p = strchr(p, ' ');
        p = p ? p + 1 : NULL;
    }
    return p && sscanf(p, "%" SCNd64, start) == 1 ? 0 : -1;
}

int64_t sl_proc_start_time(pid_t pid)
{
    int64_t start;
    char state;

    return read_stat(pid, &state, &start) ? -1 : start;
}

int sl_proc_alive(pid_t pid, int64_t start_time)
{
    int64_t start;
    char state;

    if (!read_stat(pid, &state, &start))
        return start == start_time && state != 'Z' && state != 'X';
    if (errno != ENOENT && errno != ESRCH)
        return -1;
    return kill(pid, 0) && errno == ESRCH ? 0 : -1; /* /proc may be hidden, or not there at all */
}

int sl_proc_boot_id(char ret[40], struct sl_err *err)
{
    size_t n;
    char *s = sl_fs_read("/proc/sys/kernel/random/boot_id", 100, &n, err);

    if (!s)
        return -1;
    s[strcspn(s, "\n")] = '\0';
    snprintf(ret, 40, "%.39s", s);
    free(s);
    return 0;
}

int sl_proc_pss(pid_t pid, int64_t *ret, struct sl_err *err)
{
    char path[48], line[256];
    long long kb = -1;

    snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int)pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return sl_fail(err, SL_SYSTEM, "read \"%s\": %s", path, strerror(errno));
    while (kb < 0 && fgets(line, sizeof line, f))
        sscanf(line, "Pss: %lld kB", &kb);
    fclose(f);
    if (kb < 0)
        return sl_fail(err, SL_SYSTEM, "read \"%s\": no line \"Pss\"", path);
    *ret = kb * 1024;
    return 0;
}

/* One number from a cgroup file; -1: absent or "max". */
static double cgroup_number(const char *path, double *second)
{
    FILE *f = fopen(path, "re");
    double x = -1, y = 0;

    if (!f)
        return -1;
    int n = fscanf(f, "%lf %lf", &x, &y);
    fclose(f);
    if (second)
        *second = n == 2 ? y : 0;
    return n >= 1 ? x : -1;
}

/* Our group's folder under version 2 ("0::/path"); "" in its own namespace or under version 1. */
static void own_group(char *ret, size_t size)
{
    FILE *f = fopen("/proc/self/cgroup", "re");
    char line[1024];

    ret[0] = '\0';
    while (f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        if (!strncmp(line, "0::/", 4) && line[4])
            snprintf(ret, size, "%s", line + 3);
    }
    if (f)
        fclose(f);
}

/* Every group above ours limits us, too. f is called with each folder, ours first. */
static double tightest(const char *file, double (*f)(const char *path))
{
    char group[1024], path[1200];
    double best = -1;

    own_group(group, sizeof group);
    for (;;) {
        snprintf(path, sizeof path, "/sys/fs/cgroup%s/%s", group, file);
        double x = f(path);
        if (x >= 0 && (best < 0 || x < best))
            best = x;
        char *slash = strrchr(group, '/');
        if (!slash)
            return best;
        *slash = '\0';
    }
}

static double cpu_quota(const char *path)
{
    double period, quota = cgroup_number(path, &period);

    return quota > 0 && period > 0 ? quota / period : -1;
}

static double memory_max(const char *path)
{
    return cgroup_number(path, NULL);
}

int sl_proc_cpus(void)
{
    cpu_set_t set;
    int n = 1;
    double quota = tightest("cpu.max", cpu_quota), period;

    if (!sched_getaffinity(0, sizeof set, &set))
        n = CPU_COUNT(&set);
    else
        n = (int)sysconf(_SC_NPROCESSORS_ONLN); /* more than 1,024 processors */
    if (quota < 0) { /* version 1 */
        quota = cgroup_number("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", NULL);
        period = cgroup_number("/sys/fs/cgroup/cpu/cpu.cfs_period_us", NULL);
        quota = quota > 0 && period > 0 ? quota / period : -1;
    }
    if (quota > 0 && ceil(quota) < n)
        n = (int)ceil(quota);
    return n > 0 ? n : 1;
}

int64_t sl_proc_memory_limit(void)
{
    double group = tightest("memory.max", memory_max);
    double total = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);

    if (group < 0)
        group = cgroup_number("/sys/fs/cgroup/memory/memory.limit_in_bytes", NULL);
    if (total <= 0)
        total = 0;
    if (group > 0 && (total <= 0 || group < total))
        return (int64_t)group;
    return (int64_t)total;
}

const char *sl_proc_status(char buf[64], int status)
{
    if (WIFSIGNALED(status))
        snprintf(buf, 64, "signal %d (%.40s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        snprintf(buf, 64, "status %d", WEXITSTATUS(status));
    return buf;
}
