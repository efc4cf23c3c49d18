#!/usr/bin/env python3
"""Make tied.bin, tied.txt, untied.bin and untied.txt: what PyTorch computes for a small GPT-2.

usage: gpt.py DIR      (see README.md for versions)
       gpt.py --check  logits, loss and gradients against Hugging Face's own GPT2LMHeadModel

The model is GPT-2 as in Radford et al. 2019 and Hugging Face's GPT2LMHeadModel (parameter names are
the same), written here against PyTorch's own operations, in float64, without dropout: layer norm
before each half of a block (eps 1e-5), tanh GELU, causal softmax attention scaled by 1/sqrt(head
width), mean cross-entropy. A linear's weight is stored [out, in] (Hugging Face's Conv1D has [in, out]).
Ten steps: torch's clip_grad_norm_ and torch.optim.AdamW, decay on matrices (embeddings too) and not
on vectors.
"""
import math
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

LAYERS, WIDTH, HEADS, CONTEXT, VOCAB, BATCH, STEPS = 2, 32, 4, 16, 61, 4, 10
LR, DECAY, BETA1, BETA2, EPS, CLIP = 3e-3, 0.1, 0.9, 0.95, 1e-8, 2.2


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_attn = nn.Linear(WIDTH, 3 * WIDTH)
        self.c_proj = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, HEADS, c // HEADS).transpose(1, 2) for y in self.c_attn(x).split(c, 2))
        score = q @ k.transpose(2, 3) / math.sqrt(c // HEADS)
        ahead = torch.ones(t, t, dtype=torch.bool).triu(1)
        y = score.masked_fill(ahead, -math.inf).softmax(3) @ v
        return self.c_proj(y.transpose(1, 2).reshape(b, t, c))


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_fc = nn.Linear(WIDTH, 4 * WIDTH)
        self.c_proj = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1 = nn.LayerNorm(WIDTH)
        self.attn = Attention()
        self.ln_2 = nn.LayerNorm(WIDTH)
        self.mlp = MLP()

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, tied):
        super().__init__()
        self.wte = nn.Embedding(VOCAB, WIDTH)
        self.wpe = nn.Embedding(CONTEXT, WIDTH)
        self.h = nn.ModuleList(Block() for _ in range(LAYERS))
        self.ln_f = nn.LayerNorm(WIDTH)
        if not tied:
            self.lm_head = nn.Linear(WIDTH, VOCAB, bias=False)
        self.tied = tied

    def forward(self, ids):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
        for block in self.h:
            x = block(x)
        return F.linear(self.ln_f(x), self.wte.weight if self.tied else self.lm_head.weight)


def initialise(model):
    """Wide enough that attention is not flat and no bias or gain can be forgotten unseen."""
    for name, p in model.named_parameters():
        if p.dim() == 2:
            p.data.normal_(0, 0.25 if "wte" in name or "lm_head" in name else 0.15)
        elif ".weight" in name:
            p.data.normal_(1, 0.1)
        else:
            p.data.normal_(0, 0.1)
        p.data = p.data.float().double()  # what is stored is what was used


class Writer:
    def __init__(self, stem):
        self.stem, self.data, self.lines = stem, b"", []

    def put(self, name, x):
        x = torch.as_tensor(x)
        kind = "i32" if x.dtype == torch.int64 else "f32"
        raw = x.detach().to(torch.int32 if kind == "i32" else torch.float32).contiguous().numpy()
        dims = " ".join(str(d) for d in x.shape) or "1"
        self.lines.append(f"{name} {kind} {len(self.data)} {dims}")
        self.data += raw.astype("<i4" if kind == "i32" else "<f4").tobytes()

    def close(self):
        with open(self.stem + ".bin", "wb") as f:
            f.write(self.data)
        with open(self.stem + ".txt", "w") as f:
            f.write("\n".join(self.lines) + "\n")


def loss_of(model, tokens):
    logits = model(tokens[:, :-1])
    return logits, F.cross_entropy(logits.reshape(-1, VOCAB), tokens[:, 1:].reshape(-1))


def make(stem, tied):
    torch.manual_seed(20 + tied)
    model = GPT(tied).double()
    initialise(model)
    tokens = torch.randint(0, VOCAB, (STEPS, BATCH, CONTEXT + 1))
    w = Writer(stem)
    w.put("config", torch.tensor([LAYERS, WIDTH, HEADS, CONTEXT, VOCAB, BATCH, STEPS, int(tied)]))
    w.put("adamw", torch.tensor([LR, DECAY, BETA1, BETA2, EPS, CLIP], dtype=torch.float64))
    w.put("tokens", tokens)
    for name, p in model.named_parameters():
        w.put("init." + name, p)

    logits, loss = loss_of(model, tokens[0])
    loss.backward()
    w.put("logits", logits)
    w.put("token_loss", F.cross_entropy(logits.transpose(1, 2), tokens[0, :, 1:], reduction="none"))
    w.put("loss", loss)
    for name, p in model.named_parameters():
        w.put("grad." + name, p.grad)

    matrices = [p for p in model.parameters() if p.dim() == 2]
    vectors = [p for p in model.parameters() if p.dim() == 1]
    adamw = torch.optim.AdamW([{"params": matrices, "weight_decay": DECAY},
                               {"params": vectors, "weight_decay": 0.0}],
                              lr=LR, betas=(BETA1, BETA2), eps=EPS)
    losses, norms = [], []
    for step in range(STEPS):
        adamw.zero_grad()
        _, loss = loss_of(model, tokens[step])
        loss.backward()
        norms.append(nn.utils.clip_grad_norm_(model.parameters(), CLIP).item())
        adamw.step()
        losses.append(loss.item())
    w.put("losses", torch.tensor(losses, dtype=torch.float64))
    w.put("norms", torch.tensor(norms, dtype=torch.float64))
    for name, p in model.named_parameters():
        w.put("final." + name, p)
    w.close()
    print(f"{stem}: {len(w.data)} bytes; losses {losses}; norms {norms}", file=sys.stderr)


def check(tied):
    from transformers import GPT2Config, GPT2LMHeadModel
    torch.manual_seed(1)
    ours = GPT(tied).double()
    initialise(ours)
    theirs = GPT2LMHeadModel(GPT2Config(
        vocab_size=VOCAB, n_positions=CONTEXT, n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS,
        resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, tie_word_embeddings=tied)).double()
    other = {k.removeprefix("transformer."): p for k, p in theirs.named_parameters()}
    turned = {k for k in other if k.endswith("weight") and (".attn." in k or ".mlp." in k)}
    for k, p in ours.named_parameters():
        other[k].data = p.data.T.clone() if k in turned else p.data.clone()
    tokens = torch.randint(0, VOCAB, (BATCH, CONTEXT + 1))
    logits, loss = loss_of(ours, tokens)
    loss.backward()
    logits2 = theirs(tokens[:, :-1]).logits
    F.cross_entropy(logits2.reshape(-1, VOCAB), tokens[:, 1:].reshape(-1)).backward()
    torch.testing.assert_close(logits2, logits, rtol=1e-10, atol=1e-10)
    for k, p in ours.named_parameters():
        g = other[k].grad
        torch.testing.assert_close(g.T if k in turned else g, p.grad, rtol=1e-8, atol=1e-12)
    print(f"tied={tied}: logits and {len(other)} gradients agree")


torch.set_num_threads(1)
if sys.argv[1] == "--check":
    check(True)
    check(False)
else:
    make(sys.argv[1] + "/tied", True)
    make(sys.argv[1] + "/untied", False)
