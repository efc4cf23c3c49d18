/* Token files, with our header or without: what opens can be read to its last token. */
#include <unistd.h>

#include "executor/data/dataset.h"
#include "executor/data/tokens.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char path[40];
    int fd = fuzz_file(data, n, path);
    struct sl_err err = {0};
    struct sl_tokens tok;

    if (sl_tokens_open(&tok, path, &err)) {
        FUZZ_MUST(err.code == SL_USAGE && err.msg[0]);
    } else {
        struct sl_dataset_spec spec = {.train = path,
                                       .valid_fraction = 0.3,
                                       .vocab_size = 1000,
                                       .context = 3,
                                       .batch = 1,
                                       .seed = n};
        struct sl_dataset *ds;
        int32_t ids[3], targets[3];

        FUZZ_MUST(tok.count >= 1 && (size_t)tok.count * 2 <= n);
        int bad = sl_tokens_check(&tok, 1000, path, &err);
        sl_tokens_close(&tok);
        ds = sl_dataset_open(&spec, &err);
        for (int64_t i = 0; ds && i < sl_dataset_train_samples(ds); i++)
            if (sl_dataset_train(ds, i, ids, targets, &err))
                FUZZ_MUST(bad && err.code == SL_USAGE);
        for (int64_t i = 0; ds && i < sl_dataset_valid_samples(ds); i++)
            if (sl_dataset_valid(ds, i, ids, targets, &err))
                FUZZ_MUST(bad && err.code == SL_USAGE);
        sl_dataset_close(ds);
    }
    close(fd);
    return 0;
}
