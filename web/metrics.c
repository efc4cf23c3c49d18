#include "web/metrics.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "common/str.h"
#include "store/reader.h"

enum { JOBS = 64 };

struct job {
    int64_t id, attempt, steps;
    double started_at;
    char name[128];
};

struct jobs {
    struct job v[JOBS];
    int n;
};

struct out {
    struct sl_buf *b;
    const struct job *job;
    size_t which; /* of rank_metrics */
};

static int keep(void *u, const struct sl_job_row *r)
{
    struct jobs *k = u;

    k->v[k->n].id = r->id;
    k->v[k->n].attempt = r->attempts;
    k->v[k->n].steps = r->steps;
    k->v[k->n].started_at = r->started_at;
    snprintf(k->v[k->n].name, sizeof k->v[k->n].name, "%s", r->name);
    return ++k->n == JOBS;
}

/* A label's value: backslash, quote and newline are escaped, what is no UTF-8 replaced. */
static void put_label(struct sl_buf *b, const char *s)
{
    for (size_t n = strlen(s); n;) {
        int k = sl_utf8_len(s, n);

        if (*s == '\n')
            sl_buf_str(b, "\\n");
        else if (*s == '\\' || *s == '"')
            sl_buf_printf(b, "\\%c", *s);
        else if (k)
            sl_buf_add(b, s, (size_t)k);
        else
            sl_buf_char(b, '?');
        k = k ? k : 1;
        s += k;
        n -= (size_t)k;
    }
}

static void put_value(struct sl_buf *b, double x)
{
    char text[40];

    if (isnan(x))
        sl_buf_str(b, "NaN\n");
    else
        sl_buf_printf(b, "%s\n", isinf(x) ? x > 0 ? "+Inf" : "-Inf" : sl_double_exact(text, x));
}

static void head(struct sl_buf *b, const char *name, const char *help)
{
    sl_buf_printf(b, "# HELP shardlaunch_%s %s\n# TYPE shardlaunch_%s gauge\n", name, help, name);
}

/* Leaves the braces open for further labels. */
static void line(struct sl_buf *b, const char *name, const struct job *job)
{
    sl_buf_printf(b, "shardlaunch_%s{job=\"%lld\",name=\"", name, (long long)job->id);
    put_label(b, job->name);
    sl_buf_char(b, '"');
}

/* What is told of a rank's last sample. */
static const struct {
    const char *name, *help;
    size_t at;
    double scale;
} rank_metrics[] = {
#define AT(field) offsetof(struct sl_rank_row, field)
    {"rank_step_seconds", "Time of a rank's last step.", AT(step_ms), 1e-3},
    {"rank_communication_seconds", "Of that in collectives, waiting for others included.",
     AT(comm_ms), 1e-3},
    {"rank_data_seconds", "Of that waiting for data.", AT(data_ms), 1e-3},
    {"rank_last_sample_timestamp_seconds", "When a rank last told of a step, unix time.", AT(time),
     1},
#undef AT
};

static int put_rank_metric(void *u, const struct sl_rank_row *r)
{
    struct out *o = u;
    double x;

    memcpy(&x, (const char *)r + rank_metrics[o->which].at, sizeof x);
    if (isnan(x))
        return 0;
    line(o->b, rank_metrics[o->which].name, o->job);
    sl_buf_printf(o->b, ",rank=\"%lld\"} ", (long long)r->rank);
    put_value(o->b, x * rank_metrics[o->which].scale);
    return 0;
}

static int put_speed(void *u, const struct sl_rank_row *r)
{
    struct out *o = u;

    if (isnan(r->units_per_second))
        return 0;
    line(o->b, "rank_units_per_second", o->job);
    sl_buf_printf(o->b, ",rank=\"%lld\",unit=\"", (long long)r->rank);
    put_label(o->b, r->unit);
    sl_buf_str(o->b, "\"} ");
    put_value(o->b, r->units_per_second);
    return 0;
}

static int put_metric(void *u, const struct sl_metric_row *r)
{
    struct out *o = u;

    line(o->b, "job_metric", o->job);
    sl_buf_str(o->b, ",metric=\"");
    put_label(o->b, r->name);
    sl_buf_str(o->b, "\"} ");
    put_value(o->b, r->value);
    return 0;
}

