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

#include <sys/file.h>
#include <sys/wait.h>
#include <fcntl.h>
#include <dirent.h>

#include "executor/data/dataset.h"
#include "executor/data/tokens.h"
#include "tests/unit/data/tmp.h"

struct room {
    struct tmp tmp;
    char *cache, *text;
    struct sl_job job;
};

/* 400 lines of words, enough for a batch of 4 samples of 8 tokens. */
static void room_init(struct room *r, enum sl_tokenizer_kind kind)
{
    char text[20000] = "";
    size_t n = 0;

    memset(r, 0, sizeof *r);
    tmp_init(&r->tmp);
    for (int i = 0; i < 400; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "line %d of %d\n", i % 17, i % 5);
    r->text = tmp_text(&r->tmp, "a.txt", text);
    r->cache = tmp_path(&r->tmp, "state/deep/cache");
    r->job.data = (struct sl_data_spec){.train = r->text,
                                        .valid_fraction = 0.25,
                                        .tokenizer = kind,
                                        .vocab_size = kind == SL_TOK_BYTE ? 0 : 20};
    r->job.model.context = 8;
    r->job.train.batch = 4;
}

static void room_fini(struct room *r)
{
    free(r->cache);
    free(r->text);
    tmp_fini(&r->tmp);
}

static int count_files(const char *dir, const char *part)
{
    DIR *d = opendir(dir);
    int n = 0;

    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));)
        n += strstr(e->d_name, part) != NULL;
    closedir(d);
    return n;
}

static void a_text_is_tokenised_once(void **state)
{
    struct room r;
    struct sl_dataset_files f, again;
    struct sl_dataset_spec s;
    struct sl_err err = {0};
    int32_t ids[8], targets[8];
    char want[100] = "";

    (void)state;
    room_init(&r, SL_TOK_BYTE);
    assert_int_equal(sl_dataset_prepare(&r.job, r.cache, &f, &err), 0);
    assert_int_equal(f.built, 1);
    assert_int_equal(f.damaged, 0);
    assert_string_equal(f.valid, "");
    assert_int_equal(sl_dataset_prepare(&r.job, r.cache, &again, &err), 0);
    assert_int_equal(again.built, 0);
    assert_string_equal(again.train, f.train);
    r.job.data.valid_fraction = 0.5; /* bytes: the same tokens, cut elsewhere */
    assert_int_equal(sl_dataset_prepare(&r.job, r.cache, &again, &err), 0);
    assert_int_equal(again.built, 0);
    s = sl_dataset_spec(&r.job, &f);
    struct sl_dataset *ds = sl_dataset_open(&s, &err);
    assert_non_null(ds);
    /* the middle of the text, byte for byte */
    int64_t cut = sl_dataset_train_tokens(ds);
    FILE *t = fopen(r.text, "r");
    assert_non_null(t);
    fseek(t, cut, SEEK_SET);
    assert_int_equal(fread(want, 1, 9, t), 9);
    fclose(t);
    assert_int_equal(sl_dataset_valid(ds, 0, ids, targets, &err), 0);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(ids[i], want[i]);
        assert_int_equal(targets[i], want[i + 1]);
    }
    sl_dataset_close(ds);
    room_fini(&r);
}

static void what_changes_tokens_changes_the_file(void **state)
{
    struct room r;
    struct sl_dataset_files a, b;

    (void)state;
    room_init(&r, SL_TOK_WORD);
    assert_int_equal(sl_dataset_prepare(&r.job, r.cache, &a, NULL), 0);
    assert_int_equal(a.built, 1);
    r.job.data.vocab_size = 21;
    assert_int_equal(sl_dataset_prepare(&r.job, r.cache, &b, NULL), 0);
    assert_string_not_equal(a.train, b.train);
    r.job.data.vocab_size = 20;
    r.job.data.valid_fraction = 0.3; /* another training part: another vocabulary */
    assert_int_equal(sl_dataset_prepare(&r.job, r.cache, &b, NULL), 0);
    assert_string_not_equal(a.train, b.train);
    r.job.data.valid_fraction = 0.25;
    FILE *t = fopen(r.text, "r+"); /* one byte, same size */
    assert_non_null(t);
    fputc('L', t);
    fclose(t);
    assert_int_equal(sl_dataset_prepare(&r.job, r.cache, &b, NULL), 0);
    assert_int_equal(b.built, 1);
    assert_string_not_equal(a.train, b.train);
    room_fini(&r);
}

