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
 * The vocabulary of a text's first words: all but the last floor(fraction * tokens) tokens, which
 * are the validation part. SL_USAGE: vocab_size outside 3..65536. The text must be valid UTF-8.
 */
struct sl_tokenizer *sl_tokenizer_create_word(const struct sl_text *text, int64_t vocab_size,
                                              double valid_fraction, struct sl_err *err);

/* Vocabulary files: one word a line, line number (from 0) = token; no header. */
struct sl_tokenizer *sl_tokenizer_load(const char *path, struct sl_err *err);
int sl_tokenizer_save(const struct sl_tokenizer *t, const char *path, struct sl_err *err);

void sl_tokenizer_destroy(struct sl_tokenizer *t); /* NULL is fine */

/* Words in the vocabulary, at most what was asked for. */
int64_t sl_tokenizer_size(const struct sl_tokenizer *t);

/* All tokens of a text; caller frees *ret. */
int sl_tokenizer_encode(const struct sl_tokenizer *t, const struct sl_text *text, uint16_t **ret,
                        int64_t *count, struct sl_err *err);

/* The bytes of one token, lent; NULL when it is not below the size. *n is their length. */
const char *sl_tokenizer_word(const struct sl_tokenizer *t, int64_t token, size_t *n);

#endif
