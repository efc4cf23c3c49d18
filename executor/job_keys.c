#include "executor/job_keys.h"

#include <stdint.h>
#include <string.h>

#include "executor/job.h"

#define AT(field) offsetof(struct sl_job, field)

_Static_assert(sizeof(enum sl_strategy) == sizeof(int), "SL_CONF_ENUM writes an int");
_Static_assert(AT(train.beta2) == AT(train.beta1) + sizeof(double), "SL_CONF_PAIR writes two");

static const double huge = 1e18; /* no bound that a person could meet */

static const char *const devices[] = {"auto", "cpu", NULL};
static const char *const kinds[] = {"gpt", NULL};
static const char *const tokenizers[] = {"byte", "word", "uint16", NULL};
#define STRATEGIES "dp", "ddp", "zero1", "zero2", "zero3"
const char *const sl_strategy_names[] = {STRATEGIES, NULL};
const char *const sl_strategy_words[] = {STRATEGIES, "sharded", "ddp_sharded", "fsdp", NULL};
_Static_assert(sizeof sl_strategy_names / sizeof *sl_strategy_names == SL_STRATEGIES + 1,
               "a name for each strategy");
static const char *const strategy_aliases[] = {
    "sharded", "zero2", "ddp_sharded", "zero2", "fsdp", "zero3", NULL,
};
static const char *const precisions[] = {"fp32", "bf16", NULL};
static const char *const schedules[] = {"constant", "linear", "cosine", NULL};
static const char *const recomputes[] = {"none", "unit", NULL};
static const char *const on_nan[] = {"stop", "skip", NULL};

static const char *no_device(const char *text)
{
    return strcmp(text, "cuda") ? NULL : "this version has no CUDA back end; use \"cpu\"";
}

static const char *no_tokenizer(const char *text)
{
    if (strcmp(text, "gpt2") && !strpbrk(text, "/."))
        return NULL;
    return "this version has the tokenizers \"byte\", \"word\" and \"uint16\" only";
}

