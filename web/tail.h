#ifndef SL_WEB_TAIL_H
#define SL_WEB_TAIL_H

/* tail.h - the end of a rank's log, or what came behind an offset: never more than a bound */

#include <stdint.h>

#include "common/buf.h"
#include "store/store.h"

enum { SL_TAIL_MAX = 256 << 10 };

struct sl_tail {
    int64_t size;   /* of the file now */
    int64_t offset; /* where the text begins */
    int64_t end;    /* where it ends: the next call's `after` */
};

/*
 * Append at most `max` bytes (<= SL_TAIL_MAX) of a rank's log to `text`: with after < 0 the
 * file's last ones, beginning behind a newline where lines were cut off; else those from `after` on
 * (a file that became shorter is read from its beginning). With `before` > 0 the last ones before
 * that offset, to go back from an earlier answer's `offset`. 1; 0: no such log; -1.
 */
struct sl_tail_query {
    int64_t job, attempt, rank;
    int64_t after, before, max;
};
int sl_tail_read(const struct sl_store *st, const struct sl_tail_query *q, struct sl_buf *text,
                 struct sl_tail *ret, struct sl_err *err);

#endif
