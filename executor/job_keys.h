#ifndef SL_JOB_KEYS_H
#define SL_JOB_KEYS_H

/* job_keys.h - every key of a job file: reading, canonical text and documentation come from here */

#include "common/conf.h"

/* All keys, in the order of the canonical text. The struct they fill is struct sl_job. */
const struct sl_conf_opt *sl_job_keys(int *n);

#endif
