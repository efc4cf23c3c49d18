#ifndef SL_METER_H
#define SL_METER_H

/*
 * meter.h - where a run is, for people: a live line on a terminal, else a line every N seconds
 */

#include <stdint.h>

#include "launcher/tally.h"
#include "launcher/term.h"

struct sl_meter {
    struct sl_term *term;
    const struct sl_tally *tally;
    double every;  /* seconds between lines where there is no live line; 0: none */
    uint64_t next; /* CLOCK_MONOTONIC ns */
    int64_t shown; /* step of the last line */
};

/* Nothing is shown before the first step. */
void sl_meter_init(struct sl_meter *p, struct sl_term *term, const struct sl_tally *tally,
                   double every);
void sl_meter_tick(struct sl_meter *p, uint64_t now);

/* "step 12/200  loss 2.3456  12.3k tokens/s  812 MiB a rank  2m05s left" */
void sl_meter_text(const struct sl_tally *t, char *ret, size_t size);

/* After the run: steps, losses, speed, memory by rank. */
void sl_meter_summary(const struct sl_meter *p);

#endif
