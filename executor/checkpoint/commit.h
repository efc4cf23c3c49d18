#ifndef SL_CKPT_COMMIT_H
#define SL_CKPT_COMMIT_H

/* commit.h - rank 0's last word on a checkpoint: the manifest, the visible name, the old ones */

#include "executor/checkpoint/checkpoint.h"
#include "executor/program.h"

/* A point in training: what is not in any tensor. */
struct sl_ckpt_at {
    int64_t step, skipped; /* as in run.h */
    int bad_row;
};

/*
 * All ranks' files of that step are whole in the part's folder: write the manifest, publish, and
 * remove what checkpoint.keep does not want. *bytes: of all files. A failure leaves the part as it
 * is; one of the removal alone (`pruned` is then its message, else "") is no failure.
 */
int sl_ckpt_commit(const struct sl_ckpt_conf *conf, const struct sl_job *job,
                   const struct sl_program *program, const struct sl_ckpt_at *at,
                   int64_t *bytes, char pruned[256], struct sl_err *err);

#endif
