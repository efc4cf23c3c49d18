#include "executor/data/tokens.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "common/mem.h"
#include "executor/data/xxh64.h"
#include "executor/job.h"

static const char magic[8] = "SLTOKENS";

struct header {
    char magic[8];
    uint32_t version, vocab_size;
    uint64_t count, hash;
    uint32_t tokenizer, zero1;
    uint64_t vocab_hash, zero2[2];
};
_Static_assert(sizeof(struct header) == 64, "the file's header has 64 bytes");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "token files are little endian");

/* Point `tok` into its map by our header. */
static int with_header(struct sl_tokens *tok, struct sl_err *err)
{
    struct header h;

    if (tok->map.size < sizeof h)
        return sl_fail(err, SL_USAGE, "the file ends inside its header: %zu of %zu bytes",
                       tok->map.size, sizeof h);
    memcpy(&h, tok->map.data, sizeof h);
    if (h.version != 1)
        return sl_fail(err, SL_USAGE, "token file of version %" PRIu32 ", this program reads 1",
                       h.version);
    if (h.vocab_size < 1 || h.vocab_size > SL_TOKENS_MAX_VOCAB || h.tokenizer > SL_TOK_UINT16)
        return sl_fail(err, SL_USAGE, "the file's header is damaged");
    size_t have = (tok->map.size - sizeof h) / 2;
    if (h.count != have || tok->map.size % 2)
        return sl_fail(err, SL_USAGE,
                       "the header promises %" PRIu64 " tokens, the file holds %zu%s", h.count,
                       have, tok->map.size % 2 ? " and a half" : "");
    if (!h.count)
        return sl_fail(err, SL_USAGE, "the file holds no tokens");
    tok->v = (const uint16_t *)(tok->map.data + sizeof h);
    tok->count = (int64_t)h.count;
    tok->vocab_size = h.vocab_size;
    tok->tokenizer = (int)h.tokenizer;
    tok->hash = h.hash;
    tok->vocab_hash = h.vocab_hash;
    return 0;
}

static int bare(struct sl_tokens *tok, struct sl_err *err)
{
    if (tok->map.size % 2) {
        sl_fail(err, SL_USAGE, "%zu bytes are no whole number of uint16 tokens", tok->map.size);
        return sl_hint(err, "The file is cut short, or is no token file; for a text say "
                            "tokenizer = \"byte\" or \"word\".");
    }
    tok->v = (const uint16_t *)tok->map.data;
    tok->count = (int64_t)(tok->map.size / 2);
    tok->tokenizer = SL_TOK_UINT16;
    return 0;
}

static int is_ours(const struct sl_text *file)
{
    return file->size >= sizeof magic && !memcmp(file->data, magic, sizeof magic);
}

int sl_tokens_refuse(const struct sl_text *file, const char *path, struct sl_err *err)
{
    if (!is_ours(file))
        return 0;
    sl_fail(err, SL_USAGE, "\"%s\" holds tokens, not text", path);
    return sl_hint(err, "In a job file say data.tokenizer = \"uint16\" and data.vocab_size; "
                        "\"shardlaunch data inspect\" shows it.");
}

int sl_tokens_open(struct sl_tokens *tok, const char *path, struct sl_err *err)
{
    int rc;

    *tok = (struct sl_tokens){0};
    if (sl_text_open(&tok->map, path, err))
        return -1;
    if (is_ours(&tok->map))
        rc = with_header(tok, err);
    else
        rc = bare(tok, err);
    if (!rc)
        return 0;
    sl_tokens_close(tok);
    return sl_within(err, "token file \"%s\"", path);
}

void sl_tokens_close(struct sl_tokens *tok)
{
    sl_text_close(&tok->map);
    *tok = (struct sl_tokens){0};
}

int sl_tokens_check(const struct sl_tokens *tok, int64_t vocab_size, const char *path,
                    struct sl_err *err)
{
    for (int64_t i = 0; i < tok->count; i++)
        if (tok->v[i] >= vocab_size) {
            sl_fail(err, SL_USAGE,
                    "token %d at position %" PRId64 " is not below vocab_size %" PRId64, tok->v[i],
                    i, vocab_size);
            sl_hint(err,
                    "Set data.vocab_size to the vocabulary the file was made with, or make the "
                    "file anew.");
            return sl_within(err, "token file \"%s\"", path);
        }
    if (tok->vocab_size && sl_xxh64(tok->v, (size_t)tok->count * 2) != tok->hash) {
        sl_fail(err, SL_USAGE, "the tokens are damaged: their hash is not the header's");
        sl_hint(err, "Make the file anew with shardlaunch data build.");
        return sl_within(err, "token file \"%s\"", path);
    }
    return 0;
}

