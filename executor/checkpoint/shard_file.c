/* shard_file.c - a rank's file: bytes to chunks, chunks to disk */
#include "executor/checkpoint/shard_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/fs.h"
#include "common/mem.h"
#include "executor/data/xxh64.h"

struct sink {
    const struct sl_ckpt_shard *s;
    int fd;
    int64_t fill, done; /* bytes in the buffer; chunks on their way to disk */
    uint64_t *hash;
};

void sl_ckpt_shard_name(int rank, char ret[SL_CKPT_NAME])
{
    snprintf(ret, SL_CKPT_NAME, "shard-%05d.safetensors", rank);
}

void sl_ckpt_shard_hashes_name(int rank, char ret[SL_CKPT_NAME])
{
    snprintf(ret, SL_CKPT_NAME, "shard-%05d.hashes", rank);
}

static int flush(struct sink *k, struct sl_err *err)
{
    if (!k->fill)
        return 0;
    if (atomic_load(k->s->quit))
        return sl_fail(err, SL_SYSTEM, "ended in the middle");
    k->hash[k->done] = sl_xxh64(k->s->buf, (size_t)k->fill);
    if (sl_fs_write_all(k->fd, k->s->buf, (size_t)k->fill, err))
        return -1;
    /* on its way now: the fsync at the end is short, and little of the page cache is dirty */
    (void)!sync_file_range(k->fd, k->done * SL_CKPT_CHUNK, k->fill, SYNC_FILE_RANGE_WRITE);
    k->done++;
    k->fill = 0;
    atomic_fetch_add(k->s->progress, 1);
    return 0;
}

static int put(struct sink *k, const void *data, int64_t n, struct sl_err *err)
{
    const char *p = data;

    while (n > 0) {
        int64_t room = SL_CKPT_CHUNK - k->fill, m = n < room ? n : room;

        memcpy(k->s->buf + k->fill, p, (size_t)m);
        k->fill += m;
        p += m;
        n -= m;
        if (k->fill == SL_CKPT_CHUNK && flush(k, err))
            return -1;
    }
    return 0;
}

/* bf16 without a master copy (frozen parameters): its fp32 has the same bits and 16 zeros. */
static int put_bf16(struct sink *k, const uint16_t *x, int64_t n, struct sl_err *err)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)x[i] << 16;

        if (put(k, &bits, sizeof bits, err))
            return -1;
    }
    return 0;
}

static int put_all(struct sink *k, struct sl_err *err)
{
    const struct sl_ckpt_layout *l = k->s->layout;

    if (put(k, l->head.p, (int64_t)l->head.len, err))
        return -1;
    for (int i = 0; i < l->n; i++) {
        const struct sl_ckpt_piece *p = &l->v[i];
        int bf16 = k->s->g->t[p->tensor].type == SL_BF16;

        if (bf16 ? put_bf16(k, (const uint16_t *)(void *)k->s->base[i], p->n, err)
                 : put(k, k->s->base[i], 4 * p->n, err))
            return -1;
    }
    return flush(k, err);
}

static int to_disk(int fd, struct sl_err *err)
{
    return fsync(fd) ? sl_fail(err, SL_SYSTEM, "%s", strerror(errno)) : 0;
}

static int write_hashes(const struct sink *k, const char *folder, int rank, struct sl_err *err)
{
    char name[SL_CKPT_NAME], *path;
    int rc;

    sl_ckpt_shard_hashes_name(rank, name);
    path = sl_fs_absolute(folder, name, err);
    if (!path)
        return -1;
    rc = sl_fs_write_atomic(path, k->hash, (size_t)k->done * sizeof *k->hash, 0644, err);
    free(path);
    return rc;
}

int sl_ckpt_shard_write(const struct sl_ckpt_shard *s, const char *folder, int rank,
                        struct sl_err *err)
{
    struct sink k = {.s = s, .fd = -1};
    char name[SL_CKPT_NAME], *path;
    int rc = -1;

    sl_ckpt_shard_name(rank, name);
    path = sl_fs_absolute(folder, name, err);
    k.hash = path ? sl_calloc((size_t)sl_ckpt_chunks(s->layout->bytes), sizeof *k.hash) : NULL;
    if (!k.hash) {
        if (path)
            sl_fail(err, SL_SYSTEM, "no memory for the hashes");
        goto end;
    }
    k.fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (k.fd < 0)
        sl_fail(err, SL_SYSTEM, "%s", strerror(errno));
    else
        rc = put_all(&k, err);
    s->read(s->user);
    if (!rc)
        rc = to_disk(k.fd, err);
    if (k.fd >= 0 && close(k.fd) && !rc)
        rc = sl_fail(err, SL_SYSTEM, "%s", strerror(errno));
    if (rc)
        sl_within(err, "write \"%s\"", path);
    else
        rc = write_hashes(&k, folder, rank, err);
end:
    free(path);
    free(k.hash);
    return rc;
}
