#ifndef SL_LINES_H
#define SL_LINES_H

/*
 * lines.h - a stream of bytes cut into whole lines
 *
 * Bytes are kept until their newline has come; a line longer than SL_LINE_MAX is passed on in
 * pieces of that length, so memory is bounded whatever a program writes. Any byte may occur,
 * zeros too.
 */

#include <stddef.h>

enum { SL_LINE_MAX = 8192 };

/* `text` has no newline and no final zero. */
typedef void (*sl_lines_f)(void *user, const char *text, size_t n);

struct sl_lines {
    size_t n;
    char buf[SL_LINE_MAX];
};

/* Starts as all zeros. Calls `line` for each line that `data` completes. */
void sl_lines_push(struct sl_lines *l, const char *data, size_t n, sl_lines_f line, void *user);

/* The stream has ended: what is left without a newline is a line. */
void sl_lines_end(struct sl_lines *l, sl_lines_f line, void *user);

#endif
