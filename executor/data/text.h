#ifndef SL_TEXT_H
#define SL_TEXT_H

/*
 * text.h - a file's bytes, mapped read-only, and the check that they are UTF-8
 *
 * The mapping shows the file as it is: one that is cut short while mapped ends the process with
 * SIGBUS, so files of ours are only ever replaced by rename.
 */

#include <stddef.h>

#include "common/err.h"

struct sl_text {
    const unsigned char *data;
    size_t size; /* bytes, at least 1 */
};

/*
 * Map the regular file `path`. SL_USAGE: it is missing, not a regular file, or empty. SL_SYSTEM:
 * it cannot be read. On failure *text is {NULL, 0}.
 */
int sl_text_open(struct sl_text *text, const char *path, struct sl_err *err);
void sl_text_close(struct sl_text *text); /* a closed or zeroed one is fine */

/*
 * Strict UTF-8 (RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF). SL_USAGE
 * names path:line:column (columns count characters, from 1) and the byte offset of the first
 * bad byte.
 */
int sl_text_check_utf8(const struct sl_text *text, const char *path, struct sl_err *err);

#endif
