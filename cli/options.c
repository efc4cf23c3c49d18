#include "cli/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"

struct value {
    int times;
    const char *text; /* the last one */
    int64_t i;
    double x;
    const char **list;
    int n;
};

struct sl_args {
    const struct sl_cmd *cmd;
    struct value *values; /* one per option */
    const char **operands;
    int n_operands, help;
};

struct cursor {
    char *const *words;
    int n, at;
};

void sl_args_destroy(struct sl_args *a)
{
    int saved = errno;

    if (!a)
        return;
    for (int i = 0; a->values && i < a->cmd->n_options; i++)
        free(a->values[i].list);
    free(a->values);
    free(a->operands);
    free(a);
    errno = saved;
}

static int see_help(const struct sl_cmd *cmd, struct sl_err *err)
{
    return sl_hint(err, "See \"shardlaunch %s --help\".", cmd->name);
}

/* The option as the user may write it: "--ranks". */
static int unknown(const struct sl_cmd *cmd, const char *name, size_t n, struct sl_err *err)
{
    const char *names[64];
    char word[64], shown[80];
    int k = 0, near;

    snprintf(word, sizeof word, "%.*s", (int)(n < 63 ? n : 63), name);
    sl_str_escape(shown, sizeof shown, word);
    sl_fail(err, SL_USAGE, "%s: unknown option \"--%s\"", cmd->name, shown);
    for (; k < cmd->n_options && k < 63; k++)
        names[k] = cmd->options[k].name;
    names[k++] = "help";
    near = sl_str_nearest(word, names, k);
    if (near >= 0)
        return sl_hint(err, "Did you mean \"--%s\"?", names[near]);
    return see_help(cmd, err);
}

static int wrong(const struct sl_cmd *cmd, const struct sl_opt *o, const char *text,
                 struct sl_err *err, const char *want)
{
    char shown[80];

    sl_str_escape(shown, sizeof shown, text);
    sl_fail(err, SL_USAGE, "%s: --%s is \"%s\"; use %s", cmd->name, o->name, shown, want);
    return -1;
}

static int take_int(const struct sl_cmd *cmd, const struct sl_opt *o, const char *text,
                    int64_t *ret, struct sl_err *err)
{
    char *end, want[80];

    errno = 0;
    long long x = strtoll(text, &end, 10);
    if (*text && !*end && *text != ' ' && *text != '+' && !errno && x >= o->min && x <= o->max) {
        *ret = x;
        return 0;
    }
    if (o->max >= INT64_MAX / 2)
        snprintf(want, sizeof want, "an integer of at least %lld", (long long)o->min);
    else
        snprintf(want, sizeof want, "an integer from %lld to %lld", (long long)o->min,
                 (long long)o->max);
    return wrong(cmd, o, text, err, want);
}

static int take_word(const struct sl_cmd *cmd, const struct sl_opt *o, const char *text,
                     struct sl_err *err)
{
    char want[160] = "";
    int n = 0, near;

    for (; o->words[n]; n++)
        if (!strcmp(o->words[n], text))
            return 0;
    for (int i = 0; i < n; i++) {
        size_t len = strlen(want);
        snprintf(want + len, sizeof want - len, "%s%s", o->words[i],
                 i + 1 == n ? "" : i + 2 == n ? " or " : ", ");
    }
    wrong(cmd, o, text, err, want);
    near = sl_str_nearest(text, o->words, n);
    return near >= 0 ? sl_hint(err, "Did you mean \"%s\"?", o->words[near]) : -1;
}

static int take(struct sl_args *a, int i, const char *text, struct sl_err *err)
{
    const struct sl_opt *o = &a->cmd->options[i];
    struct value *v = &a->values[i];

    if (o->type == SL_OPT_TEXT && o->words && take_word(a->cmd, o, text, err))
        return -1;
    if (o->type == SL_OPT_INT && take_int(a->cmd, o, text, &v->i, err))
        return -1;
    if ((o->type == SL_OPT_SIZE && sl_size_parse(text, &v->i, err)) ||
        (o->type == SL_OPT_DURATION && sl_duration_parse(text, &v->x, err)))
        return sl_within(err, "%s: --%s", a->cmd->name, o->name);
    if (o->type == SL_OPT_LIST) {
        const char **list = sl_resize(v->list, (size_t)v->n + 1, sizeof *list);

        if (!list)
            return sl_fail(err, SL_SYSTEM, "cannot hold the options: %s", strerror(errno));
        v->list = list;
        v->list[v->n++] = text;
    }
    v->text = text;
    v->times++;
    return 0;
}

