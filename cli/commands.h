#ifndef SL_COMMANDS_H
#define SL_COMMANDS_H

/*
 * commands.h - the subcommands
 *
 * A new one is a file cli/NAME.c that defines sl_cmd_NAME, a line here, a row in commands.c and a
 * line in local.mk. Its run() prints data on stdout and returns an exit status, or -1 with err.
 */

#include <stdint.h>

#include "cli/options.h"

extern const struct sl_cmd sl_cmd_check;
extern const struct sl_cmd sl_cmd_data;
extern const struct sl_cmd sl_cmd_export;
extern const struct sl_cmd sl_cmd_plan;
extern const struct sl_cmd sl_cmd_rank;
extern const struct sl_cmd sl_cmd_run;
extern const struct sl_cmd sl_cmd_retry;
extern const struct sl_cmd sl_cmd_submit;
extern const struct sl_cmd sl_cmd_list;
extern const struct sl_cmd sl_cmd_logs;
extern const struct sl_cmd sl_cmd_serve;
extern const struct sl_cmd sl_cmd_show;
extern const struct sl_cmd sl_cmd_version;

const struct sl_cmd *const *sl_commands(int *n); /* in the order of --help */
const struct sl_cmd *sl_command_find(const char *name); /* or NULL */

/* Exit statuses, as in the contracts (doc): what an error's code means to a script. */
enum sl_exit {
    SL_EXIT_OK = 0,
    SL_EXIT_FAILED = 1,  /* the job failed */
    SL_EXIT_USAGE = 2,   /* wrong usage or job file */
    SL_EXIT_MEMORY = 3,  /* does not fit */
    SL_EXIT_NO_JOB = 4,  /* no such job */
    SL_EXIT_MACHINE = 5, /* the machine failed us */
    SL_EXIT_HANG = 6,
    SL_EXIT_STOPPED = 75, /* stopped and resumable */
};

int sl_exit_status(enum sl_code code);

/* "shardlaunch: message" and the hint on stderr, control characters escaped. */
void sl_say_error(const struct sl_err *err);
void sl_say(const char *fmt, ...) __attribute__((format(printf, 1, 2))); /* a note, one line */

/* Write a finished buffer to stdout and empty it. SL_SYSTEM: it failed, or stdout did. */
int sl_print(struct sl_buf *b, struct sl_err *err);

#endif
