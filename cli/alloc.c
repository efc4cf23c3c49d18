/* alloc.c - exec salloc with our own words behind it */
#include "cli/alloc.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/fs.h"
#include "common/mem.h"

enum { WORDS = 4096, BYTES = 1 << 20 };

/* This command as it was typed, its program by full path, without --alloc. Words lie in *text. */
static int own_words(char **text, char *exe, size_t size, char **argv, int *n, struct sl_err *err)
{
    ssize_t k = readlink("/proc/self/exe", exe, size - 1);
    size_t len;

    if (k < 0)
        return sl_fail(err, SL_SYSTEM, "cannot read /proc/self/exe: %s", strerror(errno));
    exe[k] = '\0';
    *text = sl_fs_read("/proc/self/cmdline", BYTES, &len, err);
    if (!*text)
        return -1;
    argv[(*n)++] = exe;
    for (char *w = *text + strlen(*text) + 1; w < *text + len; w += strlen(w) + 1) {
        if (!strcmp(w, "--alloc"))
            continue;
        if (*n >= WORDS - 1)
            return sl_fail(err, SL_USAGE, "more than %d words", WORDS);
        argv[(*n)++] = w;
    }
    argv[*n] = NULL;
    return 0;
}

int sl_alloc_become(const struct sl_job *job, struct sl_err *err)
{
    const struct sl_resources *r = &job->resources;
    char nodes[48], cpus[64], exe[4096], *text = NULL, **argv;
    int n = 0, rc;

    if (getenv("PMIX_NAMESPACE") || getenv("SLURM_STEP_ID")) {
        sl_fail(err, SL_USAGE, "--alloc asks for nodes, and this is already a task on one");
        return sl_hint(err, "Leave --alloc out behind srun or mpirun.");
    }
    argv = sl_calloc(WORDS, sizeof *argv);
    if (!argv)
        return sl_fail(err, SL_SYSTEM, "cannot hold the command: %s", strerror(errno));
    snprintf(nodes, sizeof nodes, "--nodes=%" PRId64, r->nodes);
    snprintf(cpus, sizeof cpus, "--cpus-per-task=%" PRId64, r->threads * r->ranks_per_node);
    if (!getenv("SLURM_JOB_ID")) {
        argv[n++] = "salloc";
        argv[n++] = nodes;
        argv[n++] = "--ntasks-per-node=1";
        argv[n++] = r->threads > 0 ? cpus : "--exclusive";
    }
    argv[n++] = "srun";
    argv[n++] = "--mpi=pmix";
    argv[n++] = nodes;
    argv[n++] = "--ntasks-per-node=1";
    if (r->threads > 0)
        argv[n++] = cpus;
    rc = own_words(&text, exe, sizeof exe, argv, &n, err);
    if (!rc) {
        execvp(argv[0], argv);
        rc = sl_fail(err, SL_SYSTEM, "cannot start %s: %s", argv[0], strerror(errno));
        sl_hint(err, "Is this a machine of a Slurm cluster?");
    }
    free(text);
    free(argv);
    return rc;
}
