#ifndef SL_SAFETENSORS_H
#define SL_SAFETENSORS_H

/*
 * safetensors.h - the header of a safetensors file: written piece by piece, read from any bytes
 *
 * A file is 8 bytes of length (little endian), that many bytes of JSON, then the data; offsets count
 * from the data's first byte. Written headers are padded with spaces so that data begins at a
 * multiple of 64. The reader believes nothing: it takes tensors whose places follow each other
 * without hole or overlap and end where the file ends, whose size is that of shape and type, and
 * refuses everything else with SL_USAGE.
 *
 * Source: the safetensors format, version 0.4 (its README).
 */

#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/err.h"
#include "kernels/dtype.h"

enum {
    SL_SAFETENSORS_HEADER = 64 << 20, /* bytes of JSON that are read at most */
    SL_SAFETENSORS_DIMS = 8,
};

struct sl_safetensors_entry {
    const char *name;
    enum sl_dtype type; /* SL_F32 or SL_BF16 */
    int dims;
    int64_t shape[SL_SAFETENSORS_DIMS];
    int64_t begin, end; /* bytes from the file's start */
};

/* ---- writing: begin, add each in the order of the data, end ---- */

struct sl_safetensors_writer {
    struct sl_buf *out; /* the header grows here */
    int64_t data;       /* bytes of data described so far */
};

void sl_safetensors_begin(struct sl_safetensors_writer *w, struct sl_buf *out);
/* `begin` and `end` of the entry are not read: data lies one behind the other. */
void sl_safetensors_add(struct sl_safetensors_writer *w, const struct sl_safetensors_entry *e);
/* The buffer then holds length and JSON, padded. Errors stick in it. */
void sl_safetensors_end(struct sl_safetensors_writer *w);

/* ---- reading ---- */

struct sl_safetensors; /* opaque */

/* The length of the header with its 8 bytes, from the first 8; -1 (SL_USAGE): not one. */
int64_t sl_safetensors_length(const unsigned char first[8], int64_t file_bytes, struct sl_err *err);

/* `head`: that many bytes. Caller destroys. SL_USAGE: not a safetensors file of this kind. */
struct sl_safetensors *sl_safetensors_parse(const void *head, size_t n, int64_t file_bytes,
                                            struct sl_err *err);
/* The same from an open file, which must be named in the error by the caller. */
struct sl_safetensors *sl_safetensors_read(int fd, struct sl_err *err);
void sl_safetensors_destroy(struct sl_safetensors *s); /* NULL is fine */

int sl_safetensors_count(const struct sl_safetensors *s);
const struct sl_safetensors_entry *sl_safetensors_at(const struct sl_safetensors *s, int i);
const struct sl_safetensors_entry *sl_safetensors_find(const struct sl_safetensors *s,
                                                       const char *name); /* or NULL */

#endif
