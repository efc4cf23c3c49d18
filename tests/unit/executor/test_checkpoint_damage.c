/* Checkpoints that are damaged, of another training, or cannot be written. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/fs.h"
#include "common/rng.h"
#include "executor/checkpoint/checkpoint.h"
#include "executor/checkpoint/manifest.h"
#include "tests/unit/executor/saved.h"

static struct team_result result;

/* A run of `ranks` with checkpoints behind steps 7 and 14. */
static void two_checkpoints(struct saved *s, int ranks)
{
    saved_open(s, SL_ZERO2, SL_FP32, ranks);
    saved_run(s, 7, 0, &result);
}

static void path_of(const struct saved *s, int step, const char *file, char ret[SL_CKPT_PATH])
{
    snprintf(ret, SL_CKPT_PATH, "%s/step-%08d%s%s", s->dir, step, *file ? "/" : "", file);
}

static off_t size_of(const char *path)
{
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    return st.st_size;
}

static unsigned char change(const char *path, off_t at, unsigned char mask)
{
    unsigned char c;
    int fd = open(path, O_RDWR);

    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &c, 1, at), 1);
    c ^= mask;
    assert_int_equal(pwrite(fd, &c, 1, at), 1);
    close(fd);
    return c;
}

static int pick(struct saved *s, const char *resume, char from[SL_CKPT_PATH], int64_t *step,
                struct sl_err *err)
{
    int rc;

    *err = (struct sl_err){.code = SL_OK};
    s->team.job.checkpoint.resume = resume;
    rc = sl_ckpt_pick(&s->team.job, &s->conf, 1, from, step, err);
    s->team.job.checkpoint.resume = "auto";
    return rc;
}

/*
 * 200 random bytes of a checkpoint of 3 ranks, in all its files, resumed by 2: each flip is
 * found by some rank before the first step, with the file named.
 */
static void every_flipped_byte_is_found(void **state)
{
    static const char *const files[] = {"manifest.json", "shard-00000.safetensors",
                                        "shard-00001.safetensors", "shard-00002.safetensors"};
    struct saved s;

    (void)state;
    two_checkpoints(&s, 3);
    s.team.ranks = 2;
    for (uint64_t i = 0; i < 200; i++) {
        const char *file = files[sl_rng_below(11, 1, i, 0, 4)];
        char path[SL_CKPT_PATH];
        unsigned char mask = (unsigned char)(1 + sl_rng_below(11, 2, i, 0, 255));
        int found = 0, named = 0;
        off_t at;

        path_of(&s, 7, file, path);
        at = (off_t)sl_rng_below(11, 3, i, 0, (uint64_t)size_of(path));
        change(path, at, mask);
        assert_int_equal(saved_try(&s, 0, 7, &result), -1);
        for (int k = 0; k < 2; k++) {
            found |= result.r[k].code == SL_USAGE;
            named |= result.r[k].code == SL_USAGE && strstr(result.r[k].msg, file) != NULL;
            assert_true(result.r[k].trained.step == 0);
        }
        if (!found || !named)
            fail_msg("byte %lld of %s ^ %02x: %s; %s", (long long)at, file, mask, result.r[0].msg,
                     result.r[1].msg);
        change(path, at, mask);
    }
    saved_run(&s, 0, 7, &result); /* and whole again */
    saved_close(&s);
}

static void refuse(struct saved *s, const char *part, const char *hint)
{
    char from[SL_CKPT_PATH];
    struct sl_err err;
    int64_t step;

    assert_int_equal(pick(s, "auto", from, &step, &err), -1);
    assert_int_equal(err.code, SL_USAGE);
    if (!strstr(err.msg, part) || !strstr(err.hint, hint))
        fail_msg("\"%s\" (%s) does not say \"%s\" (%s)", err.msg, err.hint, part, hint);
}

