/* run.c - train: read the job, plan it, refuse it or launch it; or take an ended one up again */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/alloc.h"
#include "cli/commands.h"
#include "cli/page.h"
#include "cli/requeue.h"
#include "cli/state.h"
#include "common/fs.h"
#include "common/mem.h"
#include "common/proc.h"
#include "executor/checkpoint/checkpoint.h"
#include "executor/data/dataset.h"
#include "executor/plan.h"
#include "launcher/crew.h"
#include "launcher/launch.h"
#include "store/jobs.h"
#include "store/published.h"
#include "store/reader.h"
#include "store/store.h"

static const struct sl_opt options[] = {
    {.name = "set",
     .letter = 's',
     .type = SL_OPT_LIST,
     .arg = "KEY=VALUE",
     .help = "Override a key of the job file, as in --set train.lr=3e-4. May be repeated."},
    {.name = "ranks",
     .letter = 'n',
     .type = SL_OPT_INT,
     .arg = "N",
     .min = 1,
     .max = SL_MAX_RANKS,
     .help = "Ranks, in place of resources.ranks_per_node."},
    {.name = "strategy",
     .type = SL_OPT_TEXT,
     .arg = "S",
     .words = sl_strategy_words,
     .help = "Sharding strategy, in place of train.strategy."},
    {.name = "name", .type = SL_OPT_TEXT, .arg = "NAME", .help = "The job's name."},
    {.name = "db",
     .type = SL_OPT_TEXT,
     .arg = "FILE",
     .help = "Database of jobs (else SHARDLAUNCH_DB, else in the state folder)."},
    {.name = "progress",
     .type = SL_OPT_DURATION,
     .arg = "SECONDS",
     .help
     = "Seconds between progress lines when stderr is no terminal; 0 for none. 10 if not given."},
    {.name = "show-logs", .help = "Show the ranks' output, each line with its rank."},
    {.name = "alloc",
     .help = "Ask Slurm for resources.nodes nodes (salloc) and run on them; SALLOC_PARTITION and the"
             " like say which."},
    SL_OPT_PORT,
    {.name = "no-web", .help = "Serve no status page."},
    {.name = "quiet", .letter = 'q', .help = "Say nothing unless something is wrong."},
};

enum { MAX_SET = 256 };

struct run {
    const struct sl_args *args;
    struct sl_job *job;
    char *file;       /* the job's */
    int again;        /* it has been run before: `retry` */
    const char *how;  /* what a person has typed, in short: for hints */
    struct sl_crew *crew; /* the tasks of srun or mpirun; NULL: alone */
    char *text, *folder, *numbers;
    struct sl_opened state; /* .db: the database, once the job is in it */
    struct sl_program *program;
    struct sl_plan plan;
    struct sl_plan_limits limits;
    struct sl_dataset_files files;
    int64_t steps, samples, id;
    char checkpoints[SL_CKPT_PATH], from[SL_CKPT_PATH];
    int lock; /* of the checkpoints' folder, -1: none; the agent inherits it */
    int refused; /* the plan does not fit */
};

/* ---- the job ---- */

/* `key = "value"` as --set takes it, whatever the value holds. Caller frees. */
static char *setting(const char *key, const char *value, struct sl_err *err)
{
    struct sl_buf b;
    char *s;

    sl_buf_init(&b, 1 << 16);
    sl_buf_printf(&b, "%s=\"", key);
    for (; *value; value++) {
        if (*value == '"' || *value == '\\')
            sl_buf_char(&b, '\\');
        sl_buf_char(&b, *value);
    }
    sl_buf_char(&b, '"');
    s = sl_buf_take(&b, err);
    sl_buf_fini(&b);
    return s;
}

