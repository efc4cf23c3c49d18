#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/fs.h"
#include "common/mem.h"
#include "executor/job.h"
#include "executor/job_keys.h"

/* A right job file, by line, so that a test can put a wrong one in place of a line. */
static const char *const good[] = {
    /* 1 */ "name = \"kjv\"",
    /* 2 */ "[resources]",
    /* 3 */ "ranks_per_node = 2",
    /* 4 */ "[model]",
    /* 5 */ "layers = 2",
    /* 6 */ "heads = 4",
    /* 7 */ "width = 64",
    /* 8 */ "context = 32",
    /* 9 */ "[data]",
    /* 10 */ "train = \"kjv.txt\"",
    /* 11 */ "[train]",
    /* 12 */ "steps = 20",
    /* 13 */ "batch = 8",
    /* 14 */ "lr = 3e-4",
};
enum { LINES = sizeof good / sizeof *good };

/* The good file with `line` replaced (0: none). */
static void with(char *ret, size_t size, int line, const char *text)
{
    size_t n = 0;

    for (int i = 0; i < LINES; i++)
        n += (size_t)snprintf(ret + n, size - n, "%s\n", i + 1 == line ? text : good[i]);
    assert_true(n < size);
}

struct wrong {
    int line;
    const char *text, *msg, *hint;
};

#define TRAIN_KEYS                                                                                 \
    "strategy, precision, steps, epochs, batch, micro_batch, lr, min_lr, schedule, warmup, "       \
    "weight_decay, betas, eps, grad_clip, recompute, seed, eval_every, eval_samples."
#define TABLES "resources, model, data, train, checkpoint, failure, notify."