/* "only" is no word of the training file, so it is unknown in the validation file. */
static void a_validation_file_uses_the_training_vocabulary(void **state)
{
    struct room r;
    struct sl_dataset_files f;
    struct sl_tokens tok;

    (void)state;
    room_init(&r, SL_TOK_WORD);
    char *valid = tmp_text(&r.tmp, "v.txt", "line only of only line only of only line\n");
    r.job.data.valid = valid;
    assert_int_equal(sl_dataset_prepare(&r.job, r.cache, &f, NULL), 0);
    assert_int_equal(f.built, 2);
    assert_int_equal(sl_tokens_open(&tok, f.valid, NULL), 0);
    assert_int_equal(tok.count, 10);
    for (int i = 1; i < 9; i += 2)
        assert_int_equal(tok.v[i], 0);
    for (int i = 0; i < 9; i += 2)
        assert_in_range(tok.v[i], 2, 19);
    assert_int_equal(tok.v[9], 1);
    sl_tokens_close(&tok);
    assert_int_equal(sl_dataset_prepare(&r.job, r.cache, &f, NULL), 0);
    assert_int_equal(f.built, 0);
    free(valid);
    room_fini(&r);
}

static void damage(const char *path, long at)
{
    FILE *f = fopen(path, "r+b");
    int c;

    assert_non_null(f);
    fseek(f, at, SEEK_SET);
    c = fgetc(f);
    fseek(f, at, SEEK_SET);
    fputc(c ^ 4, f);
    fclose(f);
}

static void a_damaged_cache_is_made_anew(void **state)
{
    struct room r;
    struct sl_dataset_files f;
    struct sl_tokens tok;

    (void)state;
    room_init(&r, SL_TOK_WORD);
    assert_int_equal(sl_dataset_prepare(&r.job, r.cache, &f, NULL), 0);
    char vocab[SL_DATASET_PATH];
    snprintf(vocab, sizeof vocab, "%.*s.vocab", (int)(strlen(f.train) - 7), f.train);
    for (int how = 0; how < 5; how++) {
        if (how == 0)
            damage(f.train, 64 + 20); /* a token */
        if (how == 1)
            assert_int_equal(truncate(f.train, 100), 0);
        if (how == 2)
            damage(vocab, 14); /* a word */
        if (how == 3)
            assert_int_equal(unlink(vocab), 0);
        if (how == 4)
            assert_int_equal(truncate(f.train, 0), 0);
        assert_int_equal(sl_dataset_prepare(&r.job, r.cache, &f, NULL), 0);
        assert_int_equal(f.built, 1);
        assert_int_equal(f.damaged, 1);
        assert_int_equal(sl_tokens_open(&tok, f.train, NULL), 0);
        assert_int_equal(sl_tokens_check(&tok, 20, f.train, NULL), 0);
        sl_tokens_close(&tok);
        assert_int_equal(sl_dataset_prepare(&r.job, r.cache, &f, NULL), 0);
        assert_int_equal(f.built, 0);
    }
    room_fini(&r);
}

/* Eight at once: one builds, all get the same whole file, nothing else is left. */
static void several_at_once_build_once(void **state)
{
    enum { N = 8 };
    struct room r;
    struct sl_dataset_files f;
    pid_t pid[N];
    int gate[2], built = 0, status;
    char go = 0;

    (void)state;
    room_init(&r, SL_TOK_WORD);
    assert_int_equal(pipe(gate), 0);
    for (int i = 0; i < N; i++) {
        pid[i] = fork();
        assert_true(pid[i] >= 0);
        if (!pid[i]) {
            close(gate[1]);
            if (read(gate[0], &go, 1)) /* the end of the pipe: all start together */
                _exit(9);
            if (sl_dataset_prepare(&r.job, r.cache, &f, NULL))
                _exit(8);
            _exit(f.built);
        }
    }
    close(gate[0]);
    close(gate[1]);
    for (int i = 0; i < N; i++) {
        assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
        assert_true(WIFEXITED(status));
        assert_in_range(WEXITSTATUS(status), 0, 1);
        built += WEXITSTATUS(status);
    }
    assert_int_equal(built, 1);
    assert_int_equal(count_files(r.cache, ".tokens"), 1);
    assert_int_equal(count_files(r.cache, ".tmp"), 0);
    room_fini(&r);
}

/* Root may write anywhere, so the folder's place is taken by a file. */
static void a_cache_that_cannot_be_is_an_error_with_a_remedy(void **state)
{
    struct room r;
    struct sl_dataset_files f;
    struct sl_err err = {0};

    (void)state;
    room_init(&r, SL_TOK_BYTE);
    char *file = tmp_text(&r.tmp, "file", "x");
    char *under = tmp_path(&r.tmp, "file/cache");
    assert_int_equal(sl_dataset_prepare(&r.job, under, &f, &err), -1);
    assert_int_equal(err.code, SL_SYSTEM);
    assert_non_null(strstr(err.msg, "file/cache"));
    assert_non_null(strstr(err.hint, "state folder"));
    free(file);
    free(under);
    room_fini(&r);
}

