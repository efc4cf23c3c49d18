#include "store/rollup.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "store/internal.h"

struct bucket {
    int64_t index, count;
    double min, max, sum;
};

/* The open buckets of one series, one a level. */
struct series {
    int64_t rank, name;
    struct bucket level[SL_LEVELS];
};

struct sl_rollup {
    struct sl_store *st;
    int64_t job, attempt;
    struct series *v;
    int64_t n, room;
    int64_t last; /* where the last one was found: callers go round in the same order */
};

struct sl_rollup *sl_rollup_create(struct sl_store *st, int64_t job, int64_t attempt,
                                   struct sl_err *err)
{
    struct sl_rollup *r = sl_calloc(1, sizeof *r);

    if (!r) {
        sl_fail(err, SL_SYSTEM, "cannot hold roll-ups: %s", strerror(errno));
        return NULL;
    }
    r->st = st;
    r->job = job;
    r->attempt = attempt;
    return r;
}

void sl_rollup_destroy(struct sl_rollup *r)
{
    if (!r)
        return;
    free(r->v);
    free(r);
}

static struct series *find(struct sl_rollup *r, int64_t rank, int64_t name, struct sl_err *err)
{
    struct series *s;

    for (int64_t i = 0; i < r->n; i++) {
        int64_t at = (r->last + 1 + i) % r->n;

        if (r->v[at].rank == rank && r->v[at].name == name) {
            r->last = at;
            return &r->v[at];
        }
    }
    if (r->n == r->room) {
        int64_t room = r->room ? 2 * r->room : 32;

        s = sl_resize(r->v, (size_t)room, sizeof *s);
        if (!s) {
            sl_fail(err, SL_SYSTEM, "cannot hold roll-ups: %s", strerror(errno));
            return NULL;
        }
        r->v = s;
        r->room = room;
    }
    r->last = r->n;
    s = &r->v[r->n++];
    memset(s, 0, sizeof *s);
    s->rank = rank;
    s->name = name;
    return s;
}

static int write(struct sl_rollup *r, const struct series *s, int level, struct sl_err *err)
{
    const struct bucket *b = &s->level[level];

    return sl_db_run(r->st->db, err,
                     "INSERT INTO rollup (job, attempt, rank, name, width, bucket, count, min, max,"
                     " sum) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
                     " ON CONFLICT DO UPDATE SET count = count + excluded.count,"
                     " min = min(min, excluded.min), max = max(max, excluded.max),"
                     " sum = coalesce(sum + excluded.sum, 0)", /* inf - inf is NULL */
                     "iiiiiiiddd", r->job, r->attempt, s->rank, s->name, sl_level_width[level],
                     b->index, b->count, b->min, b->max, b->sum)
                   < 0
               ? -1
               : 0;
}

int sl_rollup_add(struct sl_rollup *r, int64_t rank, int64_t name, int64_t step, double value,
                  struct sl_err *err)
{
    struct series *s;

    if (!isfinite(value) || step < 1)
        return 0;
    if (!(s = find(r, rank, name, err)))
        return -1;
    for (int i = 0; i < SL_LEVELS; i++) {
        struct bucket *b = &s->level[i];
        int64_t index = (step - 1) / sl_level_width[i];

        if (b->count && b->index != index) {
            if (write(r, s, i, err))
                return -1;
            b->count = 0;
        }
        if (!b->count)
            *b = (struct bucket){index, 0, value, value, 0};
        b->count++;
        b->min = fmin(b->min, value);
        b->max = fmax(b->max, value);
        b->sum = fmax(-DBL_MAX, fmin(DBL_MAX, b->sum + value));
    }
    return 0;
}

int sl_rollup_flush(struct sl_rollup *r, struct sl_err *err)
{
    for (int64_t i = 0; i < r->n; i++)
        for (int k = 0; k < SL_LEVELS; k++) {
            if (!r->v[i].level[k].count)
                continue;
            if (write(r, &r->v[i], k, err))
                return -1;
            r->v[i].level[k].count = 0;
        }
    return 0;
}

void sl_rollup_forget(struct sl_rollup *r)
{
    for (int64_t i = 0; i < r->n; i++)
        for (int k = 0; k < SL_LEVELS; k++)
            r->v[i].level[k].count = 0;
}