static const struct wrong wrongs[] = {
    /* no TOML */
    {12, "steps = 10x",
     "job.toml:12:11: error while parsing decimal integer: expected digit, saw 'x'", ""},
    {1, "name = \"a\nb\"",
     "job.toml:1:10: error while parsing string: unescaped control characters other than TAB "
     "(U+0009) are explicitly prohibited", ""},
    /* keys */
    {14, "lr = 1e-4\nwarmpu = 3", "job.toml:15:1: unknown key \"train.warmpu\"",
     "Did you mean \"warmup\"? Known here: " TRAIN_KEYS},
    {14, "lr = 1e-4\nqqqqqqqq = 3", "job.toml:15:1: unknown key \"train.qqqqqqqq\"",
     "Known here: " TRAIN_KEYS},
    {8, "context = 32\nlr = 1", "job.toml:9:1: unknown key \"model.lr\"",
     "\"lr\" belongs in [train]."},
    {1, "lr = 1", "job.toml:1:1: unknown key \"lr\"", "\"lr\" belongs in [train]."},
    {8, "context = 32\nname = \"x\"", "job.toml:9:1: unknown key \"model.name\"",
     "\"name\" stands at the top of the file, above every table."},
    {8, "context = 32\nlerning_rate = 1\nsede = 2", "job.toml:9:1: unknown key "
     "\"model.lerning_rate\"", "Known here: kind, layers, heads, width, ffn_width, context, dropout, "
     "tie_embeddings, init."},
    {8, "context = 32\nsede = 2", "job.toml:9:1: unknown key \"model.sede\"",
     "Did you mean \"train.seed\"?"},
    {11, "[trian]", "job.toml:11:2: unknown table [trian]",
     "Did you mean [train]? Known tables: " TABLES},
    {11, "[train]\n[optimizer]", "job.toml:12:2: unknown table [optimizer]",
     "Known tables: " TABLES},
    {1, "data = \"kjv.txt\"", "job.toml:9:1: error while parsing table header: cannot "
     "redefine existing string 'data' as table", ""},
    {5, "", "job.toml:4:2: model.layers is missing; give an integer from 1 to 1024", ""},
    {10, "", "job.toml:9:2: data.train is missing; give a text of 1 to 1000 bytes", ""},
    /* types and ranges */
    {12, "steps = \"ten\"",
     "job.toml:12:9: train.steps is \"ten\"; use an integer from 0 to 1000000000", ""},
    {12, "steps = 1e3",
     "job.toml:12:9: train.steps is 1000.0; use an integer from 0 to 1000000000", ""},
    {5, "layers = 0", "job.toml:5:10: model.layers is 0; use an integer from 1 to 1024", ""},
    {3, "ranks_per_node = 65",
     "job.toml:3:18: resources.ranks_per_node is 65; use an integer from 1 to 64", ""},
    {14, "lr = 0", "job.toml:14:6: train.lr is 0; use a number above 0 and at most 1000", ""},
    {14, "lr = nan", "job.toml:14:6: train.lr is nan; use a number above 0 and at most 1000", ""},
    {14, "lr = 1e-4\nbetas = [0.9, 1.0]",
     "job.toml:15:9: train.betas is an array; use two numbers in [ ], each of at least 0 and "
     "below 1", ""},
    {14, "lr = 1e-4\nbetas = 0.9",
     "job.toml:15:9: train.betas is 0.9; use two numbers in [ ], each of at least 0 and below 1",
     ""},
    {8, "context = 32\ndropout = 1",
     "job.toml:9:11: model.dropout is 1; use a number of at least 0 and below 1", ""},
    {8, "context = 32\ntie_embeddings = 1",
     "job.toml:9:18: model.tie_embeddings is 1; use true or false", ""},
    {1, "name = 1979-05-27", "job.toml:1:8: name is a date or time; use a text of at most 100 bytes",
     ""},
    {1, "name = \"a\\u001Bb\"", "job.toml:1:8: name holds a control character (\\x1B)", ""},
    {1, "name = \"a\\u202Eb\"", "job.toml:1:8: name holds a control character (\\u202E)", ""},
    {3, "memory_limit = \"5 GiB\"",
     "job.toml:3:16: resources.memory_limit: \"5 GiB\" is no size: use a number and B, KiB, MiB, "
     "GiB, TiB, kB, MB, GB or TB, as in \"512MiB\"", ""},
    {3, "time_limit = \"5 days\"",
     "job.toml:3:14: resources.time_limit: \"5 days\" is no duration: use seconds or numbers with d, "
     "h, m, s or ms, as in \"12h\" or \"1h30m\"", ""},
    /* words */
    {14, "lr = 1\nschedule = \"cosin\"",
     "job.toml:15:12: train.schedule is \"cosin\"; use \"constant\", \"linear\" or \"cosine\"",
     "Did you mean \"cosine\"?"},
    {14, "lr = 1\nstrategy = \"shraded\"",
     "job.toml:15:12: train.strategy is \"shraded\"; use \"dp\", \"ddp\", \"zero1\", \"zero2\", "
     "\"zero3\", \"sharded\", \"ddp_sharded\" or \"fsdp\"", "Did you mean \"sharded\"?"},
    {14, "lr = 1\nprecision = \"fp16\"",
     "job.toml:15:13: train.precision is \"fp16\"; use \"fp32\" or \"bf16\"", NULL},
    {5, "layers = 2\nkind = \"resnet\"", "job.toml:6:8: model.kind is \"resnet\"; use \"gpt\"", ""},
    {3, "nodes = 64\nranks_per_node = 2",
     "job.toml:3:9: resources.nodes is 64: with 2 ranks on each that is more than 64", ""},
    /* features that do not exist yet */
    {3, "device = \"cuda\"",
     "job.toml:3:10: resources.device is \"cuda\": this version has no CUDA back end; use \"cpu\"",
     ""},
    {10, "train = \"a\"\ntokenizer = \"gpt2\"",
     "job.toml:11:13: data.tokenizer is \"gpt2\": this version has the tokenizers \"byte\", "
     "\"word\" and \"uint16\" only", ""},
    {10, "train = \"a\"\ntokenizer = \"my/vocab.json\"",
     "job.toml:11:13: data.tokenizer is \"my/vocab.json\": this version has the tokenizers "
     "\"byte\", \"word\" and \"uint16\" only", ""},
    {5, "layers = 2\ninit = \"gpt2\"",
     "job.toml:6:1: model.init: this version starts from random weights only", ""},
    {14, "lr = 1\n[notify]\nwebhook = \"x\"",
     "job.toml:16:1: notify.webhook: this version sends no notifications", ""},
    {14, "lr = 1\n[checkpoint]\nresume = \"\"",
     "job.toml:16:10: checkpoint.resume is \"\"; use a text of 1 to 900 bytes", ""},
    /* what does not go together */
    {6, "heads = 5", "job.toml:6:9: model.heads is 5, which does not divide model.width 64",
     "The nearest smaller number of heads that does is 4."},
    {13, "batch = 7", "job.toml:13:9: train.batch is 7, which 2 ranks cannot share evenly",
     "Use a multiple of 2, as 8."},
    {13, "batch = 12\nmicro_batch = 4",
     "job.toml:13:9: train.batch is 12; train.micro_batch 4 on 2 ranks needs a multiple of 8",
     "The batch is micro_batch * ranks * accumulation."},
    {12, "", "job.toml:11:2: train.steps and train.epochs are both missing; give one of them", ""},
    {12, "steps = 20\nepochs = 1",
     "job.toml:13:10: train.epochs and train.steps are both given; use one of them",
     "0 is as not given: --set train.epochs=0, or --set train.steps=0."},
    {14, "lr = 1e-3\nwarmup = 21",
     "job.toml:15:10: train.warmup is 21, more than the 20 steps of the run", ""},
    {14, "lr = 1e-3\nmin_lr = 0.01",
     "job.toml:15:10: train.min_lr is 0.01, more than train.lr 0.001", ""},
    {10, "train = \"a\"\nvalid = \"b\"\nvalid_fraction = 0.1",
     "job.toml:12:18: data.valid_fraction and data.valid are both given; use one of them",
     "0 is as not given: --set data.valid_fraction=0."},
    {10, "train = \"a\"\ntokenizer = \"word\"",
     "job.toml:9:2: data.vocab_size is missing; the tokenizer \"word\" needs an integer from 3 to "
     "65536", ""},
    {10, "train = \"a\"\nvocab_size = 300",
     "job.toml:11:14: data.vocab_size is 300; the tokenizer \"byte\" has 256", ""},
    {10, "train = \"{id}.txt\"",
     "job.toml:10:9: data.train holds {id}: data cannot depend on the run's number", ""},
};

