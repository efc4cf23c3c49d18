#ifndef SL_MEMORY_H
#define SL_MEMORY_H

/*
 * memory.h - what a rank says about its memory: the plan's bytes, and what the system counts
 *
 * The plan's categories do not change during a run: they are said at its start and at its end, to the
 * byte as `plan` prints them, with "total". "process" is the proportional set size (shared pages
 * divided among those who map them), which the kernel must walk the page tables for: it is read at
 * most every few seconds and said when it has changed.
 */

#include "executor/plan.h"
#include "executor/reporter.h"

struct sl_memory {
    struct sl_plan_part plan; /* of this rank */
    sl_report_f *report; /* NULL: nobody listens */
    void *report_to;
    int64_t said, peak, next_ns;
};

void sl_memory_init(struct sl_memory *m, const struct sl_job *job,
                    const struct sl_program *program, int rank, sl_report_f *report,
                    void *report_to);
void sl_memory_plan(const struct sl_memory *m, int64_t step);
/* now: whatever the rate and the change. Where the system does not tell, nothing is said. */
void sl_memory_process(struct sl_memory *m, int64_t step, int now);

/* Proportional set size of this process in bytes, -1: not to be had. */
int64_t sl_memory_pss(void);

#endif
