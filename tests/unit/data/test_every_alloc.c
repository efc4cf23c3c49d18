/* Whatever allocation of the data layer fails: an error, and no file that is not whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fs.h"
#include "executor/data/dataset.h"
#include "executor/data/tokens.h"
#include "tests/lib/every_alloc.h"
#include "tests/unit/data/tmp.h"

struct room {
    struct tmp tmp;
    char *cache, *text;
    struct sl_job job;
    struct sl_dataset_files files;
};

static int set_up(void **state)
{
    struct room *r = calloc(1, sizeof *r);
    char text[20000] = "";
    size_t n = 0;

    tmp_init(&r->tmp);
    for (int i = 0; i < 400; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "line %d of w%d\n", i % 17, i);
    r->text = tmp_text(&r->tmp, "a.txt", text);
    r->cache = tmp_path(&r->tmp, "cache");
    r->job.data = (struct sl_data_spec){.train = r->text,
                                        .valid_fraction = 0.25,
                                        .tokenizer = SL_TOK_WORD,
                                        .vocab_size = 300};
    r->job.model.context = 8;
    r->job.train.batch = 4;
    *state = r;
    return 0;
}

static int tear_down(void **state)
{
    struct room *r = *state;

    free(r->cache);
    free(r->text);
    tmp_fini(&r->tmp);
    free(r);
    return 0;
}

static int prepare(void *u, struct sl_err *err)
{
    struct room *r = u;

    return sl_dataset_prepare(&r->job, r->cache, &r->files, err);
}

/* What lies in the cache under a name that counts is whole; nothing temporary stays. */
static void the_cache_is_whole(void *u, int rc)
{
    struct room *r = u;
    DIR *d = opendir(r->cache);
    struct sl_err err = {0};
    int tokens = 0;

    for (struct dirent *e; d && (e = readdir(d));) {
        const char *dot = strrchr(e->d_name, '.');
        struct sl_tokens tok;
        char path[600];

        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
            continue;
        if (!dot || (strcmp(dot, ".tokens") && strcmp(dot, ".vocab") && strcmp(dot, ".lock")))
            fail_msg("\"%s\" was left in the cache", e->d_name);
        if (strcmp(dot, ".tokens"))
            continue;
        snprintf(path, sizeof path, "%s/%s", r->cache, e->d_name);
        if (sl_tokens_open(&tok, path, &err) || sl_tokens_check(&tok, 300, path, &err))
            fail_msg("%s", err.msg);
        sl_tokens_close(&tok);
        tokens++;
    }
    if (d)
        closedir(d);
    assert_true(rc || tokens == 1);
    assert_int_equal(sl_fs_remove_tree(r->cache, NULL), 0); /* the next try makes it anew */
}

static int open_and_read(void *u, struct sl_err *err)
{
    struct room *r = u;
    struct sl_dataset_spec spec = sl_dataset_spec(&r->job, &r->files);
    struct sl_dataset *ds = sl_dataset_open(&spec, err);
    int32_t ids[8], targets[8];
    int rc;

    if (!ds)
        return -1;
    rc = sl_dataset_train(ds, 3, ids, targets, err);
    sl_dataset_close(ds);
    return rc;
}

static void text_becomes_tokens(void **state)
{
    struct room *r = *state;
    struct every_alloc e
        = {.name = "prepare", .act = prepare, .check = the_cache_is_whole, .u = r};

    assert_true(every_alloc(&e) >= 5);
    e.libraries = 1;
    assert_true(every_alloc(&e) >= (every_alloc_ours_alone() ? 0 : 5));
}

static void tokens_become_samples(void **state)
{
    struct room *r = *state;
    struct every_alloc e = {.name = "dataset", .act = open_and_read, .u = r};

    assert_int_equal(prepare(r, NULL), 0);
    assert_true(every_alloc(&e) >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(text_becomes_tokens, set_up, tear_down),
        cmocka_unit_test_setup_teardown(tokens_become_samples, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
