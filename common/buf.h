#ifndef SL_BUF_H
#define SL_BUF_H

/*
 * buf.h - a byte buffer that grows up to a maximum
 *
 * Always NUL-terminated behind `len`. A failed addition (no memory, past the maximum) leaves the
 * bytes alone and sets `failed`; every later addition then does nothing, so a writer of many pieces
 * checks once, with sl_buf_check() or sl_buf_take(). Works in the caller's struct; not thread-safe.
 */

#include <stdarg.h>
#include <stddef.h>

#include "common/err.h"

struct sl_buf {
    char *p; /* NULL only before the first addition */
    size_t len, room, max;
    int failed; /* 0, or the errno: ENOMEM, or EFBIG past the maximum */
};

void sl_buf_init(struct sl_buf *b, size_t max); /* bytes, NUL not counted; takes no memory */
void sl_buf_fini(struct sl_buf *b);

void sl_buf_add(struct sl_buf *b, const void *p, size_t n);
void sl_buf_str(struct sl_buf *b, const char *s);
void sl_buf_char(struct sl_buf *b, char c);
void sl_buf_printf(struct sl_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void sl_buf_vprintf(struct sl_buf *b, const char *fmt, va_list ap);

void sl_buf_drop(struct sl_buf *b, size_t n); /* remove the first n bytes (all, when fewer) */
void sl_buf_clear(struct sl_buf *b);          /* empty and not failed; keeps its memory */

int sl_buf_check(const struct sl_buf *b, struct sl_err *err); /* 0, or -1 with SL_SYSTEM */
const char *sl_buf_text(const struct sl_buf *b);              /* lends; "" when empty */

/* Hands the text over; caller frees. The buffer is empty after. NULL and SL_SYSTEM when failed. */
char *sl_buf_take(struct sl_buf *b, struct sl_err *err);

#endif
