/*
 * openmp.c - a person's OpenMP variables do not reach us
 *
 * libgomp reads them before main, and OMP_PROC_BIND, OMP_PLACES and GOMP_CPU_AFFINITY pin the process
 * there and then: the count of cores came out as 1, and every rank was born pinned to the first core.
 * What they ask for is what the launcher decides (resources.threads, no pinning), so they are taken
 * out of the environment before any library's constructor runs. Waiting (OMP_WAIT_POLICY,
 * GOMP_SPINCOUNT) stays a person's choice.
 */
#include <stddef.h>

static int begins(const char *s, const char *with)
{
    while (*with)
        if (*s++ != *with++)
            return 0;
    return 1;
}

/* Runs before libc is ready, and before a sanitizer is: plain code only. */
__attribute__((no_sanitize("address,thread,undefined"), optimize("no-tree-loop-distribute-patterns")))
static void forget_openmp(int argc, char **argv, char **env)
{
    static const char *const names[] = {"OMP_PROC_BIND=", "OMP_PLACES=", "GOMP_CPU_AFFINITY=",
                                        "OMP_NUM_THREADS=", "OMP_THREAD_LIMIT=", "OMP_DYNAMIC="};
    char **keep = env;

    (void)argc;
    (void)argv;
    for (; *env; env++) {
        int ours = 0;

        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            ours |= begins(*env, names[i]);
        if (!ours)
            *keep++ = *env;
    }
    *keep = NULL;
}

__attribute__((section(".preinit_array"), used)) static void (*const hook)(int, char **, char **)
    = forget_openmp;
