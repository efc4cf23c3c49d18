#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "executor/data/tokenizer.h"
#include "tests/unit/data/tmp.h"

struct got {
    uint16_t v[20000];
    int64_t n;
};

static int take(void *arg, const uint16_t *v, int64_t n, struct sl_err *err)
{
    struct got *g = arg;

    (void)err;
    assert_true(g->n + n <= 20000);
    memcpy(g->v + g->n, v, (size_t)n * sizeof *v);
    g->n += n;
    return 0;
}

static struct sl_text of(const char *s)
{
    return (struct sl_text){(const unsigned char *)s, strlen(s)};
}

static void expect(const struct sl_tokenizer *t, const char *text, const char *words)
{
    static struct got g;
    struct sl_text x = of(text);
    char out[1000] = "";

    g.n = 0;
    assert_int_equal(sl_tokenizer_encode(t, &x, take, &g, NULL), 0);
    assert_int_equal(sl_tokenizer_count(SL_TOK_WORD, &x), g.n);
    for (int64_t i = 0; i < g.n; i++) {
        size_t n;
        const char *w = sl_tokenizer_word(t, g.v[i], &n);

        assert_non_null(w);
        snprintf(out + strlen(out), sizeof out - strlen(out), "%s%.*s", i ? " " : "", (int)n, w);
    }
    assert_string_equal(out, words);
}

static void words_are_ranked_by_count_then_bytes(void **state)
{
    struct sl_text x = of("b a b c\na b d\nB \xc3\xa9\n");
    struct sl_tokenizer *t;
    size_t n;

    (void)state;
    /* b 3, a 2, then once each by bytes: B c d e-acute */
    static const char *const want[] = {"<unk>", "<eos>", "b", "a", "B", "c", "d", "\xc3\xa9"};
    t = sl_tokenizer_create_word(&x, 100, 0, NULL);
    assert_non_null(t);
    assert_int_equal(sl_tokenizer_size(t), 8);
    for (int i = 0; i < 8; i++) {
        const char *w = sl_tokenizer_word(t, i, &n);

        assert_int_equal(n, strlen(want[i]));
        assert_memory_equal(w, want[i], n);
    }
    assert_null(sl_tokenizer_word(t, 8, &n));
    assert_null(sl_tokenizer_word(t, -1, &n));
    sl_tokenizer_destroy(t);
    t = sl_tokenizer_create_word(&x, 4, 0, NULL); /* cut: the rest is unknown */
    assert_non_null(t);
    assert_int_equal(sl_tokenizer_size(t), 4);
    expect(t, "a b c d\n", "a b <unk> <unk> <eos>");
    sl_tokenizer_destroy(t);
}

static void lines_end_in_eos(void **state)
{
    struct sl_text x = of("a b\n");
    struct sl_tokenizer *t = sl_tokenizer_create_word(&x, 10, 0, NULL);

    (void)state;
    assert_non_null(t);
    expect(t, "a b\nb", "a b <eos> b <eos>");   /* a last line without newline */
    expect(t, "a b\nb\n", "a b <eos> b <eos>"); /* is the same with one */
    expect(t, "\n\na\r\n", "<eos> <eos> a <eos>");
    expect(t, " \t a  \v b ", "a b <eos>");
    expect(t, "a\n \n", "a <eos> <eos>");
    expect(t, "<eos> <unk> a\n", "<eos> <unk> a <eos>");
    expect(t, "aa\n", "<unk> <eos>");
    sl_tokenizer_destroy(t);
}

/* "x" comes in the validation tail only: it must not be in the vocabulary. */
static void the_vocabulary_is_the_training_part_s(void **state)
{
    struct sl_text x = of("a b c d\nx x x x\n"); /* ten tokens, the last five the second line */
    struct sl_tokenizer *t = sl_tokenizer_create_word(&x, 100, 0.5, NULL);

    (void)state;
    assert_non_null(t);
    assert_int_equal(sl_tokenizer_size(t), 6);
    expect(t, "a x\n", "a <unk> <eos>");
    sl_tokenizer_destroy(t);
    t = sl_tokenizer_create_word(&x, 100, 0.4, NULL);
    assert_int_equal(sl_tokenizer_size(t), 7);
    sl_tokenizer_destroy(t);
}

