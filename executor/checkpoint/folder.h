#ifndef SL_CKPT_FOLDER_H
#define SL_CKPT_FOLDER_H

/*
 * folder.h - names in a folder of checkpoints: complete ones, parts of a save, the lock
 *
 * "step-00000100" is complete; ".part-00000100" is being written, or was when its writer died;
 * ".old-00000100" is being removed. The names' width grows with the step.
 */

#include <stdint.h>

#include "common/err.h"
#include "executor/checkpoint/checkpoint.h"

/* Paths into ret. SL_SYSTEM: does not fit. */
int sl_ckpt_path(const char *dir, int64_t step, char ret[SL_CKPT_PATH], struct sl_err *err);
int sl_ckpt_part_path(const char *dir, int64_t step, char ret[SL_CKPT_PATH], struct sl_err *err);

/* Make the part's name the complete one, and the rename durable. */
int sl_ckpt_publish(const char *dir, int64_t step, struct sl_err *err);

/* Remove the oldest complete ones until `keep` are left (0: all stay). */
int sl_ckpt_prune(const char *dir, int64_t keep, struct sl_err *err);

/* Remove what killed saves and removals have left. Nobody else may write there. */
int sl_ckpt_sweep(const char *dir, struct sl_err *err);

/* The step of a complete checkpoint's name; 0: not one. */
int64_t sl_ckpt_step_of(const char *name);

/* Adds the checkpoint before this one as a hint, if there is one and no other hint. Returns -1. */
int sl_ckpt_offer(const char *checkpoint, struct sl_err *err);

int sl_ckpt_sync(const char *dir, struct sl_err *err); /* fsync of a folder */

#endif
