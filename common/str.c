#include "common/str.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct unit {
    const char *name;
    double scale;
};

static const struct unit sizes[] = {
    {"B", 1},      {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40},
    {"kB", 1e3},   {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12},
};
static const struct unit times[] = {{"d", 86400}, {"h", 3600}, {"m", 60}, {"s", 1}, {"ms", 1e-3}};

/* A plain decimal at *s: digits, a point, digits. strtod alone takes "inf", "0x1" and "1e9", too. */
static int number(const char **s, double *ret)
{
    const char *p = *s;
    char text[40];
    size_t digits = 0;

    while (isdigit((unsigned char)*p))
        p++, digits++;
    if (*p == '.')
        p++;
    while (isdigit((unsigned char)*p))
        p++, digits++;
    size_t n = (size_t)(p - *s);
    if (!digits || n >= sizeof text)
        return -1;
    memcpy(text, *s, n);
    text[n] = '\0';
    *ret = strtod(text, NULL);
    *s = p;
    return 0;
}

static const struct unit *find_unit(const struct unit *v, size_t n, const char *s, size_t len)
{
    for (size_t i = 0; i < n; i++)
        if (strlen(v[i].name) == len && !strncmp(v[i].name, s, len))
            return &v[i];
    return NULL;
}

static size_t letters(const char *s)
{
    size_t n = 0;

    while (isalpha((unsigned char)s[n]))
        n++;
    return n;
}

int sl_size_parse(const char *s, int64_t *ret, struct sl_err *err)
{
    const char *p = s;
    const struct unit *u = &sizes[0];
    char shown[64];
    double x;

    sl_str_escape(shown, sizeof shown, s);
    if (number(&p, &x))
        goto bad;
    size_t n = letters(p);
    if (n)
        u = find_unit(sizes, sizeof sizes / sizeof *sizes, p, n);
    if (!u || p[n])
        goto bad;
    x *= u->scale;
    if (x >= 0x1p63)
        return sl_fail(err, SL_USAGE, "size \"%s\" is too large", shown);
    if (x != floor(x))
        return sl_fail(err, SL_USAGE, "size \"%s\" is no whole number of bytes", shown);
    *ret = (int64_t)x;
    return 0;
bad:
    return sl_fail(err, SL_USAGE, "\"%s\" is no size: use a number and B, KiB, MiB, GiB, TiB, kB, MB, "
                                  "GB or TB, as in \"512MiB\"", shown);
}

int sl_duration_parse(const char *s, double *ret, struct sl_err *err)
{
    const char *p = s;
    const struct unit *last = NULL, *u;
    char shown[64];
    double sum = 0, x;

    do {
        if (number(&p, &x))
            goto bad;
        size_t n = letters(p);
        if (!n && !last && !*p) { /* seconds without a unit */
            sum = x;
            break;
        }
        u = find_unit(times, sizeof times / sizeof *times, p, n);
        if (!u || (last && u <= last))
            goto bad;
        sum += x * u->scale;
        last = u;
        p += n;
    } while (*p);
    *ret = sum;
    return 0;
bad:
    sl_str_escape(shown, sizeof shown, s);
    return sl_fail(err, SL_USAGE, "\"%s\" is no duration: use seconds or numbers with d, h, m, s or ms, "
                                  "as in \"12h\" or \"1h30m\"", shown);
}

const char *sl_size_exact(char buf[32], int64_t bytes)
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int k = 0;

    while (k < 4 && bytes && bytes % 1024 == 0) {
        bytes /= 1024;
        k++;
    }
    snprintf(buf, 32, "%lld%s", (long long)bytes, names[k]);
    return buf;
}

const char *sl_double_exact(char buf[40], double x)
{
    /* %g drops zeros at the end: what 15 digits tell exactly comes out as short as it can be. */
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(buf, 40, "%.*g", digits, x);
        if (isnan(x) || strtod(buf, NULL) == x)
            break;
    }
    return buf;
}

const char *sl_duration_exact(char buf[40], double seconds)
{
    static const struct unit whole[] = {{"d", 86400}, {"h", 3600}, {"m", 60}};

    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        if (seconds >= whole[i].scale && seconds < 1e15 && fmod(seconds, whole[i].scale) == 0) {
            snprintf(buf, 40, "%.0f%s", seconds / whole[i].scale, whole[i].name);
            return buf;
        }
    for (int digits = 0; digits <= 17; digits++) { /* no exponent: the parser takes none */
        snprintf(buf, 38, "%.*f", digits, seconds);
        if (strtod(buf, NULL) == seconds)
            break;
    }
    strcat(buf, "s");
    return buf;
}

const char *sl_size_human(char buf[32], int64_t bytes)
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double x = (double)bytes;
    int k = 0;

    while (k < 6 && fabs(x) >= 1023.5) {
        x /= 1024;
        k++;
    }
    int digits = k == 0 || fabs(x) >= 99.95 ? 0 : fabs(x) >= 9.995 ? 1 : 2;
    snprintf(buf, 32, "%.*f %s", digits, x, names[k]);
    return buf;
}

