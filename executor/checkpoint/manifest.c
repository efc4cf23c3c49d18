/* manifest.c - manifest.json: text and back */
#include "executor/checkpoint/manifest.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/arena.h"
#include "common/fs.h"
#include "common/json.h"
#include "common/mem.h"
#include "executor/data/xxh64.h"
#include "executor/run.h"

#define HEAD "{\"format\":\"shardlaunch-checkpoint\",\"version\":"
#define HASH ",\"xxh64\":\""
static const char zeros[] = "0000000000000000";
enum { DIGITS = 16, MOST_RANKS = 65536 };

/* ---- writing ---- */

static void put_schedule(struct sl_json *j, const struct sl_job *job)
{
    static const char *const names[] = {"constant", "linear", "cosine"};

    sl_json_key(j, "schedule");
    sl_json_object(j);
    sl_json_put_str(j, "kind", names[job->train.schedule]);
    sl_json_put_real(j, "lr", job->train.lr);
    sl_json_put_real(j, "min_lr", job->train.min_lr);
    sl_json_put_int(j, "warmup", job->train.warmup);
    sl_json_end(j);
}

static void put_model(struct sl_json *j, const struct sl_job *job)
{
    const struct sl_model_spec *s = &job->model;

    sl_json_key(j, "model");
    sl_json_object(j);
    sl_json_put_str(j, "kind", s->kind);
    sl_json_put_int(j, "layers", s->layers);
    sl_json_put_int(j, "heads", s->heads);
    sl_json_put_int(j, "width", s->width);
    sl_json_put_int(j, "ffn_width", s->ffn_width);
    sl_json_put_int(j, "context", s->context);
    sl_json_put_int(j, "vocabulary", job->data.vocab_size);
    sl_json_put_bool(j, "tie_embeddings", s->tie_embeddings);
    sl_json_end(j);
}

static void put_file(struct sl_json *j, const struct sl_ckpt_file *f)
{
    sl_json_object(j);
    sl_json_put_str(j, "name", f->name);
    sl_json_put_int(j, "bytes", f->bytes);
    sl_json_key(j, "chunks");
    sl_json_array(j);
    for (int64_t i = 0; i < f->chunks; i++) {
        char hex[DIGITS + 1];

        snprintf(hex, sizeof hex, "%016" PRIx64, f->hash[i]);
        sl_json_str(j, hex);
    }
    sl_json_end(j);
    sl_json_end(j);
}

static void put_tensor(struct sl_json *j, const struct sl_ckpt_tensor *t)
{
    sl_json_object(j);
    sl_json_put_str(j, "name", t->name);
    sl_json_key(j, "shape");
    sl_json_array(j);
    sl_json_int(j, t->dim[0]);
    if (t->dim[1])
        sl_json_int(j, t->dim[1]);
    sl_json_end(j);
    for (int k = 0; k < SL_CKPT_KINDS; k++) {
        sl_json_key(j, sl_ckpt_kind_names[k]);
        sl_json_array(j);
        for (int i = 0; i < t->count[k]; i++) {
            const struct sl_ckpt_range *r = &t->range[k][i];

            sl_json_array(j);
            sl_json_int(j, r->file);
            sl_json_int(j, r->off);
            sl_json_int(j, r->lo);
            sl_json_int(j, r->n);
            sl_json_end(j);
        }
        sl_json_end(j);
    }
    sl_json_end(j);
}

