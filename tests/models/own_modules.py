"""Small modules as a person may have them: attention of torch's, of nn.MultiheadAttention, and of their own."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_models import attend

WIDTH, HEADS, VOCABULARY, CONTEXT = 32, 4, 128, 64

CHARACTERS = (lambda text: [min(ord(c), 127) for c in text], lambda ids: "".join(map(chr, ids)))


class Attention(nn.Module):
    """Causal self-attention; `how` is "sdpa", "attend" or "own"."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, _ = x.shape
        q, k, v = (t.view(batch, tokens, HEADS, -1).transpose(1, 2) for t in self.qkv(x).split(WIDTH, dim=-1))
        if self.how == "sdpa":
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        elif self.how == "attend":
            y = attend(self, q, k, v, causal=True)
        else:
            y = causal_attention(q, k, v)
        out: Tensor = self.out(y.transpose(1, 2).reshape(batch, tokens, WIDTH))
        return out


def causal_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return causal_weights(q, k) @ v


def causal_weights(q: Tensor, k: Tensor) -> Tensor:
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    return torch.softmax(scores + torch.full_like(scores, -math.inf).triu(1), dim=-1)


class Writer(nn.Module):
    """A decoder of two blocks over characters. As nanoGPT, it gives the last token's logits unless it has targets."""

    def __init__(self, how: str = "sdpa", last_only: bool = False) -> None:
        super().__init__()
        torch.manual_seed(7)
        self.last_only = last_only
        self.wte, self.wpe = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList([nn.Sequential(nn.LayerNorm(WIDTH), Attention(how)) for _ in range(2)])
        self.dropout = nn.Dropout(0.5)
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, ids: Tensor, targets: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = x + self.dropout(block(x))
        if self.last_only and targets is None:
            x = x[:, -1:]
        return self.head(x), None


class Reader(nn.Module):
    """torch's own encoder: nn.TransformerEncoder, and through it nn.MultiheadAttention."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(7)
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 2 * WIDTH, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)

    def forward(self, ids: Tensor) -> Tensor:
        states: Tensor = self.encoder(self.tokens(ids))
        return states


class Asked(nn.Module):
    """nn.MultiheadAttention in one layer, made with `made` and called with what `options` gives for the ids."""

    def __init__(self, made: dict[str, Any], options: Callable[[Tensor], dict[str, Any]]) -> None:
        super().__init__()
        torch.manual_seed(7)
        self.options, self.first = options, made.get("batch_first", False)
        self.tokens, self.head = nn.Embedding(VOCABULARY, WIDTH), nn.Linear(WIDTH, VOCABULARY)
        self.key = nn.Linear(WIDTH, made["kdim"]) if "kdim" in made else nn.Identity()
        self.value = nn.Linear(WIDTH, made["vdim"]) if "vdim" in made else nn.Identity()
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, **made)
        for bias in (self.attention.bias_k, self.attention.bias_v):
            if bias is not None:
                nn.init.normal_(bias)
        self.given: Tensor | None = None  # the weights that the last call gave

    def forward(self, ids: Tensor) -> Tensor:
        options = dict(self.options(ids))
        x = self.tokens(ids)  # (1, tokens, width)
        if options.pop("unbatched", False):
            x = x[0]
        elif not self.first:
            x = x.transpose(0, 1)
        y, self.given = self.attention(x, self.key(x), self.value(x), **options)
        y = y[None] if y.dim() == 2 else y if self.first else y.transpose(0, 1)
        logits: Tensor = self.head(y)
        return logits


class Both(nn.Module):
    """nn.Transformer whole: it reads the ids backwards, and writes them on."""

    def __init__(self, norm_first: bool = False) -> None:
        super().__init__()
        torch.manual_seed(7)
        self.tokens, self.head = nn.Embedding(VOCABULARY, WIDTH), nn.Linear(WIDTH, VOCABULARY)
        self.places = nn.Embedding(CONTEXT, WIDTH)
        self.transformer = nn.Transformer(WIDTH, HEADS, 2, 2, 2 * WIDTH, batch_first=True, norm_first=norm_first)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        later = nn.Transformer.generate_square_subsequent_mask(ids.shape[1], dtype=x.dtype)
        logits: Tensor = self.head(self.transformer(x.flip(1), x, tgt_mask=later, tgt_is_causal=True))
        return logits


class PaddedReader(nn.Module):
    """torch's own encoder and its fast path, which puts zeros in the place of the token 0."""

    def __init__(self, norm: bool, layers: int = 2) -> None:
        super().__init__()
        torch.manual_seed(7)
        self.tokens, self.head = nn.Embedding(VOCABULARY, WIDTH), nn.Linear(WIDTH, VOCABULARY)
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 2 * WIDTH, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, norm=nn.LayerNorm(WIDTH) if norm else None)

    def forward(self, ids: Tensor) -> Tensor:
        logits: Tensor = self.head(self.encoder(self.tokens(ids), src_key_padding_mask=ids == 0))
        return logits


class Blind(nn.Module):
    """Attends to nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.head = nn.Embedding(VOCABULARY, WIDTH), nn.Linear(WIDTH, VOCABULARY)

    def forward(self, ids: Tensor) -> Tensor:
        logits: Tensor = self.head(self.tokens(ids))
        return logits