static int find(const struct sl_cmd *cmd, const char *name, size_t n)
{
    for (int i = 0; i < cmd->n_options; i++)
        if (strlen(cmd->options[i].name) == n && !memcmp(cmd->options[i].name, name, n))
            return i;
    return -1;
}

/* The option's value: `joined` when the word held one, else the next word. */
static int with_value(struct sl_args *a, int i, const char *joined, struct cursor *c,
                      struct sl_err *err)
{
    const struct sl_opt *o = &a->cmd->options[i];

    if (joined)
        return take(a, i, joined, err);
    if (c->at < c->n)
        return take(a, i, c->words[c->at++], err);
    sl_fail(err, SL_USAGE, "%s: --%s needs a value: --%s=%s", a->cmd->name, o->name, o->name,
            o->arg);
    return see_help(a->cmd, err);
}

static int no_value(const struct sl_cmd *cmd, const char *name, struct sl_err *err)
{
    sl_fail(err, SL_USAGE, "%s: --%s takes no value", cmd->name, name);
    return see_help(cmd, err);
}

static int long_option(struct sl_args *a, const char *word, struct cursor *c, struct sl_err *err)
{
    size_t n = strcspn(word, "=");
    const char *joined = word[n] ? word + n + 1 : NULL;
    int i = find(a->cmd, word, n);

    if (n == 4 && !strncmp(word, "help", 4)) {
        if (joined)
            return no_value(a->cmd, "help", err);
        a->help = 1;
        return 0;
    }
    if (i < 0)
        return unknown(a->cmd, word, n, err);
    if (a->cmd->options[i].type != SL_OPT_FLAG)
        return with_value(a, i, joined, c, err);
    if (joined)
        return no_value(a->cmd, a->cmd->options[i].name, err);
    a->values[i].times++;
    return 0;
}

static int short_options(struct sl_args *a, const char *word, struct cursor *c, struct sl_err *err)
{
    for (; *word; word++) {
        int i = 0;

        if (*word == 'h') {
            a->help = 1;
            continue;
        }
        while (i < a->cmd->n_options && a->cmd->options[i].letter != *word)
            i++;
        if (i == a->cmd->n_options) {
            char one[8], shown[16];

            snprintf(one, sizeof one, "%c", *word);
            sl_str_escape(shown, sizeof shown, one);
            sl_fail(err, SL_USAGE, "%s: unknown option \"-%s\"", a->cmd->name, shown);
            return see_help(a->cmd, err);
        }
        if (a->cmd->options[i].type != SL_OPT_FLAG)
            return with_value(a, i, word[1] ? word + 1 : NULL, c, err);
        a->values[i].times++;
    }
    return 0;
}

static int check_operands(const struct sl_args *a, struct sl_err *err)
{
    const struct sl_cmd *cmd = a->cmd;
    char shown[80];

    if (a->n_operands < cmd->least) {
        sl_fail(err, SL_USAGE, "%s: needs %s", cmd->name, cmd->operands);
        return see_help(cmd, err);
    }
    if (cmd->most < 0 || a->n_operands <= cmd->most)
        return 0;
    sl_str_escape(shown, sizeof shown, a->operands[cmd->most]);
    if (*cmd->operands)
        sl_fail(err, SL_USAGE, "%s: \"%s\" is one too many: it takes %s", cmd->name, shown,
                cmd->operands);
    else
        sl_fail(err, SL_USAGE, "%s: \"%s\" is not wanted: it takes options only", cmd->name, shown);
    return see_help(cmd, err);
}

struct sl_args *sl_args_parse(const struct sl_cmd *cmd, int n, char *const *words,
                              struct sl_err *err)
{
    struct sl_args *a = sl_calloc(1, sizeof *a);
    struct cursor c = {.words = words, .n = n};
    int ended = 0, rc = 0;