static void put_all(struct sl_json *j, const struct sl_ckpt_manifest *m, const struct sl_job *job)
{
    sl_json_object(j);
    sl_json_put_str(j, "program", m->program);
    sl_json_put_real(j, "time", m->time);
    sl_json_put_int(j, "job_id", m->job);
    sl_json_put_int(j, "step", m->step);
    sl_json_put_int(j, "steps", m->steps);
    sl_json_put_int(j, "seed", m->seed);
    sl_json_put_int(j, "batch", m->batch);
    sl_json_put_int(j, "position", m->position);
    sl_json_put_int(j, "skipped", m->skipped);
    sl_json_put_int(j, "bad_row", m->bad_row);
    sl_json_put_int(j, "train_samples", m->samples);
    sl_json_put_int(j, "ranks", m->ranks);
    sl_json_put_str(j, "strategy", m->strategy);
    sl_json_put_str(j, "precision", m->precision);
    put_schedule(j, job);
    put_model(j, job);
    sl_json_put_str(j, "job", m->text);
    sl_json_put_int(j, "chunk_bytes", SL_CKPT_CHUNK);
    sl_json_key(j, "files");
    sl_json_array(j);
    for (int i = 0; i < m->nfiles; i++)
        put_file(j, &m->file[i]);
    sl_json_end(j);
    sl_json_key(j, "tensors");
    sl_json_array(j);
    for (int i = 0; i < m->ntensors; i++)
        put_tensor(j, &m->tensor[i]);
    sl_json_end(j);
    sl_json_end(j);
}

/* Where the hash's digits begin: HEAD, the version, HASH. */
static size_t digits_at(const char *version)
{
    return strlen(HEAD) + strlen(version) + strlen(HASH);
}

char *sl_ckpt_manifest_text(const struct sl_ckpt_manifest *m, const struct sl_job *job, size_t *n,
                            struct sl_err *err)
{
    char version[16], hex[DIGITS + 1], *text;
    struct sl_json j;
    struct sl_buf b;

    snprintf(version, sizeof version, "%d", SL_CKPT_VERSION);
    sl_buf_init(&b, SL_CKPT_MANIFEST_BYTES);
    sl_json_init(&j, &b);
    put_all(&j, m, job);
    sl_buf_str(&b, "\n");
    if (sl_buf_check(&b, err)) {
        sl_buf_fini(&b);
        return NULL;
    }
    *n = digits_at(version) + DIGITS + 2 + b.len - 1;
    text = sl_calloc(*n + 1, 1);
    if (!text) {
        sl_fail(err, SL_SYSTEM, "cannot hold the manifest: %s", strerror(errno));
        sl_buf_fini(&b);
        return NULL;
    }
    /* the writer's object, whose "{" gives way to the fixed beginning */
    snprintf(text, *n + 1, "%s%s%s%s\",%s", HEAD, version, HASH, zeros, b.p + 1);
    sl_buf_fini(&b);
    snprintf(hex, sizeof hex, "%016" PRIx64, sl_xxh64(text, *n));
    memcpy(text + digits_at(version), hex, DIGITS);
    return text;
}

/* ---- reading ---- */

void sl_ckpt_manifest_destroy(struct sl_ckpt_manifest *m)
{
    if (!m)
        return;
    sl_arena_destroy(m->arena);
    free(m);
}

/* Beginning, version and hash of the bytes. */
static int check_text(const char *text, size_t n, struct sl_err *err)
{
    size_t head = strlen(HEAD), at;
    struct sl_xxh64 h;
    char hex[DIGITS + 1];
    int64_t version = 0;

    if (n < head || memcmp(text, HEAD, head))
        return sl_fail(err, SL_USAGE, "damaged, or no manifest of a checkpoint");
    for (at = head; at < n && text[at] >= '0' && text[at] <= '9' && version < 1000000; at++)
        version = 10 * version + text[at] - '0';
    if (version != SL_CKPT_VERSION) {
        sl_fail(err, SL_USAGE, "format version %" PRId64 "; this program reads version %d", version,
                SL_CKPT_VERSION);
        return sl_hint(err, "Use the version of shardlaunch that has written it, or a later one.");
    }
    if (n - at < strlen(HASH) + DIGITS || memcmp(text + at, HASH, strlen(HASH)))
        return sl_fail(err, SL_USAGE, "damaged: its beginning is not that of a manifest");
    at += strlen(HASH);
    sl_xxh64_start(&h);
    sl_xxh64_add(&h, text, at);
    sl_xxh64_add(&h, zeros, DIGITS);
    sl_xxh64_add(&h, text + at + DIGITS, n - at - DIGITS);
    snprintf(hex, sizeof hex, "%016" PRIx64, sl_xxh64_end(&h));
    if (memcmp(hex, text + at, DIGITS))
        return sl_fail(err, SL_USAGE, "damaged: its hash is not the one it says");
    return 0;
}

