#include "executor/job.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/arena.h"
#include "common/conf.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/str.h"
#include "executor/job_keys.h"

enum { MOST_TEXT = 1 << 20 };

const char *sl_strategy_name(enum sl_strategy s)
{
    return (unsigned)s < SL_STRATEGIES ? sl_strategy_names[s] : "?";
}

const char *sl_precision_name(enum sl_precision p)
{
    return p == SL_BF16_MIXED ? "bf16" : "fp32";
}

void sl_job_destroy(struct sl_job *job)
{
    int saved = errno;

    if (!job)
        return;
    sl_arena_destroy(job->arena);
    free(job);
    errno = saved;
}

int64_t sl_job_micro(const struct sl_job *job, int ranks)
{
    return job->train.micro_batch ? job->train.micro_batch : job->train.batch / ranks;
}

int64_t sl_job_accum(const struct sl_job *job, int ranks)
{
    return job->train.batch / (sl_job_micro(job, ranks) * ranks);
}

int sl_job_check_ranks(const struct sl_job *job, int ranks, struct sl_err *err)
{
    const struct sl_train_spec *t = &job->train;

    if (ranks < 1 || ranks > SL_MAX_RANKS)
        return sl_fail(err, SL_USAGE, "%d ranks; this version runs 1 to %d", ranks, SL_MAX_RANKS);
    if (!t->micro_batch && t->batch % ranks) {
        sl_fail(err, SL_USAGE, "train.batch is %lld, which %d ranks cannot share evenly",
                (long long)t->batch, ranks);
        return sl_hint(err, "Use a multiple of %d, as %lld.", ranks,
                       (long long)((t->batch / ranks + 1) * ranks));
    }
    if (t->micro_batch && t->batch % (t->micro_batch * ranks)) {
        sl_fail(err, SL_USAGE, "train.batch is %lld; train.micro_batch %lld on %d ranks needs a "
                               "multiple of %lld", (long long)t->batch,
                (long long)t->micro_batch, ranks, (long long)(t->micro_batch * ranks));
        return sl_hint(err, "The batch is micro_batch * ranks * accumulation.");
    }
    return 0;
}

static int check_resources(const struct sl_job *job, const struct sl_conf *c, struct sl_err *err)
{
    const struct sl_resources *r = &job->resources;

    if (r->nodes * r->ranks_per_node > SL_MAX_RANKS)
        return sl_conf_bad(c, "resources.nodes", err,
                           "resources.nodes is %lld: with %lld ranks on each that is more than %d",
                           (long long)r->nodes, (long long)r->ranks_per_node, SL_MAX_RANKS);
    return 0;
}

int sl_job_ranks(const struct sl_job *job)
{
    return (int)(job->resources.nodes * job->resources.ranks_per_node);
}

static int check_model(struct sl_job *job, const struct sl_conf *c, struct sl_err *err)
{
    struct sl_model_spec *m = &job->model;

    if (m->width % m->heads) {
        sl_conf_bad(c, "model.heads", err, "model.heads is %lld, which does not divide model.width "
                                           "%lld", (long long)m->heads, (long long)m->width);
        int64_t h = m->heads;
        while (m->width % h)
            h--;
        return sl_hint(err, "The nearest smaller number of heads that does is %lld.",
                       (long long)h);
    }
    if (!m->ffn_width)
        m->ffn_width = 4 * m->width;
    return 0;
}

