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
 * Every pass is `int sl_pass(struct sl_graph *g, ...)`: 0, or -1 with the error kept in the graph.
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

/*
 * Operands by kind, in slot order; "acc" is read and written. A forward operation that was described
 * keeps its id in its recomputed clone and in its backward operation: it names a random stream.
 */
enum sl_kind {
    /* described */
    SL_OP_EMBED,     /* in: w[vocab,width], ids; out: y[rows,width] */
    SL_OP_POSITION,  /* in: w[context,width], x; out: y = x + w[row % context] */
    SL_OP_LAYERNORM, /* in: x, gain, bias; out: y, stat[rows,2] f32 */
    SL_OP_LINEAR,    /* in: x[rows,inner], w[outer,inner], b[outer]; out: y[rows,outer] */
    SL_OP_GELU,      /* in: x; out: y */
    SL_OP_ADD,       /* in: a, b; out: y */
    SL_OP_DROPOUT,   /* in: x; out: y */
    SL_OP_ATTENTION, /* in: qkv[rows,3 width]; out: y[rows,width], lse[rows,heads] f32 */
    SL_OP_HEAD,      /* in: x, w[vocab,width], targets; out: loss[1] f32, training: dx; acc: dw */
    /* appended by autodiff; where a parameter is frozen, db is -1 and the others go to scratch */
    SL_OP_EMBED_BWD,     /* in: dy, ids; acc: dw */
    SL_OP_POSITION_BWD,  /* in: dy; acc: dw */
    SL_OP_LAYERNORM_BWD, /* in: dy, x, gain, stat; out: dx; acc: dgain, dbias */
    SL_OP_LINEAR_DX,     /* in: dy, w; out: dx */
    SL_OP_LINEAR_DW,     /* in: dy, x; acc: dw, db */
    SL_OP_GELU_BWD,      /* in: dy, x; out: dx */
    SL_OP_DROPOUT_BWD,   /* in: dy; out: dx */
    SL_OP_ATTENTION_BWD, /* in: dy, qkv, y, lse; out: dqkv */
    /* inserted by shard; a.n is the unit's shard in elements, a.barrier says whether all ranks meet
     * before the operation's own work. Pull only: a rank writes its own arena alone. */
    SL_OP_ZERO,              /* out: a full gradient, padding included */
    SL_OP_BROADCAST,         /* acc: full parameters, from rank 0 (dp) */
    SL_OP_REDUCE,            /* acc: full gradient; rank 0 sums all ranks' in rank order (dp) */
    SL_OP_GATHER,            /* in: my shard; out: the full buffer, from all shards */
    SL_OP_REDUCE_SCATTER,    /* in: full gradient; acc: my shard of the sum in rank order */
    SL_OP_REDUCE_INPLACE,    /* acc: full gradient; my piece becomes the sum in rank order */
    SL_OP_ALLGATHER_INPLACE, /* acc: full buffer; the peers' pieces come from the peers */
    SL_OP_COMM_WAIT,         /* in: a buffer that peers were reading; after it they have finished */
    SL_OP_NORM_PART,         /* in: my shard of a gradient; dp: the full one, rank 0 does all pieces */
    SL_OP_NORM_MERGE,        /* publish losses and partials, meet, merge in one order */
    SL_OP_ADAMW,             /* in: gradient; acc: parameters, m, v, master (bf16 only) */
    SL_OP_STEP_END,          /* meet: parameters are new on all ranks */
    SL_OP_KINDS
};

enum { SL_MAX_IN = 5, SL_MAX_OUT = 3, SL_MAX_ACC = 4 };

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
    int barrier;    /* all ranks meet before the operation's own work */
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
    int64_t width;  /* last dimension: rows are n / width */
    enum sl_dtype type;
    int by_rank; /* the view starts rank * n further on: my piece of a full buffer */
    int param;   /* parameter id or -1 */
    int is_grad;
};

