#include <stdint.h>
#include <string.h>

#include "common/conf.h"
#include "common/str.h"

/* A TOML basic string. The text is UTF-8 without a NUL: it came from TOML. */
static void quoted(struct sl_buf *out, const char *s)
{
    sl_buf_char(out, '"');
    for (; *s; s++)
        if (*s == '"' || *s == '\\')
            sl_buf_printf(out, "\\%c", *s);
        else if ((unsigned char)*s < 0x20 || *s == 0x7F)
            sl_buf_printf(out, "\\u%04X", (unsigned char)*s);
        else
            sl_buf_char(out, *s);
    sl_buf_char(out, '"');
}

static void real(struct sl_buf *out, const char *at)
{
    char text[40];
    double x;

    memcpy(&x, at, sizeof x);
    sl_buf_str(out, sl_double_exact(text, x));
}

static void value(const struct sl_conf_opt *o, const char *base, struct sl_buf *out)
{
    const char *at = base + o->at, *s;
    char text[40];
    int64_t i;
    double x;
    int k;

    switch (o->type) {
    case SL_CONF_INT:
        memcpy(&i, at, sizeof i);
        sl_buf_printf(out, "%lld", (long long)i);
        break;
    case SL_CONF_SIZE:
        memcpy(&i, at, sizeof i);
        quoted(out, sl_size_exact(text, i));
        break;
    case SL_CONF_REAL:
        real(out, at);
        break;
    case SL_CONF_DURATION:
        memcpy(&x, at, sizeof x);
        quoted(out, sl_duration_exact(text, x));
        break;
    case SL_CONF_PAIR:
        sl_buf_char(out, '[');
        real(out, at);
        sl_buf_str(out, ", ");
        real(out, at + sizeof(double));
        sl_buf_char(out, ']');
        break;
    case SL_CONF_BOOL:
        memcpy(&k, at, sizeof k);
        sl_buf_str(out, k ? "true" : "false");
        break;
    case SL_CONF_ENUM:
        memcpy(&k, at, sizeof k);
        quoted(out, o->words[k]);
        break;
    case SL_CONF_STR:
    case SL_CONF_WORD:
        memcpy(&s, at, sizeof s);
        quoted(out, s ? s : "");
        break;
    case SL_CONF_ABSENT:
        break;
    }
}

void sl_conf_print(const struct sl_conf_opt *opts, int n, const void *base, struct sl_buf *out)
{
    size_t len = 0;
    const char *table = "";

    for (int i = 0; i < n; i++) {
        const struct sl_conf_opt *o = &opts[i];
        const char *dot = strrchr(o->key, '.');
        size_t own = dot ? (size_t)(dot - o->key) : 0;

        if (o->type == SL_CONF_ABSENT)
            continue;
        if (own != len || strncmp(table, o->key, own)) {
            sl_buf_printf(out, "\n[%.*s]\n", (int)own, o->key);
            table = o->key;
            len = own;
        }
        sl_buf_printf(out, "%s = ", dot ? dot + 1 : o->key);
        value(o, base, out);
        sl_buf_char(out, '\n');
    }
}
