/*
 * kill -9 of a whole run at random moments, most of them inside a save: no checkpoint that can be
 * seen is incomplete, and the run that goes on from the newest is the one that was never killed.
 */
#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/fs.h"
#include "common/rng.h"
#include "executor/checkpoint/checkpoint.h"
#include "executor/checkpoint/folder.h"
#include "executor/checkpoint/reader.h"
#include "tests/unit/executor/saved.h"

/* This process never trains itself: OpenMP's threads do not survive a fork. */
static pid_t start(struct saved *s, int every, int from, struct team_result *ret)
{
    pid_t pid;

    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    _exit(saved_try(s, every, from, ret) ? 1 : 0);
}

/* Every checkpoint that can be seen is whole to the last byte. Returns how many there are. */
static int check_all(const char *dir)
{
    DIR *d = opendir(dir);
    struct dirent *it;
    int n = 0;

    while (d && (it = readdir(d))) {
        struct sl_err err = {0};
        char path[SL_CKPT_PATH];
        struct sl_ckpt_reader *r;

        if (strncmp(it->d_name, "step-", 5))
            continue;
        snprintf(path, sizeof path, "%s/%s", dir, it->d_name);
        r = sl_ckpt_reader_open(path, &err);
        if (!r)
            fail_msg("%s", err.msg);
        for (int f = 0; f < sl_ckpt_reader_files(r); f++)
            if (sl_ckpt_reader_verify(r, f, &err))
                fail_msg("%s", err.msg);
        sl_ckpt_reader_close(r);
        n++;
    }
    if (d)
        closedir(d);
    return n;
}

static int inside_a_save(const char *dir)
{
    DIR *d = opendir(dir);
    struct dirent *it;
    int n = 0;

    while (d && (it = readdir(d)))
        n += !strncmp(it->d_name, ".part-", 6);
    if (d)
        closedir(d);
    return n;
}

/* Until a save is under way (20 s at most), then a little more. */
static void into_a_save(const char *dir, long ns)
{
    const struct timespec look = {.tv_nsec = 200000}, more = {.tv_nsec = ns};

    for (int i = 0; i < 100000 && !inside_a_save(dir); i++)
        nanosleep(&look, NULL);
    nanosleep(&more, NULL);
}

static int64_t start_again(const struct saved *s)
{
    sl_fs_remove_tree(s->dir, NULL);
    return 0;
}

static void a_killed_save_is_never_seen(void **state)
{
    struct team_result *r = mmap(NULL, 2 * sizeof *r, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int kills = getenv("SL_FULL") ? 100 : 12, inside = 0, st = 1, killed = 0;
    struct saved s;

    (void)state;
    assert_true(r != MAP_FAILED);
    saved_open(&s, SL_ZERO3, SL_BF16_MIXED, 3);
    s.team.job.checkpoint.keep = 2;
    assert_int_equal(waitpid(start(&s, 0, 0, &r[0]), &st, 0) > 0 ? st : 1, 0);
    for (int i = 0; i < kills; i++) {
        long ns = (long)sl_rng_below(5, 1, (uint64_t)i, 0, 30000000);
        char path[SL_CKPT_PATH];
        int64_t step;
        pid_t pid;

        if (sl_ckpt_newest(s.dir, 0, path, &step, NULL) || step == SAVED_STEPS)
            step = start_again(&s);
        pid = start(&s, 1, (int)step, &r[1]);
        into_a_save(s.dir, i % 2 ? ns : 0);
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, &st, 0), pid);
        killed += WIFSIGNALED(st) != 0;
        inside += inside_a_save(s.dir) > 0;
        check_all(s.dir);
    }
    {
        char path[SL_CKPT_PATH];
        int64_t step;

        assert_int_equal(sl_ckpt_newest(s.dir, 0, path, &step, NULL), 0);
        if (step == SAVED_STEPS)
            step = start_again(&s);
        assert_int_equal(waitpid(start(&s, 1, (int)step, &r[1]), &st, 0) > 0 ? st : 1, 0);
        assert_true(check_all(s.dir) == 2 || SAVED_STEPS - step < 2);
        assert_int_equal(inside_a_save(s.dir), 0);
        if (step < SAVED_STEPS)
            assert_memory_equal(r[0].loss + step + 1, r[1].loss + step + 1,
                                sizeof(double) * (size_t)(SAVED_STEPS - step));
        assert_true(r[0].hash == r[1].hash);
    }
    printf("# %d killed, %d of them inside a save\n", killed, inside);
    assert_true(killed > 0 && inside > 0);
    saved_close(&s);
    munmap(r, 2 * sizeof *r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_killed_save_is_never_seen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
