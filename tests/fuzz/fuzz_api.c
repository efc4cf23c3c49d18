/* The API's paths and arguments, without HTTP between: always an answer, JSON with nothing of a tag in it. */
#include <jansson.h>
#include <string.h>

#include "store/jobs.h"
#include "store/store.h"
#include "store/writer.h"
#include "tests/fuzz/fuzz.h"
#include "web/api.h"

enum { ARGS = 16 };

struct args {
    const char *name[ARGS], *value[ARGS];
    int n;
};

static const char *find(void *u, const char *name)
{
    const struct args *a = u;

    for (int i = 0; i < a->n; i++)
        if (!strcmp(a->name[i], name))
            return a->value[i];
    return NULL;
}

static struct sl_store *store;

static void close_store(void)
{
    sl_store_close(store);
}

static void start(void)
{
    struct sl_new_job job
        = {.name = "<b>", .text = "x = 1\n", .ranks = 2, .strategy = "dp", .plan = "{\"a\":"};
    struct sl_err err = {0};
    struct sl_writer *w;
    struct sl_lease me;
    char path[96];
    int attempt;
    int64_t id;

    snprintf(path, sizeof path, "%s/f.db", fuzz_folder());
    store = sl_store_open(path, SL_STORE_WRITE, &err);
    FUZZ_MUST(store && !sl_lease_self(&me, &err) && !sl_jobs_create(store, &job, &id, &err));
    atexit(close_store);
    FUZZ_MUST(!sl_jobs_begin(store, id, &me, NULL, &attempt, &err));
    w = sl_writer_create(store, id, attempt, &err);
    FUZZ_MUST(w && !sl_writer_begin(w, &err));
    for (int64_t i = 1; i <= 600; i++)
        for (int64_t rank = 0; rank < 2; rank++) {
            struct sl_sample s = {.rank = rank, .step = i, .time = 1, .units = 8, .unit = "<i>"};

            s.step_ms = (double)i;
            FUZZ_MUST(!sl_writer_sample(w, &s, &err));
            FUZZ_MUST(!sl_writer_metric(w, i, 1, "</script>", 0.5, &err));
        }
    FUZZ_MUST(!sl_writer_event(w, -1, 1, "note", "\xff</script>", &err));
    FUZZ_MUST(!sl_writer_rank(w, 0, "host", 1, "cpu", &err) && !sl_writer_commit(w, &err));
    sl_writer_destroy(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *copy = malloc(n + 1), *rest;
    struct args a = {.n = 0};
    struct sl_api_request req = {.path = copy, .arg = find, .u = &a};
    struct sl_api_reply reply;
    const char *body;
    json_t *v;

    FUZZ_MUST(copy);
    if (!store)
        start();
    memcpy(copy, data, n);
    copy[n] = '\0';
    rest = strchr(copy, '?');
    while (rest && a.n < ARGS) {
        *rest++ = '\0';
        a.name[a.n] = rest;
        a.value[a.n] = "";
        rest = strchr(a.name[a.n], '&');
        if (rest)
            *rest = '\0';
        char *is = strchr(a.name[a.n], '=');
        if (is) {
            *is = '\0';
            a.value[a.n] = is + 1;
        }
        a.n++;
    }
    sl_api_get(store, &req, &reply);
    body = sl_buf_text(&reply.body);
    FUZZ_MUST(reply.status == 200 || reply.status == 400 || reply.status == 404);
    FUZZ_MUST(reply.body.len > 0 && strlen(body) == reply.body.len);
    if (!strcmp(reply.type, "application/json")) {
        v = json_loads(body, 0, NULL);
        FUZZ_MUST(v && !strpbrk(body, "<>"));
        json_decref(v);
    }
    sl_buf_fini(&reply.body);
    free(copy);
    return 0;
}
