#include "common/conf.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/conf_say.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/toml.h"

enum { MOST_SOURCES = 256, MOST_WORDS = 32 };

struct source { /* a text that values come from: the defaults, the file, an override each */
    struct sl_toml *toml;
    char *label; /* the file, or "--set a.b=value" */
    char *raw;   /* an override's value as written; NULL for a file */
};

struct slot {
    const struct source *from; /* NULL: never given, not even by default */
    struct sl_toml_value v;
    int given;
    double x, y;   /* REAL, DURATION; PAIR */
    int64_t i;     /* INT, SIZE, BOOL, ENUM */
    const char *s; /* STR, WORD */
};

struct sl_conf {
    const struct sl_conf_opt *opts;
    int n;
    struct slot *slots;
    struct source **sources;
    int n_sources;
    const struct source *file;
};

static int is_text(const struct sl_conf_opt *o)
{
    return o->type == SL_CONF_STR || o->type == SL_CONF_WORD || o->type == SL_CONF_ENUM ||
           o->type == SL_CONF_SIZE || o->type == SL_CONF_DURATION;
}

/* "job.toml:3:7" or the override. */
static int at(const struct source *s, unsigned line, unsigned col, struct sl_err *err)
{
    if (s->raw)
        return sl_within(err, "%s", s->label);
    return sl_within(err, "%s:%u:%u", s->label, line, col);
}

static int in_range(const struct sl_conf_opt *o, double x)
{
    if (o->flags & SL_CONF_ABOVE ? !(x > o->min) : !(x >= o->min))
        return 0;
    return o->flags & SL_CONF_BELOW ? x < o->max : x <= o->max;
}

static int wrong(const struct sl_conf_opt *o, const struct sl_toml_value *v, struct sl_err *err)
{
    char shown[100], allowed[160];

    sl_conf_show(v, shown, sizeof shown);
    return sl_fail(err, SL_USAGE, "%s is %s; use %s", o->key, shown,
                   sl_conf_allowed(o, allowed, sizeof allowed));
}

static int take_word(const struct sl_conf_opt *o, const struct sl_toml_value *v, struct slot *ret,
                     struct sl_err *err)
{
    const char *word = v->s, *why;

    for (int i = 0; o->aliases && o->aliases[i]; i += 2)
        if (!strcmp(word, o->aliases[i]))
            word = o->aliases[i + 1];
    for (int n = 0; o->words[n]; n++)
        if (!strcmp(word, o->words[n])) {
            ret->s = o->words[n];
            ret->i = n;
            return 0;
        }
    why = o->refuse ? o->refuse(word) : NULL;
    if (why) {
        char shown[100];

        sl_conf_show(v, shown, sizeof shown);
        return sl_fail(err, SL_USAGE, "%s is %s: %s", o->key, shown, why);
    }
    wrong(o, v, err);
    const char *names[MOST_WORDS];
    int k = sl_conf_words(o, names, MOST_WORDS), near = sl_str_nearest(word, names, k);
    if (near >= 0)
        sl_hint(err, "Did you mean \"%s\"?", names[near]);
    return -1;
}

static int number(const struct sl_toml_value *v, double *ret)
{
    if (v->type != SL_TOML_INT && v->type != SL_TOML_REAL)
        return -1;
    *ret = v->type == SL_TOML_INT ? (double)v->i : v->r;
    return 0;
}

