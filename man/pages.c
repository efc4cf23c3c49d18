/*
 * pages.c - fill the tables of the program into a page: options, job keys, completions
 *
 * usage: pages <TEMPLATE >PAGE     while building; not installed
 *
 * A line that is only "@subcommands@", "@keys@" or "@completions@" becomes that table, "@version@"
 * in a line the version. They are the tables that the program parses with, so a page cannot tell of
 * an option that is not there. Any other "@word@" line is an error.
 */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "common/buf.h"
#include "common/conf.h"
#include "executor/job_keys.h"

enum { MOST = 1 << 20, LINE = 4096 };

/* ---- roff ---- */

/* Text as roff shows it unchanged. Nothing here begins a line with it, so dots are no requests. */
static void roff(struct sl_buf *out, const char *s)
{
    for (; *s; s++)
        switch (*s) {
        case '-': /* else it is a hyphen, which cannot be pasted into a shell */
            sl_buf_str(out, "\\-");
            break;
        case '\\':
            sl_buf_str(out, "\\e");
            break;
        case '\'':
            sl_buf_str(out, "\\(aq");
            break;
        case '`':
            sl_buf_str(out, "\\(ga");
            break;
        case '^':
            sl_buf_str(out, "\\(ha");
            break;
        case '~':
            sl_buf_str(out, "\\(ti");
            break;
        default:
            sl_buf_char(out, *s);
        }
}

static void styled(struct sl_buf *out, char font, const char *s)
{
    sl_buf_printf(out, "\\f%c", font);
    roff(out, s);
    sl_buf_str(out, "\\fR");
}

static void allowed_words(struct sl_buf *out, const char *const *words)
{
    sl_buf_str(out, " One of ");
    for (int i = 0; words[i]; i++) {
        sl_buf_str(out, i ? ", " : "");
        styled(out, 'B', words[i]);
    }
    sl_buf_char(out, '.');
}

static void option(struct sl_buf *out, const struct sl_opt *o)
{
    char letter[3] = {'-', o->letter, '\0'};

    sl_buf_str(out, ".TP\n");
    if (o->letter) {
        styled(out, 'B', letter);
        sl_buf_str(out, ", ");
    }
    sl_buf_str(out, "\\fB\\-\\-");
    roff(out, o->name);
    sl_buf_str(out, "\\fR");
    if (o->arg) {
        sl_buf_char(out, '=');
        styled(out, 'I', o->arg);
    }
    sl_buf_str(out, "\n\\&");
    roff(out, o->help);
    if (o->words)
        allowed_words(out, o->words);
    if (o->type == SL_OPT_INT && o->max < INT64_MAX / 2)
        sl_buf_printf(out, " From %lld to %lld.", (long long)o->min, (long long)o->max);
    if (o->type == SL_OPT_SIZE)
        sl_buf_str(out, " A size.");
    if (o->type == SL_OPT_DURATION)
        sl_buf_str(out, " A time.");
    sl_buf_char(out, '\n');
}

static void subcommands(struct sl_buf *out)
{
    int n;
    const struct sl_cmd *const *all = sl_commands(&n);

    for (int i = 0; i < n; i++) {
        const struct sl_cmd *c = all[i];

        if (c->hidden)
            continue;
        sl_buf_str(out, ".SS \"");
        roff(out, c->name);
        if (*c->operands)
            sl_buf_char(out, ' ');
        roff(out, c->operands);
        sl_buf_str(out, "\"\n\\&");
        roff(out, c->summary);
        if (c->details) {
            sl_buf_char(out, ' ');
            roff(out, c->details);
        }
        sl_buf_char(out, '\n');
        for (int k = 0; k < c->n_options; k++)
            option(out, &c->options[k]);
    }
}

/* ---- job keys ---- */

static void key(struct sl_buf *out, const struct sl_conf_opt *o)
{
    const char *dot = strrchr(o->key, '.');
    char text[400];

    sl_buf_str(out, ".TP\n");
    styled(out, 'B', dot ? dot + 1 : o->key);
    if (o->type == SL_CONF_ABSENT)
        sl_buf_str(out, " (not in this version)");
    else if (!o->def)
        sl_buf_str(out, " (must be given)");
    else if (strcmp(o->def, "\"\"")) {
        sl_buf_str(out, " = ");
        roff(out, o->def);
    }
    sl_buf_str(out, "\n\\&");
    roff(out, o->help);
    if (o->type == SL_CONF_ABSENT) {
        sl_buf_str(out, " Refused: ");
        roff(out, o->why_not);
    } else {
        sl_conf_allowed(o, text, sizeof text);
        sl_buf_str(out, " Allowed: ");
        roff(out, text);
    }
    sl_buf_str(out, ".\n");
}

