#ifndef SL_WEB_STREAM_H
#define SL_WEB_STREAM_H

/*
 * stream.h - GET /api/events: server-sent events to any number of browsers from one thread
 *
 *   id: 17 / event: event / data: {...}   a row of `events`; the id is the store's
 *   event: change / data: {}              something was committed: ask the API again
 *   event: closing / data: {}             the server is about to end: look a last time
 *   : still here                          each 10 s, so that a dead client shows
 *
 * A client that comes back with Last-Event-ID gets the events it missed, then new ones. Each stream
 * reads the store at its own pace; nobody's slowness costs another one memory or events. A ticker
 * thread looks at the database four times a second and wakes the streams.
 * Source: html.spec.whatwg.org, 9.2 "Server-sent events".
 */

#include <microhttpd.h>

#include "common/err.h"
#include "store/store.h"

struct sl_streams; /* opaque */

enum { SL_STREAMS = 48 }; /* at once */

/* `st` is used by the daemon's thread only, `db` is opened once more for the ticker. */
struct sl_streams *sl_streams_create(struct sl_store *st, const char *db, struct sl_err *err);

/* Queue the stream as the answer. `after`: the last event that the client has, -1: only new ones.
 */
enum MHD_Result sl_streams_add(struct sl_streams *s, struct MHD_Connection *c, int64_t after,
                               const char *const headers[][2]);
int sl_streams_full(struct sl_streams *s);

/* Tell all what is new, then that this is the end. Returns how many streams were told. */
int64_t sl_streams_say_closing(struct sl_streams *s);

void sl_streams_stop(struct sl_streams *s);    /* before the daemon stops: wake and end all */
void sl_streams_destroy(struct sl_streams *s); /* after it has; NULL is fine */

#endif
