#include "store/published.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fs.h"
#include "common/mem.h"
#include "store/internal.h"
#include "store/jobs.h"

#define LINK "state-folder"
enum { PATH = 4096 };

/* "DIR/runs/ID/NAME"; id 0: "DIR/runs". */
static int run_path(const struct sl_store *st, int64_t id, const char *name, char ret[PATH],
                    struct sl_err *err)
{
    int n = id ? snprintf(ret, PATH, "%s/runs/%lld%s%s", st->dir, (long long)id, *name ? "/" : "",
                          name)
               : snprintf(ret, PATH, "%s/runs", st->dir);

    return n < PATH ? 0 : sl_fail(err, SL_SYSTEM, "the path of the state folder is too long");
}

/* ---- the folder of a local store ---- */

int sl_published_needed(const char *dir, struct sl_err *err)
{
    return access(dir, F_OK) ? 0 : sl_fs_is_network(dir, err);
}

int sl_published_link(const char *folder, const char *dir, struct sl_err *err)
{
    char path[PATH];

    if (snprintf(path, sizeof path, "%s/" LINK, folder) >= PATH || symlink(dir, path))
        return sl_fail(err, SL_SYSTEM, "cannot make a link in \"%s\": %s", folder, strerror(errno));
    return 0;
}

int sl_published_follow(struct sl_store *st, struct sl_err *err)
{
    char path[PATH], to[PATH];
    ssize_t n;
    char *dir;

    if (snprintf(path, sizeof path, "%s/" LINK, st->dir) >= PATH)
        return 0;
    n = readlink(path, to, sizeof to - 1);
    if (n < 0)
        return 0;
    to[n] = '\0';
    dir = sl_strdup(to);
    if (!dir)
        return sl_fail(err, SL_SYSTEM, "cannot hold a path: %s", strerror(errno));
    free(st->dir);
    st->dir = dir;
    st->local = 1;
    return 0;
}

int sl_published_is(const struct sl_store *st)
{
    return st->local;
}

/* ---- ids and holders ---- */

static int64_t id_of(const char *name)
{
    char *end;
    long long id = *name >= '1' && *name <= '9' ? strtoll(name, &end, 10) : 0;

    return id && !*end ? id : 0;
}

static int my_name(char ret[256], struct sl_err *err)
{
    struct sl_lease me;

    if (sl_lease_self(&me, err))
        return -1;
    snprintf(ret, 256, "%s %s %lld %lld\n", me.host, me.boot, (long long)me.pid,
             (long long)me.start_time);
    return 0;
}

static int hold(struct sl_store *st, int64_t id, int force, struct sl_err *err)
{
    char path[PATH], text[256], *was;
    struct sl_lease other = {0};
    long long pid = 0, start = 0;
    int fd, n, rc;

    if (run_path(st, id, "holder", path, err) || my_name(text, err))
        return -1;
    for (int i = 0; i < 2; i++) {
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd >= 0) {
            rc = sl_fs_write_all(fd, text, strlen(text), err);
            close(fd);
            return rc;
        }
        if (errno != EEXIST)
            return sl_fail(err, SL_SYSTEM, "make \"%s\": %s", path, strerror(errno));
        was = sl_fs_read(path, 255, NULL, NULL);
        n = was ? sscanf(was, "%63s %39s %lld %lld", other.host, other.boot, &pid, &start) : 0;
        free(was);
        other.pid = pid;
        other.start_time = start;
        if (!force && (n != 4 || sl_lease_alive(&other) != 0))
            break;
        unlink(path);
    }
    sl_fail(err, SL_USAGE, "job %lld is held by process %lld on %s", (long long)id, pid,
            *other.host ? other.host : "an unknown host");
    return sl_hint(err, "If that is gone for certain, remove \"%.300s\".", path);
}

int sl_published_claim(struct sl_store *st, struct sl_err *err)
{
    char path[PATH];
    int64_t id = 0;
    struct dirent *e;
    DIR *d;

    if (!st->local)
        return 0;
    if (run_path(st, 0, "", path, err) || sl_fs_mkdirs(path, 0700, err))
        return -1;
    d = opendir(path);
    while (d && (e = readdir(d)))
        id = id_of(e->d_name) > id ? id_of(e->d_name) : id;
    if (!d)
        return sl_fail(err, SL_SYSTEM, "read \"%s\": %s", path, strerror(errno));
    closedir(d);
    do {
        if (run_path(st, ++id, "", path, err))
            return -1;
        errno = 0;
    } while (mkdir(path, 0700) && errno == EEXIST);
    if (errno)
        return sl_fail(err, SL_SYSTEM, "make \"%s\": %s", path, strerror(errno));
    if (hold(st, id, 0, err)
        || sl_db_run(st->db, err, "INSERT INTO sqlite_sequence (name, seq) VALUES ('job', ?)", "i",
                     id - 1)
               < 0)
        return -1;
    return 0;
}

