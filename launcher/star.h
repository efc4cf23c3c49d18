#ifndef SL_STAR_H
#define SL_STAR_H

/*
 * star.h - framed messages over TCP between the job's agents: each has one connection to the first
 *
 * Nothing here waits but dial and the two handshakes: what cannot be sent at
 * once stays in the connection's buffer. A peer that sends a message longer than SL_STAR_MAX, or
 * whose buffer grows beyond it, is treated as gone. Both ends run the same program (the handshake
 * says so), so integers go as they are. One thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/err.h"

enum {
    SL_STAR_ADDRESS = 240,   /* "IP,IP,...:PORT" */
    SL_STAR_TOKEN = 16,      /* random bytes */
    SL_STAR_MAX = 256 << 20, /* bytes of a message, and of all that wait in one buffer */
};

struct sl_star_head {
    uint32_t type, len; /* len: bytes behind the head */
    int32_t a, b, c, d;
};

struct sl_star_conn {
    int fd; /* -1: gone */
    struct sl_buf in, out;
    uint64_t heard; /* ns: when something last came */
};

/*
 * Listen on a port that the kernel chooses. `address` gets the IPv4 addresses of executor/address.h:
 * which of them a peer reaches is not ours to know, so it tries them. `interfaces`:
 * SHARDLAUNCH_IFNAME, or NULL. The descriptor, or -1.
 */
int sl_star_listen(char address[SL_STAR_ADDRESS], const char *interfaces, struct sl_err *err);

/*
 * Connect to the first of the addresses at which the owner of `theirs` answers, as number `index`. It
 * may be busy for long before it answers; its death ends the wait, and so does `go_on(user)`, called
 * each 100 ms, when it says 0 (SL_BUSY). SL_SYSTEM: nobody is there.
 */
int sl_star_dial(struct sl_star_conn *c, const char *address, int index, const unsigned char *theirs,
                 const unsigned char *mine, int (*go_on)(void *user), void *user,
                 struct sl_err *err);

/*
 * Take one connection that waits at `fd` and hear who it is; at most 2 s. Its index into *index.
 * `token(user, index)` lends the token of that peer, NULL: there is none. -1: nobody we know.
 */
int sl_star_accept(struct sl_star_conn *c, int fd, const unsigned char *mine,
                   const unsigned char *(*token)(void *user, int index), void *user, int *index);

/* Queue a message and send what goes. -1: the peer is gone (and stays so). */
int sl_star_put(struct sl_star_conn *c, uint32_t type, int a, int b, int d, const void *data,
                size_t len);
int sl_star_flush(struct sl_star_conn *c);
size_t sl_star_waiting(const struct sl_star_conn *c); /* bytes not sent yet */

/* Read what is there and hand out every whole message. -1: the peer is gone. */
typedef void (*sl_star_f)(void *user, const struct sl_star_head *h, const char *data);
int sl_star_read(struct sl_star_conn *c, sl_star_f on, void *user);

void sl_star_close(struct sl_star_conn *c); /* sends what goes at once; a closed one is fine */

#endif
