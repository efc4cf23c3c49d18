#ifndef SL_WIREUP_H
#define SL_WIREUP_H

/*
 * wireup.h - a rank as PMIx client: who I am, who the others are
 *
 * One exchange: put this rank's card, commit, a fence that collects, get everybody's. One wire-up a
 * process and attempt; libpmix keeps its state in the process. After a peer's death the library
 * lets later fences succeed among survivors, so nothing is asked of it beyond the exchange.
 */

#include "common/err.h"
#include "executor/job.h"
#include "executor/links.h"

struct sl_card {
    char host[64];
    int pid;
    char links[SL_LINKS_TEXT]; /* several nodes: how to reach it (links.h); else "" */
};

struct sl_wireup {
    int rank, ranks;
    char space[256]; /* the attempt's name, as PMIx has it */
    struct sl_card card[SL_MAX_RANKS]; /* by rank */
};

/*
 * Connect to the server that the environment names. SL_SYSTEM: no server, or it refused; SL_USAGE:
 * more than SL_MAX_RANKS ranks.
 */
int sl_wireup_open(struct sl_wireup *w, struct sl_err *err);

/*
 * The exchange; waits for all ranks, at most `deadline` seconds (0: for ever). links: what this rank
 * publishes for other nodes, NULL on all ranks: there are none. SL_PEER: a rank is gone; SL_BUSY: the
 * deadline passed.
 */
int sl_wireup_exchange(struct sl_wireup *w, const char *links, double deadline,
                       struct sl_err *err);

/* Leave the server. The ranks need not leave together. */
int sl_wireup_close(struct sl_wireup *w, struct sl_err *err);

#endif
