#ifndef SL_K_CHECK_H
#define SL_K_CHECK_H

/* check.h - the argument checks that the front functions share; each returns 0 or -1 with SL_USAGE */

#include <inttypes.h>

#include "common/err.h"
#include "kernels/dtype.h"

/* A size or count that must be at least `least`; what: "linear: rows". */
static inline int sl_k_check_size(const char *what, int64_t n, int64_t least, struct sl_err *err)
{
    if (n >= least && n <= (int64_t)1 << 40)
        return 0;
    return sl_fail(err, SL_USAGE, "%s = %" PRId64 " is not in %" PRId64 " .. 2^40", what, n, least);
}

static inline int sl_k_check_float(const char *what, enum sl_dtype t, struct sl_err *err)
{
    if (t == SL_F32 || t == SL_BF16)
        return 0;
    return sl_fail(err, SL_USAGE, "%s is neither f32 nor bf16", what);
}

static inline int sl_k_check_scratch(const char *what, const void *p, int64_t have, int64_t need,
                                     struct sl_err *err)
{
    if (((uintptr_t)p & 63) == 0 && (need == 0 || (p && have >= need)))
        return 0;
    if ((uintptr_t)p & 63)
        return sl_fail(err, SL_USAGE, "%s: scratch is not 64-byte aligned", what);
    return sl_fail(err, SL_USAGE, "%s: scratch of %" PRId64 " bytes, %" PRId64 " are needed", what,
                   p ? have : 0, need);
}

#endif