int sl_published_take(struct sl_store *st, int64_t id, int force, struct sl_err *err)
{
    struct sl_gathered got;

    if (!st->local)
        return 0;
    if (hold(st, id, force, err))
        return -1;
    if (sl_published_gather(st, id, 1, &got, err)) {
        sl_published_release(st, id);
        return -1;
    }
    if (!got.bad)
        return 0;
    if (err)
        *err = got.why;
    sl_published_release(st, id);
    return -1;
}

void sl_published_release(struct sl_store *st, int64_t id)
{
    char path[PATH], mine[256], *text;

    if (!st->local || id <= 0 || run_path(st, id, "holder", path, NULL) || my_name(mine, NULL))
        return;
    text = sl_fs_read(path, 255, NULL, NULL);
    if (text && !strcmp(text, mine))
        unlink(path);
    free(text);
}

/* ---- publishing ---- */

int64_t sl_published_next(int64_t begun, int64_t ended)
{
    const char *env = getenv("SHARDLAUNCH_PUBLISH");
    int64_t s = env ? atoi(env) : 0;
    int64_t every = (s >= 1 && s <= 3600 ? s : SL_PUBLISH_S) * 1000000000;
    int64_t rest = (ended - begun) * SL_PUBLISH_SHARE;

    return ended + (rest > every ? rest : every);
}

int sl_published_write(struct sl_store *st, int64_t id, struct sl_err *err)
{
    char path[PATH], made[PATH];
    int fd;

    if (!st->local)
        return 0;
    if (run_path(st, id, "published.db", path, err) || run_path(st, id, "published.new", made, err))
        return -1;
    unlink(made); /* of a run that was killed */
    if (sl_db_copy(st->db, made, err))
        return -1;
    if (rename(made, path)) {
        sl_fail(err, SL_SYSTEM, "rename \"%s\": %s", made, strerror(errno));
        unlink(made);
        return -1;
    }
    path[strlen(path) - strlen("/published.db")] = '\0';
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
    return 0;
}

/* ---- gathering ---- */

/* What a URI may hold as it is; the rest as %XX. */
static int make_uri(const char *path, char *ret, size_t size)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._-";
    size_t n = (size_t)snprintf(ret, size, "file:");

    for (; *path && n + 4 < size; path++)
        n += (size_t)snprintf(ret + n, size - n, strchr(plain, *path) ? "%c" : "%%%02X",
                              (unsigned char)*path);
    return *path || snprintf(ret + n, size - n, "?immutable=1") >= (int)(size - n) ? -1 : 0;
}

static int version(struct sl_store *st, const char *sql, int64_t *ret, struct sl_err *err)
{
    sqlite3_stmt *s = sl_db_query(st->db, err, sql, "");

    if (!s || sl_db_step(st->db, s, err) != 1)
        return -1;
    *ret = sqlite3_column_int64(s, 0);
    sl_db_done(s);
    return 0;
}

/* The file is attached as p. Ids of names and of events are those of the file that they are in. */
static int copy_rows(struct sl_store *st, int64_t id, int whole, int64_t event, struct sl_err *err)
{
    static const char *const brief[] = {
        "INSERT OR REPLACE INTO main.job SELECT * FROM p.job WHERE id = ?",
        "INSERT OR REPLACE INTO main.attempt SELECT * FROM p.attempt WHERE job = ?",
        "INSERT OR REPLACE INTO main.rank SELECT * FROM p.rank WHERE job = ?",
        "INSERT OR IGNORE INTO main.sample SELECT s.* FROM p.rank r CROSS JOIN p.sample s"
        " ON s.job = r.job AND s.attempt = r.attempt AND s.rank = r.rank AND s.step ="
        " (SELECT max(step) FROM p.sample WHERE job = r.job AND attempt = r.attempt"
        " AND rank = r.rank) WHERE r.job = ?",
    };
    static const char *const rest[] = {
        "INSERT OR IGNORE INTO main.sample SELECT * FROM p.sample WHERE job = ?",
        "INSERT OR REPLACE INTO main.memory SELECT * FROM p.memory WHERE job = ?",
        "INSERT OR IGNORE INTO main.metric_name (name) SELECT name FROM p.metric_name"
        " WHERE ? > 0 ORDER BY id",
        "INSERT OR IGNORE INTO main.metric SELECT m.job, m.attempt, n.id, m.step, m.time, m.value"
        " FROM p.metric m JOIN p.metric_name q ON q.id = m.name"
        " JOIN main.metric_name n ON n.name = q.name WHERE m.job = ?",
        "INSERT OR REPLACE INTO main.rollup SELECT r.job, r.attempt, r.rank, n.id, r.width,"
        " r.bucket, r.count, r.min, r.max, r.sum FROM p.rollup r JOIN p.metric_name q"
        " ON q.id = r.name JOIN main.metric_name n ON n.name = q.name WHERE r.job = ?",
    };

    for (size_t i = 0; i < sizeof brief / sizeof *brief; i++)
        if (sl_db_run(st->db, err, brief[i], "i", id) < 0)
            return -1;
    for (size_t i = 0; whole && i < sizeof rest / sizeof *rest; i++)
        if (sl_db_run(st->db, err, rest[i], "i", id) < 0)
            return -1;
    if (whole
        && sl_db_run(st->db, err,
                     "INSERT INTO main.event (job, attempt, rank, time, kind, message)"
                     " SELECT job, attempt, rank, time, kind, message FROM p.event"
                     " WHERE job = ? AND id > ? ORDER BY id",
                     "ii", id, event)
               < 0)
        return -1;
    return 0;
}

