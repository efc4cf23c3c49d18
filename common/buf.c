#include "common/buf.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

void sl_buf_init(struct sl_buf *b, size_t max)
{
    *b = (struct sl_buf){.max = max};
}

void sl_buf_fini(struct sl_buf *b)
{
    free(b->p);
    *b = (struct sl_buf){0};
}

/* Make room for n more bytes and the NUL. 0 when there is. */
static int reserve(struct sl_buf *b, size_t n)
{
    size_t room = b->room ? b->room : 256;

    if (b->failed)
        return -1;
    if (n > b->max - b->len || b->len + n == SIZE_MAX) {
        b->failed = EFBIG;
        return -1;
    }
    if (b->p && b->room > b->len + n)
        return 0;
    while (room <= b->len + n)
        room = room > SIZE_MAX / 2 ? b->len + n + 1 : room * 2;
    char *p = sl_resize(b->p, room, 1);
    if (!p) {
        b->failed = ENOMEM;
        return -1;
    }
    b->p = p;
    b->room = room;
    b->p[b->len] = '\0';
    return 0;
}

void sl_buf_add(struct sl_buf *b, const void *p, size_t n)
{
    if (reserve(b, n))
        return;
    if (n)
        memcpy(b->p + b->len, p, n);
    b->len += n;
    b->p[b->len] = '\0';
}

void sl_buf_str(struct sl_buf *b, const char *s)
{
    sl_buf_add(b, s, strlen(s));
}

void sl_buf_char(struct sl_buf *b, char c)
{
    sl_buf_add(b, &c, 1);
}

void sl_buf_vprintf(struct sl_buf *b, const char *fmt, va_list ap)
{
    va_list again;
    int n;

    va_copy(again, ap);
    n = vsnprintf(NULL, 0, fmt, ap);
    if (n < 0)
        b->failed = EINVAL;
    else if (!reserve(b, (size_t)n)) {
        vsnprintf(b->p + b->len, (size_t)n + 1, fmt, again);
        b->len += (size_t)n;
    }
    va_end(again);
}

void sl_buf_printf(struct sl_buf *b, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    sl_buf_vprintf(b, fmt, ap);
    va_end(ap);
}

void sl_buf_drop(struct sl_buf *b, size_t n)
{
    if (!b->p)
        return;
    if (n > b->len)
        n = b->len;
    memmove(b->p, b->p + n, b->len - n + 1);
    b->len -= n;
}

void sl_buf_clear(struct sl_buf *b)
{
    b->len = 0;
    b->failed = 0;
    if (b->p)
        b->p[0] = '\0';
}

int sl_buf_check(const struct sl_buf *b, struct sl_err *err)
{
    if (b->failed == EFBIG)
        return sl_fail(err, SL_SYSTEM, "text is longer than %zu bytes", b->max);
    if (b->failed)
        return sl_fail(err, SL_SYSTEM, "cannot hold a text: %s", strerror(b->failed));
    return 0;
}

const char *sl_buf_text(const struct sl_buf *b)
{
    return b->p ? b->p : "";
}

char *sl_buf_take(struct sl_buf *b, struct sl_err *err)
{
    char *p;

    reserve(b, 0);
    if (sl_buf_check(b, err))
        return NULL;
    p = b->p;
    *b = (struct sl_buf){.max = b->max};
    return p;
}
