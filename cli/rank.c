/* rank.c - one rank of a job: what an agent re-executes; hidden, not for people */
#include "executor/rank.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "cli/commands.h"

static int run(const struct sl_args *args, struct sl_err *err)
{
    int n;
    const char *word = sl_args_operands(args, &n)[0];
    char *end;
    long fd = strtol(word, &end, 10);

    if (end == word || *end || fd < 3 || fd > 1 << 20)
        return sl_fail(err, SL_USAGE, "\"%s\" is not a descriptor that an agent handed over", word);
    prctl(PR_SET_NAME, "sl-rank"); /* else it is called "exe", by the path it was started as */
    return sl_rank_main((int)fd);
}

const struct sl_cmd sl_cmd_rank = {
    .name = "rank",
    .operands = "FD",
    .least = 1,
    .most = 1,
    .summary = "Be one rank of a job; an agent starts it.",
    .hidden = 1,
    .run = run,
};
