#include "executor/graph/build.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *prefix(const struct sl_graph *g)
{
    return g->cur_unit >= 0 ? g->unit[g->cur_unit].prefix : "";
}

/* The first mistake sticks, and says in which layer it was made. */
static int wrong(struct sl_graph *g, const char *layer, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static int wrong(struct sl_graph *g, const char *layer, const char *fmt, ...)
{
    char text[160];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return sl_graph_fail(g, SL_USAGE, "layer \"%s%s\": %s", prefix(g), layer, text);
}

static int64_t rows(const struct sl_graph *g, int t)
{
    return g->t[t].n / g->t[t].width;
}

static int is_matrix(struct sl_graph *g, int w)
{
    return w >= 0 && g->t[w].param >= 0 && g->par[g->t[w].param].dim[1] > 0;
}

/* An operation of the description: the only ones that draw a new id. */
static struct sl_op *described(struct sl_graph *g, enum sl_kind kind)
{
    struct sl_op *o = sl_op_add(g, kind);

    o->id = g->next_id++;
    return o;
}

static int activation(struct sl_graph *g, int64_t n, int64_t width)
{
    return sl_tensor_new(g, SL_CAT_ACTIVATIONS, n, width, g->ptype);
}

int sl_inputs(struct sl_graph *g, int64_t samples, int64_t context)
{
    if (g->err.code)
        return -1;
    if (samples < 1 || context < 1)
        return sl_graph_fail(g, SL_USAGE, "a micro-batch of %lld samples of %lld tokens",
                             (long long)samples, (long long)context);
    if (context > INT32_MAX / samples)
        return sl_graph_fail(g, SL_USAGE, "a micro-batch of %lld samples of %lld tokens is more than "
                             "%d tokens", (long long)samples, (long long)context, INT32_MAX);
    if (g->ids >= 0)
        return sl_graph_fail(g, SL_BUG, "a model describes its inputs twice");
    g->samples = samples;
    g->context = context;
    g->ids = sl_tensor_new(g, SL_CAT_WORKSPACE, samples * context, 1, SL_I32);
    g->targets = sl_tensor_new(g, SL_CAT_WORKSPACE, samples * context, 1, SL_I32);
    return g->err.code ? -1 : 0;
}

int sl_unit_begin(struct sl_graph *g, const char *name, const char *pre)
{
    struct sl_unit *u;
    int id;

    if (g->err.code)
        return -1;
    if (strlen(name) >= sizeof u->name || strlen(pre) >= sizeof u->prefix)
        return sl_graph_fail(g, SL_BUG, "the name of unit \"%s\" is too long", name);
    id = sl_unit_add(g);
    u = &g->unit[id];
    strcpy(u->name, name);
    strcpy(u->prefix, pre);
    return g->cur_unit = id;
}

int sl_param(struct sl_graph *g, const char *name, int64_t d0, int64_t d1, enum sl_init init,
             double scale, int decay)
{
    struct sl_param *p;
    int64_t n = d0 * (d1 > 0 ? d1 : 1);
    int id;

    if (g->err.code)
        return -1;
    if (g->cur_unit < 0)
        return wrong(g, name, "a parameter outside any unit");
    if (d0 < 1 || d1 < 0 || d0 > INT32_MAX || d1 > INT32_MAX)
        return wrong(g, name, "a parameter of shape %lld x %lld", (long long)d0, (long long)d1);
    if (strlen(prefix(g)) + strlen(name) >= sizeof p->name)
        return wrong(g, name, "the name is too long");
    id = sl_param_slot(g);
    p = &g->par[id];
    snprintf(p->name, sizeof p->name, "%s%s", prefix(g), name);
    for (int i = 0; i < id; i++)
        if (!strcmp(g->par[i].name, p->name))
            return wrong(g, name, "a second parameter of this name");
    p->dim[0] = d0;
    p->dim[1] = d1;
    p->unit = g->cur_unit;
    p->off = g->unit[g->cur_unit].n;
    p->n = n;
    p->init = init;
    p->scale = scale;
    p->decay = decay;
    g->unit[g->cur_unit].n += (n + 15) & ~(int64_t)15;
    p->value = sl_tensor_add(g, -1, p->off, n, g->ptype);
    g->t[p->value].param = id;
    g->t[p->value].width = d1 > 0 ? d1 : d0;
    return p->value;
}

static int part(struct sl_graph *g, const char *layer, const char *what, int64_t d0, int64_t d1,
                enum sl_init init, double scale)
{
    char name[64];

    if (snprintf(name, sizeof name, "%s.%s", layer, what) >= (int)sizeof name)
        return wrong(g, layer, "the name is too long");
    return sl_param(g, name, d0, d1, init, scale, d1 > 0);
}

int sl_weight(struct sl_graph *g, const char *layer, int64_t nrows, int64_t cols, double scale)
{
    if (!g->err.code && cols < 1)
        return wrong(g, layer, "a matrix of %lld x %lld", (long long)nrows, (long long)cols);
    return part(g, layer, "weight", nrows, cols, SL_INIT_NORMAL, scale);
}

void sl_freeze(struct sl_graph *g, int param)
{
    if (param >= 0 && g->t[param].param >= 0)
        g->par[g->t[param].param].frozen = 1;
}

int sl_embed(struct sl_graph *g, int w, const char *layer)
{
    struct sl_op *o;
    int64_t n, width;
    int y;

    if (g->err.code || w < 0)
        return -1;
    if (g->ids < 0)
        return wrong(g, layer, "an embedding before the inputs");
    if (!is_matrix(g, w))
        return wrong(g, layer, "an embedding needs a matrix [vocabulary, width]");
    n = g->samples * g->context;
    width = g->t[w].width;
    y = activation(g, n * width, width);
    o = described(g, SL_OP_EMBED);
    o->in[0] = w;
    o->in[1] = g->ids;
    o->out[0] = y;
    o->a.rows = n;
    o->a.width = width;
    o->a.vocab = g->t[w].n / width;
    return y;
}

int sl_position(struct sl_graph *g, int x, int w, const char *layer)
{
    struct sl_op *o;
    int y;

    if (g->err.code || x < 0 || w < 0)
        return -1;
    if (!is_matrix(g, w) || g->t[w].width != g->t[x].width || rows(g, w) != g->context)
        return wrong(g, layer, "positions of %lld x %lld for samples of %lld x %lld",
                     (long long)rows(g, w), (long long)g->t[w].width, (long long)g->context,
                     (long long)g->t[x].width);
    y = activation(g, g->t[x].n, g->t[x].width);
    o = described(g, SL_OP_POSITION);
    o->in[0] = w;
    o->in[1] = x;
    o->out[0] = y;
    o->a.rows = rows(g, x);
    o->a.width = g->t[x].width;
    o->a.context = g->context;
    return y;
}

int sl_layernorm(struct sl_graph *g, int x, const char *layer)
{
    struct sl_op *o;
    int64_t width, n;
    int gain, bias, y, stat;

    if (g->err.code || x < 0)
        return -1;
    width = g->t[x].width;
    n = rows(g, x);
    gain = part(g, layer, "weight", width, 0, SL_INIT_ONE, 0);
    bias = part(g, layer, "bias", width, 0, SL_INIT_ZERO, 0);
    if (gain < 0 || bias < 0)
        return -1;
    y = activation(g, n * width, width);
    stat = sl_tensor_new(g, SL_CAT_ACTIVATIONS, n * 2, 2, SL_F32);
    o = described(g, SL_OP_LAYERNORM);
    o->in[0] = x;
    o->in[1] = gain;
    o->in[2] = bias;
    o->out[0] = y;
    o->out[1] = stat;
    o->a.rows = n;
    o->a.width = width;
    return y;
}

int sl_linear(struct sl_graph *g, int x, int64_t out, const char *layer, double scale)
{
    struct sl_op *o;
    int64_t n, inner;
    int w, b, y;

    if (g->err.code || x < 0)
        return -1;
    if (out < 1)
        return wrong(g, layer, "a linear layer from %lld to %lld", (long long)g->t[x].width,
                     (long long)out);
    n = rows(g, x);
    inner = g->t[x].width;
    w = part(g, layer, "weight", out, inner, SL_INIT_NORMAL, scale);
    b = part(g, layer, "bias", out, 0, SL_INIT_ZERO, 0);
    if (w < 0 || b < 0)
        return -1;
    y = activation(g, n * out, out);
    o = described(g, SL_OP_LINEAR);
    o->in[0] = x;
    o->in[1] = w;
    o->in[2] = b;
    o->out[0] = y;
    o->a.rows = n;
    o->a.inner = inner;
    o->a.outer = out;
    return y;
}

int sl_gelu(struct sl_graph *g, int x)
{
    struct sl_op *o;
    int y;

    if (g->err.code || x < 0)
        return -1;
    y = activation(g, g->t[x].n, g->t[x].width);
    o = described(g, SL_OP_GELU);
    o->in[0] = x;
    o->out[0] = y;
    o->a.n = g->t[x].n;
    return y;
}

int sl_add(struct sl_graph *g, int a, int b, const char *layer)
{
    struct sl_op *o;
    int y;

    if (g->err.code || a < 0 || b < 0)
        return -1;
    if (g->t[a].n != g->t[b].n || g->t[a].width != g->t[b].width)
        return wrong(g, layer, "a sum of %lld x %lld and %lld x %lld", (long long)rows(g, a),
                     (long long)g->t[a].width, (long long)rows(g, b), (long long)g->t[b].width);
    y = activation(g, g->t[a].n, g->t[a].width);
    o = described(g, SL_OP_ADD);
    o->in[0] = a;
    o->in[1] = b;
    o->out[0] = y;
    o->a.n = g->t[a].n;
    return y;
}

int sl_dropout(struct sl_graph *g, int x, double p, const char *layer)
{
    struct sl_op *o;
    int y;

    if (g->err.code || x < 0)
        return -1;
    if (!(p >= 0 && p < 1))
        return wrong(g, layer, "a dropout of %g: it must be at least 0 and below 1", p);
    if (p == 0) {
        g->next_id++; /* ids name the place in the description, with and without dropout */
        return x;
    }
    y = activation(g, g->t[x].n, g->t[x].width);
    o = described(g, SL_OP_DROPOUT);
    o->in[0] = x;
    o->out[0] = y;
    o->a.n = g->t[x].n;
    o->a.rows = rows(g, x);
    o->a.width = g->t[x].width;
    o->a.context = g->context;
    o->a.p = p;
    return y;
}

int sl_attention(struct sl_graph *g, int qkv, int64_t heads, const char *layer)
{
    struct sl_op *o;
    int64_t n, width;
    int y, lse;

    if (g->err.code || qkv < 0)
        return -1;
    width = g->t[qkv].width / 3;
    if (g->t[qkv].width % 3)
        return wrong(g, layer, "attention on a width of %lld, which is not query, key and value",
                     (long long)g->t[qkv].width);
    if (heads < 1 || width % heads)
        return wrong(g, layer, "%lld heads do not divide a width of %lld", (long long)heads,
                     (long long)width);
    n = rows(g, qkv);
    y = activation(g, n * width, width);
    lse = sl_tensor_new(g, SL_CAT_ACTIVATIONS, n * heads, heads, SL_F32);
    o = described(g, SL_OP_ATTENTION);
    o->in[0] = qkv;
    o->out[0] = y;
    o->out[1] = lse;
    o->a.rows = n;
    o->a.width = width;
    o->a.heads = heads;
    o->a.context = g->context;
    return y;
}

int sl_head(struct sl_graph *g, int x, int w, const char *layer)
{
    struct sl_op *o;

    if (g->err.code || x < 0 || w < 0)
        return -1;
    if (!is_matrix(g, w) || g->t[w].width != g->t[x].width)
        return wrong(g, layer, "an output layer of width %lld for %lld", (long long)g->t[w].width,
                     (long long)g->t[x].width);
    if (g->loss >= 0)
        return wrong(g, layer, "a second output layer");
    g->loss = sl_tensor_new(g, SL_CAT_ACTIVATIONS, 1, 1, SL_F32);
    o = described(g, SL_OP_HEAD);
    o->in[0] = x;
    o->in[1] = w;
    o->in[2] = g->targets;
    o->out[0] = g->loss;
    o->a.rows = rows(g, x);
    o->a.width = g->t[x].width;
    o->a.vocab = g->t[w].n / g->t[w].width;
    return g->loss;
}
