/* safetensors.c - headers of safetensors files */
#include "executor/checkpoint/safetensors.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/json.h"
#include "common/mem.h"

enum { LENGTH = 8, ALIGN = 64 };

/* ---- writing ---- */

void sl_safetensors_begin(struct sl_safetensors_writer *w, struct sl_buf *out)
{
    *w = (struct sl_safetensors_writer){.out = out};
    sl_buf_add(out, "\0\0\0\0\0\0\0\0", LENGTH);
    sl_buf_str(out, "{\"__metadata__\":{\"format\":\"pt\",\"writer\":\"shardlaunch\"}");
}

void sl_safetensors_add(struct sl_safetensors_writer *w, const struct sl_safetensors_entry *e)
{
    struct sl_json j;
    int64_t n = sl_dtype_size(e->type);

    sl_json_init(&j, w->out);
    sl_buf_char(w->out, ',');
    sl_json_str(&j, e->name);
    sl_buf_printf(w->out, ":{\"dtype\":\"%s\",\"shape\":[", e->type == SL_BF16 ? "BF16" : "F32");
    for (int i = 0; i < e->dims; i++) {
        sl_buf_printf(w->out, "%s%lld", i ? "," : "", (long long)e->shape[i]);
        n *= e->shape[i];
    }
    sl_buf_printf(w->out, "],\"data_offsets\":[%lld,%lld]}", (long long)w->data,
                  (long long)(w->data + n));
    w->data += n;
}

void sl_safetensors_end(struct sl_safetensors_writer *w)
{
    struct sl_buf *b = w->out;

    sl_buf_char(b, '}');
    while (!b->failed && b->len % ALIGN)
        sl_buf_char(b, ' ');
    if (b->failed)
        return;
    for (int i = 0; i < LENGTH; i++)
        b->p[i] = (char)((uint64_t)(b->len - LENGTH) >> (8 * i));
}

/* ---- reading ---- */

struct sl_safetensors {
    struct sl_arena *arena;
    struct sl_safetensors_entry *v;
    int n;
};

void sl_safetensors_destroy(struct sl_safetensors *s)
{
    if (!s)
        return;
    sl_arena_destroy(s->arena);
    free(s->v);
    free(s);
}

int64_t sl_safetensors_length(const unsigned char first[8], int64_t file_bytes, struct sl_err *err)
{
    uint64_t n = 0;

    for (int i = 0; i < LENGTH; i++)
        n |= (uint64_t)first[i] << (8 * i);
    if (file_bytes < LENGTH || n < 2 || n > (uint64_t)(file_bytes - LENGTH))
        return sl_fail(err, SL_USAGE, "its header's length is %llu of a file of %lld bytes",
                       (unsigned long long)n, (long long)file_bytes);
    if (n > SL_SAFETENSORS_HEADER)
        return sl_fail(err, SL_USAGE, "its header has %llu bytes, more than %d",
                       (unsigned long long)n, SL_SAFETENSORS_HEADER);
    return (int64_t)n + LENGTH;
}

static int take_shape(const json_t *shape, struct sl_safetensors_entry *e, int64_t most,
                      struct sl_err *err)
{
    int64_t n = sl_dtype_size(e->type);

    if (!json_is_array(shape) || json_array_size(shape) > SL_SAFETENSORS_DIMS)
        return sl_fail(err, SL_USAGE, "tensor \"%s\" has no shape of at most %d dimensions",
                       e->name, SL_SAFETENSORS_DIMS);
    e->dims = (int)json_array_size(shape);
    for (int i = 0; i < e->dims; i++) {
        const json_t *x = json_array_get(shape, (size_t)i);

        e->shape[i] = json_is_integer(x) ? json_integer_value(x) : -1;
        if (e->shape[i] < 0 || __builtin_mul_overflow(n, e->shape[i], &n) || n > most)
            return sl_fail(err, SL_USAGE, "tensor \"%s\" has a shape that the file cannot hold",
                           e->name);
    }
    if (n != e->end - e->begin)
        return sl_fail(err, SL_USAGE, "tensor \"%s\" needs %lld bytes and has %lld", e->name,
                       (long long)n, (long long)(e->end - e->begin));
    return 0;
}

