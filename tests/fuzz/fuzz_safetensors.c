/* Headers of safetensors files: what is taken lies inside the file, one behind the other. */
#include <string.h>
#include <unistd.h>

#include "executor/checkpoint/safetensors.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char path[40];
    int fd = fuzz_file(data, n, path);
    struct sl_err err = {0};
    struct sl_safetensors *s = sl_safetensors_read(fd, &err);

    if (!s) {
        FUZZ_MUST(err.code == SL_USAGE && err.msg[0]);
    } else {
        int64_t at = sl_safetensors_length(data, (int64_t)n, &err);

        for (int i = 0; i < sl_safetensors_count(s); i++) {
            const struct sl_safetensors_entry *e = sl_safetensors_at(s, i);
            int64_t bytes = sl_dtype_size(e->type);

            for (int k = 0; k < e->dims; k++)
                bytes *= e->shape[k];
            FUZZ_MUST(e->begin == at && e->end - e->begin == bytes);
            FUZZ_MUST(sl_safetensors_find(s, e->name));
            at = e->end;
        }
        FUZZ_MUST(at == (int64_t)n);
    }
    sl_safetensors_destroy(s);
    close(fd);
    return 0;
}