/* Turn one TOML value into the option's own type. The message has no place yet. */
static int take(const struct sl_conf_opt *o, const struct sl_toml_value *v, struct slot *ret,
                struct sl_err *err)
{
    switch (o->type) {
    case SL_CONF_INT:
        if (v->type != SL_TOML_INT || !in_range(o, (double)v->i))
            return wrong(o, v, err);
        ret->i = v->i;
        return 0;
    case SL_CONF_REAL:
        if (number(v, &ret->x) || !in_range(o, ret->x))
            return wrong(o, v, err);
        return 0;
    case SL_CONF_BOOL:
        if (v->type != SL_TOML_BOOL)
            return wrong(o, v, err);
        ret->i = v->i;
        return 0;
    case SL_CONF_STR:
        if (v->type != SL_TOML_STR || !in_range(o, (double)v->len) || strlen(v->s) != v->len)
            return wrong(o, v, err);
        ret->s = v->s;
        return 0;
    case SL_CONF_WORD:
    case SL_CONF_ENUM:
        return v->type == SL_TOML_STR ? take_word(o, v, ret, err) : wrong(o, v, err);
    case SL_CONF_SIZE:
        if (v->type == SL_TOML_STR && sl_size_parse(v->s, &ret->i, err))
            return sl_within(err, "%s", o->key);
        if (v->type == SL_TOML_INT)
            ret->i = v->i;
        else if (v->type != SL_TOML_STR)
            return wrong(o, v, err);
        return in_range(o, (double)ret->i) ? 0 : wrong(o, v, err);
    case SL_CONF_DURATION:
        if (v->type == SL_TOML_STR && sl_duration_parse(v->s, &ret->x, err))
            return sl_within(err, "%s", o->key);
        if (v->type != SL_TOML_STR && number(v, &ret->x))
            return wrong(o, v, err);
        return in_range(o, ret->x) ? 0 : wrong(o, v, err);
    case SL_CONF_PAIR:
        if (v->type != SL_TOML_ARRAY || v->len != 2 || number(&v->items[0], &ret->x) ||
            number(&v->items[1], &ret->y) || !in_range(o, ret->x) || !in_range(o, ret->y))
            return wrong(o, v, err);
        return 0;
    case SL_CONF_ABSENT:
        return sl_fail(err, SL_USAGE, "%s: %s", o->key, o->why_not);
    }
    return sl_fail(err, SL_BUG, "%s has no type", o->key);
}

static int find(const struct sl_conf *c, const char *key)
{
    for (int i = 0; i < c->n; i++)
        if (!strcmp(c->opts[i].key, key))
            return i;
    return -1;
}

static int take_leaf(struct sl_conf *c, const struct source *s, const struct sl_toml_value *v,
                     int given, struct sl_err *err)
{
    int i = find(c, v->path);

    if (v->type == SL_TOML_TABLE && sl_conf_is_table(c->opts, c->n, v->path))
        return 0;
    if (i < 0) {
        sl_conf_unknown(c->opts, c->n, v, err);
        return at(s, v->key_line, v->key_col, err);
    }
    struct slot *slot = &c->slots[i], fresh = {.from = s, .v = *v, .given = given};
    if (s->raw && v->type != SL_TOML_STR && is_text(&c->opts[i]) &&
        !(v->type == SL_TOML_INT && c->opts[i].type == SL_CONF_SIZE)) {
        fresh.v.type = SL_TOML_STR; /* name=3, time_limit=90: a text that looks like a number */
        fresh.v.s = s->raw;
        fresh.v.len = strlen(s->raw);
    }
    if (take(&c->opts[i], &fresh.v, &fresh, err))
        return c->opts[i].type == SL_CONF_ABSENT ? at(s, v->key_line, v->key_col, err)
                                                 : at(s, v->line, v->col, err);
    *slot = fresh;
    return 0;
}

static int take_all(struct sl_conf *c, const struct source *s, int given, struct sl_err *err)
{
    for (size_t i = 0; i < sl_toml_count(s->toml); i++)
        if (take_leaf(c, s, sl_toml_at(s->toml, i), given, err))
            return -1;
    return 0;
}

static void free_source(struct source *s)
{
    if (!s)
        return;
    sl_toml_destroy(s->toml);
    free(s->label);
    free(s->raw);
    free(s);
}

/* Keep `s` (its values are lent from it) and take its values. */
static int add_source(struct sl_conf *c, struct source *s, int given, struct sl_err *err)
{
    if (c->n_sources == MOST_SOURCES) {
        free_source(s);
        return sl_fail(err, SL_USAGE, "more than %d overrides", MOST_SOURCES - 2);
    }
    c->sources[c->n_sources++] = s;
    return take_all(c, s, given, err);
}

static struct source *make_source(const char *label, const char *raw, struct sl_err *err)
{
    struct source *s = sl_calloc(1, sizeof *s);