static int bad(struct sl_err *err, const char *what)
{
    return sl_fail(err, SL_USAGE, "its %s is missing or makes no sense", what);
}

static int get_int(const json_t *o, const char *key, int64_t lo, int64_t hi, int64_t *ret,
                   struct sl_err *err)
{
    const json_t *x = json_object_get(o, key);

    if (!json_is_integer(x) || json_integer_value(x) < lo || json_integer_value(x) > hi)
        return bad(err, key);
    *ret = json_integer_value(x);
    return 0;
}

static int get_str(struct sl_ckpt_manifest *m, const json_t *o, const char *key, const char **ret,
                   struct sl_err *err)
{
    const char *s = json_string_value(json_object_get(o, key));

    if (!s)
        return bad(err, key);
    *ret = sl_arena_strdup(m->arena, s);
    return *ret ? 0 : sl_fail(err, SL_SYSTEM, "cannot hold the manifest: %s", strerror(errno));
}

static void *take(struct sl_ckpt_manifest *m, size_t n, size_t size, struct sl_err *err)
{
    void *p = sl_arena_alloc(m->arena, n ? n : 1, size);

    if (!p)
        sl_fail(err, SL_SYSTEM, "cannot hold the manifest: %s", strerror(errno));
    return p;
}

static int get_hash(const json_t *x, uint64_t *ret)
{
    const char *s = json_string_value(x);
    char *end;

    if (!s || strlen(s) != DIGITS || strspn(s, "0123456789abcdef") != DIGITS)
        return -1;
    *ret = strtoull(s, &end, 16);
    return 0;
}

static int get_file(struct sl_ckpt_manifest *m, const json_t *o, struct sl_ckpt_file *f,
                    struct sl_err *err)
{
    const json_t *chunks = json_object_get(o, "chunks");
    const char *name;
    uint64_t *hash;

    if (get_str(m, o, "name", &name, err) || get_int(o, "bytes", 1, INT64_MAX / 2, &f->bytes, err))
        return -1;
    if (!*name || strlen(name) >= sizeof f->name || strchr(name, '/') || *name == '.')
        return bad(err, "file name");
    snprintf(f->name, sizeof f->name, "%s", name);
    f->chunks = sl_ckpt_chunks(f->bytes);
    if (json_array_size(chunks) != (size_t)f->chunks)
        return bad(err, "list of hashes");
    hash = take(m, (size_t)f->chunks, sizeof *hash, err);
    if (!hash)
        return -1;
    for (int64_t i = 0; i < f->chunks; i++)
        if (get_hash(json_array_get(chunks, (size_t)i), &hash[i]))
            return bad(err, "hash of a chunk");
    f->hash = hash;
    return 0;
}

static int get_range(const struct sl_ckpt_manifest *m, const json_t *a, int64_t n,
                     struct sl_ckpt_range *r)
{
    int64_t v[4];

    if (json_array_size(a) != 4)
        return -1;
    for (size_t i = 0; i < 4; i++) {
        const json_t *x = json_array_get(a, i);

        if (!json_is_integer(x) || json_integer_value(x) < 0)
            return -1;
        v[i] = json_integer_value(x);
    }
    if (v[0] >= m->nfiles || v[3] < 1 || v[2] > n || v[3] > n - v[2])
        return -1;
    *r = (struct sl_ckpt_range){(int)v[0], v[1], v[2], v[3]};
    if (r->off > m->file[r->file].bytes || 4 * r->n > m->file[r->file].bytes - r->off)
        return -1;
    return 0;
}

