#ifndef SL_LAUNCH_H
#define SL_LAUNCH_H

/*
 * launch.h - run one job: keeper, agent, ranks
 *
 *     this process (keeper)   parent and child subreaper of the rest, owner of the exit status
 *       +- agent              PMIx server, supervision, recorder, page
 *            +- rank 0..N-1   this program re-executed as `rank FD` (executor/rank.h)
 *
 * The calling process must have no threads and no open database (it forks), and must not start
 * processes of its own meanwhile. The program must serve `rank FD` by sl_rank_main().
 */

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "executor/data/dataset.h"
#include "executor/job.h"
#include "launcher/crew.h"

struct sl_launch {
    const struct sl_job *job;
    const char *job_text;         /* canonical (sl_job_text) */
    int64_t id;                   /* of the job in the store */
    const char *db;               /* path of the store; NULL: nothing is recorded */
    const char *numbers;          /* the file that keeps them, where that is another; NULL: db */
    const char *folder;           /* the run's: exists; logs go to attempt-N/rank-R.log in it */
    struct sl_crew *crew;         /* NULL: alone. A task other than the first needs only out, silence */
    int ranks;                    /* 1..SL_MAX_RANKS, of the job */
    int threads;                  /* per rank, at least 1 */
    int units;                    /* of the program: the control block's size follows */
    int64_t arena_bytes;          /* of each rank, the plan's total */
    struct sl_dataset_files data; /* of sl_dataset_prepare() */
    const char *checkpoints;      /* sl_ckpt_dir(), locked by the caller; NULL: none are written */
    int64_t samples;              /* of training: what sl_ckpt_pick() wants to know */
    const char *from;             /* sl_ckpt_pick() for the first attempt; NULL or "": none */
    int64_t steps;                /* planned; 0: not known */
    int out;                      /* descriptor for people: messages and progress (stderr) */
    int show_logs, quiet;         /* ranks' lines to `out`; only failures to `out` */
    double progress; /* seconds between progress lines when `out` is no terminal; 0: none */
    double silence;  /* seconds after which a silent agent is ended; 0: 10 */
    /*
     * Both may be NULL; called in the agent's process. page_open may start threads; it puts a line
     * for people into `line` ("" for none); when it fails the run goes on without a page.
     */
    int (*page_open)(void *user, char *line, size_t size, struct sl_err *err);
    void (*page_close)(void *user);
    void *user;
};

/*
 * From now on a wish to stop (Ctrl-C, SIGTERM, ...) waits for sl_launch_run, which obeys it. For the
 * moments between the job's row in the store and its launch: a death there would leave the row behind,
 * as lost.
 */
void sl_launch_hold(void);

/*
 * Run to the end. Returns the exit status of the contract: 0 done, 1 failed, 2, 3, 5 the machine
 * failed, 6 hang, 128 + N stopped by signal N. -1: nothing was started (SL_SYSTEM), and the job in
 * the store is still the caller's to end.
 */
int sl_launch_run(const struct sl_launch *l, struct sl_err *err);

#endif
