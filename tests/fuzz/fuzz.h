#ifndef SL_TESTS_FUZZ_H
#define SL_TESTS_FUZZ_H

/*
 * fuzz.h - what the fuzz targets share
 *
 * A target is one file with LLVMFuzzerTestOneInput(). It links with libFuzzer (configure
 * --enable-fuzzers, script/fuzz) or with replay.c, which runs it over files: the corpora in
 * tests/fuzz/corpus are a test of every build. A broken promise aborts.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* A file with these bytes: its descriptor, and a path that opens it. */
int fuzz_file(const uint8_t *data, size_t n, char path[40]);

/* A folder that is gone when the process ends by itself. */
const char *fuzz_folder(void);

#define FUZZ_MUST(x)                                                                               \
    do {                                                                                           \
        if (!(x)) {                                                                                \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #x);                        \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#endif