int64_t sl_tokens_cut(int64_t count, double fraction)
{
    return count - (int64_t)((double)count * fraction);
}

struct sl_tokens_writer {
    FILE *f;
    char *path, *tmp;
    struct header h;
    struct sl_xxh64 hash;
};

static void destroy(struct sl_tokens_writer *w)
{
    if (w->f)
        fclose(w->f);
    free(w->path);
    free(w->tmp);
    free(w);
}

static int cannot(const struct sl_tokens_writer *w, struct sl_err *err)
{
    sl_fail(err, SL_SYSTEM, "cannot write \"%s\": %s", w->path, strerror(errno));
    return sl_hint(err, "Make room, or choose a folder that you may write.");
}

struct sl_tokens_writer *sl_tokens_writer_open(const char *path, int64_t vocab_size, int tokenizer,
                                               uint64_t vocab_hash, struct sl_err *err)
{
    struct sl_tokens_writer *w = sl_calloc(1, sizeof *w);
    size_t room = strlen(path) + 16;
    int fd, tries = 0;

    if (!w) {
        sl_fail(err, SL_SYSTEM, "cannot hold a writer: %s", strerror(errno));
        return NULL;
    }
    w->path = sl_strdup(path);
    w->tmp = sl_calloc(room, 1);
    if (!w->path || !w->tmp) {
        sl_fail(err, SL_SYSTEM, "cannot hold a writer: %s", strerror(errno));
        goto fail;
    }
    do { /* not mkstemp: its mode 0600 keeps a group from sharing a cache */
        uint32_t any;

        if (getrandom(&any, sizeof any, 0) != sizeof any)
            any = (uint32_t)getpid();
        snprintf(w->tmp, room, "%s.%08" PRIx32 ".tmp", path, any);
        fd = open(w->tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    } while (fd < 0 && errno == EEXIST && ++tries < 100);
    if (fd < 0) {
        cannot(w, err);
        goto fail;
    }
    w->f = fdopen(fd, "wb");
    if (!w->f) {
        cannot(w, err);
        close(fd);
        unlink(w->tmp);
        goto fail;
    }
    memcpy(w->h.magic, magic, sizeof magic);
    w->h.version = 1;
    w->h.vocab_size = (uint32_t)vocab_size;
    w->h.tokenizer = (uint32_t)tokenizer;
    w->h.vocab_hash = vocab_hash;
    sl_xxh64_start(&w->hash);
    if (fwrite(&w->h, sizeof w->h, 1, w->f) != 1) {
        cannot(w, err);
        sl_tokens_writer_abort(w);
        return NULL;
    }
    return w;
fail:
    destroy(w);
    return NULL;
}

int sl_tokens_writer_put(void *writer, const uint16_t *v, int64_t n, struct sl_err *err)
{
    struct sl_tokens_writer *w = writer;

    for (int64_t i = 0; i < n; i++)
        if (v[i] >= w->h.vocab_size)
            return sl_fail(err, SL_USAGE, "token %d is not below vocab_size %" PRIu32, v[i],
                           w->h.vocab_size);
    if (fwrite(v, 2, (size_t)n, w->f) != (size_t)n)
        return cannot(w, err);
    sl_xxh64_add(&w->hash, v, (size_t)n * 2);
    w->h.count += (uint64_t)n;
    return 0;
}

int sl_tokens_writer_commit(struct sl_tokens_writer *w, struct sl_err *err)
{
    FILE *f = w->f;
    int bad;

    w->h.hash = sl_xxh64_end(&w->hash);
    bad = fseek(f, 0, SEEK_SET) || fwrite(&w->h, sizeof w->h, 1, f) != 1 || fflush(f)
          || fsync(fileno(f));
    w->f = NULL;
    if (fclose(f) || bad || rename(w->tmp, w->path)) {
        cannot(w, err);
        sl_tokens_writer_abort(w);
        return -1;
    }
    destroy(w);
    return 0;
}

void sl_tokens_writer_abort(struct sl_tokens_writer *w)
{
    if (!w)
        return;
    unlink(w->tmp);
    destroy(w);
}
