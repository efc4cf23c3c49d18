#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/log.h"

static const char *said(const struct sl_log *l, int fd, enum sl_log_level level, const char *text)
{
    static char got[8192];
    ssize_t n;

    sl_log(l, level, "%s", text);
    sl_log(l, SL_LOG_ERROR, "end"); /* so that a read never waits */
    n = read(fd, got, sizeof got - 1);
    assert_true(n > 0);
    got[n] = '\0';
    return got;
}

static void a_line_names_its_writer(void **state)
{
    struct sl_log l;
    int fd[2];

    (void)state;
    assert_int_equal(pipe(fd), 0);
    sl_log_init(&l, fd[1], SL_LOG_INFO, "rank 3");
    assert_string_equal(said(&l, fd[0], SL_LOG_INFO, "x"), "rank 3: x\nrank 3: error: end\n");
    assert_string_equal(said(&l, fd[0], SL_LOG_WARN, "x"),
                        "rank 3: warning: x\nrank 3: error: end\n");
    assert_string_equal(said(&l, fd[0], SL_LOG_DEBUG, "x"), "rank 3: error: end\n");
    assert_string_equal(said(&l, fd[0], SL_LOG_INFO, "a\nb\x1b[2J"),
                        "rank 3: a\\nb\\x1B[2J\nrank 3: error: end\n");
    sl_log_init(&l, fd[1], SL_LOG_DEBUG, "");
    assert_string_equal(said(&l, fd[0], SL_LOG_DEBUG, "x"), "debug: x\nerror: end\n");
    sl_log(NULL, SL_LOG_ERROR, "nobody hears it");
    close(fd[0]);
    close(fd[1]);
}

static void a_long_line_is_cut(void **state)
{
    struct sl_log l;
    char big[5000];
    int fd[2];

    (void)state;
    memset(big, '\x01', sizeof big - 1); /* four bytes each, once escaped */
    big[sizeof big - 1] = '\0';
    assert_int_equal(pipe(fd), 0);
    sl_log_init(&l, fd[1], SL_LOG_INFO, "agent");
    const char *got = said(&l, fd[0], SL_LOG_INFO, big);
    const char *end = strchr(got, '\n');
    assert_true(end && end - got < 4096);
    assert_memory_equal(end - 3, "...", 3);
    close(fd[0]);
    close(fd[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_names_its_writer),
        cmocka_unit_test(a_long_line_is_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
