#ifndef SL_ADDRESS_H
#define SL_ADDRESS_H

/*
 * address.h - the addresses of this machine that ranks of other nodes can try
 *
 * Named interfaces (SHARDLAUNCH_IFNAME, a list with commas), else every one that is up, that of the
 * default route first. IPv4 before IPv6; loopback only when it is named or there is nothing else;
 * no link-local IPv6, which means nothing without the other end's interface.
 */

#include <sys/socket.h>

#include "common/err.h"

enum { SL_ADDRESS_MAX = 8, SL_ADDRESS_TEXT = 64 };

struct sl_address {
    struct sockaddr_storage at; /* port 0 */
    socklen_t len;
    char dev[32]; /* interface */
};

/*
 * Up to SL_ADDRESS_MAX addresses into ret; their number. ifname NULL or "": not chosen. SL_USAGE:
 * no interface of such a name has an address; SL_SYSTEM: this machine has no address at all.
 */
int sl_address_list(const char *ifname, struct sl_address *ret, struct sl_err *err);

/* "10.0.0.1:4711" or "[fd00::1]:4711"; and back: 0, or -1 when the text is no such address. */
void sl_address_print(const struct sockaddr_storage *a, char *ret, int size);
int sl_address_parse(const char *text, struct sockaddr_storage *ret, socklen_t *len);

#endif
