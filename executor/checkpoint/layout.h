#ifndef SL_CKPT_LAYOUT_H
#define SL_CKPT_LAYOUT_H

/*
 * layout.h - what of one rank's arena goes into its file of a checkpoint, and where
 *
 * Every rank saves its own piece of the one cut (executor/graph/shard.h), of each unit: parameters
 * (the fp32 master copy when there is one: the bf16 parameters are its rounding), and the two
 * moments. Under dp, where rank 0 alone has an optimizer, that rank saves what only it has, whole.
 * A piece is a run of elements of one parameter, as fp32. The layout is a pure function of program
 * and rank, so rank 0 knows all of them. Padding is not saved.
 */

#include <stdint.h>

#include "common/buf.h"
#include "executor/graph/graph.h"

enum sl_ckpt_kind { SL_CKPT_PARAM, SL_CKPT_M, SL_CKPT_V, SL_CKPT_KINDS };

extern const char *const sl_ckpt_kind_names[SL_CKPT_KINDS]; /* "param", "m", "v" */

enum { SL_CKPT_CHUNK = 1 << 20 }; /* bytes of a file that one hash covers */

struct sl_ckpt_piece {
    enum sl_ckpt_kind kind;
    int param;     /* index in the graph */
    int64_t lo, n; /* elements of the parameter, from its first */
    int tensor;    /* of the graph, that holds it */
    int64_t at;    /* element of that tensor */
    int64_t off;   /* byte in the file */
};

struct sl_ckpt_layout {
    struct sl_ckpt_piece *v; /* in the file's order, without holes */
    int n;
    struct sl_buf head; /* the file's first bytes: a safetensors header */
    int64_t bytes;      /* of the file */
};

/* Caller calls fini. SL_SYSTEM: no memory. */
int sl_ckpt_layout_init(struct sl_ckpt_layout *l, const struct sl_graph *train, int rank,
                        struct sl_err *err);
void sl_ckpt_layout_fini(struct sl_ckpt_layout *l);

int64_t sl_ckpt_chunks(int64_t bytes); /* chunks of a file; the last may be short */

/* Element where my part of a unit begins inside `tensor`, and of the unit where that is; its length. */
struct sl_ckpt_part {
    int tensor;
    int64_t first, at, n; /* element of the unit; of the tensor; how many */
};

/* The rank's part to save of a kind of unit u. n is 0 when another rank saves it, or none does. */
struct sl_ckpt_part sl_ckpt_part(const struct sl_graph *g, int rank, int u, enum sl_ckpt_kind kind);

#endif
