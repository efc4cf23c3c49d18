/* wireup.c - put, commit, fence with data, get: once */
#include "executor/wireup.h"

#include <math.h>
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char card_key[] = "sl.card", links_key[] = "sl.links";

static int refused(struct sl_err *err, const char *what, pmix_status_t st)
{
    return sl_fail(err, SL_SYSTEM, "pmix %s: %s", what, PMIx_Error_string(st));
}

int sl_wireup_open(struct sl_wireup *w, struct sl_err *err)
{
    pmix_proc_t me, job;
    pmix_value_t *v;
    pmix_status_t st = PMIx_Init(&me, NULL, 0);

    memset(w, 0, sizeof *w);
    if (st != PMIX_SUCCESS) {
        refused(err, "init", st);
        return sl_hint(err, "A rank is started by its agent, which is its PMIx server.");
    }
    job = me;
    job.rank = PMIX_RANK_WILDCARD;
    st = PMIx_Get(&job, PMIX_JOB_SIZE, NULL, 0, &v);
    if (st != PMIX_SUCCESS) {
        PMIx_Finalize(NULL, 0);
        return refused(err, "job size", st);
    }
    snprintf(w->space, sizeof w->space, "%s", me.nspace);
    w->rank = (int)me.rank;
    w->ranks = (int)v->data.uint32;
    PMIX_VALUE_RELEASE(v);
    if (w->ranks < 1 || w->ranks > SL_MAX_RANKS || w->rank < 0 || w->rank >= w->ranks) {
        PMIx_Finalize(NULL, 0);
        return sl_fail(err, SL_USAGE, "rank %d of %d, at most %d ranks are possible", w->rank,
                       w->ranks, SL_MAX_RANKS);
    }
    return 0;
}

/* Only PMIX_SUCCESS is success: a partial one means that a rank died in the fence. */
static int fence(double deadline, struct sl_err *err)
{
    pmix_info_t in[2];
    bool yes = true;
    int seconds = deadline > 0 ? (int)ceil(deadline) : 0;
    size_t n = 1;
    pmix_status_t st;

    PMIX_INFO_LOAD(&in[0], PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
    if (seconds)
        PMIX_INFO_LOAD(&in[n++], PMIX_TIMEOUT, &seconds, PMIX_INT);
    st = PMIx_Fence(NULL, 0, in, n);
    if (st == PMIX_ERR_TIMEOUT)
        return sl_fail(err, SL_BUSY, "waited %d s in the wire-up for all ranks to arrive", seconds);
    if (st != PMIX_SUCCESS)
        return sl_fail(err, SL_PEER, "a rank failed during the wire-up (%s)",
                       PMIx_Error_string(st));
    return 0;
}

static int get_card(const struct sl_wireup *w, const pmix_proc_t *proc, struct sl_card *card,
                    struct sl_err *err)
{
    pmix_value_t *v;
    pmix_status_t st = PMIx_Get(proc, card_key, NULL, 0, &v);
    char *end;
    const char *colon;
    long pid;

    if (st != PMIX_SUCCESS)
        return sl_fail(err, SL_SYSTEM, "pmix get of the card of rank %d of %d: %s", (int)proc->rank,
                       w->ranks, PMIx_Error_string(st));
    colon = v->type == PMIX_STRING && v->data.string ? strrchr(v->data.string, ':') : NULL;
    pid = colon ? strtol(colon + 1, &end, 10) : 0;
    if (!colon || *end || pid < 1 || pid > INT32_MAX) {
        PMIX_VALUE_RELEASE(v);
        return sl_fail(err, SL_BUG, "the card of rank %d is not \"host:pid\"", (int)proc->rank);
    }
    snprintf(card->host, sizeof card->host, "%.*s", (int)(colon - v->data.string), v->data.string);
    card->pid = (int)pid;
    PMIX_VALUE_RELEASE(v);
    return 0;
}

static int get_links(const struct sl_wireup *w, const pmix_proc_t *proc, struct sl_card *card,
                     struct sl_err *err)
{
    pmix_value_t *v;
    pmix_status_t st = PMIx_Get(proc, links_key, NULL, 0, &v);
    int n = -1;

    if (st != PMIX_SUCCESS)
        return sl_fail(err, SL_SYSTEM, "pmix get of the addresses of rank %d of %d: %s",
                       (int)proc->rank, w->ranks, PMIx_Error_string(st));
    if (v->type == PMIX_STRING && v->data.string)
        n = snprintf(card->links, sizeof card->links, "%s", v->data.string);
    PMIX_VALUE_RELEASE(v);
    if (n < 0 || n >= (int)sizeof card->links)
        return sl_fail(err, SL_BUG, "the addresses of rank %d are too long", (int)proc->rank);
    return 0;
}

static pmix_status_t put(const char *key, char *text)
{
    pmix_value_t val;

    PMIX_VALUE_CONSTRUCT(&val);
    val.type = PMIX_STRING;
    val.data.string = text; /* copied by put */
    return PMIx_Put(PMIX_GLOBAL, key, &val);
}

int sl_wireup_exchange(struct sl_wireup *w, const char *links, double deadline, struct sl_err *err)
{
    char host[64] = "", text[96], mine[SL_LINKS_TEXT];
    pmix_proc_t proc;
    pmix_status_t st;

    gethostname(host, sizeof host - 1);
    snprintf(text, sizeof text, "%s:%d", host, (int)getpid());
    if ((st = put(card_key, text)) != PMIX_SUCCESS)
        return refused(err, "put", st);
    snprintf(mine, sizeof mine, "%s", links ? links : "");
    if (links && (st = put(links_key, mine)) != PMIX_SUCCESS)
        return refused(err, "put", st);
    if ((st = PMIx_Commit()) != PMIX_SUCCESS)
        return refused(err, "commit", st);
    if (fence(deadline, err))
        return -1;
    for (int r = 0; r < w->ranks; r++) {
        PMIX_LOAD_PROCID(&proc, w->space, (pmix_rank_t)r);
        if (get_card(w, &proc, &w->card[r], err)
            || (links && get_links(w, &proc, &w->card[r], err)))
            return -1;
    }
    return 0;
}

int sl_wireup_close(struct sl_wireup *w, struct sl_err *err)
{
    pmix_status_t st = PMIx_Finalize(NULL, 0);

    memset(w, 0, sizeof *w);
    return st == PMIX_SUCCESS ? 0 : refused(err, "finalize", st);
}
