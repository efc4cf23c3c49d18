/* serve.c - the page without a run */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/page.h"
#include "cli/state.h"
#include "common/mem.h"
#include "store/published.h"

extern char **environ;

enum { LOOK_S = 3 };

static const struct sl_opt options[] = {
    SL_OPT_PORT,
    {.name = "no-open", .help = "Do not open a browser."},
    SL_OPT_DB,
};

/* Where there is a desktop. Nobody waits for it, and its failure is no failure of ours. */
static void open_browser(const char *link)
{
    const char *x = getenv("DISPLAY"), *wayland = getenv("WAYLAND_DISPLAY");
    char *argv[] = {"xdg-open", (char *)(uintptr_t)link, NULL};
    posix_spawn_file_actions_t acts;
    pid_t pid;

    if (!(x && *x) && !(wayland && *wayland))
        return;
    if (posix_spawn_file_actions_init(&acts))
        return;
    posix_spawn_file_actions_addopen(&acts, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&acts, 2, "/dev/null", O_WRONLY, 0);
    posix_spawnp(&pid, "xdg-open", &acts, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&acts);
}

/* Where runs publish their rows: all of them, gathered on this machine. */
static int gather(const struct sl_args *args, const char *db, struct sl_opened *ret,
                  struct sl_err *err)
{
    char *copy = sl_strdup(db);
    int rc = copy ? sl_published_needed(dirname(copy), err)
                  : sl_fail(err, SL_SYSTEM, "cannot hold a path: %s", strerror(errno));

    free(copy);
    return rc > 0 ? sl_state_read(args, SL_STATE_ALL, ret, err) : rc;
}

/* A signal; what is published until then is gathered. */
static void wait_for_end(const sigset_t *end, struct sl_opened *state)
{
    const struct timespec look = {LOOK_S, 0};
    struct sl_err err = {0};
    int told = 0;

    while ((state->local ? sigtimedwait(end, NULL, &look) : sigwaitinfo(end, NULL)) < 0)
        if (state->local && sl_state_refresh(state, &err) && !told++)
            sl_say("what jobs publish cannot be gathered, and is tried again: %s", err.msg);
}

static int run(const struct sl_args *args, struct sl_err *err)
{
    char *db = sl_state_db(args, err), link[256];
    struct sl_opened state = {0};
    struct sl_page_opts opts = {.db = db, .port = (int)sl_args_int(args, "port", -1)};
    sigset_t end, old;
    int rc;

    if (!db)
        return -1;
    if (gather(args, db, &state, err)) {
        free(db);
        return -1;
    }
    if (state.local)
        opts.db = state.db;
    sigemptyset(&end);
    sigaddset(&end, SIGINT);
    sigaddset(&end, SIGTERM);
    sigaddset(&end, SIGHUP);
    sigprocmask(SIG_BLOCK, &end, &old);
    rc = sl_page_start(&opts, err);
    if (!rc) {
        sl_page_link(&opts, link, sizeof link);
        printf("%s\n", link);
        rc = fflush(stdout)
                 ? sl_fail(err, SL_SYSTEM, "write to standard output: %s", strerror(errno))
                 : 0;
        sl_page_hint(&opts, link, sizeof link);
        if (*link)
            sl_say("%s", link);
        sl_page_link(&opts, link, sizeof link);
        if (!rc && !sl_args_given(args, "no-open"))
            open_browser(link);
        if (!rc)
            wait_for_end(&end, &state);
        sl_page_stop(&opts);
    }
    sigprocmask(SIG_SETMASK, &old, NULL);
    sl_state_close(&state);
    free(db);
    return rc;
}

const struct sl_cmd sl_cmd_serve = {
    .name = "serve",
    .operands = "",
    .summary = "Serve the status page of all jobs on this machine's loopback.",
    .details
    = "Prints the link, whose token opens the page once; the browser keeps it as a cookie. "
      "Ctrl-C ends it.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .run = run,
};
