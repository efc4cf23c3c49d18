#!/usr/bin/env python3
"""The reference shape of tests/bench/ceiling.sh in plain PyTorch: median step, tokens/s, peak RSS.

usage: pytorch.py VOCAB STEPS [THREADS]. GPT of 6 layers, 6 heads, width 384, context 256, batch 4,
fp32, tied head, AdamW (fused where this version has it on the CPU), norm clipping at 1: what the job
file of ceiling.sh asks of shardlaunch. Prints one line: median_ms tokens_per_s peak_rss_MiB, and the
versions on stderr.
"""
import resource
import statistics
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

LAYERS, HEADS, WIDTH, CONTEXT, BATCH = 6, 6, 384, 256, 4


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.c_attn, self.c_proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.c_fc, self.c_out = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = (
            y.view(b, t, HEADS, WIDTH // HEADS).transpose(1, 2)
            for y in self.c_attn(self.ln_1(x)).split(WIDTH, dim=2)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.c_proj(y.transpose(1, 2).reshape(b, t, WIDTH))
        return x + self.c_out(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, vocab):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.h = nn.ModuleList(Block() for _ in range(LAYERS))
        self.ln_f = nn.LayerNorm(WIDTH)

    def forward(self, ids, targets):
        x = self.wte(ids) + self.wpe.weight
        for block in self.h:
            x = block(x)
        logits = F.linear(self.ln_f(x), self.wte.weight)
        return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.reshape(-1))


def main():
    vocab, steps = int(sys.argv[1]), int(sys.argv[2])
    torch.set_num_threads(int(sys.argv[3]) if len(sys.argv) > 3 else 2)
    torch.manual_seed(1)
    model = GPT(vocab)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.01, fused=True)
    times = []
    for _ in range(steps):
        ids = torch.randint(0, vocab, (BATCH, CONTEXT + 1))
        start = time.perf_counter()
        loss = model(ids[:, :-1], ids[:, 1:])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        loss.item()
        times.append(1e3 * (time.perf_counter() - start))
    median = statistics.median(times[2:])
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{median:.1f} {1e3 * BATCH * CONTEXT / median:.0f} {rss:.0f}")
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads", file=sys.stderr)


if __name__ == "__main__":
    main()
