#ifndef SL_REPORTER_H
#define SL_REPORTER_H

/*
 * reporter.h - a rank's end of the report socket
 *
 * Samples that do not fit are dropped and counted, and the next step's record carries the count;
 * events, metrics and memory wait at most a second each. A closed socket ends reporting for good:
 * training goes on, for the agent ends the rank when it wants to.
 */

#include "executor/report.h"

struct sl_reporter {
    int fd; /* -1: nobody listens */
    int rank;
    int64_t dropped; /* step records since the last one that was sent */
};

void sl_reporter_init(struct sl_reporter *r, int fd, int rank);

/* Fills in rank, time and dropped, and sends. `out` is a struct sl_reporter: the type of sl_report_f. */
void sl_reporter_send(void *out, struct sl_report *rep);

/* Who takes the records of a training; may change rep. */
typedef void sl_report_f(void *out, struct sl_report *rep);

/* An event of `kind` with one line of text. */
void sl_report_event(sl_report_f *send, void *out, int64_t step, const char *kind,
                     const char *fmt, ...) __attribute__((format(printf, 5, 6)));

#endif
