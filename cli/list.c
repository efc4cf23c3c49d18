/* list.c - the jobs of the store, newest first */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/commands.h"
#include "cli/state.h"
#include "common/json.h"
#include "common/str.h"
#include "store/reader.h"
#include "web/view.h"

enum { SHOWN = 20 };

static const struct sl_opt options[] = {
    {.name = "all", .letter = 'a', .help = "All jobs; only the last 20 if not given."},
    {.name = "json", .help = "Print JSON."},
    SL_OPT_DB,
};

struct ctx {
    struct sl_store *st;
    struct sl_buf *b;
    struct sl_err *err;
    int64_t n, last;
    int bad;
};

static int print_row(void *u, const struct sl_job_row *r)
{
    char name[64], when[32] = "", step[48] = "", loss[32] = "";
    struct ctx *c = u;
    struct sl_progress p;
    time_t t = (time_t)r->submitted_at;
    struct tm tm;

    c->bad = sl_read_progress(c->st, r->id, r->attempts, &p, c->err);
    if (c->bad)
        return -1;
    if (localtime_r(&t, &tm))
        strftime(when, sizeof when, "%Y-%m-%d %H:%M", &tm);
    if (p.step && r->steps)
        snprintf(step, sizeof step, "%lld/%lld", (long long)p.step, (long long)r->steps);
    else if (p.step)
        snprintf(step, sizeof step, "%lld", (long long)p.step);
    if (isfinite(p.loss))
        snprintf(loss, sizeof loss, "%.4f", p.loss);
    sl_str_escape(name, sizeof name, r->name);
    sl_buf_printf(c->b, "%5lld  %-9s  %-24s  %5lld  %-6s  %12s  %8s  %s\n", (long long)r->id,
                  sl_state_name(r->state), name, (long long)r->ranks, r->strategy, step, loss,
                  when);
    c->n++;
    c->last = r->id;
    return 0;
}

static int print_table(struct sl_store *st, int all, struct sl_buf *b, struct sl_err *err)
{
    struct ctx c = {.st = st, .b = b, .err = err};

    sl_buf_printf(b, "%5s  %-9s  %-24s  %5s  %-6s  %12s  %8s  %s\n", "id", "state", "name", "ranks",
                  "shard", "step", "loss", "submitted");
    if (st && (sl_read_jobs(st, 0, 0, all ? -1 : SHOWN, print_row, &c, err) || c.bad))
        return -1;
    if (sl_print(b, err))
        return -1;
    if (!all && c.n == SHOWN && c.last > 1)
        sl_say("older jobs: list --all");
    return 0;
}

/* Page by page, as the API gives them, in one array. */
static int print_json(struct sl_store *st, int all, struct sl_buf *b, struct sl_err *err)
{
    struct sl_json j;

    sl_json_init(&j, b);
    if (st) {
        if (sl_view_list(st, all ? -1 : SHOWN, &j, err) < 0)
            return -1;
    } else {
        sl_json_array(&j);
        sl_json_end(&j);
    }
    sl_buf_char(b, '\n');
    return sl_print(b, err);
}

static int run(const struct sl_args *args, struct sl_err *err)
{
    int all = sl_args_given(args, "all"), rc;
    struct sl_opened s;
    struct sl_buf b;

    if (sl_state_read(args, 0, &s, err))
        return -1;
    sl_buf_init(&b, (size_t)256 << 20);
    rc = sl_args_given(args, "json") ? print_json(s.st, all, &b, err)
                                     : print_table(s.st, all, &b, err);
    sl_buf_fini(&b);
    sl_state_close(&s);
    return rc;
}

const struct sl_cmd sl_cmd_list = {
    .name = "list",
    .operands = "",
    .summary = "List the jobs, newest first.",
    .details = "A job whose process is gone without a word is listed as lost.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .run = run,
};
