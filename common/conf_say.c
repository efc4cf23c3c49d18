#include "common/conf_say.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/str.h"

const char *sl_conf_show(const struct sl_toml_value *v, char *buf, size_t size)
{
    char text[60];

    switch (v->type) {
    case SL_TOML_INT:
        snprintf(buf, size, "%lld", (long long)v->i);
        break;
    case SL_TOML_REAL:
        sl_double_exact(text, v->r); /* a whole real is told from an integer: 1000.0 */
        snprintf(buf, size, "%s%s", text, strspn(text, "-0123456789") == strlen(text) ? ".0" : "");
        break;
    case SL_TOML_BOOL:
        snprintf(buf, size, "%s", v->i ? "true" : "false");
        break;
    case SL_TOML_STR:
        sl_str_escape(text, sizeof text, v->s);
        snprintf(buf, size, "\"%s\"", text);
        break;
    case SL_TOML_TABLE:
    case SL_TOML_ARRAY:
    case SL_TOML_OTHER:
        snprintf(buf, size, "%s", sl_toml_type_name(v->type));
        break;
    }
    return buf;
}

static void append(char *buf, size_t size, const char *text)
{
    size_t n = strlen(buf);

    if (n < size)
        snprintf(buf + n, size - n, "%s", text);
}

int sl_conf_words(const struct sl_conf_opt *o, const char **ret, int most)
{
    int k = 0;

    for (int i = 0; o->words[i] && k < most; i++)
        ret[k++] = o->words[i];
    for (int i = 0; o->aliases && o->aliases[i] && k < most; i += 2)
        ret[k++] = o->aliases[i];
    return k;
}

/* "a", "b" or "c" */
static void list_words(const struct sl_conf_opt *o, char *buf, size_t size)
{
    const char *words[32];
    int n = sl_conf_words(o, words, 32);

    for (int i = 0; i < n; i++) {
        append(buf, size, "\"");
        append(buf, size, words[i]);
        append(buf, size, i + 1 == n ? "\"" : i + 2 == n ? "\" or " : "\", ");
    }
}

static void shortest(double x, char text[40], enum sl_conf_type type)
{
    if (x == 0)
        snprintf(text, 40, "0");
    else if (type == SL_CONF_SIZE)
        sl_size_exact(text, (int64_t)x);
    else if (type == SL_CONF_DURATION)
        sl_duration_exact(text, x);
    else if (x == floor(x) && fabs(x) < 1e15)
        snprintf(text, 40, "%.0f", x);
    else
        sl_double_exact(text, x);
}

/* " from 1 to 64", " above 0", " from 0 and below 1", " of at least 1" */
static void range(const struct sl_conf_opt *o, char *buf, size_t size)
{
    char low[40], high[40], text[120] = "";
    int bounded = o->max < 9e15;

    shortest(o->min, low, o->type);
    if (bounded)
        shortest(o->max, high, o->type);
    if (o->flags & SL_CONF_ABOVE)
        snprintf(text, sizeof text, " above %s", low);
    else if (bounded && !(o->flags & SL_CONF_BELOW))
        snprintf(text, sizeof text, " from %s to %s", low, high);
    else
        snprintf(text, sizeof text, " of at least %s", low);
    append(buf, size, text);
    if (!bounded || (!o->flags && bounded))
        return;
    snprintf(text, sizeof text, " and %s %s", o->flags & SL_CONF_BELOW ? "below" : "at most", high);
    append(buf, size, text);
}

const char *sl_conf_allowed(const struct sl_conf_opt *o, char *buf, size_t size)
{
    static const char *const nouns[] = {
        [SL_CONF_INT] = "an integer", [SL_CONF_REAL] = "a number",
        [SL_CONF_SIZE] = "a size as \"512MiB\"", [SL_CONF_DURATION] = "a time as \"12h\" or seconds",
        [SL_CONF_PAIR] = "two numbers in [ ], each",
    };

    buf[0] = '\0';
    switch (o->type) {
    case SL_CONF_INT:
    case SL_CONF_REAL:
    case SL_CONF_SIZE:
    case SL_CONF_DURATION:
    case SL_CONF_PAIR:
        append(buf, size, nouns[o->type]);
        range(o, buf, size);
        break;
    case SL_CONF_BOOL:
        append(buf, size, "true or false");
        break;
    case SL_CONF_STR:
        snprintf(buf, size, "a text of %s%.0f bytes", o->min > 0 ? "1 to " : "at most ", o->max);
        break;
    case SL_CONF_WORD:
    case SL_CONF_ENUM:
        list_words(o, buf, size);
        break;
    case SL_CONF_ABSENT:
        append(buf, size, "nothing");
        break;
    }
    return buf;
}

