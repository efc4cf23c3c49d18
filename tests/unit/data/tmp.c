#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/data/tmp.h"

void tmp_init(struct tmp *t)
{
    strcpy(t->dir, "/tmp/sl-data-XXXXXX");
    assert_non_null(mkdtemp(t->dir));
}

static int drop(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

void tmp_fini(struct tmp *t)
{
    assert_int_equal(nftw(t->dir, drop, 16, FTW_DEPTH | FTW_PHYS), 0);
}

char *tmp_path(const struct tmp *t, const char *name)
{
    size_t n = strlen(t->dir) + strlen(name) + 2;
    char *path = calloc(n, 1);

    assert_non_null(path);
    snprintf(path, n, "%s/%s", t->dir, name);
    return path;
}

char *tmp_write(const struct tmp *t, const char *name, const void *data, size_t n)
{
    char *path = tmp_path(t, name);
    FILE *f = fopen(path, "wb");

    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
    return path;
}

char *tmp_text(const struct tmp *t, const char *name, const char *text)
{
    return tmp_write(t, name, text, strlen(text));
}
