#ifndef SL_STORE_PUBLISHED_H
#define SL_STORE_PUBLISHED_H

/*
 * published.h - stores whose state folder is on a network file system
 *
 * There neither SQLite's log nor its locks can be trusted. A run keeps its rows in a folder of this
 * machine that has, beside the database, a link to the state folder (sl_published_link): a store
 * opened there is `local`: sl_store_dir() is the state folder. Its rows are copied to
 * runs/ID/published.db, which is only ever replaced by a rename: readers open it as immutable and
 * gather it into a local store of their own. runs/ID itself, made by mkdir, claims an id;
 * runs/ID/holder, made exclusively, says who may publish.
 *
 * All but link and gather do nothing on a store that is not local. Errors: SL_SYSTEM disk, memory;
 * SL_USAGE what is said there.
 */

#include <stdint.h>

#include "common/err.h"
#include "store/store.h"

/* Seconds between two publications, at least: SHARDLAUNCH_PUBLISH, 1 to 3,600; 10. */
enum { SL_PUBLISH_S = 10, SL_PUBLISH_SHARE = 20 }; /* and at most 1/20 of the time */

/* 1: the state folder `dir` is on a network file system; 0: not, or it is not there yet. */
int sl_published_needed(const char *dir, struct sl_err *err);

/* Let a store below `folder` belong to the state folder `dir`. */
int sl_published_link(const char *folder, const char *dir, struct sl_err *err);
int sl_published_follow(struct sl_store *st, struct sl_err *err); /* sl_store_open() calls it */

/* The next job that is made here gets an id that no other run has; this process holds it. */
int sl_published_claim(struct sl_store *st, struct sl_err *err);

/*
 * Hold a job that was published, and gather it: before it is taken up again. SL_USAGE: another run
 * holds it, or its host is another one and cannot be asked; `force` takes it from there.
 */
int sl_published_take(struct sl_store *st, int64_t id, int force, struct sl_err *err);

/* Publish all rows, of job `id` alone: whole, and on disk, or as before. One holder, one caller at a time. */
int sl_published_write(struct sl_store *st, int64_t id, struct sl_err *err);
void sl_published_release(struct sl_store *st, int64_t id); /* hold it no longer */

int sl_published_is(const struct sl_store *st);

/* When to publish next, monotonic ns, when one took from `begun` to `ended`. */
int64_t sl_published_next(int64_t begun, int64_t ended);

/*
 * Copy published rows into st, a store for that alone: of job `only`, of all when it is 0; `whole`, or
 * what a list shows. Again: what has changed since. Files that cannot be read are counted and the
 * first is explained in `why`; rows that are here already stay.
 */
struct sl_gathered {
    int jobs, bad;
    struct sl_err why;
};
int sl_published_gather(struct sl_store *st, int64_t only, int whole, struct sl_gathered *ret,
                        struct sl_err *err);

#endif
