#include "store/jobs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/fs.h"
#include "common/proc.h"
#include "store/internal.h"

static const char *const names[SL_STATES] = {"queued",  "held", "starting", "running",   "stopping",
                                             "stopped", "done", "failed",   "cancelled", "lost"};

const char *sl_state_name(enum sl_state s)
{
    return (unsigned)s < SL_STATES ? names[s] : "unknown";
}

int sl_state_find(const char *name)
{
    for (int i = 0; i < SL_STATES; i++)
        if (!strcmp(names[i], name))
            return i;
    return -1;
}

int sl_state_live(enum sl_state s)
{
    return s == SL_STARTING || s == SL_RUNNING || s == SL_STOPPING;
}

int sl_lease_self(struct sl_lease *ret, struct sl_err *err)
{
    struct sl_lease l = {.pid = getpid()};

    if (gethostname(l.host, sizeof l.host - 1))
        return sl_fail(err, SL_SYSTEM, "cannot tell this host's name: %s", strerror(errno));
    if (sl_proc_boot_id(l.boot, err))
        return -1;
    l.start_time = sl_proc_start_time(getpid());
    if (l.start_time < 0)
        return sl_fail(err, SL_SYSTEM, "cannot read this process's start time under /proc");
    *ret = l;
    return 0;
}

int sl_lease_alive(const struct sl_lease *l)
{
    struct sl_lease me;

    if (l->pid == 0)
        return 0;
    if (sl_lease_self(&me, NULL) || strcmp(me.host, l->host))
        return -1;
    return strcmp(me.boot, l->boot) ? 0 : sl_proc_alive((pid_t)l->pid, l->start_time);
}

int sl_jobs_dir(const struct sl_store *st, int64_t id, char *ret, size_t size, struct sl_err *err)
{
    int n = snprintf(ret, size, "%s/runs/%lld", st->dir, (long long)id);

    if (n < 0 || (size_t)n >= size)
        return sl_fail(err, SL_SYSTEM, "the path of run %lld's folder is too long", (long long)id);
    return 0;
}

static int make_run_dir(struct sl_store *st, int64_t id, struct sl_err *err)
{
    char dir[4096];

    return sl_jobs_dir(st, id, dir, sizeof dir, err) ? -1 : sl_fs_mkdirs(dir, 0700, err);
}

int sl_jobs_create(struct sl_store *st, const struct sl_new_job *job, int64_t *id,
                   struct sl_err *err)
{
    struct sl_lease me;
    int64_t made;

    if (sl_lease_self(&me, err))
        return -1;
    if (sl_db_begin(st->db, err))
        return -1;
    if (sl_db_run(st->db, err,
                  "INSERT INTO job (name, state, submitted_at, ranks, steps, strategy, text, plan,"
                  " lease_host, lease_boot, lease_pid, lease_start)"
                  " VALUES (?, 'starting', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                  "sdiisssssii", job->name, sl_clock_real(), (int64_t)job->ranks, job->steps,
                  job->strategy ? job->strategy : "", job->text ? job->text : "", job->plan,
                  me.host, me.boot, me.pid, me.start_time)
        < 0)
        goto fail;
    made = sl_db_last_id(st->db);
    if (make_run_dir(st, made, err))
        goto fail;
    if (sl_db_commit(st->db, err))
        return -1;
    *id = made;
    return 0;
fail:
    sl_db_rollback(st->db);
    return -1;
}

static int same(const struct sl_lease *a, const struct sl_lease *b)
{
    return a->pid == b->pid && a->start_time == b->start_time && !strcmp(a->host, b->host)
           && !strcmp(a->boot, b->boot);
}

/* State and holder of a job. SL_USAGE: there is none. */
static int find(struct sl_store *st, int64_t id, enum sl_state *state, struct sl_lease *holder,
                struct sl_err *err)
{
    sqlite3_stmt *s = sl_db_query(st->db, err,
                                  "SELECT state, lease_host, lease_boot, lease_pid, lease_start"
                                  " FROM job WHERE id = ?",
                                  "i", id);
    int rc = s ? sl_db_step(st->db, s, err) : -1;

    if (rc < 0)
        return -1;
    if (rc == 0)
        return sl_fail(err, SL_USAGE, "no job %lld", (long long)id);
    *state = (enum sl_state)sl_state_find(sl_db_text(s, 0));
    snprintf(holder->host, sizeof holder->host, "%s", sl_db_text(s, 1));
    snprintf(holder->boot, sizeof holder->boot, "%s", sl_db_text(s, 2));
    holder->pid = sqlite3_column_int64(s, 3);
    holder->start_time = sqlite3_column_int64(s, 4);
    sl_db_done(s);
    return 0;
}

