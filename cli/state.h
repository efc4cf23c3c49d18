#ifndef SL_CLI_STATE_H
#define SL_CLI_STATE_H

/*
 * state.h - where the product keeps things, as flags and environment say
 */

#include "cli/options.h"
#include "store/store.h"

/* The row of an option table that sl_state_db() reads. */
#define SL_OPT_DB                                                                                  \
    {                                                                                              \
        .name = "db", .type = SL_OPT_TEXT, .arg = "FILE",                                          \
        .help = "Database of jobs (else SHARDLAUNCH_DB, else in the state folder)."                \
    }

/* --db, else SHARDLAUNCH_DB, else shardlaunch.db in the state folder; absolute. Caller frees. */
char *sl_state_db(const struct sl_args *args, struct sl_err *err);

/*
 * Open it for reading; jobs whose process is dead are made `lost` first, where that can be written.
 * 0 with *ret, which is NULL when there is no database yet; caller closes.
 */
int sl_state_read(const struct sl_args *args, struct sl_store **ret, struct sl_err *err);

/* A job's id as an operand. SL_USAGE: no number. */
int sl_state_id(const char *text, int64_t *ret, struct sl_err *err);

int sl_state_no_job(int64_t id); /* says so; returns SL_EXIT_NO_JOB */

#endif
