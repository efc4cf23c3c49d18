#include "store/reader.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "store/internal.h"

static double number(sqlite3_stmt *s, int column)
{
    return sqlite3_column_type(s, column) == SQLITE_NULL ? (double)NAN
                                                         : sqlite3_column_double(s, column);
}

static int64_t integer(sqlite3_stmt *s, int column) /* -1 for NULL */
{
    return sqlite3_column_type(s, column) == SQLITE_NULL ? -1 : sqlite3_column_int64(s, column);
}

#define JOB_COLUMNS                                                                                \
    "id, name, state, submitted_at, started_at, ended_at, exit_status, reason, attempts, ranks,"   \
    " steps, strategy, lease_host, lease_boot, lease_pid, lease_start"

static void job_row(sqlite3_stmt *s, struct sl_job_row *ret)
{
    *ret = (struct sl_job_row){
        .id = sqlite3_column_int64(s, 0),
        .name = sl_db_text(s, 1),
        .state = (enum sl_state)sl_state_find(sl_db_text(s, 2)),
        .submitted_at = number(s, 3),
        .started_at = number(s, 4),
        .ended_at = number(s, 5),
        .exit_status = integer(s, 6),
        .reason = sl_db_text(s, 7),
        .attempts = sqlite3_column_int64(s, 8),
        .ranks = sqlite3_column_int64(s, 9),
        .steps = sqlite3_column_int64(s, 10),
        .strategy = sl_db_text(s, 11),
        .plan = "",
        .text = "",
    };
    snprintf(ret->holder.host, sizeof ret->holder.host, "%s", sl_db_text(s, 12));
    snprintf(ret->holder.boot, sizeof ret->holder.boot, "%s", sl_db_text(s, 13));
    ret->holder.pid = sqlite3_column_int64(s, 14);
    ret->holder.start_time = sqlite3_column_int64(s, 15);
    if (sl_state_live(ret->state) && sl_lease_alive(&ret->holder) == 0) {
        ret->state = SL_LOST;
        ret->reason = "the process that ran it is gone";
    }
}

int sl_read_jobs(struct sl_store *st, int live, int64_t before, int64_t limit, sl_job_row_f f,
                 void *u, struct sl_err *err)
{
    sqlite3_stmt *s;
    struct sl_job_row row;
    int rc;

    if (live)
        s = sl_db_query(st->db, err,
                        "SELECT " JOB_COLUMNS " FROM job WHERE (?1 = 0 OR id < ?1)"
                        " AND state IN ('queued', 'held', 'starting', 'running', 'stopping')"
                        " ORDER BY id DESC LIMIT ?2",
                        "ii", before, limit);
    else
        s = sl_db_query(st->db, err,
                        "SELECT " JOB_COLUMNS " FROM job WHERE (?1 = 0 OR id < ?1)"
                        " ORDER BY id DESC LIMIT ?2",
                        "ii", before, limit);
    if (!s)
        return -1;
    while ((rc = sl_db_step(st->db, s, err)) == 1) {
        job_row(s, &row);
        if (f(u, &row))
            break;
    }
    sl_db_done(s);
    return rc < 0 ? -1 : 0;
}

int sl_read_job(struct sl_store *st, int64_t id, sl_job_row_f f, void *u, struct sl_err *err)
{
    sqlite3_stmt *s = sl_db_query(st->db, err,
                                  "SELECT " JOB_COLUMNS ", plan, text FROM job"
                                  " WHERE id = ?",
                                  "i", id);
    struct sl_job_row row;
    int rc = s ? sl_db_step(st->db, s, err) : -1;

    if (rc == 1) {
        job_row(s, &row);
        row.plan = sl_db_text(s, 16);
        row.text = sl_db_text(s, 17);
        f(u, &row);
    }
    sl_db_done(s);
    return rc;
}

