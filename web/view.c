#include "web/view.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "executor/job.h"
#include "store/series.h"

/* What the callbacks need: where to write, where to read on, and the first error. */
struct ctx {
    struct sl_store *st;
    struct sl_json *j;
    struct sl_err *err;
    int64_t attempt, last, n, rank;
    int open, bad;
};

static void put_int_or_null(struct sl_json *j, const char *key, int64_t x)
{
    sl_json_key(j, key);
    if (x < 0)
        sl_json_null(j);
    else
        sl_json_int(j, x);
}

/* What a list and one job have in common. */
static int put_job(struct ctx *c, const struct sl_job_row *r)
{
    struct sl_progress p;

    if (sl_read_progress(c->st, r->id, r->attempts, &p, c->err))
        return -1;
    sl_json_put_int(c->j, "id", r->id);
    sl_json_put_str(c->j, "name", r->name);
    sl_json_put_str(c->j, "state", sl_state_name(r->state));
    sl_json_put_real(c->j, "submitted_at", r->submitted_at);
    sl_json_put_real(c->j, "started_at", r->started_at);
    sl_json_put_real(c->j, "ended_at", r->ended_at);
    put_int_or_null(c->j, "exit_status", r->exit_status);
    sl_json_put_str(c->j, "reason", r->reason);
    sl_json_put_int(c->j, "attempts", r->attempts);
    sl_json_put_int(c->j, "world_size", r->ranks);
    sl_json_put_str(c->j, "strategy", r->strategy);
    sl_json_put_int(c->j, "steps", r->steps);
    sl_json_put_int(c->j, "step", p.step);
    sl_json_put_real(c->j, "loss", p.loss);
    return 0;
}

static int list_job(void *u, const struct sl_job_row *r)
{
    struct ctx *c = u;

    sl_json_object(c->j);
    c->bad = put_job(c, r);
    sl_json_end(c->j);
    c->last = r->id;
    c->n++;
    return c->bad;
}

int sl_view_jobs(struct sl_store *st, const struct sl_view_jobs *q, struct sl_json *j,
                 struct sl_err *err)
{
    struct ctx c = {.st = st, .j = j, .err = err};

    if (q->limit < 1 || q->limit > SL_VIEW_JOBS)
        return sl_fail(err, SL_USAGE, "limit must be 1 to %d", SL_VIEW_JOBS);
    sl_json_object(j);
    sl_json_key(j, "jobs");
    sl_json_array(j);
    if (sl_read_jobs(st, q->live, q->before, q->limit, list_job, &c, err) || c.bad)
        return -1;
    sl_json_end(j);
    put_int_or_null(j, "next", c.n == q->limit && c.last > 1 ? c.last : -1);
    sl_json_end(j);
    return 1;
}

int sl_view_list(struct sl_store *st, int64_t limit, struct sl_json *j, struct sl_err *err)
{
    struct ctx c = {.st = st, .j = j, .err = err};

    sl_json_array(j);
    if (sl_read_jobs(st, 0, 0, limit, list_job, &c, err) || c.bad)
        return -1;
    sl_json_end(j);
    return 1;
}

static int put_attempt(void *u, const struct sl_attempt_row *r)
{
    struct ctx *c = u;

    sl_json_object(c->j);
    sl_json_put_int(c->j, "attempt", r->attempt);
    sl_json_put_str(c->j, "state", r->state);
    sl_json_put_str(c->j, "host", r->host);
    sl_json_put_int(c->j, "pid", r->pid);
    sl_json_put_real(c->j, "started_at", r->started_at);
    sl_json_put_real(c->j, "ended_at", r->ended_at);
    put_int_or_null(c->j, "exit_status", r->exit_status);
    sl_json_put_str(c->j, "reason", r->reason);
    put_int_or_null(c->j, "resumed_step", r->resumed_step);
    sl_json_put_str(c->j, "resumed_from", r->resumed_from);
    sl_json_end(c->j);
    return 0;
}

static int put_rank(void *u, const struct sl_rank_row *r)
{
    struct ctx *c = u;

    sl_json_object(c->j);
    sl_json_put_int(c->j, "rank", r->rank);
    sl_json_put_str(c->j, "host", r->host);
    sl_json_put_int(c->j, "pid", r->pid);
    sl_json_put_str(c->j, "device", r->device);
    put_int_or_null(c->j, "exit_status", r->exit_status);
    sl_json_put_int(c->j, "step", r->step);
    sl_json_put_real(c->j, "time", r->time);
    sl_json_put_str(c->j, "unit", r->unit);
    sl_json_put_real(c->j, "units_per_second", r->units_per_second);
    sl_json_put_real(c->j, "step_ms", r->step_ms);
    sl_json_put_real(c->j, "comm_ms", r->comm_ms);
    sl_json_put_real(c->j, "data_ms", r->data_ms);
    sl_json_put_real(c->j, "loss", r->loss);
    sl_json_end(c->j);
    return 0;
}

