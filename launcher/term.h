#ifndef SL_TERM_H
#define SL_TERM_H

/*
 * term.h - lines for people, written without ever waiting for the reader
 *
 * A paused terminal or pager must not stop the supervision: lines wait in a bounded buffer and are
 * written as the other end takes them; what does not fit is dropped, counted and told. On a
 * terminal one live line can stand below the others. Lines are written whole. One thread.
 */

#include <stddef.h>

#include "common/err.h"

struct sl_term; /* opaque */

struct sl_term *sl_term_open(int fd, struct sl_err *err); /* fd stays the caller's */
void sl_term_close(struct sl_term *t); /* removes the live line; waits 2 s at most; NULL is fine */

int sl_term_live_ok(const struct sl_term *t); /* 1: a terminal, where a live line makes sense */
int sl_term_width(const struct sl_term *t);   /* columns; 80 when not known */

void sl_term_line(struct sl_term *t, const char *text, size_t n); /* control characters become ? */
void sl_term_printf(struct sl_term *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void sl_term_live(struct sl_term *t, const char *text); /* replaces the live line; "": removes it */

/* For poll(): the descriptor to wait on for writing, -1 when nothing waits. */
int sl_term_wants(const struct sl_term *t);
void sl_term_flush(struct sl_term *t);

#endif
