/* export.c - model.safetensors and config.json */
#include "executor/checkpoint/export.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/fs.h"
#include "common/json.h"
#include "common/mem.h"
#include "common/str.h"
#include "executor/checkpoint/folder.h"
#include "executor/checkpoint/reader.h"
#include "executor/checkpoint/safetensors.h"

enum { PIECE = 1 << 18 /* elements */, MOST_CONFIG = 1 << 16 };

struct export {
    struct sl_ckpt_reader *from;
    const struct sl_ckpt_manifest *m;
    int fd;
};

/* Weights of linear layers: all matrices but the tables and the output layer. */
static int turned(const struct sl_ckpt_tensor *t)
{
    return t->dim[1] > 0 && strcmp(t->name, "wte.weight") && strcmp(t->name, "wpe.weight")
           && strcmp(t->name, "lm_head.weight");
}

static int header(const struct export *x, struct sl_buf *out, struct sl_err *err)
{
    struct sl_safetensors_writer w;

    sl_safetensors_begin(&w, out);
    for (int i = 0; i < x->m->ntensors; i++) {
        const struct sl_ckpt_tensor *t = &x->m->tensor[i];
        char name[SL_CKPT_NAME + 16];
        struct sl_safetensors_entry e
            = {.name = name, .type = SL_F32, .dims = t->dim[1] ? 2 : 1, .shape = {t->dim[0], t->dim[1]}};

        snprintf(name, sizeof name, "%s%s", strcmp(t->name, "lm_head.weight") ? "transformer." : "",
                 t->name);
        if (turned(t)) {
            e.shape[0] = t->dim[1];
            e.shape[1] = t->dim[0];
        }
        sl_safetensors_add(&w, &e);
    }
    sl_safetensors_end(&w);
    return sl_buf_check(out, err);
}

static int put_plain(struct export *x, const struct sl_ckpt_tensor *t, struct sl_err *err)
{
    float *v = sl_calloc(PIECE, sizeof *v);
    int rc = v ? 0 : sl_fail(err, SL_SYSTEM, "no memory to export: %s", strerror(errno));

    for (int64_t k = 0; k < t->n && !rc; k += PIECE) {
        int64_t n = t->n - k < PIECE ? t->n - k : PIECE;

        rc = sl_ckpt_reader_get(x->from, t->name, SL_CKPT_PARAM, k, n, v, err)
             || sl_fs_write_all(x->fd, v, (size_t)n * sizeof *v, err) ? -1 : 0;
    }
    free(v);
    return rc;
}

/* [out, in] to [in, out]; needs the whole matrix and one column. */
static int put_turned(struct export *x, const struct sl_ckpt_tensor *t, struct sl_err *err)
{
    int64_t rows = t->dim[0], cols = t->dim[1];
    float *v = sl_calloc((size_t)t->n, sizeof *v), *col = sl_calloc((size_t)rows, sizeof *col);
    int rc = -1;

    if (!v || !col)
        sl_fail(err, SL_SYSTEM, "no memory for \"%s\": %s", t->name, strerror(errno));
    else
        rc = sl_ckpt_reader_get(x->from, t->name, SL_CKPT_PARAM, 0, t->n, v, err);
    for (int64_t c = 0; c < cols && !rc; c++) {
        for (int64_t r = 0; r < rows; r++)
            col[r] = v[r * cols + c];
        rc = sl_fs_write_all(x->fd, col, (size_t)rows * sizeof *col, err);
    }
    free(v);
    free(col);
    return rc;
}

static int put_all(struct export *x, struct sl_err *err)
{
    struct sl_buf head;
    int rc;

    sl_buf_init(&head, SL_SAFETENSORS_HEADER);
    rc = header(x, &head, err) || sl_fs_write_all(x->fd, head.p, head.len, err) ? -1 : 0;
    sl_buf_fini(&head);
    for (int i = 0; i < x->m->ntensors && !rc; i++) {
        const struct sl_ckpt_tensor *t = &x->m->tensor[i];

        rc = turned(t) ? put_turned(x, t, err) : put_plain(x, t, err);
    }
    if (!rc && fsync(x->fd))
        rc = sl_fail(err, SL_SYSTEM, "%s", strerror(errno));
    return rc;
}

