/* pmix_server.c - host libpmix's server: a namespace an attempt, the ranks of this node */
#include "launcher/pmix_server.h"

#include <errno.h>
#include <pmix.h>
#include <pmix_server.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "common/mem.h"
#include "executor/job.h"

extern char **environ;
enum { ANSWER_S = 10 }; /* libpmix answers within milliseconds, or never */

/* A fence for which this node's ranks have all come. */
struct fence {
    struct fence *next;
    char nspace[PMIX_MAX_NSLEN + 1];
    pmix_status_t st;
    char *data;
    size_t n;
    pmix_modex_cbfunc_t cb;
    void *cbdata;
};

struct sl_pmix_server {
    char host[256];
    char nspace[PMIX_MAX_NSLEN + 1]; /* of the newest job */
    int ranks, nodes, node;
    int per_node, first;      /* ranks of this node */
    const char *const *names; /* of the nodes; only while a job is registered */
    int event;                /* a fence has been queued */
    pthread_mutex_t m;        /* of the queue */
    struct fence *head, *open;
};

/* libpmix's callbacks carry no pointer of ours, and it has one server a process. */
static struct sl_pmix_server *the_server;

/* ---- waiting for libpmix's non-blocking calls ---- */

/* On the heap: an answer that comes after we gave up waiting must find it. */
struct waiter {
    pthread_mutex_t m;
    pthread_cond_t c;
    int done, left; /* left: nobody waits any more, the answer frees it */
    pmix_status_t st;
};

static struct waiter *waiter_create(void)
{
    struct waiter *w = sl_calloc(1, sizeof *w);
    pthread_condattr_t attr;

    if (!w)
        return NULL;
    pthread_mutex_init(&w->m, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&w->c, &attr);
    pthread_condattr_destroy(&attr);
    return w;
}

static void waiter_destroy(struct waiter *w)
{
    pthread_mutex_destroy(&w->m);
    pthread_cond_destroy(&w->c);
    free(w);
}

static void wake(pmix_status_t st, void *p)
{
    struct waiter *w = p;
    int left;

    pthread_mutex_lock(&w->m);
    w->st = st;
    w->done = 1;
    left = w->left;
    pthread_cond_signal(&w->c);
    pthread_mutex_unlock(&w->m);
    if (left)
        waiter_destroy(w);
}

/*
 * PMIX_SUCCESS of a call means that its callback comes; anything else, that it does not. Uses the
 * waiter up. PMIX_ERR_TIMEOUT: no answer; what was handed to the call is still in use.
 */
static pmix_status_t finish(pmix_status_t call, struct waiter *w)
{
    struct timespec end;
    int rc = 0;

    if (call == PMIX_SUCCESS) {
        clock_gettime(CLOCK_MONOTONIC, &end);
        end.tv_sec += ANSWER_S;
        pthread_mutex_lock(&w->m);
        while (!w->done && rc != ETIMEDOUT)
            rc = pthread_cond_timedwait(&w->c, &w->m, &end);
        call = w->done ? w->st : PMIX_ERR_TIMEOUT;
        w->left = !w->done;
        rc = w->left;
        pthread_mutex_unlock(&w->m);
        if (rc)
            return call;
    } else if (call == PMIX_OPERATION_SUCCEEDED) {
        call = PMIX_SUCCESS;
    }
    waiter_destroy(w);
    return call;
}

/* ---- what libpmix asks its host; on libpmix's thread ---- */

