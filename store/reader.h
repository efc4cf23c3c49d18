#ifndef SL_STORE_READER_H
#define SL_STORE_READER_H

/*
 * reader.h - what the store knows, row by row
 *
 * Each call hands rows to a callback, whose strings live until it returns; a callback that does not
 * return 0 ends the reading. A callback may read other things from the same store, not the same
 * thing again. Times are unix seconds, NAN where there is none; numbers that were not finite
 * are NAN. Functions return 0, or -1 with err (a callback's stop is no error).
 */

#include <stdint.h>

#include "common/err.h"
#include "store/jobs.h"
#include "store/store.h"

struct sl_job_row {
    int64_t id;
    const char *name;
    enum sl_state state; /* SL_LOST also when only its holder's death says so */
    double submitted_at, started_at, ended_at;
    int64_t exit_status; /* -1: none */
    const char *reason;
    int64_t attempts, ranks, steps; /* steps planned, 0: not known */
    const char *strategy;
    const char *plan; /* JSON, "" for none; sl_read_job() only */
    const char *text; /* job file; sl_read_job() only */
    struct sl_lease holder;
};
typedef int (*sl_job_row_f)(void *u, const struct sl_job_row *row);

/* Newest first: at most `limit` jobs with an id below `before` (0: all), live ones only if asked.
 */
int sl_read_jobs(struct sl_store *st, int live, int64_t before, int64_t limit, sl_job_row_f f,
                 void *u, struct sl_err *err);
/* 1: found, 0: no such job, -1. */
int sl_read_job(struct sl_store *st, int64_t id, sl_job_row_f f, void *u, struct sl_err *err);

struct sl_attempt_row {
    int64_t attempt, pid;
    const char *host, *state, *reason;
    double started_at, ended_at;
    int64_t exit_status; /* -1: none */
    int64_t resumed_step;     /* went on behind it; 0: from the start, -1: not known (yet) */
    const char *resumed_from; /* checkpoint, "" for none */
};
typedef int (*sl_attempt_row_f)(void *u, const struct sl_attempt_row *row);
int sl_read_attempts(struct sl_store *st, int64_t job, sl_attempt_row_f f, void *u,
                     struct sl_err *err);

/* A rank with its last sample (step 0: none yet) and its speed over the last 20 samples. */
struct sl_rank_row {
    int64_t rank, pid;
    const char *host, *device, *unit;
    int64_t exit_status; /* -1: none */
    int64_t step;
    double time, units_per_second, step_ms, comm_ms, data_ms, loss;
};
typedef int (*sl_rank_row_f)(void *u, const struct sl_rank_row *row);
int sl_read_ranks(struct sl_store *st, int64_t job, int64_t attempt, sl_rank_row_f f, void *u,
                  struct sl_err *err);

/* The newest row of every category of every rank, by rank. */
struct sl_memory_row {
    int64_t rank, step;
    const char *category;
    int64_t bytes, peak_bytes;
};
typedef int (*sl_memory_row_f)(void *u, const struct sl_memory_row *row);
int sl_read_memory(struct sl_store *st, int64_t job, int64_t attempt, sl_memory_row_f f, void *u,
                   struct sl_err *err);

/* The newest value of every metric of an attempt, by name. */
struct sl_metric_row {
    const char *name;
    int64_t step;
    double time, value;
};
typedef int (*sl_metric_row_f)(void *u, const struct sl_metric_row *row);
int sl_read_metrics(struct sl_store *st, int64_t job, int64_t attempt, sl_metric_row_f f, void *u,
                    struct sl_err *err);

struct sl_event_row {
    int64_t id, job, attempt, rank /* -1: the job */;
    double time;
    const char *kind, *message;
};
typedef int (*sl_event_row_f)(void *u, const struct sl_event_row *row);
/* Oldest first: the first `limit` events behind id `after`; job 0: of all jobs. */
int sl_read_events(struct sl_store *st, int64_t job, int64_t after, int64_t limit, sl_event_row_f f,
                   void *u, struct sl_err *err);
/* Oldest first: the last `limit` events of a job. */
int sl_read_events_tail(struct sl_store *st, int64_t job, int64_t limit, sl_event_row_f f, void *u,
                        struct sl_err *err);
/* The id of the newest event, 0: none, -1. */
int64_t sl_read_last_event(struct sl_store *st, struct sl_err *err);

/* Last step and loss of the job's lowest rank; step 0: none. */
struct sl_progress {
    int64_t step;
    double time, loss;
};
int sl_read_progress(struct sl_store *st, int64_t job, int64_t attempt, struct sl_progress *ret,
                     struct sl_err *err);

/* How many jobs are in each state (dead holders not looked at); ret[SL_STATES]. */
int sl_read_counts(struct sl_store *st, int64_t *ret, struct sl_err *err);

/* Changes whenever another process or handle has committed. */
int64_t sl_read_version(struct sl_store *st);

#endif
