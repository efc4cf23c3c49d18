#include "store/series.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "store/internal.h"

static const struct {
    const char *name, *rows;
} sampled[SL_SAMPLE_SERIES] = {
#define SAMPLED(name, value)                                                                       \
    {                                                                                              \
        name, "SELECT step, " value " FROM sample WHERE job = ? AND attempt = ? AND rank = ?"      \
              " AND step BETWEEN ? AND ? ORDER BY step"                                            \
    }
    SAMPLED("units_per_second", "CASE WHEN step_ms > 0 THEN units * 1000.0 / step_ms END"),
    SAMPLED("step_ms", "step_ms"),
    SAMPLED("comm_ms", "comm_ms"),
    SAMPLED("data_ms", "data_ms"),
    SAMPLED("loss", "loss"),
#undef SAMPLED
};

int sl_series_per_rank(const char *metric)
{
    for (int i = 0; i < SL_SAMPLE_SERIES; i++)
        if (!strcmp(sampled[i].name, metric))
            return 1;
    return 0;
}

void sl_series_fini(struct sl_series *s)
{
    free(s->v);
    memset(s, 0, sizeof *s);
}

/* The id of the metric; 0: nobody ever measured such a thing, -1: failed. */
static int64_t find_name(struct sl_store *st, const char *metric, struct sl_err *err)
{
    sqlite3_stmt *s
        = sl_db_query(st->db, err, "SELECT id FROM metric_name WHERE name = ?", "s", metric);
    int rc = s ? sl_db_step(st->db, s, err) : -1;
    int64_t id = rc == 1 ? sqlite3_column_int64(s, 0) : rc;

    sl_db_done(s);
    return id;
}

/* The first and last step there are; 0, 0 when there are none. Two seeks in the primary key. */
static int find_range(struct sl_store *st, const struct sl_series_query *q, int64_t name,
                      int64_t *first, int64_t *last, struct sl_err *err)
{
    int64_t third = q->rank >= 0 ? q->rank : name;
    const char *lo = q->rank >= 0 ? "SELECT step FROM sample WHERE job = ? AND attempt = ?"
                                    " AND rank = ? ORDER BY step LIMIT 1"
                                  : "SELECT step FROM metric WHERE job = ? AND attempt = ?"
                                    " AND name = ? ORDER BY step LIMIT 1";
    const char *hi = q->rank >= 0 ? "SELECT step FROM sample WHERE job = ? AND attempt = ?"
                                    " AND rank = ? ORDER BY step DESC LIMIT 1"
                                  : "SELECT step FROM metric WHERE job = ? AND attempt = ?"
                                    " AND name = ? ORDER BY step DESC LIMIT 1";
    const char *sql[2] = {lo, hi};
    int64_t *ret[2] = {first, last};

    for (int i = 0; i < 2; i++) {
        sqlite3_stmt *s = sl_db_query(st->db, err, sql[i], "iii", q->job, q->attempt, third);
        int rc = s ? sl_db_step(st->db, s, err) : -1;

        if (rc < 0)
            return -1;
        *ret[i] = rc ? sqlite3_column_int64(s, 0) : 0;
        sl_db_done(s);
    }
    return 0;
}

static int64_t buckets(int64_t first, int64_t last, int64_t width)
{
    return (last - 1) / width - (first - 1) / width + 1;
}

/* The least width, from q->width on, that needs no more than `points` buckets and is made of whole
 * roll-ups; their width, or 1 for the rows themselves, is *grain. */
static int64_t choose(int64_t first, int64_t last, const struct sl_series_query *q, int64_t *grain)
{
    int64_t points = q->points ? q->points : SL_SERIES_POINTS;
    int64_t width = (last - first) / points + 1;

    if (width < q->width)
        width = q->width;

    while (buckets(first, last, width) > points)
        width++;
    *grain = 1;
    for (int i = 0; i < SL_LEVELS; i++)
        if (sl_level_width[i] <= width)
            *grain = sl_level_width[i];
    return (width + *grain - 1) / *grain * *grain;
}

/* Put a row, or a roll-up of several, into the last bucket or the next one. */
static void add(struct sl_series *r, int64_t step, int64_t count, double min, double max,
                double sum)
{
    int64_t first = (step - 1) / r->width * r->width + 1;
    struct sl_point *p = r->n ? &r->v[r->n - 1] : NULL;

    if (!p || p->step != first) {
        p = &r->v[r->n++];
        *p = (struct sl_point){first, 0, min, max, 0};
    }
    p->count += count;
    p->sum += sum;
    if (min < p->min)
        p->min = min;
    if (max > p->max)
        p->max = max;
}