    if (s && (s->label = sl_strdup(label)) && (!raw || (s->raw = sl_strdup(raw))))
        return s;
    sl_fail(err, SL_SYSTEM, "cannot hold the settings: %s", strerror(errno));
    free_source(s);
    return NULL;
}

static int add_defaults(struct sl_conf *c, struct sl_err *err)
{
    struct sl_buf b;
    struct source *s = make_source("defaults", NULL, err);
    int rc = -1;

    sl_buf_init(&b, 1 << 20);
    for (int i = 0; i < c->n; i++)
        if (c->opts[i].def && c->opts[i].type != SL_CONF_ABSENT)
            sl_buf_printf(&b, "%s = %s\n", c->opts[i].key, c->opts[i].def);
    if (!s || sl_buf_check(&b, err))
        goto out;
    s->toml = sl_toml_parse(sl_buf_text(&b), b.len, s->label, err);
    if (s->toml) {
        rc = add_source(c, s, 0, err);
        s = NULL;
    }
    if (rc && err && err->code == SL_USAGE)
        err->code = SL_BUG;
out:
    free_source(s);
    sl_buf_fini(&b);
    return rc;
}

struct sl_conf *sl_conf_create(const struct sl_conf_opt *opts, int n, struct sl_err *err)
{
    struct sl_conf *c = sl_calloc(1, sizeof *c);

    if (!c)
        goto fail;
    c->opts = opts;
    c->n = n;
    c->slots = sl_calloc((size_t)n + 1, sizeof *c->slots);
    c->sources = sl_calloc(MOST_SOURCES, sizeof *c->sources);
    if (!c->slots || !c->sources)
        goto fail;
    if (add_defaults(c, err)) {
        sl_conf_destroy(c);
        return NULL;
    }
    return c;
fail:
    sl_fail(err, SL_SYSTEM, "cannot hold the settings: %s", strerror(errno));
    sl_conf_destroy(c);
    return NULL;
}

void sl_conf_destroy(struct sl_conf *c)
{
    int saved = errno;

    if (!c)
        return;
    for (int i = 0; i < c->n_sources; i++)
        free_source(c->sources[i]);
    free(c->sources);
    free(c->slots);
    free(c);
    errno = saved;
}

int sl_conf_text(struct sl_conf *c, const char *text, size_t n, const char *file,
                 struct sl_err *err)
{
    struct source *s = make_source(file, NULL, err);

    if (!s)
        return -1;
    s->toml = sl_toml_parse(text, n, file, err);
    if (!s->toml) {
        free_source(s);
        return -1;
    }
    c->file = s;
    return add_source(c, s, 1, err);
}

/* A dotted name of letters, digits, "_" and "-". */
static int is_key(const char *s, size_t n)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";

    if (!n || s[0] == '.' || s[n - 1] == '.')
        return 0;
    for (size_t i = 0; i < n; i++)
        if (!strchr(letters, s[i]) || (s[i] == '.' && s[i + 1] == '.'))
            return 0;
    return 1;
}

/* Exactly the one value that was assigned, and not lines that a value has smuggled in. */
static int is_one(const struct sl_toml *t, const char *key, size_t n)
{
    int values = 0;

    for (size_t i = 0; i < sl_toml_count(t); i++) {
        const struct sl_toml_value *v = sl_toml_at(t, i);

        if (v->type == SL_TOML_TABLE)
            continue;
        values++;
        if (strlen(v->path) != n || memcmp(v->path, key, n))
            return 0;
    }
    return values == 1;
}

/* The value as TOML, else as a bare string. NULL: no memory, or the string is no UTF-8. */
static struct sl_toml *parse_override(const char *set, size_t n, const char *label,
                                      struct sl_err *err)
{
    struct sl_toml *t = NULL;
    struct sl_buf b;

