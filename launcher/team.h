#ifndef SL_TEAM_H
#define SL_TEAM_H

/*
 * team.h - the chief's side of the star: the other agents, told what to do, and what they tell
 *
 * What ranks of other agents report, print and how they end comes by the callbacks, as that of the
 * chief's own ranks does otherwise. Rows of ranks of other nodes are kept up to date in the chief's
 * control block, on this machine's clock; its `stop` and its end of the attempt are passed on. Fences
 * of the nodes meet here. An agent that is gone, or says nothing for SL_TEAM_SILENCE seconds, is lost.
 * One thread.
 */

#include <poll.h>

#include "launcher/crew.h"
#include "launcher/hang.h"
#include "launcher/local.h"
#include "launcher/pmix_server.h"
#include "launcher/watch.h"
#include "launcher/words.h"

enum { SL_TEAM_SILENCE = 10, SL_TEAM_FDS = SL_MAX_RANKS + 2 };

struct sl_team_conf {
    struct sl_crew *crew; /* lent; numbered */
    void (*report)(void *user, const struct sl_report *rep);
    void (*line)(void *user, int rank, const char *text, size_t n);
    void (*death)(void *user, int rank, pid_t pid, int wait_status, uint64_t state);
    void (*signal)(void *user, int signo);
    /* The run cannot go on: text for people. rank -1: not about one. */
    void (*fail)(void *user, int status, const char *text);
    void (*note)(void *user, const char *text);
    void (*alive)(void *user); /* called each 100 ms or so while a function here waits */
    void *user;
};

struct sl_team; /* opaque */

/* Take the connections of all other agents; they dial as soon as they live. SL_BUSY: some did not. */
struct sl_team *sl_team_open(const struct sl_team_conf *conf, struct sl_err *err);

int sl_team_fds(const struct sl_team *t, struct pollfd p[SL_TEAM_FDS]); /* how many */
void sl_team_serve(struct sl_team *t);                                  /* all that is due */

/*
 * An attempt: `local` and `pmix` are those of this node. The other agents start their ranks when they
 * have read this; the caller starts its own after it.
 */
void sl_team_start(struct sl_team *t, const struct sl_order *order, const char *text,
                   struct sl_local *local, struct sl_pmix_server *pmix);

/* Call it often. */
void sl_team_tick(struct sl_team *t, uint64_t now);

void sl_team_ping(struct sl_team *t); /* the agent lives, though it does not serve just now */

/* How ranks of other agents stand, into ret[rank]; at most some seconds. */
void sl_team_look(struct sl_team *t, struct sl_hang_rank *ret);
/* The stack of a rank; 1: it is another agent's, and `ret` has what came; 0: it is ours. */
int sl_team_stack(struct sl_team *t, int rank, char *ret, size_t size);

/*
 * The other agents end their ranks; drain waits for it, and deaths come by the callback meanwhile.
 * SL_BUSY: some did not within `seconds`. `local` is not used any more after it.
 */
void sl_team_kill(struct sl_team *t);
int sl_team_drain(struct sl_team *t, double seconds, struct sl_err *err);

/* The run is over with this status, everywhere. NULL is fine. */
void sl_team_quit(struct sl_team *t, int status);

#endif
