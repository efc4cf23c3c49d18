#ifndef SL_FLOW_H
#define SL_FLOW_H

/*
 * flow.h - bytes to and from all other nodes at once, under one deadline
 *
 * An exchange begins with a head to and from each node: number, kind, unit and step of the
 * collective, so that ranks that have come to different ones find out instead of taking one's bytes
 * for the other's. Then the caller gives each node's flow something to send and places to receive
 * to, and moves until all that it wants is done; it may refill a flow at any time. Of internal use
 * to comm_tcp.c.
 */

#include <stddef.h>

#include "executor/comm.h"

struct sl_flow_head {
    uint32_t magic, collective, step;
    int32_t kind, unit;
};

struct sl_flow {
    const char *out; /* what is to be sent, */
    size_t nout;     /* bytes of it left */
    char *in;        /* where it is received to */
    size_t nin;
    struct sl_flow_head theirs;
    size_t head_out, head_in; /* bytes of the heads left */
};

struct sl_comm_net {
    struct sl_links *links;
    struct sl_flow flow[SL_MAX_RANKS];           /* by node; mine unused */
    struct sl_flow_head head;                    /* of this exchange */
    uint64_t moved;                              /* ns: last byte, or the beginning */
    int64_t chunk;                               /* fp32 elements of a chunk */
    float *mine;                                 /* [chunk] this node's sum of my piece */
    float *out[SL_MAX_RANKS], *in[SL_MAX_RANKS]; /* by node: [chunk] */
    char *staging;                               /* where they lie */
    char *row_out, *row_in;                      /* blocks of partial results */
};

/* Begin an exchange: a collective to be waited for, with nothing yet to send but the heads. */
void sl_flow_begin(struct sl_comm *c, int kind, int unit);

/* Send and receive what can be at once, or sleep until something can. Errors as comm.h says. */
int sl_flow_move(struct sl_comm *c, struct sl_err *err);

/* 1: heads and all that was given have been moved. */
int sl_flow_done(const struct sl_comm *c);

/* Move until done, then sl_flow_end(). */
int sl_flow_finish(struct sl_comm *c, struct sl_err *err);

/* The exchange is over: back to computing. */
void sl_flow_end(struct sl_comm *c);

#endif