    if (a) {
        a->cmd = cmd;
        a->values = sl_calloc((size_t)cmd->n_options + 1, sizeof *a->values);
        a->operands = sl_calloc((size_t)n + 1, sizeof *a->operands);
    }
    if (!a || !a->values || !a->operands) {
        sl_fail(err, SL_SYSTEM, "cannot hold the options: %s", strerror(errno));
        sl_args_destroy(a);
        return NULL;
    }
    while (!rc && c.at < c.n) {
        const char *word = c.words[c.at++];

        if (ended || word[0] != '-' || !word[1])
            a->operands[a->n_operands++] = word;
        else if (!strcmp(word, "--"))
            ended = 1;
        else if (word[1] == '-')
            rc = long_option(a, word + 2, &c, err);
        else
            rc = short_options(a, word + 1, &c, err);
        if (a->help)
            return a;
    }
    if (rc || check_operands(a, err)) {
        sl_args_destroy(a);
        return NULL;
    }
    return a;
}

static const struct value *value(const struct sl_args *a, const char *name)
{
    static const struct value none;
    int i = find(a->cmd, name, strlen(name));

    return i < 0 ? &none : &a->values[i];
}

int sl_args_given(const struct sl_args *a, const char *name)
{
    return value(a, name)->times;
}

const char *sl_args_text(const struct sl_args *a, const char *name, const char *otherwise)
{
    const struct value *v = value(a, name);

    return v->times ? v->text : otherwise;
}

int64_t sl_args_int(const struct sl_args *a, const char *name, int64_t otherwise)
{
    const struct value *v = value(a, name);

    return v->times ? v->i : otherwise;
}

double sl_args_duration(const struct sl_args *a, const char *name, double otherwise)
{
    const struct value *v = value(a, name);

    return v->times ? v->x : otherwise;
}

const char *const *sl_args_list(const struct sl_args *a, const char *name, int *n)
{
    const struct value *v = value(a, name);

    *n = v->n;
    return v->list;
}

const char *const *sl_args_operands(const struct sl_args *a, int *n)
{
    *n = a->n_operands;
    return a->operands;
}

int sl_args_help(const struct sl_args *a)
{
    return a->help;
}

/* Words of `text`, at most 78 columns a line, behind `indent` spaces (not on the first line). */
static void wrap(struct sl_buf *out, const char *text, int column, int indent)
{
    while (*text) {
        int n = (int)strcspn(text, " ");

        if (column + 1 + n > 78 && column > indent) {
            sl_buf_printf(out, "\n%*s", indent, "");
            column = indent;
        } else if (column > indent) {
            sl_buf_char(out, ' ');
            column++;
        }
        sl_buf_add(out, text, (size_t)n);
        column += n;
        text += n;
        text += strspn(text, " ");
    }
    sl_buf_char(out, '\n');
}

static void option_help(struct sl_buf *out, const struct sl_opt *o)
{
    enum { COLUMN = 26 };
    char left[80], letter[8] = "";

    if (o->letter)
        snprintf(letter, sizeof letter, "-%c, ", o->letter);
    snprintf(left, sizeof left, "  %s--%s%s%s", letter, o->name, o->arg ? "=" : "",
             o->arg ? o->arg : "");
    sl_buf_printf(out, "%-*s", COLUMN, left);
    if (strlen(left) >= COLUMN)
        sl_buf_printf(out, "\n%*s", COLUMN, "");
    wrap(out, o->help, COLUMN, COLUMN);
}

void sl_cmd_help(const struct sl_cmd *cmd, struct sl_buf *out)
{
    static const struct sl_opt help = {.name = "help", .letter = 'h', .help = "Show this text."};

    sl_buf_printf(out, "usage: shardlaunch %s [OPTIONS]%s%s\n\n", cmd->name,
                  *cmd->operands ? " " : "", cmd->operands);
    wrap(out, cmd->summary, 0, 0);
    if (cmd->details) {
        sl_buf_char(out, '\n');
        wrap(out, cmd->details, 0, 0);
    }
    sl_buf_str(out, "\nOptions:\n");
    for (int i = 0; i < cmd->n_options; i++)
        option_help(out, &cmd->options[i]);
    option_help(out, &help);
}
