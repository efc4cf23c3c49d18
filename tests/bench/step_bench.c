/*
 * step_bench.c - where a whole training step goes: every operation of the graph, inside the run loop
 *
 * usage: step_bench [THREADS [STEPS [VOCAB [DEVICE]]]]
 *
 * One rank, the reference shape, in an arena as a rank has it (a memfd). Each operation of the graph
 * is timed in every step. Two sums are printed by kind: of the operations' fastest steps, which a
 * busy machine disturbs least, and of their medians. With one thread its processor time is measured.
 * Then come whole steps: the fastest, the lower quartile, the median, and the processor time of all
 * threads a step (with GOMP_SPINCOUNT as a rank has it: 2000). What the figures miss of a real run is what happens between steps: reports, data, the next sample.
 */
#include <dnnl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "executor/graph/ops.h"
#include "executor/program.h"
#include "executor/run.h"

static int threads = 1;

static void must(int ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "step_bench: %s\n", what);
    exit(1);
}

static double now(void)
{
    struct timespec t;

    clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static int order(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static struct sl_job reference(int64_t vocab)
{
    return (struct sl_job){
        .name = "reference",
        .model = {.kind = "gpt", .layers = 6, .heads = 6, .width = 384, .ffn_width = 1536,
                  .context = 256, .tie_embeddings = 1},
        .data = {.tokenizer = SL_TOK_UINT16, .vocab_size = vocab},
        .train = {.strategy = SL_DDP, .precision = SL_FP32, .steps = 100, .batch = 4, .lr = 3e-4,
                  .warmup = 1, .weight_decay = 0.1, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8,
                  .grad_clip = 1, .seed = 1},
    };
}

/* The best rate of one matrix product, in operations a ms, of the shapes of sgemm.c that win. */
static double best_sgemm(void)
{
    int64_t m = 2048, n = 2048, k = 2048;
    float *a = calloc((size_t)(m * k), sizeof *a), *b = calloc((size_t)(n * k), sizeof *b),
          *c = calloc((size_t)(m * n), sizeof *c);
    double best = 0;

    must(a && b && c, "no memory");
    for (int i = 0; i < 12; i++) {
        double t = now(), rate;

        dnnl_sgemm('N', 'T', m, n, k, 1, a, k, b, k, 0, c, n);
        rate = 2 * (double)m * (double)n * (double)k / (now() - t);
        best = rate > best ? rate : best;
    }
    free(a), free(b), free(c);
    return best;
}

static double *measure(struct sl_run *r, int steps, double *whole, double *cpu)
{
    const struct sl_graph *g = r->g;
    double *took = calloc((size_t)(g->nops * steps), sizeof *took);
    struct sl_err err = {0};
    struct timespec t0 = {0}, t1;

    must(took != NULL, "no memory");
    for (int s = -1; s < steps; s++) { /* the first step only warms up */
        double begin = now();

        r->step = s + 2;
        r->loss = 0;
        if (s == 0)
            clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t0);
        for (int i = 0; i < g->nops; i++) {
            double t = now();

            must(!sl_run_ops(r, i, i + 1, &err), err.msg);
            if (s >= 0)
                took[i * steps + s] = now() - t;
        }
        if (s >= 0)
            whole[s] = now() - begin;
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t1);
    *cpu = (1e3 * (double)(t1.tv_sec - t0.tv_sec) + 1e-6 * (double)(t1.tv_nsec - t0.tv_nsec)) / steps;
    return took;
}

static void print(const struct sl_graph *g, double *took, int steps, double flop, double best)
{
    double low[SL_OP_KINDS] = {0}, mid[SL_OP_KINDS] = {0}, all = 0, all_mid = 0;
    int calls[SL_OP_KINDS] = {0};

    for (int i = 0; i < g->nops; i++) {
        int kind = g->ops[i].kind;

        qsort(took + i * steps, (size_t)steps, sizeof *took, order);
        low[kind] += took[i * steps];
        mid[kind] += took[i * steps + steps / 2];
        calls[kind]++;
    }
    for (int k = 0; k < SL_OP_KINDS; k++) {
        all += low[k];
        all_mid += mid[k];
    }
    printf("%-18s %5s %10s %10s %6s\n", "operation", "calls", "least ms", "median ms", "share");
    for (int k = 0; k < SL_OP_KINDS; k++)
        if (calls[k])
            printf("%-18s %5d %10.3f %10.3f %5.1f%%\n", sl_kind_names[k], calls[k], low[k], mid[k],
                   100 * low[k] / all);
    printf("step %.1f ms (medians %.1f): %.1f GFLOP/s, %.3f of the best sgemm, %.1f GFLOP/s\n", all,
           all_mid, flop / all * 1e-6, flop / all / best, best * 1e-6);
}

int main(int argc, char **argv)
{
    int steps = argc > 2 ? atoi(argv[2]) : 10;
    struct sl_job job = reference(argc > 3 ? atoll(argv[3]) : 8192);
    struct sl_err err = {0};
    struct sl_program *p;
    struct sl_comm comm;
    struct sl_run r = {.spec = &job.train, .accum = 1, .scale = 1.0 / 1024, .lr = 1e-4};
    struct sl_ctl *ctl;
    struct rusage used;
    double best, *took, *whole, cpu;
    int fd;

    threads = argc > 1 ? atoi(argv[1]) : 1;
    must(threads > 0 && steps > 0, "usage: step_bench [THREADS [STEPS [VOCAB [DEVICE]]]]");
    r.dev = sl_dev_open(argc > 4 ? argv[4] : "cpu", threads, &err);
    must(r.dev != NULL, err.msg);
    best = best_sgemm();
    p = sl_program_make(&job, 1, SL_DDP, threads, 0, &err);
    must(p != NULL, err.msg);
    ctl = calloc(1, sl_ctl_size(1, p->train->nunits));
    must(ctl && !sl_ctl_init(ctl, 1, p->train->nunits, &err), "no control block");
    fd = memfd_create("arena", MFD_CLOEXEC);
    must(fd >= 0 && !ftruncate(fd, p->arena0), "no memfd");
    r.arena = mmap(NULL, (size_t)p->arena0, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    must(r.arena != MAP_FAILED, "cannot map the arena");
    sl_comm_init(&comm, ctl, &r.arena, r.dev, 0, 1, 60);
    r.comm = &comm;
    r.g = p->train;
    must(!sl_run_init(&r, 1, &err), err.msg);
    for (int i = 0; i < 1024; i++) {
        ((int32_t *)sl_run_at(&r, r.g->ids))[i] = (int32_t)((uint32_t)i * 2654435761u % job.data.vocab_size);
        ((int32_t *)sl_run_at(&r, r.g->targets))[i] = (int32_t)((uint32_t)i * 40503u % job.data.vocab_size);
    }
    whole = calloc((size_t)steps, sizeof *whole);
    must(whole != NULL, "no memory");
    took = measure(&r, steps, whole, &cpu);
    qsort(whole, (size_t)steps, sizeof *whole, order);
    getrusage(RUSAGE_SELF, &used);
    printf("%s, %d threads, vocabulary %lld, %lld parameters, %d steps; arena %.1f MiB, largest process %.1f MiB\n\n",
           r.dev->name, threads, (long long)job.data.vocab_size, (long long)p->parameters, steps,
           (double)p->arena0 / 1048576, (double)used.ru_maxrss / 1024);
    print(p->train, took, steps, 6.0 * (double)(p->parameters - 256 * 384) * 1024 + 12.0 * 6 * 384 * 256 * 1024,
          best);
    printf("whole steps: fastest %.1f ms, lower quartile %.1f, median %.1f; processor time %.1f ms a step\n",
           whole[0], whole[steps / 4], whole[steps / 2], cpu);
    free(whole);
    free(took);
    free(ctl);
    close(fd);
    munmap(r.arena, (size_t)p->arena0);
    sl_program_destroy(p);
    sl_dev_close(r.dev);
    return 0;
}
