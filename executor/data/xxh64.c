#include "executor/data/xxh64.h"

#include <string.h>

static const uint64_t p1 = 0x9e3779b185ebca87u, p2 = 0xc2b2ae3d27d4eb4fu, p3 = 0x165667b19e3779f9u,
                      p4 = 0x85ebca77c2b2ae63u, p5 = 0x27d4eb2f165667c5u;

static uint64_t rotl(uint64_t x, int r)
{
    return x << r | x >> (64 - r);
}

static uint64_t read64(const unsigned char *p)
{
    uint64_t x;

    memcpy(&x, p, sizeof x);
    return x;
}

static uint64_t mix(uint64_t acc, uint64_t lane)
{
    return rotl(acc + lane * p2, 31) * p1;
}

static void stripe(uint64_t acc[4], const unsigned char *p)
{
    for (int i = 0; i < 4; i++)
        acc[i] = mix(acc[i], read64(p + 8 * i));
}

void sl_xxh64_start(struct sl_xxh64 *h)
{
    *h = (struct sl_xxh64){.acc = {p1 + p2, p2, 0, 0 - p1}};
}

void sl_xxh64_add(struct sl_xxh64 *h, const void *data, size_t n)
{
    const unsigned char *p = data;
    size_t have = h->total % 32;

    h->total += n;
    if (have + n < 32) {
        if (n)
            memcpy(h->rest + have, p, n);
        return;
    }
    if (have) {
        size_t need = 32 - have;

        memcpy(h->rest + have, p, need);
        stripe(h->acc, h->rest);
        p += need;
        n -= need;
    }
    for (; n >= 32; p += 32, n -= 32)
        stripe(h->acc, p);
    if (n)
        memcpy(h->rest, p, n);
}

uint64_t sl_xxh64_end(const struct sl_xxh64 *h)
{
    const unsigned char *p = h->rest;
    size_t n = h->total % 32;
    uint64_t x = h->acc[2] + p5; /* acc[2] is still the seed when no stripe came */

    if (h->total >= 32) {
        x = rotl(h->acc[0], 1) + rotl(h->acc[1], 7) + rotl(h->acc[2], 12) + rotl(h->acc[3], 18);
        for (int i = 0; i < 4; i++)
            x = (x ^ mix(0, h->acc[i])) * p1 + p4;
    }
    x += h->total;
    for (; n >= 8; p += 8, n -= 8)
        x = rotl(x ^ mix(0, read64(p)), 27) * p1 + p4;
    if (n >= 4) {
        uint32_t w;

        memcpy(&w, p, sizeof w);
        x = rotl(x ^ w * p1, 23) * p2 + p3;
        p += 4;
        n -= 4;
    }
    for (; n; p++, n--)
        x = rotl(x ^ *p * p5, 11) * p1;
    x = (x ^ x >> 33) * p2;
    x = (x ^ x >> 29) * p3;
    return x ^ x >> 32;
}

uint64_t sl_xxh64(const void *data, size_t n)
{
    struct sl_xxh64 h;

    sl_xxh64_start(&h);
    sl_xxh64_add(&h, data, n);
    return sl_xxh64_end(&h);
}
