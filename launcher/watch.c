/* watch.c - has any rank moved since the last look? */
#include "launcher/watch.h"

#include <stdio.h>

enum { LOOK_MS = 1500 }; /* a longer gap between looks is our own sleep: counted as this much */

void sl_watch_init(struct sl_watch *w, double timeout)
{
    *w = (struct sl_watch){.timeout = timeout};
}

static uint64_t digest(const struct sl_ctl *c)
{
    uint64_t h = 1469598103934665603u; /* FNV-1a over words */

    for (int r = 0; r < c->ranks; r++) {
        h = (h ^ atomic_load(&c->r[r].state)) * 1099511628211u;
        h = (h ^ atomic_load(&c->r[r].since)) * 1099511628211u;
    }
    return h;
}

int sl_watch_look(struct sl_watch *w, const struct sl_ctl *c, uint64_t now)
{
    uint64_t sum = digest(c), gap = w->last ? now - w->last : 0;

    if (gap > LOOK_MS * 1000000u)
        gap = LOOK_MS * 1000000u;
    w->still = w->last && sum == w->sum ? w->still + 1e-9 * (double)gap : 0;
    w->sum = sum;
    w->last = now;
    return w->timeout > 0 && w->still >= sl_watch_limit(w, c);
}

double sl_watch_limit(const struct sl_watch *w, const struct sl_ctl *c)
{
    int first = 0;

    for (int r = 0; r < c->ranks; r++)
        first |= !atomic_load(&c->r[r].stepped);
    return first ? SL_WATCH_FIRST * w->timeout : w->timeout;
}

void sl_watch_rank(const struct sl_ctl *c, int rank, char *text, size_t size)
{
    uint64_t st = atomic_load(&c->r[rank].state);
    enum sl_phase ph = sl_ctl_phase(st);

    snprintf(text, size, "rank %d (pid %u): %s for %.1f s in step %u, %s collective %u (%s)", rank,
             atomic_load(&c->r[rank].pid), ph < SL_PHASES ? sl_phase_names[ph] : "unknown",
             1e-9 * (double)(sl_ctl_now() - atomic_load(&c->r[rank].since)), sl_ctl_step(st),
             ph == SL_PHASE_WAIT ? "in" : "last", sl_ctl_collective(st),
             sl_ctl_kind_name(atomic_load(&c->r[rank].kind)));
}