/* Rows come by rank: one object a rank. */
static int put_memory(void *u, const struct sl_memory_row *r)
{
    struct ctx *c = u;

    if (c->open && c->rank != r->rank) {
        sl_json_end(c->j);
        sl_json_end(c->j);
        c->open = 0;
    }
    if (!c->open) {
        sl_json_object(c->j);
        sl_json_put_int(c->j, "rank", r->rank);
        sl_json_key(c->j, "categories");
        sl_json_object(c->j);
        c->rank = r->rank;
        c->open = 1;
    }
    sl_json_key(c->j, r->category);
    sl_json_object(c->j);
    sl_json_put_int(c->j, "bytes", r->bytes);
    sl_json_put_int(c->j, "peak_bytes", r->peak_bytes);
    sl_json_put_int(c->j, "step", r->step);
    sl_json_end(c->j);
    return 0;
}

static int put_metric(void *u, const struct sl_metric_row *r)
{
    struct ctx *c = u;

    sl_json_key(c->j, r->name);
    sl_json_object(c->j);
    sl_json_put_int(c->j, "step", r->step);
    sl_json_put_real(c->j, "time", r->time);
    sl_json_put_real(c->j, "value", r->value);
    sl_json_end(c->j);
    return 0;
}

void sl_view_event(const struct sl_event_row *e, struct sl_json *j)
{
    sl_json_object(j);
    sl_json_put_int(j, "id", e->id);
    sl_json_put_int(j, "job", e->job);
    sl_json_put_int(j, "attempt", e->attempt);
    put_int_or_null(j, "rank", e->rank);
    sl_json_put_real(j, "time", e->time);
    sl_json_put_str(j, "kind", e->kind);
    sl_json_put_str(j, "message", e->message);
    sl_json_end(j);
}

static int put_event(void *u, const struct sl_event_row *e)
{
    struct ctx *c = u;

    sl_view_event(e, c->j);
    return 0;
}

/* The stored plan is JSON already; a hand in the database may have changed that. */
static void put_plan(struct sl_json *j, const char *plan)
{
    json_t *v = *plan ? json_loads(plan, 0, NULL) : NULL;
    char *text = v ? json_dumps(v, JSON_COMPACT) : NULL;

    sl_json_key(j, "plan");
    if (text)
        sl_json_raw(j, text);
    else
        sl_json_null(j);
    free(text);
    json_decref(v);
}

/* Bytes that a rank may have by the job file; null: no limit, or a text that is no job file. */
static void put_limit(struct sl_json *j, const char *text)
{
    struct sl_job *job = *text ? sl_job_parse(text, "job.toml", NULL) : NULL;
    int64_t limit = job ? job->resources.memory_limit : 0;

    put_int_or_null(j, "memory_limit", limit > 0 ? limit : -1);
    sl_job_destroy(job);
}

static int put_whole_job(void *u, const struct sl_job_row *r)
{
    struct ctx *c = u;

    c->attempt = r->attempts;
    c->bad = put_job(c, r);
    put_plan(c->j, r->plan);
    put_limit(c->j, r->text);
    return 0;
}

int sl_view_job(struct sl_store *st, int64_t id, struct sl_json *j, struct sl_err *err)
{
    struct ctx c = {.st = st, .j = j, .err = err};
    size_t before = j->out->len;
    int rc;

    sl_json_object(j);
    rc = sl_read_job(st, id, put_whole_job, &c, err);
    if (rc < 0 || c.bad)
        return -1;
    if (rc == 0) {
        sl_json_end(j);
        j->out->len = before;
        if (j->out->p)
            j->out->p[before] = '\0';
        return 0;
    }
    sl_json_key(j, "attempt_list");
    sl_json_array(j);
    if (sl_read_attempts(st, id, put_attempt, &c, err))
        return -1;
    sl_json_end(j);
    sl_json_key(j, "ranks");
    sl_json_array(j);
    if (sl_read_ranks(st, id, c.attempt, put_rank, &c, err))
        return -1;
    sl_json_end(j);
    sl_json_key(j, "memory");
    sl_json_array(j);
    if (sl_read_memory(st, id, c.attempt, put_memory, &c, err))
        return -1;
    if (c.open) {
        sl_json_end(j);
        sl_json_end(j);
    }
    sl_json_end(j);
    sl_json_key(j, "metrics");
    sl_json_object(j);
    if (sl_read_metrics(st, id, c.attempt, put_metric, &c, err))
        return -1;
    sl_json_end(j);
    sl_json_key(j, "events");
    sl_json_array(j);
    if (sl_read_events_tail(st, id, SL_VIEW_EVENTS, put_event, &c, err))
        return -1;
    sl_json_end(j);
    sl_json_end(j);
    return sl_buf_check(j->out, err) ? -1 : 1;
}

