/* reader.c - verified reads of a checkpoint's files */
#include "executor/checkpoint/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/fs.h"
#include "common/mem.h"
#include "executor/checkpoint/safetensors.h"
#include "executor/data/xxh64.h"

struct sl_ckpt_reader {
    struct sl_ckpt_manifest *m;
    char *folder;
    int file, fd;  /* open now, -1 */
    int64_t chunk; /* of that file, in `bytes`; -1: none */
    unsigned char *bytes;
    const struct sl_ckpt_tensor *last; /* found before: units are read in order */
};

struct sl_ckpt_reader *sl_ckpt_reader_open(const char *checkpoint, struct sl_err *err)
{
    struct sl_ckpt_reader *r = sl_calloc(1, sizeof *r);

    if (!r) {
        sl_fail(err, SL_SYSTEM, "cannot hold a checkpoint: %s", strerror(errno));
        return NULL;
    }
    r->file = r->fd = -1;
    r->chunk = -1;
    r->m = sl_ckpt_manifest_read(checkpoint, err);
    if (!r->m || sl_ckpt_manifest_files(r->m, checkpoint, err))
        goto fail;
    r->folder = sl_strdup(checkpoint);
    r->bytes = sl_calloc(SL_CKPT_CHUNK, 1);
    if (r->folder && r->bytes)
        return r;
    sl_fail(err, SL_SYSTEM, "cannot hold a checkpoint: %s", strerror(errno));
fail:
    sl_ckpt_reader_close(r);
    return NULL;
}

void sl_ckpt_reader_close(struct sl_ckpt_reader *r)
{
    if (!r)
        return;
    if (r->fd >= 0)
        close(r->fd);
    sl_ckpt_manifest_destroy(r->m);
    free(r->folder);
    free(r->bytes);
    free(r);
}

const struct sl_ckpt_manifest *sl_ckpt_reader_manifest(const struct sl_ckpt_reader *r)
{
    return r->m;
}

int sl_ckpt_reader_files(const struct sl_ckpt_reader *r)
{
    return r->m->nfiles;
}

static int within(const struct sl_ckpt_reader *r, int f, struct sl_err *err)
{
    return sl_within(err, "\"%s/%s\"", r->folder, r->m->file[f].name);
}

static int open_file(struct sl_ckpt_reader *r, int f, struct sl_err *err)
{
    char *path;

    if (r->file == f)
        return 0;
    if (r->fd >= 0)
        close(r->fd);
    r->file = r->fd = -1;
    r->chunk = -1;
    path = sl_fs_absolute(r->folder, r->m->file[f].name, err);
    if (!path)
        return -1;
    r->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    free(path);
    if (r->fd < 0) {
        sl_fail(err, SL_SYSTEM, "%s", strerror(errno));
        return within(r, f, err);
    }
    r->file = f;
    return 0;
}

static int read_whole(int fd, unsigned char *to, int64_t n, int64_t at, struct sl_err *err)
{
    while (n > 0) {
        ssize_t k = pread(fd, to, (size_t)n, at);

        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return sl_fail(err, SL_SYSTEM, "%s", strerror(errno));
        if (!k)
            return sl_fail(err, SL_USAGE, "it ends at byte %" PRId64, at);
        to += k;
        n -= k;
        at += k;
    }
    return 0;
}

static int64_t chunk_bytes(const struct sl_ckpt_reader *r, int f, int64_t c)
{
    int64_t left = r->m->file[f].bytes - c * SL_CKPT_CHUNK;

    return left < SL_CKPT_CHUNK ? left : SL_CKPT_CHUNK;
}

/* Chunk c of file f into r->bytes, verified. */
static int take(struct sl_ckpt_reader *r, int f, int64_t c, struct sl_err *err)
{
    const struct sl_ckpt_file *it = &r->m->file[f];
    int64_t n = chunk_bytes(r, f, c);
    uint64_t hash;

    if (open_file(r, f, err))
        return -1;
    if (r->chunk == c)
        return 0;
    r->chunk = -1;
    if (read_whole(r->fd, r->bytes, n, c * SL_CKPT_CHUNK, err))
        return within(r, f, err);
    hash = sl_xxh64(r->bytes, (size_t)n);
    if (hash != it->hash[c]) {
        sl_fail(err, SL_USAGE,
                "damaged: bytes %" PRId64 " to %" PRId64 " are not those that were written",
                c * SL_CKPT_CHUNK, c * SL_CKPT_CHUNK + n - 1);
        return within(r, f, err);
    }
    r->chunk = c;
    return 0;
}

