/* restart.c - another attempt, or not */
#include "launcher/restart.h"

#include <inttypes.h>
#include <stdio.h>

enum { MAX_DELAY_S = 60 };

void sl_restart_init(struct sl_restart *r, int64_t max)
{
    *r = (struct sl_restart){.max = max, .best = -1, .rank = -2};
}

static double delay_of(int in_vain)
{
    double s = in_vain ? 1 : 0;

    for (int i = 1; i < in_vain && s < MAX_DELAY_S; i++)
        s *= 2;
    return s < MAX_DELAY_S ? s : MAX_DELAY_S;
}

int sl_restart_ask(struct sl_restart *r, const struct sl_supervise *s, double *delay, char *why,
                   size_t size)
{
    int same = r->rank == s->culprit && r->code == s->code && r->step == s->step;

    why[0] = '\0';
    if (s->state != SL_FAILED || !s->retry || r->max < 1)
        return 0;
    if (same) {
        snprintf(why, size,
                 "the same failure at the same step twice: another attempt would end like it");
        return 0;
    }
    if (r->used >= r->max) {
        snprintf(why, size, "all %" PRId64 " restart%s of failure.max_restarts are used up", r->max,
                 r->max == 1 ? "" : "s");
        return 0;
    }
    r->in_vain = s->step > r->best ? 0 : r->in_vain + 1;
    if (s->step > r->best)
        r->best = s->step;
    r->rank = s->culprit;
    r->code = s->code;
    r->step = s->step;
    r->used++;
    *delay = delay_of(r->in_vain);
    if (*delay > 0)
        snprintf(why, size, "restart %" PRId64 " of %" PRId64 " in %g s", r->used, r->max, *delay);
    else
        snprintf(why, size, "restart %" PRId64 " of %" PRId64 " now", r->used, r->max);
    return 1;
}