/* `ranks`: of how many ranks it is. */
static void put_points(const struct sl_series *s, int64_t rank, int64_t ranks, struct sl_json *j)
{
    sl_json_object(j);
    put_int_or_null(j, "rank", rank);
    sl_json_put_int(j, "ranks", ranks);
    sl_json_put_int(j, "width", s->width);
    sl_json_put_int(j, "rows", s->rows);
    sl_json_key(j, "points");
    sl_json_array(j);
    for (int64_t i = 0; i < s->n; i++) {
        sl_json_array(j);
        sl_json_int(j, s->v[i].step);
        sl_json_real(j, s->v[i].min);
        sl_json_real(j, s->v[i].max);
        sl_json_real(j, s->v[i].sum / (double)s->v[i].count);
        sl_json_end(j);
    }
    sl_json_end(j);
    sl_json_end(j);
}

static int put_series(struct sl_store *st, const struct sl_series_query *q, struct sl_json *j,
                      struct sl_err *err)
{
    struct sl_series s;

    if (sl_series_read(st, q, &s, err))
        return -1;
    put_points(&s, q->rank, 1, j);
    sl_series_fini(&s);
    return 0;
}

static int put_over_ranks(struct sl_store *st, const struct sl_series_query *q, struct sl_json *j,
                          struct sl_err *err)
{
    struct sl_series s;
    int64_t ranks;

    if (sl_series_over_ranks(st, q, &s, &ranks, err))
        return -1;
    put_points(&s, -1, ranks, j);
    sl_series_fini(&s);
    return 0;
}

enum { RANKS = 4096 };

struct ranks {
    int64_t n, v[RANKS];
};

static int keep_rank(void *u, const struct sl_rank_row *r)
{
    struct ranks *k = u;

    k->v[k->n++] = r->rank;
    return k->n == RANKS;
}

static int last_attempt(void *u, const struct sl_job_row *r)
{
    *(int64_t *)u = r->attempts;
    return 0;
}

int sl_view_series(struct sl_store *st, const struct sl_view_series *q, struct sl_json *j,
                   struct sl_err *err)
{
    struct sl_series_query one = {.job = q->job,
                                  .metric = q->metric,
                                  .rank = q->rank,
                                  .points = q->points,
                                  .from = q->from,
                                  .to = q->to,
                                  .width = q->width};
    struct ranks ranks = {.n = 1, .v = {q->rank}};
    int64_t attempt = 0;
    int rc = sl_read_job(st, q->job, last_attempt, &attempt, err);

    if (rc <= 0)
        return rc;
    one.attempt = q->attempt ? q->attempt : attempt;
    if (q->rank < 0 && !q->over_ranks && sl_series_per_rank(q->metric)) {
        ranks.n = 0;
        if (sl_read_ranks(st, q->job, one.attempt, keep_rank, &ranks, err))
            return -1;
        if (!strcmp(q->metric, "loss") && ranks.n)
            ranks.n = 1;
    }
    if (ranks.n && (!one.points || one.points > SL_VIEW_POINTS / ranks.n)) {
        int64_t share = SL_VIEW_POINTS / ranks.n;

        if (one.points <= SL_SERIES_POINTS)
            one.points = share < SL_SERIES_POINTS ? share : SL_SERIES_POINTS;
    }
    sl_json_object(j);
    sl_json_put_int(j, "job", q->job);
    sl_json_put_int(j, "attempt", one.attempt);
    sl_json_put_str(j, "metric", q->metric);
    sl_json_key(j, "series");
    sl_json_array(j);
    for (int64_t i = 0; i < ranks.n; i++) {
        one.rank = ranks.v[i];
        if ((q->over_ranks ? put_over_ranks : put_series)(st, &one, j, err))
            return -1;
    }
    sl_json_end(j);
    sl_json_end(j);
    return sl_buf_check(j->out, err) ? -1 : 1;
}