/* Every change of state is an event of the job's last attempt, in the same transaction. */
static int tell(struct sl_store *st, int64_t id, double now, enum sl_state state, const char *why,
                struct sl_err *err)
{
    return sl_db_run(st->db, err,
                     "INSERT INTO event (job, attempt, rank, time, kind, message)"
                     " SELECT id, attempts, -1, ?, ?, ? FROM job WHERE id = ?",
                     "dssi", now, sl_state_name(state), why, id);
}

static int next_number(struct sl_store *st, int64_t id, int64_t *ret, struct sl_err *err)
{
    sqlite3_stmt *s = sl_db_query(st->db, err, "SELECT attempts + 1 FROM job WHERE id = ?", "i", id);

    if (!s || sl_db_step(st->db, s, err) != 1)
        return -1;
    *ret = sqlite3_column_int64(s, 0);
    sl_db_done(s);
    return 0;
}

static int open_attempt(struct sl_store *st, int64_t id, int64_t attempt, const struct sl_lease *me,
                        double now, struct sl_err *err)
{
    return sl_db_run(st->db, err,
                     "INSERT INTO attempt (job, attempt, host, pid, started_at, state)"
                     " VALUES (?, ?, ?, ?, ?, 'starting')",
                     "iisid", id, attempt, me->host, me->pid, now)
                   < 0
               ? -1
               : 0;
}

int sl_jobs_begin(struct sl_store *st, int64_t id, const struct sl_lease *me,
                  const struct sl_lease *from, int *attempt, struct sl_err *err)
{
    double now = sl_clock_real();
    struct sl_lease holder;
    enum sl_state state = SL_STATES;
    int64_t next = 0;
    char text[160];

    if (sl_db_begin(st->db, err))
        return -1;
    if (find(st, id, &state, &holder, err))
        goto fail;
    if (state == SL_DONE || state == SL_CANCELLED || state == SL_HELD) {
        sl_fail(err, SL_USAGE, "job %lld is %s", (long long)id, sl_state_name(state));
        goto fail;
    }
    if (from && sl_state_live(state) && !same(&holder, from) && sl_lease_alive(&holder) != 0) {
        sl_fail(err, SL_BUSY, "job %lld is run by process %lld on %s", (long long)id,
                (long long)holder.pid, holder.host);
        goto fail;
    }
    if (next_number(st, id, &next, err))
        goto fail;
    /* An attempt that nobody ended did not survive its holder. */
    if (sl_db_run(st->db, err,
                  "UPDATE attempt SET state = 'lost', ended_at = ?"
                  " WHERE job = ? AND ended_at IS NULL",
                  "di", now, id)
        < 0)
        goto fail;
    if (open_attempt(st, id, next, me, now, err))
        goto fail;
    if (sl_db_run(st->db, err,
                  "UPDATE job SET state = 'starting', attempts = ?, ended_at = NULL, reason = '',"
                  " exit_status = NULL, started_at = coalesce(started_at, ?), lease_host = ?,"
                  " lease_boot = ?, lease_pid = ?, lease_start = ? WHERE id = ?",
                  "idssiii", next, now, me->host, me->boot, me->pid, me->start_time, id)
        < 0)
        goto fail;
    snprintf(text, sizeof text, "attempt %lld on %s, process %lld", (long long)next, me->host,
             (long long)me->pid);
    if (tell(st, id, now, SL_STARTING, text, err) < 0)
        goto fail;
    if (sl_db_commit(st->db, err))
        return -1;
    *attempt = (int)next;
    return 0;
fail:
    sl_db_rollback(st->db);
    return -1;
}

/* The holder of a live job may be dead: then it can be taken up like a lost one. */
static int check_ended(int64_t id, enum sl_state state, const struct sl_lease *holder,
                       struct sl_err *err)
{
    if (state == SL_QUEUED || state == SL_STOPPED || state == SL_FAILED || state == SL_CANCELLED || state == SL_LOST
        || (sl_state_live(state) && sl_lease_alive(holder) == 0))
        return 0;
    sl_fail(err, SL_USAGE, "job %lld is %s", (long long)id, sl_state_name(state));
    if (state == SL_DONE)
        return sl_hint(err, "A job that is done has nothing left to do: start a new one.");
    if (sl_state_live(state))
        return sl_hint(err, "Process %lld on %s runs it.", (long long)holder->pid, holder->host);
    return -1;
}

