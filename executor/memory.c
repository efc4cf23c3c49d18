/* memory.c - memory records of a rank */
#include "executor/memory.h"

#include <stdio.h>
#include <string.h>

#include "common/clock.h"

static const int64_t pause_ns = INT64_C(2000000000);

void sl_memory_init(struct sl_memory *m, const struct sl_program *program, int rank,
                    sl_report_f *report, void *report_to)
{
    *m = (struct sl_memory){
        .program = program, .rank = rank, .report = report, .report_to = report_to};
}

static void say(const struct sl_memory *m, int64_t step, const char *category, int64_t bytes,
                int64_t peak)
{
    struct sl_report rep = {.type = SL_REPORT_MEMORY, .step = step};

    if (!m->report)
        return;
    snprintf(rep.u.memory.category, sizeof rep.u.memory.category, "%s", category);
    rep.u.memory.bytes = bytes;
    rep.u.memory.peak_bytes = peak;
    m->report(m->report_to, &rep);
}

void sl_memory_plan(const struct sl_memory *m, int64_t step)
{
    const struct sl_program *p = m->program;
    const struct sl_graph *high = p->train->arena >= p->eval->arena ? p->train : p->eval;
    int64_t total = m->rank ? p->arena : p->arena0;

    for (int c = 0; c < SL_CATS; c++) {
        int64_t own = m->rank ? 0 : sl_persist_cat(p->set, c, 1);
        int64_t peak = p->train->cat_peak[c] > p->eval->cat_peak[c] ? p->train->cat_peak[c]
                                                                    : p->eval->cat_peak[c];

        say(m, step, sl_cat_names[c], high->at_peak[c] + own, peak + own);
    }
    say(m, step, "total", total, total);
}

int64_t sl_memory_pss(void)
{
    FILE *f = fopen("/proc/self/smaps_rollup", "re");
    char line[256];
    long long kib = -1;

    while (f && kib < 0 && fgets(line, sizeof line, f))
        if (sscanf(line, "Pss: %lld kB", &kib) != 1)
            kib = -1;
    if (f)
        fclose(f);
    return kib < 0 ? -1 : kib * 1024;
}

void sl_memory_process(struct sl_memory *m, int64_t step, int now)
{
    int64_t t = sl_clock_ns(), pss;

    if (!m->report || (!now && t < m->next_ns))
        return;
    m->next_ns = t + pause_ns;
    pss = sl_memory_pss();
    if (pss < 0)
        return;
    if (pss > m->peak)
        m->peak = pss;
    if (!now && pss == m->said)
        return;
    m->said = pss;
    say(m, step, "process", pss, m->peak);
}
