#ifndef SL_CLI_STATE_H
#define SL_CLI_STATE_H

/*
 * state.h - where the product keeps things, as flags and environment say
 */

#include "cli/options.h"

/* --db, else SHARDLAUNCH_DB, else shardlaunch.db in the state folder; absolute. Caller frees. */
char *sl_state_db(const struct sl_args *args, struct sl_err *err);

#endif