static void a_saved_vocabulary_loads_the_same(void **state)
{
    struct sl_text x = of("one two two three three three\n");
    struct sl_tokenizer *t = sl_tokenizer_create_word(&x, 100, 0, NULL), *u;
    struct tmp tmp;

    (void)state;
    tmp_init(&tmp);
    char *path = tmp_path(&tmp, "v.vocab");
    assert_int_equal(sl_tokenizer_save(t, path, NULL), 0);
    u = sl_tokenizer_load(path, NULL);
    assert_non_null(u);
    assert_int_equal(sl_tokenizer_size(u), 5);
    expect(u, "one three four\n", "one three <unk> <eos>");
    sl_tokenizer_destroy(t);
    sl_tokenizer_destroy(u);
    free(path);
    tmp_fini(&tmp);
}

static void a_wrong_vocabulary_is_refused_by_line(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"<unk>\nfoo\n", "v.vocab:2: not a vocabulary: the first lines must be"},
        {"<unk>\n<eos>\na\n\nb\n", "v.vocab:4: not a vocabulary: a line must be one word"},
        {"<unk>\n<eos>\na b\n", "v.vocab:3: not a vocabulary: a line must be one word"},
        {"<unk>\n<eos>\na\na\n", "v.vocab:4: not a vocabulary: a word comes twice"},
        {"<unk>\n", "v.vocab: not a vocabulary"},
    };
    struct tmp tmp;

    (void)state;
    tmp_init(&tmp);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sl_err err = {0};
        char *path = tmp_text(&tmp, "v.vocab", cases[i].text);

        assert_null(sl_tokenizer_load(path, &err));
        assert_int_equal(err.code, SL_USAGE);
        assert_non_null(strstr(err.msg, cases[i].message));
        free(path);
    }
    tmp_fini(&tmp);
}

static void sizes_out_of_range_are_refused(void **state)
{
    static const int64_t sizes[] = {-1, 0, 2, 65537};
    struct sl_text x = of("a b\n");

    (void)state;
    for (int i = 0; i < 4; i++) {
        struct sl_err err = {0};

        assert_null(sl_tokenizer_create_word(&x, sizes[i], 0, &err));
        assert_int_equal(err.code, SL_USAGE);
    }
}

/* More words than the first table holds, more tokens than a block: all come back in order. */
static void many_words_survive_growth_and_blocks(void **state)
{
    static struct got g;
    size_t room = 100000, n = 0;
    char *s = calloc(room, 1);
    struct sl_text x;
    struct sl_tokenizer *t;

    (void)state;
    assert_non_null(s);
    for (int i = 0; i < 9000; i++)
        n += (size_t)snprintf(s + n, room - n, "w%04d ", i);
    x = of(s);
    t = sl_tokenizer_create_word(&x, 65536, 0, NULL);
    assert_non_null(t);
    assert_int_equal(sl_tokenizer_size(t), 9002);
    g.n = 0;
    assert_int_equal(sl_tokenizer_encode(t, &x, take, &g, NULL), 0);
    assert_int_equal(g.n, 9001);
    for (int i = 0; i < 9000; i++)
        assert_int_equal(g.v[i], i + 2); /* once each: ranked by bytes, which is by number */
    assert_int_equal(g.v[9000], SL_TOKEN_EOS);
    sl_tokenizer_destroy(t);
    free(s);
}

static void bytes_are_their_own_tokens(void **state)
{
    static struct got g;
    unsigned char all[512];
    struct sl_text x = {all, sizeof all};
    struct sl_tokenizer *t = sl_tokenizer_create_byte(NULL);
    size_t n;

    (void)state;
    assert_non_null(t);
    for (int i = 0; i < 512; i++)
        all[i] = (unsigned char)(i * 5);
    g.n = 0;
    assert_int_equal(sl_tokenizer_encode(t, &x, take, &g, NULL), 0);
    assert_int_equal(g.n, 512);
    for (int i = 0; i < 512; i++)
        assert_int_equal(g.v[i], all[i]);
    assert_int_equal(*(const unsigned char *)sl_tokenizer_word(t, 200, &n), 200);
    assert_int_equal(n, 1);
    sl_tokenizer_destroy(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_ranked_by_count_then_bytes),
        cmocka_unit_test(lines_end_in_eos),
        cmocka_unit_test(the_vocabulary_is_the_training_part_s),
        cmocka_unit_test(a_saved_vocabulary_loads_the_same),
        cmocka_unit_test(a_wrong_vocabulary_is_refused_by_line),
        cmocka_unit_test(sizes_out_of_range_are_refused),
        cmocka_unit_test(many_words_survive_growth_and_blocks),
        cmocka_unit_test(bytes_are_their_own_tokens),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
