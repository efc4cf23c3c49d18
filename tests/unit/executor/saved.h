#ifndef SL_TEST_SAVED_H
#define SL_TEST_SAVED_H

/* saved.h - a team of ranks with a folder for its checkpoints */

#include "executor/checkpoint/checkpoint.h"
#include "tests/unit/executor/team.h"

enum { SAVED_STEPS = 14, SAVED_SAMPLES = 5000 /* an epoch; the team's own have no end */ };

struct saved {
    struct team team;
    char top[64], dir[80]; /* a temporary folder; the checkpoints' in it */
    struct sl_ckpt_conf conf;
};

/* All that a job file would have, so that its canonical text parses. Aborts the test on failure. */
void saved_open(struct saved *s, enum sl_strategy strategy, enum sl_precision precision, int ranks);
void saved_close(struct saved *s); /* removes the folder */

/*
 * Train to SAVED_STEPS, saving every `every` steps (0: only when stopped), behind step `from` (0:
 * from the beginning). saved_run() fails the test when a rank does not come to its end; saved_try()
 * returns -1.
 */
void saved_run(struct saved *s, int every, int from, struct team_result *ret);
int saved_try(struct saved *s, int every, int from, struct team_result *ret);

#endif
