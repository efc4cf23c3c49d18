/*
 * Records that ranks send: the agent's sums and the recorder take any of them, and whatever one rank
 * sends, the rows of the others are written.
 */
#include <string.h>

#include "common/clock.h"
#include "launcher/recorder.h"
#include "launcher/tally.h"
#include "store/store.h"
#include "tests/fuzz/fuzz.h"

enum { EACH = 512, PATIENCE_MS = 20000 };

static struct sl_recorder *open_recorder(void)
{
    struct sl_new_job job = {.name = "fuzz", .text = "", .ranks = 4, .steps = 10, .strategy = "dp"};
    struct sl_err err = {0};
    struct sl_store *st;
    char path[96];
    int64_t id = 0;

    snprintf(path, sizeof path, "%s/f.db", fuzz_folder());
    st = sl_store_open(path, SL_STORE_WRITE, &err);
    FUZZ_MUST(st && !sl_jobs_create(st, &job, &id, &err));
    sl_store_close(st);
    struct sl_recorder_conf conf = {.db = path, .job = id};
    struct sl_recorder *r = sl_recorder_open(&conf, &err);
    FUZZ_MUST(r);
    return r;
}

static struct sl_recorder *rec;
static int64_t taken;

static void close_recorder(void)
{
    struct sl_err err = {0};

    if (sl_recorder_close(rec, SL_DONE, 0, "", &err)) {
        fprintf(stderr, "%s\n", err.msg);
        _Exit(99);
    }
}

/* All that was taken is in the database soon. */
static void must_write(void)
{
    struct sl_recorder_count c;
    char notice[600];

    for (int ms = 0; ms < PATIENCE_MS; ms += 20) {
        sl_recorder_count(rec, &c);
        if (!c.waiting)
            return;
        sl_clock_sleep_until(sl_clock_ns() + 20000000);
    }
    if (sl_recorder_notice(rec, notice, sizeof notice))
        fprintf(stderr, "%s\n", notice);
    FUZZ_MUST(!"records are stuck");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct sl_tally t;
    struct sl_report rep;
    char text[64];

    if (!rec) {
        fuzz_folder(); /* its end is registered first, so it comes last */
        rec = open_recorder();
        atexit(close_recorder);
    }
    sl_tally_init(&t, 4, 100);
    for (size_t at = 0; at < n; at += sizeof rep) {
        memset(&rep, 0, sizeof rep);
        memcpy(&rep, data + at, n - at < sizeof rep ? n - at : sizeof rep);
        if (rep.type > 0xff) /* a type that exists, more often than by chance */
            rep.type %= 5;
        sl_tally_add(&t, &rep);
        if (!sl_recorder_put(rec, &rep) && ++taken % EACH == 0)
            must_write();
    }
    sl_tally_time(sl_tally_left(&t), text, sizeof text);
    sl_tally_bytes(sl_tally_memory(&t), text, sizeof text);
    sl_tally_count(t.units_per_second, text, sizeof text);
    return 0;
}
