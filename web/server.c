#include "web/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "common/clock.h"
#include "common/mem.h"
#include "store/reader.h"
#include "web/api.h"
#include "web/pages.h"
#include "web/stream.h"
#include "web/token.h"

enum {
    CONNECTIONS = 128,
    IDLE_S = 30,
    HEADERS = 16 << 10, /* bytes of a request's head; more is answered 414 or 431 by the library */
    URL = 512,
    VALUE = 256,
    ARGS = 16,
};

struct sl_server {
    struct sl_store *st; /* the daemon's thread only, once it runs */
    struct sl_streams *streams;
    struct sl_token token;
    struct MHD_Daemon *daemon;
    int port;
    _Atomic int64_t asked; /* when the last request came, sl_clock_ns() */
};

static const char *const headers[][2] = {
    {"Cache-Control", "no-store"},
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
     "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {NULL, NULL},
};

static enum MHD_Result send_response(struct MHD_Connection *c, unsigned status, const char *type,
                                     struct MHD_Response *r)
{
    enum MHD_Result rc;

    if (!r)
        return MHD_NO;
    MHD_add_response_header(r, "Content-Type", type);
    for (int i = 0; headers[i][0]; i++)
        MHD_add_response_header(r, headers[i][0], headers[i][1]);
    if (status == 405)
        MHD_add_response_header(r, "Allow", "GET, HEAD");
    rc = MHD_queue_response(c, status, r);
    MHD_destroy_response(r);
    return rc;
}

static enum MHD_Result say(struct MHD_Connection *c, unsigned status, const char *text)
{
    return send_response(c, status, "text/plain; charset=utf-8",
                         MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text,
                                                         MHD_RESPMEM_PERSISTENT));
}

static const char *header_of(struct MHD_Connection *c, const char *name)
{
    return MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);
}

static const char *arg_of(void *u, const char *name)
{
    return MHD_lookup_connection_value(u, MHD_GET_ARGUMENT_KIND, name);
}

/* Only names of this host's loopback, with any port (a tunnel may have changed it). */
static int host_is_ours(const char *host)
{
    static const char *const names[] = {"127.0.0.1", "localhost", "[::1]"};

    for (int i = 0; host && i < 3; i++) {
        size_t n = strlen(names[i]);

        if (!strncasecmp(host, names[i], n)
            && (!host[n]
                || (host[n] == ':' && strspn(host + n + 1, "0123456789") == strlen(host + n + 1))))
            return 1;
    }
    return 0;
}

static int allowed(const struct sl_server *s, struct MHD_Connection *c)
{
    const char *h = header_of(c, "Authorization");

    if (h && !strncasecmp(h, "Bearer ", 7))
        return sl_token_right(&s->token, h + 7);
    return sl_token_right(&s->token,
                          MHD_lookup_connection_value(c, MHD_COOKIE_KIND, s->token.cookie));
}

struct limits {
    int n, too_long;
};

static enum MHD_Result measure(void *u, enum MHD_ValueKind kind, const char *key, const char *value)
{
    struct limits *l = u;

    (void)kind;
    if (++l->n > ARGS || strlen(key) > VALUE || (value && strlen(value) > VALUE))
        l->too_long = 1;
    return MHD_YES;
}

static int too_long(struct MHD_Connection *c, const char *url)
{
    struct limits l = {0};

    MHD_get_connection_values(c, MHD_GET_ARGUMENT_KIND, measure, &l);
    return l.too_long || strlen(url) > URL;
}

/* The printed link: the token becomes a cookie and leaves the address bar. */
static enum MHD_Result let_in(struct sl_server *s, struct MHD_Connection *c)
{
    struct MHD_Response *r = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    char cookie[192];

    if (!r)
        return MHD_NO;
    snprintf(cookie, sizeof cookie, "%s=%s; Path=/; HttpOnly; SameSite=Lax; Max-Age=31536000",
             s->token.cookie, s->token.text);
    MHD_add_response_header(r, "Set-Cookie", cookie);
    MHD_add_response_header(r, "Location", "/");
    return send_response(c, 303, "text/plain", r);
}

static enum MHD_Result stream(struct sl_server *s, struct MHD_Connection *c)
{
    const char *last = header_of(c, "Last-Event-ID");
    char *end = NULL;
    long long after = -1;

    if (!last)
        last = arg_of(c, "after");
    if (last) {
        errno = 0;
        after = strtoll(last, &end, 10);
        if (end == last || *end || errno || after < 0)
            return say(c, 400, "Last-Event-ID is no number\n");
    }
    if (sl_streams_full(s->streams))
        return say(c, 503, "too many event streams are open\n");
    return sl_streams_add(s->streams, c, after, headers);
}

static enum MHD_Result api(struct sl_server *s, struct MHD_Connection *c, const char *url)
{
    struct sl_api_request req = {.path = url, .arg = arg_of, .u = c};
    struct sl_api_reply reply;
    enum MHD_Result rc;

    sl_api_get(s->st, &req, &reply);
    rc = send_response(c, (unsigned)reply.status, reply.type,
                       MHD_create_response_from_buffer(reply.body.len,
                                                       (void *)(uintptr_t)sl_buf_text(&reply.body),
                                                       MHD_RESPMEM_MUST_COPY));
    sl_buf_fini(&reply.body);
    return rc;
}

