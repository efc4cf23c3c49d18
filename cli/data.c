/* data.c - make token files from text, and look into them */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/commands.h"
#include "common/json.h"
#include "executor/data/tokenizer.h"
#include "executor/data/tokens.h"
#include "executor/data/xxh64.h"

enum { SHOWN = 32, MOST_PATH = 4096 };

static const char *const tokenizers[] = {"byte", "word", NULL};

static const struct sl_opt options[] = {
    {.name = "tokenizer",
     .type = SL_OPT_TEXT,
     .arg = "byte|word",
     .words = tokenizers,
     .help = "build: how text becomes tokens; default: byte."},
    {.name = "vocab-size",
     .type = SL_OPT_INT,
     .arg = "N",
     .min = 3,
     .max = SL_TOKENS_MAX_VOCAB,
     .help = "build: words to keep, <unk> and <eos> included; inspect: the limit of tokens."},
    {.name = "out",
     .letter = 'o',
     .type = SL_OPT_TEXT,
     .arg = "FILE|DIR",
     .help = "build: where to write; in a folder: NAME.tokens; default: FILE.tokens."},
    {.name = "context",
     .type = SL_OPT_INT,
     .arg = "N",
     .min = 1,
     .max = 1 << 20,
     .help = "inspect: tokens of a sample, to count samples; default: 256."},
    {.name = "json", .help = "inspect: print JSON."},
};

/* "x.tokens" has its words in "x.vocab"; another name has ".vocab" behind it. */
static int vocab_path(const char *tokens, char ret[MOST_PATH], struct sl_err *err)
{
    size_t n = strlen(tokens);

    if (n > 7 && !strcmp(tokens + n - 7, ".tokens"))
        n -= 7;
    if (n + 7 > MOST_PATH)
        return sl_fail(err, SL_USAGE, "a path of %zu bytes is too long", n);
    memcpy(ret, tokens, n);
    memcpy(ret + n, ".vocab", 7);
    return 0;
}

/* A missing folder is a name that was mistyped, not a machine that fails. */
static int need_folder(const char *path, struct sl_err *err)
{
    const char *slash = strrchr(path, '/');
    char dir[MOST_PATH];

    if (!slash || slash == path)
        return 0;
    snprintf(dir, sizeof dir, "%.*s", (int)(slash - path), path);
    if (!access(dir, F_OK) || errno != ENOENT)
        return 0;
    sl_fail(err, SL_USAGE, "there is no folder \"%s\" to write to", dir);
    return sl_hint(err, "Make it first, or name another one with --out.");
}

static int out_path(const char *file, const char *out, char ret[MOST_PATH], struct sl_err *err)
{
    const char *slash = strrchr(file, '/'), *base = slash ? slash + 1 : file;
    struct stat st;
    int n;

    if (!out)
        n = snprintf(ret, MOST_PATH, "%s.tokens", file);
    else if (!stat(out, &st) && S_ISDIR(st.st_mode))
        n = snprintf(ret, MOST_PATH, "%s/%s.tokens", out, base);
    else
        n = snprintf(ret, MOST_PATH, "%s", out);
    if (n < 0 || n >= MOST_PATH)
        return sl_fail(err, SL_USAGE, "the path to write is too long");
    return need_folder(ret, err);
}

/* The vocabulary first: a token file that is there has its words beside it. */
static int save_words(const struct sl_tokenizer *t, const char *tokens, uint64_t *hash,
                      struct sl_err *err)
{
    char path[MOST_PATH];
    struct sl_text words;

    *hash = 0;
    if (sl_tokenizer_kind(t) != SL_TOK_WORD)
        return 0;
    if (vocab_path(tokens, path, err) || sl_tokenizer_save(t, path, err)
        || sl_text_open(&words, path, err))
        return -1;
    *hash = sl_xxh64(words.data, words.size);
    sl_text_close(&words);
    return 0;
}

static int write_tokens(const struct sl_tokenizer *t, const struct sl_text *text, const char *out,
                        struct sl_err *err)
{
    struct sl_tokens_writer *w;
    uint64_t hash;

    if (save_words(t, out, &hash, err))
        return -1;
    w = sl_tokens_writer_open(out, sl_tokenizer_size(t), sl_tokenizer_kind(t), hash, err);
    if (!w)
        return -1;
    if (sl_tokenizer_encode(t, text, sl_tokens_writer_put, w, err)) {
        sl_tokens_writer_abort(w);
        return -1;
    }
    return sl_tokens_writer_commit(w, err);
}