/* A section a table, in the order of the canonical text. */
static void keys(struct sl_buf *out)
{
    const char *table = "";
    size_t len = 0;
    int n;
    const struct sl_conf_opt *all = sl_job_keys(&n);

    for (int i = 0; i < n; i++) {
        const char *dot = strrchr(all[i].key, '.');
        size_t own = dot ? (size_t)(dot - all[i].key) : 0;

        if (!i && !own)
            sl_buf_str(out, ".SS \"Before the first table\"\n");
        if (own != len || strncmp(table, all[i].key, own))
            sl_buf_printf(out, ".SS \"[%.*s]\"\n", (int)own, all[i].key);
        table = all[i].key;
        len = own;
        key(out, &all[i]);
    }
}

/* ---- completions, for bash ---- */

/* One `case` arm a subcommand with its options, one an option whose values are known. */
static void completions(struct sl_buf *out)
{
    int n, n_keys;
    const struct sl_cmd *const *all = sl_commands(&n);
    const struct sl_conf_opt *job = sl_job_keys(&n_keys);

    sl_buf_str(out, "    commands='");
    for (int i = 0; i < n; i++)
        if (!all[i]->hidden)
            sl_buf_printf(out, "%s ", all[i]->name);
    sl_buf_str(out, "help'\n    local keys='");
    for (int i = 0; i < n_keys; i++)
        if (job[i].type != SL_CONF_ABSENT)
            sl_buf_printf(out, "%s%s=", i ? " " : "", job[i].key);
    sl_buf_str(out, "'\n    case $1 in\n");
    for (int i = 0; i < n; i++) {
        if (all[i]->hidden)
            continue;
        sl_buf_printf(out, "    %s) options='", all[i]->name);
        for (int k = 0; k < all[i]->n_options; k++)
            sl_buf_printf(out, "--%s%s ", all[i]->options[k].name,
                          all[i]->options[k].type == SL_OPT_FLAG ? "" : "=");
        sl_buf_str(out, "--help' ;;\n");
    }
    sl_buf_str(out, "    esac\n    case $1:$2 in\n");
    for (int i = 0; i < n; i++)
        for (int k = 0; k < all[i]->n_options && !all[i]->hidden; k++) {
            const struct sl_opt *o = &all[i]->options[k];

            if (o->words) {
                sl_buf_printf(out, "    %s:--%s) values='", all[i]->name, o->name);
                for (int w = 0; o->words[w]; w++)
                    sl_buf_printf(out, "%s%s", w ? " " : "", o->words[w]);
                sl_buf_str(out, "' ;;\n");
            } else if (!strcmp(o->name, "set")) {
                sl_buf_printf(out, "    %s:--set) values=$keys ;;\n", all[i]->name);
            }
        }
    sl_buf_str(out, "    esac\n");
}

/* ---- the template ---- */

static int line(struct sl_buf *out, const char *text)
{
    static const struct {
        const char *mark;
        void (*fill)(struct sl_buf *out);
    } table[] = {
        {"@subcommands@\n", subcommands}, {"@keys@\n", keys}, {"@completions@\n", completions}};
    const char *at;

    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (!strcmp(text, table[i].mark)) {
            table[i].fill(out);
            return 0;
        }
    if (text[0] == '@')
        return -1;
    while ((at = strstr(text, "@version@"))) {
        sl_buf_add(out, text, (size_t)(at - text));
        sl_buf_str(out, SL_VERSION);
        text = at + strlen("@version@");
    }
    sl_buf_str(out, text);
    return 0;
}

int main(void)
{
    struct sl_err err = {0};
    struct sl_buf out;
    char text[LINE];
    int rc = 0;

    sl_buf_init(&out, MOST);
    while (!rc && fgets(text, sizeof text, stdin)) {
        rc = line(&out, text);
        if (rc)
            sl_fail(&err, SL_USAGE, "the template has no table %.60s", text);
    }
    if (!rc)
        rc = sl_print(&out, &err);
    sl_buf_fini(&out);
    if (!rc)
        return SL_EXIT_OK;
    sl_say_error(&err);
    return sl_exit_status(err.code);
}
