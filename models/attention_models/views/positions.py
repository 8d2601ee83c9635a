"""How a loaded model tells positions apart, read from the model itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor, nn

from attention_models.attention.numbers import copied
from attention_models.files.devices import apply
from attention_models.forward.context import Context
from attention_models.forward.model import Model
from attention_models.forward.position_schemes import NoPositions, frequencies, scheme_of
from attention_models.forward.position_tables import table_rows
from attention_models.forward.run import run
from attention_models.forward.trace import Trace
from attention_models.protocol.interventions import Intervention, Positions
from attention_models.protocol.positions import PositionScheme, PositionsRequest, PositionsView, RotationView
from attention_models.protocol.values import Site, read_only, site_tokens
from attention_models.textbook.transformer import Stack

# Rotary positions (RoPE: Su et al. 2021), read from a loaded model's own rotary module.
# Each pair of dimensions of q and k, taken as a complex number z, is turned by its token's place p: z exp(i p f), with
# a frequency f for each pair. The real part of the product of a turned q and a turned k then depends on their distance
# alone. Which dimensions make a pair differs from family to family: it is found out by an experiment, not from a list.


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


@torch.no_grad()
def describe_positions(model: Model, site: Site | None = None) -> PositionScheme:
    """Which scheme `model` has, with its table, frequencies or biases.

    Args:
        site: where to look, for models whose stacks or layers differ; the first stack's table if None.
    """
    scheme = scheme_of(model)
    found = scheme.at(model, site)
    if found is None:
        found = NoPositions().at(model, site)
    return replace(found, off_note=scheme.why_not_off(model), shift_note=scheme.why_not_shifted(model))


def answer(request: PositionsRequest, context: Context) -> PositionsView:
    run = context.run(request.run)
    return positions_view(request, run.model, run.trace)


@torch.no_grad()
def positions_view(request: PositionsRequest, model: Model, trace: Trace) -> PositionsView:
    """The scheme at the site of one cell, with what the positions of its query and key did there.

    Raises:
        IndexError: no such site, head, query or key.
    """
    site = trace.sites[trace.index(request.site)]
    head, query, key = request.head, request.query, request.key
    if not (0 <= head < site.heads and 0 <= query < site.queries and 0 <= key < site.keys):
        raise IndexError(f"There is no cell ({query}, {key}) of head {head}: the map is {site.queries} x {site.keys}.")
    scheme = describe_positions(model, site)
    looking, looked_at = site_tokens(trace, site)
    added = _sum(model, site, trace, looking[query].id, query)
    rotation: RotationView | None = None
    note = ""
    if scheme.frequencies is not None:
        rotation, note = rotation_view(model, trace, site, head, query, key)
    return PositionsView(
        request=request,
        scheme=scheme,
        embedding=added.embedding,
        position=added.position,
        total=added.total,
        sum_note=added.note,
        query_word=looking[query].word,
        key_word=looked_at[key].word,
        rotation=rotation,
        rotation_note=note,
    )


_CONCATENATED = {
    "appended": "They are concatenated: each has dimensions of its own, and is 0 in those of the other.",
    "concatenated": "They are concatenated, and a matrix maps both back to the stream's width, a sum of two maps: "
    "each is shown after its own.",
}
"""What is said of a textbook model's sum, by the config's `positions`."""


class _Sum(NamedTuple):
    embedding: np.ndarray | None
    position: np.ndarray | None
    total: np.ndarray | None
    note: str


def _sum(model: Model, site: Site, trace: Trace, token: int, place: int) -> _Sum:
    """Token embedding, position vector and their sum, as they were in this run."""
    table = scheme_of(model).table_at(site)
    if table is None:
        return _Sum(None, None, None, "Nothing is added to the token's embedding: positions come in at each layer.")
    embed = _embedding(model, table)
    if embed is None:
        return _Sum(None, None, None, "The table of this model's tokens was not found.")
    embedding = apply(embed, torch.tensor([token]))[0].float()
    parent: Any = _parent(model, table)
    if not hasattr(embed, "embed_scale"):
        embedding = embedding * float(getattr(parent, "embed_scale", 1.0))
    rows = table_rows(table)
    mode = next((item for item in trace.interventions if isinstance(item, Positions)), None)
    by = mode.by if mode is not None else 0
    position = torch.zeros_like(rows[0]) if mode is not None and mode.mode == "off" else rows[place + by]
    position = position.float().cpu()
    note = ""
    if isinstance(parent, Stack):
        embedding, position = _joined(parent, embedding, position)
        note = _CONCATENATED.get(parent.config.positions, "")
    if embedding.shape != position.shape:
        return _Sum(None, None, None, "Embedding and position are of different width here, and are not simply added.")
    extra = []
    if hasattr(parent, "token_type_embeddings"):
        extra.append("a token-type vector is added")
    if any(hasattr(parent, name) for name in ("LayerNorm", "layernorm_embedding", "layer_norm_embedding")):
        extra.append("the sum is normalised")
    if extra:
        note = f"Before the first layer {' and '.join(extra)} as well."
    return _Sum(copied(embedding), copied(position), copied(embedding + position), note)


def _joined(stack: Stack, embedding: Tensor, position: Tensor) -> tuple[Tensor, Tensor]:
    """The two as summands of what enters the first block, (width,) each."""
    device = stack.embedding.weight.device
    both = (embedding, torch.zeros_like(position)), (torch.zeros_like(embedding), position)
    first, second = (stack.joined(*(t.to(device) for t in pair)).cpu() for pair in both)
    return first, second


def _embedding(model: Model, positions: nn.Module) -> nn.Module | None:
    """The table of the tokens' vectors."""
    get = getattr(model.module, "get_input_embeddings", None)
    if get is not None:
        found: nn.Module | None = get()
        return found
    tables = (child for child in model.module.modules() if isinstance(child, nn.Embedding) and child is not positions)
    return next((table for table in tables if table.num_embeddings == model.info.vocabulary), None)


def _parent(model: Model, module: nn.Module) -> nn.Module | None:
    parent = model.module_names[module].rpartition(".")[0]
    return next((m for m, name in model.module_names.items() if name == parent), None)
