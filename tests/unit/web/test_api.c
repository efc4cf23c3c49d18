/* The API's answers: right forms, checked arguments, harmless text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <math.h>

#include "tests/unit/store/fixture.h"
#include "web/api.h"

static const char *find_arg(void *u, const char *name)
{
    const char *const *pairs = u;

    for (; pairs && *pairs; pairs += 2)
        if (!strcmp(pairs[0], name))
            return pairs[1];
    return NULL;
}

/* The body as JSON with the status that is expected; caller drops it. */
static json_t *get(struct fixture *f, const char *path, const char *const *args, int status)
{
    struct sl_api_request req = {path, find_arg, (void *)(uintptr_t)args};
    struct sl_api_reply reply;
    json_error_t e;
    json_t *v;

    sl_api_get(f->st, &req, &reply);
    assert_int_equal(reply.status, status);
    assert_string_equal(reply.type, "application/json");
    v = json_loads(sl_buf_text(&reply.body), 0, &e);
    if (!v)
        fail_msg("no JSON: %s in %s", e.text, sl_buf_text(&reply.body));
    sl_buf_fini(&reply.body);
    return v;
}

#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

static json_t *at(json_t *v, const char *key)
{
    json_t *x = json_object_get(v, key);

    if (!x)
        fail_msg("no key %s", key);
    return x;
}

static int64_t seeded(struct fixture *f, int ranks, int64_t steps)
{
    int64_t id = begun_job(f, "</script><script>alert(1)</script>");
    struct sl_writer *w = sl_writer_create(f->st, id, 1, NULL);

    ok(sl_writer_begin(w, err));
    for (int64_t step = 1; step <= steps; step++)
        for (int r = 0; r < ranks; r++) {
            struct sl_sample s = {.rank = r,
                                  .step = step,
                                  .time = 7,
                                  .units = 50,
                                  .unit = "tokens",
                                  .step_ms = 100,
                                  .comm_ms = 3,
                                  .data_ms = 1,
                                  .loss = r ? NAN : (double)step};

            ok(sl_writer_sample(w, &s, err));
        }
    for (int r = 0; r < ranks; r++) {
        ok(sl_writer_rank(w, r, "h", 10 + r, "cpu", err));
        ok(sl_writer_memory(w, r, 0, "parameters", 100, 110, err));
        ok(sl_writer_memory(w, r, 5, "parameters", 90, 110, err));
        ok(sl_writer_memory(w, r, 0, "process", 200, 200, err));
    }
    ok(sl_writer_metric(w, 1, 7, "lr", 0.5, err));
    ok(sl_writer_metric(w, 2, 7, "lr", 0.25, err));
    ok(sl_writer_event(w, 1, 7, "note", "<img src=x onerror=alert(1)> \xff & more", err));
    ok(sl_writer_commit(w, err));
    sl_writer_destroy(w);
    return id;
}

static void a_list_has_pages(void **state)
{
    struct fixture *f = *state;
    json_t *v;
    int n = 0;
    char before[32] = "";

    for (int i = 0; i < 7; i++)
        new_job(f, "x");
    for (int page = 0; page < 4; page++) {
        v = get(f, "/api/jobs", ARGS("limit", "3", "before", before), 200);
        n += (int)json_array_size(at(v, "jobs"));
        if (json_is_null(at(v, "next"))) {
            json_decref(v);
            break;
        }
        snprintf(before, sizeof before, "%d", (int)json_integer_value(at(v, "next")));
        json_decref(v);
    }
    assert_int_equal(n, 7);
    v = get(f, "/api/jobs", ARGS("live", "1"), 200);
    assert_int_equal(json_array_size(at(v, "jobs")), 7);
    json_decref(v);
}

static void a_job_has_its_ranks_memory_metrics_and_events(void **state)
{
    struct fixture *f = *state;
    json_t *v, *x;

    seeded(f, 2, 5);
    v = get(f, "/api/jobs/1", NULL, 200);
    assert_string_equal(json_string_value(at(v, "state")), "starting");
    assert_string_equal(json_string_value(at(v, "name")), "</script><script>alert(1)</script>");
    assert_int_equal(json_integer_value(at(v, "step")), 5);
    assert_int_equal(json_integer_value(at(v, "world_size")), 2);
    assert_true(json_is_null(at(v, "plan")));
    x = json_array_get(at(v, "ranks"), 1);
    assert_int_equal(json_integer_value(at(x, "pid")), 11);
    assert_float_equal(json_number_value(at(x, "units_per_second")), 500, 0);
    assert_true(json_is_null(at(x, "loss"))); /* not a number */
    assert_true(json_is_null(at(x, "exit_status")));
    x = at(at(json_array_get(at(v, "memory"), 0), "categories"), "parameters");
    assert_int_equal(json_integer_value(at(x, "bytes")), 90);
    assert_int_equal(json_array_size(at(v, "memory")), 2);
    x = at(at(v, "metrics"), "lr");
    assert_float_equal(json_number_value(at(x, "value")), 0.25, 0);
    x = json_array_get(at(v, "events"), json_array_size(at(v, "events")) - 1);
    assert_string_equal(json_string_value(at(x, "message")),
                        "<img src=x onerror=alert(1)> \xef\xbf\xbd & more");
    json_decref(v);
}

