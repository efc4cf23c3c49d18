/* layout.c - the pieces of a rank */
#include "executor/checkpoint/layout.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "executor/checkpoint/safetensors.h"
#include "executor/optimizer.h"

const char *const sl_ckpt_kind_names[SL_CKPT_KINDS] = {"param", "m", "v"};

int64_t sl_ckpt_chunks(int64_t bytes)
{
    return (bytes + SL_CKPT_CHUNK - 1) / SL_CKPT_CHUNK;
}

struct sl_ckpt_part sl_ckpt_part(const struct sl_graph *g, int rank, int u, enum sl_ckpt_kind kind)
{
    const struct sl_unit *un = &g->unit[u];
    int t = kind == SL_CKPT_M   ? un->m
            : kind == SL_CKPT_V ? un->v
            : un->master >= 0   ? un->master
                                : un->psh;
    struct sl_ckpt_part p = {.tensor = t, .first = rank * un->shard, .n = un->shard};

    if (t < 0)
        p.n = 0;
    else if (g->b[g->t[t].buf].rank0)
        p = (struct sl_ckpt_part){.tensor = t, .n = rank ? 0 : g->t[t].n};
    else if (g->t[t].n > un->shard)
        p.at = p.first;
    return p;
}

static struct sl_ckpt_piece *add(struct sl_ckpt_layout *l, int *room)
{
    if (l->n == *room) {
        int more = *room ? 2 * *room : 64;
        struct sl_ckpt_piece *v = sl_resize(l->v, (size_t)more, sizeof *v);

        if (!v)
            return NULL;
        l->v = v;
        *room = more;
    }
    return &l->v[l->n++];
}

static int add_unit(struct sl_ckpt_layout *l, int *room, const struct sl_graph *g, int rank, int u,
                    enum sl_ckpt_kind kind)
{
    struct sl_ckpt_part p = sl_ckpt_part(g, rank, u, kind);
    int64_t a, b;

    for (int i = 0; (i = sl_params_in(g, u, p.first, p.first + p.n, i, &a, &b)) >= 0; i++) {
        struct sl_ckpt_piece *it = add(l, room);

        if (!it)
            return -1;
        *it = (struct sl_ckpt_piece){.kind = kind,
                                     .param = i,
                                     .lo = a - g->par[i].off,
                                     .n = b - a,
                                     .tensor = p.tensor,
                                     .at = p.at + a - p.first};
    }
    return 0;
}

static void header(struct sl_ckpt_layout *l, const struct sl_graph *g)
{
    struct sl_safetensors_writer w;
    int64_t off;

    sl_safetensors_begin(&w, &l->head);
    for (int i = 0; i < l->n; i++) {
        char name[160];
        const struct sl_ckpt_piece *p = &l->v[i];
        struct sl_safetensors_entry e = {
            .name = name, .type = SL_F32, .dims = 1, .shape = {p->n}};

        snprintf(name, sizeof name, "%s@%s+%lld", sl_ckpt_kind_names[p->kind],
                 g->par[p->param].name, (long long)p->lo);
        sl_safetensors_add(&w, &e);
    }
    sl_safetensors_end(&w);
    off = (int64_t)l->head.len;
    for (int i = 0; i < l->n; i++) {
        l->v[i].off = off;
        off += 4 * l->v[i].n;
    }
    l->bytes = off;
}

int sl_ckpt_layout_init(struct sl_ckpt_layout *l, const struct sl_graph *train, int rank,
                        struct sl_err *err)
{
    int room = 0;

    *l = (struct sl_ckpt_layout){.n = 0};
    sl_buf_init(&l->head, SL_SAFETENSORS_HEADER);
    for (int k = 0; k < SL_CKPT_KINDS; k++)
        for (int u = 0; u < train->nunits; u++)
            if (add_unit(l, &room, train, rank, u, (enum sl_ckpt_kind)k)) {
                sl_fail(err, SL_SYSTEM, "cannot hold a checkpoint's layout: %s", strerror(errno));
                goto fail;
            }
    header(l, train);
    if (!sl_buf_check(&l->head, err))
        return 0;
fail:
    sl_ckpt_layout_fini(l);
    return -1;
}

void sl_ckpt_layout_fini(struct sl_ckpt_layout *l)
{
    free(l->v);
    l->v = NULL;
    l->n = 0;
    sl_buf_fini(&l->head);
}