int sl_ckpt_reader_verify(struct sl_ckpt_reader *r, int f, struct sl_err *err)
{
    for (int64_t c = 0; c < r->m->file[f].chunks; c++)
        if (take(r, f, c, err))
            return -1;
    return 0;
}

int sl_ckpt_reader_header(struct sl_ckpt_reader *r, int f, struct sl_err *err)
{
    struct sl_safetensors *s;
    int64_t n;

    if (take(r, f, 0, err))
        return -1;
    n = sl_safetensors_length(r->bytes, r->m->file[f].bytes, err);
    if (n < 0)
        return within(r, f, err);
    for (int64_t c = 0; c * SL_CKPT_CHUNK < n; c++)
        if (take(r, f, c, err))
            return -1;
    s = sl_safetensors_read(r->fd, err);
    if (!s)
        return within(r, f, err);
    sl_safetensors_destroy(s);
    return 0;
}

static int get_range(struct sl_ckpt_reader *r, const struct sl_ckpt_range *p, int64_t lo, int64_t n,
                     char *to, struct sl_err *err)
{
    int64_t at = p->off + 4 * (lo - p->lo), left = 4 * n;

    while (left > 0) {
        int64_t c = at / SL_CKPT_CHUNK, inside = at % SL_CKPT_CHUNK;
        int64_t k = chunk_bytes(r, p->file, c) - inside;

        if (k > left)
            k = left;
        if (take(r, p->file, c, err))
            return -1;
        memcpy(to, r->bytes + inside, (size_t)k);
        to += k;
        at += k;
        left -= k;
    }
    return 0;
}

int sl_ckpt_reader_get(struct sl_ckpt_reader *r, const char *tensor, enum sl_ckpt_kind kind,
                       int64_t lo, int64_t n, float *to, struct sl_err *err)
{
    const struct sl_ckpt_tensor *t = r->last;
    int64_t hi = lo + n;

    if (!t || strcmp(t->name, tensor))
        t = r->last = sl_ckpt_manifest_find(r->m, tensor);
    if (!t || lo < 0 || n < 0 || hi > t->n || !t->count[kind])
        return sl_fail(err, SL_USAGE, "it has no %s of \"%s\", elements %" PRId64 " to %" PRId64,
                       sl_ckpt_kind_names[kind], tensor, lo, hi - 1);
    for (int i = 0; i < t->count[kind]; i++) {
        const struct sl_ckpt_range *p = &t->range[kind][i];
        int64_t a = p->lo > lo ? p->lo : lo, b = p->lo + p->n < hi ? p->lo + p->n : hi;

        if (a < b && get_range(r, p, a, b - a, (char *)(to + (a - lo)), err))
            return -1;
    }
    return 0;
}

int sl_ckpt_reader_check(const struct sl_ckpt_reader *r, const struct sl_graph *train,
                         struct sl_err *err)
{
    if (r->m->ntensors != train->npar)
        return sl_fail(err, SL_USAGE, "it has %d tensors, the model has %d", r->m->ntensors,
                       train->npar);
    for (int i = 0; i < train->npar; i++) {
        const struct sl_param *p = &train->par[i];
        const struct sl_ckpt_tensor *t = sl_ckpt_manifest_find(r->m, p->name);
        int64_t d1 = p->dim[1], d0 = p->dim[0];

        if (!t)
            return sl_fail(err, SL_USAGE, "it has no tensor \"%s\"", p->name);
        if (t->dim[0] != d0 || t->dim[1] != d1)
            return sl_fail(err, SL_USAGE,
                           "tensor \"%s\" is [%" PRId64 ", %" PRId64 "], the model's [%" PRId64
                           ", %" PRId64 "]",
                           p->name, t->dim[0], t->dim[1], d0, d1);
        if (train->unit[p->unit].m >= 0 && (!t->count[SL_CKPT_M] || !t->count[SL_CKPT_V]))
            return sl_fail(err, SL_USAGE, "it has no moments of tensor \"%s\"", p->name);
    }
    return 0;
}
