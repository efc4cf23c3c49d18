#ifndef SL_WEB_VIEW_H
#define SL_WEB_VIEW_H

/*
 * view.h - what the store knows as JSON: the forms that the API and `--json` share (doc/json.md)
 *
 * Each writes one value. 1: written; 0: there is no such job, nothing was written; -1: failed, the
 * buffer is to be thrown away.
 */

#include "common/json.h"
#include "store/reader.h"

enum {
    SL_VIEW_JOBS = 500,     /* jobs a list has at most */
    SL_VIEW_EVENTS = 50,    /* last events of a job */
    SL_VIEW_POINTS = 32000, /* points of one answer, all ranks together */
};

struct sl_view_jobs {
    int live;       /* only jobs that are not over */
    int64_t before; /* ids below this one; 0: from the newest on */
    int64_t limit;  /* 1..SL_VIEW_JOBS */
};
int sl_view_jobs(struct sl_store *st, const struct sl_view_jobs *q, struct sl_json *j,
                 struct sl_err *err);

/* The same rows as one array, for `list --json`: the last `limit` jobs, -1 for all. */
int sl_view_list(struct sl_store *st, int64_t limit, struct sl_json *j, struct sl_err *err);

/* The job, its attempts, the ranks of the last attempt with their memory, metrics, events, plan. */
int sl_view_job(struct sl_store *st, int64_t id, struct sl_json *j, struct sl_err *err);

struct sl_view_series {
    int64_t job;
    int64_t attempt; /* 0: the last */
    const char *metric;
    int64_t rank;   /* -1: not given: of the lowest rank for the loss, of every rank otherwise */
    int64_t points; /* 0: as many as allowed */
    int64_t from, to;
    int64_t width;  /* steps a point at least; 0: any */
    int over_ranks; /* one series: least, greatest and mean over the ranks */
};
int sl_view_series(struct sl_store *st, const struct sl_view_series *q, struct sl_json *j,
                   struct sl_err *err);

void sl_view_event(const struct sl_event_row *e, struct sl_json *j);

#endif
