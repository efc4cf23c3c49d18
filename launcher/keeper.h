#ifndef SL_KEEPER_H
#define SL_KEEPER_H

/*
 * keeper.h - the parent of the agent: passes signals on, ends what a dead agent leaves
 *
 * It does almost nothing, so it lives. When the agent ends, however it does, the keeper ends all
 * processes below itself (it is a child subreaper), removes the temporary folder and returns the
 * status. A killed agent is 5, "the machine failed us", and the job is marked failed in the store.
 * An agent that has not given a sign for `silence` seconds (stopped, stuck) is killed.
 */

#include <sys/types.h>

#include "launcher/launch.h"
#include "launcher/scratch.h"
#include "store/jobs.h"

struct sl_keeper_conf {
    const struct sl_launch *launch;
    const struct sl_scratch *scratch;
    const struct sl_lease *mine; /* this process's lease of the job */
    pid_t agent;
    int beats;   /* SEQPACKET socket to the agent */
    int signals; /* signalfd, non-blocking */
};

int sl_keeper_run(const struct sl_keeper_conf *conf); /* the exit status of the run */

#endif
