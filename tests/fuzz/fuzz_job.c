/* Job files with overrides: text, then overrides, each behind a NUL. What is taken is written back. */
#include <string.h>
#include <unistd.h>

#include "executor/job.h"
#include "executor/program.h"
#include "tests/fuzz/fuzz.h"

enum { OVERRIDES = 8 };

static void must_speak(const struct sl_err *err)
{
    FUZZ_MUST(err->code == SL_USAGE && err->msg[0]);
    for (const char *p = err->msg; *p; p++)
        FUZZ_MUST((unsigned char)*p >= ' '); /* one line, nothing for a terminal */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const char *set[OVERRIDES];
    char *text, *again, path[40];
    struct sl_err err = {0};
    struct sl_job *job, *same;
    char *copy = malloc(n + 1);
    size_t at;
    int fd, k = 0;

    FUZZ_MUST(copy);
    memcpy(copy, data, n);
    copy[n] = '\0';
    at = strlen(copy);
    fd = fuzz_file(data, at, path);
    for (at++; at <= n && k < OVERRIDES; at += strlen(copy + at) + 1)
        set[k++] = copy + at;
    job = sl_job_load(path, set, k, &err);
    close(fd);
    if (!job) {
        must_speak(&err);
    } else {
        text = sl_job_text(job, &err);
        FUZZ_MUST(text);
        same = sl_job_parse(text, "again", &err);
        if (!same)
            fprintf(stderr, "%s\n%s", err.msg, text);
        FUZZ_MUST(same);
        again = sl_job_text(same, &err);
        FUZZ_MUST(again && !strcmp(again, text));
        if (sl_job_check_ranks(job, (int)job->resources.ranks_per_node, &err))
            FUZZ_MUST(err.code == SL_USAGE);
        free(again);
        free(text);
        sl_job_destroy(same);
    }
    sl_job_destroy(job);
    free(copy);
    return 0;
}
