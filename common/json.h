#ifndef SL_JSON_H
#define SL_JSON_H

/*
 * json.h - writing JSON into a buffer, piece by piece
 *
 * Commas and quotes are put by the writer. Bytes that are no UTF-8 become U+FFFD, "<", ">" and "&"
 * are written as \u00XX (so the text may stand inside a page), and numbers that JSON does not know
 * (nan, infinity) become null. A call out of place (a value in an object without a key, an end
 * without a begin, deeper than 32) sets the buffer's `failed` to EINVAL. To read JSON, use jansson.
 */

#include <stdint.h>

#include "common/buf.h"

struct sl_json {
    struct sl_buf *out;
    int depth, keyed;        /* keyed: a key waits for its value */
    unsigned char kind[32];  /* '{' or '[' by depth */
    unsigned char some[32];  /* has the level a value yet? */
};

void sl_json_init(struct sl_json *j, struct sl_buf *out);

void sl_json_object(struct sl_json *j); /* begin */
void sl_json_array(struct sl_json *j);
void sl_json_end(struct sl_json *j);               /* the innermost object or array */
void sl_json_key(struct sl_json *j, const char *k); /* then its value */

void sl_json_str(struct sl_json *j, const char *s); /* NULL: null */
void sl_json_strn(struct sl_json *j, const char *s, size_t n);
void sl_json_int(struct sl_json *j, int64_t x);
void sl_json_real(struct sl_json *j, double x); /* shortest form that reads back the same */
void sl_json_bool(struct sl_json *j, int x);
void sl_json_null(struct sl_json *j);
void sl_json_raw(struct sl_json *j, const char *json); /* a value that is JSON already */

/* A key and its value at once. */
void sl_json_put_str(struct sl_json *j, const char *k, const char *s);
void sl_json_put_int(struct sl_json *j, const char *k, int64_t x);
void sl_json_put_real(struct sl_json *j, const char *k, double x);
void sl_json_put_bool(struct sl_json *j, const char *k, int x);

#endif
