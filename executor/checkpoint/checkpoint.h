#ifndef SL_CHECKPOINT_H
#define SL_CHECKPOINT_H

/*
 * checkpoint.h - a run's checkpoints as launcher and ranks see them
 *
 * A checkpoint is a folder "step-00000100" below the run's checkpoint folder. It has this name only
 * once every file in it is whole, hashed and on disk; while it is written it is ".part-00000100".
 * Its state belongs to no rank: any number of ranks and any strategy can go on from it.
 * doc/checkpoints.md has the format.
 *
 *     launcher: sl_ckpt_dir, sl_ckpt_lock once a run; sl_ckpt_pick before each attempt
 *     ranks:    sl_ckpt_load before the first step, a saver during all others (saver.h)
 */

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "executor/job.h"
#include "executor/run.h"

enum { SL_CKPT_PATH = 1024 };

/* What a rank knows about checkpoints. The strings are lent. */
struct sl_ckpt_conf {
    const char *dir;  /* of the run's checkpoints, absolute; made when the first one is written */
    const char *from; /* a complete checkpoint to go on from; NULL: from the beginning */
    const char *text; /* the job, canonical */
    int64_t job;      /* id in the store */
    int64_t steps;    /* planned */
    int64_t samples;  /* of training, per epoch: data of another size is another run */
};

/*
 * The folder of a run's checkpoints: checkpoint.dir with {id} replaced, or <run_folder>/checkpoints.
 * SL_SYSTEM: does not fit.
 */
int sl_ckpt_dir(const struct sl_job *job, int64_t id, const char *run_folder,
                char ret[SL_CKPT_PATH], struct sl_err *err);

/*
 * Make the folder, see that it can be written, lock it for this run and remove what a killed save
 * has left. *fd (close-on-exec) holds the lock, also in forked children, until all have closed it.
 * SL_USAGE: another live run writes here; SL_SYSTEM: not writable.
 */
int sl_ckpt_lock(const char *dir, int *fd, struct sl_err *err);

/*
 * The newest complete checkpoint in `dir` of a step below `below` (0: any) into ret; *step is 0 when
 * there is none, or no folder. Does not look inside.
 */
int sl_ckpt_newest(const char *dir, int64_t below, char ret[SL_CKPT_PATH], int64_t *step,
                   struct sl_err *err);

/* `path` itself when it is a checkpoint, else the newest in it. SL_USAGE: neither. */
int sl_ckpt_find(const char *path, char ret[SL_CKPT_PATH], struct sl_err *err);

/*
 * What attempt `attempt` (from 1) goes on from: the first by checkpoint.resume, later ones from the
 * newest of this run, else as the first. `from` is "" for the beginning, *step 0 then. The manifest,
 * the files' sizes, the model and the training keys have been checked. SL_USAGE: refused, naming
 * file and difference; the hint offers the one before.
 */
int sl_ckpt_pick(const struct sl_job *job, const struct sl_ckpt_conf *conf, int attempt,
                 char from[SL_CKPT_PATH], int64_t *step, struct sl_err *err);

/*
 * This rank's persistent buffers from conf->from, in place of sl_run_init(); every chunk that is
 * read is verified first. r->g is the training graph; what it has skipped is set, too. *step: the
 * step that is done. SL_USAGE: damaged, or it does not fit the job.
 */
int sl_ckpt_load(struct sl_run *r, const struct sl_job *job, const struct sl_ckpt_conf *conf,
                 int64_t *step, struct sl_err *err);

#endif