static void every_mistake_is_answered_with_its_place(void **state)
{
    char text[2000];
    int bad = 0;

    (void)state;
    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
        const struct wrong *w = &wrongs[i];
        struct sl_err err = {0};

        with(text, sizeof text, w->line, w->text);
        struct sl_job *job = sl_job_parse(text, "job.toml", &err);
        if (!job && err.code == SL_USAGE && !strcmp(err.msg, w->msg) &&
            (!w->hint || !strcmp(err.hint, w->hint)))
            continue;
        print_error("case %zu, \"%s\": %s\n  want: %s\n        %s\n  got:  %s\n        %s\n", i,
                    w->text, job ? "accepted" : "refused", w->msg, w->hint ? w->hint : "(any)",
                    err.msg, err.hint);
        sl_job_destroy(job);
        bad++;
    }
    assert_int_equal(bad, 0);
}

static void right_files_pass(void **state)
{
    static const struct {
        int line;
        const char *text;
    } rights[] = {
        {0, ""},
        {1, "# no name"},
        {3, "threads = 2\nmemory_limit = \"1.5GiB\"\ntime_limit = \"1h30m\"\ndevice = \"cpu\""},
        {3, "memory_limit = 1000000\ntime_limit = 90"},
        {10, "train = \"a\"\ntokenizer = \"word\"\nvocab_size = 8192\nvalid = \"b\""},
        {10, "train = \"a\"\ntokenizer = \"uint16\"\nvocab_size = 65536\nvalid_fraction = 0"},
        {12, "epochs = 0.5"},
        {13, "batch = 24\nmicro_batch = 3"},
        {14, "lr = 1\nstrategy = \"ddp_sharded\"\nprecision = \"bf16\"\nbetas = [0, 0.95]"},
        {14, "lr = 1\ngrad_clip = 0\nwarmup = 20\nschedule = \"cosine\"\nmin_lr = 1"},
        {14, "lr = 1\n[failure]\nmax_restarts = 0\nhang_timeout = \"500ms\"\non_nan = \"stop\""},
        {14, "lr = 1\nrecompute = \"unit\"\n[checkpoint]\n"},
        {14, "lr = 1\n[checkpoint]\ndir = \"x/{id}\"\nevery = 100\nkeep = 0\nresume = \"y\""},
    };
    char text[2000];

    (void)state;
    for (size_t i = 0; i < sizeof rights / sizeof *rights; i++) {
        struct sl_err err = {0};

        with(text, sizeof text, rights[i].line, rights[i].text);
        struct sl_job *job = sl_job_parse(text, "job.toml", &err);
        if (!job)
            fail_msg("\"%s\" was refused: %s", rights[i].text, err.msg);
        char *once = sl_job_text(job, &err);
        assert_non_null(once);
        struct sl_job *again = sl_job_parse(once, "again.toml", &err);
        if (!again)
            fail_msg("its canonical text was refused: %s\n%s", err.msg, once);
        char *twice = sl_job_text(again, &err);
        assert_string_equal(once, twice);
        free(once);
        free(twice);
        sl_job_destroy(job);
        sl_job_destroy(again);
    }
}

