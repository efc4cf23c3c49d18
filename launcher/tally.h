#ifndef SL_TALLY_H
#define SL_TALLY_H

/*
 * tally.h - a run in numbers, added up from the ranks' reports: for progress and the summary
 *
 * A step counts when all ranks have reported it. Rates are units of all ranks per second of the
 * slowest rank's step. One thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "executor/job.h"
#include "executor/report.h"

struct sl_tally_rank {
    int64_t step;
    double units, step_ms;               /* of its last step */
    int64_t plan_bytes;                  /* category "total": 0 before it came */
    int64_t process_bytes, process_peak; /* category "process" */
};

struct sl_tally {
    int ranks;
    int64_t steps;           /* planned, 0: not known */
    int64_t step;            /* all ranks have done it */
    char unit[16];           /* "tokens"; "" before the first step */
    double loss, valid_loss; /* NaN: not known yet */
    double units_per_second; /* smoothed over about ten steps; 0: not known */
    double units, seconds;   /* all steps: sum of units, sum of the slowest rank's step times */
    double ms_per_step;      /* smoothed; 0: not known */
    struct sl_tally_rank r[SL_MAX_RANKS];
};

void sl_tally_init(struct sl_tally *t, int ranks, int64_t steps);
void sl_tally_again(struct sl_tally *t); /* another attempt: steps are done anew, sums are kept */
void sl_tally_add(struct sl_tally *t, const struct sl_report *rep); /* foreign ranks are ignored */
double sl_tally_left(const struct sl_tally *t);    /* seconds to the last step; -1: not known */
int64_t sl_tally_memory(const struct sl_tally *t); /* highest of all ranks now; 0: not known */

/* "812 MiB", "1.5 GiB"; "12.3k"; "1h02m", "2m05s", "8s": for people. */
void sl_tally_bytes(int64_t bytes, char *ret, size_t size);
void sl_tally_count(double n, char *ret, size_t size);
void sl_tally_time(double seconds, char *ret, size_t size);

#endif
