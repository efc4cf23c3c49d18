#ifndef SL_GRAPH_H
#define SL_GRAPH_H

/*
 * graph.h - the model as data: units, parameters, tensors, buffers and one list of operations
 *
 * Builder calls append operations with static shapes; nothing runs while a model is described.
 * The passes (autodiff, recompute, shard, schedule, memplan) edit the list. A tensor is a typed view
 * of a buffer; only buffers have lifetimes and offsets. The structs are open to executor/graph/ and
 * to the run loop; models use the builder in build.h alone. Not thread-safe: one graph, one thread.
 *
 * Errors stick: a builder call on bad shapes records the first error (naming the layer) in the graph
 * and returns -1; calls with -1 inputs do nothing; sl_graph_error() tells at the end.
 */

#include <stdint.h>

#include "common/err.h"
#include "kernels/dtype.h"

enum sl_cat {
    SL_CAT_PARAMETERS,
    SL_CAT_GRADIENTS,
    SL_CAT_OPTIMIZER,
    SL_CAT_ACTIVATIONS,
    SL_CAT_COMMUNICATION,
    SL_CAT_WORKSPACE, /* scratch of operations, token inputs, and packing holes */
    SL_CATS
};

enum sl_kind {
    /* described */
    SL_OP_EMBED,     /* in: w[vocab,width], ids; out: y[rows,width] */
    SL_OP_POSITION,  /* in: w[context,width], x; out: y = x + w[row % context] */
    SL_OP_LAYERNORM, /* in: x, gain, bias; out: y, stat[rows,2] */
    SL_OP_LINEAR,    /* in: x[rows,in], w[out,in], b[out]; out: y[rows,out] */
    SL_OP_GELU,
    SL_OP_ADD,
    SL_OP_DROPOUT,
    SL_OP_ATTENTION, /* in: qkv[rows,3 width]; out: y[rows,width], lse[rows,heads] f32 */
    SL_OP_HEAD,      /* in: x, w[vocab,width], targets; out: loss[1] f32; training adds dx and acc dw */
    /* appended by autodiff */
    SL_OP_EMBED_BWD,
    SL_OP_POSITION_BWD,
    SL_OP_LAYERNORM_BWD,
    SL_OP_LINEAR_DX,
    SL_OP_LINEAR_DW,
    SL_OP_GELU_BWD,
    SL_OP_DROPOUT_BWD,
    SL_OP_ATTENTION_BWD,
    /* inserted by shard */
    SL_OP_ZERO,
    SL_OP_BROADCAST,         /* dp: parameters from rank 0 */
    SL_OP_REDUCE,            /* dp: gradients to rank 0 */
    SL_OP_GATHER,            /* zero3: a unit's full parameters from all shards */
    SL_OP_REDUCE_SCATTER,    /* a unit's full gradient to shards, summed in rank order */
    SL_OP_REDUCE_INPLACE,    /* the same inside the full buffer: all-reduce's first half */
    SL_OP_ALLGATHER_INPLACE, /* all-reduce's second half, and parameters after the optimizer */
    SL_OP_COMM_WAIT,         /* peers have finished reading what this rank lent: ends a lifetime */
    SL_OP_NORM_PART,
    SL_OP_NORM_MERGE,
    SL_OP_ADAMW,
    SL_OP_STEP_END,
    SL_OP_KINDS
};

enum { SL_MAX_IN = 5, SL_MAX_OUT = 3, SL_MAX_ACC = 2 };

/* What an operation is about; which fields count depends on the kind. */
struct sl_attr {
    int64_t rows, width, inner /* linear: in */, outer /* linear: out */, heads, context, vocab;
    int64_t n; /* elements, for element-wise kinds; shard elements, for communication */
    double p;  /* dropout */
    int last_micro; /* acts in the last micro-step only */
    int first_micro;/* acts in the first micro-step only */
    int accumulate; /* reduce-scatter: add to the shard after the first micro-step */
    int from_rank;  /* adamw: the view starts at rank * shard of the unit */
    int rank0;      /* acts on rank 0 only (dp's optimizer) */
};

struct sl_op {
    enum sl_kind kind;
    int in[SL_MAX_IN], out[SL_MAX_OUT], acc[SL_MAX_ACC]; /* tensors, -1 none; acc: read and written */
    int ws;   /* workspace tensor (scratch) or -1 */
    int unit; /* what communication is about, or -1 */
    int home; /* unit that was current when the model described it */
    int id;   /* from the description: names a dropout's random stream; clones keep it */
    struct sl_attr a;
};

struct sl_tensor {
    int buf;        /* -1 until shard gives a parameter or its gradient a place */
    int64_t off, n; /* elements */
    enum sl_dtype type;
    int by_rank; /* the view starts rank * n further on: my piece of a full buffer */
    int param;   /* parameter id or -1 */
    int is_grad;
};

struct sl_buffer {
    int64_t bytes, offset; /* bytes are a multiple of 64 */
    enum sl_cat cat;
    int persistent;
    int first, last; /* indexes of operations, -1 unused */
    int alias;       /* in place of another buffer, or -1 */
};

enum sl_init { SL_INIT_NORMAL, SL_INIT_ZERO, SL_INIT_ONE };

struct sl_param {
    char name[64];   /* as Hugging Face's GPT-2 names it: "h.0.attn.c_attn.weight" */
    int64_t dim[2];  /* dim[1] is 0 for a vector; a linear's weight is [out, in] */
    int unit;
    int64_t off, n;  /* elements inside the unit's flat buffer; off is a multiple of 16 */
    enum sl_init init;
    double scale;    /* standard deviation of SL_INIT_NORMAL */
    int decay;       /* weight decay applies */
    int value, grad; /* tensors; grad -1 until autodiff */
};

struct sl_unit {
    char name[32]; /* "embedding", "h.0", "head" */
    int64_t n, shard; /* elements; shard * ranks >= n, shard a multiple of 16 */
    int pfull, psh, gfull, gsh; /* tensors or -1: parameters and gradients, full and mine */
    int master, m, v;           /* optimizer: fp32 master copy (bf16 only) and moments */
};

struct sl_graph {
    struct sl_op *ops;
    struct sl_tensor *t;
    struct sl_buffer *b;
    struct sl_param *par;
    struct sl_unit *unit;
    int nops, nt, nb, npar, nunits;
    int room_ops, room_t, room_b, room_par, room_unit;
    int cur_unit, next_id;
    int ids, targets; /* input tensors [rows] i32, filled before a micro-step */
    int loss;         /* tensor [1] f32: the micro-step's share of the mean over the global batch */
    int nfwd;         /* operations before the first backward one */
    int opt_start;    /* operations from here run once per step */
    int ranks;
    int strategy;     /* enum sl_strategy */
    enum sl_dtype ptype; /* type of parameters, gradients and activations */
    int64_t arena, persistent, lower_bound;
    int peak_op;
    int64_t at_peak[SL_CATS];  /* sums to arena: holes are in workspace */
    int64_t cat_peak[SL_CATS]; /* each category's own highest */
    struct sl_err err;
};

struct sl_graph *sl_graph_create(enum sl_dtype ptype, struct sl_err *err);
void sl_graph_destroy(struct sl_graph *g);
int sl_graph_error(const struct sl_graph *g, struct sl_err *err); /* 0, or -1 with the first error */

extern const char *const sl_cat_names[SL_CATS]; /* "parameters", "gradients", ... */
extern const char *const sl_kind_names[SL_OP_KINDS];

#endif