int sl_read_attempts(struct sl_store *st, int64_t job, sl_attempt_row_f f, void *u,
                     struct sl_err *err)
{
    sqlite3_stmt *s = sl_db_query(st->db, err,
                                  "SELECT attempt, pid, host, state, reason, started_at, ended_at,"
                                  " exit_status, resumed_step, resumed_from FROM attempt"
                                  " WHERE job = ? ORDER BY attempt",
                                  "i", job);
    int rc;

    if (!s)
        return -1;
    while ((rc = sl_db_step(st->db, s, err)) == 1) {
        struct sl_attempt_row row = {
            .attempt = sqlite3_column_int64(s, 0),
            .pid = sqlite3_column_int64(s, 1),
            .host = sl_db_text(s, 2),
            .state = sl_db_text(s, 3),
            .reason = sl_db_text(s, 4),
            .started_at = number(s, 5),
            .ended_at = number(s, 6),
            .exit_status = integer(s, 7),
            .resumed_step = integer(s, 8),
            .resumed_from = sl_db_text(s, 9),
        };
        if (f(u, &row))
            break;
    }
    sl_db_done(s);
    return rc < 0 ? -1 : 0;
}

/* Last sample and recent speed; a rank without samples keeps step 0 and NANs. */
static int last_sample(struct sl_store *st, int64_t job, int64_t attempt, struct sl_rank_row *row,
                       struct sl_err *err)
{
    sqlite3_stmt *s = sl_db_query(st->db, err,
                                  "SELECT step, time, units, step_ms, comm_ms, data_ms, loss"
                                  " FROM sample WHERE job = ? AND attempt = ? AND rank = ?"
                                  " ORDER BY step DESC LIMIT 20",
                                  "iii", job, attempt, row->rank);
    double units = 0, ms = 0;
    int rc;

    row->step = 0;
    row->time = row->units_per_second = (double)NAN;
    row->step_ms = row->comm_ms = row->data_ms = row->loss = (double)NAN;
    if (!s)
        return -1;
    while ((rc = sl_db_step(st->db, s, err)) == 1) {
        if (!row->step) {
            row->step = sqlite3_column_int64(s, 0);
            row->time = number(s, 1);
            row->step_ms = number(s, 3);
            row->comm_ms = number(s, 4);
            row->data_ms = number(s, 5);
            row->loss = number(s, 6);
        }
        units += sqlite3_column_double(s, 2);
        ms += sqlite3_column_double(s, 3);
    }
    if (ms > 0)
        row->units_per_second = units * 1000 / ms;
    return rc;
}

int sl_read_ranks(struct sl_store *st, int64_t job, int64_t attempt, sl_rank_row_f f, void *u,
                  struct sl_err *err)
{
    sqlite3_stmt *s = sl_db_query(st->db, err,
                                  "SELECT rank, pid, host, device, unit, exit_status FROM rank"
                                  " WHERE job = ? AND attempt = ? ORDER BY rank",
                                  "ii", job, attempt);
    int rc;

    if (!s)
        return -1;
    while ((rc = sl_db_step(st->db, s, err)) == 1) {
        struct sl_rank_row row = {
            .rank = sqlite3_column_int64(s, 0),
            .pid = sqlite3_column_int64(s, 1),
            .host = sl_db_text(s, 2),
            .device = sl_db_text(s, 3),
            .unit = sl_db_text(s, 4),
            .exit_status = integer(s, 5),
        };
        if (last_sample(st, job, attempt, &row, err)) {
            rc = -1;
            break;
        }
        if (f(u, &row))
            break;
    }
    sl_db_done(s);
    return rc < 0 ? -1 : 0;
}

/* The first rank behind `after`. 1; 0: none, -1. */
static int next_rank(struct sl_store *st, int64_t job, int64_t attempt, int64_t after,
                     int64_t *ret, struct sl_err *err)
{
    sqlite3_stmt *s = sl_db_query(st->db, err,
                                  "SELECT rank FROM memory WHERE job = ? AND attempt = ?"
                                  " AND rank > ? ORDER BY rank LIMIT 1",
                                  "iii", job, attempt, after);
    int rc = s ? sl_db_step(st->db, s, err) : -1;

    if (rc == 1)
        *ret = sqlite3_column_int64(s, 0);
    sl_db_done(s);
    return rc;
}

