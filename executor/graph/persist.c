#include "executor/graph/persist.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

struct entry {
    int unit, rank0;
    enum sl_role role;
    enum sl_cat cat;
    int64_t bytes, offset;
};

struct sl_persist {
    struct entry *v;
    int n, room;
    int64_t bytes; /* of what all ranks have */
};

struct sl_persist *sl_persist_create(struct sl_err *err)
{
    struct sl_persist *s = sl_calloc(1, sizeof *s);

    if (!s)
        sl_fail(err, SL_SYSTEM, "cannot hold the persistent buffers: %s", strerror(errno));
    return s;
}

void sl_persist_destroy(struct sl_persist *s)
{
    if (!s)
        return;
    free(s->v);
    free(s);
}

static struct entry *find(const struct sl_persist *s, int unit, enum sl_role role)
{
    for (int i = 0; i < s->n; i++)
        if (s->v[i].unit == unit && s->v[i].role == role)
            return &s->v[i];
    return NULL;
}

static int order(const void *pa, const void *pb)
{
    const struct entry *a = pa, *b = pb;

    if (a->role != b->role)
        return a->role < b->role ? -1 : 1;
    return (a->unit > b->unit) - (a->unit < b->unit);
}

int sl_persist_add(struct sl_persist *s, const struct sl_graph *g, struct sl_err *err)
{
    for (int i = 0; i < g->nb; i++) {
        const struct sl_buffer *b = &g->b[i];

        if (!b->persistent || find(s, b->unit, b->role))
            continue;
        if (s->n == s->room) {
            int room = s->room ? 2 * s->room : 64;
            struct entry *v = sl_resize(s->v, (size_t)room, sizeof *v);
            if (!v)
                return sl_fail(err, SL_SYSTEM, "cannot hold the persistent buffers: %s",
                               strerror(errno));
            s->v = v;
            s->room = room;
        }
        s->v[s->n++] = (struct entry){b->unit, b->rank0, b->role, b->cat, b->bytes, -1};
    }
    if (s->n)
        qsort(s->v, (size_t)s->n, sizeof *s->v, order);
    s->bytes = 0;
    for (int i = 0; i < s->n; i++) {
        if (s->v[i].rank0)
            continue;
        s->v[i].offset = s->bytes;
        s->bytes += s->v[i].bytes;
    }
    return 0;
}

int64_t sl_persist_bytes(const struct sl_persist *s)
{
    return s->bytes;
}

int64_t sl_persist_cat(const struct sl_persist *s, enum sl_cat cat, int rank0)
{
    int64_t sum = 0;

    for (int i = 0; i < s->n; i++)
        if (s->v[i].cat == cat && s->v[i].rank0 == !!rank0)
            sum += s->v[i].bytes;
    return sum;
}

int64_t sl_persist_tail(struct sl_persist *s, int64_t at)
{
    for (int i = 0; i < s->n; i++) {
        if (!s->v[i].rank0)
            continue;
        s->v[i].offset = at;
        at += s->v[i].bytes;
    }
    return at;
}

int sl_persist_bind(const struct sl_persist *s, struct sl_graph *g)
{
    for (int i = 0; i < g->nb; i++) {
        struct sl_buffer *b = &g->b[i];
        const struct entry *e;

        if (!b->persistent)
            continue;
        e = find(s, b->unit, b->role);
        if (!e || e->bytes != b->bytes || e->cat != b->cat)
            return sl_graph_fail(g, SL_BUG, "a graph of the set has other buffers for unit \"%s\"",
                                 g->unit[b->unit].name);
        b->offset = e->offset;
    }
    return 0;
}
