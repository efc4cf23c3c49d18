#ifndef SL_WEB_TOKEN_H
#define SL_WEB_TOKEN_H

/*
 * token.h - the secret that opens the page: 256 random bits in a file that only its owner reads
 *
 * Login nodes are shared, so it is needed on loopback, too.
 */

#include "common/err.h"

struct sl_token {
    char text[65];   /* 64 hex digits */
    char cookie[32]; /* the cookie's name: differs between state folders seen on one host name */
};

/*
 * Read DIR/token, made (mode 0600) when absent. SL_USAGE: others may read it, it is not ours, or it
 * is no token; the hint says what to do.
 */
int sl_token_load(const char *dir, struct sl_token *ret, struct sl_err *err);

/* 1 when equal, in time that does not depend on where they differ. NULL is never right. */
int sl_token_right(const struct sl_token *t, const char *text);

#endif