static int by_lo(const void *pa, const void *pb)
{
    const struct sl_ckpt_range *a = pa, *b = pb;

    return (a->lo > b->lo) - (a->lo < b->lo);
}

static int get_ranges(struct sl_ckpt_manifest *m, const json_t *o, struct sl_ckpt_tensor *t, int k,
                      struct sl_err *err)
{
    const json_t *list = json_object_get(o, sl_ckpt_kind_names[k]);
    size_t n = json_array_size(list);
    struct sl_ckpt_range *r = NULL;
    int64_t at = 0;
    int whole = 1;

    if (!json_is_array(list) || n > MOST_RANKS)
        return bad(err, "list of pieces");
    r = take(m, n, sizeof *r, err);
    if (!r)
        return -1;
    for (size_t i = 0; i < n; i++)
        if (get_range(m, json_array_get(list, i), t->n, &r[i]))
            return sl_fail(err, SL_USAGE, "a piece of tensor \"%s\" is no place in a file",
                           t->name);
    if (n)
        qsort(r, n, sizeof *r, by_lo);
    for (size_t i = 0; i < n && whole; at += r[i++].n)
        whole = r[i].lo == at; /* to the end: a piece behind a whole tensor is one too many */
    if (!whole || (at != t->n && (n || k == SL_CKPT_PARAM)))
        return sl_fail(err, SL_USAGE, "the pieces of tensor \"%s\" do not make it up", t->name);
    t->range[k] = r;
    t->count[k] = (int)n;
    return 0;
}

static int get_tensor(struct sl_ckpt_manifest *m, const json_t *o, struct sl_ckpt_tensor *t,
                      struct sl_err *err)
{
    const json_t *shape = json_object_get(o, "shape");
    size_t dims = json_array_size(shape);
    const char *name;

    if (get_str(m, o, "name", &name, err))
        return -1;
    if (!*name || strlen(name) >= sizeof t->name || dims < 1 || dims > 2)
        return bad(err, "tensor");
    snprintf(t->name, sizeof t->name, "%s", name);
    t->n = 1;
    for (size_t i = 0; i < dims; i++) {
        t->dim[i] = json_integer_value(json_array_get(shape, i));
        if (t->dim[i] < 1 || __builtin_mul_overflow(t->n, t->dim[i], &t->n)
            || t->n > INT64_MAX / 8)
            return bad(err, "shape of a tensor");
    }
    for (int k = 0; k < SL_CKPT_KINDS; k++)
        if (get_ranges(m, o, t, k, err))
            return -1;
    return 0;
}

static int get_lists(struct sl_ckpt_manifest *m, const json_t *root, struct sl_err *err)
{
    const json_t *files = json_object_get(root, "files"), *ts = json_object_get(root, "tensors");
    size_t nf = json_array_size(files), nt = json_array_size(ts);
    struct sl_ckpt_file *f;
    struct sl_ckpt_tensor *t;

    if (nf < 1 || nf > MOST_RANKS || nt < 1 || nt > INT32_MAX)
        return bad(err, "list of files and tensors");
    f = take(m, nf, sizeof *f, err);
    t = f ? take(m, nt, sizeof *t, err) : NULL;
    if (!t)
        return -1;
    m->file = f;
    for (size_t i = 0; i < nf; i++)
        if (get_file(m, json_array_get(files, i), &f[i], err))
            return -1;
    m->nfiles = (int)nf;
    m->tensor = t;
    for (size_t i = 0; i < nt; i++)
        if (get_tensor(m, json_array_get(ts, i), &t[i], err))
            return -1;
    m->ntensors = (int)nt;
    return 0;
}

