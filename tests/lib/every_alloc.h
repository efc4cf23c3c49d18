#ifndef SL_TESTS_EVERY_ALLOC_H
#define SL_TESTS_EVERY_ALLOC_H

/*
 * every_alloc.h - a scenario run with its first allocation failing, then its second, ...
 *
 * Each scenario runs once with all memory, then for n = 0, 1, 2, ... twice: the n-th allocation
 * fails and the later ones work, and the n-th and all later ones fail; until it needs no n-th. Each
 * time it must end with -1, a message and SL_SYSTEM, `check` must find nothing half done, and no block
 * may be left behind (counted here; by LeakSanitizer at exit where the tree is built with it).
 * Include after cmocka.h: a broken promise fails the test.
 */

#include "common/err.h"

struct every_alloc {
    const char *name;
    int (*act)(void *u, struct sl_err *err); /* 0 or -1; releases all that it makes */
    void (*check)(void *u, int rc);          /* with memory back; may be NULL */
    void *u;
    int libraries;   /* 1: what SQLite and libc ask for fails, too; then an act may survive */
    int may_survive; /* 1: an act may do without what it was refused */
    int threads;     /* 1: makes threads, whose stacks the system keeps: blocks are not counted */
    int stride;      /* try each stride-th allocation only (others do the same, elsewhere); 0: each */
};

long every_alloc(const struct every_alloc *e); /* how many allocations were refused in turn */

/* 1: malloc is a sanitizer's, so `libraries` has no effect. */
int every_alloc_ours_alone(void);

#endif
