/* commit.c - from whole files to a checkpoint */
#include "executor/checkpoint/commit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/clock.h"
#include "common/fs.h"
#include "common/mem.h"
#include "executor/checkpoint/folder.h"
#include "executor/checkpoint/manifest.h"
#include "executor/checkpoint/shard_file.h"

static void *take(struct sl_ckpt_manifest *m, int64_t n, size_t size, struct sl_err *err)
{
    void *p = sl_arena_alloc(m->arena, n > 0 ? (size_t)n : 1, size);

    if (!p)
        sl_fail(err, SL_SYSTEM, "cannot hold the manifest: %s", strerror(errno));
    return p;
}

/* A rank's hashes into the manifest; the file that brought them goes. */
static int take_hashes(struct sl_ckpt_manifest *m, const char *part, int rank,
                       struct sl_ckpt_file *f, struct sl_err *err)
{
    char name[SL_CKPT_NAME], *path, *bytes;
    size_t n = 0, want = (size_t)f->chunks * sizeof *f->hash;
    uint64_t *hash = take(m, f->chunks, sizeof *hash, err);
    int rc = -1;

    sl_ckpt_shard_hashes_name(rank, name);
    path = hash ? sl_fs_absolute(part, name, err) : NULL;
    bytes = path ? sl_fs_read(path, want, &n, err) : NULL;
    if (bytes && n != want) {
        sl_fail(err, SL_BUG, "\"%s\" has %zu bytes, not %zu", path, n, want);
    } else if (bytes) {
        memcpy(hash, bytes, want);
        f->hash = hash;
        rc = unlink(path) ? sl_fail(err, SL_SYSTEM, "remove \"%s\": %s", path, strerror(errno)) : 0;
    }
    free(bytes);
    free(path);
    return rc;
}

/* Count first (r NULL), then fill. */
static void spread(const struct sl_ckpt_layout *l, int rank, struct sl_ckpt_tensor *t,
                   struct sl_ckpt_range **r)
{
    for (int i = 0; i < l->n; i++) {
        const struct sl_ckpt_piece *p = &l->v[i];
        int k = (int)p->kind, *n = &t[p->param].count[k];

        if (r)
            r[p->param * SL_CKPT_KINDS + k][*n]
                = (struct sl_ckpt_range){.file = rank, .off = p->off, .lo = p->lo, .n = p->n};
        ++*n;
    }
}

static int take_ranges(struct sl_ckpt_manifest *m, struct sl_ckpt_tensor *t,
                       const struct sl_ckpt_layout *l, int ranks, struct sl_err *err)
{
    struct sl_ckpt_range **r = take(m, (int64_t)m->ntensors * SL_CKPT_KINDS, sizeof *r, err);

    if (!r)
        return -1;
    for (int k = 0; k < ranks; k++)
        spread(&l[k], k, t, NULL);
    for (int i = 0; i < m->ntensors; i++)
        for (int k = 0; k < SL_CKPT_KINDS; k++) {
            r[i * SL_CKPT_KINDS + k] = take(m, t[i].count[k], sizeof **r, err);
            if (!r[i * SL_CKPT_KINDS + k])
                return -1;
            t[i].range[k] = r[i * SL_CKPT_KINDS + k];
            t[i].count[k] = 0;
        }
    for (int k = 0; k < ranks; k++)
        spread(&l[k], k, t, r);
    return 0;
}

static int fill(struct sl_ckpt_manifest *m, const struct sl_ckpt_layout *l,
                const struct sl_graph *g, const char *part, struct sl_err *err)
{
    struct sl_ckpt_file *f = take(m, m->nfiles, sizeof *f, err);
    struct sl_ckpt_tensor *t = f ? take(m, m->ntensors, sizeof *t, err) : NULL;

    if (!t)
        return -1;
    m->file = f;
    m->tensor = t;
    for (int k = 0; k < m->nfiles; k++) {
        sl_ckpt_shard_name(k, f[k].name);
        f[k].bytes = l[k].bytes;
        f[k].chunks = sl_ckpt_chunks(l[k].bytes);
        if (take_hashes(m, part, k, &f[k], err))
            return -1;
    }
    for (int i = 0; i < m->ntensors; i++) {
        snprintf(t[i].name, sizeof t[i].name, "%s", g->par[i].name);
        t[i].dim[0] = g->par[i].dim[0];
        t[i].dim[1] = g->par[i].dim[1];
        t[i].n = g->par[i].n;
    }
    return take_ranges(m, t, l, m->nfiles, err);
}

static int write_manifest(const struct sl_ckpt_manifest *m, const struct sl_job *job,
                          const char *part, struct sl_err *err)
{
    char *path = sl_fs_absolute(part, "manifest.json", err);
    size_t n;
    char *text = path ? sl_ckpt_manifest_text(m, job, &n, err) : NULL;
    int rc = text ? sl_fs_write_atomic(path, text, n, 0644, err) : -1;

    free(text);
    free(path);
    return rc;
}

static int describe(struct sl_ckpt_manifest *m, const struct sl_program *p, const char *part,
                    int64_t *bytes, struct sl_err *err)
{
    struct sl_ckpt_layout *l = sl_calloc((size_t)p->ranks, sizeof *l);
    int made = 0, rc = -1;

    if (!l)
        return sl_fail(err, SL_SYSTEM, "cannot hold the manifest: %s", strerror(errno));
    while (made < p->ranks && !sl_ckpt_layout_init(&l[made], p->train, made, err))
        made++;
    if (made == p->ranks)
        rc = fill(m, l, p->train, part, err);
    *bytes = 0;
    while (made-- > 0) {
        *bytes += l[made].bytes;
        sl_ckpt_layout_fini(&l[made]);
    }
    free(l);
    return rc;
}

int sl_ckpt_commit(const struct sl_ckpt_conf *conf, const struct sl_job *job,
                   const struct sl_program *program, const struct sl_ckpt_at *at,
                   int64_t *bytes, char pruned[256], struct sl_err *err)
{
    struct sl_ckpt_manifest m = {
        .step = at->step,
        .skipped = at->skipped,
        .bad_row = at->bad_row,
        .steps = conf->steps,
        .seed = (int64_t)job->train.seed,
        .batch = job->train.batch,
        .samples = conf->samples,
        .position = at->step * job->train.batch,
        .job = conf->job,
        .ranks = program->ranks,
        .time = sl_clock_real(),
        .program = SL_VERSION,
        .strategy = sl_strategy_name(program->strategy),
        .precision = sl_precision_name(program->precision),
        .text = conf->text,
        .nfiles = program->ranks,
        .ntensors = program->train->npar,
        .arena = sl_arena_create(0, err),
    };
    struct sl_err e = {0};
    char part[SL_CKPT_PATH];
    int rc = -1;

    pruned[0] = '\0';
    if (m.arena && !sl_ckpt_part_path(conf->dir, at->step, part, err)
        && !describe(&m, program, part, bytes, err) && !write_manifest(&m, job, part, err)
        && !sl_ckpt_publish(conf->dir, at->step, err))
        rc = 0;
    sl_arena_destroy(m.arena);
    if (!rc && sl_ckpt_prune(conf->dir, job->checkpoint.keep, &e))
        snprintf(pruned, 256, "%.255s", e.msg);
    return rc;
}
