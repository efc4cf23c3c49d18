#ifndef SL_CKPT_MANIFEST_H
#define SL_CKPT_MANIFEST_H

/*
 * manifest.h - the file that makes a checkpoint whole: what it is of, its files, where tensors lie
 *
 * One JSON object in manifest.json. It begins with exactly
 *
 *     {"format":"shardlaunch-checkpoint","version":1,"xxh64":"0123456789abcdef",
 *
 * where the hash is that of the whole file with these 16 digits as zeros. Files are hashed in chunks
 * of SL_CKPT_CHUNK bytes from their start, by XXH64: 64 bits find every accident, and no forger.
 * Reading checks that each parameter, and each moment that is there at all, is covered exactly
 * once by pieces inside the files.
 */

#include <stdint.h>

#include "executor/checkpoint/layout.h"
#include "executor/job.h"

enum { SL_CKPT_VERSION = 1, SL_CKPT_MANIFEST_BYTES = 512 << 20, SL_CKPT_NAME = 64 };

struct sl_ckpt_file {
    char name[SL_CKPT_NAME]; /* no folder in it */
    int64_t bytes, chunks;
    const uint64_t *hash; /* by chunk */
};

struct sl_ckpt_range {
    int file;
    int64_t off;   /* byte in the file */
    int64_t lo, n; /* elements of the tensor, fp32 */
};

struct sl_ckpt_tensor {
    char name[SL_CKPT_NAME];
    int64_t dim[2], n;
    int count[SL_CKPT_KINDS];
    const struct sl_ckpt_range *range[SL_CKPT_KINDS]; /* by lo; count 0: not saved (moments only) */
};

struct sl_ckpt_manifest {
    int64_t step, steps, seed, batch, samples; /* samples of training per epoch */
    int64_t position; /* global samples that were taken: step * batch */
    int64_t skipped, bad_row; /* steps left out because they were not finite: see run.h */
    int64_t job, ranks;
    double time;      /* unix seconds */
    const char *program, *strategy, *precision, *text; /* text: the job, canonical */
    int nfiles, ntensors;
    const struct sl_ckpt_file *file;
    const struct sl_ckpt_tensor *tensor;
    struct sl_arena *arena;
};

/* Text of a manifest. Nothing is checked: it is the writer's. Caller frees. */
char *sl_ckpt_manifest_text(const struct sl_ckpt_manifest *m, const struct sl_job *job, size_t *n,
                            struct sl_err *err);

/* From any bytes. Caller destroys. SL_USAGE: damaged, or of a version that is not known. */
struct sl_ckpt_manifest *sl_ckpt_manifest_parse(const char *text, size_t n, struct sl_err *err);
/* <checkpoint>/manifest.json, with the file named in every error. */
struct sl_ckpt_manifest *sl_ckpt_manifest_read(const char *checkpoint, struct sl_err *err);
void sl_ckpt_manifest_destroy(struct sl_ckpt_manifest *m); /* NULL is fine */

const struct sl_ckpt_tensor *sl_ckpt_manifest_find(const struct sl_ckpt_manifest *m,
                                                   const char *name); /* or NULL */

/* Each file is there and as long as it should be. SL_USAGE: names the first that is not. */
int sl_ckpt_manifest_files(const struct sl_ckpt_manifest *m, const char *checkpoint,
                           struct sl_err *err);

/*
 * May a run of `job` go on from it? The model, the data's shape and every training key that has a
 * say in a step's result must be equal; ranks, strategy, micro-batch, recomputation and evaluation
 * are free, and so is the number of steps while it does not bend the learning rate. SL_USAGE: lists
 * the differences.
 */
int sl_ckpt_manifest_fits(const struct sl_ckpt_manifest *m, const struct sl_job *job,
                          int64_t steps, int64_t samples, struct sl_err *err);

#endif
