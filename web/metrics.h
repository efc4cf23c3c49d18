#ifndef SL_WEB_METRICS_H
#define SL_WEB_METRICS_H

/*
 * metrics.h - the jobs that are not over, in Prometheus' text format 0.0.4
 *
 * Source: prometheus.io/docs/instrumenting/exposition_formats. All values of one metric stand
 * together below its HELP and TYPE. At most 64 jobs.
 */

#include "common/buf.h"
#include "store/store.h"

int sl_metrics_print(struct sl_store *st, struct sl_buf *out, struct sl_err *err);

#endif
