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

#include "executor/data/tokens.h"
#include "executor/job.h"
#include "tests/unit/data/tmp.h"

static const uint16_t some[] = {3, 1, 4, 1, 5, 9, 2, 6, 300};
enum { SOME = 9 };

/* A file of ours with `some` in it; caller frees the path. */
static char *write_some(const struct tmp *tmp)
{
    char *path = tmp_path(tmp, "some.tokens");
    struct sl_tokens_writer *w = sl_tokens_writer_open(path, 301, SL_TOK_WORD, 77, NULL);

    assert_non_null(w);
    assert_int_equal(sl_tokens_writer_put(w, some, 4, NULL), 0);
    assert_int_equal(access(path, F_OK), -1); /* not there before it is complete */
    assert_int_equal(sl_tokens_writer_put(w, some + 4, SOME - 4, NULL), 0);
    assert_int_equal(sl_tokens_writer_commit(w, NULL), 0);
    return path;
}

static void a_written_file_reads_back(void **state)
{
    struct tmp tmp;
    struct sl_tokens t;

    (void)state;
    tmp_init(&tmp);
    char *path = write_some(&tmp);
    assert_int_equal(sl_tokens_open(&t, path, NULL), 0);
    assert_int_equal(t.count, SOME);
    assert_int_equal(t.vocab_size, 301);
    assert_int_equal(t.tokenizer, SL_TOK_WORD);
    assert_int_equal(t.vocab_hash, 77);
    assert_memory_equal(t.v, some, sizeof some);
    assert_int_equal(sl_tokens_check(&t, 301, path, NULL), 0);
    sl_tokens_close(&t);
    free(path);
    tmp_fini(&tmp);
}

static void a_bare_array_reads_as_it_is(void **state)
{
    struct tmp tmp;
    struct sl_tokens t;
    struct sl_err err = {0};

    (void)state;
    tmp_init(&tmp);
    char *path = tmp_write(&tmp, "some.bin", some, sizeof some);
    assert_int_equal(sl_tokens_open(&t, path, NULL), 0);
    assert_int_equal(t.count, SOME);
    assert_int_equal(t.vocab_size, 0);
    assert_memory_equal(t.v, some, sizeof some);
    assert_int_equal(sl_tokens_check(&t, 301, path, NULL), 0);
    assert_int_equal(sl_tokens_check(&t, 9, path, &err), -1);
    assert_int_equal(err.code, SL_USAGE);
    assert_non_null(strstr(err.msg, "token 9 at position 5 is not below vocab_size 9"));
    sl_tokens_close(&t);
    free(path);
    tmp_fini(&tmp);
}

/* Every length below the whole is refused, in words that say what is wrong. */
static void a_truncated_file_is_refused(void **state)
{
    struct tmp tmp;
    struct sl_tokens t;

    (void)state;
    tmp_init(&tmp);
    for (long n = 64 + 2 * SOME - 1; n >= 8; n--) {
        struct sl_err err = {0};
        char *path = write_some(&tmp);

        assert_int_equal(truncate(path, n), 0);
        assert_int_equal(sl_tokens_open(&t, path, &err), -1);
        assert_int_equal(err.code, SL_USAGE);
        assert_non_null(strstr(err.msg, n < 64 ? "ends inside its header" : "promises 9 tokens"));
        unlink(path);
        free(path);
    }
    tmp_fini(&tmp);
}

static void an_odd_bare_array_is_refused(void **state)
{
    struct tmp tmp;
    struct sl_tokens t;
    struct sl_err err = {0};

    (void)state;
    tmp_init(&tmp);
    char *path = tmp_write(&tmp, "odd.bin", some, 7);
    assert_int_equal(sl_tokens_open(&t, path, &err), -1);
    assert_non_null(strstr(err.msg, "7 bytes are no whole number"));
    assert_null(t.v);
    free(path);
    tmp_fini(&tmp);
}

/* Flip each byte of the file in turn: open or check notices, except in bytes that mean nothing. */
static void damage_is_noticed(void **state)
{
    struct tmp tmp;
    struct sl_tokens t;

    (void)state;
    tmp_init(&tmp);
    char *path = write_some(&tmp);
    for (long at = 8; at < 64 + 2 * SOME; at++) {
        /* vocab_size too large for the tokens is no damage seen here; tokenizer, zeros: no meaning
         */
        if ((at >= 12 && at < 16) || (at >= 32 && at < 64))
            continue;
        FILE *f = fopen(path, "r+b");
        int c, noticed;

        assert_non_null(f);
        fseek(f, at, SEEK_SET);
        c = fgetc(f);
        fseek(f, at, SEEK_SET);
        fputc(c ^ 1, f);
        fclose(f);
        noticed = sl_tokens_open(&t, path, NULL) || sl_tokens_check(&t, 301, path, NULL);
        sl_tokens_close(&t);
        assert_true(noticed);
        f = fopen(path, "r+b");
        assert_non_null(f);
        fseek(f, at, SEEK_SET);
        fputc(c, f);
        fclose(f);
    }
    free(path);
    tmp_fini(&tmp);
}

static void an_aborted_or_refused_write_leaves_nothing(void **state)
{
    static const uint16_t big[] = {300};
    struct tmp tmp;
    struct sl_err err = {0};

    (void)state;
    tmp_init(&tmp);
    char *path = tmp_path(&tmp, "x.tokens");
    struct sl_tokens_writer *w = sl_tokens_writer_open(path, 300, SL_TOK_BYTE, 0, NULL);
    assert_non_null(w);
    assert_int_equal(sl_tokens_writer_put(w, big, 1, &err), -1);
    assert_int_equal(err.code, SL_USAGE);
    sl_tokens_writer_abort(w);
    assert_int_equal(rmdir(tmp.dir), 0); /* empty */
    assert_null(sl_tokens_writer_open(path, 300, SL_TOK_BYTE, 0, &err));
    assert_int_equal(err.code, SL_SYSTEM);
    assert_non_null(strstr(err.msg, "x.tokens"));
    assert_true(*err.hint);
    free(path);
}

static void the_cut_is_exact(void **state)
{
    (void)state;
    assert_int_equal(sl_tokens_cut(1000, 0), 1000);
    assert_int_equal(sl_tokens_cut(1000, 0.1), 900);
    assert_int_equal(sl_tokens_cut(9, 0.1), 9);
    assert_int_equal(sl_tokens_cut(10, 0.99), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_written_file_reads_back),
        cmocka_unit_test(a_bare_array_reads_as_it_is),
        cmocka_unit_test(a_truncated_file_is_refused),
        cmocka_unit_test(an_odd_bare_array_is_refused),
        cmocka_unit_test(damage_is_noticed),
        cmocka_unit_test(an_aborted_or_refused_write_leaves_nothing),
        cmocka_unit_test(the_cut_is_exact),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
