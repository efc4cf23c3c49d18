/* memory.c - memory records of a rank */
#include "executor/memory.h"

#include <stdio.h>
#include <string.h>

#include "common/clock.h"

static const int64_t pause_ns = INT64_C(2000000000);

void sl_memory_init(struct sl_memory *m, const struct sl_job *job, const struct sl_program *program,
                    int rank, sl_report_f *report, void *report_to)
{
    const struct sl_plan_limits none = {0};
    struct sl_plan plan;

    sl_plan_read(program, job, &none, &plan);
    *m = (struct sl_memory){
        .plan = rank ? plan.other : plan.rank0, .report = report, .report_to = report_to};
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
    for (int c = 0; c < SL_CATS; c++)
        say(m, step, sl_cat_names[c], m->plan.bytes[c], m->plan.peak_bytes[c]);
    say(m, step, "total", m->plan.total, m->plan.total);
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
