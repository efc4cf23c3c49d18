#ifndef SL_LOOP_H
#define SL_LOOP_H

/*
 * loop.h - one thread waiting for descriptors, timers and signals
 *
 * Callbacks run inside sl_loop_turn() or sl_loop_run(), one at a time. They may add, change and drop
 * anything, themselves included: an event of a dropped descriptor is never delivered, not even when
 * the number is in use again. The loop owns no descriptor that it is given. Not thread-safe;
 * to wake it from elsewhere, give it an eventfd.
 */

#include <stdint.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>

#include "common/err.h"

struct sl_loop; /* opaque */

typedef void (*sl_loop_fd_f)(void *u, int fd, uint32_t events); /* EPOLLIN, EPOLLHUP, ... */
typedef void (*sl_loop_timer_f)(void *u);
typedef void (*sl_loop_signal_f)(void *u, const struct signalfd_siginfo *si);

struct sl_loop *sl_loop_create(struct sl_err *err);
void sl_loop_destroy(struct sl_loop *l); /* gives the signal mask back; NULL is fine */

/* Watch fd for `events` (level-triggered); again with another mask or callback to change it. */
int sl_loop_fd(struct sl_loop *l, int fd, uint32_t events, sl_loop_fd_f f, void *u,
               struct sl_err *err);
void sl_loop_drop_fd(struct sl_loop *l, int fd); /* before closing it; unknown is fine */

/*
 * Call f once `after` nanoseconds from now, then every `every` (0: only once). Returns the timer's
 * id (> 0), else -1. A late timer runs once, not once per missed period.
 */
int64_t sl_loop_timer(struct sl_loop *l, int64_t after, int64_t every, sl_loop_timer_f f, void *u,
                      struct sl_err *err);
void sl_loop_cancel(struct sl_loop *l, int64_t id); /* an ended or unknown id is fine */

/* Block `signo` for this thread and deliver it here. Threads made later inherit the block. */
int sl_loop_signal(struct sl_loop *l, int signo, sl_loop_signal_f f, void *u, struct sl_err *err);

/* Wait at most `ns` (< 0: no limit) and run what is due. The number of callbacks run, -1: failed. */
int sl_loop_turn(struct sl_loop *l, int64_t ns, struct sl_err *err);
int sl_loop_run(struct sl_loop *l, struct sl_err *err); /* until sl_loop_stop() */
void sl_loop_stop(struct sl_loop *l);

#endif
