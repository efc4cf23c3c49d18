/* address.c - interfaces in the order in which they should be tried */
#include "executor/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The interface of the default route by IPv4; "" when there is none. */
static void default_route(char *ret, size_t size)
{
    char line[256], dev[32];
    unsigned long to;
    FILE *f = fopen("/proc/net/route", "re");

    ret[0] = 0;
    while (f && !*ret && fgets(line, sizeof line, f))
        if (sscanf(line, "%31s %lx", dev, &to) == 2 && to == 0)
            snprintf(ret, size, "%s", dev);
    if (f)
        fclose(f);
}

static int named(const char *list, const char *dev)
{
    size_t n = strlen(dev);

    for (const char *p = list; *p; p += strcspn(p, ","), p += *p == ',')
        if (strcspn(p, ",") == n && !strncmp(p, dev, n))
            return 1;
    return 0;
}

/* Lower is tried earlier; -1: not at all. */
static int rank_of(const struct ifaddrs *i, const char *ifname, const char *route)
{
    int six, loop = (i->ifa_flags & IFF_LOOPBACK) != 0;

    if (!i->ifa_addr || !(i->ifa_flags & IFF_UP))
        return -1;
    if (i->ifa_addr->sa_family != AF_INET && i->ifa_addr->sa_family != AF_INET6)
        return -1;
    six = i->ifa_addr->sa_family == AF_INET6;
    if (six
        && IN6_IS_ADDR_LINKLOCAL(
            &((const struct sockaddr_in6 *)(const void *)i->ifa_addr)->sin6_addr))
        return -1;
    if (*ifname && !named(ifname, i->ifa_name))
        return -1;
    return six + 2 * (strcmp(i->ifa_name, route) != 0) + 4 * loop;
}

static int unknown(const struct ifaddrs *all, const char *ifname, struct sl_err *err)
{
    char have[160] = "";
    size_t at = 0;

    for (const struct ifaddrs *i = all; i; i = i->ifa_next)
        if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET
            && at + strlen(i->ifa_name) + 2 < sizeof have)
            at += (size_t)snprintf(have + at, sizeof have - at, "%s%s", at ? ", " : "",
                                   i->ifa_name);
    sl_fail(err, SL_USAGE, "no interface \"%s\" with an address on this node", ifname);
    return sl_hint(err, "Name one of: %s.", *have ? have : "none has an address");
}

int sl_address_list(const char *ifname, struct sl_address *ret, struct sl_err *err)
{
    struct ifaddrs *all = NULL;
    char route[32];
    int n = 0, other = 0;

    ifname = ifname ? ifname : "";
    if (getifaddrs(&all))
        return sl_fail(err, SL_SYSTEM, "cannot list the interfaces: %s", strerror(errno));
    default_route(route, sizeof route);
    for (int want = 0; want < 8; want++) {
        if (want == 4)
            other = n; /* the rest is loopback */
        for (const struct ifaddrs *i = all; i && n < SL_ADDRESS_MAX; i = i->ifa_next) {
            if (rank_of(i, ifname, route) != want || (want >= 4 && other && !*ifname))
                continue;
            ret[n].len = i->ifa_addr->sa_family == AF_INET ? sizeof(struct sockaddr_in)
                                                           : sizeof(struct sockaddr_in6);
            memset(&ret[n].at, 0, sizeof ret[n].at);
            memcpy(&ret[n].at, i->ifa_addr, ret[n].len);
            snprintf(ret[n].dev, sizeof ret[n].dev, "%s", i->ifa_name);
            n++;
        }
    }
    if (!n && *ifname)
        n = unknown(all, ifname, err);
    else if (!n)
        n = sl_fail(err, SL_SYSTEM, "this node has no network address");
    freeifaddrs(all);
    return n;
}

void sl_address_print(const struct sockaddr_storage *a, char *ret, int size)
{
    char host[INET6_ADDRSTRLEN] = "?";

    if (a->ss_family == AF_INET) {
        const struct sockaddr_in *v4 = (const void *)a;

        inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host);
        snprintf(ret, (size_t)size, "%s:%d", host, ntohs(v4->sin_port));
        return;
    }
    inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr, host,
              sizeof host);
    snprintf(ret, (size_t)size, "[%s]:%d", host,
             ntohs(((const struct sockaddr_in6 *)(const void *)a)->sin6_port));
}

int sl_address_parse(const char *text, struct sockaddr_storage *ret, socklen_t *len)
{
    struct sockaddr_in *v4 = (void *)ret;
    struct sockaddr_in6 *v6 = (void *)ret;
    const char *colon = strrchr(text, ':');
    char host[INET6_ADDRSTRLEN + 2], *end;
    long port;
    size_t n;

    if (!colon || (n = (size_t)(colon - text)) >= sizeof host)
        return -1;
    port = strtol(colon + 1, &end, 10);
    if (end == colon + 1 || *end || port < 1 || port > 65535)
        return -1;
    memcpy(host, text, n);
    host[n] = 0;
    memset(ret, 0, sizeof *ret);
    if (inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons((uint16_t)port);
        *len = sizeof *v4;
        return 0;
    }
    if (host[0] != '[' || host[n - 1] != ']')
        return -1;
    host[n - 1] = 0;
    if (inet_pton(AF_INET6, host + 1, &v6->sin6_addr) != 1)
        return -1;
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons((uint16_t)port);
    *len = sizeof *v6;
    return 0;
}
