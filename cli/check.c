/* check.c - say whether a job file is right, without running anything */
#include "cli/commands.h"
#include "common/json.h"
#include "executor/job.h"

static const struct sl_opt options[] = {
    {.name = "set", .letter = 's', .type = SL_OPT_LIST, .arg = "KEY=VALUE",
     .help = "Override a key of the job file, as in --set train.lr=3e-4. May be repeated."},
    {.name = "json", .help = "Print JSON, also about a mistake."},
};

static void describe(const struct sl_job *job, struct sl_buf *b)
{
    const struct sl_train_spec *t = &job->train;
    int64_t ranks = sl_job_ranks(job);

    sl_buf_printf(b, "%s: ok: \"%s\", %s of %lld layers and width %lld, %s on %lld rank%s, %s, ",
                  job->file, job->name, job->model.kind, (long long)job->model.layers,
                  (long long)job->model.width, sl_strategy_name(t->strategy), (long long)ranks,
                  ranks == 1 ? "" : "s", sl_precision_name(t->precision));
    if (t->steps)
        sl_buf_printf(b, "%lld steps", (long long)t->steps);
    else
        sl_buf_printf(b, "%g epochs", t->epochs);
    sl_buf_printf(b, " of %lld samples\n", (long long)t->batch);
}

static void describe_json(const char *file, const struct sl_job *job, const struct sl_err *err,
                          struct sl_buf *b)
{
    struct sl_json j;

    sl_json_init(&j, b);
    sl_json_object(&j);
    sl_json_put_str(&j, "file", file);
    sl_json_put_bool(&j, "ok", job != NULL);
    if (job) {
        sl_json_put_str(&j, "name", job->name);
        sl_json_put_int(&j, "ranks", sl_job_ranks(job));
        sl_json_put_str(&j, "strategy", sl_strategy_name(job->train.strategy));
        sl_json_put_str(&j, "precision", sl_precision_name(job->train.precision));
    } else {
        sl_json_put_str(&j, "error", err->msg);
        sl_json_put_str(&j, "hint", err->hint[0] ? err->hint : NULL);
    }
    sl_json_end(&j);
    sl_buf_char(b, '\n');
}

static int run(const struct sl_args *args, struct sl_err *err)
{
    int n, n_set, rc = 0;
    const char *file = sl_args_operands(args, &n)[0];
    const char *const *set = sl_args_list(args, "set", &n_set);
    struct sl_job *job = sl_job_load(file, set, n_set, err);
    struct sl_err printing = {0};
    struct sl_buf b;

    sl_buf_init(&b, 1 << 16);
    if (sl_args_given(args, "json"))
        describe_json(file, job, err, &b);
    else if (job)
        describe(job, &b);
    if (sl_print(&b, job ? err : &printing) || !job)
        rc = -1;
    sl_buf_fini(&b);
    sl_job_destroy(job);
    return rc;
}

const struct sl_cmd sl_cmd_check = {
    .name = "check",
    .operands = "JOB.toml",
    .least = 1,
    .most = 1,
    .summary = "Say whether a job file is right, without running anything.",
    .details = "Prints one line and ends with status 0, or says where the first mistake is, what is "
               "allowed there, and ends with status 2. Data files are not opened.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .run = run,
};
