#ifndef SL_TOML_H
#define SL_TOML_H

/*
 * toml.h - a TOML text as a flat list of its values, each with its place (C face of toml++)
 *
 * Values come in the order of the text, tables included: the entry of a table stands before those
 * of its keys. Everything is owned by the handle. toml++ is C++ without exceptions here, so lack of
 * memory inside it ends the process: bound the text (sl_toml_parse refuses more than 1 MiB).
 */

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

#ifdef __cplusplus
extern "C" {
#endif

enum sl_toml_type {
    SL_TOML_TABLE, /* no value: a header or a parent in a dotted key */
    SL_TOML_INT,
    SL_TOML_REAL,
    SL_TOML_BOOL,
    SL_TOML_STR,
    SL_TOML_ARRAY,
    SL_TOML_OTHER, /* a date or a time */
};

struct sl_toml_value {
    enum sl_toml_type type;
    const char *path;            /* "train.lr", "a.'b.c'"; "" inside an array */
    unsigned key_line, key_col;  /* from 1; inside an array the element's own place */
    unsigned line, col;          /* of the value */
    int64_t i;                   /* INT; BOOL as 0 or 1 */
    double r;                    /* REAL */
    const char *s;               /* STR, UTF-8, NUL-terminated; may hold a NUL inside */
    size_t len;                  /* STR: bytes; ARRAY: elements */
    const struct sl_toml_value *items; /* ARRAY; tables inside an array are SL_TOML_TABLE, empty */
};

struct sl_toml; /* opaque */

/* SL_USAGE: not TOML; the message is "name:line:column: what is wrong", on one line. */
struct sl_toml *sl_toml_parse(const char *text, size_t n, const char *name, struct sl_err *err);
void sl_toml_destroy(struct sl_toml *t); /* NULL is fine */

size_t sl_toml_count(const struct sl_toml *t);
const struct sl_toml_value *sl_toml_at(const struct sl_toml *t, size_t i);
const struct sl_toml_value *sl_toml_find(const struct sl_toml *t, const char *path); /* or NULL */

const char *sl_toml_type_name(enum sl_toml_type type); /* "an integer", "a string", ... */

#ifdef __cplusplus
}
#endif

#endif
