/* show.c - one job: attempts, ranks, memory by category, metrics, last events */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/commands.h"
#include "cli/state.h"
#include "common/clock.h"
#include "common/json.h"
#include "common/str.h"
#include "store/reader.h"
#include "web/view.h"

enum { EVENTS = 10 };

static const struct sl_opt options[] = {
    {.name = "json", .help = "Print JSON."},
    SL_OPT_DB,
};

struct ctx {
    struct sl_buf *b;
    int64_t attempts, rank;
    int any;
};

static const char *escape(char buf[256], const char *text)
{
    sl_str_escape(buf, 256, text);
    return buf;
}

static const char *moment(char buf[32], double t)
{
    time_t seconds = (time_t)t;
    struct tm tm;

    buf[0] = '\0';
    if (isfinite(t) && localtime_r(&seconds, &tm))
        strftime(buf, 32, "%Y-%m-%d %H:%M:%S", &tm);
    return buf;
}

static void put(struct sl_buf *b, const char *name, const char *value)
{
    if (*value)
        sl_buf_printf(b, "%-11s %s\n", name, value);
}

static int print_job(void *u, const struct sl_job_row *r)
{
    double end = isfinite(r->ended_at) ? r->ended_at : sl_clock_real();
    char text[256];
    struct ctx *c = u;

    c->attempts = r->attempts;
    sl_buf_printf(c->b, "%-11s %lld\n", "job", (long long)r->id);
    put(c->b, "name", escape(text, r->name));
    put(c->b, "state", sl_state_name(r->state));
    put(c->b, "reason", escape(text, r->reason));
    if (r->exit_status >= 0)
        sl_buf_printf(c->b, "%-11s %lld\n", "exit status", (long long)r->exit_status);
    put(c->b, "submitted", moment(text, r->submitted_at));
    put(c->b, "started", moment(text, r->started_at));
    put(c->b, "ended", moment(text, r->ended_at));
    if (isfinite(r->started_at) && r->state != SL_LOST)
        put(c->b, "time",
            end < r->started_at ? "not known: the clock was set back"
                                : sl_duration_human(text, end - r->started_at));
    put(c->b, "strategy", r->strategy);
    if (r->ranks)
        sl_buf_printf(c->b, "%-11s %lld\n", "ranks", (long long)r->ranks);
    if (r->steps)
        sl_buf_printf(c->b, "%-11s %lld\n", "steps", (long long)r->steps);
    return 0;
}

static int print_attempt(void *u, const struct sl_attempt_row *r)
{
    char began[32], ended[32], reason[256];
    struct ctx *c = u;

    if (!c->any++)
        sl_buf_str(c->b, "\nattempts\n");
    sl_buf_printf(c->b, "  %lld  %-9s  %s  %s", (long long)r->attempt, r->state,
                  moment(began, r->started_at), moment(ended, r->ended_at));
    if (r->exit_status >= 0)
        sl_buf_printf(c->b, "  status %lld", (long long)r->exit_status);
    sl_buf_printf(c->b, "  process %lld on %s  %s\n", (long long)r->pid, r->host,
                  escape(reason, r->reason));
    if (r->resumed_step > 0)
        sl_buf_printf(c->b, "     resumed behind step %lld from %s\n", (long long)r->resumed_step,
                      escape(reason, r->resumed_from));
    else if (r->resumed_step == 0 && r->attempt > 1)
        sl_buf_str(c->b, "     began at the first step: no checkpoint\n");
    return 0;
}

static int print_rank(void *u, const struct sl_rank_row *r)
{
    char device[256], exited[32] = "";
    struct ctx *c = u;

    if (!c->any++)
        sl_buf_printf(c->b, "\n%6s  %-16s %8s  %-8s %9s %12s %9s %9s %9s %9s  %s\n", "rank", "host",
                      "pid", "device", "step", r->unit[0] ? "units/s" : "", "step ms", "comm ms",
                      "data ms", "loss", "exit");
    if (r->exit_status >= 0)
        snprintf(exited, sizeof exited, "%lld", (long long)r->exit_status);
    sl_buf_printf(c->b, "%6lld  %-16s %8lld  %-8s ", (long long)r->rank, r->host, (long long)r->pid,
                  escape(device, r->device));
    if (r->step)
        sl_buf_printf(c->b, "%9lld %12.0f %9.1f %9.1f %9.1f %9.4f", (long long)r->step,
                      r->units_per_second, r->step_ms, r->comm_ms, r->data_ms, r->loss);
    else
        sl_buf_printf(c->b, "%62s", "");
    sl_buf_printf(c->b, "  %s\n", exited);
    return 0;
}

/* One line a rank, one column a category; what is shown is the newest value. */
enum { COLUMNS = 12, MEMORY_WIDTH = 13 };

