/* Whatever allocation fails: from the job's text to the last step of its ranks, a clean error. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/fs.h"
#include "executor/checkpoint/export.h"
#include "executor/checkpoint/reader.h"
#include "executor/plan.h"
#include "tests/lib/every_alloc.h"
#include "tests/unit/executor/saved.h"

static const char text[] = "name = \"j\"\n[model]\nkind = \"gpt\"\nlayers = 2\nheads = 2\n"
                           "width = 24\ncontext = 16\n[data]\ntrain = \"a.txt\"\n"
                           "tokenizer = \"byte\"\n[train]\nsteps = 2\nbatch = 12\nlr = 1e-3\n";

/* Parse, write canonical text, parse that, write it: the same. */
static int a_job(void *u, struct sl_err *err)
{
    struct sl_job *a = sl_job_parse(text, "job.toml", err), *b = NULL;
    char *one = a ? sl_job_text(a, err) : NULL, *two = NULL;
    int rc = -1;

    (void)u;
    if (one && (b = sl_job_parse(one, "job.toml", err)) && (two = sl_job_text(b, err)))
        rc = strcmp(one, two) ? sl_fail(err, SL_BUG, "the texts differ") : 0;
    free(one);
    free(two);
    sl_job_destroy(a);
    sl_job_destroy(b);
    return rc;
}

static int a_job_file(void *u, struct sl_err *err)
{
    static const char *const set[] = {"train.lr=0.5", "name=other", "model.layers=3"};
    struct sl_job *job = sl_job_load(u, set, 3, err);
    int rc = 0;

    if (!job)
        return -1;
    if (job->train.lr != 0.5 || strcmp(job->name, "other") || job->model.layers != 3)
        rc = sl_fail(err, SL_BUG, "an override was lost");
    sl_job_destroy(job);
    return rc;
}

static int a_program(void *u, struct sl_err *err)
{
    struct team *t = u;
    struct sl_program *p = sl_program_make(&t->job, t->ranks, t->job.train.strategy, 1, 0, err);

    sl_program_destroy(p);
    return p ? 0 : -1;
}

static int a_plan(void *u, struct sl_err *err)
{
    struct team *t = u;
    struct sl_plan_limits none = {.cores = 4}, tight = {.cores = 4, .per_rank = 100000};
    struct sl_err why = {0};
    struct sl_plan plan;
    struct sl_buf out;
    int rc = -1;

    sl_buf_init(&out, 1 << 20);
    if (sl_plan_make(&t->job, t->ranks, t->job.train.strategy, &none, &plan, err))
        goto out;
    sl_plan_text(&plan, 1, &none, &out);
    sl_plan_json(&plan, 1, &out);
    if (sl_buf_check(&out, err))
        goto out;
    if (sl_plan_make(&t->job, t->ranks, t->job.train.strategy, &tight, &plan, err))
        goto out;
    /* a hint may be left out where memory for trying remedies is short; the refusal may not */
    if (plan.fits || !sl_plan_refuse(&t->job, &plan, &tight, &why))
        sl_fail(err, SL_BUG, "it does not fit, and nobody says so");
    else if (why.code == SL_SYSTEM)
        *err = why;
    else
        rc = 0;
out:
    sl_buf_fini(&out);
    return rc;
}

/* What a launcher does before an attempt, what a rank reads, and what export does. */
static int a_checkpoint(void *u, struct sl_err *err)
{
    struct saved *s = u;
    struct sl_ckpt_reader *r = NULL;
    char from[SL_CKPT_PATH], to[80];
    int64_t step;
    int rc = sl_ckpt_pick(&s->team.job, &s->conf, 1, from, &step, err);

    if (!rc)
        r = sl_ckpt_reader_open(from, err);
    for (int f = 0; r && !rc && f < sl_ckpt_reader_files(r); f++)
        rc = sl_ckpt_reader_verify(r, f, err) || sl_ckpt_reader_header(r, f, err) ? -1 : 0;
    sl_ckpt_reader_close(r);
    snprintf(to, sizeof to, "%s/out", s->top);
    if (r && !rc)
        rc = sl_ckpt_export(from, to, err);
    return r ? rc : -1;
}

