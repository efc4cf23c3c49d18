#ifndef SL_STORE_INTERNAL_H
#define SL_STORE_INTERNAL_H

/* internal.h - what the files of store/ share: the handle, roll-up levels, ids of sample's columns
 */

#include "common/db.h"
#include "store/store.h"

struct sl_store {
    struct sl_db *db;
    char *path, *dir;
    int local; /* dir is elsewhere: rows are published there (published.h) */
};

/* Ids in metric_name (schema.sql) of what a sample rolls up. */
enum { SL_UNITS_PER_SECOND = 1, SL_STEP_MS, SL_COMM_MS, SL_DATA_MS, SL_LOSS, SL_SAMPLE_SERIES = 5 };

/* Widths of the roll-ups, in steps, finest first: each a multiple of the one before. */
enum { SL_LEVELS = 3 };
extern const int64_t sl_level_width[SL_LEVELS];

#endif
