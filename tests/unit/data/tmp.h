#ifndef SL_TESTS_DATA_TMP_H
#define SL_TESTS_DATA_TMP_H

/* tmp.h - a folder that goes away with its test, and small files in it */

#include <stddef.h>

struct tmp {
    char dir[64];
};

void tmp_init(struct tmp *t);                          /* a test fails when it cannot be made */
void tmp_fini(struct tmp *t);                          /* removes it and all in it */
char *tmp_path(const struct tmp *t, const char *name); /* caller frees */
char *tmp_write(const struct tmp *t, const char *name, const void *data, size_t n); /* path */
char *tmp_text(const struct tmp *t, const char *name, const char *text);            /* path */

#endif