static void a_missing_or_cut_file_is_named_and_the_one_before_is_offered(void **state)
{
    struct saved s;
    char path[SL_CKPT_PATH], away[SL_CKPT_PATH], from[SL_CKPT_PATH], before[SL_CKPT_PATH];
    struct sl_err err;
    int64_t step;
    off_t size;

    (void)state;
    two_checkpoints(&s, 2);
    path_of(&s, 7, "", before);
    assert_int_equal(pick(&s, "auto", from, &step, &err), 0);
    assert_int_equal(step, 14);
    path_of(&s, 14, "shard-00001.safetensors", path);
    path_of(&s, 14, "away", away);
    assert_int_equal(rename(path, away), 0);
    refuse(&s, "shard-00001.safetensors", before);
    assert_int_equal(rename(away, path), 0);
    size = size_of(path);
    assert_int_equal(truncate(path, size - 1), 0);
    refuse(&s, "bytes, the manifest says", before);
    assert_int_equal(truncate(path, size + 1), 0);
    refuse(&s, "shard-00001.safetensors", before);
    assert_int_equal(truncate(path, size), 0);
    path_of(&s, 14, "manifest.json", path);
    assert_int_equal(truncate(path, size_of(path) / 2), 0);
    refuse(&s, "manifest.json", before);
    assert_int_equal(pick(&s, before, from, &step, &err), -1); /* 14 would be next time's newest */
    assert_non_null(strstr(err.msg, "up to step 14"));
    assert_int_equal(unlink(path), 0); /* without a manifest it is no checkpoint */
    assert_int_equal(pick(&s, "auto", from, &step, &err), 0);
    assert_int_equal(step, 7);
    assert_string_equal(from, before);
    saved_close(&s);
}

static void a_later_version_is_refused_as_such(void **state)
{
    struct saved s;
    char path[SL_CKPT_PATH];
    const size_t at = strlen("{\"format\":\"shardlaunch-checkpoint\",\"version\":");

    (void)state;
    two_checkpoints(&s, 1);
    path_of(&s, 14, "manifest.json", path);
    change(path, (off_t)at, '1' ^ '2');
    refuse(&s, "format version 2; this program reads version 1", "version of shardlaunch");
    saved_close(&s);
}

static void another_training_is_refused_with_the_differences(void **state)
{
    struct saved s;
    struct sl_job *j = &s.team.job;

    (void)state;
    two_checkpoints(&s, 2);
    j->train.lr = 0.5;
    j->model.width = 78;
    refuse(&s, "model.width 39, here 78; train.lr 0.003, here 0.5", "checkpoint.dir");
    j->train.lr = 3e-3;
    j->model.width = 39;
    s.conf.steps = 20; /* bends the cosine */
    refuse(&s, "steps 14, here 20", "");
    s.conf.steps = SAVED_STEPS;
    s.conf.samples = 4999;
    refuse(&s, "training samples 5000, here 4999", "");
    s.conf.samples = SAVED_SAMPLES;
    j->train.strategy = SL_DDP; /* free: */
    j->train.micro_batch = 1;
    j->train.eval_every = 1;
    j->train.recompute = SL_RECOMPUTE_UNIT;
    {
        char from[SL_CKPT_PATH];
        struct sl_err err;
        int64_t step;

        assert_int_equal(pick(&s, "auto", from, &step, &err), 0);
        assert_int_equal(step, 14);
    }
    saved_close(&s);
}

static void never_and_a_path_keep_clear_of_what_is_there(void **state)
{
    struct saved s;
    char from[SL_CKPT_PATH], path[SL_CKPT_PATH];
    struct sl_err err;
    int64_t step;

    (void)state;
    two_checkpoints(&s, 1);
    assert_int_equal(pick(&s, "never", from, &step, &err), -1);
    assert_int_equal(err.code, SL_USAGE);
    path_of(&s, 14, "", path);
    assert_int_equal(pick(&s, path, from, &step, &err), 0);
    assert_int_equal(step, 14);
    assert_int_equal(pick(&s, s.top, from, &step, &err), -1);
    assert_non_null(strstr(err.msg, "is no checkpoint and holds none"));
    s.conf.dir = s.top; /* a run with an empty folder of its own */
    assert_int_equal(pick(&s, path, from, &step, &err), 0);
    assert_string_equal(from, path);
    assert_int_equal(pick(&s, "never", from, &step, &err), 0);
    assert_string_equal(from, "");
    assert_int_equal(step, 0);
    saved_close(&s);
}