static void no_half_export(void *u, int rc)
{
    struct saved *s = u;
    char to[80], part[120], config[120];

    snprintf(to, sizeof to, "%s/out", s->top);
    snprintf(part, sizeof part, "%s/model.safetensors.part", to);
    snprintf(config, sizeof config, "%s/config.json", to);
    assert_int_equal(access(part, F_OK), -1);
    assert_int_equal(access(config, F_OK), rc);
    sl_fs_remove_tree(to, NULL);
}

static void checkpoints(void **state)
{
    static struct team_result result;
    struct saved s;
    struct every_alloc e = {.name = "checkpoint", .act = a_checkpoint, .check = no_half_export,
                           .u = &s, .stride = 7};
    char *text2;

    (void)state;
    saved_open(&s, SL_ZERO2, SL_FP32, 2);
    s.team.job.model.layers = 1;
    saved_run(&s, SAVED_STEPS, 0, &result);
    text2 = sl_job_text(&s.team.job, NULL);
    s.conf.text = text2;
    s.conf.from = NULL;
    assert_true(every_alloc(&e) >= 20);
    free(text2);
    saved_close(&s);
}

static void jobs(void **state)
{
    struct every_alloc e = {.name = "job text", .act = a_job};
    char dir[] = "/tmp/sl-job-XXXXXX", path[64];

    (void)state;
    assert_true(every_alloc(&e) >= 10);
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/job.toml", dir);
    assert_int_equal(sl_fs_write_atomic(path, text, sizeof text - 1, 0600, NULL), 0);
    e = (struct every_alloc){.name = "job file", .act = a_job_file, .u = path};
    assert_true(every_alloc(&e) >= 10);
    assert_int_equal(sl_fs_remove_tree(dir, NULL), 0);
}

static void programs_of_every_strategy(void **state)
{
    (void)state;
    for (int s = 0; s < SL_STRATEGIES; s++) {
        int sharded = s >= SL_ZERO2; /* the rare ways are tried where there is most to do */
        struct team t = team_tiny((enum sl_strategy)s, 3);
        struct every_alloc e = {.name = sl_strategy_name(s), .act = a_program, .u = &t};

        t.job.model.layers = 1;
        t.job.train.recompute = sharded ? SL_RECOMPUTE_UNIT : SL_RECOMPUTE_NONE;
        t.job.train.precision = sharded ? SL_BF16_MIXED : SL_FP32;
        t.job.model.tie_embeddings = !sharded;
        assert_true(every_alloc(&e) >= 30);
    }
}

static void plans(void **state)
{
    struct team t = team_tiny(SL_ZERO3, 3);
    struct every_alloc e = {.name = "plan", .act = a_plan, .u = &t, .may_survive = 1,
                           .stride = 37}; /* programs, again and again */

    (void)state;
    t.job.model.layers = 1;
    assert_true(every_alloc(&e) >= 50);
}

/* One rank's allocation fails: it says so, the others leave because of it, none hangs. */
static void ranks_at_work(void **state)
{
    static struct team_result x;
    int ended = 0;
    long n = 0;

    (void)state;
    for (; !ended; n++) {
        struct team t = team_tiny(SL_ZERO2, 3);
        int culprits = 0;

        t.job.train.steps = 2;
        t.refuse = n;
        ended = !team_run(&t, &x);
        assert_int_equal(x.refused, !ended);
        for (int r = 0; r < 3 && !ended; r++) {
            culprits += x.r[r].code == SL_SYSTEM && x.r[r].msg[0];
            assert_true(x.r[r].code == SL_SYSTEM || x.r[r].code == SL_PEER);
        }
        assert_int_equal(culprits, !ended);
        assert_true(n < 1000);
    }
    assert_true(n > 3); /* three ranks allocate at least once each */
    assert_int_equal(x.r[2].trained.step, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checkpoints),
        cmocka_unit_test(jobs),
        cmocka_unit_test(programs_of_every_strategy),
        cmocka_unit_test(plans),
        cmocka_unit_test(ranks_at_work),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
