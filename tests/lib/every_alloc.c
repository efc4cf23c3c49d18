#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/lib/every_alloc.h"

#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/mem.h"

enum { MOST = 20000 }; /* allocations of one scenario */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

/* The sanitizer has malloc; it looks for leaks at exit. */
static const int ours = 0;

static long live(void)
{
    return 0;
}

static void arm(long n, int once)
{
    (void)n;
    (void)once;
}

static long missed(void)
{
    return 0;
}

#else

/* The process's malloc, on glibc's own: counts blocks, and refuses some when told to. */
extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t n);
extern void *__libc_memalign(size_t align, size_t n);
extern void __libc_free(void *p);

static const int ours = 1;
static _Atomic long blocks, left = -1, refused;
static _Atomic int only;

static long live(void)
{
    return blocks;
}

static void arm(long n, int once)
{
    refused = 0;
    only = once;
    left = n;
}

static long missed(void)
{
    return refused;
}

static int refuse(void)
{
    if (left < 0)
        return 0;
    if (left > 0) {
        left--;
        return 0;
    }
    if (only)
        left = -1;
    refused++;
    errno = ENOMEM;
    return 1;
}

static void *counted(void *p)
{
    blocks += p != NULL;
    return p;
}

void *malloc(size_t n)
{
    return refuse() ? NULL : counted(__libc_malloc(n));
}

void *calloc(size_t n, size_t size)
{
    return refuse() ? NULL : counted(__libc_calloc(n, size));
}

void *realloc(void *p, size_t n)
{
    void *q = refuse() ? NULL : __libc_realloc(p, n);

    if (!p)
        return counted(q);
    if (!n && !q)
        blocks--;
    return q;
}

void *memalign(size_t align, size_t n)
{
    return refuse() ? NULL : counted(__libc_memalign(align, n));
}

void *aligned_alloc(size_t align, size_t n)
{
    return memalign(align, n);
}

int posix_memalign(void **ret, size_t align, size_t n)
{
    void *p = memalign(align, n);

    if (!p)
        return ENOMEM;
    *ret = p;
    return 0;
}

void free(void *p)
{
    blocks -= p != NULL;
    __libc_free(p);
}

#endif

struct outcome {
    int rc;
    long refused, leaked;
    struct sl_err err;
};

static void once(const struct every_alloc *e, long n, int one, struct outcome *o)
{
    long before = live();

    *o = (struct outcome){0};
    if (e->libraries && ours) {
        arm(n, one);
        o->rc = e->act(e->u, &o->err);
        o->refused = missed();
        arm(-1, 0);
    } else {
        if (one)
            sl_mem_fail_once(n);
        else
            sl_mem_fail_after(n);
        o->rc = e->act(e->u, &o->err);
        o->refused = sl_mem_refused();
        sl_mem_fail_after(-1);
    }
    o->leaked = live() - before;
}

static void judge(const struct every_alloc *e, long n, int one, const struct outcome *o)
{
    const char *how = one ? "alone" : "and all later ones";
    int may = e->may_survive || e->libraries;

    if (!o->rc && !may)
        fail_msg("%s: allocation %ld (%s) failed and nobody noticed", e->name, n, how);
    if (o->rc && o->err.code != SL_SYSTEM)
        fail_msg("%s: allocation %ld (%s) failed: code %d, \"%s\"", e->name, n, how, o->err.code,
                 o->err.msg);
    if (o->rc && !o->err.msg[0])
        fail_msg("%s: allocation %ld (%s) failed without a word", e->name, n, how);
    if (!e->threads && o->leaked > 0)
        fail_msg("%s: allocation %ld (%s) failed: %ld blocks are left behind", e->name, n, how,
                 o->leaked);
}

static void must_work(const struct every_alloc *e, const char *when)
{
    struct outcome o;

    once(e, -1, 0, &o);
    if (o.rc)
        fail_msg("%s: %s: %s", e->name, when, o.err.msg);
    if (e->check)
        e->check(e->u, 0);
}

long every_alloc(const struct every_alloc *e)
{
    struct outcome o;
    long n = 0;

    must_work(e, "with all memory"); /* fills what libraries keep, too */
    for (int ends = 0; ends < 2; n += e->stride ? e->stride : 1) {
        ends = 0;
        for (int one = 0; one < 2; one++) {
            once(e, n, one, &o);
            if (o.refused)
                judge(e, n, one, &o);
            else if (o.rc)
                fail_msg("%s: allocation %ld was not needed: %s", e->name, n, o.err.msg);
            ends += !o.refused;
            if (e->check)
                e->check(e->u, o.rc);
        }
        if (n > MOST)
            fail_msg("%s: no end of allocations", e->name);
    }
    must_work(e, "after it all");
    return n - 1;
}

int every_alloc_ours_alone(void)
{
    return !ours;
}
