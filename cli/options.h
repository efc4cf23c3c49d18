#ifndef SL_OPTIONS_H
#define SL_OPTIONS_H

/*
 * options.h - a subcommand's options: one table for parsing, messages and help
 *
 * Long options take "--opt value" or "--opt=value", short ones "-o value" or "-ovalue"; flags may be
 * joined ("-fv"). Options and operands mix; "--" ends the options. A repeated option wins with its
 * last value, except SL_OPT_LIST, which keeps all.
 */

#include <stdint.h>

#include "common/buf.h"
#include "common/err.h"

enum sl_opt_type {
    SL_OPT_FLAG,
    SL_OPT_TEXT,     /* any text, or one of `words` */
    SL_OPT_LIST,     /* any texts, in order */
    SL_OPT_INT,      /* min..max */
    SL_OPT_SIZE,     /* bytes: "512MiB" */
    SL_OPT_DURATION, /* seconds: "12h" */
};

struct sl_opt {
    const char *name; /* without "--" */
    char letter;      /* 0: none */
    enum sl_opt_type type;
    const char *arg;          /* how help calls the value: "N"; NULL for a flag */
    const char *help;         /* one line, a sentence */
    int64_t min, max;         /* INT */
    const char *const *words; /* TEXT; ends with NULL; NULL: any */
};

struct sl_args; /* opaque: what one command line gave */

struct sl_cmd {
    const char *name;     /* "plan" */
    const char *operands; /* "JOB.toml", "[ID...]"; "" for none */
    int least, most;      /* operands; most < 0: any number */
    const char *summary;  /* one line for the list of subcommands */
    const char *details;  /* a paragraph for its own help; may be NULL */
    const struct sl_opt *options;
    int n_options;
    int hidden; /* 1: not listed */
    /* The exit status, or -1 with `err` (main prints it and takes the status from its code). */
    int (*run)(const struct sl_args *args, struct sl_err *err);
};

/*
 * Read the words behind the subcommand's name. Caller destroys. SL_USAGE: an unknown option (the
 * hint names the nearest), a value that is missing, wrong or not wanted, too few or many operands.
 */
struct sl_args *sl_args_parse(const struct sl_cmd *cmd, int n, char *const *words,
                              struct sl_err *err);
void sl_args_destroy(struct sl_args *a); /* NULL is fine */

/* By long name; a name that the table lacks is a bug and counts as not given. Lent from `a`. */
int sl_args_given(const struct sl_args *a, const char *name); /* how many times; for flags, too */
const char *sl_args_text(const struct sl_args *a, const char *name, const char *otherwise);
int64_t sl_args_int(const struct sl_args *a, const char *name, int64_t otherwise); /* SIZE, too */
double sl_args_duration(const struct sl_args *a, const char *name, double otherwise);
const char *const *sl_args_list(const struct sl_args *a, const char *name, int *n);
const char *const *sl_args_operands(const struct sl_args *a, int *n);
int sl_args_help(const struct sl_args *a); /* 1: --help or -h was given; nothing else was checked */

void sl_cmd_help(const struct sl_cmd *cmd, struct sl_buf *out); /* the text of --help */

#endif
