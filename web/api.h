#ifndef SL_WEB_API_H
#define SL_WEB_API_H

/*
 * api.h - the answers of GET /api/..., /metrics: a path and its arguments to a body
 *
 * Knows no HTTP library: the server hands in how to look an argument up. Every argument is checked;
 * what is wrong is told in {"error": ..., "hint": ...} with status 400, an unknown job is 404.
 */

#include "common/buf.h"
#include "store/store.h"

enum { SL_API_BODY = 8 << 20 }; /* bytes of a body at most */

struct sl_api_request {
    const char *path;                              /* "/api/jobs/3" */
    const char *(*arg)(void *u, const char *name); /* value of ?name=, or NULL */
    void *u;
};

struct sl_api_reply {
    int status;       /* HTTP's */
    const char *type; /* content type */
    struct sl_buf body;
};

/* Always an answer (sl_buf_fini() its body); 404 for a path that is none of the API's. */
void sl_api_get(struct sl_store *st, const struct sl_api_request *req, struct sl_api_reply *ret);

#endif
