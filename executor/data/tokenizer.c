#include "executor/data/tokenizer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/fs.h"
#include "common/mem.h"
#include "executor/data/tokens.h"
#include "executor/data/xxh64.h"

struct word {
    const char *p;
    uint32_t n;
    int64_t count;
};

/* Words by open addressing: slot holds index + 1 of a word. */
struct table {
    struct word *v;
    int64_t n, room;
    uint32_t *slot;
    uint64_t slots; /* a power of two, more than twice n */
};

struct sl_tokenizer {
    enum sl_tokenizer_kind kind;
    struct table words; /* word: token = index */
    char *store;        /* the words' bytes */
    char bytes[256];    /* byte: token = value */
};

static const struct word specials[] = {{"<unk>", 5, 0}, {"<eos>", 5, 0}};
enum { SPECIALS = 2, BLOCK = 4096 };

static void table_fini(struct table *t)
{
    free(t->v);
    free(t->slot);
}

static uint32_t *find_slot(const struct table *t, const char *p, size_t n)
{
    uint64_t at = sl_xxh64(p, n) & (t->slots - 1);

    for (;; at = (at + 1) & (t->slots - 1)) {
        uint32_t *s = &t->slot[at];

        if (!*s || (t->v[*s - 1].n == n && !memcmp(t->v[*s - 1].p, p, n)))
            return s;
    }
}

static int grow(struct table *t)
{
    int64_t room = t->room ? 2 * t->room : 1024;
    struct word *v = sl_resize(t->v, (size_t)room, sizeof *v);

    if (!v)
        return -1;
    t->v = v;
    uint32_t *slot = sl_calloc((size_t)room * 4, sizeof *slot);
    if (!slot)
        return -1;
    free(t->slot);
    t->slot = slot;
    t->room = room;
    t->slots = (uint64_t)room * 4;
    for (int64_t i = 0; i < t->n; i++)
        *find_slot(t, t->v[i].p, t->v[i].n) = (uint32_t)i + 1;
    return 0;
}

/* The word's place, added when new; NULL: out of memory. */
static struct word *table_get(struct table *t, const char *p, size_t n)
{
    if (t->n == t->room && grow(t))
        return NULL;
    uint32_t *s = find_slot(t, p, n);
    if (!*s) {
        t->v[t->n++] = (struct word){p, (uint32_t)n, 0};
        *s = (uint32_t)t->n;
    }
    return &t->v[*s - 1];
}

static int space(unsigned char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r'); /* newline is looked at before */
}

/*
 * The next token from *at: 1 and its bytes, or 0 at the end. A line's end is "<eos>", also the
 * file's end when its last line has no newline.
 */
static int next_word(const struct sl_text *text, size_t *at, const char **p, size_t *n)
{
    const unsigned char *d = text->data;
    size_t i = *at, size = text->size;

    while (i < size && d[i] != '\n' && space(d[i]))
        i++;
    if (i > size || (i == size && d[size - 1] == '\n'))
        return 0;
    if (i == size || d[i] == '\n') {
        *p = specials[SL_TOKEN_EOS].p;
        *n = specials[SL_TOKEN_EOS].n;
        *at = i == size ? size + 1 : i + 1; /* past the end: the last line is closed */
        return 1;
    }
    *p = (const char *)d + i;
    while (i < size && !space(d[i]))
        i++;
    *n = (size_t)((const char *)d + i - *p);
    *at = i;
    return 1;
}

static void *no_memory(struct sl_err *err)
{
    sl_fail(err, SL_SYSTEM, "cannot hold the vocabulary: %s", strerror(errno));
    return NULL;
}

struct sl_tokenizer *sl_tokenizer_create_byte(struct sl_err *err)
{
    struct sl_tokenizer *t = sl_calloc(1, sizeof *t);

    if (!t)
        return no_memory(err);
    t->kind = SL_TOK_BYTE;
    for (int i = 0; i < 256; i++)
        t->bytes[i] = (char)i;
    return t;
}

/* A word tokenizer of n words; copies their bytes. */
static struct sl_tokenizer *from_words(const struct word *v, int64_t n, struct sl_err *err)
{
    struct sl_tokenizer *t = sl_calloc(1, sizeof *t);
    size_t total = 0;

    if (!t)
        return no_memory(err);
    t->kind = SL_TOK_WORD;
    for (int64_t i = 0; i < n; i++)
        total += v[i].n;
    t->store = sl_calloc(total + 1, 1);
    if (!t->store)
        goto fail;
    char *to = t->store;
    for (int64_t i = 0; i < n; i++, to += v[i - 1].n) {
        memcpy(to, v[i].p, v[i].n);
        if (!table_get(&t->words, to, v[i].n))
            goto fail;
    }
    return t;
fail:
    no_memory(err);
    sl_tokenizer_destroy(t);
    return NULL;
}

static int by_count(const void *a, const void *b)
{
    const struct word *x = a, *y = b;
    uint32_t n = x->n < y->n ? x->n : y->n;
    int c;

    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    c = memcmp(x->p, y->p, n);
    return c ? c : x->n < y->n ? -1 : 1; /* words differ, so the order is total */
}

