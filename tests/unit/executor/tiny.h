#ifndef SL_TEST_TINY_H
#define SL_TEST_TINY_H

/* tiny.h - a small GPT job whose sizes divide by nothing, and its units' sizes by hand */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "executor/graph/memplan.h"
#include "executor/graph/ops.h"
#include "executor/program.h"

static inline struct sl_job tiny_job(void)
{
    return (struct sl_job){
        .name = "tiny",
        .model = {.kind = "gpt",
                  .layers = 3,
                  .heads = 3,
                  .width = 39,
                  .ffn_width = 101,
                  .context = 9,
                  .dropout = 0.1,
                  .tie_embeddings = 1},
        .data = {.tokenizer = SL_TOK_WORD, .vocab_size = 211},
        .train = {.strategy = SL_ZERO2, .batch = 4032, .micro_batch = 3, .seed = 42},
    };
}

static inline int64_t line(int64_t n) /* every parameter starts on a line of 16 elements */
{
    return (n + 15) / 16 * 16;
}

/* Elements of the embedding's, a block's and the head's flat buffer, from the architecture. */
static inline int64_t embedding_n(const struct sl_job *j)
{
    return line(j->data.vocab_size * j->model.width) + line(j->model.context * j->model.width);
}

static inline int64_t block_n(const struct sl_job *j)
{
    int64_t w = j->model.width, f = j->model.ffn_width;

    return line(3 * w * w) + line(3 * w) + line(w * w) + line(w) + line(f * w) + line(f)
           + line(w * f) + 5 * line(w); /* ln_1, ln_2: two each; mlp.c_proj.bias */
}

static inline int64_t head_n(const struct sl_job *j)
{
    int64_t n = 2 * line(j->model.width);

    return j->model.tie_embeddings ? n : n + line(j->data.vocab_size * j->model.width);
}

/* One shard: whole cache lines of 64 bytes, 16 elements of fp32 or 32 of bf16. */
static inline int64_t cut(const struct sl_job *j, int64_t n, int ranks)
{
    int64_t grain = j->train.precision == SL_BF16_MIXED ? 32 : 16;

    return ((n + ranks - 1) / ranks + grain - 1) / grain * grain;
}

static inline struct sl_program *make(const struct sl_job *j, int ranks, enum sl_strategy s,
                                      int flags)
{
    struct sl_err err = {0};
    struct sl_program *p = sl_program_make(j, ranks, s, 1, flags, &err);

    if (!p)
        fail_msg("%s (%s)", err.msg, err.hint);
    return p;
}

static inline int count(const struct sl_graph *g, enum sl_kind kind)
{
    int n = 0;

    for (int i = 0; i < g->nops; i++)
        n += g->ops[i].kind == kind;
    return n;
}

#endif