static int build(const struct sl_args *args, const char *file, struct sl_err *err)
{
    int word = !strcmp(sl_args_text(args, "tokenizer", "byte"), "word");
    int64_t size = sl_args_int(args, "vocab-size", 0);
    struct sl_tokenizer *t = NULL;
    struct sl_text text = {0};
    char out[MOST_PATH];
    struct sl_buf b;
    int rc = -1;

    sl_buf_init(&b, 1 << 16);
    if (word && !size) {
        sl_fail(err, SL_USAGE, "--tokenizer word needs --vocab-size N");
        sl_hint(err, "10,000 to 50,000 words are usual; WikiText-2 has 33,278.");
        goto out;
    }
    if (!word && size && size != 256) {
        sl_fail(err, SL_USAGE, "--vocab-size is %" PRId64 "; the tokenizer \"byte\" has 256", size);
        goto out;
    }
    if (out_path(file, sl_args_text(args, "out", NULL), out, err) || sl_text_open(&text, file, err)
        || sl_tokens_refuse(&text, file, err) || (word && sl_text_check_utf8(&text, file, err)))
        goto out;
    t = word ? sl_tokenizer_create_word(&text, size, 0, err) : sl_tokenizer_create_byte(err);
    if (!t || write_tokens(t, &text, out, err))
        goto out;
    sl_buf_printf(&b, "%s: %" PRId64 " tokens, vocabulary %" PRId64 "\n", out,
                  sl_tokenizer_count(word ? SL_TOK_WORD : SL_TOK_BYTE, &text),
                  sl_tokenizer_size(t));
    rc = sl_print(&b, err);
out:
    sl_tokenizer_destroy(t);
    sl_text_close(&text);
    sl_buf_fini(&b);
    return rc;
}

/* What inspect says. */
struct view {
    const char *path;
    const struct sl_tokens *tok;
    const struct sl_tokenizer *t; /* NULL: the tokens' meaning is not known */
    int64_t largest, context;
};

static const char *kind_name(const struct view *v)
{
    if (!v->tok->vocab_size)
        return "unknown (a bare array of uint16)";
    return v->tok->tokenizer == SL_TOK_BYTE   ? "byte"
           : v->tok->tokenizer == SL_TOK_WORD ? "word"
                                              : "unknown";
}

static void decoded(const struct view *v, struct sl_buf *b)
{
    int64_t n = v->tok->count < SHOWN ? v->tok->count : SHOWN;

    for (int64_t i = 0; i < n; i++) {
        size_t len;
        const char *w = sl_tokenizer_word(v->t, v->tok->v[i], &len);

        if (i && v->tok->tokenizer == SL_TOK_WORD)
            sl_buf_char(b, ' ');
        if (w)
            sl_buf_add(b, w, len);
    }
}

static void as_json(const struct view *v, struct sl_buf *b)
{
    int64_t n = v->tok->count < SHOWN ? v->tok->count : SHOWN;
    struct sl_buf text;
    struct sl_json j;

    sl_json_init(&j, b);
    sl_json_object(&j);
    sl_json_put_str(&j, "file", v->path);
    sl_json_put_str(&j, "tokenizer",
                    !v->tok->vocab_size || v->tok->tokenizer == SL_TOK_UINT16 ? NULL
                                                                              : kind_name(v));
    sl_json_put_int(&j, "tokens", v->tok->count);
    sl_json_key(&j, "vocab_size");
    if (v->tok->vocab_size)
        sl_json_int(&j, v->tok->vocab_size);
    else
        sl_json_null(&j);
    sl_json_put_int(&j, "largest_token", v->largest);
    sl_json_put_int(&j, "context", v->context);
    sl_json_put_int(&j, "samples", (v->tok->count - 1) / v->context);
    sl_json_key(&j, "first_tokens");
    sl_json_array(&j);
    for (int64_t i = 0; i < n; i++)
        sl_json_int(&j, v->tok->v[i]);
    sl_json_end(&j);
    sl_json_key(&j, "first_text");
    if (v->t) {
        sl_buf_init(&text, 1 << 20);
        decoded(v, &text);
        sl_json_strn(&j, sl_buf_text(&text), text.len);
        sl_buf_fini(&text);
    } else {
        sl_json_null(&j);
    }
    sl_json_end(&j);
    sl_buf_char(b, '\n');
}

