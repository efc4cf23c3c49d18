#ifndef SL_CONF_SAY_H
#define SL_CONF_SAY_H

/* conf_say.h - the words of conf.c: what a value is, what it should be, what a key may have meant */

#include "common/conf.h"
#include "common/toml.h"

/* "ten" (a string), 3 (an integer), an array: as it may stand behind "is". */
const char *sl_conf_show(const struct sl_toml_value *v, char *buf, size_t size);

/* The words and aliases of an option, at most `most`. Returns how many. */
int sl_conf_words(const struct sl_conf_opt *o, const char **ret, int most);

int sl_conf_is_table(const struct sl_conf_opt *opts, int n, const char *path); /* 1: a key's parent */

/* Fail: no option is called v->path. The hint names the nearest, or the table it belongs to. */
int sl_conf_unknown(const struct sl_conf_opt *opts, int n, const struct sl_toml_value *v,
                    struct sl_err *err);

#endif