static void a_folder_is_one_runs(void **state)
{
    struct saved s;
    struct sl_err err = {0};
    char left[SL_CKPT_PATH];
    int a, b;

    (void)state;
    saved_open(&s, SL_ZERO2, SL_FP32, 1);
    assert_int_equal(sl_ckpt_lock(s.dir, &a, &err), 0);
    assert_int_equal(sl_ckpt_lock(s.dir, &b, &err), -1);
    assert_int_equal(err.code, SL_USAGE);
    snprintf(left, sizeof left, "%s/.part-00000003", s.dir); /* of a save that was killed */
    assert_int_equal(mkdir(left, 0777), 0);
    close(a);
    assert_int_equal(sl_ckpt_lock(s.dir, &b, &err), 0);
    assert_int_equal(access(left, F_OK), -1);
    close(b);
    saved_close(&s);
    assert_int_equal(sl_ckpt_lock("/proc/none/such", &a, &err), -1);
    assert_int_equal(err.code, SL_SYSTEM);
}

/* 0: all is as it should be; 77: no right to mount here; else the number of the first wrong line. */
static int on_a_full_disk(struct saved *s, char *size)
{
    char path[SL_CKPT_PATH], part[SL_CKPT_PATH];
    struct sl_err err;
    int64_t step;

    if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL)
        || mkdir(s->dir, 0777) || mount("none", s->dir, "tmpfs", 0, size))
        return 77;
    s->team.stop_step = 5;
    if (saved_try(s, 0, 0, &result) || result.r[0].trained.step != 5)
        return __LINE__;
    s->team.stop_step = 0;
    s->team.job.checkpoint.keep = 1;
    if (saved_try(s, 4, 5, &result)) /* 8, 12 and 14 find no room; training goes on to its end */
        return __LINE__;
    if (result.r[0].trained.step != SAVED_STEPS || result.r[0].events < 4) /* resume, 3 warnings */
        return __LINE__;
    if (sl_ckpt_newest(s->dir, 0, path, &step, &err) || step != 5)
        return __LINE__;
    snprintf(part, sizeof part, "%s/.part-00000014", s->dir);
    if (!access(part, F_OK))
        return __LINE__;
    return saved_try(s, 0, 5, &result) ? __LINE__ : 0; /* the old one is whole */
}

static void a_full_disk_costs_no_more_than_the_checkpoint(void **state)
{
    struct saved s;
    char size[32], path[SL_CKPT_PATH];
    pid_t pid;
    int st;

    (void)state;
    two_checkpoints(&s, 1);
    path_of(&s, 14, "shard-00000.safetensors", path);
    snprintf(size, sizeof size, "size=%lld", (long long)size_of(path) * 3 / 2 + 65536);
    saved_close(&s);
    saved_open(&s, SL_ZERO2, SL_FP32, 1);
    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (!pid)
        _exit(on_a_full_disk(&s, size) & 0xff);
    assert_int_equal(waitpid(pid, &st, 0), pid);
    saved_close(&s);
    if (WIFEXITED(st) && WEXITSTATUS(st) == 77)
        skip();
    assert_int_equal(st, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_disk_costs_no_more_than_the_checkpoint),
        cmocka_unit_test(every_flipped_byte_is_found),
        cmocka_unit_test(a_missing_or_cut_file_is_named_and_the_one_before_is_offered),
        cmocka_unit_test(a_later_version_is_refused_as_such),
        cmocka_unit_test(another_training_is_refused_with_the_differences),
        cmocka_unit_test(never_and_a_path_keep_clear_of_what_is_there),
        cmocka_unit_test(a_folder_is_one_runs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