/* Even where a body ends up inside a page, no tag can begin in it. */
static void no_body_holds_an_angle_bracket(void **state)
{
    static const char *const paths[] = {"/api/jobs", "/api/jobs/1", "/api/jobs/1/logs"};
    struct fixture *f = *state;
    char dir[256], path[300];

    seeded(f, 2, 3);
    ok(sl_jobs_dir(f->st, 1, dir, sizeof dir, err));
    snprintf(path, sizeof path, "%s/attempt-1", dir);
    ok(sl_fs_mkdirs(path, 0700, err));
    snprintf(path, sizeof path, "%s/attempt-1/rank-0.log", dir);
    ok(sl_fs_write_atomic(path, "<script>\n", 9, 0600, err));
    for (int i = 0; i < 3; i++) {
        struct sl_api_request req = {paths[i], find_arg, NULL};
        struct sl_api_reply reply;

        sl_api_get(f->st, &req, &reply);
        assert_int_equal(reply.status, 200);
        assert_null(strchr(sl_buf_text(&reply.body), '<'));
        assert_non_null(strstr(sl_buf_text(&reply.body), "\\u003c"));
        sl_buf_fini(&reply.body);
    }
}

static void a_series_is_of_one_rank_or_of_all(void **state)
{
    struct fixture *f = *state;
    json_t *v, *s;

    seeded(f, 3, 40);
    v = get(f, "/api/jobs/1/series", ARGS("metric", "step_ms"), 200);
    assert_int_equal(json_array_size(at(v, "series")), 3);
    json_decref(v);
    v = get(f, "/api/jobs/1/series", ARGS("metric", "loss", "points", "5"), 200);
    assert_int_equal(json_array_size(at(v, "series")), 1);
    s = json_array_get(at(v, "series"), 0);
    assert_int_equal(json_integer_value(at(s, "width")), 8);
    assert_int_equal(json_array_size(at(s, "points")), 5);
    s = json_array_get(at(s, "points"), 1); /* steps 9 to 16, loss = step */
    assert_int_equal(json_integer_value(json_array_get(s, 0)), 9);
    assert_float_equal(json_number_value(json_array_get(s, 1)), 9, 0);
    assert_float_equal(json_number_value(json_array_get(s, 2)), 16, 0);
    assert_float_equal(json_number_value(json_array_get(s, 3)), 12.5, 0);
    json_decref(v);
    v = get(f, "/api/jobs/1/series", ARGS("metric", "comm_ms", "rank", "2"), 200);
    assert_int_equal(json_array_size(at(v, "series")), 1);
    json_decref(v);
    v = get(f, "/api/jobs/1/series", ARGS("metric", "step_ms", "over", "ranks"), 200);
    assert_int_equal(json_array_size(at(v, "series")), 1);
    s = json_array_get(at(v, "series"), 0);
    assert_true(json_is_null(at(s, "rank")));
    assert_int_equal(json_integer_value(at(s, "ranks")), 3);
    assert_int_equal(json_integer_value(at(s, "rows")), 3 * 40);
    assert_int_equal(json_array_size(at(s, "points")), 40);
    json_decref(v);
    v = get(f, "/api/jobs/1/series", ARGS("metric", "loss", "width", "8", "from", "33"), 200);
    s = json_array_get(at(v, "series"), 0);
    assert_int_equal(json_integer_value(at(s, "width")), 8);
    assert_int_equal(json_array_size(at(s, "points")), 1);
    json_decref(v);
    v = get(f, "/api/jobs/1/series", ARGS("metric", "lr"), 200);
    assert_true(json_is_null(at(json_array_get(at(v, "series"), 0), "rank")));
    json_decref(v);
}

/* 32,000 points of all ranks together: 20 ranks get 1,600 each. */
static void the_points_of_many_ranks_are_shared_out(void **state)
{
    struct fixture *f = *state;
    size_t total = 0, i;
    json_t *v, *s;

    seeded(f, 20, 1700);
    v = get(f, "/api/jobs/1/series", ARGS("metric", "step_ms"), 200);
    json_array_foreach(at(v, "series"), i, s) total += json_array_size(at(s, "points"));
    assert_in_range(total, 10000, 32000);
    json_decref(v);
}