static int check_data(struct sl_job *job, const struct sl_conf *c, struct sl_err *err)
{
    struct sl_data_spec *d = &job->data;
    char given[24];
    int least;

    if (d->valid && d->valid_fraction > 0 && sl_conf_given(c, "data.valid_fraction")) {
        sl_conf_bad(c, "data.valid_fraction", err,
                    "data.valid_fraction and data.valid are both given; use one of them");
        return sl_hint(err, "0 is as not given: --set data.valid_fraction=0.");
    }
    if (d->valid)
        d->valid_fraction = 0;
    if (d->tokenizer == SL_TOK_BYTE && d->vocab_size && d->vocab_size != 256)
        return sl_conf_bad(c, "data.vocab_size", err,
                           "data.vocab_size is %lld; the tokenizer \"byte\" has 256",
                           (long long)d->vocab_size);
    if (d->tokenizer == SL_TOK_BYTE)
        d->vocab_size = 256;
    least = d->tokenizer == SL_TOK_WORD ? 3 : 2; /* a word besides "<unk>" and "<eos>" */
    if (d->vocab_size < least) {
        snprintf(given, sizeof given, "%lld", (long long)d->vocab_size);
        return sl_conf_bad(c, "data.vocab_size", err,
                           "data.vocab_size is %s; the tokenizer \"%s\" needs an integer from %d "
                           "to 65536", d->vocab_size ? given : "missing",
                           d->tokenizer == SL_TOK_WORD ? "word" : "uint16", least);
    }
    if (strstr(d->train, "{id}"))
        return sl_conf_bad(c, "data.train", err,
                           "data.train holds {id}: data cannot depend on the run's number");
    if (d->valid && strstr(d->valid, "{id}"))
        return sl_conf_bad(c, "data.valid", err,
                           "data.valid holds {id}: data cannot depend on the run's number");
    return 0;
}

static int check_train(const struct sl_job *job, const struct sl_conf *c, struct sl_err *err)
{
    const struct sl_train_spec *t = &job->train;
    char a[40], b[40];

    if (!t->steps && t->epochs <= 0)
        return sl_conf_bad(c, "train.steps", err,
                           "train.steps and train.epochs are both missing; give one of them");
    if (t->steps && t->epochs > 0) {
        sl_conf_bad(c, "train.epochs", err,
                    "train.epochs and train.steps are both given; use one of them");
        return sl_hint(err, "0 is as not given: --set train.epochs=0, or --set train.steps=0.");
    }
    if (t->min_lr > t->lr)
        return sl_conf_bad(c, "train.min_lr", err, "train.min_lr is %s, more than train.lr %s",
                           sl_double_exact(a, t->min_lr), sl_double_exact(b, t->lr));
    if (t->steps && t->warmup > t->steps)
        return sl_conf_bad(c, "train.warmup", err,
                           "train.warmup is %lld, more than the %lld steps of the run",
                           (long long)t->warmup, (long long)t->steps);
    return 0;
}

static int check_all(struct sl_job *job, const struct sl_conf *c, struct sl_err *err)
{
    struct sl_err inner = {0};
    int ranks;

    if (check_resources(job, c, err) || check_model(job, c, err) || check_data(job, c, err) ||
        check_train(job, c, err))
        return -1;
    ranks = sl_job_ranks(job);
    if (sl_job_check_ranks(job, ranks, &inner)) {
        sl_conf_bad(c, "train.batch", err, "%s", inner.msg);
        return sl_hint(err, "%s", inner.hint);
    }
    return 0;
}

/* The base name of the file without ".toml". */
static char *default_name(struct sl_arena *a, const char *file)
{
    const char *slash = strrchr(file, '/'), *base = slash ? slash + 1 : file;
    size_t n = strlen(base);

    if (n > 5 && sl_str_ends(base, ".toml"))
        n -= 5;
    return sl_arena_strndup(a, base, n ? n : 1);
}

/* Put the name for {name}, and the job file's folder before a relative path. */
static int expand(struct sl_job *job, const char *folder, const char **path, size_t most,
                  struct sl_err *err)
{
    const char *rest = *path, *hole;
    struct sl_buf b;
    char *whole = NULL;
    int rc = -1;

    if (!rest)
        return 0;
    sl_buf_init(&b, PATH_MAX);
    while ((hole = strstr(rest, "{name}"))) {
        sl_buf_add(&b, rest, (size_t)(hole - rest));
        sl_buf_str(&b, job->name);
        rest = hole + 6;
    }
    sl_buf_str(&b, rest);
    if (sl_buf_check(&b, err))
        goto out;
    if (folder)
        whole = sl_fs_absolute(folder, sl_buf_text(&b), err);
    else
        whole = sl_buf_take(&b, err);
    if (!whole)
        goto out;
    if (strlen(whole) > most) {
        sl_fail(err, SL_USAGE, "path \"%.60s...\" has %zu bytes with its folder, more than %zu",
                whole, strlen(whole), most);
        goto out;
    }
    *path = sl_arena_strdup(job->arena, whole);
    rc = *path ? 0 : sl_fail(err, SL_SYSTEM, "cannot hold the job: %s", strerror(errno));
out:
    free(whole);
    sl_buf_fini(&b);
    return rc;
}

