#ifndef SL_STORE_SERIES_H
#define SL_STORE_SERIES_H

/*
 * series.h - one measured quantity over the steps of an attempt, short enough to draw
 *
 * Steps are put into buckets of equal width, at most as many as asked for; each keeps its least and
 * its greatest value, so no spike is lost, and its mean. Wide buckets are made from the roll-ups,
 * so the work depends on the points wanted, not on the steps stored.
 */

#include <stdint.h>

#include "common/err.h"
#include "store/store.h"

enum {
    SL_SERIES_POINTS = 2000,   /* at most, and when none are asked for */
    SL_SERIES_WIDTH = 1 << 30, /* steps a point at most, where asked for */
    SL_SERIES_RANKS = 4096,
};

struct sl_series_query {
    int64_t job, attempt;
    const char
        *metric;      /* "units_per_second", "step_ms", "comm_ms", "data_ms", "loss" or a metric */
    int64_t rank;     /* for the five above: which rank; -1: the metric of that name */
    int64_t points;   /* 0: SL_SERIES_POINTS */
    int64_t from, to; /* steps; 0: the first, the last. Widened to whole buckets */
    int64_t width;    /* at least so many steps a point (to go on where an answer ended); 0: any */
};

struct sl_point {
    int64_t step; /* the bucket's first step that could have a value */
    int64_t count;
    double min, max, sum;
};

struct sl_series {
    int64_t width; /* steps a point; 1: min = max = the value itself */
    int64_t n;
    struct sl_point *v; /* by step; buckets without a finite value are left out */
    int64_t rows;       /* how many rows were read for it */
};

/* 0 with *ret (sl_series_fini() it; n = 0 where nothing is known), or -1. SL_USAGE: bad query. */
int sl_series_read(struct sl_store *st, const struct sl_series_query *q, struct sl_series *ret,
                   struct sl_err *err);
void sl_series_fini(struct sl_series *s);

/*
 * The same over all ranks of the attempt: a point's least and greatest value of any rank, and the
 * mean over ranks and steps; q->rank is not looked at. *ranks: how many there are. SL_USAGE: bad
 * query, or a metric that is not measured per rank.
 */
int sl_series_over_ranks(struct sl_store *st, const struct sl_series_query *q,
                         struct sl_series *ret, int64_t *ranks, struct sl_err *err);

int sl_series_per_rank(const char *metric); /* 1: one of the five that every rank has */

#endif