static int get_all(struct sl_ckpt_manifest *m, const json_t *root, struct sl_err *err)
{
    const int64_t most = INT64_MAX / 2;
    int64_t chunk;

    if (get_int(root, "step", 1, most, &m->step, err)
        || get_int(root, "steps", 1, most, &m->steps, err)
        || get_int(root, "seed", 0, most, &m->seed, err)
        || get_int(root, "batch", 1, most, &m->batch, err)
        || get_int(root, "position", 0, most, &m->position, err)
        || get_int(root, "skipped", 0, m->step, &m->skipped, err)
        || get_int(root, "bad_row", 0, SL_RUN_MAX_BAD, &m->bad_row, err)
        || get_int(root, "train_samples", 0, most, &m->samples, err)
        || get_int(root, "job_id", 0, most, &m->job, err)
        || get_int(root, "ranks", 1, MOST_RANKS, &m->ranks, err)
        || get_str(m, root, "program", &m->program, err)
        || get_str(m, root, "strategy", &m->strategy, err)
        || get_str(m, root, "precision", &m->precision, err)
        || get_str(m, root, "job", &m->text, err)
        || get_int(root, "chunk_bytes", 1, most, &chunk, err))
        return -1;
    m->time = json_number_value(json_object_get(root, "time"));
    if (chunk != SL_CKPT_CHUNK)
        return bad(err, "chunk_bytes");
    if (m->step > most / m->batch || m->position != m->step * m->batch)
        return bad(err, "position");
    return get_lists(m, root, err);
}

struct sl_ckpt_manifest *sl_ckpt_manifest_parse(const char *text, size_t n, struct sl_err *err)
{
    struct sl_ckpt_manifest *m = NULL;
    json_error_t je;
    json_t *root;

    if (check_text(text, n, err))
        return NULL;
    root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &je);
    if (!root) {
        sl_fail(err, SL_USAGE, "line %d: %s", je.line, je.text);
        return NULL;
    }
    m = sl_calloc(1, sizeof *m);
    if (m)
        m->arena = sl_arena_create(0, NULL);
    if (!m || !m->arena) {
        sl_fail(err, SL_SYSTEM, "cannot hold the manifest: %s", strerror(errno));
        goto fail;
    }
    if (get_all(m, root, err))
        goto fail;
    json_decref(root);
    return m;
fail:
    json_decref(root);
    sl_ckpt_manifest_destroy(m);
    return NULL;
}

struct sl_ckpt_manifest *sl_ckpt_manifest_read(const char *checkpoint, struct sl_err *err)
{
    struct sl_ckpt_manifest *m = NULL;
    char *path = sl_fs_absolute(checkpoint, "manifest.json", err), *text;
    size_t n;

    text = path ? sl_fs_read(path, SL_CKPT_MANIFEST_BYTES, &n, err) : NULL;
    if (text) {
        m = sl_ckpt_manifest_parse(text, n, err);
        if (!m)
            sl_within(err, "\"%s\"", path);
    }
    free(text);
    free(path);
    return m;
}

const struct sl_ckpt_tensor *sl_ckpt_manifest_find(const struct sl_ckpt_manifest *m,
                                                   const char *name)
{
    for (int i = 0; i < m->ntensors; i++)
        if (!strcmp(m->tensor[i].name, name))
            return &m->tensor[i];
    return NULL;
}

int sl_ckpt_manifest_files(const struct sl_ckpt_manifest *m, const char *checkpoint,
                           struct sl_err *err)
{
    for (int i = 0; i < m->nfiles; i++) {
        const struct sl_ckpt_file *f = &m->file[i];
        char *path = sl_fs_absolute(checkpoint, f->name, err);
        struct stat st;
        int rc;

        if (!path)
            return -1;
        rc = stat(path, &st);
        if (rc)
            sl_fail(err, errno == ENOENT ? SL_USAGE : SL_SYSTEM, "\"%s\": %s", path,
                    strerror(errno));
        else if (st.st_size != f->bytes || !S_ISREG(st.st_mode))
            rc = sl_fail(err, SL_USAGE, "\"%s\" has %lld bytes, the manifest says %lld", path,
                         (long long)st.st_size, (long long)f->bytes);
        free(path);
        if (rc)
            return -1;
    }
    return 0;
}
