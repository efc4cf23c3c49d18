#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "common/proc.h"

static const int64_t second = 1000000000;

/* A child that only waits; it dies with the test if the test dies. */
static pid_t sleeper(void)
{
    pid_t p = fork();

    if (p == 0) {
        alarm(60);
        for (;;)
            pause();
    }
    return p;
}

static void count(void *u, pid_t pid, int status)
{
    (void)pid;
    assert_true(WIFSIGNALED(status) || WIFEXITED(status));
    ++*(int *)u;
}

/* child > session leader > grandchild, and one whose parent is gone: all end. */
static void everything_below_ends(void **state)
{
    struct sl_err err = {0};
    int fds[2], n = 0;
    char c;

    (void)state;
    assert_int_equal(sl_proc_subreaper(&err), 0);
    assert_int_equal(pipe(fds), 0);
    pid_t p = fork();
    if (p == 0) {
        close(fds[0]);
        signal(SIGTERM, SIG_IGN);
        setsid();
        sleeper();
        pid_t q = fork();
        if (q == 0) {
            sleeper(); /* its parent ends at once: an orphan of ours */
            _exit(0);
        }
        waitpid(q, NULL, 0);
        (void)!write(fds[1], "r", 1);
        alarm(60);
        for (;;)
            pause();
    }
    close(fds[1]);
    assert_int_equal(read(fds[0], &c, 1), 1); /* all are there */
    assert_int_equal(sl_proc_kill_below(20 * second, count, &n, &err), 3);
    assert_int_equal(n, 3);
    /* the pipe's other end was open in all of them: end of file means that all are gone */
    assert_int_equal(read(fds[0], &c, 1), 0);
    assert_int_equal(sl_proc_kill_below(second, NULL, NULL, &err), 0);
    close(fds[0]);
}

static void a_process_is_named_by_pid_and_start(void **state)
{
    struct sl_err err = {0};
    pid_t p = sleeper();
    int64_t start = sl_proc_start_time(p);

    (void)state;
    assert_true(start > 0);
    assert_int_equal(sl_proc_alive(p, start), 1);
    assert_int_equal(sl_proc_alive(p, start + 1), 0); /* another that took the pid */
    int fd = sl_proc_pidfd(p, &err);
    if (fd >= 0) {
        struct pollfd pf = {.fd = fd, .events = POLLIN};
        assert_int_equal(poll(&pf, 1, 0), 0);
        kill(p, SIGKILL);
        assert_int_equal(poll(&pf, 1, 20000), 1);
        close(fd);
    } else {
        kill(p, SIGKILL);
    }
    siginfo_t si;
    assert_int_equal(waitid(P_PID, (id_t)p, &si, WEXITED | WNOWAIT), 0);
    assert_int_equal(sl_proc_alive(p, start), 0); /* a zombie does not run */
    waitpid(p, NULL, 0);
    assert_int_equal(sl_proc_start_time(p), -1);
}

static void pss_counts_a_shared_page_once(void **state)
{
    enum { SIZE = 64 << 20 };
    struct sl_err err = {0};
    int64_t before, alone, shared;
    char c;
    int go[2], ready[2];

    (void)state;
#ifdef __SANITIZE_THREAD__
    skip(); /* its shadow of these pages counts, too */
#endif
    if (sl_proc_pss(getpid(), &before, &err)) {
        print_message("no smaps_rollup here: %s\n", err.msg);
        skip();
    }
    char *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(p, MAP_FAILED);
    memset(p, 1, SIZE);
    assert_int_equal(sl_proc_pss(getpid(), &alone, &err), 0);
    assert_true(llabs(alone - before - SIZE) < SIZE / 16);
    assert_int_equal(pipe(go) + pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        volatile char sum = 0;
        for (int i = 0; i < SIZE; i += 4096)
            sum = (char)(sum + p[i]);
        (void)!write(ready[1], "r", 1);
        (void)!read(go[0], &c, 1);
        _exit(0);
    }
    assert_int_equal(read(ready[0], &c, 1), 1);
    assert_int_equal(sl_proc_pss(getpid(), &shared, &err), 0);
    (void)!write(go[1], "g", 1);
    waitpid(child, NULL, 0);
    assert_true(llabs(shared - before - SIZE / 2) < SIZE / 8); /* half of it is the child's */
    munmap(p, SIZE);
    assert_int_equal(sl_proc_pss(1 << 30, &shared, &err), -1);
    for (int i = 0; i < 2; i++) {
        close(go[i]);
        close(ready[i]);
    }
}

static void the_machine_is_described(void **state)
{
    struct sl_err err = {0};
    char id[40], again[40];

    (void)state;
    assert_int_equal(sl_proc_boot_id(id, &err), 0);
    assert_int_equal(strlen(id), 36); /* a UUID */
    assert_int_equal(sl_proc_boot_id(again, &err), 0);
    assert_string_equal(id, again);
    assert_true(sl_proc_cpus() >= 1 && sl_proc_cpus() <= sysconf(_SC_NPROCESSORS_ONLN));
    int64_t limit = sl_proc_memory_limit();
    assert_true(limit > 0 && limit <= (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
}

static void a_status_is_put_in_words(void **state)
{
    char text[64];
    int status;

    (void)state;
    pid_t p = fork();
    if (p == 0)
        _exit(7);
    waitpid(p, &status, 0);
    assert_string_equal(sl_proc_status(text, status), "status 7");
    p = sleeper();
    kill(p, SIGKILL);
    waitpid(p, &status, 0);
    assert_string_equal(sl_proc_status(text, status), "signal 9 (Killed)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_below_ends),
        cmocka_unit_test(a_process_is_named_by_pid_and_start),
        cmocka_unit_test(pss_counts_a_shared_page_once),
        cmocka_unit_test(the_machine_is_described),
        cmocka_unit_test(a_status_is_put_in_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
