/*
 * gpt.c - GPT-2: embedding and positions, pre-norm blocks, a final norm and an output layer
 *
 * Parameters bear the names of Hugging Face's GPT-2, but a linear layer's weight is [out, in], the
 * transpose of its Conv1D. Initialisation is GPT-2's: matrices normal with deviation 0.02, those
 * that write into the residual stream with 0.02 / sqrt(2 layers), biases 0, gains 1. Weight decay
 * applies to matrices only, the embeddings included. Dropout follows the embedding and both
 * branches of a block; the attention's own weights have none, as they are never stored. The
 * final norm belongs to the head's unit: a unit of two vectors would be mostly padding.
 *
 * Source: Radford et al., Language Models are Unsupervised Multitask Learners, 2019, section 2.3.
 */
#include "executor/models/models.h"

#include <math.h>
#include <stdio.h>

#include "executor/graph/build.h"

static int block(struct sl_graph *g, const struct sl_model_spec *s, int64_t layer, double p, int x)
{
    double out = 0.02 / sqrt(2.0 * (double)s->layers);
    int64_t ffn = s->ffn_width > 0 ? s->ffn_width : 4 * s->width;
    char name[24], prefix[32];
    int h;

    snprintf(name, sizeof name, "h.%d", (int)layer);
    snprintf(prefix, sizeof prefix, "%s.", name);
    sl_unit_begin(g, name, prefix);
    h = sl_layernorm(g, x, "ln_1");
    h = sl_linear(g, h, 3 * s->width, "attn.c_attn", 0.02);
    h = sl_attention(g, h, s->heads, "attn");
    h = sl_linear(g, h, s->width, "attn.c_proj", out);
    h = sl_dropout(g, h, p, "attn.dropout");
    x = sl_add(g, x, h, "attn");
    h = sl_layernorm(g, x, "ln_2");
    h = sl_linear(g, h, ffn, "mlp.c_fc", 0.02);
    h = sl_gelu(g, h);
    h = sl_linear(g, h, s->width, "mlp.c_proj", out);
    h = sl_dropout(g, h, p, "mlp.dropout");
    return sl_add(g, x, h, "mlp");
}

static int describe(struct sl_graph *g, const struct sl_model_spec *s,
                    const struct sl_model_shape *shape)
{
    double p = shape->training ? s->dropout : 0;
    int wte, wpe, x;

    if (s->layers < 1 || s->layers > 100000 || s->width < 1)
        return sl_graph_fail(g, SL_USAGE, "a gpt of %lld layers of width %lld",
                             (long long)s->layers, (long long)s->width);
    sl_inputs(g, shape->samples, s->context);
    sl_unit_begin(g, "embedding", "");
    wte = sl_weight(g, "wte", shape->vocab, s->width, 0.02);
    wpe = sl_weight(g, "wpe", s->context, s->width, 0.02);
    x = sl_embed(g, wte, "wte");
    x = sl_position(g, x, wpe, "wpe");
    x = sl_dropout(g, x, p, "drop");
    for (int64_t l = 0; l < s->layers; l++)
        x = block(g, s, l, p, x);
    sl_unit_begin(g, "head", "");
    x = sl_layernorm(g, x, "ln_f");
    if (!s->tie_embeddings)
        wte = sl_weight(g, "lm_head", shape->vocab, s->width, 0.02);
    sl_head(g, x, wte, "lm_head");
    return g->err.code ? -1 : 0;
}

const struct sl_model sl_model_gpt = {.kind = "gpt", .item = "token", .describe = describe};