static void a_log_is_read_from_its_end_and_onwards(void **state)
{
    struct fixture *f = *state;
    char dir[256], path[300], after[32];
    json_t *v;
    FILE *fp;

    seeded(f, 1, 1);
    v = get(f, "/api/jobs/1/logs", NULL, 200); /* no log yet */
    assert_string_equal(json_string_value(at(v, "text")), "");
    json_decref(v);
    ok(sl_jobs_dir(f->st, 1, dir, sizeof dir, err));
    snprintf(path, sizeof path, "%s/attempt-1", dir);
    ok(sl_fs_mkdirs(path, 0700, err));
    snprintf(path, sizeof path, "%s/attempt-1/rank-0.log", dir);
    fp = fopen(path, "w");
    for (int i = 0; i < 100; i++)
        fprintf(fp, "line %03d\n", i);
    fclose(fp);
    v = get(f, "/api/jobs/1/logs", ARGS("bytes", "20"), 200);
    assert_string_equal(json_string_value(at(v, "text")), "line 098\nline 099\n");
    assert_int_equal(json_integer_value(at(v, "end")), 900);
    json_decref(v);
    v = get(f, "/api/jobs/1/logs", ARGS("bytes", "20", "before", "882"), 200); /* going back */
    assert_string_equal(json_string_value(at(v, "text")), "line 096\nline 097\n");
    assert_int_equal(json_integer_value(at(v, "offset")), 864);
    assert_int_equal(json_integer_value(at(v, "end")), 882);
    json_decref(v);
    v = get(f, "/api/jobs/1/logs", ARGS("bytes", "2000", "before", "18"), 200);
    assert_string_equal(json_string_value(at(v, "text")), "line 000\nline 001\n");
    assert_int_equal(json_integer_value(at(v, "offset")), 0);
    json_decref(v);
    fp = fopen(path, "a");
    fprintf(fp, "more\n");
    fclose(fp);
    v = get(f, "/api/jobs/1/logs", ARGS("after", "900"), 200);
    assert_string_equal(json_string_value(at(v, "text")), "more\n");
    snprintf(after, sizeof after, "%d", (int)json_integer_value(at(v, "end")));
    json_decref(v);
    v = get(f, "/api/jobs/1/logs", ARGS("after", after), 200);
    assert_string_equal(json_string_value(at(v, "text")), "");
    json_decref(v);
    unlink(path);
    assert_int_equal(symlink("/etc/passwd", path), 0); /* never followed */
    json_decref(get(f, "/api/jobs/1/logs", NULL, 500));
}

static void wrong_requests_are_told_what_is_wrong(void **state)
{
    static const struct {
        const char *path, *key, *value;
        int status;
    } bad[] = {
        {"/api/jobs", "limit", "0", 400},
        {"/api/jobs", "limit", "501", 400},
        {"/api/jobs", "limit", "ten", 400},
        {"/api/jobs", "before", "-1", 400},
        {"/api/jobs", "live", "2", 400},
        {"/api/jobs/", NULL, NULL, 404},
        {"/api/jobs/99", NULL, NULL, 404},
        {"/api/jobs/-1", NULL, NULL, 404},
        {"/api/jobs/1x", NULL, NULL, 404},
        {"/api/jobs/99999999999999999999999", NULL, NULL, 404},
        {"/api/jobs/1/nothing", NULL, NULL, 404},
        {"/api/jobs/1/../2", NULL, NULL, 404},
        {"/api", NULL, NULL, 404},
        {"/etc/passwd", NULL, NULL, 404},
        {"/api/jobs/1/series", NULL, NULL, 400},
        {"/api/jobs/1/series", "metric", "", 400},
        {"/api/jobs/99/series", "metric", "loss", 404},
        {"/api/jobs/1/logs", "rank", "../../token", 400},
        {"/api/jobs/1/logs", "rank", "4096", 400},
        {"/api/jobs/1/logs", "bytes", "999999999", 400},
        {"/api/jobs/1/logs", "after", "0x10", 400},
        {"/api/jobs/1/logs", "before", "0", 400},
        {"/api/jobs/99/logs", NULL, NULL, 404},
    };
    struct fixture *f = *state;

    seeded(f, 1, 1);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        json_t *v = get(f, bad[i].path, ARGS(bad[i].key, bad[i].value), bad[i].status);

        assert_true(json_string_length(at(v, "error")) > 0);
        json_decref(v);
    }
    json_decref(get(f, "/api/jobs/1/series", ARGS("metric", "loss", "points", "2001"), 400));
    json_decref(get(f, "/api/jobs/1/series", ARGS("metric", "loss", "from", "9", "to", "3"), 400));
    json_decref(get(f, "/api/jobs/1/series", ARGS("metric", "lr", "rank", "0"), 400));
    json_decref(get(f, "/api/jobs/1/series", ARGS("metric", "lr", "over", "ranks"), 400));
    json_decref(get(f, "/api/jobs/1/series", ARGS("metric", "loss", "over", "steps"), 400));
    json_decref(get(f, "/api/jobs/1/series", ARGS("metric", "loss", "width", "0"), 400));
    json_decref(get(f, "/api/jobs/1/series", ARGS("metric", "loss", "width", "9999999999"), 400));
}

