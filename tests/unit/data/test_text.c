#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "executor/data/text.h"
#include "executor/data/xxh64.h"
#include "tests/unit/data/tmp.h"

/* Values of the reference implementation (python-xxhash 3). */
static void xxh64_gives_the_reference_values(void **state)
{
    unsigned char b[1000];
    struct sl_xxh64 h;

    (void)state;
    for (int i = 0; i < 1000; i++)
        b[i] = (unsigned char)(i * 7 % 256);
    assert_true(sl_xxh64("", 0) == 0xef46db3751d8e999u);
    assert_true(sl_xxh64("a", 1) == 0xd24ec4f1a98c6e5bu);
    assert_true(sl_xxh64("abc", 3) == 0x44bc2cf5ad770999u);
    assert_true(sl_xxh64("Nobody inspects the spammish repetition", 39) == 0xfbcea83c8a378bf1u);
    assert_true(sl_xxh64(b, 1000) == 0x25275608a9cfc168u);
    for (size_t step = 1; step < 80; step++) { /* in pieces of any size */
        sl_xxh64_start(&h);
        for (size_t i = 0; i < 1000; i += step)
            sl_xxh64_add(&h, b + i, i + step < 1000 ? step : 1000 - i);
        assert_true(sl_xxh64_end(&h) == 0x25275608a9cfc168u);
    }
}

static void good_characters_pass(void **state)
{
    /* The first and last characters of each length, and around the surrogates. */
    static const char good[] = "\x01 \x7f \xc2\x80 \xdf\xbf \xe0\xa0\x80 \xef\xbf\xbf \xed\x9f\xbf "
                               "\xee\x80\x80 \xf0\x90\x80\x80 \xf4\x8f\xbf\xbf \r\n";
    struct sl_text t = {(const unsigned char *)good, sizeof good - 1};
    struct sl_err err = {0};

    (void)state;
    assert_int_equal(sl_text_check_utf8(&t, "x", &err), 0);
}

static void bad_bytes_are_named_with_line_column_and_offset(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"\x80", "a.txt:1:1: byte 0x80 at offset 0 is not UTF-8"},
        {"one\ntwo \xff", "a.txt:2:5: byte 0xff at offset 8 is not UTF-8"},
        {"\xc3\xa9\xc3\xa9\xc3", "a.txt:1:3: byte 0xc3 at offset 4 is not UTF-8"}, /* cut short */
        {"\n\n\xc0\x80", "a.txt:3:1: byte 0xc0 at offset 2 is not UTF-8"},         /* overlong */
        {"\xe0\x9f\xbf", "a.txt:1:1: byte 0xe0 at offset 0 is not UTF-8"},         /* overlong */
        {"x\xed\xa0\x80", "a.txt:1:2: byte 0xed at offset 1 is not UTF-8"},        /* surrogate */
        {"\xf0\x8f\xbf\xbf", "a.txt:1:1: byte 0xf0 at offset 0 is not UTF-8"},     /* overlong */
        {"\xf4\x90\x80\x80", "a.txt:1:1: byte 0xf4 at offset 0 is not UTF-8"},     /* too high */
        {"\xf5\x80\x80\x80", "a.txt:1:1: byte 0xf5 at offset 0 is not UTF-8"},
        {"\xe2\x82\x41", "a.txt:1:1: byte 0xe2 at offset 0 is not UTF-8"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sl_text t = {(const unsigned char *)cases[i].text, strlen(cases[i].text)};
        struct sl_err err = {0};

        assert_int_equal(sl_text_check_utf8(&t, "a.txt", &err), -1);
        assert_int_equal(err.code, SL_USAGE);
        assert_string_equal(err.msg, cases[i].message);
        assert_non_null(strstr(err.hint, "iconv"));
    }
}

static void what_is_no_text_is_refused(void **state)
{
    struct tmp tmp;
    struct sl_text t;
    struct sl_err err = {0};
    char *empty, *pipe;

    (void)state;
    tmp_init(&tmp);
    empty = tmp_text(&tmp, "empty", "");
    pipe = tmp_path(&tmp, "pipe");
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_int_equal(sl_text_open(&t, empty, &err), -1);
    assert_int_equal(err.code, SL_USAGE);
    assert_non_null(strstr(err.msg, "is empty"));
    assert_int_equal(sl_text_open(&t, pipe, &err), -1); /* and does not wait for a writer */
    assert_non_null(strstr(err.msg, "not a regular file"));
    assert_int_equal(sl_text_open(&t, tmp.dir, &err), -1);
    assert_non_null(strstr(err.msg, "not a regular file"));
    assert_int_equal(sl_text_open(&t, "/nowhere/at/all", &err), -1);
    assert_int_equal(err.code, SL_USAGE);
    assert_non_null(strstr(err.msg, "No such file"));
    assert_null(t.data);
    free(empty);
    free(pipe);
    tmp_fini(&tmp);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(xxh64_gives_the_reference_values),
        cmocka_unit_test(good_characters_pass),
        cmocka_unit_test(bad_bytes_are_named_with_line_column_and_offset),
        cmocka_unit_test(what_is_no_text_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
