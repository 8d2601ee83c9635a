"""A model of one layer whose heads each do one thing, written down rather than trained."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_models import adopt, attend
from attention_models.forward.model import Model
from tests.models.own_modules import CHARACTERS, CONTEXT, VOCABULARY

HEADS = ("previous", "self", "first", "special", "copy", "induction", "next", "even")
_SURE = 60.0
_MARKS = [ord(char) for char in ".,!?"]


class HandBuilt(nn.Module):
    """Queries and keys are one-hot vectors of places and of tokens, so that a score is either large or 0."""

    def __init__(self) -> None:
        super().__init__()
        self.wte = nn.Embedding(VOCABULARY, 8)
        self.head = nn.Linear(8, VOCABULARY)

    def forward(self, ids: Tensor) -> Tensor:
        tokens = ids.shape[1]
        place = torch.eye(CONTEXT)[:tokens].expand(len(ids), -1, -1)
        token = F.one_hot(ids, VOCABULARY).float()
        nothing = torch.zeros_like(token)
        before, after = (torch.roll(token, by, dims=1) for by in (1, -1))
        before[:, 0], after[:, -1] = 0, 0
        is_mark = torch.isin(ids, torch.tensor(_MARKS))[..., None].float().expand(-1, -1, VOCABULARY)
        ones = torch.ones_like(token) / VOCABULARY
        not_here = -2 * place  # not the query itself, which is no earlier copy
        pairs = {  # (query over places, query over tokens), (key over places, key over tokens)
            "previous": ((torch.roll(place, -1, dims=2), nothing), (place, nothing)),
            "self": ((place, nothing), (place, nothing)),
            "first": ((torch.eye(CONTEXT)[:1].expand(len(ids), tokens, -1), nothing), (place, nothing)),
            "special": ((0 * place, ones), (0 * place, is_mark)),
            "copy": ((not_here, token), (place, token)),
            "induction": ((not_here, token), (place, before)),
            "next": ((0 * place, after), (0 * place, token)),
            "even": ((0 * place, nothing), (0 * place, nothing)),
        }
        made = [[torch.cat(pairs[name][side], dim=-1) for name in HEADS] for side in range(2)]
        q, k = (torch.stack(side, dim=1) for side in made)  # (batch, heads, tokens, places + vocabulary)
        v = self.wte(ids)[:, None].expand(-1, len(HEADS), -1, -1)
        mixed = attend(self, q, k, v, causal=True, scale=_SURE)
        logits: Tensor = self.head(mixed.mean(dim=1))
        return logits


def hand_built() -> Model:
    return adopt(HandBuilt(), CHARACTERS)
