#ifndef SL_JOB_KEYS_H
#define SL_JOB_KEYS_H

/* job_keys.h - every key of a job file: reading, canonical text and documentation come from here */

#include "common/conf.h"

/* All keys, in the order of the canonical text. The struct they fill is struct sl_job. */
/* Bytes; paths with their folder: a rank reads the job's canonical text by the same rules. */
enum { SL_JOB_NAME_MAX = 100, SL_JOB_PATH_MAX = 1000, SL_JOB_DIR_MAX = 900 };

const struct sl_conf_opt *sl_job_keys(int *n);

#endif
