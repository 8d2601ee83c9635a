"""Rotary positions (RoPE: Su et al. 2021), read from a loaded model's own rotary module.

Each pair of dimensions of q and k, taken as a complex number z, is turned by its token's place p: z exp(i p f), with a
frequency f for each pair. The real part of the product of a turned q and a turned k then depends on their distance
alone. Which dimensions make a pair differs from family to family: it is found out by an experiment, not from a list.
"""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from attention_models.forward.model import Model
from attention_models.forward.rotary import frequencies
from attention_models.forward.run import run
from attention_models.forward.trace import Trace
from attention_models.protocol.arrays import read_only
from attention_models.protocol.interventions import Intervention, Positions
from attention_models.protocol.positions import RotationView
from attention_models.protocol.values import Site

SHORTEST_CURVE = 64  # distances that are drawn at least, also for a text of three words
_PROBE_TOKENS = 12
_TOLERANCE = 0.02  # of the largest component: bfloat16 rounds to 1 in 256, a wrong pairing is off by the whole


@dataclass(frozen=True, slots=True)
class Pairing:
    """Which dimensions of a head make the pairs: `width` of them from `start`, neighbours or first with second half."""

    start: int
    width: int
    neighbours: bool

    def pairs(self, vector: np.ndarray) -> np.ndarray:
        """(..., head_dim) to (..., pairs) complex."""
        turned = vector[..., self.start : self.start + self.width].astype(np.float64)
        if self.neighbours:
            return turned[..., 0::2] + 1j * turned[..., 1::2]
        half = self.width // 2
        return turned[..., :half] + 1j * turned[..., half:]


def rotation_view(
    model: Model, trace: Trace, site: Site, head: int, query: int, key: int
) -> tuple[RotationView | None, str]:
    """How q and k of one cell were turned, and their product at other distances; or None and the reason."""
    found = frequencies(model, site)  # before the experiment, whose short text may change them
    pairing = _pairing(model, trace, len(found.inverse))
    if pairing is None:
        return None, "Which dimensions this model turns together could not be made out, so no hands are drawn."
    x = trace.inputs[trace.index(site)]
    q = x.query[0, head, query].cpu().double().numpy()  # (head_dim,)
    k = x.key[0, head // x.group, key].cpu().double().numpy()
    query_place, key_place = (_place(trace.interventions, token) for token in (query, key))
    query_angle, key_angle = query_place * found.inverse, key_place * found.inverse  # (pairs,)
    query_hands, key_hands = pairing.pairs(q), pairing.pairs(k)
    untouched = float(q @ k) - float((query_hands * key_hands.conj()).real.sum())  # dimensions that are not turned
    farthest = max(site.keys - 1, SHORTEST_CURVE - 1)
    apart = np.arange(0 if site.causal else -farthest, farthest + 1)
    together = query_hands * key_hands.conj() * np.exp(-1j * (query_angle - key_angle))  # as at distance 0
    products = (together[None] * np.exp(1j * apart[:, None] * found.inverse)).real.sum(axis=1) + untouched
    return RotationView(
        query_hands=read_only(query_hands),
        key_hands=read_only(key_hands),
        query_angles=read_only(query_angle),
        key_angles=read_only(key_angle),
        parts=read_only((query_hands * key_hands.conj()).real),
        untouched=untouched,
        product=float(q @ k),
        distance=query_place - key_place,
        distances=read_only(apart),
        products=read_only(products),
    ), ""


def _place(interventions: tuple[Intervention, ...], token: int) -> int:
    """The position that a token was given."""
    mode = next((item for item in interventions if isinstance(item, Positions)), None)
    if mode is None:
        return token
    return 0 if mode.mode == "off" else token + mode.by


_known: WeakKeyDictionary[Model, Pairing | None] = WeakKeyDictionary()


def _pairing(model: Model, trace: Trace, pairs: int) -> Pairing | None:
    """The pairing under which turning back what the first layer had gives what it has with all positions at 0."""
    if model not in _known:
        _known[model] = _find_pairing(model, [token.id for token in trace.tokens[:_PROBE_TOKENS]], pairs)
    return _known[model]


def _find_pairing(model: Model, ids: list[int], pairs: int) -> Pairing | None:
    if model.seq2seq:
        return None
    if len(ids) < 2:
        ids = ids * 2  # one token alone stands at 0 and is not turned
    turned = run(model, ids)
    still = run(model, ids, interventions=[Positions("off")])
    found = frequencies(model, turned.sites[0])
    q, plain = (t.inputs[0].query[0].cpu().double().numpy() for t in (turned, still))  # (heads, tokens, head_dim)
    size = q.shape[-1]
    back = np.exp(-1j * np.arange(len(ids))[:, None] * found.inverse)  # (tokens, pairs)
    best, smallest = None, _TOLERANCE * float(np.abs(plain).max())
    for start in dict.fromkeys((0, size - 2 * pairs)):
        for neighbours in (False, True):
            pairing = Pairing(start, 2 * pairs, neighbours)
            error = float(np.abs(pairing.pairs(q) * back - pairing.pairs(plain)).max())
            if error < smallest:
                best, smallest = pairing, error
    return best
