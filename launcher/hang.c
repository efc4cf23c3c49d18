/* hang.c - state and processor time from /proc, put into words */
#include "launcher/hang.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "launcher/watch.h"

enum { WINDOW_MS = 300 };

struct look {
    char state; /* of /proc/PID/stat; 0: no such process */
    unsigned long long ticks;
};

static struct look look_at(unsigned pid)
{
    struct look l = {0};
    unsigned long long user = 0, kernel = 0;
    char path[48], line[512], *p;
    FILE *f;

    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    f = pid ? fopen(path, "re") : NULL;
    if (!f)
        return l;
    p = fgets(line, sizeof line, f) ? strrchr(line, ')') : NULL; /* the name may hold anything */
    if (p && sscanf(p + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &l.state, &user,
                    &kernel)
                 == 3)
        l.ticks = user + kernel;
    fclose(f);
    return l;
}

static void wchan(unsigned pid, char *ret, size_t size)
{
    char path[48];
    size_t n = 0;
    FILE *f;

    snprintf(path, sizeof path, "/proc/%u/wchan", pid);
    f = fopen(path, "re");
    if (f) {
        n = fread(ret, 1, size - 1, f);
        fclose(f);
    }
    ret[n] = '\0';
    if (!n || !strcmp(ret, "0"))
        snprintf(ret, size, "the kernel");
}

static void judge(uint64_t word, unsigned pid, const struct look *a, const struct look *b,
                  char *ret, size_t size)
{
    long hz = sysconf(_SC_CLK_TCK);
    double busy = 100.0 * 1000 * (double)(b->ticks - a->ticks) / (double)(hz * WINDOW_MS);
    /* on a machine full of others a rank that runs all the time gets little of it */
    int runs = a->state == 'R' || b->state == 'R' || b->ticks > a->ticks;
    enum sl_phase ph = sl_ctl_phase(word);
    char at[64];

    if (!b->state || b->state == 'Z' || b->state == 'X')
        snprintf(ret, size, "its process is gone");
    else if (b->state == 'T')
        snprintf(ret, size, "it is stopped by a signal (state T): kill -CONT %u lets it go on", pid);
    else if (b->state == 't')
        snprintf(ret, size, "a debugger holds it (state t)");
    else if (ph == SL_PHASE_DONE || ph == SL_PHASE_STOPPED)
        snprintf(ret, size, "it has left the steps: it missed a collective that others wait in");
    else if (ph == SL_PHASE_WAIT)
        snprintf(ret, size, "it waits for its peers");
    else if (runs)
        snprintf(ret, size, "it runs, %.0f %% of a core, outside every collective (state %c)", busy,
                 b->state);
    else if (b->state == 'D') {
        wchan(pid, at, sizeof at);
        snprintf(ret, size, "it waits for a device in %s (state D), outside every collective", at);
    } else {
        wchan(pid, at, sizeof at);
        snprintf(ret, size, "it sleeps in %s (state %c), outside every collective", at, b->state);
    }
}

void sl_hang_look(const struct sl_ctl *ctl, int first, int n, void (*alive)(void *user), void *user,
                  struct sl_hang_rank *ret)
{
    struct look before[SL_MAX_RANKS];

    for (int r = first; r < first + n; r++)
        before[r] = look_at(atomic_load(&ctl->r[r].pid));
    if (alive)
        alive(user);
    sl_clock_sleep_until(sl_clock_ns() + WINDOW_MS * 1000000ll);
    if (alive)
        alive(user);
    for (int r = first; r < first + n; r++) {
        unsigned pid = atomic_load(&ctl->r[r].pid);
        struct look now = look_at(pid);

        sl_watch_rank(ctl, r, ret[r].text, sizeof ret[r].text);
        judge(atomic_load(&ctl->r[r].state), pid, &before[r], &now, ret[r].verdict,
              sizeof ret[r].verdict);
    }
}
