#ifndef SL_TOKENS_H
#define SL_TOKENS_H

/*
 * tokens.h - files of uint16 tokens: ours with a header, or a bare array as nanoGPT's `.bin`
 *
 * Ours, little endian: 64 bytes of header, then `count` uint16.
 *
 *     0  8  magic "SLTOKENS"
 *     8  4  version, 1
 *    12  4  vocab_size: every token is below it
 *    16  8  count
 *    24  8  XXH64 (seed 0) of the tokens' bytes
 *    32  4  tokenizer: 0 byte, 1 word, 2 unknown
 *    36  4  zero
 *    40  8  XXH64 of the vocabulary file beside it, 0 when there is none
 *    48  16 zero
 *
 * A file without the magic is read as tokens from its first byte.
 */

#include <stdint.h>

#include "common/err.h"
#include "executor/data/text.h"

enum { SL_TOKENS_MAX_VOCAB = 65536 };

struct sl_tokens {
    const uint16_t *v;         /* lent: lives until close */
    int64_t count;             /* at least 1 */
    int64_t vocab_size;        /* of the header; 0 for a bare array */
    int tokenizer;             /* enum sl_tokenizer_kind; SL_TOK_UINT16 when unknown */
    uint64_t hash, vocab_hash; /* of the header; 0 for a bare array */
    struct sl_text map;
};

/*
 * Map a token file. Its header and length are checked, its tokens are not. SL_USAGE: missing,
 * empty, a bare array of odd length, a header that does not fit the length, another version.
 */
int sl_tokens_open(struct sl_tokens *tok, const char *path, struct sl_err *err);
void sl_tokens_close(struct sl_tokens *tok);

/* SL_USAGE: a file that is to be read as text is one of ours; its tokens would be taken for text. */
int sl_tokens_refuse(const struct sl_text *file, const char *path, struct sl_err *err);

int sl_tokens_refuse(const struct sl_text *file, const char *path, struct sl_err *err);

/*
 * Read every token: each below vocab_size, and the bytes as the header's hash says. SL_USAGE names
 * the first wrong token and its position (tokens from 0).
 */
int sl_tokens_check(const struct sl_tokens *tok, int64_t vocab_size, const char *path,
                    struct sl_err *err);

/* Tokens of the training part when the last floor(fraction * count) are for validation. */
int64_t sl_tokens_cut(int64_t count, double fraction);

/*
 * Write a file of ours bit by bit. It appears under its name with commit, complete and synced, or
 * not at all: until then it is a temporary file beside it, which abort removes. SL_SYSTEM: the
 * folder cannot be written or the disk is full. SL_USAGE: a token is not below vocab_size.
 */
struct sl_tokens_writer; /* opaque */

struct sl_tokens_writer *sl_tokens_writer_open(const char *path, int64_t vocab_size, int tokenizer,
                                               uint64_t vocab_hash, struct sl_err *err);
int sl_tokens_writer_put(void *writer, const uint16_t *v, int64_t n, struct sl_err *err);
int sl_tokens_writer_commit(struct sl_tokens_writer *w, struct sl_err *err); /* frees w always */
void sl_tokens_writer_abort(struct sl_tokens_writer *w); /* frees w; NULL is fine */

#endif
