#ifndef SL_AUTODIFF_H
#define SL_AUTODIFF_H

/*
 * autodiff.h - append the backward operations, one rule per operation
 *
 * Gradients of parameters are accumulated (acc): a tied parameter is used more than once.
 * Gradients of activations are values: a second contribution becomes an explicit add, which the
 * memory plan may put in place. A residual's gradient is the same tensor, not a copy. The output
 * layer gets no new operation: its forward one yields dx and accumulates dw. Nothing is appended
 * for what no trainable parameter needs: frozen and unused parameters fall out here.
 */

#include "executor/graph/graph.h"

/* Sets nfwd. SL_USAGE: the model has no output layer, or no parameter to train. */
int sl_autodiff(struct sl_graph *g);

#endif