static void wrong_data_is_named_with_its_key(void **state)
{
    struct room r;
    struct sl_dataset_files f;
    struct sl_err err = {0};

    (void)state;
    room_init(&r, SL_TOK_WORD);
    char *bad = tmp_text(&r.tmp, "bad.txt", "all good\nbut \xff here\n");
    char *empty = tmp_text(&r.tmp, "empty.txt", "");
    r.job.data.train = bad;
    assert_int_equal(sl_dataset_prepare(&r.job, r.cache, &f, &err), -1);
    assert_int_equal(err.code, SL_USAGE);
    assert_non_null(strstr(err.msg, "data.train: "));
    assert_non_null(strstr(err.msg, "bad.txt:2:5: byte 0xff at offset 13"));
    r.job.data.train = r.text;
    r.job.data.valid = bad;
    assert_int_equal(sl_dataset_prepare(&r.job, r.cache, &f, &err), -1);
    assert_non_null(strstr(err.msg, "data.valid: "));
    r.job.data.valid = empty;
    assert_int_equal(sl_dataset_prepare(&r.job, r.cache, &f, &err), -1);
    assert_non_null(strstr(err.msg, "empty.txt\" is empty"));
    r.job.data.valid = NULL;
    r.job.train.batch = 100000;
    assert_int_equal(sl_dataset_prepare(&r.job, r.cache, &f, &err), -1);
    assert_int_equal(err.code, SL_USAGE);
    assert_non_null(strstr(err.msg, "a.txt"));
    assert_non_null(strstr(err.msg, "fewer than one batch of 100000"));
    r.job.train.batch = 4;
    r.job.data.vocab_size = 65537;
    assert_int_equal(sl_dataset_prepare(&r.job, r.cache, &f, &err), -1);
    assert_non_null(strstr(err.msg, "data.vocab_size is 65537"));
    free(bad);
    free(empty);
    room_fini(&r);
}

static void ready_made_tokens_are_checked_and_used_in_place(void **state)
{
    static const uint16_t v[40] = {1, 2, 3, [30] = 19, [39] = 7};
    struct room r;
    struct sl_dataset_files f;
    struct sl_err err = {0};

    (void)state;
    room_init(&r, SL_TOK_UINT16);
    char *bin = tmp_write(&r.tmp, "t.bin", v, sizeof v);
    r.job.data.train = bin;
    r.job.data.valid_fraction = 0;
    assert_int_equal(sl_dataset_prepare(&r.job, r.cache, &f, &err), 0);
    assert_string_equal(f.train, bin);
    assert_int_equal(f.built, 0);
    assert_int_equal(access(r.cache, F_OK), -1);
    r.job.data.vocab_size = 19;
    assert_int_equal(sl_dataset_prepare(&r.job, r.cache, &f, &err), -1);
    assert_non_null(strstr(err.msg, "token 19 at position 30 is not below vocab_size 19"));
    r.job.data.vocab_size = 0;
    assert_int_equal(sl_dataset_prepare(&r.job, r.cache, &f, &err), -1);
    free(bin);
    room_fini(&r);
}

static char *put_file(const struct room *r, const char *name)
{
    char path[600], *ret;
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", r->cache, name);
    f = fopen(path, "w");
    assert_non_null(f);
    fputs("half", f);
    fclose(f);
    ret = strdup(path);
    assert_non_null(ret);
    return ret;
}

/* Each was as large as its text and stayed for ever; what somebody still builds is left alone. */
static void what_a_killed_run_left_is_removed(void **state)
{
    struct room r;
    struct sl_dataset_files f;
    char *gone, *gone2, *kept, *foreign, *lock;
    int fd;

    (void)state;
    room_init(&r, SL_TOK_BYTE);
    assert_int_equal(sl_dataset_prepare(&r.job, r.cache, &f, NULL), 0);
    gone = put_file(&r, "0123456789abcdef.tokens.00000001.tmp");
    gone2 = put_file(&r, "fedcba9876543210.tokens.00000001.tmp");
    kept = put_file(&r, "00000000000000aa.tokens.00000001.tmp");
    foreign = put_file(&r, "notes.tmp");
    free(put_file(&r, "fedcba9876543210.lock"));
    lock = put_file(&r, "00000000000000aa.lock");
    fd = open(lock, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    assert_int_equal(unlink(f.train), 0); /* so that it is built once more */
    assert_int_equal(sl_dataset_prepare(&r.job, r.cache, &f, NULL), 0);
    assert_int_equal(f.built, 1);
    assert_int_equal(access(gone, F_OK), -1);
    assert_int_equal(access(gone2, F_OK), -1);
    assert_int_equal(access(kept, F_OK), 0);
    assert_int_equal(access(foreign, F_OK), 0);
    close(fd);
    free(gone);
    free(gone2);
    free(kept);
    free(foreign);
    free(lock);
    room_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_is_tokenised_once),
        cmocka_unit_test(what_changes_tokens_changes_the_file),
        cmocka_unit_test(a_validation_file_uses_the_training_vocabulary),
        cmocka_unit_test(a_damaged_cache_is_made_anew),
        cmocka_unit_test(several_at_once_build_once),
        cmocka_unit_test(what_a_killed_run_left_is_removed),
        cmocka_unit_test(a_cache_that_cannot_be_is_an_error_with_a_remedy),
        cmocka_unit_test(wrong_data_is_named_with_its_key),
        cmocka_unit_test(ready_made_tokens_are_checked_and_used_in_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