/* What the job asks for against what was started; the settings that say the latter. */
static int take_shape(struct run *r, char shape[2][64], struct sl_err *err)
{
    const struct sl_resources *want = &r->job->resources;
    int each;

    if (sl_args_given(r->args, "alloc"))
        return 0;
    if (!r->crew && want->nodes > 1) {
        sl_fail(err, SL_USAGE, "resources.nodes is %" PRId64 ", and this is one task on one machine",
                want->nodes);
        return sl_hint(err, "Say srun --mpi=pmix -N%" PRId64 " --ntasks-per-node=1 %s, also inside"
                            " sbatch and salloc; or --set resources.nodes=1.",
                       want->nodes, r->how);
    }
    if (!r->crew)
        return 0;
    if (sl_crew_shape(r->crew, r->how, want->nodes, want->ranks_per_node, &each, err))
        return -1;
    sl_crew_number(r->crew, each);
    snprintf(shape[0], sizeof shape[0], "resources.nodes=%d", r->crew->nodes);
    snprintf(shape[1], sizeof shape[1], "resources.ranks_per_node=%d", each);
    return 0;
}

/* --set in the order given, then the options that stand for keys. */
static int load(struct run *r, struct sl_err *err)
{
    const char *set[MAX_SET + 5], *const *given;
    char ranks[64], shape[2][64], *strategy = NULL, *name = NULL;
    int n, n_set = 0, rc = -1;

    given = sl_args_list(r->args, "set", &n);
    if (n > MAX_SET)
        return sl_fail(err, SL_USAGE, "more than %d times --set", MAX_SET);
    while (n_set < n) {
        set[n_set] = given[n_set];
        n_set++;
    }
    if (sl_args_given(r->args, "ranks")) {
        snprintf(ranks, sizeof ranks, "resources.ranks_per_node=%" PRId64,
                 sl_args_int(r->args, "ranks", 1));
        set[n_set++] = ranks;
    }
    if (sl_args_given(r->args, "strategy")) {
        strategy = setting("train.strategy", sl_args_text(r->args, "strategy", ""), err);
        if (!strategy)
            goto end;
        set[n_set++] = strategy;
    }
    if (sl_args_given(r->args, "name")) {
        name = setting("name", sl_args_text(r->args, "name", ""), err);
        if (!name)
            goto end;
        set[n_set++] = name;
    }
    r->job = sl_job_load(r->file, set, n_set, err);
    if (r->job && take_shape(r, shape, err))
        goto end;
    if (r->job && r->crew) { /* as what it was started on has it */
        sl_job_destroy(r->job);
        set[n_set++] = shape[0];
        set[n_set++] = shape[1];
        r->job = sl_job_load(r->file, set, n_set, err);
    }
    if (r->job)
        r->text = sl_job_text(r->job, err);
    rc = r->text ? 0 : -1;
end:
    free(strategy);
    free(name);
    return rc;
}

/* ---- what it needs ---- */

static int plan(struct run *r, struct sl_err *err)
{
    const struct sl_job *job = r->job;
    int ranks = sl_job_ranks(job), nodes = (int)job->resources.nodes;
    int cores = r->crew ? sl_crew_cores(r->crew) : sl_proc_cpus();

    r->limits = (struct sl_plan_limits){.per_rank = job->resources.memory_limit,
                                        .machine = nodes * sl_proc_memory_limit(),
                                        .cores = nodes * cores};
    r->program = sl_program_make(job, ranks, job->train.strategy,
                                 sl_program_threads(job, ranks, r->limits.cores), 0, err);
    if (!r->program)
        return -1;
    sl_plan_read(r->program, job, &r->limits, &r->plan);
    r->refused = sl_plan_refuse(job, &r->plan, &r->limits, err) != 0;
    return r->refused ? -1 : 0;
}

/* Tokens are kept beside the database, for all jobs, or where the user says: nodes must share them. */
static int prepare_data(struct run *r, const char *state, struct sl_err *err)
{
    const char *other = getenv("SHARDLAUNCH_CACHE");
    char *cache = sl_fs_absolute(other && *other ? other : state, "tokens", err);
    struct sl_dataset_spec spec;
    struct sl_dataset *ds;
    int rc = cache ? sl_dataset_prepare(r->job, cache, &r->files, err) : -1;

    free(cache);
    if (rc)
        return -1;
    if (r->files.damaged)
        sl_say("token files that were damaged have been made anew: %d, %s", r->files.damaged,
               r->files.train);
    spec = sl_dataset_spec(r->job, &r->files);
    ds = sl_dataset_open(&spec, err);
    if (!ds)
        return -1;
    r->steps = sl_dataset_steps(ds, &r->job->train);
    r->samples = sl_dataset_train_samples(ds);
    sl_dataset_close(ds);
    return 0;
}