static void as_text(const struct view *v, struct sl_buf *b)
{
    int64_t n = v->tok->count < SHOWN ? v->tok->count : SHOWN;
    struct sl_buf text;

    sl_buf_printf(b, "file           %s\ntokenizer      %s\ntokens         %" PRId64 "\n", v->path,
                  kind_name(v), v->tok->count);
    if (v->tok->vocab_size)
        sl_buf_printf(b, "vocabulary     %" PRId64 "\n", v->tok->vocab_size);
    sl_buf_printf(b,
                  "largest token  %" PRId64 "\nsamples        %" PRId64 " of context %" PRId64
                  "\nfirst tokens  ",
                  v->largest, (v->tok->count - 1) / v->context, v->context);
    for (int64_t i = 0; i < n; i++)
        sl_buf_printf(b, " %d", v->tok->v[i]);
    sl_buf_char(b, '\n');
    if (!v->t)
        return;
    sl_buf_init(&text, 1 << 20);
    decoded(v, &text);
    sl_buf_str(b, "first text     ");
    for (size_t i = 0; i < text.len; i++) { /* a terminal gets no control characters from a file */
        unsigned char c = (unsigned char)text.p[i];

        if (c == '\n')
            sl_buf_str(b, "\\n");
        else if (c < 0x20 || c == 0x7f || (c >= 0x80 && v->tok->tokenizer == SL_TOK_BYTE)
                 || (c == 0xc2 && (unsigned char)text.p[i + 1] < 0xa0)) /* U+0080 to U+009F */
            sl_buf_printf(b, "\\x%02x", c);
        else
            sl_buf_char(b, (char)c);
    }
    sl_buf_char(b, '\n');
    sl_buf_fini(&text);
}

/* The words of the tokens: NULL with no error for files that do not say. */
static int open_words(const struct sl_tokens *tok, const char *file, struct sl_tokenizer **ret,
                      struct sl_err *err)
{
    char path[MOST_PATH];
    struct sl_text words;
    uint64_t hash;

    *ret = NULL;
    if (tok->vocab_size && tok->tokenizer == SL_TOK_BYTE) {
        *ret = sl_tokenizer_create_byte(err);
        return *ret ? 0 : -1;
    }
    if (!tok->vocab_hash)
        return 0;
    if (vocab_path(file, path, err) || sl_text_open(&words, path, err))
        return sl_within(err, "the vocabulary of \"%s\"", file);
    hash = sl_xxh64(words.data, words.size);
    sl_text_close(&words);
    if (hash != tok->vocab_hash) {
        sl_fail(err, SL_USAGE, "\"%s\" is not the vocabulary that \"%s\" was made with", path,
                file);
        return sl_hint(err, "Make both anew with shardlaunch data build.");
    }
    *ret = sl_tokenizer_load(path, err);
    return *ret ? 0 : -1;
}

static int inspect(const struct sl_args *args, const char *file, struct sl_err *err)
{
    struct sl_tokenizer *t = NULL;
    struct sl_tokens tok;
    struct sl_buf b;
    int rc = -1;

    sl_buf_init(&b, 1 << 22);
    if (sl_tokens_open(&tok, file, err))
        goto out;
    int64_t limit = tok.vocab_size ? tok.vocab_size : SL_TOKENS_MAX_VOCAB;
    if (sl_tokens_check(&tok, sl_args_int(args, "vocab-size", limit), file, err)
        || open_words(&tok, file, &t, err))
        goto out;
    struct view v
        = {.path = file, .tok = &tok, .t = t, .context = sl_args_int(args, "context", 256)};
    for (int64_t i = 0; i < tok.count; i++)
        v.largest = tok.v[i] > v.largest ? tok.v[i] : v.largest;
    if (sl_args_given(args, "json"))
        as_json(&v, &b);
    else
        as_text(&v, &b);
    rc = sl_print(&b, err);
out:
    sl_tokens_close(&tok);
    sl_tokenizer_destroy(t);
    sl_buf_fini(&b);
    return rc;
}

static int run(const struct sl_args *args, struct sl_err *err)
{
    int n;
    const char *const *operand = sl_args_operands(args, &n);

    if (!strcmp(operand[0], "build"))
        return build(args, operand[1], err);
    if (!strcmp(operand[0], "inspect"))
        return inspect(args, operand[1], err);
    sl_fail(err, SL_USAGE, "data: \"%s\" is not something to do", operand[0]);
    return sl_hint(err, "Use shardlaunch data build FILE or shardlaunch data inspect FILE.");
}

const struct sl_cmd sl_cmd_data = {
    .name = "data",
    .operands = "build|inspect FILE",
    .least = 2,
    .most = 2,
    .summary = "Make a file of tokens from a text, or look into one.",
    .details
    = "A run tokenises its text by itself and keeps the tokens in the state folder; build is "
      "for a text that many runs read, with tokenizer = \"uint16\" in their job files, and "
      "for a look at what a tokenizer does. inspect reads these files and bare arrays of "
      "uint16, and checks every token.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .run = run,
};