static pmix_status_t on_connected(const pmix_proc_t *p, void *o, pmix_info_t info[], size_t n,
                                  pmix_op_cbfunc_t cb, void *cbdata)
{
    (void)p, (void)o, (void)info, (void)n, (void)cb, (void)cbdata;
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t on_finalized(const pmix_proc_t *p, void *o, pmix_op_cbfunc_t cb, void *cbdata)
{
    (void)p, (void)o, (void)cb, (void)cbdata;
    return PMIX_OPERATION_SUCCEEDED;
}

/* A rank that aborts exits; the agent sees that. */
static pmix_status_t on_abort(const pmix_proc_t *p, void *o, int status, const char msg[],
                              pmix_proc_t procs[], size_t n, pmix_op_cbfunc_t cb, void *cbdata)
{
    (void)p, (void)o, (void)status, (void)msg, (void)procs, (void)n, (void)cb, (void)cbdata;
    return PMIX_OPERATION_SUCCEEDED;
}

static void give(pmix_modex_cbfunc_t cb, void *cbdata, pmix_status_t st, const void *data, size_t n)
{
    char *copy = n ? sl_calloc(1, n) : NULL;

    if (n && !copy) {
        st = PMIX_ERR_NOMEM;
        n = 0;
    } else if (n) {
        memcpy(copy, data, n);
    }
    cb(st, copy, n, cbdata, free, copy); /* thread-shifts; frees the copy when it is used up */
}

static pmix_status_t queue(struct sl_pmix_server *s, struct fence *f)
{
    pthread_mutex_lock(&s->m);
    f->next = s->head;
    s->head = f;
    pthread_mutex_unlock(&s->m);
    return eventfd_write(s->event, 1) ? PMIX_ERR_RESOURCE_BUSY : PMIX_SUCCESS;
}

/*
 * All ranks of the node have come. Alone, their own data is the answer. The status of local ranks (one
 * may have died) is passed on.
 */
static pmix_status_t on_fence(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                              size_t ninfo, char *data, size_t n, pmix_modex_cbfunc_t cb,
                              void *cbdata)
{
    pmix_status_t st = PMIX_SUCCESS;
    struct fence *f;

    if (nprocs != 1 || procs[0].rank != PMIX_RANK_WILDCARD)
        return PMIX_ERR_NOT_SUPPORTED;
    for (size_t i = 0; i < ninfo; i++)
        if (PMIX_CHECK_KEY(&info[i], PMIX_LOCAL_COLLECTIVE_STATUS))
            st = info[i].value.data.status;
    if (the_server->nodes == 1) {
        give(cb, cbdata, st, data, n);
        return PMIX_SUCCESS;
    }
    f = sl_calloc(1, sizeof *f);
    if (!f || (n && !(f->data = sl_calloc(1, n)))) {
        free(f);
        return PMIX_ERR_NOMEM;
    }
    if (n)
        memcpy(f->data, data, n);
    snprintf(f->nspace, sizeof f->nspace, "%s", procs[0].nspace);
    f->st = st;
    f->n = n;
    f->cb = cb;
    f->cbdata = cbdata;
    return queue(the_server, f);
}

static pmix_server_module_t module = {
    .client_connected2 = on_connected,
    .client_finalized = on_finalized,
    .abort = on_abort,
    .fence_nb = on_fence,
};

/* ---- the job as PMIx describes it ---- */

static pmix_info_t *array_of(pmix_info_t *slot, const char *key, size_t n)
{
    PMIX_LOAD_KEY(slot->key, key);
    slot->value.type = PMIX_DATA_ARRAY;
    PMIX_DATA_ARRAY_CREATE(slot->value.data.darray, n, PMIX_INFO);
    return slot->value.data.darray->array;
}

static void load_rank(const struct sl_pmix_server *s, pmix_info_t *slot, int rank)
{
    pmix_info_t *a = array_of(slot, PMIX_PROC_DATA, 8);
    pmix_rank_t r = (pmix_rank_t)rank;
    uint32_t zero = 0, node = (uint32_t)(rank / s->per_node);
    uint16_t local = (uint16_t)(rank % s->per_node);

    PMIX_INFO_LOAD(&a[0], PMIX_RANK, &r, PMIX_PROC_RANK);
    PMIX_INFO_LOAD(&a[1], PMIX_GLOBAL_RANK, &r, PMIX_PROC_RANK);
    PMIX_INFO_LOAD(&a[2], PMIX_APP_RANK, &r, PMIX_PROC_RANK);
    PMIX_INFO_LOAD(&a[3], PMIX_APPNUM, &zero, PMIX_UINT32);
    PMIX_INFO_LOAD(&a[4], PMIX_LOCAL_RANK, &local, PMIX_UINT16);
    PMIX_INFO_LOAD(&a[5], PMIX_NODE_RANK, &local, PMIX_UINT16);
    PMIX_INFO_LOAD(&a[6], PMIX_NODEID, &node, PMIX_UINT32);
    PMIX_INFO_LOAD(&a[7], PMIX_HOSTNAME, s->names[node], PMIX_STRING);
}

static void load_node(const struct sl_pmix_server *s, pmix_info_t *slot, int node)
{
    pmix_info_t *a = array_of(slot, PMIX_NODE_INFO_ARRAY, 4);
    uint32_t id = (uint32_t)node, n = (uint32_t)s->per_node;
    char peers[16 * SL_MAX_RANKS];
    size_t len = 0;

    for (int i = 0; i < s->per_node; i++)
        len += (size_t)snprintf(peers + len, sizeof peers - len, "%s%d", i ? "," : "",
                                node * s->per_node + i);
    PMIX_INFO_LOAD(&a[0], PMIX_HOSTNAME, s->names[node], PMIX_STRING);
    PMIX_INFO_LOAD(&a[1], PMIX_NODEID, &id, PMIX_UINT32);
    PMIX_INFO_LOAD(&a[2], PMIX_LOCAL_SIZE, &n, PMIX_UINT32);
    PMIX_INFO_LOAD(&a[3], PMIX_LOCAL_PEERS, peers, PMIX_STRING);
}

/* "n1,n2" and "0,1;2,3", as PMIx packs them, and the local peers. */
static pmix_status_t make_maps(const struct sl_pmix_server *s, char **nodes, char **procs,
                               struct sl_buf *peers)
{
    struct sl_buf names, ranks;
    pmix_status_t st = PMIX_ERR_NOMEM;

    sl_buf_init(&names, 1 << 20);
    sl_buf_init(&ranks, 1 << 20);
    for (int i = 0; i < s->nodes; i++)
        sl_buf_printf(&names, "%s%s", i ? "," : "", s->names[i]);
    for (int i = 0; i < s->ranks; i++)
        sl_buf_printf(&ranks, "%s%d", !i ? "" : i % s->per_node ? "," : ";", i);
    for (int i = 0; i < s->per_node; i++)
        sl_buf_printf(peers, "%s%d", i ? "," : "", s->first + i);
    if (!names.failed && !ranks.failed && !peers->failed) {
        st = PMIx_generate_regex(sl_buf_text(&names), nodes);
        if (st == PMIX_SUCCESS)
            st = PMIx_generate_ppn(sl_buf_text(&ranks), procs);
    }
    sl_buf_fini(&names);
    sl_buf_fini(&ranks);
    return st;
}

static pmix_status_t register_job(struct sl_pmix_server *s)
{
    uint32_t n = (uint32_t)s->ranks, one = 1, local = (uint32_t)s->per_node;
    uint32_t nodes_n = (uint32_t)s->nodes, node = (uint32_t)s->node;
    size_t ninfo = 12 + (size_t)s->nodes + (size_t)s->ranks, k = 0;
    char *nodes = NULL, *procs = NULL;
    struct waiter *w = waiter_create();
    pmix_rank_t leader = (pmix_rank_t)s->first;
    struct sl_buf peers;
    pmix_info_t *info;
    pmix_status_t st;

    if (!w)
        return PMIX_ERR_NOMEM;
    sl_buf_init(&peers, 1 << 20);
    st = make_maps(s, &nodes, &procs, &peers);
    if (st != PMIX_SUCCESS) {
        waiter_destroy(w);
        goto end;
    }
    PMIX_INFO_CREATE(info, ninfo);
    PMIX_INFO_LOAD(&info[k++], PMIX_NODE_MAP, nodes, PMIX_REGEX);
    PMIX_INFO_LOAD(&info[k++], PMIX_PROC_MAP, procs, PMIX_REGEX);
    PMIX_INFO_LOAD(&info[k++], PMIX_JOBID, s->nspace, PMIX_STRING);
    PMIX_INFO_LOAD(&info[k++], PMIX_UNIV_SIZE, &n, PMIX_UINT32);
    PMIX_INFO_LOAD(&info[k++], PMIX_JOB_SIZE, &n, PMIX_UINT32);
    PMIX_INFO_LOAD(&info[k++], PMIX_MAX_PROCS, &n, PMIX_UINT32);
    PMIX_INFO_LOAD(&info[k++], PMIX_JOB_NUM_APPS, &one, PMIX_UINT32);
    PMIX_INFO_LOAD(&info[k++], PMIX_NUM_NODES, &nodes_n, PMIX_UINT32);
    PMIX_INFO_LOAD(&info[k++], PMIX_LOCAL_SIZE, &local, PMIX_UINT32);
    PMIX_INFO_LOAD(&info[k++], PMIX_LOCAL_PEERS, sl_buf_text(&peers), PMIX_STRING);
    PMIX_INFO_LOAD(&info[k++], PMIX_LOCALLDR, &leader, PMIX_PROC_RANK);
    PMIX_INFO_LOAD(&info[k++], PMIX_NODEID, &node, PMIX_UINT32);
    for (int i = 0; i < s->nodes; i++)
        load_node(s, &info[k++], i);
    for (int i = 0; i < s->ranks; i++)
        load_rank(s, &info[k++], i);
    st = finish(PMIx_server_register_nspace(s->nspace, s->per_node, info, ninfo, wake, w), w);
    if (st != PMIX_ERR_TIMEOUT)
        PMIX_INFO_FREE(info, ninfo);
end:
    free(nodes);
    free(procs);
    sl_buf_fini(&peers);
    return st;
}

/* An outer launcher's variables would make the server, or a rank, talk to that launcher. */
void sl_pmix_server_scrub(void)
{
    static const char *const prefix[] = {"PMIX_", "PMI_", "OMPI_", "PRTE_", "SLURM_"};
    char **keep = environ;

    for (char **e = environ; *e; e++) {
        int outer = 0;

        for (size_t i = 0; i < sizeof prefix / sizeof *prefix; i++)
            outer |= !strncmp(*e, prefix[i], strlen(prefix[i]));
        if (!outer)
            *keep++ = *e;
    }
    *keep = NULL;
    /* the default store keeps files behind, and aborts the server on large values */
    setenv("PMIX_MCA_gds", "hash", 1);
}

struct sl_pmix_server *sl_pmix_server_open(const char *folder, const char *host, struct sl_err *err)
{
    struct sl_pmix_server *s = sl_calloc(1, sizeof *s);
    pmix_info_t *in;
    pmix_status_t st;

    if (!s) {
        sl_fail(err, SL_SYSTEM, "cannot hold the PMIx server: %s", strerror(errno));
        return NULL;
    }
    s->nodes = 1;
    pthread_mutex_init(&s->m, NULL);
    s->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (s->event < 0) {
        sl_fail(err, SL_SYSTEM, "cannot start the PMIx server: %s", strerror(errno));
        free(s);
        return NULL;
    }
    if (host)
        snprintf(s->host, sizeof s->host, "%s", host);
    else if (gethostname(s->host, sizeof s->host - 1))
        snprintf(s->host, sizeof s->host, "localhost");
    the_server = s;
    sl_pmix_server_scrub();
    PMIX_INFO_CREATE(in, 3);
    PMIX_INFO_LOAD(&in[0], PMIX_SERVER_TMPDIR, folder, PMIX_STRING);
    PMIX_INFO_LOAD(&in[1], PMIX_SYSTEM_TMPDIR, folder, PMIX_STRING);
    PMIX_INFO_LOAD(&in[2], PMIX_HOSTNAME, s->host, PMIX_STRING);
    st = PMIx_server_init(&module, in, 3);
    PMIX_INFO_FREE(in, 3);
    if (st == PMIX_SUCCESS)
        return s;
    sl_fail(err, SL_SYSTEM, "cannot start the PMIx server: PMIx_server_init: %s",
            PMIx_Error_string(st));
    free(s);
    return NULL;
}

static pmix_status_t register_rank(const struct sl_pmix_server *s, int rank)
{
    struct waiter *w = waiter_create();
    pmix_proc_t p;

    if (!w)
        return PMIX_ERR_NOMEM;
    PMIX_LOAD_PROCID(&p, s->nspace, (pmix_rank_t)rank);
    return finish(PMIx_server_register_client(&p, geteuid(), getegid(), NULL, wake, w), w);
}

int sl_pmix_server_job(struct sl_pmix_server *s, const char *nspace, const struct sl_pmix_map *map,
                       struct sl_err *err)
{
    pmix_status_t st;

    s->ranks = map->ranks;
    s->nodes = map->nodes;
    s->node = map->node;
    s->per_node = map->ranks / map->nodes;
    s->first = map->node * s->per_node;
    s->names = map->host;
    snprintf(s->nspace, sizeof s->nspace, "%s", nspace);
    st = register_job(s);
    for (int i = 0; st == PMIX_SUCCESS && i < s->per_node; i++)
        st = register_rank(s, s->first + i);
    s->names = NULL;
    if (st == PMIX_SUCCESS)
        return 0;
    return sl_fail(err, SL_SYSTEM, "the PMIx server does not take the ranks of \"%s\": %s", nspace,
                   PMIx_Error_string(st));
}

/* ---- fences of several nodes ---- */

int sl_pmix_server_fence_fd(const struct sl_pmix_server *s)
{
    return s->event;
}

int sl_pmix_server_fence_take(struct sl_pmix_server *s, int *status, char **data, size_t *n)
{
    struct fence *f, *next;
    eventfd_t count;

    if (s->open)
        return 0;
    eventfd_read(s->event, &count);
    pthread_mutex_lock(&s->m);
    f = s->head;
    s->head = NULL;
    pthread_mutex_unlock(&s->m);
    for (; f; f = next) {
        next = f->next;
        if (!s->open && !strcmp(f->nspace, s->nspace)) {
            s->open = f;
            continue;
        }
        give(f->cb, f->cbdata, PMIX_ERR_PROC_ABORTED, NULL, 0); /* of an attempt that is over */
        free(f->data);
        free(f);
    }
    if (!s->open)
        return 0;
    *status = s->open->st;
    *data = s->open->data;
    *n = s->open->n;
    s->open->data = NULL;
    return 1;
}

void sl_pmix_server_fence_answer(struct sl_pmix_server *s, int status, const void *data, size_t n)
{
    struct fence *f = s->open;

    if (!f)
        return;
    s->open = NULL; /* the next fence may come before this returns */
    give(f->cb, f->cbdata, status, data, n);
    free(f->data);
    free(f);
}

int sl_pmix_server_aborted(void)
{
    return PMIX_ERR_PROC_ABORTED;
}

int sl_pmix_server_good(int status)
{
    return status == PMIX_SUCCESS;
}

void sl_pmix_server_close(struct sl_pmix_server *s)
{
    free(s);
}

char **sl_pmix_server_env(struct sl_pmix_server *s, int rank, struct sl_err *err)
{
    pmix_status_t st = PMIX_ERR_NOMEM;
    char **env = NULL;
    pmix_proc_t p;
    size_t n = 0;

    while (environ[n])
        n++;
    env = sl_calloc(n + 1, sizeof *env);
    for (size_t i = 0; env && i < n; i++) {
        env[i] = sl_strdup(environ[i]);
        if (!env[i])
            goto fail;
    }
    PMIX_LOAD_PROCID(&p, s->nspace, (pmix_rank_t)rank);
    if (env)
        st = PMIx_server_setup_fork(&p, &env);
    if (st == PMIX_SUCCESS)
        return env;
fail:
    sl_pmix_server_free_env(env);
    sl_fail(err, SL_SYSTEM, "cannot make the environment of rank %d: %s", rank,
            PMIx_Error_string(st));
    return NULL;
}

void sl_pmix_server_free_env(char **env)
{
    for (char **e = env; e && *e; e++)
        free(*e);
    free(env);
}

int sl_pmix_server_vars(struct sl_pmix_server *s, int rank, struct sl_buf *ret, struct sl_err *err)
{
    char **env = sl_calloc(1, sizeof *env);
    pmix_status_t st = PMIX_ERR_NOMEM;
    pmix_proc_t p;

    PMIX_LOAD_PROCID(&p, s->nspace, (pmix_rank_t)rank);
    if (env)
        st = PMIx_server_setup_fork(&p, &env);
    for (char **e = env; st == PMIX_SUCCESS && *e; e++)
        sl_buf_add(ret, *e, strlen(*e) + 1);
    sl_buf_char(ret, '\0');
    sl_pmix_server_free_env(env);
    if (st != PMIX_SUCCESS)
        return sl_fail(err, SL_SYSTEM, "cannot make the environment of rank %d: %s", rank,
                       PMIx_Error_string(st));
    return sl_buf_check(ret, err);
}