/* Under another name until it is whole. */
static int write_model(struct export *x, const char *path, struct sl_err *err)
{
    size_t n = strlen(path) + sizeof ".part";
    char *part = sl_calloc(n, 1);
    int rc = -1;

    if (!part)
        return sl_fail(err, SL_SYSTEM, "no memory to export: %s", strerror(errno));
    snprintf(part, n, "%s.part", path);
    x->fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (x->fd < 0)
        sl_fail(err, SL_SYSTEM, "%s", strerror(errno));
    else
        rc = put_all(x, err);
    if (x->fd >= 0 && close(x->fd) && !rc)
        rc = sl_fail(err, SL_SYSTEM, "%s", strerror(errno));
    if (!rc && rename(part, path))
        rc = sl_fail(err, SL_SYSTEM, "%s", strerror(errno));
    if (rc) {
        unlink(part);
        sl_within(err, "export to \"%s\"", path);
    }
    free(part);
    return rc;
}

/* The keys of transformers' GPT2Config. */
static void put_config(struct sl_json *j, const struct sl_job *job)
{
    const struct sl_model_spec *s = &job->model;

    sl_json_object(j);
    sl_json_key(j, "architectures");
    sl_json_array(j);
    sl_json_str(j, "GPT2LMHeadModel");
    sl_json_end(j);
    sl_json_put_str(j, "model_type", "gpt2");
    sl_json_put_str(j, "activation_function", "gelu_new");
    sl_json_put_real(j, "layer_norm_epsilon", 1e-5);
    sl_json_put_int(j, "vocab_size", job->data.vocab_size);
    sl_json_put_int(j, "n_positions", s->context);
    sl_json_put_int(j, "n_embd", s->width);
    sl_json_put_int(j, "n_layer", s->layers);
    sl_json_put_int(j, "n_head", s->heads);
    sl_json_put_int(j, "n_inner", s->ffn_width);
    sl_json_put_real(j, "embd_pdrop", s->dropout);
    sl_json_put_real(j, "resid_pdrop", s->dropout);
    sl_json_put_real(j, "attn_pdrop", 0);
    sl_json_put_bool(j, "tie_word_embeddings", s->tie_embeddings);
    sl_json_key(j, "bos_token_id");
    sl_json_null(j);
    sl_json_key(j, "eos_token_id");
    if (job->data.tokenizer == SL_TOK_WORD)
        sl_json_int(j, 1);
    else
        sl_json_null(j);
    sl_json_put_str(j, "torch_dtype", "float32");
    sl_json_end(j);
}

static int write_config(const struct sl_job *job, const char *path, struct sl_err *err)
{
    struct sl_json j;
    struct sl_buf b;
    int rc;

    sl_buf_init(&b, MOST_CONFIG);
    sl_json_init(&j, &b);
    put_config(&j, job);
    sl_buf_char(&b, '\n');
    rc = sl_buf_check(&b, err) || sl_fs_write_atomic(path, b.p, b.len, 0644, err) ? -1 : 0;
    sl_buf_fini(&b);
    return rc;
}

static int free_to_write(const char *path, struct sl_err *err)
{
    if (access(path, F_OK))
        return 0;
    sl_fail(err, SL_USAGE, "\"%s\" is there already", path);
    return sl_hint(err, "Export to another folder, or remove it first.");
}

static int run(struct export *x, const struct sl_job *job, const char *to, struct sl_err *err)
{
    char *model, *config = NULL;
    int rc = -1;

    if (strcmp(job->model.kind, "gpt"))
        return sl_fail(err, SL_USAGE, "a model of kind \"%s\" has no form to export to",
                       job->model.kind);
    if (sl_fs_mkdirs(to, 0777, err))
        return -1;
    model = sl_fs_absolute(to, "model.safetensors", err);
    if (model)
        config = sl_fs_absolute(to, "config.json", err);
    if (config && !free_to_write(model, err) && !free_to_write(config, err)
        && !write_model(x, model, err) && !write_config(job, config, err))
        rc = sl_ckpt_sync(to, err);
    free(model);
    free(config);
    return rc;
}

int sl_ckpt_export(const char *checkpoint, const char *to, struct sl_err *err)
{
    struct export x = {.from = sl_ckpt_reader_open(checkpoint, err), .fd = -1};
    struct sl_job *job = NULL;
    int rc = -1;

    if (x.from) {
        x.m = sl_ckpt_reader_manifest(x.from);
        job = sl_job_parse(x.m->text, "the checkpoint's job", err);
    }
    if (job)
        rc = run(&x, job, to, err);
    sl_job_destroy(job);
    sl_ckpt_reader_close(x.from);
    return rc;
}