static int import(struct sl_store *st, int64_t id, int whole, int64_t event, const struct stat *sb,
                  struct sl_err *err)
{
    int64_t theirs, ours;

    if (version(st, "PRAGMA p.user_version", &theirs, err)
        || version(st, "PRAGMA main.user_version", &ours, err))
        return -1;
    if (theirs != ours)
        return sl_fail(err, SL_USAGE, "job %lld was published by another version of shardlaunch",
                       (long long)id);
    if (sl_db_begin(st->db, err))
        return -1;
    if (copy_rows(st, id, whole, event, err)
        || sl_db_run(st->db, err,
                     "INSERT OR REPLACE INTO temp.gathered SELECT ?1, ?2, ?3, ?4,"
                     " coalesce(max(id), 0) FROM p.event",
                     "iiii", id, (int64_t)sb->st_ino, (int64_t)sb->st_mtime,
                     (int64_t)sb->st_mtim.tv_nsec)
               < 0) {
        sl_db_rollback(st->db);
        return -1;
    }
    return sl_db_commit(st->db, err);
}

/* 1: it is there, and here now. 0: nothing is published. */
static int gather_now(struct sl_store *st, int64_t id, int whole, struct sl_err *err)
{
    char path[PATH], uri[3 * PATH];
    int64_t event = 0;
    struct stat sb;
    sqlite3_stmt *s;
    int rc, same = 0;

    if (run_path(st, id, "published.db", path, err) || make_uri(path, uri, sizeof uri))
        return -1;
    if (stat(path, &sb))
        return errno == ENOENT || errno == ENOTDIR
                   ? 0
                   : sl_fail(err, SL_SYSTEM, "\"%s\": %s", path, strerror(errno));
    s = sl_db_query(st->db, err,
                    "SELECT ino = ? AND s = ? AND ns = ?, event FROM temp.gathered WHERE job = ?",
                    "iiii", (int64_t)sb.st_ino, (int64_t)sb.st_mtime, (int64_t)sb.st_mtim.tv_nsec,
                    id);
    rc = s ? sl_db_step(st->db, s, err) : -1;
    if (rc == 1) {
        same = sqlite3_column_int(s, 0);
        event = sqlite3_column_int64(s, 1);
    }
    sl_db_done(s);
    if (rc < 0 || same)
        return rc < 0 ? -1 : 1;
    if (sl_db_run(st->db, err, "ATTACH ? AS p", "s", uri) < 0) {
        sl_within(err, "\"%s\"", path);
        return -1;
    }
    rc = import(st, id, whole, event, &sb, err);
    if (rc)
        sl_within(err, "\"%s\"", path);
    sl_db_exec(st->db, "DETACH p", rc ? NULL : err);
    return rc ? -1 : 1;
}

/* Twice: it may have been replaced under our eyes, which leaves a stale handle. */
static void gather_one(struct sl_store *st, int64_t id, int whole, struct sl_gathered *ret)
{
    struct sl_err why = {0};
    int rc = gather_now(st, id, whole, &why);

    if (rc < 0)
        rc = gather_now(st, id, whole, &why);
    ret->jobs += rc > 0;
    if (rc < 0 && !ret->bad++)
        ret->why = why;
}

int sl_published_gather(struct sl_store *st, int64_t only, int whole, struct sl_gathered *ret,
                        struct sl_err *err)
{
    char path[PATH];
    struct dirent *e;
    DIR *d;

    *ret = (struct sl_gathered){0};
    if (run_path(st, 0, "", path, err)
        || sl_db_exec(st->db,
                      "PRAGMA foreign_keys = OFF; CREATE TEMP TABLE IF NOT EXISTS gathered"
                      " (job INTEGER PRIMARY KEY, ino, s, ns, event)",
                      err))
        return -1;
    if (only) {
        gather_one(st, only, whole, ret);
        return sl_db_exec(st->db, "PRAGMA foreign_keys = ON", err);
    }
    d = opendir(path);
    if (!d)
        return errno == ENOENT ? 0 : sl_fail(err, SL_SYSTEM, "\"%s\": %s", path, strerror(errno));
    while ((e = readdir(d))) {
        int64_t id = id_of(e->d_name);

        if (id)
            gather_one(st, id, whole, ret);
    }
    closedir(d);
    return sl_db_exec(st->db, "PRAGMA foreign_keys = ON", err);
}
