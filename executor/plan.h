#ifndef SL_PLAN_H
#define SL_PLAN_H

/*
 * plan.h - what a job needs in memory, per rank and category, before anything runs
 *
 * The numbers are read from the very program that a run executes, so they agree to the byte. `bytes`
 * of a category is its share at the operation where the total peaks, packing holes counted under
 * workspace: the categories sum to the total. `peak_bytes` is the category's own highest. The
 * process itself comes on top: at most SL_PLAN_BASE a rank on the CPU.
 */

#include "common/buf.h"
#include "executor/program.h"

#define SL_PLAN_BASE ((int64_t)64 << 20)

struct sl_plan_limits {
    int64_t per_rank; /* bytes of a rank's arena; 0: none (job.resources.memory_limit, or a flag) */
    int64_t machine;  /* bytes for all ranks of the machine with their bases; 0: not known */
    int cores;        /* of the machine: decides threads per rank where the job leaves them open */
};

struct sl_plan_part {
    int64_t total; /* the arena */
    int64_t bytes[SL_CATS], peak_bytes[SL_CATS];
};

struct sl_plan {
    int ranks, threads;
    enum sl_strategy strategy;
    enum sl_precision precision;
    enum sl_recompute recompute;
    int64_t micro, accum, parameters;
    struct sl_plan_part rank0, other; /* equal except under dp */
    int64_t persistent; /* of rank 0: what stays from step to step */
    int64_t in_flight;  /* the published formula for full buffers in flight: the highest of
                           communication (sl_plan_in_flight) */
    int64_t together;   /* all ranks and their bases */
    int fits_rank, fits_machine, fits; /* fits: both */
};

/* Read the plan of a program. */
void sl_plan_read(const struct sl_program *p, const struct sl_job *job,
                  const struct sl_plan_limits *lim, struct sl_plan *ret);

/* Make the program, read its plan, drop it. As sl_program_make. */
int sl_plan_make(const struct sl_job *job, int ranks, enum sl_strategy strategy,
                 const struct sl_plan_limits *lim, struct sl_plan *ret, struct sl_err *err);

/*
 * Full buffers in flight, from the sizes of the units alone (padded, in bytes). With more than one
 * rank, T the unit whose weight both the embedding and the head use (0 when not tied), U the largest
 * other unit, and untied E the embedding's unit:
 *   dp, ddp, zero1   0 (full buffers are gradients and parameters there)
 *   zero2            T + U                  untied: max(E, U)
 *   zero3            T + max(T, 2 U)        untied: max(E, 2 U)
 */
int64_t sl_plan_in_flight(const struct sl_program *p);

/*
 * 0, or -1 with SL_USAGE when the plan does not fit: the message says how much is needed and
 * allowed, the hint names the cheapest change that makes it fit (remedy.h). A run ends with 3.
 */
int sl_plan_refuse(const struct sl_job *job, const struct sl_plan *plan,
                   const struct sl_plan_limits *lim, struct sl_err *err);

/* As a table for people, or as `plan --json` promises. n plans of one job and number of ranks. */
void sl_plan_text(const struct sl_plan *plan, int n, const struct sl_plan_limits *lim,
                  struct sl_buf *out);
void sl_plan_json(const struct sl_plan *plan, int n, struct sl_buf *out);

#endif
