#include "executor/graph/pack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

/* Tries of the local search: for the bound itself, and to come within 1/CLOSE of it. */
enum { RULES = 5, TRIES = 500, TRIES_FAR = 6000, CLOSE = 200 };
static const int64_t WORK = 200000000; /* comparisons that the local search may spend */

struct entry {
    int64_t key;
    int id;
};

struct pass {
    const struct sl_pack_item *item;
    int n, peak;
    struct entry *now, *best; /* orders */
    int64_t *off;
    int *placed; /* by offset */
};

static int by_key(const void *pa, const void *pb)
{
    const struct entry *a = pa, *b = pb;

    if (a->key != b->key)
        return a->key < b->key ? 1 : -1;
    return a->id - b->id;
}

/* In this order, each into the tightest gap beside what is placed and alive at the same time. */
static int64_t place(struct pass *p, const struct entry *v)
{
    int64_t top = 0;

    for (int i = 0; i < p->n; i++) {
        const struct sl_pack_item *b = &p->item[v[i].id];
        int64_t at = 0, best = -1, gap = INT64_MAX;
        int j;

        for (j = 0; j < i; j++) {
            const struct sl_pack_item *q = &p->item[p->placed[j]];
            int64_t o = p->off[p->placed[j]];
            if (q->last < b->first || b->last < q->first)
                continue;
            if (o - at >= b->bytes && o - at < gap) {
                gap = o - at;
                best = at;
            }
            if (o + q->bytes > at)
                at = o + q->bytes;
        }
        if (best < 0)
            best = at;
        p->off[v[i].id] = best;
        if (best + b->bytes > top)
            top = best + b->bytes;
        for (j = i; j > 0 && p->off[p->placed[j - 1]] > best; j--)
            p->placed[j] = p->placed[j - 1];
        p->placed[j] = v[i].id;
    }
    return top;
}

/* A time at which most bytes are alive. */
static int find_peak(const struct sl_pack_item *v, int n)
{
    int64_t most = -1;
    int at = 0;

    for (int i = 0; i < n; i++) {
        int64_t sum = 0;
        for (int k = 0; k < n; k++)
            if (v[k].first <= v[i].first && v[i].first <= v[k].last)
                sum += v[k].bytes;
        if (sum > most) {
            most = sum;
            at = v[i].first;
        }
    }
    return at;
}

static int64_t key(const struct sl_pack_item *b, int rule, int peak)
{
    int64_t len = b->last - b->first + 1;

    switch (rule) {
    case 0:
        return b->bytes;
    case 1:
        return len;
    case 2:
        return b->bytes / 64 * len;
    case 3: /* what lives at the peak first, long lives at the bottom */
        return b->first <= peak && peak <= b->last ? len + INT32_MAX : b->bytes / 64;
    default:
        return -b->first;
    }
}

static uint64_t draw(uint64_t *seed, uint64_t below)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (*seed >> 33) % below;
}

/* Move one item forward in the best order: now the one that reaches the top, now any. */
static int64_t search(struct pass *p, int64_t best, int64_t bound)
{
    int64_t cost = (int64_t)p->n * p->n, tries = cost ? WORK / cost : 0;
    size_t size = (size_t)p->n * sizeof *p->now;
    uint64_t seed = 1;

    for (int64_t k = 0; k < tries && best > bound; k++) {
        int from = (int)draw(&seed, (uint64_t)p->n), to;
        int64_t top;
        struct entry x;

        if (k >= (best - bound > bound / CLOSE ? TRIES_FAR : TRIES))
            break;
        memcpy(p->now, p->best, size);
        if (k % 2 == 0) {
            place(p, p->now);
            for (int i = 0; i < p->n; i++)
                if (p->off[p->now[i].id] + p->item[p->now[i].id].bytes == best)
                    from = i;
        }
        to = (int)draw(&seed, (uint64_t)from + 1);
        x = p->now[from];
        memmove(p->now + to + 1, p->now + to, (size_t)(from - to) * sizeof x);
        p->now[to] = x;
        top = place(p, p->now);
        if (top <= best) {
            best = top;
            memcpy(p->best, p->now, size);
        }
    }
    return best;
}

int64_t sl_pack(const struct sl_pack_item *item, int n, int64_t bound, int64_t *off,
                struct sl_err *err)
{
    struct pass p = {.item = item, .n = n, .off = off};
    int64_t best = INT64_MAX;

    p.now = sl_calloc((size_t)n + 1, sizeof *p.now);
    p.best = sl_calloc((size_t)n + 1, sizeof *p.best);
    p.placed = sl_calloc((size_t)n + 1, sizeof *p.placed);
    if (!p.now || !p.best || !p.placed) {
        sl_fail(err, SL_SYSTEM, "cannot pack %d buffers: %s", n, strerror(errno));
        best = -1;
        goto out;
    }
    p.peak = find_peak(item, n);
    for (int rule = 0; rule < RULES && best > bound; rule++) {
        int64_t top;

        for (int i = 0; i < n; i++)
            p.now[i] = (struct entry){key(&item[i], rule, p.peak), i};
        qsort(p.now, (size_t)n, sizeof *p.now, by_key);
        top = place(&p, p.now);
        if (top < best) {
            best = top;
            memcpy(p.best, p.now, (size_t)n * sizeof *p.now);
        }
    }
    search(&p, best, bound);
    best = place(&p, p.best);
out:
    free(p.now);
    free(p.best);
    free(p.placed);
    return best;
}