int sl_jobs_again(struct sl_store *st, int64_t id, const struct sl_new_job *job,
                  struct sl_err *err)
{
    struct sl_err why = {0};
    struct sl_lease me, holder;
    enum sl_state state = SL_STATES;

    if (sl_lease_self(&me, err) || sl_db_begin(st->db, err))
        return -1;
    if (find(st, id, &state, &holder, &why)) {
        sl_db_rollback(st->db);
        if (why.code == SL_USAGE)
            return 0;
        return sl_fail(err, why.code, "%s", why.msg);
    }
    if (check_ended(id, state, &holder, err)
        || sl_db_run(st->db, err,
                     "UPDATE job SET name = ?, state = 'starting', reason = '', exit_status = NULL,"
                     " ended_at = NULL, ranks = ?, steps = ?, strategy = ?, text = ?, plan = ?,"
                     " lease_host = ?, lease_boot = ?, lease_pid = ?, lease_start = ? WHERE id = ?",
                     "siisssssiii", job->name, (int64_t)job->ranks, job->steps,
                     job->strategy ? job->strategy : "", job->text ? job->text : "", job->plan,
                     me.host, me.boot, me.pid, me.start_time, id)
               < 0
        || make_run_dir(st, id, err)) {
        sl_db_rollback(st->db);
        return -1;
    }
    return sl_db_commit(st->db, err) ? -1 : 1;
}

static int not_ours(int64_t id, struct sl_err *err)
{
    sl_fail(err, SL_USAGE, "job %lld is no longer held by this process", (long long)id);
    return sl_hint(err, "another command declared it lost or took it over");
}

int sl_jobs_move(struct sl_store *st, int64_t id, const struct sl_lease *me, enum sl_state to,
                 const char *reason, struct sl_err *err)
{
    const char *why = reason ? reason : "";
    int n;

    if (sl_db_begin(st->db, err))
        return -1;
    n = sl_db_run(st->db, err,
                  "UPDATE job SET state = ?, reason = ? WHERE id = ? AND lease_host = ?"
                  " AND lease_boot = ? AND lease_pid = ? AND lease_start = ?"
                  " AND state IN ('starting', 'running', 'stopping')",
                  "ssissii", sl_state_name(to), why, id, me->host, me->boot, me->pid,
                  me->start_time);
    if (n == 0)
        not_ours(id, err);
    if (n <= 0
        || sl_db_run(st->db, err,
                     "UPDATE attempt SET state = ?, reason = ?"
                     " WHERE job = ? AND ended_at IS NULL",
                     "ssi", sl_state_name(to), why, id)
               < 0
        || tell(st, id, sl_clock_real(), to, why, err) < 0) {
        sl_db_rollback(st->db);
        return -1;
    }
    return sl_db_commit(st->db, err);
}

int sl_jobs_end(struct sl_store *st, int64_t id, const struct sl_lease *me, enum sl_state to,
                int exit_status, const char *reason, struct sl_err *err)
{
    const char *why = reason ? reason : "";
    double now = sl_clock_real();
    int n;

    if (to != SL_STOPPED && to != SL_DONE && to != SL_FAILED && to != SL_CANCELLED)
        return sl_fail(err, SL_BUG, "a job cannot end as %s", sl_state_name(to));
    if (sl_db_begin(st->db, err))
        return -1;
    n = sl_db_run(st->db, err,
                  "UPDATE job SET state = ?, reason = ?, exit_status = ?, ended_at = ?,"
                  " lease_pid = 0 WHERE id = ? AND lease_host = ? AND lease_boot = ?"
                  " AND lease_pid = ? AND lease_start = ?",
                  "ssidissii", sl_state_name(to), why, (int64_t)exit_status, now, id, me->host,
                  me->boot, me->pid, me->start_time);
    if (n == 0)
        not_ours(id, err);
    if (n <= 0
        || sl_db_run(st->db, err,
                     "UPDATE attempt SET state = ?, reason = ?, exit_status = ?,"
                     " ended_at = ? WHERE job = ? AND ended_at IS NULL",
                     "ssidi", sl_state_name(to), why, (int64_t)exit_status, now, id)
               < 0
        || tell(st, id, now, to, why, err) < 0) {
        sl_db_rollback(st->db);
        return -1;
    }
    return sl_db_commit(st->db, err);
}

