#include "executor/models/models.h"

#include <string.h>

static const struct sl_model *const models[] = {&sl_model_gpt};

const struct sl_model *sl_model_find(const char *kind, struct sl_err *err)
{
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        if (!strcmp(models[i]->kind, kind))
            return models[i];
    sl_fail(err, SL_USAGE, "there is no model \"%s\"", kind);
    sl_hint(err, "This version knows \"gpt\".");
    return NULL;
}
