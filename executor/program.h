#ifndef SL_PROGRAM_H
#define SL_PROGRAM_H

/*
 * program.h - everything one rank will run: the set of graphs of a job, in one arena
 *
 * Two graphs share one set of persistent buffers: training (a micro-step and, from opt_start, the
 * optimizer step) and evaluation (forward only, no dropout; the last partial batch is padded and its
 * padding masked by target -1). Every rank makes the same program; offsets are equal on all ranks.
 * Under dp rank 0 alone has an optimizer, behind everything else: its arena is larger.
 *
 * The same program is planned and run: sl_plan reads the numbers here.
 */

#include "executor/graph/graph.h"
#include "executor/graph/persist.h"
#include "executor/job.h"
#include "executor/models/models.h"

enum {
    SL_PROGRAM_PREFETCH = 1,   /* gather one stay ahead; costs memory, and on the CPU, where gathers
                                  are the rank's own copies, gains nothing: off by default */
    SL_PROGRAM_NO_SHARING = 2, /* every buffer its own bytes: to test a plan against */
};

struct sl_program {
    const struct sl_model *model;
    struct sl_graph *train, *eval;
    struct sl_persist *set;
    int ranks, threads;
    enum sl_strategy strategy;
    enum sl_precision precision;
    int64_t micro, accum; /* samples of a micro-step; micro-steps of a step */
    int64_t vocab;
    int64_t parameters;   /* trained and frozen, padding not counted */
    int64_t arena0;       /* bytes, rank 0 */
    int64_t arena;        /* bytes, the other ranks; equal except under dp */
};

/*
 * The program of `job` with that many ranks and that strategy (usually the job's own). `threads`:
 * of a rank, at least 1 (scratch depends on it; see sl_program_threads). Takes no look at the data:
 * the vocabulary is data.vocab_size. Caller destroys. SL_USAGE: batch,
 * micro-batch and ranks do not fit, no vocabulary, wrong shapes; SL_SYSTEM: no memory.
 */
struct sl_program *sl_program_make(const struct sl_job *job, int ranks, enum sl_strategy strategy,
                                   int threads, int flags, struct sl_err *err);
void sl_program_destroy(struct sl_program *p); /* NULL is fine */

/* resources.threads, or the machine's cores shared by the ranks, at least 1. */
int sl_program_threads(const struct sl_job *job, int ranks, int cores);

/* What one rank's collectives of one kind do in one optimizer step (accum micro-steps). */
struct sl_program_count {
    int64_t calls;
    int64_t bytes; /* that the rank reads from its peers */
};

/* By kind, for a rank: [SL_OP_KINDS]; kinds that are no collectives stay 0. */
void sl_program_counts(const struct sl_program *p, int rank, struct sl_program_count *ret);

#endif
