/* say.c - what the program prints: messages on stderr, data on stdout */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "common/str.h"

void sl_say_error(const struct sl_err *err)
{
    char text[4 * sizeof err->msg];

    sl_str_escape(text, sizeof text, err->msg);
    fprintf(stderr, "shardlaunch: %s%s\n", err->code == SL_BUG ? "internal error: " : "", text);
    if (!err->hint[0])
        return;
    sl_str_escape(text, sizeof text, err->hint);
    fprintf(stderr, "hint: %s\n", text);
}

void sl_say(const char *fmt, ...)
{
    char raw[1024], text[2048];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(raw, sizeof raw, fmt, ap);
    va_end(ap);
    sl_str_escape(text, sizeof text, raw);
    fprintf(stderr, "shardlaunch: %s\n", text);
}

int sl_print(struct sl_buf *b, struct sl_err *err)
{
    if (sl_buf_check(b, err))
        return -1;
    if (fwrite(sl_buf_text(b), 1, b->len, stdout) != b->len || fflush(stdout))
        return sl_fail(err, SL_SYSTEM, "write to standard output: %s", strerror(errno));
    sl_buf_clear(b);
    return 0;
}
