/*
 * seed.c - a database with a failed job and a running one, for tests of the page and the API; every
 * text of the failed one looks like HTML
 *
 *   seed DB RANKS STEPS    makes it, prints "ready", then obeys lines on stdin: "event TEXT" writes
 * an event, "step" one more step of every rank; each is answered with "ok". At the end of stdin it
 * leaves without a word: the running job is lost.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/fs.h"
#include "store/jobs.h"
#include "store/writer.h"

enum { MIB = 1 << 20 };

static const char plan[]
    = "{\"ranks\":%d,\"strategies\":[{\"strategy\":\"zero2\",\"total_bytes\":943718400,"
      "\"categories\":{\"parameters\":{\"bytes\":314572800,\"peak_bytes\":314572800}},"
      "\"fits\":true}]}";

static void must(int rc, const struct sl_err *err)
{
    if (rc) {
        fprintf(stderr, "seed: %s\n", err->msg);
        exit(1);
    }
}

/* The k-th of a fixed sequence in [0, 1). */
static double noise(int64_t k)
{
    double x = sin((double)k * 12.9898) * 43758.5453;

    return x - floor(x);
}

static void write_step(struct sl_writer *w, int ranks, int64_t step, int64_t steps, double start,
                       const char *unit)
{
    struct sl_err err = {0};
    double loss = 1.6 + 4.2 * exp(-4.0 * (double)step / (double)steps) + 0.12 * noise(step);

    for (int r = 0; r < ranks; r++) {
        double ms = 180 + 25 * noise(step * 64 + r) + (step % 500 == 250 ? 400 : 0);
        struct sl_sample s = {.rank = r,
                              .step = step,
                              .time = start + 0.2 * (double)step,
                              .units = 2048,
                              .unit = unit,
                              .step_ms = ms,
                              .comm_ms = ms / 9,
                              .data_ms = 0.4,
                              .loss = loss};

        must(sl_writer_sample(w, &s, &err), &err);
    }
    must(sl_writer_metric(w, step, start + 0.2 * (double)step, "lr", 3e-4, &err), &err);
    must(
        sl_writer_metric(w, step, start + 0.2 * (double)step, "grad_norm", 0.8 + noise(step), &err),
        &err);
    if (step % (steps / 8 + 1) == 0)
        must(sl_writer_metric(w, step, start, "valid.loss", loss + 0.1, &err), &err);
}

static void write_memory(struct sl_writer *w, int ranks)
{
    static const struct {
        const char *category;
        int64_t mib;
    } parts[] = {{"parameters", 300},   {"gradients", 90}, {"optimizer", 150}, {"activations", 240},
                 {"communication", 80}, {"workspace", 40}, {"total", 900},     {"process", 941}};
    struct sl_err err = {0};

    for (int r = 0; r < ranks; r++)
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
            int64_t n = parts[i].mib * MIB - (parts[i].mib == 240 ? r * 7 * MIB : 0);

            must(sl_writer_memory(w, r, 1, parts[i].category, n, n, &err), &err);
        }
}

static void write_log(struct sl_store *st, int64_t id, int rank)
{
    struct sl_err err = {0};
    char dir[4096], path[4200], text[4096] = "";

    must(sl_jobs_dir(st, id, dir, sizeof dir, &err), &err);
    snprintf(path, sizeof path, "%s/attempt-1", dir);
    must(sl_fs_mkdirs(path, 0700, &err), &err);
    snprintf(path, sizeof path, "%s/attempt-1/rank-%d.log", dir, rank);
    for (int i = 1; i <= 40; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "rank %d: line %d\n", rank, i);
    strcat(text, "<script>alert('log')</script> & \xff broken\n");
    must(sl_fs_write_atomic(path, text, strlen(text), 0600, &err), &err);
}

/* A job with one attempt and everything that a run writes; the writer is handed over. */
static struct sl_writer *make(struct sl_store *st, const char *name, int ranks, int64_t steps,
                              int64_t planned, int nasty, int64_t *id)
{
    char json[512];
    struct sl_new_job job = {.name = name,
                             .text = "name = \"x\"\n",
                             .ranks = ranks,
                             .steps = planned,
                             .strategy = "zero2",
                             .plan = json};
    struct sl_err err = {0};
    struct sl_lease me;
    struct sl_writer *w;
    double start = sl_clock_real() - 0.2 * (double)steps;
    int attempt;

    snprintf(json, sizeof json, plan, ranks);
    must(sl_lease_self(&me, &err), &err);
    must(sl_jobs_create(st, &job, id, &err), &err);
    must(sl_jobs_begin(st, *id, &me, NULL, &attempt, &err), &err);
    must(sl_jobs_move(st, *id, &me, SL_RUNNING, "", &err), &err);
    w = sl_writer_create(st, *id, attempt, &err);
    must(!w, &err);
    must(sl_writer_begin(w, &err), &err);
    for (int r = 0; r < ranks; r++) {
        must(sl_writer_rank(w, r, nasty ? "<img src=x onerror=alert('host')>" : "node01", 4000 + r,
                            nasty ? "<b>cpu</b>" : "cpu", &err),
             &err);
        write_log(st, *id, r);
    }
    for (int64_t s = 1; s <= steps; s++)
        write_step(w, ranks, s, planned, start, nasty ? "<i>u</i>" : "tokens");
    write_memory(w, ranks);
    must(sl_writer_event(w, -1, start, "start", "all ranks are up", &err), &err);
    must(sl_writer_event(w, 1, start + 9, "note", "<script>alert('event')</script>", &err), &err);
    if (nasty) {
        must(sl_writer_metric(w, 1, start, "<script>alert('metric')</script>", 1, &err), &err);
        must(sl_writer_event(w, 0, start + 10, "<b>kind</b>", "x", &err), &err);
        must(sl_writer_event(w, 1, start + 11, "culprit", "<u>died</u>", &err), &err);
        for (int r = 0; r < ranks; r++)
            must(sl_writer_rank_end(w, r, r == 1 ? 139 : 137, &err), &err);
    }
    must(sl_writer_commit(w, &err), &err);
    return w;
}

int main(int argc, char **argv)
{
    struct sl_err err = {0};
    struct sl_store *st;
    struct sl_writer *w;
    struct sl_lease me;
    int64_t id, step, planned;
    char line[512];
    int ranks;

    if (argc != 4)
        return 2;
    ranks = atoi(argv[2]);
    step = atoll(argv[3]);
    planned = 2 * step;
    st = sl_store_open(argv[1], SL_STORE_WRITE, &err);
    must(!st || sl_lease_self(&me, &err), &err);
    w = make(st, "<script>alert('name')</script>", ranks, 60, 60, 1, &id);
    must(sl_jobs_end(st, id, &me, SL_FAILED, 1, "rank 1 died <b>of</b> signal 11", &err), &err);
    sl_writer_destroy(w);
    w = make(st, "wikitext-lm", ranks, step, planned, 0, &id);
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        must(sl_writer_begin(w, &err), &err);
        if (!strncmp(line, "event ", 6))
            must(sl_writer_event(w, 0, sl_clock_real(), "note", line + 6, &err), &err);
        else if (step++)
            write_step(w, ranks, step, planned, sl_clock_real(), "tokens");
        must(sl_writer_commit(w, &err), &err);
        puts("ok");
        fflush(stdout);
    }
    sl_writer_destroy(w);
    sl_store_close(st);
    return 0;
}
