#include "common/json.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/str.h"

void sl_json_init(struct sl_json *j, struct sl_buf *out)
{
    *j = (struct sl_json){.out = out};
}

static void misuse(struct sl_json *j)
{
    if (!j->out->failed)
        j->out->failed = EINVAL;
}

/* What stands before a value: a comma, or nothing behind a key. */
static void lead(struct sl_json *j)
{
    int d = j->depth;

    if (d && j->kind[d - 1] == '{' && !j->keyed)
        misuse(j);
    if (d && !j->keyed) {
        if (j->some[d - 1])
            sl_buf_char(j->out, ',');
        j->some[d - 1] = 1;
    }
    j->keyed = 0;
}

static void begin(struct sl_json *j, char kind)
{
    if (j->depth == (int)sizeof j->kind) {
        misuse(j);
        return;
    }
    lead(j);
    j->kind[j->depth] = (unsigned char)kind;
    j->some[j->depth++] = 0;
    sl_buf_char(j->out, kind);
}

void sl_json_object(struct sl_json *j)
{
    begin(j, '{');
}

void sl_json_array(struct sl_json *j)
{
    begin(j, '[');
}

void sl_json_end(struct sl_json *j)
{
    if (!j->depth || j->keyed) {
        misuse(j);
        return;
    }
    sl_buf_char(j->out, j->kind[--j->depth] == '{' ? '}' : ']');
}

static void quoted(struct sl_buf *b, const char *s, size_t n)
{
    sl_buf_char(b, '"');
    while (n) {
        int used = sl_utf8_len(s, n);
        unsigned char c = (unsigned char)*s;

        if (!used)
            sl_buf_str(b, "\xEF\xBF\xBD");
        else if (c == '"' || c == '\\')
            sl_buf_printf(b, "\\%c", c);
        else if (c == '\n')
            sl_buf_str(b, "\\n");
        else if (c < 0x20 || c == 0x7F || c == '<' || c == '>' || c == '&')
            sl_buf_printf(b, "\\u%04x", c);
        else
            sl_buf_add(b, s, (size_t)used);
        s += used ? used : 1;
        n -= (size_t)(used ? used : 1);
    }
    sl_buf_char(b, '"');
}

void sl_json_key(struct sl_json *j, const char *k)
{
    if (!j->depth || j->kind[j->depth - 1] != '{' || j->keyed) {
        misuse(j);
        return;
    }
    if (j->some[j->depth - 1])
        sl_buf_char(j->out, ',');
    j->some[j->depth - 1] = 1;
    quoted(j->out, k, strlen(k));
    sl_buf_char(j->out, ':');
    j->keyed = 1;
}

void sl_json_strn(struct sl_json *j, const char *s, size_t n)
{
    lead(j);
    quoted(j->out, s, n);
}

void sl_json_str(struct sl_json *j, const char *s)
{
    if (s)
        sl_json_strn(j, s, strlen(s));
    else
        sl_json_null(j);
}

void sl_json_int(struct sl_json *j, int64_t x)
{
    lead(j);
    sl_buf_printf(j->out, "%lld", (long long)x);
}

void sl_json_real(struct sl_json *j, double x)
{
    char text[40];

    lead(j);
    sl_buf_str(j->out, isfinite(x) ? sl_double_exact(text, x) : "null");
}

void sl_json_bool(struct sl_json *j, int x)
{
    lead(j);
    sl_buf_str(j->out, x ? "true" : "false");
}

void sl_json_null(struct sl_json *j)
{
    lead(j);
    sl_buf_str(j->out, "null");
}

void sl_json_raw(struct sl_json *j, const char *json)
{
    lead(j);
    sl_buf_str(j->out, json);
}

void sl_json_put_str(struct sl_json *j, const char *k, const char *s)
{
    sl_json_key(j, k);
    sl_json_str(j, s);
}

void sl_json_put_int(struct sl_json *j, const char *k, int64_t x)
{
    sl_json_key(j, k);
    sl_json_int(j, x);
}

void sl_json_put_real(struct sl_json *j, const char *k, double x)
{
    sl_json_key(j, k);
    sl_json_real(j, x);
}

void sl_json_put_bool(struct sl_json *j, const char *k, int x)
{
    sl_json_key(j, k);
    sl_json_bool(j, x);
}
