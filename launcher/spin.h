#ifndef SL_SPIN_H
#define SL_SPIN_H

/*
 * spin.h - how long the threads of a rank spin for each other
 *
 * They wait for each other hundreds of times a step. libgomp lets a waiter spin for milliseconds,
 * which costs a shared machine two thirds of its time (doc/performance.md); some tens of
 * microseconds bridge the usual wait. It reads this before main, so a rank cannot set it itself:
 * the agent puts it into its own environment, unless the user has set it or OMP_WAIT_POLICY.
 */

void sl_spin_less(void);

#endif
