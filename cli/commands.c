#include "cli/commands.h"

#include <string.h>

static const struct sl_cmd *const all[] = {
    &sl_cmd_run,
    &sl_cmd_retry,
    &sl_cmd_submit,
    &sl_cmd_plan,
    &sl_cmd_check,
    &sl_cmd_list,
    &sl_cmd_show,
    &sl_cmd_logs,
    &sl_cmd_serve,
    &sl_cmd_data,
    &sl_cmd_export,
    &sl_cmd_rank,
    &sl_cmd_version,
};

const struct sl_cmd *const *sl_commands(int *n)
{
    *n = (int)(sizeof all / sizeof *all);
    return all;
}

const struct sl_cmd *sl_command_find(const char *name)
{
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!strcmp(all[i]->name, name))
            return all[i];
    return NULL;
}

int sl_exit_status(enum sl_code code)
{
    switch (code) {
    case SL_OK:
        return SL_EXIT_OK;
    case SL_USAGE:
        return SL_EXIT_USAGE;
    case SL_PEER:
        return SL_EXIT_FAILED;
    case SL_SYSTEM:
    case SL_BUSY:
    case SL_BUG:
        break;
    }
    return SL_EXIT_MACHINE;
}
