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

#include "executor/data/dataset.h"
#include "executor/data/tokens.h"
#include "tests/unit/data/tmp.h"

/* A bare file whose token at position i is i, so that a sample says where it lies. */
static char *counting(const struct tmp *tmp, const char *name, int n)
{
    uint16_t *v = calloc((size_t)n, sizeof *v);
    char *path;

    assert_non_null(v);
    for (int i = 0; i < n; i++)
        v[i] = (uint16_t)i;
    path = tmp_write(tmp, name, v, (size_t)n * sizeof *v);
    free(v);
    return path;
}

static struct sl_dataset_spec spec(const char *train, double fraction)
{
    return (struct sl_dataset_spec){.train = train,
                                    .valid_fraction = fraction,
                                    .vocab_size = 65536,
                                    .context = 8,
                                    .batch = 4,
                                    .seed = 5};
}

static void targets_are_the_inputs_one_further(void **state)
{
    struct tmp tmp;
    int32_t ids[8], targets[8];

    (void)state;
    tmp_init(&tmp);
    char *path = counting(&tmp, "t.bin", 1000);
    struct sl_dataset_spec s = spec(path, 0.1);
    struct sl_dataset *ds = sl_dataset_open(&s, NULL);
    assert_non_null(ds);
    assert_int_equal(sl_dataset_train_tokens(ds), 900);
    assert_int_equal(sl_dataset_valid_tokens(ds), 100);
    assert_int_equal(sl_dataset_train_samples(ds), 112); /* floor(899 / 8) */
    assert_int_equal(sl_dataset_valid_samples(ds), 12);  /* floor(99 / 8) */
    for (int64_t g = 0; g < 300; g++) {
        assert_int_equal(sl_dataset_train(ds, g, ids, targets, NULL), 0);
        assert_int_equal(ids[0] % 8, 0);
        for (int i = 0; i < 8; i++) {
            assert_int_equal(ids[i], ids[0] + i);
            assert_int_equal(targets[i], ids[i] + 1);
        }
        assert_true(targets[7] < 900); /* never a token of the validation part */
    }
    for (int64_t i = 0; i < 12; i++) { /* in the file's order */
        assert_int_equal(sl_dataset_valid(ds, i, ids, targets, NULL), 0);
        assert_int_equal(ids[0], 900 + 8 * i);
        assert_int_equal(targets[7], 900 + 8 * i + 8);
    }
    sl_dataset_close(ds);
    free(path);
    tmp_fini(&tmp);
}

static void an_epoch_has_every_sample_once(void **state)
{
    struct tmp tmp;
    int32_t ids[8], targets[8];
    char seen[125] = {0};
    int same = 0;

    (void)state;
    tmp_init(&tmp);
    char *path = counting(&tmp, "t.bin", 1001);
    struct sl_dataset_spec s = spec(path, 0);
    struct sl_dataset *ds = sl_dataset_open(&s, NULL);
    assert_non_null(ds);
    assert_int_equal(sl_dataset_train_samples(ds), 125);
    assert_int_equal(sl_dataset_valid_samples(ds), 0);
    for (int epoch = 0; epoch < 4; epoch++)
        for (int64_t i = 0; i < 125; i++) {
            assert_int_equal(sl_dataset_train(ds, epoch * 125 + i, ids, targets, NULL), 0);
            assert_int_equal(seen[ids[0] / 8], epoch);
            seen[ids[0] / 8]++;
            same += i == ids[0] / 8;
        }
    assert_true(same < 20); /* shuffled: about one in each of four epochs stays */
    sl_dataset_close(ds);
    free(path);
    tmp_fini(&tmp);
}

/*
 * The set of windows of each step, for several ways to deal the samples to ranks and micro-steps as
 * dataset.h says, each rank with a data set of its own.
 */
static void a_step_has_the_same_samples_for_any_ranks(void **state)
{
    static const int ways[][3]
        = {{1, 12, 1}, {2, 6, 1}, {3, 4, 1}, {4, 3, 1}, {3, 2, 2}, {12, 1, 1}, {1, 1, 12}};
    struct tmp tmp;
    int32_t ids[8], targets[8], first[40][12];

    (void)state;
    tmp_init(&tmp);
    char *path = counting(&tmp, "t.bin", 1001);
    struct sl_dataset_spec s = spec(path, 0);
    s.batch = 12;
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        int ranks = ways[w][0], micro = ways[w][1], accum = ways[w][2];

        for (int r = 0; r < ranks; r++) {
            struct sl_dataset *ds = sl_dataset_open(&s, NULL);

            assert_non_null(ds);
            for (int step = 0; step < 40; step++)
                for (int a = 0; a < accum; a++)
                    for (int i = 0; i < micro; i++) {
                        int at = a * ranks * micro + r * micro + i;

                        assert_int_equal(sl_dataset_train(ds, step * 12 + at, ids, targets, NULL),
                                         0);
                        if (w == 0)
                            first[step][at] = ids[0];
                        assert_int_equal(first[step][at], ids[0]);
                    }
            sl_dataset_close(ds);
        }
    }
    free(path);
    tmp_fini(&tmp);
}

