/* Whatever allocation fails while a page is answered: a status that says so, and no half a body. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/lib/every_alloc.h"
#include "tests/unit/store/fixture.h"
#include "web/api.h"
#include "web/server.h"

struct scene {
    struct fixture *f;
    const char *path;
};

static const char *find_arg(void *u, const char *name)
{
    (void)u;
    return !strcmp(name, "metric") ? "lr" : NULL;
}

static int ask_api(void *u, struct sl_err *err)
{
    struct scene *c = u;
    struct sl_api_request req = {c->path, find_arg, NULL};
    struct sl_store *st = sl_store_open(c->f->path, SL_STORE_READ, err);
    struct sl_api_reply reply;
    int rc = 0;

    if (!st)
        return -1;
    sl_api_get(st, &req, &reply);
    if (reply.status == 500)
        rc = sl_fail(err, SL_SYSTEM, "500");
    else if (reply.status != 200)
        rc = sl_fail(err, SL_BUG, "status %d", reply.status);
    else if (reply.body.len < 3 || reply.body.failed)
        rc = sl_fail(err, SL_BUG, "200 without a body");
    else if (*sl_buf_text(&reply.body) == '{' && !strstr(sl_buf_text(&reply.body), "}\n"))
        rc = sl_fail(err, SL_BUG, "half a body");
    sl_buf_fini(&reply.body);
    sl_store_close(st);
    return rc;
}

static int a_server(void *u, struct sl_err *err)
{
    struct scene *c = u;
    struct sl_server_conf conf = {.db = c->f->path, .port = 0};
    struct sl_server *s = sl_server_start(&conf, err);

    sl_server_stop(s);
    return s ? 0 : -1;
}

static void answers(void **state)
{
    static const char *const paths[]
        = {"/api/jobs", "/api/jobs/1", "/api/jobs/1/series", "/api/jobs/1/logs", "/metrics"};
    struct fixture *f = *state;
    int64_t id = begun_job(f, "job");
    struct sl_writer *w = sl_writer_create(f->st, id, 1, NULL);

    assert_int_equal(id, 1);
    ok(sl_writer_begin(w, err));
    for (int64_t step = 1; step <= 20; step++)
        ok(sl_writer_metric(w, step, 1, "lr", 0.5, err));
    ok(sl_writer_rank(w, 0, "host", 7, "cpu", err));
    ok(sl_writer_commit(w, err));
    sl_writer_destroy(w);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        struct scene c = {.f = f, .path = paths[i]};
        struct every_alloc e = {.name = paths[i], .act = ask_api, .u = &c, .may_survive = 1};

        assert_true(every_alloc(&e) >= 5);
    }
}

static void starting_and_stopping(void **state)
{
    struct scene c = {.f = *state};
    struct every_alloc e = {.name = "server", .act = a_server, .u = &c, .threads = 1};

    assert_true(every_alloc(&e) >= 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(answers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(starting_and_stopping, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
