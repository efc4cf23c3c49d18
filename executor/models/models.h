#ifndef SL_MODELS_H
#define SL_MODELS_H

/*
 * models.h - the models that a job file can name
 *
 * A model is one function that describes itself with the words of graph/build.h. A new model is one
 * file and one row in models.c.
 */

#include "executor/graph/graph.h"
#include "executor/job.h"

struct sl_model_shape {
    int64_t samples; /* of a micro-batch */
    int64_t vocab;   /* tokens */
    int training;    /* 0: evaluation, no dropout */
};

struct sl_model {
    const char *kind; /* model.kind of a job file */
    const char *item; /* what its throughput counts: "token" */
    /* Append the description; 0, or -1 with the error kept in the graph (SL_USAGE: bad sizes). */
    int (*describe)(struct sl_graph *g, const struct sl_model_spec *spec,
                    const struct sl_model_shape *shape);
};

/* SL_USAGE: no such model; the message names those there are. */
const struct sl_model *sl_model_find(const char *kind, struct sl_err *err);

extern const struct sl_model sl_model_gpt;

#endif
