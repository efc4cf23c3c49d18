/* main.c - the program: find the subcommand, run it, print its error */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/commands.h"
#include "common/str.h"

static const char usage[] = "usage: shardlaunch JOB.toml [OPTIONS]\n"
                            "       shardlaunch SUBCOMMAND [OPTIONS] [OPERANDS]\n";

static void help(struct sl_buf *out)
{
    int n;
    const struct sl_cmd *const *all = sl_commands(&n);

    sl_buf_str(out, usage);
    sl_buf_str(out, "\nTrains models with sharded data parallelism from one TOML file.\n"
                    "\nSubcommands:\n");
    for (int i = 0; i < n; i++)
        if (!all[i]->hidden)
            sl_buf_printf(out, "  %-10s %s\n", all[i]->name, all[i]->summary);
    sl_buf_str(out, "\n\"shardlaunch SUBCOMMAND --help\" says more. "
                    "The first word may be a job file: then it is run.\n");
}

/* The text and status 0, or -1. NULL: the list of subcommands. */
static int print_help(const struct sl_cmd *cmd, struct sl_err *err)
{
    struct sl_buf b;
    int rc;

    sl_buf_init(&b, 1 << 16);
    if (cmd)
        sl_cmd_help(cmd, &b);
    else
        help(&b);
    rc = sl_print(&b, err);
    sl_buf_fini(&b);
    return rc;
}

static int call(const struct sl_cmd *cmd, int n, char **words, struct sl_err *err)
{
    struct sl_args *args = sl_args_parse(cmd, n, words, err);
    int rc;

    if (!args)
        return -1;
    rc = sl_args_help(args) ? print_help(cmd, err) : cmd->run(args, err);
    sl_args_destroy(args);
    return rc;
}

static int is_job_file(const char *word)
{
    struct stat st;

    return sl_str_ends(word, ".toml") || (!stat(word, &st) && S_ISREG(st.st_mode));
}

static int unknown(const char *word, struct sl_err *err)
{
    const char *names[64];
    char shown[80];
    int n, k = 0, near;
    const struct sl_cmd *const *all = sl_commands(&n);

    for (int i = 0; i < n && k < 64; i++)
        if (!all[i]->hidden)
            names[k++] = all[i]->name;
    sl_str_escape(shown, sizeof shown, word);
    if (word[0] == '-')
        sl_fail(err, SL_USAGE, "unknown option \"%s\" before a subcommand", shown);
    else
        sl_fail(err, SL_USAGE, "\"%s\" is neither a subcommand nor a job file", shown);
    near = sl_str_nearest(word, names, k);
    if (near >= 0)
        return sl_hint(err, "Did you mean \"%s\"?", names[near]);
    if (word[0] == '-')
        return sl_hint(err, "Options follow the job file or the subcommand, as in \"shardlaunch "
                            "JOB.toml --set train.lr=3e-4\".");
    return sl_hint(err, "\"shardlaunch --help\" lists the subcommands.");
}

static int dispatch(int argc, char **argv, struct sl_err *err)
{
    const char *word = argv[1];
    const struct sl_cmd *cmd = sl_command_find(word);

    if (cmd)
        return call(cmd, argc - 2, argv + 2, err);
    if (!strcmp(word, "--help") || !strcmp(word, "-h") || !strcmp(word, "help")) {
        if (argc > 2 && !(cmd = sl_command_find(argv[2])))
            return unknown(argv[2], err);
        return print_help(cmd, err);
    }
    if (!strcmp(word, "--version"))
        return call(&sl_cmd_version, argc - 2, argv + 2, err);
    cmd = sl_command_find("run");
    if (cmd && is_job_file(word))
        return call(cmd, argc - 1, argv + 1, err);
    return unknown(word, err);
}

int main(int argc, char **argv)
{
    struct sl_err err = {0};
    int rc;

    signal(SIGXFSZ, SIG_IGN); /* a file at its limit (ulimit -f) is an error to tell, no reason to die */
    if (argc < 2) {
        fputs(usage, stderr);
        return SL_EXIT_USAGE;
    }
    rc = dispatch(argc, argv, &err);
    if (rc >= 0)
        return rc;
    sl_say_error(&err);
    return sl_exit_status(err.code);
}
