#include "common/arena.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

enum { ALIGN = 16, CHUNK = 16384 };

struct chunk {
    _Alignas(ALIGN) struct chunk *next;
    size_t used, room;
    _Alignas(ALIGN) unsigned char data[];
};

struct sl_arena {
    struct chunk *top;
    size_t used, max;
};

struct sl_arena *sl_arena_create(size_t max, struct sl_err *err)
{
    struct sl_arena *a = sl_calloc(1, sizeof *a);

    if (!a) {
        sl_fail(err, SL_SYSTEM, "cannot make an arena: %s", strerror(errno));
        return NULL;
    }
    a->max = max ? max : SIZE_MAX;
    return a;
}

void sl_arena_destroy(struct sl_arena *a)
{
    int saved = errno;

    if (!a)
        return;
    for (struct chunk *c = a->top, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    free(a);
    errno = saved;
}

static struct chunk *grow(struct sl_arena *a, size_t bytes)
{
    size_t room = bytes > CHUNK ? bytes : CHUNK;
    struct chunk *c = sl_calloc(1, sizeof *c + room);

    if (!c)
        return NULL;
    c->room = room;
    c->next = a->top;
    a->top = c;
    return c;
}

void *sl_arena_alloc(struct sl_arena *a, size_t n, size_t size)
{
    size_t bytes;

    if (__builtin_mul_overflow(n, size, &bytes) || bytes > SIZE_MAX / 2 - CHUNK)
        goto full;
    bytes = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    if (!bytes)
        bytes = ALIGN;
    if (bytes > a->max - a->used)
        goto full;
    struct chunk *c = a->top;
    if (!c || c->room - c->used < bytes)
        c = grow(a, bytes);
    if (!c)
        return NULL;
    void *p = c->data + c->used;
    c->used += bytes;
    a->used += bytes;
    return p;
full:
    errno = ENOMEM;
    return NULL;
}

char *sl_arena_strndup(struct sl_arena *a, const char *s, size_t n)
{
    size_t len = strnlen(s, n);
    char *p = sl_arena_alloc(a, len + 1, 1);

    if (p)
        memcpy(p, s, len);
    return p;
}

char *sl_arena_strdup(struct sl_arena *a, const char *s)
{
    return sl_arena_strndup(a, s, strlen(s));
}

char *sl_arena_printf(struct sl_arena *a, const char *fmt, ...)
{
    va_list ap;
    int n;
    char *p = NULL;

    va_start(ap, fmt);
    n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n >= 0)
        p = sl_arena_alloc(a, (size_t)n + 1, 1);
    if (!p)
        return NULL;
    va_start(ap, fmt);
    vsnprintf(p, (size_t)n + 1, fmt, ap);
    va_end(ap);
    return p;
}

size_t sl_arena_used(const struct sl_arena *a)
{
    return a->used;
}