static int put_memory(void *u, const struct sl_memory_row *r)
{
    struct out *o = u;

    line(o->b, "rank_memory_bytes", o->job);
    sl_buf_printf(o->b, ",rank=\"%lld\",category=\"", (long long)r->rank);
    put_label(o->b, r->category);
    sl_buf_printf(o->b, "\"} %lld\n", (long long)r->bytes);
    return 0;
}

static int put_progress(struct sl_store *st, const struct jobs *k, struct sl_buf *b,
                        struct sl_err *err)
{
    struct sl_progress p[JOBS];

    for (int i = 0; i < k->n; i++)
        if (sl_read_progress(st, k->v[i].id, k->v[i].attempt, &p[i], err))
            return -1;
    head(b, "job_step", "Last optimizer step.");
    for (int i = 0; i < k->n; i++) {
        line(b, "job_step", &k->v[i]);
        sl_buf_printf(b, "} %lld\n", (long long)p[i].step);
    }
    head(b, "job_steps", "Optimizer steps planned.");
    for (int i = 0; i < k->n; i++) {
        if (!k->v[i].steps)
            continue;
        line(b, "job_steps", &k->v[i]);
        sl_buf_printf(b, "} %lld\n", (long long)k->v[i].steps);
    }
    head(b, "job_start_timestamp_seconds", "When the job began, unix time.");
    for (int i = 0; i < k->n; i++) {
        if (isnan(k->v[i].started_at))
            continue;
        line(b, "job_start_timestamp_seconds", &k->v[i]);
        sl_buf_str(b, "} ");
        put_value(b, k->v[i].started_at);
    }
    head(b, "job_loss", "Loss of the last step, mean over the global batch.");
    for (int i = 0; i < k->n; i++) {
        if (!p[i].step)
            continue;
        line(b, "job_loss", &k->v[i]);
        sl_buf_str(b, "} ");
        put_value(b, p[i].loss);
    }
    return 0;
}

/* One metric of ranks, of all jobs. */
static int put_ranks(struct sl_store *st, const struct jobs *k, sl_rank_row_f f, size_t which,
                     struct sl_buf *b, struct sl_err *err)
{
    for (int i = 0; i < k->n; i++) {
        struct out o = {b, &k->v[i], which};

        if (sl_read_ranks(st, k->v[i].id, k->v[i].attempt, f, &o, err))
            return -1;
    }
    return 0;
}

int sl_metrics_print(struct sl_store *st, struct sl_buf *out, struct sl_err *err)
{
    int64_t count[SL_STATES];
    struct jobs k = {.n = 0};

    if (sl_read_counts(st, count, err) || sl_read_jobs(st, 1, 0, JOBS, keep, &k, err))
        return -1;
    head(out, "build_info", "Which version answers.");
    sl_buf_printf(out, "shardlaunch_build_info{version=\"%s\"} 1\n", SL_VERSION);
    head(out, "jobs", "Jobs in each state.");
    for (int i = 0; i < SL_STATES; i++)
        sl_buf_printf(out, "shardlaunch_jobs{state=\"%s\"} %lld\n", sl_state_name(i),
                      (long long)count[i]);
    if (put_progress(st, &k, out, err))
        return -1;
    head(out, "job_metric", "Newest value of each metric of a job.");
    for (int i = 0; i < k.n; i++) {
        struct out o = {out, &k.v[i], 0};

        if (sl_read_metrics(st, k.v[i].id, k.v[i].attempt, put_metric, &o, err))
            return -1;
    }
    head(out, "rank_units_per_second", "Speed of a rank over its last 20 steps.");
    if (put_ranks(st, &k, put_speed, 0, out, err))
        return -1;
    for (size_t i = 0; i < sizeof rank_metrics / sizeof *rank_metrics; i++) {
        head(out, rank_metrics[i].name, rank_metrics[i].help);
        if (put_ranks(st, &k, put_rank_metric, i, out, err))
            return -1;
    }
    head(out, "rank_memory_bytes", "Bytes of a rank by category.");
    for (int i = 0; i < k.n; i++) {
        struct out o = {out, &k.v[i], 0};

        if (sl_read_memory(st, k.v[i].id, k.v[i].attempt, put_memory, &o, err))
            return -1;
    }
    return sl_buf_check(out, err);
}
