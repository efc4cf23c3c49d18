#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "executor/data/permute.h"

static void every_element_comes_exactly_once(void **state)
{
    static const int64_t sizes[] = {1,  2,  3,   4,   5,   7,    8,    15,   16,    17,   31,
                                    64, 65, 255, 256, 257, 1000, 1023, 4097, 65535, 65537};

    (void)state;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        int64_t n = sizes[s];
        char *seen = calloc((size_t)n, 1);

        assert_non_null(seen);
        for (int64_t i = 0; i < n; i++) {
            int64_t x = sl_permute(n, 42 + s, (int64_t)s, i);

            assert_in_range(x, 0, n - 1);
            assert_int_equal(seen[x], 0);
            seen[x] = 1;
        }
        free(seen);
    }
}

/* Two random orders of 1,000 agree in about one place, whatever seed or epoch they come from. */
static void seed_and_epoch_each_change_the_order(void **state)
{
    const uint64_t seeds[] = {0, 1, 2, UINT64_MAX};
    int same;

    (void)state;
    for (int a = 0; a < 4; a++)
        for (int e = 0; e < 4; e++) {
            same = 0;
            for (int64_t i = 0; i < 1000; i++)
                same += sl_permute(1000, seeds[a], e, i) == sl_permute(1000, seeds[a], e + 1, i);
            assert_true(same < 12);
            same = 0;
            for (int64_t i = 0; i < 1000; i++)
                same += sl_permute(1000, seeds[a], e, i)
                        == sl_permute(1000, seeds[(a + 1) % 4], e, i);
            assert_true(same < 12);
        }
}

/*
 * Over many epochs each place holds each element about equally often: chi-square with 99 degrees of
 * freedom for each of 100 places has mean 99 and deviation 14; the sum's deviation is 141.
 */
static void places_are_uniform_over_epochs(void **state)
{
    enum { N = 100, EPOCHS = 2000 };
    static int count[N][N];
    double chi = 0, want = (double)EPOCHS / N;

    (void)state;
    memset(count, 0, sizeof count);
    for (int e = 0; e < EPOCHS; e++)
        for (int i = 0; i < N; i++)
            count[i][sl_permute(N, 7, e, i)]++;
    for (int i = 0; i < N; i++)
        for (int x = 0; x < N; x++)
            chi += (count[i][x] - want) * (count[i][x] - want) / want;
    assert_true(chi > 9900 - 900 && chi < 9900 + 900);
}

static void neighbours_part(void **state)
{
    int near = 0;

    (void)state;
    for (int64_t i = 0; i + 1 < 10000; i++)
        near += llabs(sl_permute(10000, 3, 0, i) - sl_permute(10000, 3, 0, i + 1)) == 1;
    assert_true(near < 15); /* two in a random order of 10,000 */
}

static void the_largest_sizes_work(void **state)
{
    int64_t n = (int64_t)1 << 62;

    (void)state;
    assert_in_range(sl_permute(n, 1, 0, n - 1), 0, n - 1);
    assert_true(sl_permute(n, 1, 0, 0) != sl_permute(n, 1, 0, 1));
    n = ((int64_t)1 << 61) + 1;
    assert_true(sl_permute(n, 1, 0, n - 1) < n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_element_comes_exactly_once),
        cmocka_unit_test(seed_and_epoch_each_change_the_order),
        cmocka_unit_test(places_are_uniform_over_epochs),
        cmocka_unit_test(neighbours_part),
        cmocka_unit_test(the_largest_sizes_work),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
