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
 * All ranks fence and finalize through it. On one node a fence is complete when the node's ranks have
 * come; on several the agent takes what they have put, exchanges it with the other nodes and answers.
 * Fences of a part of the ranks are refused.
 */

#include "common/buf.h"
#include "common/err.h"

struct sl_pmix_server; /* opaque */

/*
 * `folder`: for its sockets and files, private to the run. `host`: this node's name, NULL: as the
 * machine says. SL_SYSTEM: libpmix refuses.
 */
struct sl_pmix_server *sl_pmix_server_open(const char *folder, const char *host,
                                           struct sl_err *err);

/* Who is where: every node has `ranks` / `nodes` ranks, in blocks. */
struct sl_pmix_map {
    int ranks, nodes, node;  /* node: this one */
    const char *const *host; /* by node */
};

/*
 * An attempt's ranks, under a name of their own: unique on the machine, at most 255 characters, new
 * for each attempt. Earlier names stay (taking one out may wait for ever, see close); each costs a
 * few KiB. SL_SYSTEM: libpmix refuses, or does not answer within 10 s.
 */
int sl_pmix_server_job(struct sl_pmix_server *s, const char *nspace, const struct sl_pmix_map *map,
                       struct sl_err *err);

/*
 * Several nodes: readable when this node's ranks have all come to a fence; then take() gives what they
 * have put (1; caller frees *data; 0: there is none), and answer() ends it, with the data of all nodes
 * or an error, before the next one is taken. A fence that nobody answers ends with its ranks.
 */
int sl_pmix_server_fence_fd(const struct sl_pmix_server *s);
int sl_pmix_server_fence_take(struct sl_pmix_server *s, int *status, char **data, size_t *n);
void sl_pmix_server_fence_answer(struct sl_pmix_server *s, int status, const void *data, size_t n);
int sl_pmix_server_aborted(void); /* the status that says so */
int sl_pmix_server_good(int status);

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

/* Only what the rank needs beyond an environment of its own: "A=1\0B=2\0\0" added to `ret`. */
int sl_pmix_server_vars(struct sl_pmix_server *s, int rank, struct sl_buf *ret, struct sl_err *err);

/* Take PMIX_*, OMPI_*, SLURM_* of an outer launcher out of this process's environment. */
void sl_pmix_server_scrub(void);

#endif
