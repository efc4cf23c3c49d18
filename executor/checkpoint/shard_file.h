#ifndef SL_CKPT_SHARD_FILE_H
#define SL_CKPT_SHARD_FILE_H

/*
 * shard_file.h - one rank's file of a checkpoint: streamed from the arena through one chunk's buffer
 *
 * "shard-00003.safetensors", and beside it, until the manifest holds them, its chunks' hashes in
 * "shard-00003.hashes" (8 bytes each, this machine's order). Both are on disk when it returns.
 */

#include <stdatomic.h>

#include "executor/checkpoint/layout.h"
#include "executor/checkpoint/manifest.h"

struct sl_ckpt_shard {
    const struct sl_ckpt_layout *layout;
    const struct sl_graph *g;
    char *const *base; /* by piece: where its first element lies */
    unsigned char *buf; /* [SL_CKPT_CHUNK] */
    _Atomic uint64_t *progress; /* goes up with every chunk */
    _Atomic int *quit;          /* not 0: give up */
    void (*read)(void *user);   /* the arena has been read to its end; the disk may lag behind */
    void *user;
};

void sl_ckpt_shard_name(int rank, char ret[SL_CKPT_NAME]);
void sl_ckpt_shard_hashes_name(int rank, char ret[SL_CKPT_NAME]);

/* SL_SYSTEM: the disk refuses (the file is named), or it was told to quit. */
int sl_ckpt_shard_write(const struct sl_ckpt_shard *s, const char *folder, int rank,
                        struct sl_err *err);

#endif
