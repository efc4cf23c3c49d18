#include "executor/models/models.h"

#include <stdio.h>
#include <string.h>

static const struct sl_model *const models[] = {&sl_model_gpt};

const struct sl_model *sl_model_find(const char *kind, struct sl_err *err)
{
    char known[200];

    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        if (!strcmp(models[i]->kind, kind))
            return models[i];
    sl_fail(err, SL_USAGE, "there is no model \"%s\"", kind);
    snprintf(known, sizeof known, "This version knows ");
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        size_t len = strlen(known);
        snprintf(known + len, sizeof known - len, "%s\"%s\"", i ? ", " : "", models[i]->kind);
    }
    sl_hint(err, "%s.", known);
    return NULL;
}
