/* export.c - a checkpoint as files that other programs read */
#include <inttypes.h>

#include "cli/commands.h"
#include "executor/checkpoint/checkpoint.h"
#include "executor/checkpoint/export.h"

static const struct sl_opt options[] = {
    {.name = "to",
     .type = SL_OPT_TEXT,
     .arg = "DIR",
     .help = "Folder for model.safetensors and config.json; made when missing."},
};

static int run(const struct sl_args *args, struct sl_err *err)
{
    const char *to = sl_args_text(args, "to", "");
    char from[SL_CKPT_PATH];
    int n;

    if (!*to) {
        sl_fail(err, SL_USAGE, "export needs --to DIR");
        return sl_hint(err, "As in: shardlaunch export CHECKPOINT --to model/");
    }
    if (sl_ckpt_find(sl_args_operands(args, &n)[0], from, err) || sl_ckpt_export(from, to, err))
        return -1;
    sl_say("exported %s to %s", from, to);
    return SL_EXIT_OK;
}

const struct sl_cmd sl_cmd_export = {
    .name = "export",
    .operands = "CHECKPOINT",
    .least = 1,
    .most = 1,
    .summary = "Write a checkpoint's weights as model.safetensors and config.json.",
    .details = "CHECKPOINT is a folder step-..., or a folder of such: then the newest. The files load"
               " in Hugging Face transformers as GPT2LMHeadModel. Every byte is verified on its way.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .run = run,
};
