#ifndef SL_LOGS_H
#define SL_LOGS_H

/*
 * logs.h - what the ranks print: pipes read by the agent, one log file a rank, whole lines only
 *
 * A rank has two streams (stdout, stderr), each cut into lines by itself, so the two never mix
 * inside a line. Every line goes to <folder>/rank-R.log, to a ring of the last lines for the report
 * of a failure and, when asked for, to `show`. One thread.
 */

#include <stddef.h>

#include "common/err.h"

enum { SL_LOG_STREAMS = 2, SL_LOG_TAIL = 20, SL_LOG_TAIL_WIDTH = 240 };

typedef void (*sl_logs_f)(void *user, int rank, const char *text, size_t n);

struct sl_logs; /* opaque */

/* Make the files (truncated), none when `folder` is NULL. `show` may be NULL. SL_SYSTEM: a file cannot be made. */
struct sl_logs *sl_logs_open(const char *folder, int ranks, sl_logs_f show, void *user,
                             struct sl_err *err);
void sl_logs_close(struct sl_logs *l); /* NULL is fine */

/* Take the reading end of a stream's pipe: made non-blocking, closed at its end. */
int sl_logs_attach(struct sl_logs *l, int rank, int stream, int fd, struct sl_err *err);
int sl_logs_fd(const struct sl_logs *l, int rank, int stream); /* -1: at its end */

/* A line that came otherwise: of a rank of another node. */
void sl_logs_line(struct sl_logs *l, int rank, const char *text, size_t n);

/* Read what is there, at most a bounded piece. */
void sl_logs_read(struct sl_logs *l, int rank, int stream);

/* The rank has ended: read what is left, close its streams, end its last line. */
void sl_logs_finish(struct sl_logs *l, int rank);

/* The rank's last lines, oldest first; NULL when there are fewer. `i` from 0. Lent until a read. */
const char *sl_logs_tail(const struct sl_logs *l, int rank, int i);

/* 0, or the errno of the first failed write to a log file (a full disk): asked once, then 0. */
int sl_logs_trouble(struct sl_logs *l);

#endif
