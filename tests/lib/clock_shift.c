/*
 * clock_shift.c - preloaded into a run: the real-time clock is off by as many seconds as the file
 * $CLOCK_SHIFT says, from the moment it says so; every other clock is right
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long shift(void)
{
    const char *path = getenv("CLOCK_SHIFT");
    char text[32] = "";
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;

    if (fd < 0)
        return 0;
    if (read(fd, text, sizeof text - 1) < 0)
        text[0] = '\0';
    close(fd);
    return atol(text);
}

int clock_gettime(clockid_t id, struct timespec *ret)
{
    static int (*real)(clockid_t, struct timespec *);

    if (!real)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    if (real(id, ret))
        return -1;
    if (id == CLOCK_REALTIME)
        ret->tv_sec += shift();
    return 0;
}

time_t time(time_t *ret)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    if (ret)
        *ret = t.tv_sec;
    return t.tv_sec;
}

int gettimeofday(struct timeval *restrict ret, void *restrict zone)
{
    struct timespec t;

    (void)zone;
    clock_gettime(CLOCK_REALTIME, &t);
    *ret = (struct timeval){t.tv_sec, t.tv_nsec / 1000};
    return 0;
}
