#ifndef SL_STORE_ROLLUP_H
#define SL_STORE_ROLLUP_H

/*
 * rollup.h - count, min, max and sum of a series in buckets of 8, 64 and 512 steps
 *
 * Buckets are gathered in memory and merged into the table `rollup` when a step falls into the next
 * bucket and before a commit. Bucket b of width w holds the steps b w + 1 .. (b + 1) w.
 */

#include <stdint.h>

#include "common/err.h"
#include "store/store.h"

struct sl_rollup; /* opaque; borrows the store */

struct sl_rollup *sl_rollup_create(struct sl_store *st, int64_t job, int64_t attempt,
                                   struct sl_err *err);
void sl_rollup_destroy(struct sl_rollup *r); /* NULL is fine */

/* Ids of `name`: table metric_name. A value that is not finite counts for nothing. */
int sl_rollup_add(struct sl_rollup *r, int64_t rank, int64_t name, int64_t step, double value,
                  struct sl_err *err);
int sl_rollup_flush(struct sl_rollup *r, struct sl_err *err); /* before a commit */
void sl_rollup_forget(struct sl_rollup *r);                   /* after a rollback */

#endif
