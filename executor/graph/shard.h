#ifndef SL_SHARD_H
#define SL_SHARD_H

/*
 * shard.h - the only pass that knows strategies
 *
 * One cut: a unit's flat buffer is padded to ranks * shard elements (shard a multiple of 64 bytes) and
 * rank r owns piece r, in every strategy. Gathers, zeroings and reductions are inserted from first
 * and last uses, so tied, frozen and unused parameters need no case of their own. A unit's stay
 * ends at an operation that uses parameters, but not its own.
 *
 *              parameters      gradients                       optimizer
 *     dp       full, from 0    reduced to rank 0 in the step   rank 0, full
 *     ddp      full            all-reduced in the backward     full
 *     zero1    full            reduced in the step             shard
 *     zero2    full            reduce-scattered in each micro-step, then freed; shard
 *     zero3    gathered for each stay, then freed; the rest as zero2
 *
 * With one rank, shard and full copy are one: every strategy makes the same graph, which has no
 * collective in it.
 *
 * Source: ZeRO, arXiv 1910.02054, section 5; FSDP, arXiv 2304.11277, section 3.
 */

#include "executor/graph/graph.h"

/*
 * After autodiff (or, for evaluation, on a description alone: set nfwd = nops first). `strategy` is
 * an enum sl_strategy of job.h. Sets opt_start, ranks, strategy, and the units' tensors.
 * Operations of the optimizer step are appended only when there are gradients.
 * SL_USAGE: ranks < 1, an unknown strategy.
 */
int sl_shard(struct sl_graph *g, int strategy, int ranks);

#endif
