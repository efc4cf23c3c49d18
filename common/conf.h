#ifndef SL_CONF_H
#define SL_CONF_H

/*
 * conf.h - settings from TOML into a struct, driven by one table
 *
 * The table names every key with its type, range, default and help. Reading, the messages about
 * mistakes, the canonical text and the documentation all come from it. Values are given by a
 * file, then by overrides ("a.b=value"), the last one winning. A message about a value begins with
 * "file:line:column: " or "--set a.b=value: ".
 */

#include <stddef.h>

#include "common/arena.h"
#include "common/buf.h"
#include "common/err.h"

enum sl_conf_type {
    SL_CONF_INT,      /* int64_t; min..max */
    SL_CONF_REAL,     /* double; min..max */
    SL_CONF_BOOL,     /* int */
    SL_CONF_STR,      /* const char *; min..max bytes; NULL in the struct when "" */
    SL_CONF_WORD,     /* const char *, one of `words` */
    SL_CONF_ENUM,     /* int: index in `words` */
    SL_CONF_SIZE,     /* int64_t bytes, from an integer or "512MiB" */
    SL_CONF_DURATION, /* double seconds, from a number or "12h" */
    SL_CONF_PAIR,     /* double[2]; each in min..max */
    SL_CONF_ABSENT,   /* known, but of a feature that this version lacks: `why_not` */
};

enum { SL_CONF_ABOVE = 1 /* min itself is out */, SL_CONF_BELOW = 2 /* max itself is out */ };

struct sl_conf_opt {
    const char *key; /* "train.lr" */
    enum sl_conf_type type;
    size_t at;       /* offset in the struct */
    double min, max; /* unused for BOOL, WORD, ENUM, ABSENT */
    int flags;
    const char *def;                 /* as TOML; NULL: must be given */
    const char *const *words;        /* ends with NULL */
    const char *const *aliases;      /* pairs word, canonical word; ends with NULL; may be NULL */
    const char *help;                /* one line */
    const char *why_not;             /* ABSENT: "this version ..." */
    const char *(*refuse)(const char *text); /* why a text value is known but not served, or NULL */
};

struct sl_conf; /* opaque; not thread-safe */

/* The table must outlive it. SL_BUG: a default of the table is wrong. */
struct sl_conf *sl_conf_create(const struct sl_conf_opt *opts, int n, struct sl_err *err);
void sl_conf_destroy(struct sl_conf *c); /* NULL is fine */

/* Take the values of a text, or one override. SL_USAGE with the place of the first mistake. */
int sl_conf_text(struct sl_conf *c, const char *text, size_t n, const char *file,
                 struct sl_err *err);
int sl_conf_set(struct sl_conf *c, const char *assignment, struct sl_err *err);

/* Write every value into `base`; strings live in `a`. SL_USAGE: a key without default is missing. */
int sl_conf_read(const struct sl_conf *c, void *base, struct sl_arena *a, struct sl_err *err);

int sl_conf_given(const struct sl_conf *c, const char *key); /* 1: not by default */

/* Fail with SL_USAGE at the place of the key's value (its table's or the file's when not given). */
int sl_conf_bad(const struct sl_conf *c, const char *key, struct sl_err *err, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* The values of `base` as TOML, a table a section, in the order of the options. */
void sl_conf_print(const struct sl_conf_opt *opts, int n, const void *base, struct sl_buf *out);

/* What a value must be: "an integer from 1 to 64", "constant, linear or cosine". */
const char *sl_conf_allowed(const struct sl_conf_opt *o, char *buf, size_t size);

#endif