/* prometheus.io, exposition formats: HELP, TYPE, then all lines of a metric; labels escaped. */
static void the_metrics_are_prometheus_text(void **state)
{
    struct fixture *f = *state;
    struct sl_api_request req = {"/metrics", find_arg, NULL};
    struct sl_api_reply reply;
    const char *text, *speed;

    seeded(f, 2, 5);
    begun_job(f, "a \"quoted\\\" name\nof two lines");
    sl_api_get(f->st, &req, &reply);
    assert_int_equal(reply.status, 200);
    assert_int_equal(strncmp(reply.type, "text/plain; version=0.0.4", 25), 0);
    text = sl_buf_text(&reply.body);
    assert_non_null(strstr(text, "\nshardlaunch_jobs{state=\"starting\"} 2\n"));
    assert_non_null(strstr(text,
                           "\n# TYPE shardlaunch_job_step gauge\nshardlaunch_job_step{job=\"2\","
                           "name=\"a \\\"quoted\\\\\\\" name\\nof two lines\"} 0\n"));
    speed = strstr(text, "rank=\"1\",unit=\"tokens\"} ");
    assert_non_null(speed);
    assert_float_equal(atof(strchr(speed, ' ')), 500, 0);
    assert_non_null(strstr(text, "rank=\"0\",category=\"parameters\"} 90\n"));
    assert_non_null(strstr(text, "\nshardlaunch_build_info{version=\"" SL_VERSION "\"} 1\n"));
    assert_non_null(strstr(text, ",metric=\"lr\"} 0.25\n"));
    assert_non_null(strstr(text, "\nshardlaunch_job_steps{job=\"2\","));
    speed = strstr(text, "shardlaunch_rank_step_seconds{job=\"1\"");
    assert_non_null(speed);
    assert_float_equal(atof(strstr(speed, "} ") + 2), 0.1, 1e-12);
    assert_non_null(strstr(text, "shardlaunch_rank_last_sample_timestamp_seconds{job=\"1\""));
    sl_buf_fini(&reply.body);
}

/* Only a text that is a job file has a limit. */
static void the_limit_comes_from_the_job_file(void **state)
{
    struct sl_new_job job = {.name = "x"};
    struct fixture *f = *state;
    int64_t id;
    json_t *v;

    job.text = "[resources]\nmemory_limit = \"2MiB\"\n[model]\nkind = \"gpt\"\nlayers = 1\n"
               "heads = 1\nwidth = 8\ncontext = 8\n[data]\ntrain = \"/t\"\n[train]\nsteps = 1\n"
               "batch = 1\nlr = 1\n";
    ok(sl_jobs_create(f->st, &job, &id, err));
    job.text = "memory_limit = <script>";
    ok(sl_jobs_create(f->st, &job, &id, err));
    v = get(f, "/api/jobs/1", NULL, 200);
    assert_int_equal(json_integer_value(at(v, "memory_limit")), 2 << 20);
    json_decref(v);
    v = get(f, "/api/jobs/2", NULL, 200);
    assert_true(json_is_null(at(v, "memory_limit")));
    json_decref(v);
}

static void a_plan_that_is_no_json_is_left_out(void **state)
{
    struct fixture *f = *state;
    struct sl_new_job job = {.name = "x", .plan = "{\"ranks\": 2}"};
    int64_t id;
    json_t *v;

    ok(sl_jobs_create(f->st, &job, &id, err));
    job.plan = "}, \"evil\": {";
    ok(sl_jobs_create(f->st, &job, &id, err));
    v = get(f, "/api/jobs/1", NULL, 200);
    assert_int_equal(json_integer_value(at(at(v, "plan"), "ranks")), 2);
    json_decref(v);
    v = get(f, "/api/jobs/2", NULL, 200);
    assert_true(json_is_null(at(v, "plan")));
    assert_null(json_object_get(v, "evil"));
    json_decref(v);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(a_list_has_pages),
        T(a_job_has_its_ranks_memory_metrics_and_events),
        T(no_body_holds_an_angle_bracket),
        T(a_series_is_of_one_rank_or_of_all),
        T(the_points_of_many_ranks_are_shared_out),
        T(a_log_is_read_from_its_end_and_onwards),
        T(wrong_requests_are_told_what_is_wrong),
        T(the_metrics_are_prometheus_text),
        T(the_limit_comes_from_the_job_file),
        T(a_plan_that_is_no_json_is_left_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
