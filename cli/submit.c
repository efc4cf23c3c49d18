/* submit.c - hand a job to Slurm: our id, a batch script, sbatch */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/state.h"
#include "common/fs.h"
#include "common/mem.h"
#include "executor/job.h"
#include "store/jobs.h"
#include "store/published.h"
#include "store/store.h"

extern char **environ;

static const struct sl_opt options[] = {
    {.name = "slurm", .help = "Hand it to Slurm, by sbatch. The only scheduler so far."},
    {.name = "dry-run", .help = "Print the batch script; submit nothing, note nothing."},
    {.name = "set",
     .letter = 's',
     .type = SL_OPT_LIST,
     .arg = "KEY=VALUE",
     .help = "Override a key of the job file, as in --set train.lr=3e-4. May be repeated."},
    {.name = "sbatch",
     .type = SL_OPT_LIST,
     .arg = "OPTION",
     .help = "A line for the script's head, as in --sbatch --partition=gpu. May be repeated."},
    {.name = "time",
     .type = SL_OPT_DURATION,
     .arg = "TIME",
     .help = "Time limit of the Slurm job; the run stops with a checkpoint before it."},
    SL_OPT_DB,
};

enum { MAX_SET = 256, MARGIN_S = 90 }; /* Slurm signals up to a minute early; a checkpoint takes time */

struct submit {
    const struct sl_args *args;
    struct sl_job *job;
    char *text, *db, *exe;
    struct sl_buf script;
};

static int load(struct submit *s, struct sl_err *err)
{
    const char *const *set;
    char exe[4096];
    ssize_t k = readlink("/proc/self/exe", exe, sizeof exe - 1);
    int n, n_op;

    set = sl_args_list(s->args, "set", &n);
    if (n > MAX_SET)
        return sl_fail(err, SL_USAGE, "more than %d times --set", MAX_SET);
    if (k < 0)
        return sl_fail(err, SL_SYSTEM, "cannot read /proc/self/exe: %s", strerror(errno));
    exe[k] = '\0';
    s->exe = sl_strdup(exe);
    s->job = sl_job_load(sl_args_operands(s->args, &n_op)[0], set, n, err);
    s->text = s->job ? sl_job_text(s->job, err) : NULL;
    s->db = s->text ? sl_state_db(s->args, err) : NULL;
    if (!s->db)
        return -1;
    return s->exe ? 0 : sl_fail(err, SL_SYSTEM, "cannot hold a path: %s", strerror(errno));
}

/* Between single quotes, as a shell reads it. */
static void quote(struct sl_buf *b, const char *text)
{
    sl_buf_char(b, '\'');
    for (; *text; text++)
        if (*text == '\'')
            sl_buf_str(b, "'\\''");
        else
            sl_buf_char(b, *text);
    sl_buf_char(b, '\'');
}

/* A job's name as #SBATCH takes it: no blanks, no quotes. */
static void plain(struct sl_buf *b, const char *text)
{
    for (; *text; text++)
        sl_buf_char(b, strchr(" \t\"'\\#$`%", *text) ? '_' : *text);
}

static int head(struct submit *s, const char *folder, struct sl_err *err)
{
    const struct sl_resources *r = &s->job->resources;
    double grace = s->job->failure.grace;
    struct sl_buf *b = &s->script;
    const char *const *more;
    int n;

    more = sl_args_list(s->args, "sbatch", &n);
    sl_buf_str(b, "#!/bin/bash\n#SBATCH --job-name=");
    plain(b, s->job->name);
    sl_buf_printf(b, "\n#SBATCH --nodes=%" PRId64 "\n#SBATCH --ntasks-per-node=1\n", r->nodes);
    if (r->threads > 0)
        sl_buf_printf(b, "#SBATCH --cpus-per-task=%" PRId64 "\n", r->threads * r->ranks_per_node);
    else
        sl_buf_printf(b, "#SBATCH --exclusive\n");
    if (sl_args_given(s->args, "time"))
        sl_buf_printf(b, "#SBATCH --time=%.0f\n",
                      fmax(1, ceil(sl_args_duration(s->args, "time", 0) / 60)));
    sl_buf_printf(b, "#SBATCH --signal=USR2@%.0f\n", ceil(grace) + MARGIN_S);
    sl_buf_str(b, "#SBATCH --requeue\n#SBATCH --open-mode=append\n#SBATCH --output=");
    sl_buf_printf(b, "%s/slurm-%%j.out\n", folder);
    for (int i = 0; i < n; i++) {
        if (strchr(more[i], '\n') || more[i][0] != '-')
            return sl_fail(err, SL_USAGE, "--sbatch \"%s\" is no option of sbatch", more[i]);
        sl_buf_printf(b, "#SBATCH %s\n", more[i]);
    }
    return 0;
}

static int make_script(struct submit *s, const char *id, const char *folder, struct sl_err *err)
{
    const struct sl_resources *r = &s->job->resources;
    struct sl_buf *b = &s->script;

    sl_buf_init(b, 1 << 20);
    if (head(s, folder, err))
        return -1;
    sl_buf_str(b, "\n# srun does not take --cpus-per-task over from the head\nsrun --mpi=pmix ");
    if (r->threads > 0)
        sl_buf_printf(b, "--cpus-per-task=%" PRId64 " ", r->threads * r->ranks_per_node);
    quote(b, s->exe);
    sl_buf_printf(b, " retry %s --no-web --db ", id);
    quote(b, s->db);
    sl_buf_str(b, "\nstatus=$?\n# 75: stopped with a checkpoint. The job goes on when Slurm starts it"
                  " again, as the same job.\n"
                  "if [ $status = 75 ]; then scontrol requeue \"$SLURM_JOB_ID\"; fi\n"
                  "exit $status\n");
    return sl_buf_check(b, err);
}

