/* Texts and vocabulary files: UTF-8 is told from what is none, and words become tokens below the size. */
#include <string.h>
#include <unistd.h>

#include "common/str.h"
#include "executor/data/tokenizer.h"
#include "tests/fuzz/fuzz.h"

static int count(void *arg, const uint16_t *v, int64_t n, struct sl_err *err)
{
    int64_t *at = arg; /* [0] so far, [1] size */

    (void)err;
    for (int64_t i = 0; i < n; i++)
        FUZZ_MUST(v[i] < at[1]);
    at[0] += n;
    return 0;
}

static void encode(const struct sl_tokenizer *t, const struct sl_text *text)
{
    int64_t at[2] = {0, sl_tokenizer_size(t)};

    FUZZ_MUST(!sl_tokenizer_encode(t, text, count, at, NULL));
    FUZZ_MUST(at[0] == sl_tokenizer_count(sl_tokenizer_kind(t), text));
}

/* A vocabulary that we wrote is read back as the same words. */
static void round_trip(const struct sl_tokenizer *t)
{
    char path[80];
    struct sl_err err = {0};
    struct sl_tokenizer *again;

    snprintf(path, sizeof path, "%s/v", fuzz_folder());
    FUZZ_MUST(!sl_tokenizer_save(t, path, &err));
    again = sl_tokenizer_load(path, &err);
    if (!again)
        fprintf(stderr, "%s\n", err.msg);
    FUZZ_MUST(again && sl_tokenizer_size(again) == sl_tokenizer_size(t));
    sl_tokenizer_destroy(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct sl_text text = {data + 1, n ? n - 1 : 0};
    struct sl_err err = {0};
    struct sl_tokenizer *t;
    char path[40], line[64];
    int fd, utf8;
    char *copy;

    if (n < 2)
        return 0;
    fd = fuzz_file(text.data, text.size, path);
    utf8 = !sl_text_check_utf8(&text, path, &err);
    if (!utf8)
        FUZZ_MUST(err.code == SL_USAGE);
    if (utf8) {
        t = sl_tokenizer_create_word(&text, 3 + data[0], (data[0] % 4) * 0.25, &err);
        if (!t)
            FUZZ_MUST(err.code == SL_USAGE);
        if (t) {
            encode(t, &text);
            if (data[0] % 16 == 0)
                round_trip(t);
        }
        sl_tokenizer_destroy(t);
    }
    t = sl_tokenizer_create_byte(&err);
    FUZZ_MUST(t);
    encode(t, &text);
    sl_tokenizer_destroy(t);
    t = sl_tokenizer_load(path, &err); /* the same bytes as a vocabulary */
    if (!t)
        FUZZ_MUST(err.code == SL_USAGE);
    else if (utf8)
        encode(t, &text);
    sl_tokenizer_destroy(t);
    close(fd);
    copy = malloc(n);
    FUZZ_MUST(copy);
    memcpy(copy, data + 1, n - 1);
    copy[n - 1] = '\0';
    FUZZ_MUST(sl_str_escape(line, 4 + data[0] % 60, copy) < (size_t)(4 + data[0] % 60));
    free(copy);
    return 0;
}
