#ifndef SL_CALL_H
#define SL_CALL_H

/*
 * call.h - from an operation of the graph to the kernel or collective that does it
 *
 * A row per kind. A new operation is a row here, a folder in kernels/ and its rules in graph/.
 */

#include "executor/run.h"

struct sl_call {
    struct sl_run *r;
    const struct sl_op *o;
    void *in[SL_MAX_IN], *out[SL_MAX_OUT], *acc[SL_MAX_ACC]; /* NULL where there is none */
    void *ws; /* the operation's own scratch */
    int64_t ws_bytes;
};

/* Operands in the types that the kernel knows (ops.h: native_bf16), results where they belong. */
typedef int sl_call_f(struct sl_call *c, struct sl_err *err);

extern sl_call_f *const sl_callers[SL_OP_KINDS];

#endif
