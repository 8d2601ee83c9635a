"""Which keys a pattern asks about, and which keys a query sees, as lines: "the token before", a causal mask."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from attention_models.attention import attention
from attention_models.attention.inputs import AttentionInputs
from attention_models.protocol.values import Token
from attention_models.roles.token_features import is_punctuation
from attention_models.scripts.script_text import Script

_PLACES = "    i, j = torch.arange(len(q))[:, None], torch.arange(len(k))\n"
_MARKS = "    marks = torch.tensor([word is None or is_punctuation(word) for word in k])\n"

_CELLS = {
    "previous": ("the token before", _PLACES + "    return j == i - 1"),
    "self": ("the token itself", _PLACES + "    return j == i"),
    "first": (
        "the first token that is no padding",
        "    first = next(place for place, id_ in enumerate(k) if id_ >= 0)\n"
        "    return (torch.arange(len(k)) == first).expand(len(q), -1)",
    ),
    "special": ("punctuation and special tokens, whose word is None", _MARKS + "    return marks.expand(len(q), -1)"),
    "copy": (
        "an earlier copy of the same token",
        _PLACES + "    return (torch.tensor(q)[:, None] == torch.tensor(k)) & (j < i)",
    ),
    "induction": (
        "what followed an earlier copy of the same token",
        _PLACES + "    before = [-2, *k[:-1]]  # the token before each key\n"
        "    return (torch.tensor(q)[:, None] == torch.tensor(before)) & (j < i)",
    ),
    "next": (
        "a copy of the word that comes next",
        "    words = [None if word is None or is_punctuation(word) else word for word in k]\n"
        "    after = [*q[1:], None]\n"
        "    return torch.tensor([[word is not None and word == wanted for word in words] for wanted in after])",
    ),
    "rare": (
        "rare words: of a text's words the quarter that comes last in the vocabulary",
        "    words = {id_ for id_, word in k if word is not None and not is_punctuation(word)}\n"
        "    rare = sorted(words)[len(words) - max(1, len(words) // 4) :]\n"
        "    is_rare = [id_ in rare and word is not None and not is_punctuation(word) for id_, word in k]\n"
        "    return torch.tensor(is_rare).expand(len(q), -1)",
    ),
}
"""By pattern: what it is, and the body of `cells_of(q, k)`, of what `tokens_of` gives of queries and of keys."""

BY_WORD = ("special", "next", "rare")
"""Patterns that are told by words."""


def define_cells(script: Script, pattern: str) -> None:
    """Lines that define `cells_of(q, k)`: which keys each query would attend to, (queries, keys) bool."""
    if pattern in BY_WORD:
        script.uses("import unicodedata", "from functools import lru_cache")
        script.source_of(is_punctuation)
    what, body = _CELLS[pattern]
    script.line(f'\ndef cells_of(q, k):\n    """(queries, keys): {what}."""\n{body}\n')


def tokens_of(pattern: str, tokens: Sequence[Token]) -> list[object]:
    """What `cells_of` is given of some tokens: ids (-1 of padding), words (None of special tokens), or both."""
    ids = [-1 if token.padding else token.id for token in tokens]
    words = [None if token.padding or token.special else token.word for token in tokens]
    if pattern == "rare":
        return list(zip(ids, words, strict=True))
    return list(words) if pattern in BY_WORD else list(ids)


# ------------------------------------------------------------------ what is visible


def visible_of(x: AttentionInputs) -> Tensor:
    """Which keys each query of a layer sees: bool, (heads or 1, queries, keys)."""
    masked = attention.masked_cells(x)
    if masked is None:
        return torch.ones(1, x.queries, x.keys, dtype=torch.bool)
    return ~masked[0].cpu().expand(-1, x.queries, x.keys)


def rule_of(visible: Tensor) -> str:
    """Of what each query sees, (queries, keys) bool, an expression in `n` and `m`; "" where no short rule says it."""
    n, m = visible.shape
    i, j = torch.arange(n)[:, None], torch.arange(m)
    cells = visible.cpu()
    ones = torch.ones(n, m, dtype=torch.bool)
    every = "torch.ones(n, m, dtype=torch.bool)"
    if torch.equal(cells, ones):
        return every
    if torch.equal(cells, ones.tril()):
        return f"{every}.tril()"
    most = int(cells.sum(dim=-1).max())
    if torch.equal(cells, ones.tril().triu(1 - most)):
        return f"{every}.tril().triu({1 - most})"
    if n == m and torch.equal(cells, (i - j).abs() <= (most - 1) // 2):
        return f"{every}.tril({(most - 1) // 2}).triu({-((most - 1) // 2)})"
    if torch.equal(cells, (i >= j) & (i // most == j // most)):
        return f"({every}.tril() & (torch.arange(n)[:, None] // {most} == torch.arange(m) // {most}))"
    return ""


def visible_code(script: Script, visible: Tensor, name: str = "visible") -> str:
    """What says which keys each query sees, (heads or 1, queries, keys), in `n` and `m`; else a line with numbers.

    Of those numbers `name` is the name, which then comes back.
    """
    cells = visible.cpu()
    cells = cells[:1] if bool((cells == cells[:1]).all()) else cells
    rule = rule_of(cells[0]) if len(cells) == 1 else ""
    if rule:
        return rule
    seen = cells[0].any(dim=0)  # (keys,): padding is seen by none
    if len(cells) == 1 and not bool(seen.all()):
        ones = torch.ones_like(cells[0])
        for code, open_ in (("", ones), (".tril()", ones.tril())):
            if torch.equal(cells[0], open_ & seen):
                real = f"torch.tensor({seen.int().tolist()}).bool()"
                return f"(torch.ones(n, m, dtype=torch.bool){code} & {real})"
    script.tensor(name, cells, f"({', '.join(map(str, cells.shape))}) False is hidden")
    return name


def masks_of(script: Script, inputs: Sequence[AttentionInputs], called: str) -> list[tuple[str, str, list[int]]]:
    """The different masks of some layers: a name, what it is in `n` and `m`, and the layers that have it.

    Where no rule says it, lines with its cells are written, and both are its name.
    """
    found: dict[bytes, tuple[str, str, list[int]]] = {}
    for layer, x in enumerate(inputs):
        visible = visible_of(x)
        mark = visible.numpy().tobytes()
        if mark not in found:
            name = f"{called}_{len(found)}"
            found[mark] = name, visible_code(script, visible, name), []
        found[mark][2].append(layer)
    return list(found.values())
