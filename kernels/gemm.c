#include "kernels/gemm.h"

#include <dnnl.h>
#include <inttypes.h>

int sl_gemm(const struct sl_gemm *g, struct sl_err *err)
{
    dnnl_status_t rc;

    if (g->m == 0 || g->n == 0)
        return 0;
    if (g->k == 0) { /* the library leaves c alone then, whatever beta */
        for (int64_t i = 0; g->beta == 0 && i < g->m; i++)
            for (int64_t j = 0; j < g->n; j++)
                g->c[i * g->ldc + j] = 0;
        return 0;
    }
    rc = dnnl_sgemm(g->ta ? 'T' : 'N', g->tb ? 'T' : 'N', g->m, g->n, g->k, 1.0f, g->a, g->lda, g->b,
                    g->ldb, g->beta, g->c, g->ldc);
    if (rc == dnnl_success)
        return 0;
    return sl_fail(err, rc == dnnl_invalid_arguments ? SL_BUG : SL_SYSTEM,
                   "oneDNN refused a matrix product of %" PRId64 " x %" PRId64 " x %" PRId64
                   " (status %d)", g->m, g->n, g->k, (int)rc);
}