static void values_arrive_with_their_units(void **state)
{
    struct sl_err err = {0};
    char text[2000];

    (void)state;
    with(text, sizeof text, 3, "ranks_per_node = 4\nmemory_limit = \"512MiB\"\ntime_limit = \"12h\"");
    struct sl_job *job = sl_job_parse(text, "dir/run-a.toml", &err);
    assert_non_null(job);
    assert_string_equal(job->name, "kjv");
    assert_string_equal(job->file, "dir/run-a.toml");
    assert_true(job->resources.memory_limit == 512 * 1048576);
    assert_true(job->resources.time_limit == 12 * 3600.0);
    assert_int_equal(job->model.ffn_width, 4 * 64);
    assert_int_equal(job->model.tie_embeddings, 1);
    assert_null(job->data.valid);
    assert_int_equal(job->data.vocab_size, 256);
    assert_true(job->train.lr == 3e-4);
    assert_true(job->train.beta1 == 0.9 && job->train.beta2 == 0.999);
    assert_int_equal(job->train.strategy, SL_ZERO2);
    assert_int_equal(sl_job_micro(job, 4), 2);
    assert_int_equal(sl_job_accum(job, 4), 1);
    assert_int_equal(sl_job_check_ranks(job, 3, &err), -1);
    assert_string_equal(err.msg, "train.batch is 8, which 3 ranks cannot share evenly");
    assert_int_equal(sl_job_check_ranks(job, 0, &err), -1);
    assert_int_equal(sl_job_check_ranks(job, 8, &err), 0);
    sl_job_destroy(job);
}

static void strategies_have_other_names(void **state)
{
    static const struct {
        const char *name;
        enum sl_strategy want;
    } names[] = {{"dp", SL_DP},       {"ddp", SL_DDP},       {"zero1", SL_ZERO1},
                 {"zero2", SL_ZERO2}, {"zero3", SL_ZERO3},   {"sharded", SL_ZERO2},
                 {"ddp_sharded", SL_ZERO2}, {"fsdp", SL_ZERO3}};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct sl_err err = {0};
        char text[2000], line[60];

        snprintf(line, sizeof line, "lr = 1\nstrategy = \"%s\"", names[i].name);
        with(text, sizeof text, 14, line);
        struct sl_job *job = sl_job_parse(text, "job.toml", &err);
        assert_non_null(job);
        assert_int_equal(job->train.strategy, names[i].want);
        sl_job_destroy(job);
    }
}

struct folder {
    char dir[64], file[80];
};

static int make_folder(void **state)
{
    static struct folder f;
    char text[2000];

    snprintf(f.dir, sizeof f.dir, "%s/sl-job-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    if (!mkdtemp(f.dir))
        return -1;
    snprintf(f.file, sizeof f.file, "%s/demo.toml", f.dir);
    with(text, sizeof text, 1, "");
    *state = &f;
    return sl_fs_write_atomic(f.file, text, strlen(text), 0644, NULL);
}

static int drop_folder(void **state)
{
    return sl_fs_remove_tree(((struct folder *)*state)->dir, NULL);
}

static void overrides_win_in_order(void **state)
{
    static const char *const set[] = {
        "train.lr=1e-4",       "train.lr=2e-4",         "train.strategy=fsdp", "name=17",
        "resources.time_limit=90", "data.valid=v{name}.txt", "train.betas=[0.8, 0.9]",
        "resources.memory_limit=2GiB", "model.tie_embeddings=false",
    };
    const struct folder *f = *state;
    struct sl_err err = {0};
    char want[120];

    struct sl_job *job = sl_job_load(f->file, set, sizeof set / sizeof *set, &err);
    if (!job)
        fail_msg("%s", err.msg);
    assert_true(job->train.lr == 2e-4);
    assert_int_equal(job->train.strategy, SL_ZERO3);
    assert_string_equal(job->name, "17");
    assert_true(job->resources.time_limit == 90);
    assert_true(job->resources.memory_limit == 2LL << 30);
    assert_true(job->train.beta1 == 0.8 && job->train.beta2 == 0.9);
    assert_int_equal(job->model.tie_embeddings, 0);
    snprintf(want, sizeof want, "%s/v17.txt", f->dir); /* beside the job file */
    assert_string_equal(job->data.valid, want);
    snprintf(want, sizeof want, "%s/kjv.txt", f->dir);
    assert_string_equal(job->data.train, want);
    sl_job_destroy(job);
    job = sl_job_load(f->file, NULL, 0, &err);
    assert_non_null(job);
    assert_string_equal(job->name, "demo"); /* the file's, without .toml */
    sl_job_destroy(job);
}

static void wrong_overrides_say_which_one(void **state)
{
    static const struct {
        const char *set, *msg, *hint;
    } cases[] = {
        {"train.lr=fast",
         "--set train.lr=fast: train.lr is \"fast\"; use a number above 0 and at most 1000", ""},
        {"train.sede=3", "--set train.sede=3: unknown key \"train.sede\"",
         "Did you mean \"seed\"? Known here: " TRAIN_KEYS},
        {"lr=3", "--set lr=3: unknown key \"lr\"", "\"lr\" belongs in [train]."},
        {"train=3", "--set train=3: unknown key \"train\"",
         "\"train\" is a table: write [train] on a line, its keys below."},
        {"train.lr", "--set train.lr: not a key and a value",
         "Write --set KEY=VALUE, as in --set train.lr=3e-4."},
        {"=3", "--set =3: not a key and a value",
         "Write --set KEY=VALUE, as in --set train.lr=3e-4."},
        {"a..b=3", "--set a..b=3: not a key and a value",
         "Write --set KEY=VALUE, as in --set train.lr=3e-4."},
        {"train.lr=1\ntrain.seed=2",
         "--set train.lr=1\\ntrain.seed=2: train.lr is \"1\\ntrain.seed=2\"; use a number above 0 "
         "and at most 1000", ""},
        {"name=\xff", "--set name=\\xFF: the value is no UTF-8 text", ""},
        {"train.batch=9", "--set train.batch=9: train.batch is 9, which 2 ranks cannot share evenly",
         "Use a multiple of 2, as 10."},
    };
    const struct folder *f = *state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sl_err err = {0};

        assert_null(sl_job_load(f->file, &cases[i].set, 1, &err));
        assert_string_equal(err.msg, cases[i].msg);
        assert_string_equal(err.hint, cases[i].hint);
        assert_int_equal(err.code, SL_USAGE);
    }
}

