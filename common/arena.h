#ifndef SL_ARENA_H
#define SL_ARENA_H

/*
 * arena.h - memory for work with one end: a parse, a request, a step
 *
 * Everything taken from an arena is released at once by destroying it. Not thread-safe. An arena
 * has a maximum, so that a file or a peer cannot make it grow without end; past it, or without
 * memory, the calls return NULL with errno ENOMEM and the arena stays as it was.
 */

#include <stddef.h>

#include "common/err.h"

struct sl_arena; /* opaque */

struct sl_arena *sl_arena_create(size_t max, struct sl_err *err); /* max in bytes; 0: no limit */
void sl_arena_destroy(struct sl_arena *a);                        /* NULL is fine */

void *sl_arena_alloc(struct sl_arena *a, size_t n, size_t size); /* zeroed, aligned to 16 bytes */
char *sl_arena_strdup(struct sl_arena *a, const char *s);
char *sl_arena_strndup(struct sl_arena *a, const char *s, size_t n);
char *sl_arena_printf(struct sl_arena *a, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

size_t sl_arena_used(const struct sl_arena *a); /* bytes handed out, padding counted */

#endif
