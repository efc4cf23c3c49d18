#ifndef SL_CKPT_EXPORT_H
#define SL_CKPT_EXPORT_H

/*
 * export.h - a checkpoint's parameters as the field's usual files
 *
 * model.safetensors, fp32, and config.json, as Hugging Face's GPT2LMHeadModel reads them: names begin
 * with "transformer." (but lm_head's), and a linear layer's weight is [in, out], the transpose of ours.
 * Tied output weights are stored once. Moments are left behind.
 */

#include "common/err.h"

/*
 * Every byte of the parameters is verified on its way. The folder is made; both files appear whole,
 * config.json last. SL_USAGE: damaged, a model that has no such form, or the folder has one of the
 * files already.
 */
int sl_ckpt_export(const char *checkpoint, const char *to, struct sl_err *err);

#endif
