#ifndef SL_IDSET_H
#define SL_IDSET_H

/*
 * idset.h - lists of host names as Slurm writes them: "a-b[01-03,7],c", "n[1-2]x[3-4]", "login"
 *
 * A bracket holds numbers and ranges, which keep their leading zeros; several brackets in a name
 * mean every combination, the last one fastest. Names come in the order of the text; a name
 * that comes twice is kept twice.
 */

#include <stddef.h>

#include "common/err.h"

enum { SL_IDSET_MAX = 65536 }; /* names of one list */

struct sl_idset {
    int n, room;
    char **name;
};

void sl_idset_init(struct sl_idset *s);
void sl_idset_fini(struct sl_idset *s);

/*
 * Add the names of `list` to the set. SL_USAGE: not such a list (the message says where), or more
 * than SL_IDSET_MAX names; the set may hold some of them then. "" is a list of none.
 */
int sl_idset_parse(struct sl_idset *s, const char *list, struct sl_err *err);

/*
 * The set as a short list: neighbours that differ only in their last number, counting up with equal
 * width, become a bracket; parsing it gives the same names. Cut with "..." to fit. Returns ret.
 */
const char *sl_idset_text(const struct sl_idset *s, char *ret, size_t size);

#endif
