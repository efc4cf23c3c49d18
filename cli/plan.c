/* plan.c - what a job needs in memory, without running anything */
#include <stdio.h>

#include "cli/commands.h"
#include "common/proc.h"
#include "executor/plan.h"

static const struct sl_opt options[] = {
    {.name = "ranks", .letter = 'n', .type = SL_OPT_INT, .arg = "N", .min = 1, .max = SL_MAX_RANKS,
     .help = "Plan for so many ranks instead of the job's."},
    {.name = "strategy", .type = SL_OPT_TEXT, .arg = "S", .words = sl_strategy_words,
     .help = "Plan this strategy instead of the job's."},
    {.name = "all", .letter = 'a', .help = "Compare all strategies."},
    {.name = "limit", .letter = 'l', .type = SL_OPT_SIZE, .arg = "SIZE",
     .help = "Say what fits into this much memory a rank, as in --limit 80GiB."},
    {.name = "set", .letter = 's', .type = SL_OPT_LIST, .arg = "KEY=VALUE",
     .help = "Override a key of the job file, as in --set model.layers=12. May be repeated."},
    {.name = "json", .help = "Print JSON."},
};

enum { MAX_SET = 256 };

/* The job with its overrides; --ranks and --strategy are overrides, too, so all checks hold. */
static struct sl_job *load(const struct sl_args *args, struct sl_err *err)
{
    const char *set[MAX_SET + 2], *strategy = sl_args_text(args, "strategy", NULL);
    const char *const *given;
    char ranks[64], how[64];
    int n, n_op;

    given = sl_args_list(args, "set", &n);
    if (n > MAX_SET) {
        sl_fail(err, SL_USAGE, "--set is given %d times; at most %d are possible", n, MAX_SET);
        return NULL;
    }
    for (int i = 0; i < n; i++)
        set[i] = given[i];
    if (sl_args_given(args, "ranks")) {
        snprintf(ranks, sizeof ranks, "resources.ranks_per_node=%d",
                 (int)sl_args_int(args, "ranks", 1));
        set[n++] = ranks;
    }
    if (strategy) {
        snprintf(how, sizeof how, "train.strategy=%s", strategy);
        set[n++] = how;
    }
    return sl_job_load(sl_args_operands(args, &n_op)[0], set, n, err);
}

static int print(const struct sl_args *args, const struct sl_plan *plan, int n,
                 const struct sl_plan_limits *lim, struct sl_err *err)
{
    struct sl_buf b;
    int rc;

    sl_buf_init(&b, 1 << 20);
    if (sl_args_given(args, "json"))
        sl_plan_json(plan, n, &b);
    else
        sl_plan_text(plan, n, lim, &b);
    rc = sl_print(&b, err);
    sl_buf_fini(&b);
    return rc;
}

static int run(const struct sl_args *args, struct sl_err *err)
{
    struct sl_job *job = load(args, err);
    struct sl_plan_limits lim = {.cores = sl_proc_cpus()};
    struct sl_plan plan[SL_STRATEGIES];
    int ranks, n = 0, fit = 0, all = sl_args_given(args, "all"), rc = -1;

    if (!job)
        return -1;
    ranks = sl_job_ranks(job);
    lim.cores *= (int)job->resources.nodes; /* the nodes are taken to be like this one */
    lim.per_rank = sl_args_int(args, "limit", job->resources.memory_limit);
    if (!sl_args_given(args, "limit")) /* with a limit, the machine is another one */
        lim.machine = sl_proc_memory_limit() * job->resources.nodes;
    for (int s = 0; s < SL_STRATEGIES; s++) {
        if (!all && s != (int)job->train.strategy)
            continue;
        if (sl_plan_make(job, ranks, (enum sl_strategy)s, &lim, &plan[n], err))
            goto out;
        fit |= plan[n++].fits;
    }
    if (print(args, plan, n, &lim, err))
        goto out;
    rc = SL_EXIT_OK;
    if (!fit) {
        struct sl_err why = {0};
        const struct sl_plan *asked = &plan[all ? (int)job->train.strategy : 0];

        sl_plan_refuse(job, asked, &lim, &why);
        sl_say_error(&why);
        rc = SL_EXIT_MEMORY;
    }
out:
    sl_job_destroy(job);
    return rc;
}

const struct sl_cmd sl_cmd_plan = {
    .name = "plan",
    .operands = "JOB.toml",
    .least = 1,
    .most = 1,
    .summary = "Print what a job needs in memory, per rank and category, without running it.",
    .details = "The same plan drives the run, to the byte; each rank's process adds at most 64 MiB. "
               "Data files are not opened. What fits is told by resources.memory_limit and this "
               "machine's memory, or by --limit instead of both; when nothing that is printed fits, "
               "the status is 3 and the cheapest change that would make it fit is named.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .run = run,
};
