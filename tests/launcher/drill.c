/*
 * drill.c - the launcher with a rank that fails on demand
 *
 * usage: drill [options] FOLDER     launch a made-up job; its ranks are this program again
 *        drill state DB ID          print the job's state, exit status and reason
 *        drill rank FD              one rank: a real PMIx client that meets the others in each step
 *
 * DRILL_FAULT="RANK:WHEN:WHAT" in the environment: WHEN is init (before PMIx), or a step; in the first
 * DRILL_ATTEMPTS attempts (all). Only this test program reads them.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <pmix.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "executor/comm.h"
#include "executor/rank.h"
#include "executor/reporter.h"
#include "executor/wireup.h"
#include "launcher/launch.h"
#include "store/reader.h"

struct drill {
    struct sl_rank_start start;
    struct sl_ctl *ctl;
    int steps, step_ms, attempts, save;
    char space[256]; /* the attempt's PMIx name */
    int skip; /* the next collective is not for me */
    char fault[64];
};

/* ---- one rank ---- */

static void grandchild(void)
{
    if (fork() == 0) {
        setsid();
        if (fork() == 0) {
            execlp("sleep", "sleep", "600", NULL);
            _exit(127);
        }
        _exit(0);
    }
}

static void torn(int rank)
{
    char big[20000];

    for (int i = 0; i < 200; i++) {
        char part[64];
        int n = snprintf(part, sizeof part, "half-%d-%d", rank, i);

        if (write(1, part, (size_t)n) != n || write(1, "-end\n", 5) != 5)
            _exit(99);
        n = snprintf(part, sizeof part, "err-%d-%d\n", rank, i);
        if (write(2, part, (size_t)n) != n)
            _exit(99);
    }
    memset(big, 'x', sizeof big);
    memset(big + 10, 0, 5);
    if (write(1, big, sizeof big) != (ssize_t)sizeof big) /* no newline at all */
        _exit(99);
}

static void flood(void) /* more than a pipe and the terminal's buffer hold */
{
    char line[101];

    memset(line, 'f', 99);
    line[99] = '\n';
    for (int i = 0; i < 30000; i++)
        if (write(1, line, 100) != 100)
            _exit(99);
}

static void spin(void)
{
    for (volatile unsigned n = 0;; n++)
        ;
}

static void fault(struct drill *d, const char *when)
{
    char want[40];
    const char *what;

    snprintf(want, sizeof want, "%d:%s:", d->start.rank, when);
    if (strncmp(d->fault, want, strlen(want)) || d->start.attempt > d->attempts)
        return;
    what = d->fault + strlen(want);
    if (!strcmp(what, "kill"))
        raise(SIGKILL);
    if (!strcmp(what, "segv")) {
        fprintf(stderr, "about to fall\n");
        raise(SIGSEGV);
    }
    if (!strcmp(what, "freeze"))
        raise(SIGSTOP);
    if (!strcmp(what, "differ")) /* each attempt in its own way */
        _exit(10 + d->start.attempt);
    if (!strcmp(what, "spin"))
        spin();
    if (!strcmp(what, "sleep"))
        for (;;)
            pause();
    d->skip = !strcmp(what, "skip");
    if (!strcmp(what, "grandchild"))
        grandchild();
    if (!strcmp(what, "flood"))
        flood();
    if (!strcmp(what, "torn"))
        torn(d->start.rank);
    if (!strncmp(what, "exit", 4))
        _exit(atoi(what + 4));
}

static int read_start(struct drill *d, int fd)
{
    char text[300];
    struct stat st;

    if (pread(fd, &d->start, sizeof d->start, 0) != sizeof d->start
        || d->start.magic != SL_RANK_MAGIC || d->start.text_bytes >= sizeof text
        || pread(fd, text, d->start.text_bytes, sizeof d->start) != d->start.text_bytes)
        return -1;
    text[d->start.text_bytes] = '\0';
    if (sscanf(text, "%d %d %d %d %63s", &d->steps, &d->step_ms, &d->attempts, &d->save, d->fault)
        < 4)
        return -1;
    for (int r = 0; r < d->start.nlocal; r++)
        if (fstat(d->start.arena_fd[r], &st) || st.st_size != d->start.arena_bytes)
            return -1;
    d->ctl = mmap(NULL, sl_ctl_size(d->start.ranks, 1), PROT_READ | PROT_WRITE, MAP_SHARED,
                  d->start.ctl_fd, 0);
    return d->ctl == MAP_FAILED ? -1 : 0;
}