/* The first category of a rank behind `name`, written over it. 1; 0: none, -1. */
static int next_category(struct sl_store *st, int64_t job, int64_t attempt, int64_t rank,
                         char name[64], struct sl_err *err)
{
    sqlite3_stmt *s = sl_db_query(st->db, err,
                                  "SELECT category FROM memory WHERE job = ? AND attempt = ?"
                                  " AND rank = ? AND category > ? ORDER BY category LIMIT 1",
                                  "iiis", job, attempt, rank, name);
    int rc = s ? sl_db_step(st->db, s, err) : -1;

    if (rc == 1)
        snprintf(name, 64, "%s", sl_db_text(s, 0));
    sl_db_done(s);
    return rc;
}

/* 1 and the newest row; 0: none, -1. */
static int newest(struct sl_store *st, int64_t job, int64_t attempt, struct sl_memory_row *row,
                  struct sl_err *err)
{
    sqlite3_stmt *s = sl_db_query(st->db, err,
                                  "SELECT step, bytes, peak_bytes FROM memory WHERE job = ?"
                                  " AND attempt = ? AND rank = ? AND category = ?"
                                  " ORDER BY step DESC LIMIT 1",
                                  "iiis", job, attempt, row->rank, row->category);
    int rc = s ? sl_db_step(st->db, s, err) : -1;

    if (rc == 1) {
        row->step = sqlite3_column_int64(s, 0);
        row->bytes = sqlite3_column_int64(s, 1);
        row->peak_bytes = sqlite3_column_int64(s, 2);
    }
    sl_db_done(s);
    return rc;
}

/* By seeks in the primary key: a long run has many rows of `process`, and all are passed over. */
int sl_read_memory(struct sl_store *st, int64_t job, int64_t attempt, sl_memory_row_f f, void *u,
                   struct sl_err *err)
{
    char name[64];
    struct sl_memory_row row = {.rank = -1, .category = name};
    int rc, got;

    while ((rc = next_rank(st, job, attempt, row.rank, &row.rank, err)) == 1) {
        name[0] = '\0';
        while ((rc = next_category(st, job, attempt, row.rank, name, err)) == 1) {
            got = newest(st, job, attempt, &row, err);
            if (got < 0)
                return -1;
            if (got && f(u, &row))
                return 0;
        }
        if (rc < 0)
            return -1;
    }
    return rc;
}

/* CROSS JOIN keeps the order of the tables: a seek a name, where SQLite would scan all values. */
int sl_read_metrics(struct sl_store *st, int64_t job, int64_t attempt, sl_metric_row_f f, void *u,
                    struct sl_err *err)
{
    sqlite3_stmt *s = sl_db_query(st->db, err,
                                  "SELECT n.name, m.step, m.time, m.value FROM metric_name n"
                                  " CROSS JOIN metric m ON m.job = ?1 AND m.attempt = ?2"
                                  " AND m.name = n.id AND m.step = (SELECT max(step) FROM metric"
                                  " WHERE job = ?1 AND attempt = ?2 AND name = n.id)"
                                  " ORDER BY n.name",
                                  "ii", job, attempt);
    int rc;

    if (!s)
        return -1;
    while ((rc = sl_db_step(st->db, s, err)) == 1) {
        struct sl_metric_row row
            = {sl_db_text(s, 0), sqlite3_column_int64(s, 1), number(s, 2), number(s, 3)};
        if (f(u, &row))
            break;
    }
    sl_db_done(s);
    return rc < 0 ? -1 : 0;
}

