/* version.c - which version this is */
#include "cli/commands.h"
#include "common/json.h"

static const struct sl_opt options[] = {
    {.name = "json", .help = "Print JSON."},
};

static int run(const struct sl_args *args, struct sl_err *err)
{
    struct sl_json j;
    struct sl_buf b;
    int rc;

    sl_buf_init(&b, 1 << 16);
    if (sl_args_given(args, "json")) {
        sl_json_init(&j, &b);
        sl_json_object(&j);
        sl_json_put_str(&j, "version", SL_VERSION);
        sl_json_end(&j);
        sl_buf_char(&b, '\n');
    } else {
        sl_buf_printf(&b, "shardlaunch %s\n", SL_VERSION);
    }
    rc = sl_print(&b, err);
    sl_buf_fini(&b);
    return rc;
}

const struct sl_cmd sl_cmd_version = {
    .name = "version",
    .operands = "",
    .summary = "Print the version.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .run = run,
};
