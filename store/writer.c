#include "store/writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "store/internal.h"
#include "store/rollup.h"

enum { UNITS_KNOWN = 4096 };

struct sl_writer {
    struct sl_store *st;
    struct sl_db *db;
    int64_t job, attempt;
    struct sl_rollup *rollup;
    unsigned char unit_known[UNITS_KNOWN]; /* by rank: its unit is in the table */
};

struct sl_writer *sl_writer_create(struct sl_store *st, int64_t job, int attempt,
                                   struct sl_err *err)
{
    struct sl_writer *w = sl_calloc(1, sizeof *w);

    if (!w) {
        sl_fail(err, SL_SYSTEM, "cannot hold a writer: %s", strerror(errno));
        return NULL;
    }
    w->st = st;
    w->db = st->db;
    w->job = job;
    w->attempt = attempt;
    w->rollup = sl_rollup_create(st, job, attempt, err);
    if (!w->rollup) {
        free(w);
        return NULL;
    }
    return w;
}

void sl_writer_destroy(struct sl_writer *w)
{
    if (!w)
        return;
    sl_writer_rollback(w);
    sl_rollup_destroy(w->rollup);
    free(w);
}

int sl_writer_begin(struct sl_writer *w, struct sl_err *err)
{
    return sl_db_begin(w->db, err);
}

void sl_writer_rollback(struct sl_writer *w)
{
    sl_db_rollback(w->db);
    sl_rollup_forget(w->rollup);
    memset(w->unit_known, 0, sizeof w->unit_known);
}

int sl_writer_commit(struct sl_writer *w, struct sl_err *err)
{
    if (!sl_rollup_flush(w->rollup, err) && !sl_db_commit(w->db, err))
        return 0;
    sl_writer_rollback(w);
    return -1;
}

int sl_writer_attempt(struct sl_writer *w, int attempt, struct sl_err *err)
{
    struct sl_rollup *fresh = sl_rollup_create(w->st, w->job, attempt, err);

    if (!fresh)
        return -1;
    sl_rollup_destroy(w->rollup);
    w->rollup = fresh;
    w->attempt = attempt;
    memset(w->unit_known, 0, sizeof w->unit_known);
    return 0;
}

int sl_writer_resumed(struct sl_writer *w, int64_t step, const char *from, struct sl_err *err)
{
    return sl_db_run(w->db, err,
                     "UPDATE attempt SET resumed_step = ?, resumed_from = ?"
                     " WHERE job = ? AND attempt = ?",
                     "isii", step, from, w->job, w->attempt)
                   < 0
               ? -1
               : 0;
}

int sl_writer_rank(struct sl_writer *w, int64_t rank, const char *host, int64_t pid,
                   const char *device, struct sl_err *err)
{
    return sl_db_run(w->db, err,
                     "INSERT INTO rank (job, attempt, rank, host, pid, device)"
                     " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET host = excluded.host,"
                     " pid = excluded.pid, device = excluded.device",
                     "iiisis", w->job, w->attempt, rank, host, pid, device)
                   < 0
               ? -1
               : 0;
}

int sl_writer_rank_end(struct sl_writer *w, int64_t rank, int exit_status, struct sl_err *err)
{
    return sl_db_run(w->db, err,
                     "INSERT INTO rank (job, attempt, rank, exit_status) VALUES (?, ?, ?, ?)"
                     " ON CONFLICT DO UPDATE SET exit_status = excluded.exit_status",
                     "iiii", w->job, w->attempt, rank, (int64_t)exit_status)
                   < 0
               ? -1
               : 0;
}

static int know_unit(struct sl_writer *w, int64_t rank, const char *unit, struct sl_err *err)
{
    if (rank >= 0 && rank < UNITS_KNOWN) {
        if (w->unit_known[rank])
            return 0;
        w->unit_known[rank] = 1;
    }
    return sl_db_run(w->db, err,
                     "INSERT INTO rank (job, attempt, rank, unit) VALUES (?, ?, ?, ?)"
                     " ON CONFLICT DO UPDATE SET unit = excluded.unit WHERE unit = ''",
                     "iiis", w->job, w->attempt, rank, unit ? unit : "")
                   < 0
               ? -1
               : 0;
}

