/* logs.c - what the ranks of a job printed */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/state.h"
#include "common/clock.h"
#include "common/mem.h"
#include "store/reader.h"
#include "web/tail.h"

enum { LOOK_MS = 200, LINE_MAX_BYTES = 64 << 10 };

static const struct sl_opt options[] = {
    {.name = "follow", .letter = 'f', .help = "Go on until the job is over."},
    {.name = "rank",
     .letter = 'r',
     .type = SL_OPT_INT,
     .arg = "R",
     .max = 4095,
     .help = "Only this rank, its lines as they are; all ranks if not given."},
    SL_OPT_DB,
};

struct seen {
    int over;
    int64_t attempt, ranks, bytes; /* bytes: printed so far */
};

static int look(void *u, const struct sl_job_row *r)
{
    struct seen *s = u;

    s->over = !sl_state_live(r->state);
    s->attempt = r->attempts;
    s->ranks = r->ranks;
    return 0;
}

/* One rank's log: how far it was read and a line that has no end yet. */
struct log {
    int64_t rank, at;
    struct sl_buf line;
};

/* Whole lines, each behind its rank when there are several; what is left waits for its end. */
static void put_lines(struct log *l, int named, int last, struct sl_buf *out)
{
    const char *p = sl_buf_text(&l->line), *end;
    size_t left = l->line.len;

    while (left && ((end = memchr(p, '\n', left)) || last || left > LINE_MAX_BYTES)) {
        size_t n = end ? (size_t)(end - p) : left;

        if (named)
            sl_buf_printf(out, "[%lld] ", (long long)l->rank);
        sl_buf_add(out, p, n);
        sl_buf_char(out, '\n');
        n += end != NULL;
        p += n;
        left -= n;
    }
    sl_buf_drop(&l->line, l->line.len - left);
}

/* Print what is new in a log, and count it. 1: there was something, 0: nothing, -1. */
static int catch_up(struct sl_store *st, int64_t job, int64_t attempt, struct log *l, int named,
                    int last, int64_t *bytes, struct sl_err *err)
{
    struct sl_tail_query q = {
        .job = job, .attempt = attempt, .rank = l->rank, .after = l->at, .max = SL_TAIL_MAX};
    struct sl_tail t = {0};
    struct sl_buf out;
    int rc = sl_tail_read(st, &q, &l->line, &t, err), any;

    if (rc < 0)
        return -1;
    any = rc && t.end > l->at;
    if (rc)
        l->at = t.end;
    sl_buf_init(&out, 16 << 20);
    put_lines(l, named, last && !any, &out);
    *bytes += (int64_t)out.len;
    rc = out.len ? sl_print(&out, err) : 0;
    sl_buf_fini(&out);
    return rc ? -1 : any;
}

/* All logs to their ends; then again, while the job lives and we are to follow. */
static int follow(struct sl_opened *state, int64_t job, struct log *logs, int64_t n, int on,
                  struct seen *seen, struct sl_err *err)
{
    struct sl_store *st = state->st;
    int64_t attempt = seen->attempt;

    for (;;) {
        int any = 0, last;

        if (sl_state_refresh(state, err) || sl_read_job(st, job, look, seen, err) < 0)
            return -1;
        last = seen->over || !on;
        if (seen->attempt != attempt) { /* begun anew: new files */
            attempt = seen->attempt;
            for (int64_t i = 0; i < n; i++)
                logs[i].at = 0;
        }
        for (int64_t i = 0; i < n; i++) {
            int rc;

            while ((rc = catch_up(st, job, attempt, &logs[i], n > 1, last, &seen->bytes, err)) == 1)
                any = 1;
            if (rc < 0)
                return -1;
        }
        if (last && !any)
            return 0;
        if (!last)
            sl_clock_sleep_until(sl_clock_ns() + (int64_t)LOOK_MS * 1000000);
    }
}

static int no_rank(int64_t job, int64_t ranks, int64_t rank, struct sl_err *err)
{
    sl_fail(err, SL_USAGE, "job %" PRId64 " has no rank %" PRId64, job, rank);
    return ranks > 1 ? sl_hint(err, "Its ranks are 0 to %" PRId64 ".", ranks - 1)
                     : sl_hint(err, "Its only rank is 0.");
}

/* Ranks are silent when all is well: empty output is no mistake. */
static void tell_silence(int64_t job, int64_t rank)
{
    if (rank >= 0)
        sl_say("rank %" PRId64 " of job %" PRId64 " printed nothing", rank, job);
    else
        sl_say("the ranks of job %" PRId64 " printed nothing", job);
}

static int run(const struct sl_args *args, struct sl_err *err)
{
    int64_t id, n = 1, rank = sl_args_int(args, "rank", -1);
    struct seen seen = {0};
    struct sl_opened st;
    struct log *logs = NULL;
    int n_operands, rc;

    if (sl_state_id(sl_args_operands(args, &n_operands)[0], &id, err)
        || sl_state_read(args, id, &st, err))
        return -1;
    rc = st.st ? sl_read_job(st.st, id, look, &seen, err) : 0;
    if (rc <= 0) {
        sl_state_close(&st);
        return rc < 0 ? -1 : sl_state_no_job(id);
    }
    if (rank >= seen.ranks && seen.ranks > 0) {
        sl_state_close(&st);
        return no_rank(id, seen.ranks, rank, err);
    }
    if (rank < 0)
        n = seen.ranks > 0 ? seen.ranks : 1;
    logs = sl_calloc((size_t)n, sizeof *logs);
    if (logs) {
        for (int64_t i = 0; i < n; i++) {
            logs[i].rank = rank >= 0 ? rank : i;
            sl_buf_init(&logs[i].line, SL_TAIL_MAX + 2 * LINE_MAX_BYTES);
        }
        rc = follow(&st, id, logs, n, sl_args_given(args, "follow"), &seen, err);
        for (int64_t i = 0; i < n; i++)
            sl_buf_fini(&logs[i].line);
        if (!rc && !seen.bytes)
            tell_silence(id, rank);
    } else {
        rc = sl_fail(err, SL_SYSTEM, "cannot hold %lld logs", (long long)n);
    }
    free(logs);
    sl_state_close(&st);
    return rc;
}

const struct sl_cmd sl_cmd_logs = {
    .name = "logs",
    .operands = "ID",
    .least = 1,
    .most = 1,
    .summary = "Print what a job's ranks printed.",
    .details
    = "Of the last attempt. With several ranks every line begins with its rank in brackets, "
      "rank after rank, or as they come with --follow. Ends with status 4 when there is no "
      "such job.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .run = run,
};
