#ifndef SL_FOLLOW_H
#define SL_FOLLOW_H

/*
 * follow.h - the agent of a task that is not the chief: its ranks run as the chief says
 *
 * It reads no job file and writes no store. What its ranks report and print goes to the chief; when
 * the network takes less than comes, samples and lines are dropped and counted, ends and events never.
 * It ends with the chief's status, and with 5 when the chief is gone.
 */

#include "launcher/agent.h"
#include "launcher/crew.h"

int sl_follow_run(const struct sl_agent_conf *conf); /* the exit status */

#endif
