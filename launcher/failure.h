#ifndef SL_FAILURE_H
#define SL_FAILURE_H

/*
 * failure.h - what people are told of an attempt that has failed, and what the store keeps of it
 *
 * The reason, what may help, the last lines of the rank to blame; of a hang how each rank stands and
 * the stack of the one behind. To be called while the ranks have not been ended yet.
 */

#include "launcher/local.h"
#include "launcher/logs.h"
#include "launcher/recorder.h"
#include "launcher/supervise.h"
#include "launcher/team.h"
#include "launcher/term.h"

struct sl_failure {
    struct sl_supervise *sup; /* its reason grows by what a look at a hung rank shows */
    struct sl_term *term;
    struct sl_recorder *rec; /* NULL: none */
    struct sl_local *local;  /* may be NULL when there is nobody to blame */
    struct sl_team *team;    /* NULL: alone */
    struct sl_logs *logs;    /* likewise */
    const char *folder;      /* of the logs */
    int ranks, mine; /* of the job; of this agent, from 0 */
    void (*alive)(void *user); /* called each 300 ms or so: a hang takes seconds to look at */
    void *user;
};

void sl_failure_tell(const struct sl_failure *f);

#endif
