#ifndef SL_STR_H
#define SL_STR_H

/*
 * str.h - text as people write it: sizes, durations, near misses, one-line quoting
 *
 * Parsers take the whole text; surrounding spaces, an unknown unit, a negative or a too large value
 * are SL_USAGE, with what is allowed in the message.
 */

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

#ifdef __cplusplus
extern "C" {
#endif

/* "512MiB", "80GiB", "1.5GiB", "100", "100B"; units B, KiB, MiB, GiB, TiB and kB, MB, GB, TB. */
int sl_size_parse(const char *s, int64_t *ret, struct sl_err *err);
/* "45s", "30m", "12h", "2d", "1h30m", "500ms", "90", "0.5" (seconds). */
int sl_duration_parse(const char *s, double *ret, struct sl_err *err);

/* Exact: parses to the same value. "512MiB", "1000B" (the largest unit that divides); "90s". */
const char *sl_size_exact(char buf[32], int64_t bytes);
const char *sl_duration_exact(char buf[40], double seconds);
/* For reading: "1.46 GiB", "812 MiB", "17 B"; "3.2 s", "12:05", "1:02:03", "2d 03:04". */
const char *sl_size_human(char buf[32], int64_t bytes);
const char *sl_duration_human(char buf[40], double seconds);
/* The shortest decimal that reads back as the same double; "1e-05", "0.1", "nan", "inf". */
const char *sl_double_exact(char buf[40], double x);

/* Edits (insert, remove, replace, swap of neighbours) from a to b, upper and lower case alike. */
int sl_str_distance(const char *a, const char *b);
/* The index of the nearest of n names, -1 when none is near enough to be what was meant. */
int sl_str_nearest(const char *word, const char *const *names, int n);

/*
 * Copy s on one line: control characters and bytes that are no UTF-8 become \n, \t, \r, \xHH or
 * \uHHHH (the second set of controls, Unicode's line ends and its turns of direction: a terminal
 * obeys them, too). Cut with "..." to fit `size` bytes with the NUL. Returns the length written.
 * size >= 4.
 */
size_t sl_str_escape(char *dst, size_t size, const char *s);
/* The first place in s that sl_str_escape would change, NULL if there is none. */
const char *sl_str_control(const char *s);

/* The length of the UTF-8 sequence at p (n bytes left), 0 when it is none (overlong, surrogate). */
int sl_utf8_len(const char *p, size_t n);

int sl_str_ends(const char *s, const char *tail); /* 1 when s ends in tail */

#ifdef __cplusplus
}
#endif

#endif