static int read_rows(struct sl_store *st, const struct sl_series_query *q, int64_t name,
                     int64_t first, int64_t last, struct sl_series *r, struct sl_err *err)
{
    sqlite3_stmt *s;
    int rc;

    if (q->rank >= 0)
        s = sl_db_query(st->db, err, sampled[name - 1].rows, "iiiii", q->job, q->attempt, q->rank,
                        first, last);
    else
        s = sl_db_query(st->db, err,
                        "SELECT step, value FROM metric WHERE job = ? AND attempt = ?"
                        " AND name = ? AND step BETWEEN ? AND ? ORDER BY step",
                        "iiiii", q->job, q->attempt, name, first, last);
    if (!s)
        return -1;
    while ((rc = sl_db_step(st->db, s, err)) == 1) {
        double x = sqlite3_column_double(s, 1);

        r->rows++;
        if (sqlite3_column_type(s, 1) != SQLITE_NULL)
            add(r, sqlite3_column_int64(s, 0), 1, x, x, x);
    }
    return rc;
}

static int read_rollups(struct sl_store *st, const struct sl_series_query *q, int64_t name,
                        int64_t grain, int64_t first, int64_t last, struct sl_series *r,
                        struct sl_err *err)
{
    sqlite3_stmt *s = sl_db_query(st->db, err,
                                  "SELECT bucket, count, min, max, sum FROM rollup WHERE job = ?"
                                  " AND attempt = ? AND rank = ? AND name = ? AND width = ?"
                                  " AND bucket BETWEEN ? AND ? ORDER BY bucket",
                                  "iiiiiii", q->job, q->attempt, q->rank, name, grain,
                                  (first - 1) / grain, (last - 1) / grain);
    int rc;

    if (!s)
        return -1;
    while ((rc = sl_db_step(st->db, s, err)) == 1) {
        r->rows++;
        add(r, sqlite3_column_int64(s, 0) * grain + 1, sqlite3_column_int64(s, 1),
            sqlite3_column_double(s, 2), sqlite3_column_double(s, 3), sqlite3_column_double(s, 4));
    }
    return rc;
}

static int check(const struct sl_series_query *q, struct sl_err *err)
{
    if (q->points < 0 || q->points > SL_SERIES_POINTS)
        return sl_fail(err, SL_USAGE, "points must be 1 to %d", SL_SERIES_POINTS);
    if (q->from < 0 || q->to < 0 || (q->to && q->to < q->from))
        return sl_fail(err, SL_USAGE, "no steps from %lld to %lld", (long long)q->from,
                       (long long)q->to);
    if (q->width < 0 || q->width > SL_SERIES_WIDTH)
        return sl_fail(err, SL_USAGE, "width must be 1 to %lld", (long long)SL_SERIES_WIDTH);
    if (q->rank >= 0 && !sl_series_per_rank(q->metric))
        return sl_fail(err, SL_USAGE, "metric \"%.64s\" is not measured per rank", q->metric);
    return 0;
}

/* What is asked for of the steps there are; 0: nothing is. */
static int clip(const struct sl_series_query *q, int64_t *first, int64_t *last)
{
    if (q->from > *first)
        *first = q->from;
    if (q->to && q->to < *last)
        *last = q->to;
    if (*first < 1) /* a metric of step 0: before the first one */
        *first = 1;
    return *first <= *last;
}

/* The buckets of r->width steps that hold first..last, of one rank or metric. */
static int fill(struct sl_store *st, const struct sl_series_query *q, int64_t name, int64_t grain,
                int64_t first, int64_t last, struct sl_series *r, struct sl_err *err)
{
    r->v = sl_calloc((size_t)buckets(first, last, r->width), sizeof *r->v);
    if (!r->v)
        return sl_fail(err, SL_SYSTEM, "cannot hold a series: %s", strerror(errno));
    first = (first - 1) / r->width * r->width + 1;
    last = ((last - 1) / r->width + 1) * r->width;
    if (grain > 1 ? read_rollups(st, q, name, grain, first, last, r, err)
                  : read_rows(st, q, name, first, last, r, err)) {
        sl_series_fini(r);
        return -1;
    }
    return 0;
}

int sl_series_read(struct sl_store *st, const struct sl_series_query *q, struct sl_series *ret,
                   struct sl_err *err)
{
    struct sl_series r = {.width = 1};
    int64_t name, first, last, grain;

