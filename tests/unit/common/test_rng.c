#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>

#include <cmocka.h>

#include "common/rng.h"

/* The known answers that the authors of Philox publish with it (Random123, kat_vectors). */
static void philox_gives_the_published_blocks(void **state)
{
    static const struct {
        uint32_t ctr[4], key[2], want[4];
    } kat[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        uint32_t got[4];

        sl_philox(kat[i].ctr, kat[i].key, got);
        assert_memory_equal(got, kat[i].want, sizeof got);
    }
}

static void every_argument_matters(void **state)
{
    uint64_t base = sl_rng_u64(1, 2, 3, 4);

    (void)state;
    assert_true(base == sl_rng_u64(1, 2, 3, 4));
    assert_true(base != sl_rng_u64(2, 2, 3, 4));
    assert_true(base != sl_rng_u64(1, 3, 3, 4));
    assert_true(base != sl_rng_u64(1, 2, 4, 4));
    assert_true(base != sl_rng_u64(1, 2, 3, 5));
    assert_true(base != sl_rng_u64(1, 2, 3, 4 + (1ull << 32)));
    assert_true(base != sl_rng_u64(1, 2, 3 + (1ull << 32), 4));
    assert_true(base != sl_rng_u64(2, 1, 3, 4)); /* arguments do not swap */
    assert_true(base != sl_rng_u64(1, 2, 4, 3));
}

/* n values of known mean and variance: the sample mean lies within 5 standard errors. */
static void uniform_and_normal_have_their_moments(void **state)
{
    enum { N = 100000 };
    double u1 = 0, u2 = 0, n1 = 0, n2 = 0, n4 = 0;

    (void)state;
    for (uint64_t i = 0; i < N; i++) {
        double u = sl_rng_uniform(7, 0, 0, i), z = sl_rng_normal(7, 1, 0, i);

        assert_true(u >= 0 && u < 1 && isfinite(z));
        u1 += u / N;
        u2 += u * u / N;
        n1 += z / N;
        n2 += z * z / N;
        n4 += z * z * z * z / N;
    }
    double se = 5 / sqrt(N);
    assert_true(fabs(u1 - 0.5) < se * sqrt(1 / 12.0));
    assert_true(fabs(u2 - 1 / 3.0) < se * sqrt(4 / 45.0));
    assert_true(fabs(n1) < se);
    assert_true(fabs(n2 - 1) < se * sqrt(2));
    assert_true(fabs(n4 - 3) < se * sqrt(96));
}

static void below_is_even_and_in_range(void **state)
{
    int count[7] = {0};

    (void)state;
    for (uint64_t i = 0; i < 70000; i++) {
        uint64_t x = sl_rng_below(3, 1, 4, i, 7);

        assert_true(x < 7);
        count[x]++;
    }
    for (int i = 0; i < 7; i++)
        assert_true(abs(count[i] - 10000) < 5 * 93); /* sqrt(n p (1-p)) = 93 */
    assert_int_equal(sl_rng_below(3, 1, 4, 1, 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox_gives_the_published_blocks),
        cmocka_unit_test(every_argument_matters),
        cmocka_unit_test(uniform_and_normal_have_their_moments),
        cmocka_unit_test(below_is_even_and_in_range),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