struct table {
    struct sl_buf *b;
    char name[COLUMNS][16];
    int64_t bytes[COLUMNS];
    int64_t rank;
    int n, open, headed;
};

static void end_line(struct table *t)
{
    char size[32];

    if (!t->open)
        return;
    if (!t->headed++) {
        sl_buf_printf(t->b, "\n%6s", "memory");
        for (int i = 0; i < t->n; i++)
            sl_buf_printf(t->b, "  %*s", MEMORY_WIDTH, t->name[i]);
        sl_buf_char(t->b, '\n');
    }
    sl_buf_printf(t->b, "%6lld", (long long)t->rank);
    for (int i = 0; i < t->n; i++)
        sl_buf_printf(t->b, "  %*s", MEMORY_WIDTH,
                      t->bytes[i] < 0 ? "" : sl_size_human(size, t->bytes[i]));
    sl_buf_char(t->b, '\n');
}

static int print_memory(void *u, const struct sl_memory_row *r)
{
    struct table *t = u;
    char name[256];
    int i = 0;

    if (t->open && t->rank != r->rank)
        end_line(t);
    if (!t->open || t->rank != r->rank)
        for (int k = 0; k < COLUMNS; k++)
            t->bytes[k] = -1;
    t->open = 1;
    t->rank = r->rank;
    escape(name, r->category);
    while (i < t->n && strncmp(t->name[i], name, sizeof t->name[i] - 1))
        i++;
    if (i == COLUMNS)
        return 0; /* show --json has them all */
    if (i == t->n)
        snprintf(t->name[t->n++], sizeof t->name[0], "%.15s", name);
    t->bytes[i] = r->bytes;
    return 0;
}

static int print_metric(void *u, const struct sl_metric_row *r)
{
    char name[256];
    struct ctx *c = u;

    if (!c->any++)
        sl_buf_printf(c->b, "\n%-16s %12s  %s\n", "metric", "value", "step");
    sl_buf_printf(c->b, "%-16s %12.6g  %lld\n", escape(name, r->name), r->value,
                  (long long)r->step);
    return 0;
}

static int print_event(void *u, const struct sl_event_row *e)
{
    char when[32], kind[256], text[2048];
    struct ctx *c = u;

    if (!c->any++)
        sl_buf_str(c->b, "\nlast events\n");
    sl_str_escape(text, sizeof text, e->message);
    sl_buf_printf(c->b, "  %s  %-10s ", moment(when, e->time), escape(kind, e->kind));
    if (e->rank >= 0)
        sl_buf_printf(c->b, "rank %lld: ", (long long)e->rank);
    sl_buf_printf(c->b, "%s\n", text);
    return 0;
}

/* As sl_view_job(): 1, 0: no such job, -1. */
static int print_text(struct sl_store *st, int64_t id, struct sl_buf *b, struct sl_err *err)
{
    struct ctx c = {.b = b};
    struct table t = {.b = b};
    int rc = sl_read_job(st, id, print_job, &c, err);

    if (rc <= 0 || sl_read_attempts(st, id, print_attempt, &c, err))
        return rc <= 0 ? rc : -1;
    c.any = 0;
    if (sl_read_ranks(st, id, c.attempts, print_rank, &c, err))
        return -1;
    if (sl_read_memory(st, id, c.attempts, print_memory, &t, err))
        return -1;
    end_line(&t);
    c.any = 0;
    if (sl_read_metrics(st, id, c.attempts, print_metric, &c, err))
        return -1;
    c.any = 0;
    return sl_read_events_tail(st, id, EVENTS, print_event, &c, err) ? -1 : 1;
}

static int run(const struct sl_args *args, struct sl_err *err)
{
    struct sl_store *st;
    struct sl_opened s;
    struct sl_json j;
    struct sl_buf b;
    int n, rc = 0;
    int64_t id;

    if (sl_state_id(sl_args_operands(args, &n)[0], &id, err)
        || sl_state_read(args, id, &s, err))
        return -1;
    st = s.st;
    sl_buf_init(&b, 64 << 20);
    if (st && sl_args_given(args, "json")) {
        sl_json_init(&j, &b);
        rc = sl_view_job(st, id, &j, err);
        sl_buf_char(&b, '\n');
    } else if (st) {
        rc = print_text(st, id, &b, err);
    }
    if (rc > 0)
        rc = sl_print(&b, err);
    else if (rc == 0)
        rc = sl_state_no_job(id);
    sl_buf_fini(&b);
    sl_state_close(&s);
    return rc;
}

const struct sl_cmd sl_cmd_show = {
    .name = "show",
    .operands = "ID",
    .least = 1,
    .most = 1,
    .summary = "Show a job: attempts, ranks, memory, metrics, last events.",
    .details = "Ends with status 4 when there is no such job.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .run = run,
};
