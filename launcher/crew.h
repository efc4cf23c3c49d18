#ifndef SL_CREW_H
#define SL_CREW_H

/*
 * crew.h - the tasks that an outer launcher (srun, mpirun) started as one run, and who does what
 *
 * Every task is one agent. Task 0 is the chief: it reads the job, records, decides. Nodes are tasks
 * of equal host name and boot id, in the order of their first task; that first task leads its node: it
 * hosts the PMIx server and makes the memory. Ranks are numbered in blocks per node, then by task, so a
 * rank need not be the launcher's own number. Two shapes: one task per node, which starts all
 * its ranks, or one task per rank.
 *
 * Started alone, a run has no crew.
 */

#include <stdint.h>

#include "common/err.h"
#include "executor/job.h"
#include "launcher/star.h"

struct sl_member {
    /* its card, which goes over the bridge */
    char version[32];
    char address[SL_STAR_ADDRESS];
    unsigned char token[SL_STAR_TOKEN];
    char hand[40]; /* name of the abstract socket where it hands memory over */
    char host[64], boot[40];
    int32_t cpus;     /* that it may use */
    uint64_t cpu_set; /* hash of which: tasks of a node may share theirs */
    /* layout: known to all once the crew has met, ranks once the chief has laid them out */
    int32_t node, leader; /* leader: a task */
    int32_t first, ranks; /* this task's ranks */
};

struct sl_crew {
    int me, n;   /* this task, tasks */
    int nodes;
    int ranks;   /* of the job; 0 before the layout */
    int listen;  /* where the other agents connect; agents other than the chief do not use theirs */
    int hand;    /* abstract socket where mates ask for memory, when this task leads its node */
    struct sl_member *m; /* by task */
};

/*
 * How this process was started. 0: alone, *ret is NULL. 1: by a launcher with PMIx, as one of several
 * tasks: all have met. SL_USAGE: by a launcher as one of several without PMIx, or with options that
 * contradict each other; the hint is the line to write instead. SL_BUSY, SL_SYSTEM: the tasks did not
 * meet. `node` NULL: this machine's own name (tests make two nodes of one machine). To be called
 * without threads, before the PMIx server is opened.
 */
int sl_crew_meet(const char *program, const char *node, struct sl_crew **ret, struct sl_err *err);
void sl_crew_destroy(struct sl_crew *c); /* NULL is fine */

int sl_crew_tasks(const struct sl_crew *c); /* per node; -1: nodes differ */
int sl_crew_cores(const struct sl_crew *c); /* that the ranks of a node may use: the smallest node's */

/*
 * The shape that the job asks for (resources.nodes, resources.ranks_per_node; 1: not said) against
 * that of the crew. *ranks: ranks of each node. SL_USAGE with the line to write instead.
 */
int sl_crew_shape(const struct sl_crew *c, const char *program, int64_t nodes,
                  int64_t ranks_per_node, int *ranks, struct sl_err *err);

/* Number the ranks, `ranks` on each node, after sl_crew_shape(). */
void sl_crew_number(struct sl_crew *c, int ranks);

/* The nodes' names, by node; lent. */
void sl_crew_names(const struct sl_crew *c, const char **ret);

/* "n1", or "n[1-2]" */
const char *sl_crew_hosts(const struct sl_crew *c, char *ret, size_t size);

/* The chief cannot start the run: the others end with `status`, too. Takes some seconds at most. */
void sl_crew_dismiss(struct sl_crew *c, int status);

#endif