/* ---- its place in the store ---- */

static int create(struct run *r, struct sl_store *st, struct sl_err *err)
{
    struct sl_new_job row = {.name = r->job->name,
                             .text = r->text,
                             .ranks = r->plan.ranks,
                             .steps = r->steps,
                             .strategy = sl_strategy_name(r->plan.strategy)};
    char dir[4096];
    struct sl_buf json;
    char *path;
    int rc;

    sl_buf_init(&json, 1 << 20);
    sl_plan_json(&r->plan, 1, &json);
    rc = sl_buf_check(&json, err);
    row.plan = sl_buf_text(&json);
    if (!rc && r->again)
        rc = sl_jobs_again(st, r->id, &row, err) == 1 ? 0 : -1;
    else if (!rc)
        rc = sl_published_claim(st, err) || sl_jobs_create(st, &row, &r->id, err) ? -1 : 0;
    sl_buf_fini(&json);
    if (rc || sl_jobs_dir(st, r->id, dir, sizeof dir, err))
        return -1;
    if (!r->folder)
        r->folder = sl_strdup(dir);
    path = sl_fs_absolute(dir, "job.toml", err);
    if (!r->folder || !path)
        return sl_fail(err, SL_SYSTEM, "cannot hold a path: %s", strerror(errno));
    rc = sl_fs_write_atomic(path, r->text, strlen(r->text), 0600, err);
    free(path);
    return rc;
}

/* Where its rows are published: for the first time. */
static int publish(struct run *r, struct sl_store *st, struct sl_err *err)
{
    if (!sl_published_is(st))
        return 0;
    r->numbers = sl_fs_absolute(r->folder, "published.db", err);
    if (!r->numbers || sl_published_write(st, r->id, err))
        return -1;
    if (!sl_args_given(r->args, "quiet"))
        sl_say("\"%s\" is on a network file system: job %" PRId64 " keeps its rows on this machine and"
               " publishes them every few seconds",
               sl_store_dir(st), r->id);
    return 0;
}

/* The last word about what was published; what has taken the rows along is no more. */
static void leave(struct run *r)
{
    struct sl_err err = {0};
    struct sl_store *st = r->state.local && r->id && r->numbers
                              ? sl_store_open(r->state.db, SL_STORE_WRITE, &err)
                              : NULL;

    if (st && sl_published_write(st, r->id, &err))
        sl_say("the last rows of job %" PRId64 " are not published: %s", r->id, err.msg);
    if (st)
        sl_published_release(st, r->id);
    sl_store_close(st);
    sl_state_close(&r->state);
}

/* The handle does not survive the launch's fork: it is closed here. */
static int enter(struct run *r, struct sl_err *err)
{
    char *db = sl_state_db(r->args, err);
    int bad = !db || sl_state_write(db, &r->state, err), rc;
    struct sl_store *st = r->state.st;

    free(db);
    if (bad)
        return -1;
    sl_jobs_sweep(st, NULL); /* what died without a word; no reason to stop this one */
    rc = prepare_data(r, sl_store_dir(st), err);
    if (!rc && !r->again)
        rc = r->again = sl_requeue_find(sl_store_dir(st), &r->id, err);
    if (rc >= 0 && r->again)
        rc = sl_published_take(st, r->id, sl_requeue_again(), err);
    if (rc >= 0 && r->again && sl_requeue_again())
        rc = sl_jobs_lose(st, r->id, "Slurm has started its job again", err);
    if (rc >= 0) {
        sl_launch_hold();
        rc = create(r, st, err);
    }
    if (!rc)
        rc = sl_requeue_note(sl_store_dir(st), r->id, err);
    if (!rc)
        rc = publish(r, st, err);
    if (rc && r->id)
        sl_published_release(st, r->id);
    sl_store_close(st);
    r->state.st = NULL;
    return rc;
}

/*
 * Where checkpoints go and what to go on from; the folder is locked and tried now when the job means
 * to write into it, else when a wish to stop makes the first one.
 */