static void another_seed_gives_another_order(void **state)
{
    struct tmp tmp;
    int32_t a[8], b[8], targets[8];
    int same = 0;

    (void)state;
    tmp_init(&tmp);
    char *path = counting(&tmp, "t.bin", 1001);
    struct sl_dataset_spec s = spec(path, 0);
    struct sl_dataset *x = sl_dataset_open(&s, NULL), *y;
    s.seed = 6;
    y = sl_dataset_open(&s, NULL);
    for (int64_t i = 0; i < 125; i++) {
        sl_dataset_train(x, i, a, targets, NULL);
        sl_dataset_train(y, i, b, targets, NULL);
        same += a[0] == b[0];
    }
    assert_true(same < 10);
    sl_dataset_close(x);
    sl_dataset_close(y);
    free(path);
    tmp_fini(&tmp);
}

/* 33 tokens are 4 samples of 8 and the last target: one batch. 32 are one too few. */
static void less_than_one_batch_is_refused_in_numbers(void **state)
{
    struct tmp tmp;
    struct sl_err err = {0};

    (void)state;
    tmp_init(&tmp);
    char *path = counting(&tmp, "t.bin", 33), *small = counting(&tmp, "s.bin", 32);
    struct sl_dataset_spec s = spec(path, 0);
    struct sl_dataset *ds = sl_dataset_open(&s, &err);
    assert_non_null(ds);
    sl_dataset_close(ds);
    s.train = small;
    assert_null(sl_dataset_open(&s, &err));
    assert_int_equal(err.code, SL_USAGE);
    assert_string_equal(err.msg, "32 training tokens make 3 samples of context 8, fewer than one "
                                 "batch of 4");
    assert_string_equal(err.hint, "Give at least 33 training tokens, or lower train.batch or "
                                  "model.context.");
    free(path);
    free(small);
    tmp_fini(&tmp);
}

static void a_validation_part_without_a_sample_is_refused(void **state)
{
    struct tmp tmp;
    struct sl_err err = {0};

    (void)state;
    tmp_init(&tmp);
    char *path = counting(&tmp, "t.bin", 1000), *small = counting(&tmp, "v.bin", 8);
    struct sl_dataset_spec s = spec(path, 0.008);
    assert_null(sl_dataset_open(&s, &err));
    assert_non_null(strstr(err.msg, "validation part has 8 tokens, fewer than one sample"));
    assert_non_null(strstr(err.hint, "data.valid_fraction"));
    s.valid_fraction = 0.009;
    struct sl_dataset *ds = sl_dataset_open(&s, &err);
    assert_non_null(ds);
    assert_int_equal(sl_dataset_valid_samples(ds), 1);
    sl_dataset_close(ds);
    s.valid = small;
    assert_null(sl_dataset_open(&s, &err));
    assert_non_null(strstr(err.hint, "longer data.valid"));
    free(path);
    free(small);
    tmp_fini(&tmp);
}

static void a_token_beyond_the_vocabulary_is_named(void **state)
{
    struct tmp tmp;
    struct sl_err err = {0};
    int32_t ids[8], targets[8];

    (void)state;
    tmp_init(&tmp);
    char *path = counting(&tmp, "t.bin", 101);
    struct sl_dataset_spec s = spec(path, 0.5);
    s.vocab_size = 60;
    struct sl_dataset *ds = sl_dataset_open(&s, &err);
    assert_non_null(ds);
    assert_int_equal(sl_dataset_valid(ds, 0, ids, targets, &err), 0); /* tokens 51..59 */
    assert_int_equal(sl_dataset_valid(ds, 1, ids, targets, &err), -1);
    assert_int_equal(err.code, SL_USAGE);
    assert_non_null(strstr(err.msg, "token 60 at position 60 is not below vocab_size 60"));
    assert_int_equal(sl_dataset_valid(ds, 99, ids, targets, &err), -1);
    assert_int_equal(err.code, SL_BUG);
    sl_dataset_close(ds);
    free(path);
    tmp_fini(&tmp);
}

static void epochs_become_steps(void **state)
{
    struct tmp tmp;
    struct sl_train_spec t = {.batch = 4, .epochs = 1};

    (void)state;
    tmp_init(&tmp);
    char *path = counting(&tmp, "t.bin", 1001); /* 125 samples */
    struct sl_dataset_spec s = spec(path, 0);
    struct sl_dataset *ds = sl_dataset_open(&s, NULL);
    assert_non_null(ds);
    assert_int_equal(sl_dataset_steps(ds, &t), 31); /* 31.25 */
    t.epochs = 0.001;
    assert_int_equal(sl_dataset_steps(ds, &t), 1);
    t.epochs = 2.5;
    assert_int_equal(sl_dataset_steps(ds, &t), 78); /* 78.125 */
    t.steps = 7;
    assert_int_equal(sl_dataset_steps(ds, &t), 7);
    sl_dataset_close(ds);
    free(path);
    tmp_fini(&tmp);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(targets_are_the_inputs_one_further),
        cmocka_unit_test(an_epoch_has_every_sample_once),
        cmocka_unit_test(a_step_has_the_same_samples_for_any_ranks),
        cmocka_unit_test(another_seed_gives_another_order),
        cmocka_unit_test(less_than_one_batch_is_refused_in_numbers),
        cmocka_unit_test(a_validation_part_without_a_sample_is_refused),
        cmocka_unit_test(a_token_beyond_the_vocabulary_is_named),
        cmocka_unit_test(epochs_become_steps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
