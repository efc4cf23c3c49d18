/* page.c - opening the status page, and telling people where it is */
#include "cli/page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int sl_page_start(struct sl_page_opts *p, struct sl_err *err)
{
    struct sl_server_conf conf = {.db = p->db, .port = p->port};

    p->server = sl_server_start(&conf, err);
    return p->server ? 0 : -1;
}

void sl_page_stop(struct sl_page_opts *p)
{
    sl_server_stop(p->server);
    p->server = NULL;
}

void sl_page_link(const struct sl_page_opts *p, char *ret, size_t size)
{
    sl_server_link(p->server, ret, size);
}

void sl_page_hint(const struct sl_page_opts *p, char *ret, size_t size)
{
    const char *ssh = getenv("SSH_CONNECTION"), *user = getenv("USER");
    int port = sl_server_port(p->server);
    char host[64] = "HOST";

    ret[0] = '\0';
    if (!ssh || !*ssh)
        return;
    gethostname(host, sizeof host - 1);
    snprintf(ret, size, "on your own machine: ssh -N -L %d:127.0.0.1:%d %s%s%s", port, port,
             user && *user ? user : "", user && *user ? "@" : "", host);
}

int sl_page_open_in_run(void *user, char *line, size_t size, struct sl_err *err)
{
    struct sl_page_opts *p = user;
    char link[256], hint[256];

    if (sl_page_start(p, err))
        return -1;
    sl_page_link(p, link, sizeof link);
    sl_page_hint(p, hint, sizeof hint);
    snprintf(line, size, "page: %s%s%s%s", link, *hint ? " (" : "", hint, *hint ? ")" : "");
    return 0;
}

void sl_page_close_in_run(void *user)
{
    struct sl_page_opts *p = user;

    sl_server_say_closing(p->server);
    sl_page_stop(p);
}
