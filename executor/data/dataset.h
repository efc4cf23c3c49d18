#ifndef SL_DATASET_H
#define SL_DATASET_H

/*
 * dataset.h - training and validation samples of a job, in an order that no rank changes
 *
 * A sample is a window of context + 1 tokens: `context` inputs and, one further on, as many
 * targets. Windows start at multiples of `context`, so every token is a target once an epoch, less
 * a tail shorter than a window. Training sample g of a run (g counts the run's samples from 0, over
 * all ranks and steps) is element g mod n of the order that (seed, g / n) names, n = samples per
 * epoch; the order depends on nothing else. A batch may reach over the end of an epoch: there are
 * no short batches. Validation samples keep the file's order.
 *
 * Whoever starts a run calls sl_dataset_prepare() once; it tokenises the text into files
 * `CACHE/HASH.tokens` (and `.vocab` for words), which ranks map. Rank r of R with micro-batch b
 * and A micro-steps takes, in step s (from 0) and micro-step a, samples
 * s * batch + a * R * b + r * b + 0..b-1, batch = R * b * A.
 *
 * A dataset is read-only after open: any number of threads may read samples from it.
 */

#include <stdint.h>

#include "common/err.h"
#include "executor/job.h"

enum { SL_DATASET_PATH = 1024 };

/* Where the tokens of a job lie; plain data, so that it can travel to the ranks. */
struct sl_dataset_files {
    char train[SL_DATASET_PATH]; /* token file */
    char valid[SL_DATASET_PATH]; /* token file; "" when validation is the tail of `train` */
    int32_t built;   /* files this call tokenised; 0: all were in the cache, or ready-made */
    int32_t damaged; /* of these, how many replaced a damaged cached file */
};

/*
 * Make the token files of a job ready: check what it names, and tokenise a text into `cache_dir`
 * (created when missing) unless the same bytes were tokenised the same way before. Two at once on
 * one folder are fine: the second waits for the first. Ready-made token files are checked to the
 * last token and used where they are. Also refuses a data set too small for the job's batch, as
 * open does.
 *
 * SL_USAGE: a file is missing, empty, not UTF-8 (word tokenizer), not tokens, or too small.
 * SL_SYSTEM: the cache cannot be written. SL_BUSY: another process has held the lock for ten
 * minutes.
 */
int sl_dataset_prepare(const struct sl_job *job, const char *cache_dir,
                       struct sl_dataset_files *ret, struct sl_err *err);

struct sl_dataset; /* opaque */

struct sl_dataset_spec {
    const char *train, *valid; /* token files; valid NULL or "": the tail of train */
    double valid_fraction; /* of the tokens of train, in [0, 1); 0 with no valid: no validation */
    int64_t vocab_size;    /* every token must be below it */
    int64_t context;       /* tokens a sample */
    int64_t batch;         /* samples a step, over all ranks; more than an epoch has is refused */
    uint64_t seed;
};

/* The spec of a job and its files; the strings are lent from `files`. */
struct sl_dataset_spec sl_dataset_spec(const struct sl_job *job,
                                       const struct sl_dataset_files *files);

/*
 * Map the token files. Caller closes. SL_USAGE: fewer training samples than `batch`, or a
 * validation part that is asked for but shorter than one sample: the message says what there is and
 * what is needed, the hint what to change.
 */
struct sl_dataset *sl_dataset_open(const struct sl_dataset_spec *spec, struct sl_err *err);
void sl_dataset_close(struct sl_dataset *ds); /* NULL is fine */

int64_t sl_dataset_train_samples(const struct sl_dataset *ds); /* per epoch */
int64_t sl_dataset_valid_samples(const struct sl_dataset *ds); /* 0: none */
int64_t sl_dataset_train_tokens(const struct sl_dataset *ds);
int64_t sl_dataset_valid_tokens(const struct sl_dataset *ds);

/* Steps of a job: its `steps`, or epochs * samples / batch rounded to nearest, at least 1. */
int64_t sl_dataset_steps(const struct sl_dataset *ds, const struct sl_train_spec *train);

/*
 * Copy one sample: ids and targets are [context] i32 of the caller. SL_USAGE: the file holds a
 * token that is not below vocab_size (named with its position). SL_BUG: the index is out of range.
 */
int sl_dataset_train(const struct sl_dataset *ds, int64_t global_sample, int32_t *ids,
                     int32_t *targets, struct sl_err *err);
int sl_dataset_valid(const struct sl_dataset *ds, int64_t index, int32_t *ids, int32_t *targets,
                     struct sl_err *err);

#endif