/* `sbatch --parsable FILE`: "ID" or "ID;CLUSTER" into ret. */
static int sbatch(const char *file, char *ret, size_t size, struct sl_err *err)
{
    char *argv[] = {"sbatch", "--parsable", sl_strdup(file), NULL};
    posix_spawn_file_actions_t fa;
    int p[2] = {-1, -1}, rc, st = 0;
    size_t n = 0;
    ssize_t k;
    pid_t pid;

    if (!argv[2] || pipe2(p, O_CLOEXEC)) {
        free(argv[2]);
        return sl_fail(err, SL_SYSTEM, "cannot start sbatch: %s", strerror(errno));
    }
    posix_spawn_file_actions_init(&fa);
    posix_spawn_file_actions_adddup2(&fa, p[1], 1);
    rc = posix_spawnp(&pid, argv[0], &fa, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&fa);
    free(argv[2]);
    close(p[1]);
    while (!rc && n + 1 < size && ((k = read(p[0], ret + n, size - 1 - n)) > 0 || (k < 0 && errno == EINTR)))
        n += k > 0 ? (size_t)k : 0;
    ret[n] = '\0';
    ret[strcspn(ret, "\r\n")] = '\0';
    close(p[0]);
    if (rc) {
        sl_fail(err, SL_SYSTEM, "cannot start sbatch: %s", strerror(rc));
        return sl_hint(err, "Is this a machine of the cluster? --dry-run prints the script.");
    }
    while (waitpid(pid, &st, 0) < 0 && errno == EINTR)
        ;
    if (st || !ret[0] || strspn(ret, "0123456789") == 0)
        return sl_fail(err, SL_SYSTEM, "sbatch has refused the script (see above), which is %s", file);
    return 0;
}

static int hand_over(struct submit *s, struct sl_store *st, int64_t id, struct sl_err *err)
{
    char dir[4096], num[32], slurm[128], why[300];
    char *path = NULL, *toml = NULL;
    struct sl_lease me;
    int rc = -1;

    snprintf(num, sizeof num, "%" PRId64, id);
    if (sl_jobs_dir(st, id, dir, sizeof dir, err) || sl_lease_self(&me, err))
        return -1;
    toml = sl_fs_absolute(dir, "job.toml", err);
    path = sl_fs_absolute(dir, "slurm.sh", err);
    if (!toml || !path || make_script(s, num, dir, err)
        || sl_fs_write_atomic(toml, s->text, strlen(s->text), 0600, err)
        || sl_fs_write_atomic(path, sl_buf_text(&s->script), s->script.len, 0700, err)
        || sl_jobs_move(st, id, &me, SL_QUEUED, "to be submitted to Slurm", err)
        || sl_published_write(st, id, err) /* before Slurm starts it */
        || sbatch(path, slurm, sizeof slurm, err)) {
        struct sl_err ignored = {0};

        sl_jobs_end(st, id, &me, SL_FAILED, SL_EXIT_MACHINE, err ? err->msg : "", &ignored);
        sl_published_write(st, id, &ignored);
        goto end;
    }
    snprintf(why, sizeof why, "submitted to Slurm as job %s", slurm);
    sl_say("job %s \"%s\" is %s; its output goes to %s/slurm-%.*s.out", num, s->job->name, why, dir,
           (int)strcspn(slurm, ";"), slurm);
    printf("%s\n", num);
    rc = fflush(stdout) ? sl_fail(err, SL_SYSTEM, "cannot print: %s", strerror(errno)) : SL_EXIT_OK;
end:
    free(path);
    free(toml);
    return rc;
}

static int submit(struct submit *s, struct sl_err *err)
{
    struct sl_new_job row = {.name = s->job->name,
                             .text = s->text,
                             .ranks = sl_job_ranks(s->job),
                             .strategy = sl_strategy_name(s->job->train.strategy)};
    struct sl_opened state;
    int64_t id;
    int rc = sl_state_write(s->db, &state, err);

    if (!rc)
        rc = sl_published_claim(state.st, err) || sl_jobs_create(state.st, &row, &id, err) ? -1 : 0;
    if (!rc) {
        rc = hand_over(s, state.st, id, err);
        sl_published_release(state.st, id);
    }
    sl_state_close(&state);
    return rc;
}

static int run(const struct sl_args *args, struct sl_err *err)
{
    struct submit s = {.args = args};
    int rc;

    if (!sl_args_given(args, "slurm")) {
        sl_fail(err, SL_USAGE, "submit knows no scheduler but Slurm so far");
        return sl_hint(err, "Say submit --slurm; to train on this machine now, run.");
    }
    sl_buf_init(&s.script, 1 << 20);
    rc = load(&s, err);
    if (!rc && sl_args_given(args, "dry-run"))
        rc = make_script(&s, "ID", "runs/ID", err) ? -1 : sl_print(&s.script, err);
    else if (!rc)
        rc = submit(&s, err);
    sl_buf_fini(&s.script);
    sl_job_destroy(s.job);
    free(s.text);
    free(s.db);
    free(s.exe);
    return rc;
}

const struct sl_cmd sl_cmd_submit = {
    .name = "submit",
    .operands = "JOB.toml",
    .least = 1,
    .most = 1,
    .summary = "Hand a job to Slurm; prints its id here.",
    .details = "It runs on resources.nodes nodes, one task on each, which starts resources.ranks_per_node"
               " ranks. Before the time limit it stops with a checkpoint and is queued again under"
               " the same id. The state folder must be on a file system that the nodes share.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .run = run,
};
