#ifndef SL_AGENT_H
#define SL_AGENT_H

/*
 * agent.h - the process between keeper and ranks: starts, watches, records, decides how it ends
 *
 * One loop (poll) in the process's main thread. Its signals are blocked and read from a signalfd.
 */

#include "launcher/launch.h"
#include "launcher/scratch.h"
#include "store/jobs.h"

struct sl_agent_conf {
    const struct sl_launch *launch;
    const struct sl_scratch *scratch;
    const struct sl_lease *from; /* the keeper's lease of the job */
    int keeper;  /* SEQPACKET: a beat each 0.5 s goes out; its end means that the keeper is gone */
    int signals; /* signalfd, non-blocking */
};

/* Returns the exit status of the run. All that was below this process is gone. */
int sl_agent_run(const struct sl_agent_conf *conf);

/* Signals that keeper and agent block and read. Ends with 0. */
extern const int sl_agent_signals[];

#endif
