#ifndef SL_LOG_H
#define SL_LOG_H

/*
 * log.h - lines for a person, on a file descriptor, each with the writer's name
 *
 * The handle says where lines go, what stands before them ("agent", "rank 3") and from which level
 * on. Every message is one line and one write(2), so lines of several processes are never torn
 * (up to 4,096 bytes; a longer one is cut and ends in "..."). Control characters are escaped.
 * Libraries never log above SL_LOG_DEBUG. A NULL handle logs nothing. Thread-safe.
 */

enum sl_log_level { SL_LOG_DEBUG, SL_LOG_INFO, SL_LOG_WARN, SL_LOG_ERROR };

struct sl_log {
    int fd;
    enum sl_log_level level; /* messages below it are dropped */
    char who[32];            /* "" for none */
};

void sl_log_init(struct sl_log *l, int fd, enum sl_log_level level, const char *who);

/* "WHO: message", "WHO: warning: message", "WHO: error: message", "WHO: debug: message" */
void sl_log(const struct sl_log *l, enum sl_log_level level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
