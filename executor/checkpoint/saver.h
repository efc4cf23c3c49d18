#ifndef SL_SAVER_H
#define SL_SAVER_H

/*
 * saver.h - one rank's part in saving, beside training
 *
 * Parameters and optimizer state change only in the optimizer step. So a save begins behind one, a
 * thread streams this rank's shard while the next forward and backward run, and the next optimizer
 * step waits (sl_saver_settle) until the shard has been read, though not until it is on disk. Rank
 * 0's thread waits for all ranks' shards to be on disk, writes the manifest and makes the checkpoint visible, while training goes on.
 * Whatever fails, training does: the parts are removed, what was complete before stays.
 *
 * All ranks call start for the same steps. One thread of the rank calls all of these.
 */

#include "executor/checkpoint/checkpoint.h"
#include "executor/program.h"

struct sl_saver; /* opaque */

/* conf, job and program are lent. */
struct sl_saver *sl_saver_open(const struct sl_ckpt_conf *conf, const struct sl_job *job,
                               const struct sl_program *program, struct sl_err *err);

/* Begin to save the state behind `step`; waits for the save before. r->g is the training graph. */
void sl_saver_start(struct sl_saver *s, struct sl_run *r, int64_t step);

/* Wait until this rank's shard has been read (or has failed); `r` shows that it lives. */
void sl_saver_settle(struct sl_saver *s, struct sl_run *r);

/* Wait until this rank's shard is on disk (or has failed), and its row in the control block says so. */
void sl_saver_written(struct sl_saver *s, struct sl_run *r);

struct sl_saved {
    int64_t step;
    int ok;
    double seconds, stall_ms; /* start to end; what training waited for it on this rank */
    int64_t bytes;            /* of the whole checkpoint: rank 0, ok */
    char text[SL_CKPT_PATH];  /* path, or why it failed; "": another rank says why */
    char warning[256];        /* "": none */
};

/*
 * 1: a save has ended on this rank since the last call, and *ret says how. On other ranks than 0
 * `ok` means this rank's shard alone.
 */
int sl_saver_poll(struct sl_saver *s, struct sl_saved *ret);

/* Wait for the save's end, on rank 0 the whole checkpoint's; then poll. */
void sl_saver_finish(struct sl_saver *s, struct sl_run *r);

/* Gives up a save that is still under way. NULL is fine. */
void sl_saver_close(struct sl_saver *s);

#endif
