/* prepare.c - sl_dataset_prepare(): a job's texts become token files in a cache, once */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "common/fs.h"
#include "common/str.h"
#include "executor/data/dataset.h"
#include "executor/data/tokenizer.h"
#include "executor/data/tokens.h"
#include "executor/data/xxh64.h"

enum { LOCK_SECONDS = 600 };

/* What a cached file depends on, and so its name. */
struct key {
    uint64_t content, size; /* of the text */
    uint64_t vocabulary;    /* key of the text that the vocabulary comes from; 0: this one */
    int64_t vocab_size;
    double valid_fraction; /* words: the vocabulary's part of the text; else 0 */
    uint64_t tokenizer, version;
};

static const char remedy[] = "Tokens are kept in the state folder: make it writable, make room, or "
                             "choose another one with SHARDLAUNCH_STATE.";

static int cannot(const char *what, const char *path, struct sl_err *err)
{
    sl_fail(err, SL_SYSTEM, "cannot %s \"%s\": %s", what, path, strerror(errno));
    return sl_hint(err, "%s", remedy);
}

/* An open file that holds the lock, or -1. A lock dies with its holder, so waiting is for work. */
static int take_lock(const char *path, struct sl_err *err)
{
    const struct timespec nap = {.tv_nsec = 20 * 1000 * 1000};
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);

    if (fd < 0)
        return cannot("write", path, err);
    for (int left = LOCK_SECONDS * 50; flock(fd, LOCK_EX | LOCK_NB); left--) {
        if (errno != EWOULDBLOCK && errno != EINTR) {
            cannot("lock", path, err);
            goto fail;
        }
        if (!left) {
            sl_fail(err, SL_BUSY, "\"%s\" has been locked for %d seconds by another run", path,
                    LOCK_SECONDS);
            sl_hint(err, "Wait for the run that tokenises this text, or end it.");
            goto fail;
        }
        nanosleep(&nap, NULL);
    }
    return fd;
fail:
    close(fd);
    return -1;
}

static int put_path(char ret[SL_DATASET_PATH], const char *dir, uint64_t key, const char *suffix,
                    struct sl_err *err)
{
    int n = snprintf(ret, SL_DATASET_PATH, "%s/%016" PRIx64 ".%s", dir, key, suffix);

    if (n < 0 || n >= SL_DATASET_PATH)
        return sl_fail(err, SL_USAGE, "the cache's path \"%s\" is too long", dir);
    return 0;
}