/* Between nodes, in place of the executor's collectives: a fence that carries a number of each rank. */
static int meet_all(struct drill *d, struct sl_comm *c, int kind, int mine, int *any,
                    struct sl_err *err)
{
    struct sl_ctl_rank *me = &d->ctl->r[d->start.rank];
    char key[32];
    bool yes = true;
    pmix_info_t in;
    pmix_value_t v, *got;
    pmix_proc_t p;
    pmix_status_t st;

    atomic_store(&me->kind, kind);
    sl_ctl_mark(d->ctl, d->start.rank, ++c->collective, c->step, SL_PHASE_WAIT);
    snprintf(key, sizeof key, "drill.%u", c->collective);
    PMIX_VALUE_CONSTRUCT(&v);
    v.type = PMIX_INT;
    v.data.integer = mine;
    PMIX_INFO_LOAD(&in, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
    st = PMIx_Put(PMIX_GLOBAL, key, &v);
    if (st == PMIX_SUCCESS)
        st = PMIx_Commit();
    if (st == PMIX_SUCCESS)
        st = PMIx_Fence(NULL, 0, &in, 1);
    if (st != PMIX_SUCCESS)
        return sl_fail(err, SL_PEER, "fence: %s", PMIx_Error_string(st));
    *any = 0;
    PMIX_LOAD_PROCID(&p, d->space, 0);
    for (int r = 0; r < d->start.ranks; r++) {
        p.rank = (pmix_rank_t)r;
        st = PMIx_Get(&p, key, NULL, 0, &got);
        if (st != PMIX_SUCCESS)
            return sl_fail(err, SL_BUG, "get of rank %d: %s", r, PMIx_Error_string(st));
        *any |= got->data.integer;
        PMIX_VALUE_RELEASE(got);
    }
    sl_ctl_mark(d->ctl, d->start.rank, c->collective, c->step, SL_PHASE_COMPUTE);
    return 0;
}

static int meet(struct drill *d, struct sl_comm *c, int kind, int mine, int *any, struct sl_err *err)
{
    struct sl_ctl *ctl = d->ctl;

    if (d->start.nodes > 1)
        return meet_all(d, c, kind, mine, any, err);
    ctl->r[d->start.rank].stop = (uint32_t)mine;
    if (sl_comm_barrier(c, kind, -1, err))
        return -1;
    *any = 0;
    for (int r = 0; r < d->start.ranks; r++)
        *any |= (int)ctl->r[r].stop;
    return 0;
}

/* Every rank writes into its arena and adds up everybody's of its node. */
static int check_arenas(struct drill *d, struct sl_comm *c, struct sl_err *err)
{
    int first = d->start.rank - d->start.local;
    int64_t sum = 0, want = 0;

    for (int r = 0; r < d->start.nlocal; r++) {
        int64_t *a
            = mmap(NULL, sizeof *a, PROT_READ | PROT_WRITE, MAP_SHARED, d->start.arena_fd[r], 0);

        if (a == MAP_FAILED)
            return sl_fail(err, SL_SYSTEM, "cannot map arena %d", r);
        if (r == d->start.local) {
            int any;

            *a = 1000 + first + r;
            if (meet(d, c, SL_WAIT_START, 0, &any, err))
                return -1;
        }
        munmap(a, sizeof *a);
    }
    for (int r = 0; r < d->start.nlocal; r++) {
        int64_t *a = mmap(NULL, sizeof *a, PROT_READ, MAP_SHARED, d->start.arena_fd[r], 0);

        if (a == MAP_FAILED)
            return sl_fail(err, SL_SYSTEM, "cannot map arena %d", r);
        sum += *a;
        want += 1000 + first + r;
        munmap(a, sizeof *a);
    }
    return sum == want ? 0 : sl_fail(err, SL_BUG, "the sum over the arenas is wrong");
}

static void report(struct sl_reporter *to, int64_t step, int ms)
{
    struct sl_report r = {.type = SL_REPORT_STEP, .step = step};

    r.u.step_.units = 100;
    snprintf(r.u.step_.unit, sizeof r.u.step_.unit, "tokens");
    r.u.step_.step_ms = ms ? ms : 0.5;
    r.u.step_.loss = 1.0 / (double)step;
    sl_reporter_send(to, &r);
}

/* 0 done, 1 stopped at an agreed step, -1 with err. */
static int steps(struct drill *d, struct sl_comm *c, struct sl_reporter *to, struct sl_err *err)
{
    struct sl_ctl *ctl = d->ctl;
    int me = d->start.rank, any;
    char when[16];

    for (int s = 1; s <= d->steps; s++) {
        c->step = s;
        sl_ctl_mark(ctl, me, c->collective, s, SL_PHASE_COMPUTE);
        snprintf(when, sizeof when, "%d", s);
        fault(d, when);
        sl_clock_sleep_until(sl_clock_ns() + d->step_ms * 1000000ll);
        any = 0;
        if (!d->skip
            && meet(d, c, SL_OP_NORM_MERGE, atomic_load(&ctl->stop) != 0, &any, err))
            return -1;
        d->skip = 0;
        report(to, s, d->step_ms);
        atomic_store(&ctl->r[me].stepped, 1);
        if (any) {
            if (d->save && me == 0)
                sl_report_event(sl_reporter_send, to, s, "checkpoint", "made up");
            return 1;
        }
        if (meet(d, c, SL_OP_STEP_END, 0, &any, err))
            return -1;
    }
    return 0;
}

static int rank_main(int fd)
{
    struct drill d = {.steps = 0};
    struct sl_err err = {0};
    struct sl_report hello = {.type = SL_REPORT_HELLO};
    struct sl_reporter to;
    struct sl_wireup w;
    struct sl_comm c;
    int rc, me;

    if (read_start(&d, fd)) {
        fprintf(stderr, "drill: the start record is wrong\n");
        return 98;
    }
    me = d.start.rank;
    if (read(0, &rc, 1) != 0) /* stdin is /dev/null */
        return 97;
    fault(&d, "init");
    sl_reporter_init(&to, d.start.report_fd, me);
    if (sl_wireup_open(&w, &err) || w.rank != me || w.ranks != d.start.ranks) {
        fprintf(stderr, "drill: wire-up: %s\n", err.msg);
        return 96;
    }
    snprintf(d.space, sizeof d.space, "%s", w.space);
    sl_ctl_mark(d.ctl, me, 1, 0, SL_PHASE_WAIT);
    atomic_store(&d.ctl->r[me].kind, SL_WAIT_WIREUP);
    rc = sl_wireup_exchange(&w, NULL, d.start.hang_timeout, &err);
    sl_ctl_mark(d.ctl, me, 1, 0, SL_PHASE_LOAD);
    if (!rc) {
        hello.u.hello.pid = (int)getpid();
        snprintf(hello.u.hello.host, sizeof hello.u.hello.host, "%s", w.card[me].host);
        sl_reporter_send(&to, &hello);
        printf("rank %d of %d is up\n", me, d.start.ranks);
        fflush(stdout);
        sl_comm_init(&c, d.ctl, NULL, NULL, me, d.start.ranks, d.start.hang_timeout);
        c.collective = 1;
        rc = check_arenas(&d, &c, &err);
        if (!rc)
            rc = steps(&d, &c, &to, &err);
    }
    if (rc < 0) {
        fprintf(stderr, "drill: %s\n", err.msg);
        if (err.code == SL_BUSY)
            sl_report_event(sl_reporter_send, &to, c.step, "hang", "%s", err.msg);
        sl_ctl_mark(d.ctl, me, c.collective, c.step, SL_PHASE_FAILED);
        return err.code == SL_PEER ? SL_RANK_PEER : err.code == SL_BUSY ? SL_RANK_HANG : 1;
    }
    sl_ctl_mark(d.ctl, me, c.collective, c.step, rc ? SL_PHASE_STOPPED : SL_PHASE_DONE);
    if (sl_wireup_close(&w, &err))
        return 95;
    return rc ? SL_RANK_STOPPED : 0;
}

/* ---- the launch ---- */

static int refuse(struct sl_crew *crew, const struct sl_err *err)
{
    fprintf(stderr, "drill: %s\ndrill: %s\n", err->msg, err->hint);
    if (crew)
        sl_crew_dismiss(crew, 2);
    sl_crew_destroy(crew);
    return 2;
}

static int launch(int argc, char **argv)
{
    struct sl_job job = {.name = "drill"};
    struct sl_launch l = {.job = &job,
                          .ranks = 4,
                          .threads = 1,
                          .units = 1,
                          .steps = 3,
                          .arena_bytes = 1 << 16,
                          .out = 2,
                          .progress = 10};
    const char *what = getenv("DRILL_FAULT");
    struct sl_store *st = NULL;
    struct sl_err err = {0};
    const char *attempts = getenv("DRILL_ATTEMPTS");
    int step_ms = 0, save = 0, o, rc;
    char text[200];
    int each;

    job.failure.grace = 10;
    job.failure.hang_timeout = 30;
    while ((o = getopt(argc, argv, "n:s:m:h:g:t:p:w:d:r:clq")) != -1) {
        switch (o) {
        case 'n':
            l.ranks = atoi(optarg);
            break;
        case 's':
            l.steps = atoi(optarg);
            break;
        case 'm':
            step_ms = atoi(optarg);
            break;
        case 'h':
            job.failure.hang_timeout = atof(optarg);
            break;
        case 'g':
            job.failure.grace = atof(optarg);
            break;
        case 't':
            job.resources.time_limit = atof(optarg);
            break;
        case 'p':
            l.progress = atof(optarg);
            break;
        case 'w':
            l.silence = atof(optarg);
            break;
        case 'd':
            l.db = optarg;
            break;
        case 'r':
            job.failure.max_restarts = atoi(optarg);
            break;
        case 'c':
            save = 1;
            break;
        case 'l':
            l.show_logs = 1;
            break;
        case 'q':
            l.quiet = 1;
            break;
        default:
            return 2;
        }
    }
    if (optind + 1 != argc)
        return 2;
    l.folder = argv[optind];
    if (sl_crew_meet("drill", getenv("DRILL_NODE"), &l.crew, &err) < 0)
        return refuse(NULL, &err);
    if (l.crew && l.crew->me > 0) {
        rc = sl_launch_run(&l, &err);
        sl_crew_destroy(l.crew);
        return rc < 0 ? 94 : rc;
    }
    if (l.crew) {
        if (sl_crew_shape(l.crew, "drill", 1, l.ranks, &each, &err))
            return refuse(l.crew, &err);
        sl_crew_number(l.crew, each);
        l.ranks = l.crew->ranks;
    }
    snprintf(text, sizeof text, "%d %d %d %d %s", (int)l.steps, step_ms,
             attempts ? atoi(attempts) : 1000, save, what ? what : "");
    l.job_text = text;
    if (l.db) {
        struct sl_new_job j
            = {.name = "drill", .text = text, .ranks = l.ranks, .steps = l.steps, .strategy = ""};

        st = sl_store_open(l.db, SL_STORE_WRITE, &err);
        if (!st || sl_jobs_create(st, &j, &l.id, &err)) {
            fprintf(stderr, "drill: %s\n", err.msg);
            return 94;
        }
        sl_store_close(st);
    }
    rc = sl_launch_run(&l, &err);
    if (rc < 0)
        fprintf(stderr, "drill: %s\n", err.msg);
    sl_crew_destroy(l.crew);
    return rc < 0 ? 94 : rc;
}

static int print_state(void *u, const struct sl_job_row *row)
{
    (void)u;
    printf("%s %d %s\n", sl_state_name(row->state), (int)row->exit_status, row->reason);
    return 0;
}

static int state(const char *db, int64_t id)
{
    struct sl_err err = {0};
    struct sl_store *st = sl_store_open(db, SL_STORE_READ, &err);
    int rc = st ? sl_read_job(st, id, print_state, NULL, &err) : -1;

    if (rc < 0)
        fprintf(stderr, "drill: %s\n", err.msg);
    sl_store_close(st);
    return rc == 1 ? 0 : 93;
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "rank"))
        return rank_main(atoi(argv[2]));
    if (argc == 4 && !strcmp(argv[1], "state"))
        return state(argv[2], atoll(argv[3]));
    return launch(argc, argv);
}