static int checkpoints(struct run *r, struct sl_err *err)
{
    const struct sl_checkpoint_spec *spec = &r->job->checkpoint;
    struct sl_ckpt_conf conf = {.dir = r->checkpoints,
                                .text = r->text,
                                .job = r->id,
                                .steps = r->steps,
                                .samples = r->samples};
    int64_t step;

    if (sl_ckpt_dir(r->job, r->id, r->folder, r->checkpoints, err)
        || ((spec->every > 0 || spec->dir) && sl_ckpt_lock(r->checkpoints, &r->lock, err))
        || sl_ckpt_pick(r->job, &conf, r->again ? 2 : 1, r->from, &step, err))
        return -1;
    if (step && !sl_args_given(r->args, "quiet"))
        sl_say("job %" PRId64 " goes on behind step %" PRId64 ", from %s", r->id, step, r->from);
    return 0;
}

/* Nothing was started: the job is ours to end. */
static void give_up(const struct run *r, const struct sl_err *why)
{
    int status = why->code == SL_USAGE ? SL_EXIT_USAGE : SL_EXIT_MACHINE;
    struct sl_err err = {0};
    struct sl_lease me;
    struct sl_store *st = sl_store_open(r->state.db, SL_STORE_WRITE, &err);

    if (!st || sl_lease_self(&me, &err)
        || sl_jobs_end(st, r->id, &me, SL_FAILED, status, why->msg, &err))
        sl_say("job %" PRId64 " is not marked as failed: %s", r->id, err.msg);
    sl_store_close(st);
}

/* ---- go ---- */

static void announce(const struct run *r)
{
    const struct sl_plan *p = &r->plan;

    if (p->ranks > r->limits.cores)
        sl_say("%d ranks share %d core%s: they take turns", p->ranks, r->limits.cores,
               r->limits.cores == 1 ? "" : "s");
    if (sl_args_given(r->args, "quiet"))
        return;
    sl_say("job %" PRId64 " \"%s\": %s on %d rank%s of %d thread%s, %" PRId64
           " steps, %.1f MiB a rank",
           r->id, r->job->name, sl_strategy_name(p->strategy), p->ranks, p->ranks == 1 ? "" : "s",
           p->threads, p->threads == 1 ? "" : "s", r->steps,
           (double)p->rank0.total / (1024.0 * 1024.0));
    sl_say("job %" PRId64 " keeps its logs in %s", r->id, r->folder);
}

static int launch(struct run *r, struct sl_err *err)
{
    struct sl_page_opts page = {.db = r->state.db, .port = (int)sl_args_int(r->args, "port", -1)};
    int web = !sl_args_given(r->args, "no-web");
    struct sl_launch l = {
        .job = r->job,
        .job_text = r->text,
        .id = r->id,
        .db = r->state.db,
        .numbers = r->numbers,
        .folder = r->folder,
        .crew = r->crew,
        .ranks = r->plan.ranks,
        .threads = r->plan.threads,
        .units = r->program->train->nunits,
        .arena_bytes = r->program->arena0,
        .data = r->files,
        .checkpoints = r->checkpoints,
        .samples = r->samples,
        .from = r->from,
        .steps = r->steps,
        .out = 2,
        .show_logs = sl_args_given(r->args, "show-logs"),
        .quiet = sl_args_given(r->args, "quiet"),
        .progress = sl_args_duration(r->args, "progress", 10),
        .page_open = web ? sl_page_open_in_run : NULL,
        .page_close = web ? sl_page_close_in_run : NULL,
        .user = &page,
    };
    int status = sl_launch_run(&l, err);

    if (status < 0)
        give_up(r, err);
    return status;
}

/* A task of several that does not decide: its agent does what the first task's says. */
static int follow(struct run *r, struct sl_err *err)
{
    struct sl_launch l = {.crew = r->crew, .out = 2};

    return sl_launch_run(&l, err);
}

static int know(void *u, const struct sl_job_row *row)
{
    (void)u, (void)row;
    return 0;
}

