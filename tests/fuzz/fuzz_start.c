/* The start record of a rank: what is taken has numbers in bounds, strings with ends and a whole text. */
#include <string.h>
#include <unistd.h>

#include "executor/rank.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct sl_rank_start *s = calloc(1, sizeof *s);
    struct sl_err err = {0};
    struct sl_job *job;
    char path[40], *text;
    int fd;

    FUZZ_MUST(s);
    /* the first byte says whether the magic is given, else nothing would come behind it */
    if (n && data[0] % 2) {
        size_t most = n - 1 < sizeof *s ? n - 1 : sizeof *s;

        memcpy(s, data + 1, most);
        s->magic = SL_RANK_MAGIC;
        s->version = SL_RANK_VERSION;
        s->nlocal = s->ranks;
        s->local = s->rank;
        if (data[0] % 4 == 3)
            s->text_bytes = (uint32_t)(n - 1 - most);
        fd = fuzz_file((const uint8_t *)s, sizeof *s, path);
        FUZZ_MUST(write(fd, data + 1 + most, n - 1 - most) == (ssize_t)(n - 1 - most));
    } else {
        fd = fuzz_file(data, n, path);
    }
    memset(s, 0xa5, sizeof *s);
    if (sl_rank_start_read(fd, s, &text, &err)) {
        FUZZ_MUST(!text && err.msg[0]);
    } else {
        FUZZ_MUST(s->ranks >= 1 && s->ranks <= SL_MAX_RANKS && s->rank >= 0 && s->rank < s->ranks);
        FUZZ_MUST(strlen(text) == s->text_bytes && s->hang_timeout >= 0 && s->arena_bytes > 0);
        FUZZ_MUST(strlen(s->data.train) < SL_DATASET_PATH);
        job = sl_job_parse(text, "job", &err);
        sl_job_destroy(job);
        free(text);
    }
    close(fd);
    free(s);
    return 0;
}
