#ifndef SL_STORE_WRITER_H
#define SL_STORE_WRITER_H

/*
 * writer.h - the rows of one attempt of one job, in transactions
 *
 * Used by the recorder only: one writer a run. A row that is there already (same rank, step, name)
 * is kept and the new one ignored, so a batch may be written again after a failure.
 * Numbers that are not finite are stored as NULL and stay out of the roll-ups.
 */

#include <stdint.h>

#include "common/err.h"
#include "store/store.h"

struct sl_writer; /* opaque; borrows the store */

struct sl_sample {
    int64_t rank, step; /* step from 1 */
    double time;        /* unix seconds */
    double units;       /* of this rank in this step */
    const char *unit;   /* "tokens"; the rank's first one is kept */
    double step_ms, comm_ms, data_ms, loss;
};

struct sl_writer *sl_writer_create(struct sl_store *st, int64_t job, int attempt,
                                   struct sl_err *err);
void sl_writer_destroy(struct sl_writer *w); /* NULL is fine */

/* Rows only between begin and commit; after a failure: rollback, then everything again. */
int sl_writer_begin(struct sl_writer *w, struct sl_err *err);
int sl_writer_commit(struct sl_writer *w, struct sl_err *err); /* on -1 it was rolled back */
void sl_writer_rollback(struct sl_writer *w);

/* Rows from now on are another attempt's. Not inside a transaction. After a failure: again. */
int sl_writer_attempt(struct sl_writer *w, int attempt, struct sl_err *err);

/* Where the attempt goes on: behind `step`, from the checkpoint `from`; 0 and "": the start. */
int sl_writer_resumed(struct sl_writer *w, int64_t step, const char *from, struct sl_err *err);

int sl_writer_rank(struct sl_writer *w, int64_t rank, const char *host, int64_t pid,
                   const char *device, struct sl_err *err);
int sl_writer_rank_end(struct sl_writer *w, int64_t rank, int exit_status, struct sl_err *err);
int sl_writer_sample(struct sl_writer *w, const struct sl_sample *s, struct sl_err *err);
int sl_writer_memory(struct sl_writer *w, int64_t rank, int64_t step, const char *category,
                     int64_t bytes, int64_t peak_bytes, struct sl_err *err);
int sl_writer_metric(struct sl_writer *w, int64_t step, double time, const char *name, double value,
                     struct sl_err *err);
int sl_writer_event(struct sl_writer *w, int64_t rank /* -1: the job */, double time,
                    const char *kind, const char *message, struct sl_err *err);

#endif