static int expand_resume(struct sl_job *job, const char *folder, struct sl_err *err)
{
    const char **resume = &job->checkpoint.resume;

    if (!strcmp(*resume, "auto") || !strcmp(*resume, "never"))
        return 0;
    return expand(job, folder, resume, SL_JOB_DIR_MAX, err);
}

/* It is shown on terminals and in file names: nothing in it may act there. */
static int check_name(const struct sl_job *job, const struct sl_conf *c, struct sl_err *err)
{
    const char *p = sl_str_control(job->name);
    char one[5], shown[12];
    int n = p ? sl_utf8_len(p, strlen(p)) : 0;

    if (!p && strlen(job->name) > SL_JOB_NAME_MAX) {
        sl_conf_bad(c, "name", err, "name is missing, and the file's has %zu bytes, more than %d",
                    strlen(job->name), SL_JOB_NAME_MAX);
        return sl_hint(err, "Give one: name = \"...\".");
    }
    if (!p)
        return 0;
    snprintf(one, sizeof one, "%.*s", n ? n : 1, p);
    sl_str_escape(shown, sizeof shown, one);
    return sl_conf_bad(c, "name", err, "name holds a %s (%s)",
                       n ? "control character" : "byte that is no UTF-8", shown);
}

/* `folder`: what relative paths are relative to; NULL: leave them. */
static struct sl_job *make(const char *text, size_t n, const char *file, const char *folder,
                           const char *const *set, int n_set, struct sl_err *err)
{
    int n_keys;
    const struct sl_conf_opt *keys = sl_job_keys(&n_keys);
    struct sl_conf *c = sl_conf_create(keys, n_keys, err);
    struct sl_job *job = sl_calloc(1, sizeof *job);

    if (!c)
        goto fail;
    if (!job) {
        sl_fail(err, SL_SYSTEM, "cannot hold the job: %s", strerror(errno));
        goto fail;
    }
    job->arena = sl_arena_create(4 * MOST_TEXT, err);
    if (!job->arena || sl_conf_text(c, text, n, file, err))
        goto fail;
    for (int i = 0; i < n_set; i++)
        if (sl_conf_set(c, set[i], err))
            goto fail;
    if (sl_conf_read(c, job, job->arena, err))
        goto fail;
    job->file = sl_arena_strdup(job->arena, file);
    if (!job->name)
        job->name = default_name(job->arena, file);
    if (!job->file || !job->name) {
        sl_fail(err, SL_SYSTEM, "cannot hold the job: %s", strerror(errno));
        goto fail;
    }
    if (check_name(job, c, err) || check_all(job, c, err) ||
        expand(job, folder, &job->data.train, SL_JOB_PATH_MAX, err) ||
        expand(job, folder, &job->data.valid, SL_JOB_PATH_MAX, err) ||
        expand(job, folder, &job->checkpoint.dir, SL_JOB_DIR_MAX, err) ||
        expand_resume(job, folder, err))
        goto fail;
    sl_conf_destroy(c);
    return job;
fail:
    sl_conf_destroy(c);
    sl_job_destroy(job);
    return NULL;
}

struct sl_job *sl_job_parse(const char *text, const char *name, struct sl_err *err)
{
    return make(text, strlen(text), name, NULL, NULL, 0, err);
}

struct sl_job *sl_job_load(const char *path, const char *const *set, int n, struct sl_err *err)
{
    size_t len;
    char *text = sl_fs_read(path, MOST_TEXT, &len, err), folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t k = slash ? (size_t)(slash - path) + (slash == path) : 0;
    struct sl_job *job;

    if (!text)
        return NULL;
    snprintf(folder, sizeof folder, "%.*s", (int)k, path); /* the file was read: its name fits */
    job = make(text, len, path, folder, set, n, err);
    free(text);
    return job;
}

char *sl_job_text(const struct sl_job *job, struct sl_err *err)
{
    int n;
    const struct sl_conf_opt *keys = sl_job_keys(&n);
    struct sl_buf b;
    char *text;

    sl_buf_init(&b, MOST_TEXT);
    sl_conf_print(keys, n, job, &b);
    text = sl_buf_take(&b, err);
    sl_buf_fini(&b);
    return text;
}
