/*
 * Bytes of a client: sent to the server as they are, and once more with the right token put into the
 * head. It answers or hangs up, and answers others after it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/fs.h"
#include "store/jobs.h"
#include "store/store.h"
#include "store/writer.h"
#include "tests/fuzz/fuzz.h"
#include "web/server.h"
#include "web/token.h"

static struct sl_server *server;
static struct sl_token token;

static void stop(void)
{
    sl_server_stop(server);
}

/* A database with a job, rows and a log to look at. */
static void start(void)
{
    struct sl_new_job job = {.name = "<b>", .text = "x = 1\n", .ranks = 1, .strategy = "dp"};
    struct sl_err err = {0};
    struct sl_server_conf conf = {.port = 0};
    struct sl_store *st;
    struct sl_writer *w;
    struct sl_lease me;
    char path[96], dir[128];
    int attempt;
    int64_t id;

    snprintf(path, sizeof path, "%s/f.db", fuzz_folder());
    st = sl_store_open(path, SL_STORE_WRITE, &err);
    FUZZ_MUST(st && !sl_lease_self(&me, &err) && !sl_jobs_create(st, &job, &id, &err));
    FUZZ_MUST(!sl_jobs_begin(st, id, &me, NULL, &attempt, &err));
    w = sl_writer_create(st, id, attempt, &err);
    FUZZ_MUST(w && !sl_writer_begin(w, &err));
    for (int64_t i = 1; i <= 100; i++)
        FUZZ_MUST(!sl_writer_metric(w, i, 1, "lr", 0.5, &err));
    FUZZ_MUST(!sl_writer_rank(w, 0, "host", 1, "cpu", &err) && !sl_writer_commit(w, &err));
    sl_writer_destroy(w);
    sl_store_close(st);
    snprintf(dir, sizeof dir, "%s/runs/1/attempt-1", fuzz_folder());
    FUZZ_MUST(!sl_fs_mkdirs(dir, 0700, &err));
    snprintf(dir, sizeof dir, "%s/runs/1/attempt-1/rank-0.log", fuzz_folder());
    FUZZ_MUST(!sl_fs_write_atomic(dir, "line\xff\n", 6, 0600, &err));
    conf.db = path;
    server = sl_server_start(&conf, &err);
    FUZZ_MUST(server && !sl_token_load(fuzz_folder(), &token, &err));
    atexit(stop);
}

/* Send, say that nothing more comes, read for a moment. The number of bytes that came back. */
static size_t talk(const char *p, size_t n, char *ret, size_t size)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)sl_server_port(server)),
                            .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct timeval patience = {.tv_usec = 50000};
    struct linger at_once = {1, 0}; /* no port stays taken for a minute */
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    size_t got = 0;
    ssize_t k;
    int rc = -1;

    FUZZ_MUST(fd >= 0);
    /* thousands of connections a second use this machine's ports up: they come back */
    for (int i = 0; i < 700 && (rc = connect(fd, (struct sockaddr *)&a, sizeof a)); i++) {
        FUZZ_MUST(errno == EADDRNOTAVAIL);
        usleep(100000);
    }
    FUZZ_MUST(!rc);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    send(fd, p, n, MSG_NOSIGNAL);
    shutdown(fd, SHUT_WR);
    while (got < size && (k = recv(fd, ret + got, size - got, 0)) > 0) {
        got += (size_t)k;
        if (got > 40 && strstr(ret, "text/event-stream"))
            break; /* has no end */
    }
    close(fd);
    return got;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static char answer[1 << 16];
    static const char good[] = "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    static long runs;
    const uint8_t *end = memchr(data, '\n', n);
    struct sl_buf b;

    if (!server)
        start();
    memset(answer, 0, sizeof answer);
    talk((const char *)data, n, answer, sizeof answer - 1);
    FUZZ_MUST(!strstr(answer, token.text)); /* nobody gets in, or told how, without it */
    if (!strncmp(answer, "HTTP/1.1 200", 12) && !memmem(data, n, "/healthz", 8))
        FUZZ_MUST(!strstr(answer, "\"jobs\"") && !strstr(answer, "\"job\""));
    if (end) {
        sl_buf_init(&b, 1 << 20);
        sl_buf_add(&b, data, (size_t)(end + 1 - data));
        sl_buf_printf(&b, "Authorization: Bearer %s\r\nHost: 127.0.0.1\r\nConnection: close\r\n",
                      token.text);
        sl_buf_add(&b, end + 1, (size_t)(data + n - end - 1));
        sl_buf_str(&b, "\r\n\r\n");
        memset(answer, 0, sizeof answer);
        talk(b.p, b.len, answer, sizeof answer - 1);
        FUZZ_MUST(strncmp(answer, "HTTP/1.1 500", 12));
        sl_buf_fini(&b);
    }
    if (++runs % 64 == 1) {
        memset(answer, 0, sizeof answer);
        talk(good, sizeof good - 1, answer, sizeof answer - 1);
        FUZZ_MUST(!strncmp(answer, "HTTP/1.1 200", 12));
    }
    return 0;
}
