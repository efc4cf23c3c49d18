#ifndef SL_CLI_PAGE_H
#define SL_CLI_PAGE_H

/* page.h - the status page as `run` and `serve` open it: its port, its link, how to reach it by ssh
 */

#include <stddef.h>

#include "cli/options.h"
#include "web/server.h"

#define SL_OPT_PORT                                                                                \
    {                                                                                              \
        .name = "port", .letter = 'p', .type = SL_OPT_INT, .arg = "N", .max = 65535,               \
        .help = "Port of the page; 0 for any free one. 7070 or the next free one if not given."    \
    }

struct sl_page_opts {
    const char *db;
    int port; /* as in web/server.h; -1: 7070 or the next free one */
    struct sl_server *server;
};

int sl_page_start(struct sl_page_opts *p, struct sl_err *err);
void sl_page_stop(struct sl_page_opts *p);

void sl_page_link(const struct sl_page_opts *p, char *ret, size_t size);

/* Under ssh: the command that brings the page to the person's own machine; else "". */
void sl_page_hint(const struct sl_page_opts *p, char *ret, size_t size);

/* For struct sl_launch; `user` is a struct sl_page_opts. */
int sl_page_open_in_run(void *user, char *line, size_t size, struct sl_err *err);
void sl_page_close_in_run(void *user);

#endif
