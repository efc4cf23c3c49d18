#ifndef SL_TOKENIZER_H
#define SL_TOKENIZER_H

/*
 * tokenizer.h - text to tokens and back
 *
 * byte: a token is a byte, vocabulary 256; any file will do.
 * word: words are what white space (ASCII) separates, each line ends in "<eos>", also a last one
 *       without a newline. Token 0 is "<unk>", 1 is "<eos>", then the most frequent words of the
 *       training text, ties in the order of their bytes, vocab_size in all or as many as there are.
 *       (The language model of WikiText, arXiv 1609.07843, and of fairscale's benchmarks.)
 *       The words "<unk>" and "<eos>" in a text are these tokens.
 */

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "executor/data/text.h"
#include "executor/job.h"

enum { SL_TOKEN_UNK = 0, SL_TOKEN_EOS = 1 }; /* of the word tokenizer */

struct sl_tokenizer; /* opaque */

struct sl_tokenizer *sl_tokenizer_create_byte(struct sl_err *err); /* caller destroys */

/*
 * The vocabulary of a text's training part, its first sl_tokens_cut(all, valid_fraction) tokens.
 * SL_USAGE: vocab_size outside 3..65536. The text must be valid UTF-8 and outlive the call only.
 */
struct sl_tokenizer *sl_tokenizer_create_word(const struct sl_text *text, int64_t vocab_size,
                                              double valid_fraction, struct sl_err *err);

/*
 * Vocabulary files of the word tokenizer: one word a line, line number (from 0) = token. SL_USAGE:
 * the first two lines are not "<unk>" and "<eos>", a line is empty, holds white space or comes
 * twice.
 */
struct sl_tokenizer *sl_tokenizer_load(const char *path, struct sl_err *err);
int sl_tokenizer_save(const struct sl_tokenizer *t, const char *path, struct sl_err *err);

void sl_tokenizer_destroy(struct sl_tokenizer *t); /* NULL is fine */

int64_t sl_tokenizer_size(const struct sl_tokenizer *t); /* words; at most what was asked for */
enum sl_tokenizer_kind sl_tokenizer_kind(const struct sl_tokenizer *t); /* byte or word */

/* Takes the next n tokens, at most a few thousand; -1 ends the work with *err. */
typedef int sl_token_sink_f(void *arg, const uint16_t *v, int64_t n, struct sl_err *err);

/* All tokens of a text, in order, to a sink: memory does not grow with the text. */
int sl_tokenizer_encode(const struct sl_tokenizer *t, const struct sl_text *text,
                        sl_token_sink_f *sink, void *arg, struct sl_err *err);

/* How many tokens encode would give: it depends on the kind alone, not on the vocabulary. */
int64_t sl_tokenizer_count(enum sl_tokenizer_kind kind, const struct sl_text *text);

/* The bytes of one token, lent; NULL when it is not below the size. *n is their length. */
const char *sl_tokenizer_word(const struct sl_tokenizer *t, int64_t token, size_t *n);

#endif
