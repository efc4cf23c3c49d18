#ifndef SL_RANK_H
#define SL_RANK_H

/*
 * rank.h - one rank's process: what its agent hands it, what it does, and how it leaves
 *
 * The agent re-executes the program as `shardlaunch rank FD`. FD is a memfd that holds a struct
 * sl_rank_start followed at once by the job as canonical TOML (sl_job_text), no final zero. The
 * descriptors named in it are inherited. PMIx finds its server by the environment.
 *
 * Several nodes: ranks are numbered in blocks, so those of this node are rank - local + 0..nlocal-1.
 * Memory is the node's own: arena_fd has nlocal descriptors, by local rank. The control block has a
 * row for each of the job's ranks, by rank; a node's ranks write only their own rows. The block
 * of node 0 is what the job's first agent looks at: agents of other nodes tell it state, since, pid,
 * kind, unit and stepped of their rows, and it writes them there (never loss, stop, norm or saved).
 * `stop` and sl_ctl_fail() reach every node's block. PMIx is one namespace over all nodes: a
 * fence that collects meets all ranks, and what one has put, all can get.
 *
 * The network between nodes: the interfaces of SHARDLAUNCH_IFNAME (names with commas), else all, that
 * of the default route first. The first rank of a node tells which it was in an event "network".
 *
 * A rank prints to stderr only when it fails (one line, with a hint); progress goes to the report
 * socket. TERM, INT, HUP, USR1 and USR2 are ignored from the agent on.
 */

#include <stdint.h>

#include "executor/checkpoint/checkpoint.h"
#include "executor/data/dataset.h"
#include "executor/job.h"

enum {
    SL_RANK_MAGIC = 0x4b4e5253, /* "SRNK" */
    SL_RANK_VERSION = 3,
    SL_RANK_MAX_TEXT = 1 << 20, /* bytes of a job's text */
};

struct sl_rank_start {
    uint32_t magic, version;
    int64_t job;           /* id in the store */
    int32_t attempt;       /* from 1 */
    int32_t rank, ranks;   /* of the job; must be what PMIx says */
    int32_t local, nlocal; /* of this node; one node: the same numbers */
    int32_t node, nodes;   /* every node has nlocal = ranks / nodes ranks */
    int32_t threads;       /* for this rank's loops, at least 1 */
    double hang_timeout;   /* seconds a collective may wait; 0: for ever */
    int64_t arena_bytes;   /* of every arena: the program's arena0, the largest */
    int32_t ctl_fd;        /* memfd of the node's struct sl_ctl */
    int32_t report_fd;     /* SEQPACKET, non-blocking use; -1: no reports wanted */
    int32_t arena_fd[SL_MAX_RANKS]; /* by local rank, mine included */
    char checkpoints[SL_CKPT_PATH]; /* folder of the run's checkpoints; "": none are written */
    char from[SL_CKPT_PATH];        /* checkpoint to go on from; "": from the beginning */
    struct sl_dataset_files data; /* of sl_dataset_prepare(), called before ranks start */
    uint32_t text_bytes;   /* of the job text that follows */
};

/* Exit statuses of a rank. A signal's death is the agent's to see. */
enum sl_rank_status {
    SL_RANK_DONE = 0,     /* all steps done, reports sent */
    SL_RANK_FAILED = 1,   /* the job failed here: a broken promise of ours */
    SL_RANK_USAGE = 2,    /* the job file or data is wrong: a person can mend it */
    SL_RANK_MACHINE = 5,  /* this machine refused: memory, map, PMIx, files */
    SL_RANK_HANG = 6,     /* a collective's deadline passed; the line names who was missing */
    SL_RANK_STOPPED = 75, /* the agent's stop flag: left at a step boundary that all agreed on */
    SL_RANK_PEER = 76,    /* a peer failed first, here or on another node: never the cause */
    SL_RANK_DIVERGED = 77, /* loss or gradient is not finite: it would be again */
};

/*
 * Read what the agent handed over and check it. *text, the job, NUL-terminated, is the caller's to free.
 * SL_USAGE: no start record; SL_BUG: not one of this version, or it makes no sense; SL_SYSTEM.
 */
int sl_rank_start_read(int fd, struct sl_rank_start *ret, char **text, struct sl_err *err);

/* The whole life of a rank; `fd` is closed. Returns one of the statuses above, for exit(). */
int sl_rank_main(int fd);

#endif