/* Whether nobody builds what the lock stands for; `mine` is the name of the lock that we hold. */
static int is_free(int dir, const char *lock, const char *mine)
{
    int fd, ours = !strcmp(lock, mine);

    if (ours)
        return 1;
    fd = openat(dir, lock, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return errno == ENOENT;
    ours = !flock(fd, LOCK_EX | LOCK_NB);
    close(fd);
    return ours;
}

/* Half-made files, as large as the text, of processes that were killed or interrupted. */
static void sweep(const char *path, uint64_t key)
{
    DIR *d = opendir(path);
    char lock[32], mine[32];
    struct dirent *e;

    snprintf(mine, sizeof mine, "%016" PRIx64 ".lock", key);
    while (d && (e = readdir(d))) {
        if (strspn(e->d_name, "0123456789abcdef") != 16 || e->d_name[16] != '.'
            || !sl_str_ends(e->d_name, ".tmp"))
            continue;
        snprintf(lock, sizeof lock, "%.16s.lock", e->d_name);
        if (is_free(dirfd(d), lock, mine))
            unlinkat(dirfd(d), e->d_name, 0);
    }
    if (d)
        closedir(d);
}

/* 1: the cached file is whole; 0: there is none; -1: there is one, and it is damaged. */
static int look(const char *tokens, const char *vocab, int64_t vocab_size)
{
    struct sl_tokens tok;
    struct sl_text text;
    int ok;

    if (access(tokens, F_OK))
        return 0;
    if (sl_tokens_open(&tok, tokens, NULL))
        return -1;
    ok = tok.vocab_size == vocab_size && !sl_tokens_check(&tok, vocab_size, tokens, NULL);
    if (ok && tok.vocab_hash) {
        ok = !sl_text_open(&text, vocab, NULL) && sl_xxh64(text.data, text.size) == tok.vocab_hash;
        sl_text_close(&text);
    }
    sl_tokens_close(&tok);
    return ok ? 1 : -1;
}

/* Encode into `tokens`; its vocabulary, when not NULL, is a file that is in place. */
static int encode(const struct sl_tokenizer *t, const struct sl_text *text, const char *tokens,
                  const char *vocab, int64_t vocab_size, struct sl_err *err)
{
    struct sl_tokens_writer *w;
    struct sl_text words = {0};
    uint64_t hash = 0;

    if (vocab) {
        if (sl_text_open(&words, vocab, err))
            return -1;
        hash = sl_xxh64(words.data, words.size);
        sl_text_close(&words);
    }
    w = sl_tokens_writer_open(tokens, vocab_size, sl_tokenizer_kind(t), hash, err);
    if (!w)
        return -1;
    if (sl_tokenizer_encode(t, text, sl_tokens_writer_put, w, err)) {
        sl_tokens_writer_abort(w);
        return -1;
    }
    return sl_tokens_writer_commit(w, err);
}

struct cache {
    const char *dir;
    enum sl_tokenizer_kind kind;
    int64_t vocab_size;
    double valid_fraction;
    struct sl_dataset_files *ret;
};

/*
 * One text's token file. from_key names the text whose vocabulary is used, 0: its own. *key is this
 * text's. The lock covers looking and building, so that a second process finds what the first made.
 */
static int one(const struct cache *c, const char *path, uint64_t from_key, uint64_t *key,
               char tokens[SL_DATASET_PATH], struct sl_err *err)
{
    char lock[SL_DATASET_PATH], vocab[SL_DATASET_PATH];
    struct sl_tokenizer *t = NULL;
    struct sl_text text;
    int fd = -1, rc = -1, found;

    if (sl_text_open(&text, path, err))
        return -1;
    if (sl_tokens_refuse(&text, path, err)) {
        sl_text_close(&text);
        return -1;
    }
    struct key k = {.content = sl_xxh64(text.data, text.size),
                    .size = text.size,
                    .vocabulary = from_key,
                    .vocab_size = c->vocab_size,
                    .valid_fraction = from_key || c->kind == SL_TOK_BYTE ? 0 : c->valid_fraction,
                    .tokenizer = c->kind,
                    .version = 1};
    *key = sl_xxh64(&k, sizeof k);
    if (put_path(tokens, c->dir, *key, "tokens", err) || put_path(lock, c->dir, *key, "lock", err)
        || put_path(vocab, c->dir, from_key ? from_key : *key, "vocab", err))
        goto out;
    fd = take_lock(lock, err);
    if (fd < 0)
        goto out;
    found = look(tokens, vocab, c->vocab_size);
    if (found > 0) {
        rc = 0;
        goto out;
    }
    sweep(c->dir, *key);
    if (c->kind == SL_TOK_WORD && sl_text_check_utf8(&text, path, err))
        goto out;
    if (c->kind == SL_TOK_BYTE)
        t = sl_tokenizer_create_byte(err);
    else if (from_key)
        t = sl_tokenizer_load(vocab, err);
    else
        t = sl_tokenizer_create_word(&text, c->vocab_size, c->valid_fraction, err);
    if (!t)
        goto out;
    int words = c->kind == SL_TOK_WORD;
    if (words && !from_key && sl_tokenizer_save(t, vocab, err))
        goto out;
    if (encode(t, &text, tokens, words ? vocab : NULL, c->vocab_size, err))
        goto out;
    c->ret->built++;
    c->ret->damaged += found < 0;
    rc = 0;
out:
    if (fd >= 0)
        close(fd);
    sl_tokenizer_destroy(t);
    sl_text_close(&text);
    return rc;
}

/* A token file of the user: used where it is. */
static int ready_made(const char *path, int64_t vocab_size, char ret[SL_DATASET_PATH],
                      struct sl_err *err)
{
    struct sl_tokens tok;
    char real[PATH_MAX];
    int rc;

    if (sl_tokens_open(&tok, path, err))
        return -1;
    rc = sl_tokens_check(&tok, vocab_size, path, err);
    sl_tokens_close(&tok);
    if (rc)
        return -1;
    if (!realpath(path, real))
        return sl_fail(err, SL_SYSTEM, "cannot read \"%s\": %s", path, strerror(errno));
    if (strlen(real) >= SL_DATASET_PATH)
        return sl_fail(err, SL_USAGE, "the path of \"%s\" has %zu bytes, at most %d can be used",
                       path, strlen(real), SL_DATASET_PATH - 1);
    memcpy(ret, real, strlen(real) + 1);
    return 0;
}

static int fill(const struct sl_job *job, const char *cache_dir, struct sl_dataset_files *ret,
                struct sl_err *err)
{
    const struct sl_data_spec *d = &job->data;
    int64_t vocab_size = sl_dataset_spec(job, ret).vocab_size;
    struct cache c
        = {cache_dir, d->tokenizer, vocab_size, d->valid && *d->valid ? 0 : d->valid_fraction, ret};
    uint64_t train_key, key;

    if (vocab_size < 1 || vocab_size > SL_TOKENS_MAX_VOCAB
        || (d->tokenizer == SL_TOK_BYTE && vocab_size < 256)) {
        sl_fail(err, SL_USAGE, "data.vocab_size is %" PRId64 ", must be from %d to %d", vocab_size,
                d->tokenizer == SL_TOK_BYTE ? 256 : 1, SL_TOKENS_MAX_VOCAB);
        return sl_hint(err, "Tokens are stored in 16 bits.");
    }
    if (d->tokenizer == SL_TOK_UINT16) {
        if (ready_made(d->train, vocab_size, ret->train, err))
            return sl_within(err, "data.train");
        if (d->valid && *d->valid && ready_made(d->valid, vocab_size, ret->valid, err))
            return sl_within(err, "data.valid");
        return 0;
    }
    if (sl_fs_mkdirs(cache_dir, 0777, err)) {
        sl_within(err, "cache of tokens");
        return sl_hint(err, "%s", remedy);
    }
    if (one(&c, d->train, 0, &train_key, ret->train, err))
        return sl_within(err, "data.train");
    if (d->valid && *d->valid
        && one(&c, d->valid, d->tokenizer == SL_TOK_WORD ? train_key : 0, &key, ret->valid, err))
        return sl_within(err, "data.valid");
    return 0;
}

int sl_dataset_prepare(const struct sl_job *job, const char *cache_dir,
                       struct sl_dataset_files *ret, struct sl_err *err)
{
    struct sl_dataset_spec spec;
    struct sl_dataset *ds;

    memset(ret, 0, sizeof *ret);
    if (fill(job, cache_dir, ret, err))
        return -1;
    spec = sl_dataset_spec(job, ret);
    ds = sl_dataset_open(&spec, err);
    if (!ds)
        return sl_within(err, "data.train \"%s\"", job->data.train);
    sl_dataset_close(ds);
    return 0;
}
