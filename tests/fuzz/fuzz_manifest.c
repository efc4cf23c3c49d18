/* Manifests of checkpoints: what is taken covers each tensor once, by places inside its files. */
#include <inttypes.h>
#include <string.h>

#include "executor/checkpoint/manifest.h"
#include "executor/data/xxh64.h"
#include "tests/fuzz/fuzz.h"

/* The right hash, else nothing but the hash would ever be looked at. */
static void sign(char *text, size_t n)
{
    static const char key[] = ",\"xxh64\":\"";
    char *at = memmem(text, n < 200 ? n : 200, key, strlen(key)), hex[17];

    if (!at || (size_t)(at + strlen(key) - text) + 16 > n)
        return;
    at += strlen(key);
    memset(at, '0', 16);
    snprintf(hex, sizeof hex, "%016" PRIx64, sl_xxh64(text, n));
    memcpy(at, hex, 16);
}

static void check_tensor(const struct sl_ckpt_manifest *m, const struct sl_ckpt_tensor *t)
{
    FUZZ_MUST(*t->name && t->n >= 1);
    for (int k = 0; k < SL_CKPT_KINDS; k++) {
        int64_t at = 0;

        for (int i = 0; i < t->count[k]; i++) {
            const struct sl_ckpt_range *r = &t->range[k][i];

            FUZZ_MUST(r->lo == at && r->n >= 1);
            FUZZ_MUST(r->file >= 0 && r->file < m->nfiles && r->off >= 0);
            FUZZ_MUST(r->n <= (m->file[r->file].bytes - r->off) / 4);
            at += r->n;
        }
        FUZZ_MUST(at == t->n || (!at && k != SL_CKPT_PARAM));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *text = malloc(n + 1);
    struct sl_err err = {0};
    struct sl_ckpt_manifest *m;

    FUZZ_MUST(text);
    memcpy(text, data, n);
    text[n] = '\0';
    sign(text, n);
    m = sl_ckpt_manifest_parse(text, n, &err);
    if (!m) {
        FUZZ_MUST(err.code == SL_USAGE && err.msg[0]);
    } else {
        FUZZ_MUST(m->step >= 1 && m->position == m->step * m->batch && m->skipped <= m->step);
        for (int i = 0; i < m->nfiles; i++)
            FUZZ_MUST(*m->file[i].name && *m->file[i].name != '.' && !strchr(m->file[i].name, '/')
                      && m->file[i].chunks == sl_ckpt_chunks(m->file[i].bytes));
        for (int i = 0; i < m->ntensors; i++)
            check_tensor(m, &m->tensor[i]);
    }
    sl_ckpt_manifest_destroy(m);
    free(text);
    return 0;
}