int sl_writer_sample(struct sl_writer *w, const struct sl_sample *s, struct sl_err *err)
{
    const double value[SL_SAMPLE_SERIES]
        = {s->step_ms > 0 ? s->units * 1000.0 / s->step_ms : 0.0 / 0.0, s->step_ms, s->comm_ms,
           s->data_ms, s->loss};
    int n;

    if (know_unit(w, s->rank, s->unit, err))
        return -1;
    n = sl_db_run(w->db, err,
                  "INSERT OR IGNORE INTO sample (job, attempt, rank, step, time, units, step_ms,"
                  " comm_ms, data_ms, loss) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                  "iiiidddddd", w->job, w->attempt, s->rank, s->step, s->time, s->units, s->step_ms,
                  s->comm_ms, s->data_ms, s->loss);
    if (n < 0)
        return -1;
    for (int i = 0; n && i < SL_SAMPLE_SERIES; i++)
        if (sl_rollup_add(w->rollup, s->rank, i + 1, s->step, value[i], err))
            return -1;
    return 0;
}

int sl_writer_memory(struct sl_writer *w, int64_t rank, int64_t step, const char *category,
                     int64_t bytes, int64_t peak_bytes, struct sl_err *err)
{
    return sl_db_run(w->db, err,
                     "INSERT OR REPLACE INTO memory (job, attempt, rank, category, step, bytes,"
                     " peak_bytes) VALUES (?, ?, ?, ?, ?, ?, ?)",
                     "iiisiii", w->job, w->attempt, rank, category, step, bytes, peak_bytes)
                   < 0
               ? -1
               : 0;
}

/* The id of a metric's name, made when it is new. 0: failed. */
static int64_t name_id(struct sl_writer *w, const char *name, struct sl_err *err)
{
    sqlite3_stmt *s;
    int64_t id;

    for (int turn = 0; turn < 2; turn++) {
        s = sl_db_query(w->db, err, "SELECT id FROM metric_name WHERE name = ?", "s", name);
        switch (s ? sl_db_step(w->db, s, err) : -1) {
        case 1:
            id = sqlite3_column_int64(s, 0);
            sl_db_done(s);
            return id;
        case -1:
            return 0;
        }
        if (sl_db_run(w->db, err, "INSERT INTO metric_name (name) VALUES (?)", "s", name) < 0)
            return 0;
    }
    sl_fail(err, SL_BUG, "metric \"%s\" has no id", name);
    return 0;
}

int sl_writer_metric(struct sl_writer *w, int64_t step, double time, const char *name, double value,
                     struct sl_err *err)
{
    int64_t id = name_id(w, name, err);
    int n;

    if (!id)
        return -1;
    n = sl_db_run(w->db, err,
                  "INSERT OR IGNORE INTO metric (job, attempt, name, step, time, value)"
                  " VALUES (?, ?, ?, ?, ?, ?)",
                  "iiiidd", w->job, w->attempt, id, step, time, value);
    if (n < 0)
        return -1;
    return n ? sl_rollup_add(w->rollup, -1, id, step, value, err) : 0;
}

int sl_writer_event(struct sl_writer *w, int64_t rank, double time, const char *kind,
                    const char *message, struct sl_err *err)
{
    return sl_db_run(w->db, err,
                     "INSERT INTO event (job, attempt, rank, time, kind, message)"
                     " VALUES (?, ?, ?, ?, ?, ?)",
                     "iiidss", w->job, w->attempt, rank < 0 ? (int64_t)-1 : rank, time, kind,
                     message)
                   < 0
               ? -1
               : 0;
}