struct sl_tokenizer *sl_tokenizer_create_word(const struct sl_text *text, int64_t vocab_size,
                                              double valid_fraction, struct sl_err *err)
{
    struct sl_tokenizer *t = NULL;
    struct table words = {0};
    const char *p;
    size_t at = 0, n;

    if (vocab_size <= SPECIALS || vocab_size > SL_TOKENS_MAX_VOCAB) {
        sl_fail(err, SL_USAGE, "a word vocabulary of %" PRId64 " words: must be from 3 to %d",
                vocab_size, SL_TOKENS_MAX_VOCAB);
        sl_hint(err, "Tokens are stored in 16 bits; 10,000 to 50,000 words are usual.");
        return NULL;
    }
    int64_t left = sl_tokens_cut(sl_tokenizer_count(SL_TOK_WORD, text), valid_fraction);
    for (int i = 0; i < SPECIALS; i++)
        if (!table_get(&words, specials[i].p, specials[i].n)) {
            no_memory(err);
            goto out;
        }
    for (; left > 0 && next_word(text, &at, &p, &n); left--) {
        if (n > UINT32_MAX) {
            sl_fail(err, SL_USAGE, "a word of %zu bytes: this text has no white space", n);
            goto out;
        }
        struct word *w = table_get(&words, p, n);
        if (!w) {
            no_memory(err);
            goto out;
        }
        w->count++;
    }
    qsort(words.v + SPECIALS, (size_t)(words.n - SPECIALS), sizeof *words.v, by_count);
    t = from_words(words.v, words.n < vocab_size ? words.n : vocab_size, err);
out:
    table_fini(&words);
    return t;
}

struct sl_tokenizer *sl_tokenizer_load(const char *path, struct sl_err *err)
{
    struct sl_tokenizer *t = NULL;
    struct table words = {0};
    struct sl_text text;
    size_t at = 0;

    if (sl_text_open(&text, path, err))
        return NULL;
    for (int64_t line = 1; at < text.size; line++) {
        const char *p = (const char *)text.data + at, *end = memchr(p, '\n', text.size - at);
        size_t n = end ? (size_t)(end - p) : text.size - at;
        int special = line <= SPECIALS, bad = !n || n > UINT32_MAX;

        for (size_t i = 0; i < n; i++)
            bad |= space((unsigned char)p[i]);
        if (special)
            bad |= n != specials[line - 1].n || memcmp(p, specials[line - 1].p, n);
        if (bad || line > SL_TOKENS_MAX_VOCAB) {
            sl_fail(err, SL_USAGE, "%s:%" PRId64 ": not a vocabulary: %s", path, line,
                    special ? "the first lines must be <unk> and <eos>"
                    : bad   ? "a line must be one word"
                            : "more than 65536 words");
            goto out;
        }
        if (!table_get(&words, p, n)) {
            no_memory(err);
            goto out;
        }
        if (words.n != line) {
            sl_fail(err, SL_USAGE, "%s:%" PRId64 ": not a vocabulary: a word comes twice", path,
                    line);
            goto out;
        }
        at += n + 1;
    }
    if (words.n < SPECIALS)
        sl_fail(err, SL_USAGE, "%s: not a vocabulary: <unk> and <eos> are missing", path);
    else
        t = from_words(words.v, words.n, err);
out:
    table_fini(&words);
    sl_text_close(&text);
    return t;
}

int sl_tokenizer_save(const struct sl_tokenizer *t, const char *path, struct sl_err *err)
{
    struct sl_buf b;
    int rc;

    sl_buf_init(&b, SIZE_MAX / 4); /* the words are in memory: their copy has their size */
    for (int64_t i = 0; i < t->words.n; i++) {
        sl_buf_add(&b, t->words.v[i].p, t->words.v[i].n);
        sl_buf_char(&b, '\n');
    }
    rc = sl_buf_check(&b, err) ? -1 : sl_fs_write_atomic(path, sl_buf_text(&b), b.len, 0644, err);
    sl_buf_fini(&b);
    return rc;
}

void sl_tokenizer_destroy(struct sl_tokenizer *t)
{
    if (!t)
        return;
    table_fini(&t->words);
    free(t->store);
    free(t);
}

int64_t sl_tokenizer_size(const struct sl_tokenizer *t)
{
    return t->kind == SL_TOK_BYTE ? 256 : t->words.n;
}

enum sl_tokenizer_kind sl_tokenizer_kind(const struct sl_tokenizer *t)
{
    return t->kind;
}

int64_t sl_tokenizer_count(enum sl_tokenizer_kind kind, const struct sl_text *text)
{
    int64_t count = 0;
    const char *p;
    size_t at = 0, n;

    if (kind == SL_TOK_BYTE)
        return (int64_t)text->size;
    while (next_word(text, &at, &p, &n))
        count++;
    return count;
}

int sl_tokenizer_encode(const struct sl_tokenizer *t, const struct sl_text *text,
                        sl_token_sink_f *sink, void *arg, struct sl_err *err)
{
    uint16_t block[BLOCK];
    int64_t k = 0;
    const char *p;
    size_t at = 0, n;

    if (t->kind == SL_TOK_BYTE) {
        for (size_t i = 0; i < text->size; i++) {
            block[k++] = text->data[i];
            if (k == BLOCK) {
                if (sink(arg, block, k, err))
                    return -1;
                k = 0;
            }
        }
        return k ? sink(arg, block, k, err) : 0;
    }
    while (next_word(text, &at, &p, &n)) {
        uint32_t s = *find_slot(&t->words, p, n);

        block[k++] = (uint16_t)(s ? s - 1 : SL_TOKEN_UNK);
        if (k == BLOCK) {
            if (sink(arg, block, k, err))
                return -1;
            k = 0;
        }
    }
    return k ? sink(arg, block, k, err) : 0;
}

const char *sl_tokenizer_word(const struct sl_tokenizer *t, int64_t token, size_t *n)
{
    if (token < 0 || token >= sl_tokenizer_size(t))
        return NULL;
    *n = t->kind == SL_TOK_BYTE ? 1 : t->words.v[token].n;
    return t->kind == SL_TOK_BYTE ? &t->bytes[token] : t->words.v[token].p;
}
