/* spin.c - GOMP_SPINCOUNT */
#include "launcher/spin.h"

#include <stdlib.h>

void sl_spin_less(void)
{
    if (!getenv("OMP_WAIT_POLICY"))
        setenv("GOMP_SPINCOUNT", "2000", 0);
}
