#include "common/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/str.h"

void sl_log_init(struct sl_log *l, int fd, enum sl_log_level level, const char *who)
{
    l->fd = fd;
    l->level = level;
    snprintf(l->who, sizeof l->who, "%s", who ? who : "");
}

void sl_log(const struct sl_log *l, enum sl_log_level level, const char *fmt, ...)
{
    static const char *const words[] = {"debug: ", "", "warning: ", "error: "};
    int saved = errno;
    char raw[2048], line[4096];
    va_list ap;

    if (!l || level < l->level)
        return;
    va_start(ap, fmt);
    int n = vsnprintf(raw, sizeof raw, fmt, ap);
    va_end(ap);
    if (n < 0)
        return;
    if ((size_t)n >= sizeof raw)
        memcpy(raw + sizeof raw - 4, "...", 4);
    size_t len = (size_t)snprintf(line, sizeof line, "%s%s%s", l->who, l->who[0] ? ": " : "",
                                  words[level]);
    len += sl_str_escape(line + len, sizeof line - len - 1, raw);
    line[len++] = '\n';
    for (size_t done = 0; done < len;) {
        ssize_t k = write(l->fd, line + done, len - done);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            break; /* nobody to tell */
        done += (size_t)k;
    }
    errno = saved;
}
