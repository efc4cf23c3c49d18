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
 *    36  28 zero
 *
 * A file without the magic is read as tokens from its first byte.
 */

#include <stdint.h>

#include "common/err.h"
#include "executor/data/text.h"

enum { SL_TOKENS_MAX_VOCAB = 65536 };

struct sl_tokens {
    const uint16_t *v; /* lent: lives until close */
    int64_t count;     /* at least 1 */
    int64_t vocab_size; /* of the header; 0 for a bare array */
    int tokenizer;     /* enum sl_tokenizer_kind; SL_TOK_UINT16 when unknown */
    uint64_t hash;     /* of the header; 0 for a bare array */
    struct sl_text map;
};

/*
 * Map a token file. Its header and length are checked, its tokens are not. SL_USAGE: missing,
 * empty, a bare array of odd length, a header that does not fit the length, another version.
 */
int sl_tokens_open(struct sl_tokens *tok, const char *path, struct sl_err *err);
void sl_tokens_close(struct sl_tokens *tok);

/*
 * Read every token: each below vocab_size, and the bytes as the header's hash says. SL_USAGE names
 * the first wrong token and its position (tokens from 0).
 */
int sl_tokens_check(const struct sl_tokens *tok, int64_t vocab_size, const char *path,
                    struct sl_err *err);

/*
 * Write a file of ours: complete under its name, or not at all (temporary file, fsync, rename).
 * SL_SYSTEM: the folder cannot be written or the disk is full.
 */
int sl_tokens_write(const char *path, const uint16_t *v, int64_t count, int64_t vocab_size,
                    int tokenizer, struct sl_err *err);

#endif