/* What a persistent buffer is for its unit; all graphs of a program share it by (unit, role). */
enum sl_role { SL_ROLE_NONE, SL_ROLE_PARAM, SL_ROLE_GRAD, SL_ROLE_MASTER, SL_ROLE_M, SL_ROLE_V };

struct sl_buffer {
    int64_t bytes, offset; /* bytes are a multiple of 64 */
    enum sl_cat cat;
    int persistent;  /* lives outside the operations: see persist.h, which places it */
    int unit;        /* persistent: whose */
    enum sl_role role;
    int rank0;       /* only rank 0 has it (dp's optimizer) */
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
    int frozen;      /* no gradient, never updated */
    int value, grad; /* tensors; grad -1 until autodiff, and for good if unused or frozen: then the
                        optimizer leaves it alone */
};

struct sl_unit {
    char name[32];   /* "embedding", "h.0", "head" */
    char prefix[32]; /* of its parameters' names: "h.0.", "" */
    int64_t n, shard; /* elements; shard * ranks >= n, shard a multiple of 64 bytes */
    int pfull, psh, gfull, gsh; /* tensors or -1: parameters and gradients, full and mine */
    int master, m, v;           /* optimizer: fp32 master copy (bf16 only) and moments */
};

/* All buffers together: no sum, product with a lifetime or total over the ranks can overflow. */
#define SL_MOST_BYTES ((int64_t)1 << 54)

struct sl_graph {
    struct sl_op *ops;
    struct sl_tensor *t;
    struct sl_buffer *b;
    struct sl_param *par;
    struct sl_unit *unit;
    int nops, nt, nb, npar, nunits;
    int room_ops, room_t, room_b, room_par, room_unit;
    int cur_unit, next_id;
    int64_t samples, context; /* rows = samples * context; row / context is the sample */
    int ids, targets; /* input tensors [rows] i32, filled before a micro-step; target -1: masked */
    int loss;         /* tensor [1] f32: the micro-step's share of the mean over the global batch */
    int nfwd;         /* operations before the first backward one */
    int opt_start;    /* operations from here run once per step */
    int ranks;
    int strategy;     /* enum sl_strategy */
    enum sl_dtype ptype; /* type of parameters, gradients and activations */
    int64_t arena, persistent, lower_bound;
    int64_t counted; /* bytes of all buffers: at most SL_MOST_BYTES */
    int peak_op;
    int64_t at_peak[SL_CATS];  /* sums to arena: holes are in workspace */
    int64_t cat_peak[SL_CATS]; /* each category's own highest */
    struct sl_op spare;        /* what sl_op_add lends when memory is out */
    struct sl_err err;
};

struct sl_graph *sl_graph_create(enum sl_dtype ptype, struct sl_err *err);
void sl_graph_destroy(struct sl_graph *g);
int sl_graph_error(const struct sl_graph *g, struct sl_err *err); /* 0, or -1 with the first error */

/*
 * For the passes. When memory is out they mark the graph failed and return an index (or an
 * operation) that is safe to use, so that a pass need only look at the end.
 */
int sl_graph_fail(struct sl_graph *g, enum sl_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));                      /* keeps the first; -1 */
int sl_buffer_add(struct sl_graph *g, int64_t bytes, enum sl_cat cat); /* rounded up to 64 */
int sl_tensor_add(struct sl_graph *g, int buf, int64_t off, int64_t n, enum sl_dtype type);
int sl_tensor_new(struct sl_graph *g, enum sl_cat cat, int64_t n, int64_t width,
                  enum sl_dtype type);                          /* on a buffer of its own */
int sl_unit_add(struct sl_graph *g);
int sl_param_slot(struct sl_graph *g);
struct sl_op *sl_op_add(struct sl_graph *g, enum sl_kind kind); /* appended, empty; id -1 */
void sl_op_push(struct sl_graph *g, const struct sl_op *op);    /* appended, a copy */

extern const char *const sl_cat_names[SL_CATS]; /* "parameters", "gradients", ... */
extern const char *const sl_kind_names[SL_OP_KINDS];

#endif
