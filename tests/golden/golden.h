#ifndef SL_TESTS_GOLDEN_H
#define SL_TESTS_GOLDEN_H

/*
 * golden.h - read the arrays that gpt.py wrote: STEM.txt lists them, STEM.bin holds them
 *
 * For tests: a file that is missing or wrong ends the program with a message. README.md lists the
 * arrays' names.
 */

#include <stdint.h>

struct golden; /* opaque */

/* stem: "tied" or "untied", in tests/golden of the source tree (environment: srcdir). */
struct golden *golden_open(const char *stem);
void golden_close(struct golden *g);

/* An array by name and its number of elements (n may be NULL); ends the program when there is none.
 */
const float *golden_f32(const struct golden *g, const char *name, int64_t *n);
const int32_t *golden_i32(const struct golden *g, const char *name, int64_t *n);

/* "init." + name and the like. */
const float *golden_of(const struct golden *g, const char *prefix, const char *name, int64_t *n);

/*
 * Norm of x - want over norm of want, in double: the relative error of a whole array. A NaN in x
 * gives NaN, which fails every comparison.
 */
double golden_error(const float *x, const float *want, int64_t n);

#endif
