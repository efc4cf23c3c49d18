/* lines.c - cut a stream into whole lines of bounded length */
#include "launcher/lines.h"

#include <string.h>

void sl_lines_push(struct sl_lines *l, const char *data, size_t n, sl_lines_f line, void *user)
{
    while (n) {
        const char *nl = memchr(data, '\n', n);
        size_t k = nl ? (size_t)(nl - data) : n;
        size_t room = sizeof l->buf - l->n;

        if (k > room)
            k = room;
        memcpy(l->buf + l->n, data, k);
        l->n += k;
        data += k;
        n -= k;
        if (n && *data == '\n') {
            data++;
            n--;
        } else if (l->n < sizeof l->buf || !n) {
            continue; /* a full buffer waits: its newline may be the next byte */
        }
        line(user, l->buf, l->n);
        l->n = 0;
    }
}

void sl_lines_end(struct sl_lines *l, sl_lines_f line, void *user)
{
    if (l->n)
        line(user, l->buf, l->n);
    l->n = 0;
}