const char *sl_duration_human(char buf[40], double seconds)
{
    long long s = seconds < 0 ? 0 : seconds > 1e12 ? 1000000000000 : (long long)(seconds + 0.5);

    if (s < 60)
        snprintf(buf, 40, seconds < 9.95 ? "%.1f s" : "%.0f s", seconds < 0 ? 0 : seconds);
    else if (s < 3600)
        snprintf(buf, 40, "%lld:%02lld", s / 60, s % 60);
    else if (s < 86400)
        snprintf(buf, 40, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(buf, 40, "%lldd %02lld:%02lld", s / 86400, s / 3600 % 24, s / 60 % 60);
    return buf;
}

enum { LONGEST = 63 }; /* names of ours are shorter; what is longer is no misspelling of one */

static int min2(int a, int b)
{
    return a < b ? a : b;
}

int sl_str_distance(const char *a, const char *b)
{
    int row[3][LONGEST + 1], *two = row[0], *one = row[1], *now = row[2];
    int n = (int)strnlen(a, LONGEST + 1), m = (int)strnlen(b, LONGEST + 1);

    if (n > LONGEST || m > LONGEST)
        return strcmp(a, b) ? LONGEST + 1 : 0;
    for (int j = 0; j <= m; j++)
        one[j] = j;
    memset(two, 0, sizeof row[0]);
    for (int i = 1; i <= n; i++) {
        now[0] = i;
        for (int j = 1; j <= m; j++) {
            int x = tolower((unsigned char)a[i - 1]), y = tolower((unsigned char)b[j - 1]);
            int d = min2(min2(one[j] + 1, now[j - 1] + 1), one[j - 1] + (x != y));

            if (i > 1 && j > 1 && x == tolower((unsigned char)b[j - 2]) &&
                y == tolower((unsigned char)a[i - 2]))
                d = min2(d, two[j - 2] + 1);
            now[j] = d;
        }
        int *old = two;
        two = one;
        one = now;
        now = old;
    }
    return one[m];
}

int sl_str_nearest(const char *word, const char *const *names, int n)
{
    int best = -1, best_d = 0, len = (int)strlen(word);

    for (int i = 0; i < n; i++) {
        int d = sl_str_distance(word, names[i]), longer = (int)strlen(names[i]);

        longer = longer > len ? longer : len;
        if (d > 1 && d * 5 > longer * 2) /* more than two letters in five are other ones */
            continue;
        if (d >= longer || longer > LONGEST)
            continue;
        if (best < 0 || d < best_d) {
            best = i;
            best_d = d;
        }
    }
    return best;
}

int sl_utf8_len(const char *p, size_t n)
{
    const unsigned char *s = (const unsigned char *)p;
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    int len = 0;
    uint32_t code = 0;

    if (!n)
        return 0;
    if (s[0] < 0x80)
        return 1;
    if (s[0] >= 0xC2 && s[0] < 0xE0)
        len = 2, code = s[0] & 0x1Fu;
    else if (s[0] >= 0xE0 && s[0] < 0xF0)
        len = 3, code = s[0] & 0x0Fu;
    else if (s[0] >= 0xF0 && s[0] < 0xF5)
        len = 4, code = s[0] & 0x07u;
    if (!len || (size_t)len > n)
        return 0;
    for (int i = 1; i < len; i++) {
        if ((s[i] & 0xC0) != 0x80)
            return 0;
        code = code << 6 | (s[i] & 0x3Fu);
    }
    if (code < least[len] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
        return 0;
    return len;
}

/* The code of a character of `len` bytes that sl_utf8_len has checked. */
static uint32_t decode(const char *s, int len)
{
    static const unsigned char lead[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    uint32_t code = (unsigned char)*s & lead[len];

    for (int i = 1; i < len; i++)
        code = code << 6 | ((unsigned char)s[i] & 0x3Fu);
    return code;
}

/* Controls of both sets, ends of lines, and what turns the direction of the text around it. */
static int acts(uint32_t c)
{
    return c < 0x20 || (c >= 0x7F && c < 0xA0) || (c >= 0x2028 && c <= 0x202E)
           || (c >= 0x2066 && c <= 0x2069);
}

const char *sl_str_control(const char *s)
{
    size_t left = strlen(s);

    while (left) {
        int used = sl_utf8_len(s, left);

        if (!used || acts(decode(s, used)))
            return s;
        s += used;
        left -= (size_t)used;
    }
    return NULL;
}

size_t sl_str_escape(char *dst, size_t size, const char *s)
{
    size_t left = strlen(s), at = 0, fits = 0; /* fits: the last end that leaves room for "..." */

    while (left) {
        char piece[8];
        int used = sl_utf8_len(s, left), n;

        if (*s == '\n' || *s == '\t' || *s == '\r')
            n = snprintf(piece, sizeof piece, "\\%c", *s == '\n' ? 'n' : *s == '\t' ? 't' : 'r');
        else if (used < 2 && (!used || acts((unsigned char)*s)))
            n = snprintf(piece, sizeof piece, "\\x%02X", (unsigned char)*s);
        else if (acts(decode(s, used)))
            n = snprintf(piece, sizeof piece, "\\u%04X", (unsigned)decode(s, used) & 0xFFFFu);
        else
            n = snprintf(piece, sizeof piece, "%.*s", used, s);
        if (at + (size_t)n + 1 > size) {
            memcpy(dst + fits, "...", 3);
            at = fits + 3;
            break;
        }
        memcpy(dst + at, piece, (size_t)n);
        at += (size_t)n;
        if (at + 4 <= size)
            fits = at;
        s += used ? used : 1;
        left -= (size_t)(used ? used : 1);
    }
    dst[at] = '\0';
    return at;
}

int sl_str_ends(const char *s, const char *tail)
{
    size_t n = strlen(s), m = strlen(tail);

    return n >= m && !memcmp(s + n - m, tail, m);
}