int sl_conf_is_table(const struct sl_conf_opt *opts, int n, const char *path)
{
    size_t len = strlen(path);

    for (int i = 0; i < n; i++)
        if (!strncmp(opts[i].key, path, len) && opts[i].key[len] == '.')
            return 1;
    return 0;
}

static const char *last_part(const char *key)
{
    const char *dot = strrchr(key, '.');

    return dot ? dot + 1 : key;
}

enum { MOST_NAMES = 128, NAME = 64 };

/* The tables of the options, each once. Returns how many. */
static int tables(const struct sl_conf_opt *opts, int n, char names[][NAME], const char **list)
{
    int k = 0;

    for (int i = 0; i < n && k < MOST_NAMES; i++) {
        size_t len = strcspn(opts[i].key, ".");

        if (!opts[i].key[len] || (k && !strncmp(names[k - 1], opts[i].key, len) &&
                                  !names[k - 1][len]))
            continue;
        snprintf(names[k], NAME, "%.*s", (int)len, opts[i].key);
        list[k] = names[k];
        k++;
    }
    return k;
}

/* The short names of the keys directly in `table` ("" for the top). Returns how many. */
static int keys_in(const struct sl_conf_opt *opts, int n, const char *table, const char **list)
{
    size_t len = strlen(table);
    int k = 0;

    for (int i = 0; i < n && k < MOST_NAMES; i++) {
        const char *last = last_part(opts[i].key);
        size_t own = last == opts[i].key ? 0 : (size_t)(last - opts[i].key - 1);

        if (own == len && !strncmp(opts[i].key, table, len))
            list[k++] = last;
    }
    return k;
}

static void hint_list(struct sl_err *err, const char *lead, const char *const *list, int n)
{
    char text[sizeof err->hint];

    snprintf(text, sizeof text, "%s", lead);
    for (int i = 0; i < n; i++) {
        append(text, sizeof text, i ? ", " : " ");
        append(text, sizeof text, list[i]);
    }
    append(text, sizeof text, ".");
    sl_hint(err, "%s", text);
}

static int unknown_table(const struct sl_conf_opt *opts, int n, const char *path,
                         struct sl_err *err)
{
    char names[MOST_NAMES][NAME], shown[80], lead[120];
    const char *list[MOST_NAMES];
    int k = tables(opts, n, names, list), near = sl_str_nearest(path, list, k);

    sl_str_escape(shown, sizeof shown, path);
    sl_fail(err, SL_USAGE, "unknown table [%s]", shown);
    if (near >= 0)
        snprintf(lead, sizeof lead, "Did you mean [%s]? Known tables:", list[near]);
    else
        snprintf(lead, sizeof lead, "Known tables:");
    hint_list(err, lead, list, k);
    return -1;
}

int sl_conf_unknown(const struct sl_conf_opt *opts, int n, const struct sl_toml_value *v,
                    struct sl_err *err)
{
    const char *last = last_part(v->path), *list[MOST_NAMES], *home = NULL;
    char table[NAME], shown[80], lead[120];
    size_t len = last == v->path ? 0 : (size_t)(last - v->path - 1);

    if (v->type == SL_TOML_TABLE)
        return unknown_table(opts, n, v->path, err);
    snprintf(table, sizeof table, "%.*s", (int)(len < NAME ? len : NAME - 1), v->path);
    sl_str_escape(shown, sizeof shown, v->path);
    sl_fail(err, SL_USAGE, "unknown key \"%s\"", shown);
    for (int i = 0; i < n; i++)
        if (!strcmp(last_part(opts[i].key), last))
            home = opts[i].key;
    int k = keys_in(opts, n, table, list), near = sl_str_nearest(last, list, k);
    if (sl_conf_is_table(opts, n, v->path))
        return sl_hint(err, "\"%s\" is a table: write [%s] on a line, its keys below.", v->path,
                       v->path);
    if (home && last_part(home) != home) /* a key of ours in the wrong place */
        return sl_hint(err, "\"%s\" belongs in [%.*s].", last, (int)(last_part(home) - home - 1),
                       home);
    if (home)
        return sl_hint(err, "\"%s\" stands at the top of the file, above every table.", last);
    if (near >= 0) {
        snprintf(lead, sizeof lead, "Did you mean \"%s\"? Known here:", list[near]);
        hint_list(err, lead, list, k);
        return -1;
    }
    for (int i = 0; i < n; i++) /* misspelt and in the wrong table */
        list[i < MOST_NAMES ? i : MOST_NAMES - 1] = last_part(opts[i].key);
    near = sl_str_nearest(last, list, n < MOST_NAMES ? n : MOST_NAMES);
    if (near >= 0)
        return sl_hint(err, "Did you mean \"%s\"?", opts[near].key);
    k = keys_in(opts, n, table, list);
    hint_list(err, "Known here:", list, k);
    return -1;
}
