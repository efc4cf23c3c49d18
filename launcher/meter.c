/* meter.c - the live line, the periodic line, the summary */
#include "launcher/meter.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LIVE_MS = 200, MANY = 8 };

void sl_meter_init(struct sl_meter *p, struct sl_term *term, const struct sl_tally *tally,
                   double every)
{
    *p = (struct sl_meter){.term = term, .tally = tally, .every = every};
}

static void add(char *ret, size_t size, size_t *n, const char *text)
{
    int k = snprintf(ret + *n, size - *n, "%s%s", *n ? "  " : "", text);

    *n += (size_t)k < size - *n ? (size_t)k : size - *n - 1;
}

void sl_meter_text(const struct sl_tally *t, char *ret, size_t size)
{
    char part[100], num[32];
    int64_t memory = sl_tally_memory(t);
    double left = sl_tally_left(t);
    size_t n = 0;

    ret[0] = '\0';
    if (t->steps > 0)
        snprintf(part, sizeof part, "step %" PRId64 "/%" PRId64, t->step, t->steps);
    else
        snprintf(part, sizeof part, "step %" PRId64, t->step);
    add(ret, size, &n, part);
    if (!isnan(t->loss)) {
        snprintf(part, sizeof part, "loss %.4f", t->loss);
        add(ret, size, &n, part);
    }
    if (!isnan(t->valid_loss)) {
        snprintf(part, sizeof part, "valid %.4f", t->valid_loss);
        add(ret, size, &n, part);
    }
    if (t->units_per_second > 0) {
        sl_tally_count(t->units_per_second, num, sizeof num);
        snprintf(part, sizeof part, "%s %s/s", num, t->unit[0] ? t->unit : "units");
        add(ret, size, &n, part);
    }
    if (memory) {
        sl_tally_bytes(memory, num, sizeof num);
        snprintf(part, sizeof part, "%s a rank", num);
        add(ret, size, &n, part);
    }
    if (left >= 1) {
        sl_tally_time(left, num, sizeof num);
        snprintf(part, sizeof part, "%s left", num);
        add(ret, size, &n, part);
    }
}

void sl_meter_tick(struct sl_meter *p, uint64_t now)
{
    char text[256];
    int live = sl_term_live_ok(p->term);

    if (p->every <= 0 || now < p->next || !p->tally->step)
        return;
    p->next = now + (live ? LIVE_MS * 1000000u : (uint64_t)(p->every * 1e9));
    sl_meter_text(p->tally, text, sizeof text);
    if (live) {
        int w = sl_term_width(p->term);

        if (w > 1 && w - 1 < (int)sizeof text)
            text[w - 1] = '\0'; /* a line that wraps cannot be taken back */
        sl_term_live(p->term, text);
        return;
    }
    if (p->tally->step != p->shown)
        sl_term_printf(p->term, "%s", text);
    p->shown = p->tally->step;
}

/* Each rank's peak; of many ranks, the lowest and the highest. */
static void memory(const struct sl_meter *p)
{
    const struct sl_tally *t = p->tally;
    int64_t low = 0, high = 0;
    char line[400], a[32], b[32];
    int n = 0, who = 0;

    for (int i = 0; i < t->ranks; i++) {
        int64_t bytes = t->r[i].process_peak ? t->r[i].process_peak : t->r[i].plan_bytes;

        if (!bytes)
            return;
        if (!i || bytes < low)
            low = bytes;
        if (bytes > high) {
            high = bytes;
            who = i;
        }
        sl_tally_bytes(bytes, a, sizeof a);
        if (t->ranks <= MANY)
            n += snprintf(line + n, sizeof line - (size_t)n, "%s%d: %s", n ? ", " : "", i, a);
    }
    if (t->ranks <= MANY) {
        sl_term_printf(p->term, "peak memory by rank  %s", line);
        return;
    }
    sl_tally_bytes(low, a, sizeof a);
    sl_tally_bytes(high, b, sizeof b);
    sl_term_printf(p->term, "peak memory of a rank  %s to %s (rank %d)", a, b, who);
}

void sl_meter_summary(const struct sl_meter *p)
{
    const struct sl_tally *t = p->tally;
    char a[32], b[32], line[400];
    int n = 0;

    if (!t->step)
        return;
    n = snprintf(line, sizeof line, "%" PRId64 " step%s, loss %.4f", t->step,
                 t->step == 1 ? "" : "s", t->loss);
    if (!isnan(t->valid_loss))
        n += snprintf(line + n, sizeof line - (size_t)n, ", valid.loss %.4f", t->valid_loss);
    if (t->seconds > 0) {
        sl_tally_count(t->units / t->seconds, a, sizeof a);
        sl_tally_time(t->seconds, b, sizeof b);
        snprintf(line + n, sizeof line - (size_t)n, ", %s %s/s, %s in steps", a,
                 t->unit[0] ? t->unit : "units", b);
    }
    sl_term_printf(p->term, "%s", line);
    memory(p);
}
