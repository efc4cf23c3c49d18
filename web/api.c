#include "web/api.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "store/series.h"
#include "web/metrics.h"
#include "web/tail.h"
#include "web/view.h"

static void answer_error(struct sl_api_reply *ret, int status, const struct sl_err *err)
{
    struct sl_json j;

    sl_buf_clear(&ret->body);
    ret->status = status;
    ret->type = "application/json";
    sl_json_init(&j, &ret->body);
    sl_json_object(&j);
    sl_json_put_str(&j, "error", err->msg);
    sl_json_put_str(&j, "hint", err->hint);
    sl_json_end(&j);
    sl_buf_char(&ret->body, '\n');
}

static int status_of(const struct sl_err *err)
{
    switch (err->code) {
    case SL_USAGE:
        return 400;
    case SL_BUSY:
        return 503;
    default:
        return 500;
    }
}

static void not_found(struct sl_api_reply *ret, const char *what)
{
    struct sl_err err = {.code = SL_USAGE};

    sl_fail(&err, SL_USAGE, "%s", what);
    answer_error(ret, 404, &err);
}

/* Digits only, whole text. */
static int to_int(const char *text, int64_t least, int64_t most, int64_t *ret)
{
    char *end;
    long long x;

    if (*text < '0' || *text > '9')
        return -1;
    errno = 0;
    x = strtoll(text, &end, 10);
    if (*end || errno || x < least || x > most)
        return -1;
    *ret = x;
    return 0;
}

static int int_arg(const struct sl_api_request *req, const char *name, int64_t least, int64_t most,
                   int64_t otherwise, int64_t *ret, struct sl_err *err)
{
    const char *text = req->arg(req->u, name);

    *ret = otherwise;
    if (!text || !*text)
        return 0;
    if (to_int(text, least, most, ret))
        return sl_fail(err, SL_USAGE, "%s must be a number from %lld to %lld", name,
                       (long long)least, (long long)most);
    return 0;
}

static int get_jobs(struct sl_store *st, const struct sl_api_request *req, struct sl_json *j,
                    struct sl_err *err)
{
    struct sl_view_jobs q;
    int64_t live;

    if (int_arg(req, "live", 0, 1, 0, &live, err)
        || int_arg(req, "before", 1, INT64_MAX, 0, &q.before, err)
        || int_arg(req, "limit", 1, SL_VIEW_JOBS, 100, &q.limit, err))
        return -1;
    q.live = (int)live;
    return sl_view_jobs(st, &q, j, err);
}

static int get_series(struct sl_store *st, const struct sl_api_request *req, int64_t id,
                      struct sl_json *j, struct sl_err *err)
{
    const char *metric = req->arg(req->u, "metric");
    const char *over = req->arg(req->u, "over");
    struct sl_view_series q = {.job = id, .metric = metric};

    if (!metric || !*metric || strlen(metric) > 64)
        return sl_fail(err, SL_USAGE, "metric must be given, as in ?metric=loss");
    if (over && strcmp(over, "ranks"))
        return sl_fail(err, SL_USAGE, "over can only be \"ranks\"");
    q.over_ranks = over != NULL;
    if (int_arg(req, "rank", 0, 4095, -1, &q.rank, err)
        || int_arg(req, "width", 1, SL_SERIES_WIDTH, 0, &q.width, err)
        || int_arg(req, "points", 1, 2000, 0, &q.points, err)
        || int_arg(req, "attempt", 1, INT32_MAX, 0, &q.attempt, err)
        || int_arg(req, "from", 1, INT64_MAX / 2, 0, &q.from, err)
        || int_arg(req, "to", 1, INT64_MAX / 2, 0, &q.to, err))
        return -1;
    return sl_view_series(st, &q, j, err);
}

static int last_attempt(void *u, const struct sl_job_row *row)
{
    *(int64_t *)u = row->attempts;
    return 0;
}

