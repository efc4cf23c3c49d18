#ifndef SL_BUILD_H
#define SL_BUILD_H

/*
 * build.h - the words in which a model describes itself
 *
 * Each call appends one operation (with its parameters) to the graph and returns its result: a
 * tensor of static shape [rows, width]. Nothing runs. A wrong shape marks the graph failed with a
 * message that names the layer, and returns -1; calls on -1 do nothing; so a model looks at
 * sl_graph_error() once, at its end. A model does not know of ranks, strategies or precision.
 *
 *     sl_inputs(g, samples, context);
 *     sl_unit_begin(g, "embedding", "");
 *     wte = sl_weight(g, "wte", vocab, width, 0.02);
 *     x = sl_embed(g, wte, "wte");
 *     sl_unit_begin(g, "h.0", "h.0.");
 *     h = sl_layernorm(g, x, "ln_1");
 *     h = sl_linear(g, h, 4 * width, "mlp.c_fc", 0.02);
 */

#include "executor/graph/graph.h"

/* Token ids and targets [samples * context] i32; once, before anything else. */
int sl_inputs(struct sl_graph *g, int64_t samples, int64_t context);

/*
 * Begin a unit, the grain of sharding: what follows is described in it and its parameters belong to
 * it. `prefix` stands before its layers' names. Returns the unit's index.
 */
int sl_unit_begin(struct sl_graph *g, const char *name, const char *prefix);

/*
 * A parameter of the current unit, named prefix + name, e.g. "mlp.c_fc.bias": [d0], or [d0, d1]
 * where d1 > 0. `scale`: standard deviation of a normal init. Every parameter starts on a 64-byte
 * line of the unit's flat buffer (32 in bf16).
 */
int sl_param(struct sl_graph *g, const char *name, int64_t d0, int64_t d1, enum sl_init init,
             double scale, int decay);
/* A matrix "layer.weight", normal, with weight decay: an embedding, or an untied head. */
int sl_weight(struct sl_graph *g, const char *layer, int64_t rows, int64_t cols, double scale);
/* No gradient for this parameter, and no update. */
void sl_freeze(struct sl_graph *g, int param);

int sl_embed(struct sl_graph *g, int w, const char *layer);               /* y = w[ids] */
int sl_position(struct sl_graph *g, int x, int w, const char *layer);     /* y = x + w[row % context] */
int sl_layernorm(struct sl_graph *g, int x, const char *layer);           /* gain 1, bias 0, eps 1e-5 */
int sl_linear(struct sl_graph *g, int x, int64_t out, const char *layer, double scale);
int sl_gelu(struct sl_graph *g, int x);                                   /* tanh form */
int sl_add(struct sl_graph *g, int a, int b, const char *layer);
int sl_dropout(struct sl_graph *g, int x, double p, const char *layer);   /* p = 0: x itself */
int sl_attention(struct sl_graph *g, int qkv, int64_t heads, const char *layer); /* causal */
/* Output layer and cross-entropy against the targets; sets g->loss and returns it. */
int sl_head(struct sl_graph *g, int x, int w, const char *layer);

#endif