static const struct sl_conf_opt keys[] = {
    {.key = "name", .type = SL_CONF_STR, .at = AT(name), .max = SL_JOB_NAME_MAX, .def = "\"\"",
     .help = "The run's name; default: the file's name without .toml."},

    {.key = "resources.nodes", .type = SL_CONF_INT, .at = AT(resources.nodes), .min = 1,
     .max = SL_MAX_RANKS, .def = "1",
     .help = "Machines; 1: those that it is started on (srun -N)."},
    {.key = "resources.ranks_per_node", .type = SL_CONF_INT, .at = AT(resources.ranks_per_node),
     .min = 1, .max = SL_MAX_RANKS, .def = "1", .help = "Processes of each machine that share the work."},
    {.key = "resources.threads", .type = SL_CONF_INT, .at = AT(resources.threads), .max = 1024,
     .def = "0", .help = "Threads of a rank; 0: cores / ranks."},
    {.key = "resources.device", .type = SL_CONF_WORD, .at = AT(resources.device), .def = "\"auto\"",
     .words = devices, .refuse = no_device, .help = "What ranks compute on."},
    {.key = "resources.memory_limit", .type = SL_CONF_SIZE, .at = AT(resources.memory_limit),
     .max = huge, .def = "0",
     .help = "Bytes that a rank's plan may take; 0: no limit. Its process adds up to 64 MiB."},
    {.key = "resources.time_limit", .type = SL_CONF_DURATION, .at = AT(resources.time_limit),
     .max = huge, .def = "0", .help = "Stop at a step boundary after this time; 0: no limit."},

    {.key = "model.kind", .type = SL_CONF_WORD, .at = AT(model.kind), .def = "\"gpt\"",
     .words = kinds, .help = "The architecture."},
    {.key = "model.layers", .type = SL_CONF_INT, .at = AT(model.layers), .min = 1, .max = 1024,
     .help = "Transformer blocks."},
    {.key = "model.heads", .type = SL_CONF_INT, .at = AT(model.heads), .min = 1, .max = 1024,
     .help = "Attention heads; must divide width."},
    {.key = "model.width", .type = SL_CONF_INT, .at = AT(model.width), .min = 1, .max = 65536,
     .help = "Numbers a token is represented by."},
    {.key = "model.ffn_width", .type = SL_CONF_INT, .at = AT(model.ffn_width), .max = 1 << 20,
     .def = "0", .help = "Width inside a block's feed-forward part; 0: 4 * width."},
    {.key = "model.context", .type = SL_CONF_INT, .at = AT(model.context), .min = 1,
     .max = 1 << 20, .help = "Tokens of a sample."},
    {.key = "model.dropout", .type = SL_CONF_REAL, .at = AT(model.dropout), .max = 1,
     .flags = SL_CONF_BELOW, .def = "0", .help = "Share of activations set to zero in training."},
    {.key = "model.tie_embeddings", .type = SL_CONF_BOOL, .at = AT(model.tie_embeddings),
     .def = "true", .help = "Use the token embedding as the output layer."},
    {.key = "model.init", .type = SL_CONF_ABSENT,
     .why_not = "this version starts from random weights only",
     .help = "Folder or file with weights to start from."},

    {.key = "data.train", .type = SL_CONF_STR, .at = AT(data.train), .min = 1,
     .max = SL_JOB_PATH_MAX,
     .help = "File to train on; relative to the job file."},
    {.key = "data.valid", .type = SL_CONF_STR, .at = AT(data.valid),
     .max = SL_JOB_PATH_MAX, .def = "\"\"",
     .help = "File to evaluate on."},
    {.key = "data.valid_fraction", .type = SL_CONF_REAL, .at = AT(data.valid_fraction), .max = 1,
     .flags = SL_CONF_BELOW, .def = "0.05",
     .help = "Without a valid file: the share at the end of train to evaluate on; 0: none."},
    {.key = "data.tokenizer", .type = SL_CONF_ENUM, .at = AT(data.tokenizer), .def = "\"byte\"",
     .words = tokenizers, .refuse = no_tokenizer,
     .help = "How text becomes tokens; uint16: the files hold tokens already."},
    {.key = "data.vocab_size", .type = SL_CONF_INT, .at = AT(data.vocab_size), .max = 65536,
     .def = "0", .help = "Different tokens; byte: always 256."},

    {.key = "train.strategy", .type = SL_CONF_ENUM, .at = AT(train.strategy), .def = "\"zero2\"",
     .words = sl_strategy_names, .aliases = strategy_aliases,
     .help = "What is sharded: sharded and ddp_sharded mean zero2, fsdp means zero3."},
    {.key = "train.precision", .type = SL_CONF_ENUM, .at = AT(train.precision), .def = "\"fp32\"",
     .words = precisions, .help = "How numbers are stored; bf16 keeps fp32 master weights."},
    {.key = "train.steps", .type = SL_CONF_INT, .at = AT(train.steps), .max = 1e9, .def = "0",
     .help = "Optimizer steps; give steps or epochs."},
    {.key = "train.epochs", .type = SL_CONF_REAL, .at = AT(train.epochs), .max = 1e6, .def = "0",
     .help = "Passes over the training data; give steps or epochs."},
    {.key = "train.batch", .type = SL_CONF_INT, .at = AT(train.batch), .min = 1, .max = 1 << 24,
     .help = "Samples a step, over all ranks."},
    {.key = "train.micro_batch", .type = SL_CONF_INT, .at = AT(train.micro_batch), .max = 1 << 24,
     .def = "0", .help = "Samples a rank takes at once; 0: batch / ranks. Less: accumulation."},
    {.key = "train.lr", .type = SL_CONF_REAL, .at = AT(train.lr), .max = 1000,
     .flags = SL_CONF_ABOVE, .help = "Learning rate behind the warm-up."},
    {.key = "train.min_lr", .type = SL_CONF_REAL, .at = AT(train.min_lr), .max = 1000, .def = "0",
     .help = "Learning rate where linear and cosine end."},
    {.key = "train.schedule", .type = SL_CONF_ENUM, .at = AT(train.schedule),
     .def = "\"constant\"", .words = schedules, .help = "How the learning rate goes down."},
    {.key = "train.warmup", .type = SL_CONF_INT, .at = AT(train.warmup), .max = 1e9, .def = "0",
     .help = "Steps in which the learning rate rises from 0."},
    {.key = "train.weight_decay", .type = SL_CONF_REAL, .at = AT(train.weight_decay), .max = 1000,
     .def = "0.01", .help = "AdamW's decay of matrices, times the learning rate."},
    {.key = "train.betas", .type = SL_CONF_PAIR, .at = AT(train.beta1), .max = 1,
     .flags = SL_CONF_BELOW, .def = "[0.9, 0.999]", .help = "AdamW's two averages."},
    {.key = "train.eps", .type = SL_CONF_REAL, .at = AT(train.eps), .max = 1,
     .flags = SL_CONF_ABOVE, .def = "1e-8", .help = "AdamW's guard of the division."},
    {.key = "train.grad_clip", .type = SL_CONF_REAL, .at = AT(train.grad_clip), .max = 1e9,
     .def = "1.0", .help = "Largest norm of the whole gradient; 0: off."},
    {.key = "train.recompute", .type = SL_CONF_ENUM, .at = AT(train.recompute), .def = "\"none\"",
     .words = recomputes, .help = "Keep activations, or compute a unit's again in backward."},
    {.key = "train.seed", .type = SL_CONF_INT, .at = AT(train.seed), .max = 9007199254740991.0,
     .def = "1", .help = "Of weights, data order and dropout."},
    {.key = "train.eval_every", .type = SL_CONF_INT, .at = AT(train.eval_every), .max = 1e9,
     .def = "0", .help = "Steps between evaluations; 0: only at the end."},
    {.key = "train.eval_samples", .type = SL_CONF_INT, .at = AT(train.eval_samples), .max = 1e12,
     .def = "0", .help = "Samples of an evaluation; 0: all."},

    {.key = "checkpoint.dir", .type = SL_CONF_STR, .at = AT(checkpoint.dir),
     .max = SL_JOB_DIR_MAX,
     .def = "\"\"",
     .help = "Folder of checkpoints, may hold {id} and {name}; default: in the run's own folder."},
    {.key = "checkpoint.every", .type = SL_CONF_INT, .at = AT(checkpoint.every), .max = 1e9,
     .def = "0", .help = "Steps between checkpoints; 0: only when asked to stop."},
    {.key = "checkpoint.keep", .type = SL_CONF_INT, .at = AT(checkpoint.keep), .max = 1e9,
     .def = "3", .help = "Complete checkpoints that are kept, the newest; 0: all."},
    {.key = "checkpoint.resume", .type = SL_CONF_STR, .at = AT(checkpoint.resume), .min = 1,
     .max = SL_JOB_DIR_MAX, .def = "\"auto\"",
     .help = "Go on from: auto (the newest in dir, if any), never, or a checkpoint's path."},

    {.key = "failure.max_restarts", .type = SL_CONF_INT, .at = AT(failure.max_restarts),
     .max = 1000, .def = "0", .help = "New attempts after a rank's death or a hang, from the last checkpoint."},
    {.key = "failure.hang_timeout", .type = SL_CONF_DURATION, .at = AT(failure.hang_timeout),
     .max = huge, .def = "300", .help = "How long a rank waits for its peers; 0: for ever."},
    {.key = "failure.grace", .type = SL_CONF_DURATION, .at = AT(failure.grace), .max = 86400,
     .def = "30", .help = "Time between the wish to stop and the kill."},
    {.key = "failure.on_nan", .type = SL_CONF_ENUM, .at = AT(failure.on_nan), .def = "\"stop\"",
     .words = on_nan,
     .help = "When loss or gradient is not finite: stop, or skip the step (ten in a row: stop)."},

    {.key = "notify.webhook", .type = SL_CONF_ABSENT,
     .why_not = "this version sends no notifications", .help = "Address to post events to."},
};

const struct sl_conf_opt *sl_job_keys(int *n)
{
    *n = (int)(sizeof keys / sizeof *keys);
    return keys;
}
