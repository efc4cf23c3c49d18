#!/usr/bin/env python3
"""Validation loss of an exported model by Hugging Face transformers, to hold against the run's valid.loss.

usage: export.py MODEL TEXT VALID_FRACTION SAMPLES
MODEL is a folder that `shardlaunch export` wrote, of an fp32 run with the tokenizer "byte"; TEXT, VALID_FRACTION and SAMPLES
are data.train, data.valid_fraction and train.eval_samples of the run. Needs torch, numpy and transformers.
"""
import sys

import numpy as np
import torch
from transformers import GPT2LMHeadModel

folder, text, fraction, samples = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
model, info = GPT2LMHeadModel.from_pretrained(folder, output_loading_info=True)
for what in ("missing_keys", "unexpected_keys", "mismatched_keys"):
    if info[what]:
        sys.exit(f"{what}: {info[what]}")
context = model.config.n_positions
with open(text, "rb") as f:
    tokens = np.frombuffer(f.read(), np.uint8).astype(np.int64)
valid = tokens[len(tokens) - int(len(tokens) * fraction):]
rows = torch.tensor(np.stack([valid[i * context:i * context + context + 1] for i in range(samples)]))
with torch.no_grad():
    logits = model.double().eval()(rows[:, :-1]).logits
print(torch.nn.functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten()).item())
