#ifndef SL_CKPT_READER_H
#define SL_CKPT_READER_H

/*
 * reader.h - elements of tensors out of a checkpoint, whatever files they lie in
 *
 * Reads whole chunks and compares each with its hash before a byte of it is used; one chunk is kept,
 * for small tensors lie side by side. Holds a chunk's memory and one descriptor. One thread.
 */

#include "executor/checkpoint/manifest.h"

struct sl_ckpt_reader; /* opaque */

/* Reads the manifest. SL_USAGE: damaged; SL_SYSTEM: cannot be read. */
struct sl_ckpt_reader *sl_ckpt_reader_open(const char *checkpoint, struct sl_err *err);
void sl_ckpt_reader_close(struct sl_ckpt_reader *r); /* NULL is fine */

const struct sl_ckpt_manifest *sl_ckpt_reader_manifest(const struct sl_ckpt_reader *r);
int sl_ckpt_reader_files(const struct sl_ckpt_reader *r);

/* The same tensors in the same shapes, with moments where the graph has any. SL_USAGE: not so. */
int sl_ckpt_reader_check(const struct sl_ckpt_reader *r, const struct sl_graph *train,
                         struct sl_err *err);

/* Verify the chunks of file f's own header, and that it is a safetensors header. */
int sl_ckpt_reader_header(struct sl_ckpt_reader *r, int f, struct sl_err *err);

/* Verify every chunk of file f. */
int sl_ckpt_reader_verify(struct sl_ckpt_reader *r, int f, struct sl_err *err);

/* Elements lo..lo+n-1. SL_USAGE: a chunk differs from its hash (file and place named). */
int sl_ckpt_reader_get(struct sl_ckpt_reader *r, const char *tensor, enum sl_ckpt_kind kind,
                       int64_t lo, int64_t n, float *to, struct sl_err *err);

#endif
