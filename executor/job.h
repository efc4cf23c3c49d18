#ifndef SL_JOB_H
#define SL_JOB_H

/*
 * job.h - a job file as typed values: what is trained, on what, how and where
 *
 * Read from TOML with overrides (`--set a.b=value`); an unknown key, a value of another type or
 * out of range, and a combination that cannot be met are refused with file:line:column. Written
 * back as one canonical TOML text, which is what a rank reads and what a run's folder keeps.
 */

#include <stdint.h>

#include "common/err.h"

enum sl_strategy { SL_DP, SL_DDP, SL_ZERO1, SL_ZERO2, SL_ZERO3, SL_STRATEGIES };
enum sl_precision { SL_FP32, SL_BF16_MIXED };
enum sl_schedule { SL_CONSTANT, SL_LINEAR, SL_COSINE };
enum sl_tokenizer_kind { SL_TOK_BYTE, SL_TOK_WORD, SL_TOK_UINT16 };
enum sl_on_nan { SL_NAN_STOP, SL_NAN_SKIP };
enum sl_recompute { SL_RECOMPUTE_NONE, SL_RECOMPUTE_UNIT };

enum { SL_MAX_RANKS = 64 }; /* of a job, on all its nodes */

struct sl_resources {
    int64_t nodes;          /* 1: not said, it runs on those that it is started on */
    int64_t ranks_per_node; /* nodes * ranks_per_node is 1..SL_MAX_RANKS */
    int64_t threads;        /* per rank; 0: cores / ranks, at least 1 */
    const char *device;     /* "auto", "cpu"; "cuda" is refused until that back end exists */
    int64_t memory_limit;   /* bytes per rank; 0: none */
    double time_limit;      /* seconds; 0: none */
};

struct sl_model_spec {
    const char *kind; /* "gpt" */
    int64_t layers, heads, width, ffn_width /* 0 in the file: 4 * width here */, context;
    double dropout;
    int tie_embeddings; /* default 1 */
};

struct sl_data_spec {
    const char *train, *valid; /* file paths; valid NULL: by fraction */
    double valid_fraction;     /* [0, 1); 0 when valid is given; 0 and no valid: no validation */
    enum sl_tokenizer_kind tokenizer;
    int64_t vocab_size; /* byte: 256; word and uint16 files: given */
};

struct sl_train_spec {
    enum sl_strategy strategy;
    enum sl_precision precision;
    int64_t steps;  /* 0: by epochs */
    double epochs;  /* 0: by steps; exactly one of both is given */
    int64_t batch;  /* global samples a step */
    int64_t micro_batch; /* samples per rank and micro-step; 0: batch / ranks (no accumulation) */
    double lr, min_lr;   /* min_lr: where linear and cosine end; default 0 */
    enum sl_schedule schedule;
    int64_t warmup; /* steps */
    double weight_decay, beta1, beta2, eps, grad_clip /* 0: off */;
    enum sl_recompute recompute;
    uint64_t seed;
    int64_t eval_every;   /* steps; 0: only at the end */
    int64_t eval_samples; /* validation samples an evaluation; 0: all */
};

struct sl_failure_spec {
    int64_t max_restarts; /* further attempts after a rank's death or a hang */
    double hang_timeout; /* seconds; default 300 */
    double grace;        /* seconds between "stop at a step boundary" and SIGKILL; default 30 */
    enum sl_on_nan on_nan; /* a loss or gradient that is not finite: fail, or leave the step out */
};

struct sl_checkpoint_spec {
    const char *dir;    /* NULL: in the run's folder; may hold {id} */
    int64_t every;      /* steps; 0: only when the run is asked to stop */
    int64_t keep;       /* complete ones; 0: all */
    const char *resume; /* "auto", "never" or a path */
};

struct sl_job {
    const char *name; /* default: the file's base name without .toml */
    const char *file; /* as given, for messages */
    struct sl_resources resources;
    struct sl_model_spec model;
    struct sl_data_spec data;
    struct sl_train_spec train;
    struct sl_checkpoint_spec checkpoint;
    struct sl_failure_spec failure;
    struct sl_arena *arena; /* owns every string */
};

/*
 * Read `path` and apply n overrides "a.b=value" (value as TOML, or a bare string), in order.
 * Relative paths of data are relative to the job file's folder. Caller destroys. SL_USAGE: the file
 * or an override is wrong (message begins "path:line:column: " or "--set a.b=...: "); SL_SYSTEM: it
 * cannot be read.
 */
struct sl_job *sl_job_load(const char *path, const char *const *set, int n, struct sl_err *err);
/* The same from a text; `name` stands for the file, and relative paths stay as they are. */
struct sl_job *sl_job_parse(const char *text, const char *name, struct sl_err *err);
void sl_job_destroy(struct sl_job *job);

/* The whole job as canonical TOML, absolute paths; parses to an equal job. Caller frees. */
char *sl_job_text(const struct sl_job *job, struct sl_err *err);

int sl_job_ranks(const struct sl_job *job); /* of all nodes */

/* Ranks, micro-batch and batch must fit together: micro_batch * ranks divides batch. SL_USAGE. */
int sl_job_check_ranks(const struct sl_job *job, int ranks, struct sl_err *err);
int64_t sl_job_micro(const struct sl_job *job, int ranks);  /* samples per rank and micro-step */
int64_t sl_job_accum(const struct sl_job *job, int ranks);  /* micro-steps per step */

extern const char *const sl_strategy_names[]; /* by enum sl_strategy; ends with NULL */
extern const char *const sl_strategy_words[]; /* the same and their aliases; ends with NULL */
const char *sl_strategy_name(enum sl_strategy s); /* "dp", "ddp", "zero1", ... */
const char *sl_precision_name(enum sl_precision p);

#endif
