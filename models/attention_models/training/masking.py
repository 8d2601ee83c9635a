"""Which tokens a masked model has to fill in, as Devlin et al. 2019, section 3.1, choose them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from attention_models.forward.model import Model
from attention_models.textbook.transformer import IGNORE

CHOSEN = 0.15  # of a row's tokens have to be said
MASKED, OTHER = 0.8, 0.1  # of the chosen ones become the mask, or a random token; the others stay as they are


@dataclass(frozen=True, slots=True)
class Masking:
    mask: int
    ordinary: Sequence[int]  # ids that are no special tokens

    def masked(self, ids: Sequence[int], places: Sequence[int], rng: random.Random) -> tuple[list[int], list[int]]:
        """What is read of a row, and what is to be said there: IGNORE at all but the chosen of `places`."""
        read, labels = list(ids), [IGNORE] * len(ids)
        for place in rng.sample(places, max(1, round(CHOSEN * len(places)))):
            labels[place] = ids[place]
            drawn = rng.random()
            if drawn < MASKED:
                read[place] = self.mask
            elif drawn < MASKED + OTHER:
                read[place] = rng.choice(self.ordinary)
        return read, labels


def masking_of(model: Model) -> Masking:
    """As the tokenizer of a masked model has it."""
    special = set(model.tokenizer.all_special_ids)
    ordinary = [i for i in range(min(model.info.vocabulary, len(model.tokenizer))) if i not in special]
    return Masking(int(model.tokenizer.mask_token_id), ordinary)
