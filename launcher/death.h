#ifndef SL_DEATH_H
#define SL_DEATH_H

/*
 * death.h - how a rank ended, what that means for the job, and how to say it
 */

#include <stddef.h>
#include <sys/types.h>

#include "executor/ctl.h"

enum sl_end {
    SL_END_DONE,    /* all steps done */
    SL_END_STOPPED, /* left at the agreed step boundary that the agent asked for */
    SL_END_PEER,    /* left because another rank failed: never the cause */
    SL_END_FAULT,   /* everything else, an exit with 0 before the end included */
};

struct sl_death {
    int rank;
    pid_t pid;
    int wait_status; /* as waitpid() has it */
    uint64_t state;  /* the rank's last state word (executor/ctl.h) */
    int asked;       /* the agent had asked to stop */
    const char *host; /* lent; NULL: not said */
};

enum sl_end sl_death_kind(const struct sl_death *d);

/* The job's exit status when this fault is the cause: 1, 2, 3, 5 or 6. */
int sl_death_status(const struct sl_death *d);

/* As a shell has it: exit status, or 128 + signal. */
int sl_death_code(const struct sl_death *d);

/*
 * "rank 2 on n1 (pid 77) was killed by signal 9 (Killed) in step 3, computing", or for one that
 * found the failure itself "... exited with status 1 after step 2".
 */
void sl_death_text(const struct sl_death *d, const char *host, char *ret, size_t size);

/*
 * A sentence on what to do, or "". `oom` is how often the kernel's out-of-memory killer has struck
 * on this machine since the start of the run (sl_death_oom_kills() then and now), -1: not known.
 */
void sl_death_hint(const struct sl_death *d, long oom, char *ret, size_t size);

long sl_death_oom_kills(void); /* since boot; -1: the kernel does not tell */

#endif
