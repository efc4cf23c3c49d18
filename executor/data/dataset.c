#include "executor/data/dataset.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "executor/data/permute.h"
#include "executor/data/tokens.h"

struct part {
    const uint16_t *v;
    int64_t tokens, samples;
    int64_t first; /* position of v in its file, for messages */
    const char *path;
};

struct sl_dataset {
    struct sl_tokens train_file, valid_file;
    struct part train, valid;
    char *train_path, *valid_path;
    int64_t vocab_size, context;
    uint64_t seed;
};

struct sl_dataset_spec sl_dataset_spec(const struct sl_job *job,
                                       const struct sl_dataset_files *files)
{
    return (struct sl_dataset_spec){
        .train = files->train,
        .valid = files->valid,
        .valid_fraction = job->data.valid_fraction,
        .vocab_size = job->data.vocab_size                 ? job->data.vocab_size
                      : job->data.tokenizer == SL_TOK_BYTE ? 256
                                                           : 0,
        .context = job->model.context,
        .batch = job->train.batch,
        .seed = job->train.seed,
    };
}

static struct part part(const uint16_t *v, int64_t first, int64_t tokens, int64_t context,
                        const char *path)
{
    return (struct part){v + first, tokens, tokens ? (tokens - 1) / context : 0, first, path};
}

static int check_sizes(const struct sl_dataset *ds, const struct sl_dataset_spec *spec, int by_file,
                       struct sl_err *err)
{
    if (ds->train.samples < spec->batch) {
        sl_fail(err, SL_USAGE,
                "%" PRId64 " training tokens make %" PRId64 " samples of context %" PRId64
                ", fewer than one batch of %" PRId64,
                ds->train.tokens, ds->train.samples, spec->context, spec->batch);
        return sl_hint(err,
                       "Give at least %" PRId64
                       " training tokens, or lower train.batch or model.context.",
                       spec->batch * spec->context + 1);
    }
    if ((by_file || spec->valid_fraction > 0) && !ds->valid.samples) {
        sl_fail(err, SL_USAGE,
                "the validation part has %" PRId64
                " tokens, fewer than one sample of context %" PRId64 " and its last target",
                ds->valid.tokens, spec->context);
        return sl_hint(err, by_file ? "Give a longer data.valid, or lower model.context."
                                    : "Raise data.valid_fraction, lower model.context, or set "
                                      "data.valid_fraction = 0 to train without validation.");
    }
    return 0;
}

struct sl_dataset *sl_dataset_open(const struct sl_dataset_spec *spec, struct sl_err *err)
{
    int by_file = spec->valid && *spec->valid;
    struct sl_dataset *ds;

    if (spec->context < 1 || spec->batch < 1 || spec->vocab_size < 1
        || spec->vocab_size > SL_TOKENS_MAX_VOCAB || !(spec->valid_fraction >= 0)
        || !(spec->valid_fraction < 1)) {
        sl_fail(err, SL_USAGE,
                "context %" PRId64 ", batch %" PRId64 ", vocab_size %" PRId64
                ", valid_fraction %g: must be at least 1, at least 1, 1..%d, and in [0, 1)",
                spec->context, spec->batch, spec->vocab_size, spec->valid_fraction,
                SL_TOKENS_MAX_VOCAB);
        return NULL;
    }
    ds = sl_calloc(1, sizeof *ds);
    if (!ds) {
        sl_fail(err, SL_SYSTEM, "cannot hold a data set: %s", strerror(errno));
        return NULL;
    }
    ds->vocab_size = spec->vocab_size;
    ds->context = spec->context;
    ds->seed = spec->seed;
    ds->train_path = sl_strdup(spec->train);
    ds->valid_path = by_file ? sl_strdup(spec->valid) : NULL;
    if (!ds->train_path || (by_file && !ds->valid_path)) {
        sl_fail(err, SL_SYSTEM, "cannot hold a data set: %s", strerror(errno));
        goto fail;
    }
    if (sl_tokens_open(&ds->train_file, spec->train, err)
        || (by_file && sl_tokens_open(&ds->valid_file, spec->valid, err)))
        goto fail;
    int64_t all = ds->train_file.count;
    int64_t cut = by_file ? all : sl_tokens_cut(all, spec->valid_fraction);
    ds->train = part(ds->train_file.v, 0, cut, spec->context, ds->train_path);
    if (by_file)
        ds->valid = part(ds->valid_file.v, 0, ds->valid_file.count, spec->context, ds->valid_path);
    else
        ds->valid = part(ds->train_file.v, cut, all - cut, spec->context, ds->train_path);
    if (check_sizes(ds, spec, by_file, err))
        goto fail;
    return ds;
fail:
    sl_dataset_close(ds);
    return NULL;
}

void sl_dataset_close(struct sl_dataset *ds)
{
    if (!ds)
        return;
    sl_tokens_close(&ds->train_file);
    sl_tokens_close(&ds->valid_file);
    free(ds->train_path);
    free(ds->valid_path);
    free(ds);
}

int64_t sl_dataset_train_samples(const struct sl_dataset *ds)
{
    return ds->train.samples;
}

int64_t sl_dataset_valid_samples(const struct sl_dataset *ds)
{
    return ds->valid.samples;
}

int64_t sl_dataset_train_tokens(const struct sl_dataset *ds)
{
    return ds->train.tokens;
}

int64_t sl_dataset_valid_tokens(const struct sl_dataset *ds)
{
    return ds->valid.tokens;
}

int64_t sl_dataset_steps(const struct sl_dataset *ds, const struct sl_train_spec *train)
{
    double steps = round(train->epochs * (double)ds->train.samples / (double)train->batch);

    if (train->steps)
        return train->steps;
    return steps < 1 ? 1 : (int64_t)steps;
}

static int copy(const struct sl_dataset *ds, const struct part *p, int64_t window, int32_t *ids,
                int32_t *targets, struct sl_err *err)
{
    const uint16_t *v = p->v + window * ds->context;

    for (int64_t i = 0; i <= ds->context; i++) {
        if (v[i] >= ds->vocab_size) {
            sl_fail(err, SL_USAGE,
                    "token file \"%s\": token %d at position %" PRId64
                    " is not below vocab_size %" PRId64,
                    p->path, v[i], p->first + window * ds->context + i, ds->vocab_size);
            return sl_hint(err, "The file changed after the run began; leave it alone while a run "
                                "reads it.");
        }
        if (i < ds->context)
            ids[i] = v[i];
        if (i)
            targets[i - 1] = v[i];
    }
    return 0;
}

int sl_dataset_train(const struct sl_dataset *ds, int64_t global_sample, int32_t *ids,
                     int32_t *targets, struct sl_err *err)
{
    int64_t n = ds->train.samples;

    if (global_sample < 0)
        return sl_fail(err, SL_BUG, "training sample %" PRId64 " asked for", global_sample);
    int64_t window = sl_permute(n, ds->seed, global_sample / n, global_sample % n);
    return copy(ds, &ds->train, window, ids, targets, err);
}

int sl_dataset_valid(const struct sl_dataset *ds, int64_t index, int32_t *ids, int32_t *targets,
                     struct sl_err *err)
{
    if (index < 0 || index >= ds->valid.samples)
        return sl_fail(err, SL_BUG, "validation sample %" PRId64 " of %" PRId64 " asked for", index,
                       ds->valid.samples);
    return copy(ds, &ds->valid, index, ids, targets, err);
}