    sl_buf_init(&b, 1 << 16);
    sl_buf_str(&b, set);
    if (sl_buf_check(&b, err))
        goto out;
    t = sl_toml_parse(b.p, b.len, label, err);
    if (t && is_one(t, set, n))
        goto out;
    sl_toml_destroy(t);
    t = NULL;
    sl_buf_clear(&b);
    sl_buf_printf(&b, "%.*s = \"", (int)n, set);
    for (const char *p = set + n + 1; *p; p++)
        if (*p == '"' || *p == '\\' || (unsigned char)*p < 0x20 || *p == 0x7F)
            sl_buf_printf(&b, "\\u%04X", (unsigned char)*p);
        else
            sl_buf_char(&b, *p);
    sl_buf_str(&b, "\"");
    if (!sl_buf_check(&b, err) && !(t = sl_toml_parse(b.p, b.len, label, err)))
        sl_fail(err, SL_USAGE, "%s: the value is no UTF-8 text", label);
out:
    sl_buf_fini(&b);
    return t;
}

int sl_conf_set(struct sl_conf *c, const char *assignment, struct sl_err *err)
{
    const char *eq = strchr(assignment, '=');
    char shown[80], label[100];
    size_t n = eq ? (size_t)(eq - assignment) : 0;

    sl_str_escape(shown, sizeof shown, assignment);
    snprintf(label, sizeof label, "--set %s", shown);
    if (!eq || !is_key(assignment, n)) {
        sl_fail(err, SL_USAGE, "%s: not a key and a value", label);
        return sl_hint(err, "Write --set KEY=VALUE, as in --set train.lr=3e-4.");
    }
    struct source *s = make_source(label, eq + 1, err);
    if (!s)
        return -1;
    s->toml = parse_override(assignment, n, label, err);
    if (!s->toml) {
        free_source(s);
        return -1;
    }
    return add_source(c, s, 1, err);
}

static int store(const struct sl_conf_opt *o, const struct slot *s, void *base, struct sl_arena *a)
{
    char *to = (char *)base + o->at;
    const char *text = NULL;
    int small = (int)s->i;

    switch (o->type) {
    case SL_CONF_INT:
    case SL_CONF_SIZE:
        memcpy(to, &s->i, sizeof s->i);
        return 0;
    case SL_CONF_BOOL:
    case SL_CONF_ENUM:
        memcpy(to, &small, sizeof small);
        return 0;
    case SL_CONF_REAL:
    case SL_CONF_DURATION:
        memcpy(to, &s->x, sizeof s->x);
        return 0;
    case SL_CONF_PAIR:
        memcpy(to, &s->x, sizeof s->x);
        memcpy(to + sizeof s->x, &s->y, sizeof s->y);
        return 0;
    case SL_CONF_STR:
    case SL_CONF_WORD:
        if (s->s && *s->s && !(text = sl_arena_strdup(a, s->s)))
            return -1;
        memcpy(to, &text, sizeof text);
        return 0;
    case SL_CONF_ABSENT:
        return 0;
    }
    return 0;
}

int sl_conf_read(const struct sl_conf *c, void *base, struct sl_arena *a, struct sl_err *err)
{
    char allowed[160];

    for (int i = 0; i < c->n; i++) {
        const struct sl_conf_opt *o = &c->opts[i];

        if (o->type == SL_CONF_ABSENT)
            continue;
        if (!c->slots[i].from)
            return sl_conf_bad(c, o->key, err, "%s is missing; give %s", o->key,
                               sl_conf_allowed(o, allowed, sizeof allowed));
        if (store(o, &c->slots[i], base, a))
            return sl_fail(err, SL_SYSTEM, "cannot hold the settings: %s", strerror(errno));
    }
    return 0;
}

int sl_conf_given(const struct sl_conf *c, const char *key)
{
    int i = find(c, key);

    return i >= 0 && c->slots[i].given;
}

int sl_conf_bad(const struct sl_conf *c, const char *key, struct sl_err *err, const char *fmt, ...)
{
    const struct sl_toml_value *v = NULL;
    int i = find(c, key);
    char text[sizeof err->msg], table[64];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    sl_fail(err, SL_USAGE, "%s", text);
    if (i >= 0 && c->slots[i].given)
        return at(c->slots[i].from, c->slots[i].v.line, c->slots[i].v.col, err);
    if (!c->file)
        return -1;
    snprintf(table, sizeof table, "%.*s", (int)strcspn(key, "."), key);
    v = sl_toml_find(c->file->toml, table);
    return at(c->file, v ? v->key_line : 1, v ? v->key_col : 1, err);
}
