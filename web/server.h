#ifndef SL_WEB_SERVER_H
#define SL_WEB_SERVER_H

/*
 * server.h - the page and the API over HTTP, on loopback, in a thread of its own
 *
 * Reads the store by its own handles; serves a running job's process as well as `serve`. Who asks
 * needs the token, as cookie (from the printed link) or as `Authorization: Bearer`; only /healthz
 * is open. Requests that name another host than this one in Host are refused (DNS rebinding).
 */

#include <stddef.h>

#include "common/err.h"

struct sl_server; /* opaque */

enum { SL_SERVER_PORT = 7070, SL_SERVER_TRIES = 50 };

struct sl_server_conf {
    const char *db; /* path; made when it is not there */
    int port;       /* -1: 7070 or the next free one; 0: any free one; else exactly this one */
};

/* Open it after the process's last fork. SL_BUSY: the port is taken; SL_SYSTEM; SL_USAGE: as store.
 */
struct sl_server *sl_server_start(const struct sl_server_conf *conf, struct sl_err *err);
/*
 * Tell open pages that this is the end and give them the time to fetch the last state: until nobody
 * has asked for SL_SERVER_QUIET_MS, at most SL_SERVER_LAST_MS; at once when no page is open.
 */
enum { SL_SERVER_QUIET_MS = 400, SL_SERVER_LAST_MS = 2500 };
void sl_server_say_closing(struct sl_server *s);

void sl_server_stop(struct sl_server *s); /* ends open streams; NULL is fine */

int sl_server_port(const struct sl_server *s);

/* "http://127.0.0.1:7070/?token=...": opens the page once; then a cookie does. */
void sl_server_link(const struct sl_server *s, char *ret, size_t size);

#endif
