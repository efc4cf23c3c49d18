#ifndef SL_HAND_H
#define SL_HAND_H

/*
 * hand.h - a node's leader hands memory to the agents of the node's other tasks
 *
 * In the shape of one task per rank every rank runs below its own task's agent, inside that task's
 * cgroup, and still shares memory with its node: the leader's memfds go through an abstract unix
 * socket, with what the rank needs in its environment to find the leader's PMIx server. Both sides
 * must be of one user.
 */

#include "common/err.h"
#include "launcher/local.h"
#include "launcher/pmix_server.h"

enum { SL_HAND_FDS = 1 + SL_MAX_RANKS, SL_HAND_BYTES = 1 << 16 };

int sl_hand_listen(const char *name, struct sl_err *err); /* the descriptor, or -1 */

/* Ask the leader for what `rank` needs in `attempt`; the answer comes at the descriptor, or -1. */
int sl_hand_ask(const char *name, int attempt, int rank, struct sl_err *err);

/*
 * Serve one that waits at `fd`, when there is one. Those that ask for another attempt get nothing
 * (they have ended since). -1: a mate's request could not be met.
 */
int sl_hand_serve(int fd, int attempt, struct sl_local *l, struct sl_pmix_server *pmix,
                  struct sl_err *err);

/*
 * The answer at `fd`: descriptors (the control block, then the node's arenas by local rank) and
 * "A=1\0B=2\0\0". *n: descriptors, now the caller's to close. SL_PEER: the leader is gone.
 */
int sl_hand_take(int fd, int fds[SL_HAND_FDS], int *n, char vars[SL_HAND_BYTES], struct sl_err *err);

#endif