int sl_jobs_next(struct sl_store *st, int64_t id, const struct sl_lease *me, int exit_status,
                 const char *reason, int *attempt, struct sl_err *err)
{
    double now = sl_clock_real();
    int64_t next = 0;
    char text[600];
    int n;

    if (sl_db_begin(st->db, err))
        return -1;
    if (next_number(st, id, &next, err))
        goto fail;
    snprintf(text, sizeof text, "attempt %lld, after: %s", (long long)next, reason);
    n = sl_db_run(st->db, err,
                  "UPDATE job SET state = 'starting', reason = ?, attempts = ? WHERE id = ?"
                  " AND lease_host = ? AND lease_boot = ? AND lease_pid = ? AND lease_start = ?",
                  "siissii", text, next, id, me->host, me->boot, me->pid, me->start_time);
    if (n == 0)
        not_ours(id, err);
    if (n <= 0
        || sl_db_run(st->db, err,
                     "UPDATE attempt SET state = 'failed', reason = ?, exit_status = ?,"
                     " ended_at = ? WHERE job = ? AND ended_at IS NULL",
                     "sidi", reason, (int64_t)exit_status, now, id)
               < 0
        || open_attempt(st, id, next, me, now, err)
        || tell(st, id, now, SL_STARTING, text, err) < 0)
        goto fail;
    if (sl_db_commit(st->db, err))
        return -1;
    *attempt = (int)next;
    return 0;
fail:
    sl_db_rollback(st->db);
    return -1;
}

enum { SWEEP = 64 };

struct dead {
    int64_t id;
    struct sl_lease holder;
};

/* Live jobs whose holder is dead, at most SWEEP of them. Reads only. */
static int find_dead(struct sl_store *st, struct dead *ret, struct sl_err *err)
{
    sqlite3_stmt *s = sl_db_query(st->db, err,
                                  "SELECT id, lease_host, lease_boot, lease_pid, lease_start"
                                  " FROM job WHERE state IN ('starting', 'running', 'stopping')",
                                  "");
    int n = 0, rc;

    if (!s)
        return -1;
    while ((rc = sl_db_step(st->db, s, err)) == 1 && n < SWEEP) {
        struct dead d = {.id = sqlite3_column_int64(s, 0)};

        snprintf(d.holder.host, sizeof d.holder.host, "%s", sl_db_text(s, 1));
        snprintf(d.holder.boot, sizeof d.holder.boot, "%s", sl_db_text(s, 2));
        d.holder.pid = sqlite3_column_int64(s, 3);
        d.holder.start_time = sqlite3_column_int64(s, 4);
        if (sl_lease_alive(&d.holder) == 0)
            ret[n++] = d;
    }
    sl_db_done(s);
    return rc < 0 ? -1 : n;
}

/* Only if the holder is still the dead one: it may have been taken over meanwhile. */
static int bury(struct sl_store *st, const struct dead *d, const char *why, struct sl_err *err)
{
    double now = sl_clock_real();
    int n;

    if (sl_db_begin(st->db, err))
        return -1;
    n = sl_db_run(st->db, err,
                  "UPDATE job SET state = 'lost', reason = ?, ended_at = ?, lease_pid = 0"
                  " WHERE id = ? AND lease_host = ? AND lease_boot = ? AND lease_pid = ?"
                  " AND lease_start = ? AND state IN ('starting', 'running', 'stopping')",
                  "sdissii", why, now, d->id, d->holder.host, d->holder.boot, d->holder.pid,
                  d->holder.start_time);
    if (n <= 0
        || sl_db_run(st->db, err,
                     "UPDATE attempt SET state = 'lost', reason = ?, ended_at = ?"
                     " WHERE job = ? AND ended_at IS NULL",
                     "sdi", why, now, d->id)
               < 0
        || tell(st, d->id, now, SL_LOST, why, err) < 0) {
        sl_db_rollback(st->db);
        return n == 0 ? 0 : -1;
    }
    return sl_db_commit(st->db, err) ? -1 : 1;
}

int sl_jobs_lose(struct sl_store *st, int64_t id, const char *reason, struct sl_err *err)
{
    struct dead d = {.id = id};
    enum sl_state state = SL_STATES;
    struct sl_err why = {0};

    if (find(st, id, &state, &d.holder, &why)) {
        if (why.code == SL_USAGE)
            return 0;
        return sl_fail(err, why.code, "%s", why.msg);
    }
    return sl_state_live(state) ? bury(st, &d, reason, err) : 0;
}

int sl_jobs_sweep(struct sl_store *st, struct sl_err *err)
{
    struct dead dead[SWEEP];
    int n = find_dead(st, dead, err), lost = 0;

    for (int i = 0; i < n; i++) {
        int rc = bury(st, &dead[i], "the process that ran it is gone", err);

        if (rc < 0)
            return -1;
        lost += rc;
    }
    return n < 0 ? -1 : lost;
}
