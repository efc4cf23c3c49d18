#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/golden/golden.h"

struct array {
    char name[96], type[8];
    int64_t n;
    long off;
};

struct golden {
    char stem[16];
    struct array v[256];
    int n;
    unsigned char *data;
    long size;
};

__attribute__((noreturn)) static void give_up(const char *what, const char *name)
{
    printf("Bail out! golden files: %s: %s\n", what, name);
    exit(1);
}

static FILE *open_one(const char *stem, const char *suffix)
{
    const char *top = getenv("srcdir");
    char path[1024];
    FILE *f;

    snprintf(path, sizeof path, "%s/tests/golden/%s%s", top ? top : ".", stem, suffix);
    f = fopen(path, "rb");
    if (!f)
        give_up("cannot read", path);
    return f;
}

struct golden *golden_open(const char *stem)
{
    struct golden *g = calloc(1, sizeof *g);
    FILE *f = open_one(stem, ".txt");
    char line[256];

    if (!g)
        give_up("no memory for", stem);
    snprintf(g->stem, sizeof g->stem, "%s", stem);
    while (fgets(line, sizeof line, f)) {
        struct array *a = &g->v[g->n];
        int at;

        if (g->n == 256 || sscanf(line, "%95s %7s %ld%n", a->name, a->type, &a->off, &at) != 3)
            give_up("a wrong line in the index of", stem);
        a->n = 1;
        for (char *p = line + at, *end; *p && *p != '\n'; p = end) {
            a->n *= strtol(p, &end, 10);
            if (end == p)
                give_up("a wrong line in the index of", stem);
        }
        g->n++;
    }
    fclose(f);
    f = open_one(stem, ".bin");
    fseek(f, 0, SEEK_END);
    g->size = ftell(f);
    rewind(f);
    g->data = malloc((size_t)g->size);
    if (!g->data || fread(g->data, 1, (size_t)g->size, f) != (size_t)g->size)
        give_up("cannot read all of", stem);
    fclose(f);
    return g;
}

void golden_close(struct golden *g)
{
    free(g->data);
    free(g);
}

static const void *find(const struct golden *g, const char *name, const char *type, int64_t *n)
{
    for (int i = 0; i < g->n; i++) {
        const struct array *a = &g->v[i];

        if (strcmp(a->name, name) || strcmp(a->type, type))
            continue;
        if (a->off < 0 || a->off % 4 || a->n < 1 || a->off + 4 * a->n > g->size)
            give_up("outside its file", name);
        if (n)
            *n = a->n;
        return g->data + a->off;
    }
    give_up("no such array", name);
}

const float *golden_f32(const struct golden *g, const char *name, int64_t *n)
{
    return find(g, name, "f32", n);
}

const int32_t *golden_i32(const struct golden *g, const char *name, int64_t *n)
{
    return find(g, name, "i32", n);
}

const float *golden_of(const struct golden *g, const char *prefix, const char *name, int64_t *n)
{
    char full[160];

    snprintf(full, sizeof full, "%s.%s", prefix, name);
    return golden_f32(g, full, n);
}

double golden_error(const float *x, const float *want, int64_t n)
{
    double diff = 0, norm = 0;

    for (int64_t i = 0; i < n; i++) {
        diff += ((double)x[i] - want[i]) * ((double)x[i] - want[i]);
        norm += (double)want[i] * want[i];
    }
    return norm > 0 ? sqrt(diff / norm) : sqrt(diff);
}
