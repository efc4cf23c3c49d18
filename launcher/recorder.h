#ifndef SL_RECORDER_H
#define SL_RECORDER_H

/*
 * recorder.h - a thread that writes one run's rows to the store; nobody else writes them
 *
 * Callers put records into a bounded queue and never wait for a disk. What is put is committed
 * within 0.5 s, in order. When the database is busy or its disk full, the run goes on: one notice,
 * events and states stay in memory, samples are thinned (every second step, then every fourth,
 * ...), what is dropped is counted and, when the database works again, told in an event.
 *
 * The functions may be called from any thread. Open it after the last fork of the process: neither
 * the thread nor the database survives one (a child that only execs is fine).
 */

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "executor/report.h"
#include "store/jobs.h"

struct sl_recorder; /* opaque */

struct sl_recorder_conf {
    const char *db;              /* path of the database */
    int64_t job;                 /* id from sl_jobs_create() */
    const struct sl_lease *from; /* who holds the job now; NULL: whoever does */
    int64_t queue;               /* records held in memory at most; 0: 8,192 */
};

/*
 * Take the job over for this process (its lease names this process from now on), begin its next
 * attempt and start the thread. State stays `starting` until told otherwise.
 */
struct sl_recorder *sl_recorder_open(const struct sl_recorder_conf *conf, struct sl_err *err);

int sl_recorder_attempt(struct sl_recorder *r); /* from 1: that of what is put now */

/*
 * The attempt has failed (exit_status, reason), and the next one begins: what is put from now on is
 * its own. Never waits. -1: there is no room even for that; then nothing has changed.
 */
int sl_recorder_next(struct sl_recorder *r, int exit_status, const char *reason);

/* The attempt goes on behind `step` of the checkpoint `from`; 0 and "": from the start. */
void sl_recorder_resumed(struct sl_recorder *r, int64_t step, const char *from);

/*
 * A rank's report: hello (the rank's host, pid, device), step, memory, metric, event. 0, or -1
 * when it was dropped and counted: unknown type, rank outside 0..SL_RECORDER_RANKS-1 or queue full.
 */
enum { SL_RECORDER_RANKS = 4096 };
int sl_recorder_put(struct sl_recorder *r, const struct sl_report *rep);

/* An event of ours, at the time of the call; rank -1: of the whole job. Long text is cut. */
void sl_recorder_event(struct sl_recorder *r, int rank, const char *kind, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* How rank `rank` ended: exit status, or 128 + signal. */
void sl_recorder_rank_end(struct sl_recorder *r, int rank, int exit_status);

/* The job's state and why ("" for nothing to say): starting, running or stopping. */
void sl_recorder_state(struct sl_recorder *r, enum sl_state state, const char *reason);

/* 1 and a line for people, once, when there is something to say (see above); else 0. Poll it. */
int sl_recorder_notice(struct sl_recorder *r, char *ret, size_t size);

struct sl_recorder_count {
    int64_t written; /* records committed */
    int64_t dropped; /* thinned, or refused because the queue was full */
    int64_t waiting; /* in memory now */
};
void sl_recorder_count(struct sl_recorder *r, struct sl_recorder_count *ret);

/*
 * Write what is left, end the attempt and the job (`state`: stopped, done, failed or cancelled;
 * exit_status and reason as `show` prints them), stop the thread, free everything. Takes at most
 * about 5 s. -1: not everything could be written; the job will then be seen as lost.
 */
int sl_recorder_close(struct sl_recorder *r, enum sl_state state, int exit_status,
                      const char *reason, struct sl_err *err);

/* Only stop: commit what is there, leave the job's state alone (tests, a second attempt). */
void sl_recorder_drop(struct sl_recorder *r);

#endif
