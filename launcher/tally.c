/* tally.c - add reports up; numbers as people read them */
#include "launcher/tally.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void sl_tally_init(struct sl_tally *t, int ranks, int64_t steps)
{
    *t = (struct sl_tally){.ranks = ranks, .steps = steps, .loss = NAN, .valid_loss = NAN};
}

void sl_tally_again(struct sl_tally *t)
{
    t->step = 0;
    t->loss = t->valid_loss = NAN;
    for (int i = 0; i < t->ranks; i++)
        t->r[i].step = 0;
}

/* Exponential mean: the first value counts in full. */
static double smooth(double old, double now)
{
    return old > 0 ? old + 0.1 * (now - old) : now;
}

static void on_step(struct sl_tally *t, const struct sl_report *rep)
{
    double units = 0, ms = 0;

    t->r[rep->rank].step = rep->step;
    t->r[rep->rank].units = rep->u.step_.units;
    t->r[rep->rank].step_ms = rep->u.step_.step_ms;
    for (int i = 0; i < t->ranks; i++) {
        if (t->r[i].step < rep->step)
            return; /* not the last one of this step */
        units += t->r[i].units;
        ms = fmax(ms, t->r[i].step_ms);
    }
    if (rep->step <= t->step)
        return;
    t->step = rep->step;
    t->loss = rep->u.step_.loss;
    snprintf(t->unit, sizeof t->unit, "%.15s", rep->u.step_.unit);
    if (!(ms > 0))
        return;
    t->units += units;
    t->seconds += 1e-3 * ms;
    t->units_per_second = smooth(t->units_per_second, units / (1e-3 * ms));
    t->ms_per_step = smooth(t->ms_per_step, ms);
}

void sl_tally_add(struct sl_tally *t, const struct sl_report *rep)
{
    struct sl_tally_rank *r;

    if (rep->rank < 0 || rep->rank >= t->ranks)
        return;
    r = &t->r[rep->rank];
    switch (rep->type) {
    case SL_REPORT_STEP:
        on_step(t, rep);
        break;
    case SL_REPORT_MEMORY:
        if (!strncmp(rep->u.memory.category, "process", sizeof rep->u.memory.category)) {
            r->process_bytes = rep->u.memory.bytes;
            if (rep->u.memory.peak_bytes > r->process_peak)
                r->process_peak = rep->u.memory.peak_bytes;
            if (rep->u.memory.bytes > r->process_peak)
                r->process_peak = rep->u.memory.bytes;
        } else if (!strncmp(rep->u.memory.category, "total", sizeof rep->u.memory.category)) {
            r->plan_bytes = rep->u.memory.bytes;
        }
        break;
    case SL_REPORT_METRIC:
        if (!strncmp(rep->u.metric.name, "valid.loss", sizeof rep->u.metric.name))
            t->valid_loss = rep->u.metric.value;
        break;
    default:
        break;
    }
}

double sl_tally_left(const struct sl_tally *t)
{
    if (t->steps <= 0 || !(t->ms_per_step > 0))
        return -1;
    return t->steps > t->step ? 1e-3 * t->ms_per_step * (double)(t->steps - t->step) : 0;
}

int64_t sl_tally_memory(const struct sl_tally *t)
{
    int64_t most = 0;

    for (int i = 0; i < t->ranks; i++) {
        int64_t b = t->r[i].process_bytes ? t->r[i].process_bytes : t->r[i].plan_bytes;

        if (b > most)
            most = b;
    }
    return most;
}

void sl_tally_bytes(int64_t bytes, char *ret, size_t size)
{
    double b = (double)bytes;

    if (b < 1024.0 * 1024)
        snprintf(ret, size, "%.0f KiB", b / 1024);
    else if (b < 1024.0 * 1024 * 1024)
        snprintf(ret, size, "%.0f MiB", b / (1024.0 * 1024));
    else
        snprintf(ret, size, "%.2f GiB", b / (1024.0 * 1024 * 1024));
}

void sl_tally_count(double n, char *ret, size_t size)
{
    if (n < 9999.5)
        snprintf(ret, size, "%.0f", n);
    else if (n < 999950)
        snprintf(ret, size, "%.1fk", n / 1e3);
    else
        snprintf(ret, size, "%.2fM", n / 1e6);
}

void sl_tally_time(double seconds, char *ret, size_t size)
{
    long s = seconds > 0 ? lround(seconds) : 0;

    if (s < 60)
        snprintf(ret, size, "%lds", s);
    else if (s < 3600)
        snprintf(ret, size, "%ldm%02lds", s / 60, s % 60);
    else
        snprintf(ret, size, "%ldh%02ldm", s / 3600, s / 60 % 60);
}