static void a_file_that_is_no_job_file_is_named(void **state)
{
    const struct folder *f = *state;
    struct sl_err err = {0};
    char want[160], path[100];

    snprintf(path, sizeof path, "%s/none.toml", f->dir);
    assert_null(sl_job_load(path, NULL, 0, &err));
    snprintf(want, sizeof want, "open \"%s\": No such file or directory", path);
    assert_string_equal(err.msg, want);
    assert_int_equal(err.code, SL_USAGE);
    assert_null(sl_job_load(f->dir, NULL, 0, &err));
    snprintf(want, sizeof want, "read \"%s\": is a folder, not a file", f->dir);
    assert_string_equal(err.msg, want);
}

/* Every key is either written to the canonical text or of a feature that does not exist. */
static void the_canonical_text_holds_every_key(void **state)
{
    int n;
    const struct sl_conf_opt *keys = sl_job_keys(&n);
    struct sl_err err = {0};
    char text[2000], line[80];

    (void)state;
    with(text, sizeof text, 0, "");
    struct sl_job *job = sl_job_parse(text, "job.toml", &err);
    char *canonical = sl_job_text(job, &err);
    assert_non_null(canonical);
    for (int i = 0; i < n; i++) {
        const char *dot = strchr(keys[i].key, '.');

        snprintf(line, sizeof line, "\n%s = ", dot ? dot + 1 : keys[i].key);
        int there = strstr(canonical, line) || !strncmp(canonical, line + 1, strlen(line) - 1);
        assert_int_equal(there, keys[i].type != SL_CONF_ABSENT);
        assert_non_null(keys[i].help);
    }
    free(canonical);
    sl_job_destroy(job);
}

static void no_memory_is_an_error_at_every_place(void **state)
{
    char text[2000];
    long n = 0;

    (void)state;
    with(text, sizeof text, 0, "");
    for (;; n++) {
        struct sl_err err = {0};

        sl_mem_fail_after(n);
        struct sl_job *job = sl_job_parse(text, "job.toml", &err);
        sl_mem_fail_after(-1);
        if (job) {
            sl_job_destroy(job);
            break;
        }
        assert_int_equal(err.code, SL_SYSTEM);
        assert_true(err.msg[0] != '\0');
    }
    assert_true(n > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_mistake_is_answered_with_its_place),
        cmocka_unit_test(right_files_pass),
        cmocka_unit_test(values_arrive_with_their_units),
        cmocka_unit_test(strategies_have_other_names),
        cmocka_unit_test_setup_teardown(overrides_win_in_order, make_folder, drop_folder),
        cmocka_unit_test_setup_teardown(wrong_overrides_say_which_one, make_folder, drop_folder),
        cmocka_unit_test_setup_teardown(a_file_that_is_no_job_file_is_named, make_folder,
                                        drop_folder),
        cmocka_unit_test(the_canonical_text_holds_every_key),
        cmocka_unit_test(no_memory_is_an_error_at_every_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
