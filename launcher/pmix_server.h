#ifndef SL_PMIX_SERVER_H
#define SL_PMIX_SERVER_H

/*
 * pmix_server.h - the PMIx server inside the agent, for the ranks of one node
 *
 * libpmix has one server per process; so has this module: open it once. It runs two threads of its
 * own, so between fork and exec of a rank only async-signal-safe calls are allowed. A process
 * that hosts a server must not be a PMIx client, and must not have PMIX_*, OMPI_* or SLURM_* of an
 * outer launcher in its environment: open() removes them.
 *
 * All ranks fence and finalize through it; a fence of the node's ranks is complete when all of
 * them have come. Fences of a part of the ranks are refused.
 */

#include "common/err.h"

struct sl_pmix_server; /* opaque */

/* `folder`: for its sockets and files, private to the run. SL_SYSTEM: libpmix refuses. */
struct sl_pmix_server *sl_pmix_server_open(const char *folder, struct sl_err *err);

/*
 * An attempt's ranks, under a name of their own: unique on the machine, at most 255 characters, new
 * for each attempt. Earlier names stay (taking one out may wait for ever, see close); each costs a
 * few KiB. SL_SYSTEM: libpmix refuses, or does not answer within 10 s.
 */
int sl_pmix_server_job(struct sl_pmix_server *s, const char *nspace, int ranks, struct sl_err *err);

/*
 * For a process that is about to end: libpmix's threads go with it. Taking the namespace out or
 * finalizing can wait for ever in 4.2.2 when a client was killed while it connected, so neither is
 * done. Its files stay in `folder`, which is the caller's to remove. NULL is fine.
 */
void sl_pmix_server_close(struct sl_pmix_server *s);

/*
 * This process's environment with what `rank` needs to find the server. A NULL-terminated list;
 * release it with sl_pmix_server_free_env().
 */
char **sl_pmix_server_env(struct sl_pmix_server *s, int rank, struct sl_err *err);
void sl_pmix_server_free_env(char **env);

#endif
