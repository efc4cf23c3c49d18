/* idset.c - expand and fold lists of host names */
#include "common/idset.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

enum { NAME = 256, DIGITS = 18 };

void sl_idset_init(struct sl_idset *s)
{
    *s = (struct sl_idset){.n = 0};
}

void sl_idset_fini(struct sl_idset *s)
{
    for (int i = 0; i < s->n; i++)
        free(s->name[i]);
    free(s->name);
    sl_idset_init(s);
}

static int add(struct sl_idset *s, const char *name, struct sl_err *err)
{
    if (s->n == SL_IDSET_MAX)
        return sl_fail(err, SL_USAGE, "a list of more than %d hosts", SL_IDSET_MAX);
    if (s->n == s->room) {
        int room = s->room ? 2 * s->room : 16;
        char **p = sl_resize(s->name, (size_t)room, sizeof *p);

        if (!p)
            return sl_fail(err, SL_SYSTEM, "cannot hold a list of hosts: %s", strerror(errno));
        s->name = p;
        s->room = room;
    }
    s->name[s->n] = sl_strdup(name);
    if (!s->name[s->n])
        return sl_fail(err, SL_SYSTEM, "cannot hold a list of hosts: %s", strerror(errno));
    s->n++;
    return 0;
}

static int bad(struct sl_err *err, const char *what, const char *at)
{
    return sl_fail(err, SL_USAGE, "not a list of hosts: %s at \"%.40s\"", what, at);
}

/* Digits at *p into *value, their number into *width. */
static int number(const char **p, long long *value, int *width, struct sl_err *err)
{
    const char *s = *p;
    char *end;

    if (!isdigit((unsigned char)*s))
        return bad(err, "a number is missing", s);
    *value = strtoll(s, &end, 10);
    *width = (int)(end - s);
    if (*width > DIGITS)
        return bad(err, "a number is too long", s);
    *p = end;
    return 0;
}

/* One name, of which `head` is made; `p` is what follows, up to a comma outside brackets or the end. */
static int expand(struct sl_idset *s, char *head, size_t len, const char *p, struct sl_err *err)
{
    const char *rest;
    long long from, to;
    int width, last;

    for (; *p && *p != ',' && *p != '['; p++) {
        if (*p == ']' || isspace((unsigned char)*p))
            return bad(err, "an unexpected character", p);
        if (len + 1 >= NAME)
            return bad(err, "a name is too long", p);
        head[len++] = *p;
    }
    head[len] = '\0';
    if (*p != '[')
        return len ? add(s, head, err) : bad(err, "a name is missing", p);
    rest = strchr(p, ']');
    if (!rest)
        return bad(err, "a bracket is not closed", p);
    do {
        p++;
        if (number(&p, &from, &width, err))
            return -1;
        to = from;
        if (*p == '-') {
            p++;
            if (number(&p, &to, &last, err))
                return -1;
        }
        if (to < from || to - from >= SL_IDSET_MAX)
            return bad(err, "a range is empty or too long", p);
        for (long long i = from; i <= to; i++) {
            int k = snprintf(head + len, NAME - len, "%0*lld", width, i);

            if (k < 0 || len + (size_t)k >= NAME)
                return bad(err, "a name is too long", p);
            if (expand(s, head, len + (size_t)k, rest + 1, err))
                return -1;
        }
    } while (*p == ',');
    return p == rest ? 0 : bad(err, "an unexpected character", p);
}

int sl_idset_parse(struct sl_idset *s, const char *list, struct sl_err *err)
{
    char head[NAME];
    const char *p = list;

    while (*p) {
        int depth = 0;

        if (expand(s, head, 0, p, err))
            return -1;
        for (; *p && (depth || *p != ','); p++)
            depth += *p == '[' ? 1 : *p == ']' ? -1 : 0;
        if (*p == ',' && !*++p)
            return bad(err, "a name is missing", ",");
    }
    return 0;
}

/* Where the last number of a name begins and ends; 0: it has none. */
static int last_number(const char *name, size_t *begin, size_t *end)
{
    size_t e = strlen(name), b;

    while (e > 0 && !isdigit((unsigned char)name[e - 1]))
        e--;
    for (b = e; b > 0 && isdigit((unsigned char)name[b - 1]) && e - b < DIGITS; b--)
        ;
    *begin = b;
    *end = e;
    return e > b;
}

/* 1: `next` is `name` with its last number (at begin..end) being `value`, written as wide. */
static int follows(const char *name, size_t begin, size_t end, long long value, const char *next)
{
    char want[2 * NAME];
    int width = (int)(end - begin);

    snprintf(want, sizeof want, "%.*s%0*lld%s", (int)begin, name, width, value, name + end);
    return !strcmp(want, next) && strlen(next) == strlen(name);
}

const char *sl_idset_text(const struct sl_idset *s, char *ret, size_t size)
{
    size_t len = 0;

    ret[0] = '\0';
    for (int i = 0, j; i < s->n; i = j) {
        char piece[2 * NAME];
        size_t b, e, k;
        long long first;

        j = i + 1;
        if (last_number(s->name[i], &b, &e)) {
            first = strtoll(s->name[i] + b, NULL, 10);
            while (j < s->n && follows(s->name[i], b, e, first + (j - i), s->name[j]))
                j++;
        }
        if (j > i + 1)
            snprintf(piece, sizeof piece, "%.*s[%.*s-%0*lld]%s", (int)b, s->name[i], (int)(e - b),
                     s->name[i] + b, (int)(e - b), first + (j - i) - 1, s->name[i] + e);
        else
            snprintf(piece, sizeof piece, "%s", s->name[i]);
        k = strlen(piece);
        if (len + k + 5 > size) {
            snprintf(ret + len, size - len, "%s", size - len > 3 ? "..." : "");
            break;
        }
        len += (size_t)snprintf(ret + len, size - len, "%s%s", i ? "," : "", piece);
    }
    return ret;
}
