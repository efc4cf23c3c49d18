#ifndef SL_CLOCK_H
#define SL_CLOCK_H

/* clock.h - the two clocks: one to measure with, one to write down */

#include <stdint.h>

int64_t sl_clock_ns(void);  /* monotonic nanoseconds; shared by all processes of one boot */
double sl_clock_real(void); /* unix seconds (real) */

/* Sleep until the monotonic time `ns`, whatever signals arrive. */
void sl_clock_sleep_until(int64_t ns);

#endif
