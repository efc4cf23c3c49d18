#ifndef SL_TESTS_TEAM_H
#define SL_TESTS_TEAM_H

/*
 * team.h - a job of N ranks without a launcher: as threads of the test, or as forked processes
 *
 * Every rank runs sl_train() as it does under an agent; the team makes the control block and the
 * arenas, plays the agent when a rank dies, and keeps what the ranks said. Samples are made up: a
 * chain of tokens with a little noise, so that there is something to learn.
 *
 * Several nodes: ranks in blocks, each node with a control block and arenas of its own, and real
 * connections over the loopback interface between them. Nobody tells one node of another's death,
 * except when a deadline has passed: then the team ends all, as agents do.
 */

#include <stdint.h>

#include "executor/comm.h"
#include "executor/train.h"

enum { TEAM_STEPS = 32, TEAM_TEXT = 512 };

struct team {
    struct sl_job job; /* strategy, sizes, steps */
    int ranks, nodes; /* nodes 0: one */
    const struct sl_ckpt_conf *checkpoint; /* NULL: none */
    int processes; /* 0: threads */
    int poison;
    int flags;       /* of sl_program_make */
    int cut;         /* buffer of the training graph whose life ends too early; -1 */
    int cut_last;    /* with its last operation; -1: one before */
    double deadline; /* seconds of a wait */
    int64_t valid_samples;
    /* faults, in that step (from 1) of that rank; -1: none */
    int die_rank, stall_rank, fault_step;
    int bad_rank, bad_from, bad_to; /* a NaN in an activation's gradient, in these steps; 0: none */
    long refuse;   /* threads: the allocation of all ranks together that fails, from 0; -1: none */
    int stop_step; /* the agent's stop flag is set in this step of rank 0; 0: never */
};

struct team_rank {
    int code; /* enum sl_code of its end; -1: it was killed */
    char msg[TEAM_TEXT];
    struct sl_trained trained;
    struct sl_comm_count count[SL_OP_KINDS];
    uint32_t collective; /* number of the last one */
    int64_t waits, touched;
    int64_t bytes[SL_CATS + 2], peak[SL_CATS + 2]; /* reported: categories, total, process */
    int reports, events;
    char event[TEAM_TEXT]; /* the last one */
    double skipped;        /* metric; NaN: not reported */
    int bad_changed; /* bad steps behind which parameters or moments were not the same bits */
    double first_update; /* largest change of a parameter in step bad_to + 1 */
    uint64_t shard_hash, copy_hash; /* of parameters: my shards; all full copies, if I have them */
    double tokens;                  /* reported, over all steps */
};

struct team_result {
    double loss[TEAM_STEPS + 1], norm[TEAM_STEPS + 1], lr[TEAM_STEPS + 1]; /* by step, from 1 */
    double valid[TEAM_STEPS + 1];                                          /* NaN: no evaluation */
    struct team_rank r[SL_MAX_RANKS];
    uint64_t hash;    /* of all final parameters, over the cut: comparable at one number of ranks */
    int copies_agree; /* full copies are the same bits on all ranks */
    int first_dead;   /* rank, -1: none */
    double seconds_to_end; /* from the first death to the last rank's end */
    int64_t arena;
    long refused; /* allocations, see team.refuse */
};

/* A GPT of two layers whose sizes divide by nothing much; 20 steps, dropout and clipping on. */
struct team team_tiny(enum sl_strategy strategy, int ranks);

/* 0: all ranks came to their end; -1: some did not, see ret->r. Aborts the test when it cannot run.
 */
int team_run(const struct team *t, struct team_result *ret);

/* 1: losses, raw norms, validation and final parameters are the same bits. */
int team_same(const struct team_result *a, const struct team_result *b, int steps);
/* The largest relative difference of loss or norm in steps 1..steps; NaN counts as infinite. */
double team_gap(const struct team_result *a, const struct team_result *b, int steps);

/* The made-up samples, for tests that need them without a team. */
void team_sample(uint64_t seed, int64_t vocab, int64_t context, int64_t sample, int32_t *ids,
                 int32_t *targets);

#endif
