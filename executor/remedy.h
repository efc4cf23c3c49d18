#ifndef SL_REMEDY_H
#define SL_REMEDY_H

/*
 * remedy.h - the cheapest change of a job that makes it fit in memory
 *
 * Changes are tried in the order of what they cost, alone and together, each by really planning it:
 *
 *   zero1, zero2           1   the same traffic as ddp, the same results
 *   a smaller micro-batch  2   per halving: more, smaller products
 *   zero3                  8   half as much traffic again
 *   recompute = "unit"    30   the forward pass once more
 *   precision = "bf16"   100   other numbers
 *   twice the ranks      200   per doubling: more processors, if there are any
 */

#include "executor/plan.h"

struct sl_remedy {
    char text[160]; /* as a person would write it: `train.strategy = "zero2"`, joined by " and " */
    int cost;
    struct sl_plan plan; /* after the change */
};

/* 1 and *ret; 0: nothing makes it fit; -1: no memory, or the plan of a change failed. */
int sl_remedy_find(const struct sl_job *job, const struct sl_plan *plan,
                   const struct sl_plan_limits *lim, struct sl_remedy *ret, struct sl_err *err);

#endif
