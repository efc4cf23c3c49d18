#ifndef SL_STORE_JOBS_H
#define SL_STORE_JOBS_H

/*
 * jobs.h - jobs and their attempts: identity, state, and who may change it
 *
 * A job gets its id from one sequence. Its state is changed only by a compare-and-swap of the
 * lease's holder: the process, named by (host, boot id, pid, start time), that runs it. A job
 * whose holder is dead is `lost`; whoever notices first says so with sl_jobs_sweep(). Every change
 * of state is also an event whose kind is the state's name.
 */

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

struct sl_store;

enum sl_state {
    SL_QUEUED,
    SL_HELD,
    SL_STARTING,
    SL_RUNNING,
    SL_STOPPING,
    SL_STOPPED, /* resumable */
    SL_DONE,
    SL_FAILED,
    SL_CANCELLED,
    SL_LOST,
    SL_STATES
};

const char *sl_state_name(enum sl_state s);
int sl_state_find(const char *name); /* -1: no such state */
int sl_state_live(enum sl_state s);  /* starting, running, stopping: somebody must hold it */

/* A process that cannot be mistaken for another one, also after a reboot or on another host. */
struct sl_lease {
    char host[64];
    char boot[40];      /* /proc/sys/kernel/random/boot_id */
    int64_t pid;        /* 0: nobody */
    int64_t start_time; /* clock ticks since boot, field 22 of /proc/PID/stat */
};

int sl_lease_self(struct sl_lease *ret, struct sl_err *err);
/* 1: that process lives; 0: it is dead for certain; -1: cannot be told (another host). */
int sl_lease_alive(const struct sl_lease *l);

/* What a job is, when it is made. */
struct sl_new_job {
    const char *name;
    const char *text; /* canonical job file */
    int ranks;
    int64_t steps;        /* planned; 0: not known */
    const char *strategy; /* "zero2", ... or "" */
    const char *plan;     /* the plan as the JSON of `plan --json`, or NULL */
};

/*
 * Make a job in state `starting`, held by the calling process. *id is set on success only. The
 * folder of the run, <folder of the database>/runs/ID (mode 0700), is made too.
 */
int sl_jobs_create(struct sl_store *st, const struct sl_new_job *job, int64_t *id,
                   struct sl_err *err);

/*
 * Take over a live or queued job and begin its next attempt, whose number (from 1) is *attempt. The
 * job must be held by nobody, by `from` (NULL: whoever holds it), or by a dead process.
 * SL_USAGE: no such job, or it is over; SL_BUSY: held by somebody else.
 */
int sl_jobs_begin(struct sl_store *st, int64_t id, const struct sl_lease *me,
                  const struct sl_lease *from, int *attempt, struct sl_err *err);

/* Change the state if `me` holds the lease. SL_USAGE: it does not (any more). */
int sl_jobs_move(struct sl_store *st, int64_t id, const struct sl_lease *me, enum sl_state to,
                 const char *reason, struct sl_err *err);

/* End the attempt and the job, release the lease (SL_USAGE as above). `to` is one of stopped, done,
 * failed, cancelled. */
int sl_jobs_end(struct sl_store *st, int64_t id, const struct sl_lease *me, enum sl_state to,
                int exit_status, const char *reason, struct sl_err *err);

/*
 * A live job's holder is known to be dead though its host cannot be asked (its scheduler has started
 * the job again): it becomes `lost`, for this reason. 1: it was live; 0: it was not, or there is none.
 */
int sl_jobs_lose(struct sl_store *st, int64_t id, const char *reason, struct sl_err *err);

/*
 * This process takes up a job that waits, or has ended otherwise than well (stopped, failed, cancelled,
 * lost), as `job` describes it now; sl_jobs_begin() follows. 1: taken, 0: no such job. SL_USAGE: it is done,
 * or still runs.
 */
int sl_jobs_again(struct sl_store *st, int64_t id, const struct sl_new_job *job,
                  struct sl_err *err);

/*
 * The running attempt has failed, and its holder `me` begins the next one: state starting. *attempt
 * is its number. SL_USAGE: not held by `me`.
 */
int sl_jobs_next(struct sl_store *st, int64_t id, const struct sl_lease *me, int exit_status,
                 const char *reason, int *attempt, struct sl_err *err);

/* Turn every live job whose holder is certainly dead into `lost`. Returns how many, or -1. */
int sl_jobs_sweep(struct sl_store *st, struct sl_err *err);

/* <folder of the database>/runs/ID into ret. -1 (SL_SYSTEM): does not fit in size. */
int sl_jobs_dir(const struct sl_store *st, int64_t id, char *ret, size_t size, struct sl_err *err);

#endif