static enum MHD_Result answer(struct sl_server *s, struct MHD_Connection *c, const char *url,
                              const char *method)
{
    struct sl_page page;

    s->asked = sl_clock_ns();
    if (strcmp(method, "GET") && strcmp(method, "HEAD"))
        return say(c, 405, "only GET is served\n");
    if (!strcmp(url, "/healthz"))
        return sl_read_last_event(s->st, NULL) < 0 ? say(c, 503, "the store cannot be read\n")
                                                   : say(c, 200, "ok\n");
    if (!host_is_ours(header_of(c, "Host")))
        return say(c, 421, "this host is not called so\n");
    if (too_long(c, url))
        return say(c, 414, "too long\n");
    if (!strcmp(url, "/") && sl_token_right(&s->token, arg_of(c, "token")))
        return let_in(s, c);
    if (!allowed(s, c))
        return say(c, 401,
                   "A token is needed: open the link that shardlaunch has printed, or let\n"
                   "\"shardlaunch serve\" print one.\n");
    if (sl_page_find(url, &page))
        return send_response(c, 200, page.type,
                             MHD_create_response_from_buffer(page.len, (void *)(uintptr_t)page.body,
                                                             MHD_RESPMEM_PERSISTENT));
    if (!strcmp(url, "/api/events"))
        return stream(s, c);
    return api(s, c, url);
}

/* Called first with the head alone; a body, which nothing here takes, is refused unread. */
static enum MHD_Result handle(void *cls, struct MHD_Connection *c, const char *url,
                              const char *method, const char *version, const char *body, size_t *n,
                              void **state)
{
    (void)version;
    (void)body;
    if (*n)
        return MHD_NO;
    if (!*state && !strcmp(method, "GET")) {
        *state = cls;
        return MHD_YES;
    }
    return answer(cls, c, url, method);
}

/* On loopback only. NULL and errno: it cannot be bound. */
static struct MHD_Daemon *listen_on(struct sl_server *s, int port)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)port),
                            .sin_addr = {htonl(INADDR_LOOPBACK)}};
    sigset_t all, old;
    struct MHD_Daemon *d;

    /*
     * Not AUTO, which takes epoll: there the library (0.9.75), once more connections wait than it may
     * have, sees none of the open ones end for IDLE_S; and poll is as fast for so few.
     */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* its thread takes no signals */
    d = MHD_start_daemon(MHD_USE_POLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
                         handle, s, MHD_OPTION_SOCK_ADDR, &a, MHD_OPTION_CONNECTION_LIMIT,
                         (unsigned)CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S,
                         MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADERS, MHD_OPTION_END);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return d;
}

static int listen_somewhere(struct sl_server *s, int port, struct sl_err *err)
{
    int first = port < 0 ? SL_SERVER_PORT : port;
    int last = port < 0 ? SL_SERVER_PORT + SL_SERVER_TRIES : port;
    const union MHD_DaemonInfo *info;

    for (int p = first; p <= last && !s->daemon; p++)
        s->daemon = listen_on(s, p);
    if (!s->daemon) {
        sl_fail(err, SL_BUSY, "cannot listen on 127.0.0.1, port %d%s: %s", first,
                first < last ? " or the next 50" : "", strerror(errno));
        return sl_hint(err, "--port names another one, --port 0 takes any free one");
    }
    info = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_BIND_PORT);
    if (!info)
        return sl_fail(err, SL_SYSTEM, "cannot tell the port that was bound");
    s->port = info->port;
    return 0;
}

struct sl_server *sl_server_start(const struct sl_server_conf *conf, struct sl_err *err)
{
    struct sl_server *s = sl_calloc(1, sizeof *s);
    struct sl_store *made;

    if (!s) {
        sl_fail(err, SL_SYSTEM, "cannot hold a server: %s", strerror(errno));
        return NULL;
    }
    made = sl_store_open(conf->db, SL_STORE_WRITE, err);
    if (!made)
        goto fail;
    sl_store_close(made);
    s->st = sl_store_open(conf->db, SL_STORE_READ, err);
    if (!s->st || sl_token_load(sl_store_dir(s->st), &s->token, err))
        goto fail;
    s->streams = sl_streams_create(s->st, conf->db, err);
    if (!s->streams || listen_somewhere(s, conf->port, err))
        goto fail;
    return s;
fail:
    sl_server_stop(s);
    return NULL;
}

void sl_server_say_closing(struct sl_server *s)
{
    const struct timespec step = {0, 20 * 1000000};
    int64_t start = sl_clock_ns(), now;

    if (!sl_streams_say_closing(s->streams))
        return;
    s->asked = start;
    do {
        nanosleep(&step, NULL);
        now = sl_clock_ns();
    } while (now - s->asked < (int64_t)SL_SERVER_QUIET_MS * 1000000
             && now - start < (int64_t)SL_SERVER_LAST_MS * 1000000);
}

void sl_server_stop(struct sl_server *s)
{
    if (!s)
        return;
    if (s->streams)
        sl_streams_stop(s->streams);
    if (s->daemon)
        MHD_stop_daemon(s->daemon);
    sl_streams_destroy(s->streams);
    sl_store_close(s->st);
    free(s);
}

int sl_server_port(const struct sl_server *s)
{
    return s->port;
}

void sl_server_link(const struct sl_server *s, char *ret, size_t size)
{
    snprintf(ret, size, "http://127.0.0.1:%d/?token=%s", s->port, s->token.text);
}