static int hand_events(struct sl_store *st, sqlite3_stmt *s, sl_event_row_f f, void *u,
                       struct sl_err *err)
{
    int rc;

    if (!s)
        return -1;
    while ((rc = sl_db_step(st->db, s, err)) == 1) {
        struct sl_event_row row = {
            .id = sqlite3_column_int64(s, 0),
            .job = sqlite3_column_int64(s, 1),
            .attempt = sqlite3_column_int64(s, 2),
            .rank = sqlite3_column_int64(s, 3),
            .time = number(s, 4),
            .kind = sl_db_text(s, 5),
            .message = sl_db_text(s, 6),
        };
        if (f(u, &row))
            break;
    }
    sl_db_done(s);
    return rc < 0 ? -1 : 0;
}

int sl_read_events(struct sl_store *st, int64_t job, int64_t after, int64_t limit, sl_event_row_f f,
                   void *u, struct sl_err *err)
{
    sqlite3_stmt *s;

    if (job)
        s = sl_db_query(st->db, err,
                        "SELECT id, job, attempt, rank, time, kind, message FROM event"
                        " WHERE job = ? AND id > ? ORDER BY id LIMIT ?",
                        "iii", job, after, limit);
    else
        s = sl_db_query(st->db, err,
                        "SELECT id, job, attempt, rank, time, kind, message FROM event"
                        " WHERE id > ? ORDER BY id LIMIT ?",
                        "ii", after, limit);
    return hand_events(st, s, f, u, err);
}

int sl_read_events_tail(struct sl_store *st, int64_t job, int64_t limit, sl_event_row_f f, void *u,
                        struct sl_err *err)
{
    return hand_events(st,
                       sl_db_query(st->db, err,
                                   "SELECT * FROM (SELECT id, job, attempt, rank, time, kind,"
                                   " message FROM event WHERE job = ? ORDER BY id DESC LIMIT ?)"
                                   " ORDER BY id",
                                   "ii", job, limit),
                       f, u, err);
}

int64_t sl_read_last_event(struct sl_store *st, struct sl_err *err)
{
    sqlite3_stmt *s = sl_db_query(st->db, err, "SELECT coalesce(max(id), 0) FROM event", "");
    int64_t id;

    if (!s || sl_db_step(st->db, s, err) != 1)
        return -1;
    id = sqlite3_column_int64(s, 0);
    sl_db_done(s);
    return id;
}

int sl_read_progress(struct sl_store *st, int64_t job, int64_t attempt, struct sl_progress *ret,
                     struct sl_err *err)
{
    sqlite3_stmt *s = sl_db_query(st->db, err,
                                  "SELECT step, time, loss FROM sample WHERE job = ?1"
                                  " AND attempt = ?2 AND rank = (SELECT min(rank) FROM rank"
                                  " WHERE job = ?1 AND attempt = ?2) ORDER BY step DESC LIMIT 1",
                                  "ii", job, attempt);
    int rc = s ? sl_db_step(st->db, s, err) : -1;

    *ret = (struct sl_progress){0, (double)NAN, (double)NAN};
    if (rc == 1)
        *ret = (struct sl_progress){sqlite3_column_int64(s, 0), number(s, 1), number(s, 2)};
    sl_db_done(s);
    return rc < 0 ? -1 : 0;
}

int sl_read_counts(struct sl_store *st, int64_t *ret, struct sl_err *err)
{
    sqlite3_stmt *s
        = sl_db_query(st->db, err, "SELECT state, count(*) FROM job GROUP BY state", "");
    int rc, state;

    memset(ret, 0, SL_STATES * sizeof *ret);
    if (!s)
        return -1;
    while ((rc = sl_db_step(st->db, s, err)) == 1)
        if ((state = sl_state_find(sl_db_text(s, 0))) >= 0)
            ret[state] = sqlite3_column_int64(s, 1);
    return rc;
}

int64_t sl_read_version(struct sl_store *st)
{
    return sl_db_data_version(st->db);
}
