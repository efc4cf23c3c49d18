#ifndef SL_LOCAL_H
#define SL_LOCAL_H

/*
 * local.h - the ranks of this node: their memory, their processes, their sockets
 *
 * Makes one memfd an arena and one for the control block, and starts each rank as
 * `/proc/self/exe rank FD` (executor/rank.h). Ranks die with the thread that started them
 * (PR_SET_PDEATHSIG), so that must be a thread that lives as long as the agent: its main one.
 * Ranks ignore TERM, INT, HUP, USR1, USR2; their stdin is /dev/null.
 *
 * Everywhere a rank is named by its number in the job. Memory is that of the node's ranks; an agent
 * that does not lead its node gets it handed over (launcher/hand.h) and starts only its own ranks.
 */

#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"
#include "executor/ctl.h"
#include "executor/data/dataset.h"
#include "executor/report.h"
#include "launcher/logs.h"
#include "launcher/pmix_server.h"

struct sl_local_conf {
    int64_t job;
    int attempt, ranks, units, threads; /* ranks: of the job */
    int node, nodes;     /* every node has ranks / nodes ranks, in blocks */
    int first, mine;     /* ranks that this agent starts */
    double hang_timeout; /* seconds, as executor/rank.h means it */
    int64_t arena_bytes; /* of each rank */
    const char *job_text;
    const char *checkpoints, *from; /* as executor/rank.h means them; NULL: "" */
    struct sl_dataset_files data;
};

struct sl_local; /* opaque */

/* Memory only. SL_SYSTEM: the kernel refuses. */
struct sl_local *sl_local_open(const struct sl_local_conf *conf, struct sl_err *err);
void sl_local_close(struct sl_local *l); /* after all ranks have ended; NULL is fine */

/*
 * The same with memory that the node's leader has made: the control block, then the arenas by local
 * rank. The descriptors are taken, also after a failure.
 */
struct sl_local *sl_local_adopt(const struct sl_local_conf *conf, const int *fds, int n,
                                struct sl_err *err);

/* The node's descriptors in that order; lent. Returns how many. */
int sl_local_fds(const struct sl_local *l, int fds[1 + SL_MAX_RANKS]);
int sl_local_here(const struct sl_local *l, int rank); /* 1: a rank of this node */

/*
 * Start all ranks of this agent; their output goes to `logs`. They find their PMIx server by `pmix`, or
 * when that is NULL by `vars` of sl_pmix_server_vars() (one rank). After a failure some may run: end
 * them.
 */
int sl_local_start(struct sl_local *l, struct sl_pmix_server *pmix, const char *vars,
                   struct sl_logs *logs, struct sl_err *err);

struct sl_ctl *sl_local_ctl(struct sl_local *l);
pid_t sl_local_pid(const struct sl_local *l, int rank); /* also of one that has ended */
int sl_local_alive(const struct sl_local *l);           /* ranks that have not ended */
int sl_local_lives(const struct sl_local *l, int rank);

/* The rank of a process that was reaped, which thereby has ended; -1: not a rank. */
int sl_local_ended(struct sl_local *l, pid_t pid);

int sl_local_report_fd(const struct sl_local *l, int rank); /* -1: at its end */

/* 1: a record came; 0: none is there, or the rank has closed its end. Malformed ones are skipped.
 */
int sl_local_report(struct sl_local *l, int rank, struct sl_report *ret);

#endif
