#ifndef SL_CLI_STATE_H
#define SL_CLI_STATE_H

/*
 * state.h - where the product keeps things, as flags and environment say
 */

#include "cli/options.h"
#include "launcher/scratch.h"
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
 * A store, and where its folder is on a network file system (store/published.h) the scratch folder of
 * the local one. {0} and a closed one may be closed.
 */
struct sl_opened {
    struct sl_store *st; /* NULL: there is no database yet */
    char *db;            /* the file that st is */
    struct sl_scratch scratch;
    int local;
    int64_t only; /* what is gathered: this job, 0: all in short, SL_STATE_ALL */
};
enum { SL_STATE_ALL = -1 };

/* The database `db` for writing: the local one of a run, with nothing in it, where it must be. */
int sl_state_write(const char *db, struct sl_opened *ret, struct sl_err *err);

/*
 * Open it for reading; jobs whose process is dead are made `lost` first, where that can be written.
 * Where runs publish their rows these are gathered, of `only` (see above), with a notice.
 */
int sl_state_read(const struct sl_args *args, int64_t only, struct sl_opened *ret,
                  struct sl_err *err);
int sl_state_refresh(struct sl_opened *s, struct sl_err *err); /* gather what is new */
void sl_state_close(struct sl_opened *s);

/* A job's id as an operand. SL_USAGE: no number. */
int sl_state_id(const char *text, int64_t *ret, struct sl_err *err);

int sl_state_no_job(int64_t id); /* says so; returns SL_EXIT_NO_JOB */

#endif