static int take_entry(struct sl_safetensors *s, const char *name, const json_t *it, int64_t data,
                      int64_t most, struct sl_err *err)
{
    struct sl_safetensors_entry *e = &s->v[s->n];
    const char *type = json_string_value(json_object_get(it, "dtype"));
    const json_t *at = json_object_get(it, "data_offsets");
    const json_t *lo = json_array_get(at, 0), *hi = json_array_get(at, 1);

    e->name = sl_arena_strdup(s->arena, name);
    if (!e->name)
        return sl_fail(err, SL_SYSTEM, "cannot hold its header: %s", strerror(errno));
    if (!type || (strcmp(type, "F32") && strcmp(type, "BF16")))
        return sl_fail(err, SL_USAGE, "tensor \"%.100s\" is of type %.20s; known are F32 and BF16",
                       name, type ? type : "(none)");
    e->type = strcmp(type, "F32") ? SL_BF16 : SL_F32;
    e->begin = json_is_integer(lo) ? json_integer_value(lo) : -1;
    e->end = json_is_integer(hi) ? json_integer_value(hi) : -1;
    if (json_array_size(at) != 2 || e->begin < 0 || e->end < e->begin || e->end > most)
        return sl_fail(err, SL_USAGE, "tensor \"%.100s\" has no place inside the file", name);
    if (take_shape(json_object_get(it, "shape"), e, most, err))
        return -1;
    e->begin += data;
    e->end += data;
    s->n++;
    return 0;
}

static int by_place(const void *pa, const void *pb)
{
    const struct sl_safetensors_entry *a = pa, *b = pb;

    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    return (a->end > b->end) - (a->end < b->end);
}

static int take_all(struct sl_safetensors *s, json_t *root, int64_t data, int64_t file_bytes,
                    struct sl_err *err)
{
    int64_t at = data;
    const char *name;
    json_t *it;

    json_object_foreach(root, name, it)
        if (strcmp(name, "__metadata__") && take_entry(s, name, it, data, file_bytes - data, err))
            return -1;
    if (s->n)
        qsort(s->v, (size_t)s->n, sizeof *s->v, by_place);
    for (int i = 0; i < s->n; at = s->v[i++].end)
        if (s->v[i].begin != at)
            return sl_fail(err, SL_USAGE, "tensor \"%.100s\" leaves a hole or overlaps another",
                           s->v[i].name);
    if (at != file_bytes)
        return sl_fail(err, SL_USAGE, "it has %lld bytes, and its tensors end at %lld",
                       (long long)file_bytes, (long long)at);
    return 0;
}

struct sl_safetensors *sl_safetensors_parse(const void *head, size_t n, int64_t file_bytes,
                                            struct sl_err *err)
{
    int64_t len = n < LENGTH ? sl_fail(err, SL_USAGE, "it has no header")
                             : sl_safetensors_length(head, file_bytes, err);
    struct sl_safetensors *s;
    json_error_t je;
    json_t *root;

    if (len < 0)
        return NULL;
    if ((uint64_t)len != n) {
        sl_fail(err, SL_USAGE, "its header has %zu of %lld bytes", n, (long long)len);
        return NULL;
    }
    root = json_loadb((const char *)head + LENGTH, n - LENGTH, JSON_REJECT_DUPLICATES, &je);
    if (!json_is_object(root)) {
        sl_fail(err, SL_USAGE, "its header is no JSON object: %.150s", root ? "" : je.text);
        json_decref(root);
        return NULL;
    }
    s = sl_calloc(1, sizeof *s);
    if (s) {
        s->arena = sl_arena_create(0, NULL);
        s->v = sl_calloc(json_object_size(root) + 1, sizeof *s->v);
    }
    if (!s || !s->arena || !s->v) {
        sl_fail(err, SL_SYSTEM, "cannot hold its header: %s", strerror(errno));
        goto fail;
    }
    if (take_all(s, root, len, file_bytes, err))
        goto fail;
    json_decref(root);
    return s;
fail:
    json_decref(root);
    sl_safetensors_destroy(s);
    return NULL;
}

struct sl_safetensors *sl_safetensors_read(int fd, struct sl_err *err)
{
    struct sl_safetensors *s = NULL;
    unsigned char first[LENGTH] = {0};
    char *head = NULL;
    struct stat st;
    int64_t len;

    if (fstat(fd, &st) || pread(fd, first, sizeof first, 0) < 0) {
        sl_fail(err, SL_SYSTEM, "%s", strerror(errno));
        return NULL;
    }
    len = sl_safetensors_length(first, st.st_size, err);
    if (len < 0)
        return NULL;
    head = sl_calloc((size_t)len, 1);
    if (!head)
        sl_fail(err, SL_SYSTEM, "cannot hold its header: %s", strerror(errno));
    else if (pread(fd, head, (size_t)len, 0) != len)
        sl_fail(err, SL_SYSTEM, "its header cannot be read whole");
    else
        s = sl_safetensors_parse(head, (size_t)len, st.st_size, err);
    free(head);
    return s;
}

int sl_safetensors_count(const struct sl_safetensors *s)
{
    return s->n;
}

const struct sl_safetensors_entry *sl_safetensors_at(const struct sl_safetensors *s, int i)
{
    return &s->v[i];
}

const struct sl_safetensors_entry *sl_safetensors_find(const struct sl_safetensors *s,
                                                       const char *name)
{
    for (int i = 0; i < s->n; i++)
        if (!strcmp(s->v[i].name, name))
            return &s->v[i];
    return NULL;
}
