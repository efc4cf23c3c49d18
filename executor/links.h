#ifndef SL_LINKS_H
#define SL_LINKS_H

/*
 * links.h - a rank's connections to the ranks of the same local number on all other nodes
 *
 * Before the wire-up each rank listens on its addresses, one socket each, on ports that the system
 * chooses, and makes a text "TOKEN address address ..." that travels by PMIx. Behind it the rank of
 * the higher node dials, tries the other's addresses in turn, and each side shows the other's
 * token, so that a stranger, or another job's rank at the same private address of another host, is
 * no peer.
 *
 * Sockets are non-blocking, without Nagle's delay, with keep-alive; bytes that nobody acknowledges
 * for the deadline break the connection. Not thread-safe: one rank, one thread.
 */

#include "executor/address.h"
#include "executor/ctl.h"

enum { SL_LINKS_TEXT = 512, SL_LINKS_TOKEN = 16 };

struct sl_links {
    int node, nodes;
    int fd[SL_MAX_RANKS];                   /* by node; -1: mine, or not connected */
    char at[SL_MAX_RANKS][SL_ADDRESS_TEXT]; /* by node: the address that answered */
    char host[SL_MAX_RANKS][64];            /* by node: for people */
    int listener[SL_ADDRESS_MAX], listeners;
    unsigned char token[SL_LINKS_TOKEN];
    char text[SL_LINKS_TEXT]; /* to be published */
    char dev[32];             /* interface of the first address in it */
};

/* Caller closes, also after a failure. SL_USAGE, SL_SYSTEM as sl_address_list(); no socket. */
int sl_links_listen(struct sl_links *l, int node, int nodes, const char *ifname,
                    struct sl_err *err);

/*
 * Connect to all other nodes; text[q] is what my peer on node q published, host[q] its machine's
 * name. Ends early when the attempt does (ctl). SL_PEER: it did; SL_BUSY: `deadline` seconds
 * passed (0: for ever), the message names a node, its address and why; SL_BUG: no such text.
 */
int sl_links_connect(struct sl_links *l, const char *const *text, const char *const *host,
                     double deadline, const struct sl_ctl *ctl, struct sl_err *err);

void sl_links_close(struct sl_links *l);

#endif