/* A rank without a log yet has an empty one. */
static int get_logs(struct sl_store *st, const struct sl_api_request *req, int64_t id,
                    struct sl_json *j, struct sl_err *err)
{
    struct sl_tail_query q = {.job = id};
    struct sl_tail t = {0};
    int64_t last = 0;
    struct sl_buf text;
    int rc;

    if ((rc = sl_read_job(st, id, last_attempt, &last, err)) <= 0)
        return rc;
    if (int_arg(req, "rank", 0, 4095, 0, &q.rank, err)
        || int_arg(req, "attempt", 1, INT32_MAX, last, &q.attempt, err)
        || int_arg(req, "after", 0, INT64_MAX / 2, -1, &q.after, err)
        || int_arg(req, "before", 1, INT64_MAX / 2, 0, &q.before, err)
        || int_arg(req, "bytes", 1, SL_TAIL_MAX, 32 << 10, &q.max, err))
        return -1;
    sl_buf_init(&text, SL_TAIL_MAX);
    rc = sl_tail_read(st, &q, &text, &t, err);
    if (rc >= 0) {
        sl_json_object(j);
        sl_json_put_int(j, "job", id);
        sl_json_put_int(j, "attempt", q.attempt);
        sl_json_put_int(j, "rank", q.rank);
        sl_json_put_int(j, "size", t.size);
        sl_json_put_int(j, "offset", t.offset);
        sl_json_put_int(j, "end", t.end);
        sl_json_key(j, "text");
        sl_json_strn(j, sl_buf_text(&text), text.len);
        sl_json_end(j);
        rc = 1;
    }
    sl_buf_fini(&text);
    return rc;
}

/* "/api/jobs/ID" or "/api/jobs/ID/WHAT": 0 with the id and WHAT (or ""); -1: neither. */
static int split(const char *path, int64_t *id, const char **what)
{
    static const char prefix[] = "/api/jobs/";
    char digits[24];
    size_t n;

    if (strncmp(path, prefix, sizeof prefix - 1))
        return -1;
    path += sizeof prefix - 1;
    n = strcspn(path, "/");
    if (!n || n >= sizeof digits)
        return -1;
    memcpy(digits, path, n);
    digits[n] = '\0';
    if (to_int(digits, 1, INT64_MAX, id))
        return -1;
    *what = path[n] ? path + n + 1 : "";
    return 0;
}

void sl_api_get(struct sl_store *st, const struct sl_api_request *req, struct sl_api_reply *ret)
{
    const char *what = NULL;
    struct sl_err err = {0};
    struct sl_json j;
    int64_t id = 0;
    int rc;

    ret->status = 200;
    ret->type = "application/json";
    sl_buf_init(&ret->body, SL_API_BODY);
    sl_json_init(&j, &ret->body);
    if (!strcmp(req->path, "/api/jobs")) {
        rc = get_jobs(st, req, &j, &err);
    } else if (!strcmp(req->path, "/metrics")) {
        ret->type = "text/plain; version=0.0.4; charset=utf-8";
        rc = sl_metrics_print(st, &ret->body, &err) ? -1 : 1;
    } else if (!split(req->path, &id, &what) && !strcmp(what, "")) {
        rc = sl_view_job(st, id, &j, &err);
    } else if (what && !strcmp(what, "series")) {
        rc = get_series(st, req, id, &j, &err);
    } else if (what && !strcmp(what, "logs")) {
        rc = get_logs(st, req, id, &j, &err);
    } else {
        not_found(ret, "there is nothing at this path");
        return;
    }
    if (rc == 1 && strcmp(req->path, "/metrics"))
        sl_buf_char(&ret->body, '\n');
    if (rc == 1 && sl_buf_check(&ret->body, &err))
        rc = -1;
    if (rc == 0)
        not_found(ret, "no such job");
    else if (rc < 0)
        answer_error(ret, status_of(&err), &err);
}
