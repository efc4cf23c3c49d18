/* fits.c - may a run go on from a checkpoint? */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "executor/checkpoint/manifest.h"
#include "executor/job_keys.h"

/* Every other key has no say in the result of a step. */
static const char *const say[] = {
    "model.kind",         "model.layers",       "model.heads",       "model.width",
    "model.ffn_width",    "model.context",      "model.dropout",     "model.tie_embeddings",
    "data.tokenizer",     "data.vocab_size",    "train.precision",   "train.batch",
    "train.lr",           "train.min_lr",       "train.schedule",    "train.warmup",
    "train.weight_decay", "train.betas",        "train.eps",         "train.grad_clip",
    "train.seed",
};

static int counts(const char *key)
{
    for (size_t i = 0; i < sizeof say / sizeof *say; i++)
        if (!strcmp(say[i], key))
            return 1;
    return 0;
}

/* A key's value as the canonical text has it; NULL without memory. */
static const char *value(const struct sl_conf_opt *key, const struct sl_job *job, struct sl_buf *b,
                         struct sl_err *err)
{
    char *at;

    sl_buf_init(b, 1 << 16);
    sl_conf_print(key, 1, job, b);
    if (sl_buf_check(b, err))
        return NULL;
    while (b->len && b->p[b->len - 1] == '\n')
        b->p[--b->len] = '\0';
    at = strstr(b->p, " = ");
    return at ? at + 3 : b->p;
}

static int compare(const struct sl_conf_opt *key, const struct sl_job *then,
                   const struct sl_job *now, struct sl_buf *out, struct sl_err *err)
{
    struct sl_buf a, b;
    const char *was = value(key, then, &a, err), *is = value(key, now, &b, err);

    if (was && is && strcmp(was, is))
        sl_buf_printf(out, "%s%s %s, here %s", out->len ? "; " : "", key->key, was, is);
    sl_buf_fini(&a);
    sl_buf_fini(&b);
    return was && is ? 0 : -1;
}

int sl_ckpt_manifest_fits(const struct sl_ckpt_manifest *m, const struct sl_job *job,
                          int64_t steps, int64_t samples, struct sl_err *err)
{
    int n, bent = job->train.schedule != SL_CONSTANT;
    const struct sl_conf_opt *keys = sl_job_keys(&n);
    struct sl_job *then = sl_job_parse(m->text, "the checkpoint's job", err);
    struct sl_buf out;
    int rc = 0;

    if (!then)
        return -1;
    sl_buf_init(&out, 4096);
    for (int i = 0; i < n && !rc; i++)
        if (counts(keys[i].key))
            rc = compare(&keys[i], then, job, &out, err);
    if (steps != m->steps && (bent || steps < m->step))
        sl_buf_printf(&out, "%ssteps %lld, here %lld", out.len ? "; " : "", (long long)m->steps,
                      (long long)steps);
    if (samples != m->samples)
        sl_buf_printf(&out, "%straining samples %lld, here %lld", out.len ? "; " : "",
                      (long long)m->samples, (long long)samples);
    if (!rc && out.failed != EFBIG) /* a list that is too long is still a list */
        rc = sl_buf_check(&out, err);
    if (!rc && out.len) {
        rc = sl_fail(err, SL_USAGE, "it is of another training: %s", sl_buf_text(&out));
        sl_hint(err, "Use the job file it was written by, or checkpoint.resume = \"never\" and "
                     "another checkpoint.dir.");
    }
    sl_buf_fini(&out);
    sl_job_destroy(then);
    return rc;
}