    if (check(q, err))
        return -1;
    *ret = r;
    if ((name = find_name(st, q->metric, err)) <= 0)
        return (int)name;
    if (find_range(st, q, name, &first, &last, err))
        return -1;
    if (!clip(q, &first, &last))
        return 0;
    r.width = choose(first, last, q, &grain);
    if (fill(st, q, name, grain, first, last, &r, err))
        return -1;
    *ret = r;
    return 0;
}

/* The ranks of an attempt, at most `room`: how many, or -1. */
static int64_t find_ranks(struct sl_store *st, const struct sl_series_query *q, int64_t *v,
                          int64_t room, struct sl_err *err)
{
    sqlite3_stmt *s = sl_db_query(st->db, err,
                                  "SELECT rank FROM rank WHERE job = ? AND attempt = ?"
                                  " ORDER BY rank LIMIT ?",
                                  "iii", q->job, q->attempt, room);
    int64_t n = 0;
    int rc;

    if (!s)
        return -1;
    while ((rc = sl_db_step(st->db, s, err)) == 1)
        v[n++] = sqlite3_column_int64(s, 0);
    return rc < 0 ? -1 : n;
}

/* From the first step of any rank to the last one. */
static int find_common(struct sl_store *st, const struct sl_series_query *q, int64_t name,
                       const int64_t *rank, int64_t n, int64_t *first, int64_t *last,
                       struct sl_err *err)
{
    *first = *last = 0;
    for (int64_t i = 0; i < n; i++) {
        struct sl_series_query one = *q;
        int64_t lo, hi;

        one.rank = rank[i];
        if (find_range(st, &one, name, &lo, &hi, err))
            return -1;
        if (hi && (!*first || lo < *first))
            *first = lo;
        if (hi > *last)
            *last = hi;
    }
    return 0;
}

/* Put a rank's points where they belong in `all`, whose first point begins at step `first`. */
static void merge(struct sl_series *all, int64_t first, const struct sl_series *one)
{
    for (int64_t i = 0; i < one->n; i++) {
        const struct sl_point *p = &one->v[i];
        struct sl_point *q = &all->v[(p->step - first) / all->width];

        if (!q->count || p->min < q->min)
            q->min = p->min;
        if (!q->count || p->max > q->max)
            q->max = p->max;
        q->step = p->step;
        q->count += p->count;
        q->sum += p->sum;
    }
    all->rows += one->rows;
}

static int fill_over(struct sl_store *st, const struct sl_series_query *q, int64_t name,
                     const int64_t *rank, int64_t n, int64_t first, int64_t last,
                     struct sl_series *r, struct sl_err *err)
{
    int64_t grain, room, start;

    r->width = choose(first, last, q, &grain);
    room = buckets(first, last, r->width);
    start = (first - 1) / r->width * r->width + 1;
    r->v = sl_calloc((size_t)room, sizeof *r->v);
    if (!r->v)
        return sl_fail(err, SL_SYSTEM, "cannot hold a series: %s", strerror(errno));
    for (int64_t i = 0; i < n; i++) {
        struct sl_series_query one = *q;
        struct sl_series s = {.width = r->width};

        one.rank = rank[i];
        if (fill(st, &one, name, grain, first, last, &s, err)) {
            sl_series_fini(r);
            return -1;
        }
        merge(r, start, &s);
        sl_series_fini(&s);
    }
    for (int64_t i = 0; i < room; i++)
        if (r->v[i].count)
            r->v[r->n++] = r->v[i];
    return 0;
}

int sl_series_over_ranks(struct sl_store *st, const struct sl_series_query *q,
                         struct sl_series *ret, int64_t *ranks, struct sl_err *err)
{
    struct sl_series r = {.width = 1};
    struct sl_series_query any = *q;
    int64_t rank[SL_SERIES_RANKS], name, first, last;

    any.rank = 0;
    if (check(&any, err))
        return -1;
    *ret = r;
    *ranks = 0;
    if ((name = find_name(st, q->metric, err)) <= 0)
        return (int)name;
    if ((*ranks = find_ranks(st, q, rank, SL_SERIES_RANKS, err)) < 0
        || find_common(st, q, name, rank, *ranks, &first, &last, err))
        return -1;
    if (!clip(q, &first, &last))
        return 0;
    if (fill_over(st, q, name, rank, *ranks, first, last, &r, err))
        return -1;
    *ret = r;
    return 0;
}