/* `retry`: the job's folder holds its job file, complete and with absolute paths. 0, or a status. */
static int find(struct run *r, struct sl_err *err)
{
    struct sl_store *st;
    struct sl_opened s;
    char dir[4096];
    int found;

    if (sl_state_read(r->args, r->id, &s, err))
        return -1;
    st = s.st;
    found = st ? sl_read_job(st, r->id, know, NULL, err) : 0;
    if (found > 0 && sl_jobs_dir(st, r->id, dir, sizeof dir, err))
        found = -1;
    sl_state_close(&s);
    if (found <= 0)
        return found ? -1 : sl_state_no_job(r->id);
    r->file = sl_fs_absolute(dir, "job.toml", err);
    return r->file ? 0 : -1;
}

static int lead(struct run *r, struct sl_err *err)
{
    int status = r->again ? find(r, err) : 0;

    if (status) {
        if (r->crew)
            sl_crew_dismiss(r->crew, status < 0 ? sl_exit_status(err->code) : status);
        return status;
    }
    status = -1;
    if (!load(r, err) && !plan(r, err) && !enter(r, err)) {
        announce(r);
        if (checkpoints(r, err)) {
            give_up(r, err);
        } else {
            status = launch(r, err);
            if (status >= 0)
                return status;
        }
    } else if (r->refused) {
        sl_say_error(err);
        status = SL_EXIT_MEMORY;
    }
    if (r->crew) /* nothing was started: the other tasks wait to hear so */
        sl_crew_dismiss(r->crew, status < 0 ? sl_exit_status(err->code) : status);
    return status;
}

/* Only comes back when it fails. */
static int allocate(struct run *r, struct sl_err *err)
{
    int status = r->again ? find(r, err) : 0;

    if (!status)
        status = load(r, err) || sl_alloc_become(r->job, err) ? -1 : 0;
    return status;
}

static int go(struct run *r, struct sl_err *err)
{
    int status = -1;

    if (sl_args_given(r->args, "alloc"))
        status = allocate(r, err);
    else if (sl_crew_meet(r->how, NULL, &r->crew, err) >= 0)
        status = r->crew && r->crew->me > 0 ? follow(r, err) : lead(r, err);
    leave(r);
    sl_crew_destroy(r->crew);
    sl_program_destroy(r->program);
    sl_job_destroy(r->job);
    free(r->file);
    free(r->text);
    free(r->numbers);
    free(r->folder);
    if (r->lock >= 0)
        close(r->lock);
    return status;
}

static int run(const struct sl_args *args, struct sl_err *err)
{
    int n;
    struct run r = {.args = args, .lock = -1};
    char how[200];

    r.file = sl_strdup(sl_args_operands(args, &n)[0]);
    if (!r.file)
        return sl_fail(err, SL_SYSTEM, "cannot hold a path: %s", strerror(errno));
    snprintf(how, sizeof how, "shardlaunch %.150s", r.file);
    r.how = how;
    return go(&r, err);
}

static int retry(const struct sl_args *args, struct sl_err *err)
{
    struct run r = {.args = args, .lock = -1, .again = 1};
    char how[64];
    int n;

    if (sl_state_id(sl_args_operands(args, &n)[0], &r.id, err))
        return -1;
    snprintf(how, sizeof how, "shardlaunch retry %" PRId64, r.id);
    r.how = how;
    return go(&r, err);
}

const struct sl_cmd sl_cmd_run = {
    .name = "run",
    .operands = "JOB.toml",
    .least = 1,
    .most = 1,
    .summary = "Train: run a job on this machine, now.",
    .details = "The first word of the command may be left out when a job file follows. Ctrl-C once"
               " stops at the end of a step, twice at once. The status is 0 done, 1 failed, 2 wrong"
               " job file or data, 3 does not fit in memory, 5 the machine failed, 6 hang, 75 stopped"
               " with a checkpoint (a signal, time_limit), 128 + N stopped by signal N without one.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .run = run,
};

const struct sl_cmd sl_cmd_retry = {
    .name = "retry",
    .operands = "ID",
    .least = 1,
    .most = 1,
    .summary = "Take up a job again that was stopped, failed or lost, here and now.",
    .details = "It keeps its id and goes on from its newest checkpoint, from the beginning when it has"
               " none; ranks and strategy may be others than before. Statuses are those of run, and 4"
               " when there is no such job.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .run = retry,
};
