"""Single figures by name: what a lesson says, asks for and checks is computed here, of the run that is open.

Each is the same number as the panel of that subject shows, from the same functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from torch import Tensor, nn

from attention_models.dataflow.matrices import is_matrix
from attention_models.decoding.decode import decode
from attention_models.effects.adversarial_attention import adversarial_attention, search_of
from attention_models.effects.in_context import word_in_context
from attention_models.files.devices import weight_of
from attention_models.forward.classes import classes_at
from attention_models.forward.context import Context
from attention_models.forward.recurrent_model import RecurrentModel
from attention_models.forward.run import run
from attention_models.lessons import effect_facts
from attention_models.lessons.reading import Reading
from attention_models.protocol.chat import Pair
from attention_models.protocol.effects import AdversarialAttentionRequest, Rerun
from attention_models.protocol.errors import InputError
from attention_models.protocol.facts import NO_ROLE, OTHER_MASK, FactsRequest, FactsView, Value, spans
from attention_models.protocol.information import entropy, from_nats
from attention_models.protocol.mask_kinds import MASK_KINDS
from attention_models.protocol.prompt import Prompt, plain_text
from attention_models.protocol.request import Cancelled
from attention_models.protocol.roles import RolesView, plain_roles
from attention_models.protocol.values import site_tokens
from attention_models.roles.roles import head_roles
from attention_models.textbook.waves import cosines, sinusoidal
from attention_models.views.lookup import soft_weights
from attention_models.views.variance import softmax

# What can be said of a whole head: which mask it has, which keys a row of it sees, and its role.


_COUNTED = ("padding", "window", "blocks", "prefix")
"""Kinds with a number, which the first row, the last one or the first column tells."""


def visible_keys(r: Reading) -> str:
    """Places of the keys that the query can attend to: "0–4, 7"."""
    return spans(np.flatnonzero(_visible_keys(r, [r.query])[0]).tolist())


def mask(r: Reading) -> str:
    """The name of the kind of mask that leaves just these cells visible, by itself or along with the causal mask."""
    visible = _visible_keys(r)
    if visible.all():
        return "none"
    rows, keys = visible.shape
    if rows != keys:
        return OTHER_MASK
    q, k = np.arange(rows)[:, None], np.arange(keys)
    causal = k <= q
    if np.array_equal(visible, causal):
        return "causal"
    first, last, seeing_first = int(visible[0].sum()), int(visible[-1].sum()), int(visible[:, 0].sum())
    numbers = {"padding": keys - last, "window": max(first, last), "blocks": max(1, seeing_first), "prefix": first}
    for name in _COUNTED:
        cells = np.broadcast_to(MASK_KINDS[name].allows(q, k, numbers[name], keys), visible.shape)
        if np.array_equal(visible, cells) or np.array_equal(visible, cells & causal):
            return name
    return OTHER_MASK


def role(r: Reading) -> str:
    """The name of the role that the badge of All heads shows of this head; `NO_ROLE` where it has none."""
    found = plain_roles(_roles(r)).get((r.site.ref, r.fact.head))
    return NO_ROLE if found is None else found.name


def role_score(r: Reading) -> float:
    """How much the head has the role `word`, over the texts that come along."""
    return _of_role(r, _roles(r).of(r.site.ref, r.fact.head)[r.fact.word])


def even_role_score(r: Reading) -> float:
    """What a head would score in the role `word` that attends evenly to all it sees."""
    found = _roles(r)
    return _of_role(r, float(found.even[found.roles.index(r.fact.word), found.sites.index(r.site.ref)]))


def _of_role(r: Reading, score: float) -> float:
    if np.isnan(score):
        raise LookupError(f"heads of this stack have no score as “{r.fact.word}”")
    return score


def _roles(r: Reading) -> RolesView:
    """Of the model as it is, without interventions."""
    return head_roles(r.model, should_stop=r.should_stop)


def _visible_keys(r: Reading, rows: list[int] | None = None) -> np.ndarray:
    """(rows, keys) bool."""
    if rows is None and r.site.is_long:
        raise ValueError("the text is too long")
    masked = r.trace.masked(r.site, r.fact.head, rows)
    count = r.site.queries if rows is None else len(rows)
    return np.ones((count, r.site.keys), bool) if masked is None else ~masked


# Figures that are of no model: shares, products of random vectors, sinusoids.


_SEED = 0
_DRAWS, _KEYS = 4096, 16  # of random queries and keys, in figures of dot products


def softmax_share(r: Reading) -> float:
    """The share of number `at` by softmax."""
    return float(soft_weights(r.fact.numbers)[_at(r)])


def division(r: Reading) -> float:
    """The share of number `at` by plain division by the sum."""
    numbers = np.array(r.fact.numbers, np.float64)
    if not len(numbers) or (numbers < 0).any() or not numbers.sum() > 0:
        raise ValueError("shares are made of numbers that are not negative, one of them above 0")
    return float((numbers / numbers.sum())[_at(r)])


def variance(r: Reading) -> float:
    """Measured, of q . k of vectors of width `at` drawn from a normal distribution of deviation 1."""
    q, k = _drawn(r.fact.at)
    return float((q * k[:, 0]).sum(axis=-1).var(ddof=1))


def largest_share(r: Reading) -> float:
    """The mean largest weight of a softmax over 16 such products; of the products over √d where numbers = [1]."""
    q, k = _drawn(r.fact.at)
    scores = np.einsum("nd,nkd->nk", q, k)
    return float(softmax(scores / np.sqrt(r.fact.at) if r.fact.numbers == (1.0,) else scores).max(axis=-1).mean())


def _drawn(width: int) -> tuple[np.ndarray, np.ndarray]:
    if not 1 <= width <= 1024:
        raise ValueError("a width is 1 to 1024")
    rng = np.random.default_rng((_SEED, width))
    draws = max(256, _DRAWS // max(1, width // 16))
    return rng.standard_normal((draws, width)), rng.standard_normal((draws, _KEYS, width))


def turn_error(r: Reading) -> float:
    """The largest difference between PE(pos + k) and PE(pos) turned by k; width 64, 100 positions, k = `at`."""
    k, width = r.fact.at, 64
    if not 0 <= k <= 1000:
        raise ValueError("it turns by 0 to 1000 positions")
    table = sinusoidal(100 + k, width)  # sines and cosines in turn
    angles = k / 10_000.0 ** (np.arange(0, width, 2) / width)
    sines, waves = table[:100, 0::2], table[:100, 1::2]
    turned = np.empty_like(table[:100])
    turned[:, 0::2] = sines * np.cos(angles) + waves * np.sin(angles)
    turned[:, 1::2] = waves * np.cos(angles) - sines * np.sin(angles)
    return float(np.abs(turned - table[k : 100 + k]).max())


def wave_likeness(r: Reading) -> float:
    """The cosine of the vectors of two positions, `numbers`, of width 64."""
    if len(r.fact.numbers) != 2 or not all(0 <= n < 1000 for n in r.fact.numbers):
        raise ValueError("it is of two positions below 1000")
    one, other = (int(n) for n in r.fact.numbers)
    return float(cosines(sinusoidal(max(one, other) + 1, 64))[one, other])


def _at(r: Reading) -> int:
    if not 0 <= r.fact.at < len(r.fact.numbers):
        raise LookupError(f"there is no number {r.fact.at}")
    return r.fact.at


# What a run costs: cells, multiplications, and what is kept for the next token. Counted, not timed.


def cells(r: Reading) -> float:
    """Weights of all heads of all layers, masked ones too."""
    return float(sum(site.heads * site.queries * site.keys for site in r.trace.sites))


def attention_products(r: Reading) -> float:
    """Multiplications in Q Kᵀ and in the mix of values, of all heads of all layers, masked cells too."""
    inputs = r.trace.inputs
    return float(sum(x.heads * x.queries * x.keys * (x.query.shape[-1] + x.value.shape[-1]) for x in inputs))


def matrix_products(r: Reading) -> float:
    """Multiplications of tokens' vectors by learned matrices in one pass, the output matrix left out."""
    model = r.model
    if isinstance(model, RecurrentModel):
        raise ValueError("it is of transformers")
    module: nn.Module = model.module
    last = getattr(module, "get_output_embeddings", lambda: None)()
    counted = [0]

    def count(matrix: nn.Module, args: tuple[Tensor, ...], _out: Any) -> None:
        weight = matrix.weight
        assert isinstance(weight, Tensor)
        counted[0] += args[0].numel() // args[0].shape[-1] * weight.numel()

    hooks = [each.register_forward_hook(count) for each in module.modules() if is_matrix(each) and each is not last]
    try:
        run(model, r.prompt, target=r.target, should_stop=r.should_stop)
    finally:
        for hook in hooks:
            hook.remove()
    return float(counted[0])


def cached_bytes(r: Reading) -> float:
    """Of the keys and values of all layers: what a decoder keeps in order to write on."""
    return float(sum(t.numel() * t.element_size() for x in r.trace.inputs for t in (x.key, x.value)))


# Attention without any weights: dot products of the words' own vectors, and softmax of them.


def raw_product(r: Reading) -> float:
    """e · e' of the embeddings of query and key, without positions."""
    return float(_products(r)[r.place_of(r.fact.key, r.trace.tokens)])


def raw_weight(r: Reading) -> float:
    """The share of the key by softmax of these products over all tokens of the text."""
    return float(softmax(_products(r))[r.place_of(r.fact.key, r.trace.tokens)])


def raw_peak(r: Reading) -> str:
    """The token with the largest product."""
    return r.trace.tokens[int(_products(r).argmax())].word


def _products(r: Reading) -> np.ndarray:
    """Of the query's embedding with that of every token, (tokens,) float64."""
    module: Any = r.model.module
    embedding = getattr(module, "get_input_embeddings", lambda: None)()
    if r.trace.source or embedding is None or r.model.info.family == "vision":
        raise ValueError("it is of models of one stack that read text")
    ids = [token.id for token in r.trace.tokens]
    vectors = weight_of(embedding)[ids].detach().double().cpu().numpy()
    products: np.ndarray = vectors @ vectors[r.place_of(r.fact.query, r.trace.tokens)]
    return products


def answer(request: FactsRequest, context: Context) -> FactsView:
    current = context.run(request.run)
    values: list[Value] = []
    shared: dict[Any, Any] = {}
    for number, fact in enumerate(request.facts, start=1):
        if context.should_stop():
            raise Cancelled
        try:
            values.append(_KINDS[fact.kind](Reading(fact, current, context.should_stop, shared)))
        except (ValueError, LookupError) as error:
            raise InputError(f"Figure {number} of this step, “{fact.kind}”, cannot be computed: {error}") from error
    return FactsView(request=request, values=tuple(values))


# --------------------------------------------------------------------------- attention


def _weight(r: Reading) -> float:
    return float(r.row[r.key])


def _product(r: Reading) -> float:
    """q . k, unscaled, in float64 from the kept queries and keys."""
    x = r.trace.at(r.site, r.fact.head)
    q = x.query[0, r.fact.head, r.query].double()
    k = x.key[0, r.fact.head // x.group, r.key].double()
    return float(q @ k)


def _scaled_score(r: Reading) -> float:
    """What enters the softmax before the mask."""
    return float(r.trace.scores(r.site, r.fact.head, [r.query])[0, r.key])


def _entropy(r: Reading) -> float:
    """Of the row, in bits."""
    return float(entropy(r.row))


def _visible(r: Reading) -> float:
    """How many keys the query can attend to."""
    masked = r.trace.masked(r.site, r.fact.head, [r.query])
    return float(r.site.keys if masked is None else (~masked[0]).sum())


def _peak(r: Reading) -> str:
    """The key with the largest weight of the row."""
    return site_tokens(r.trace, r.site)[1][int(r.row.argmax())].word


def _peak_weight(r: Reading) -> float:
    return float(r.row.max())


def _received(r: Reading) -> float:
    """What all rows together give the key."""
    return float(r.matrix[:, r.key].sum())


def _diagonal(r: Reading) -> float:
    """The mean weight on the key `at` places before the query, over the rows that have one."""
    return float(np.diagonal(r.matrix, -r.fact.at).mean())


def _above(r: Reading) -> float:
    """The mean over rows of the weight on later tokens."""
    return float(np.triu(r.matrix, 1).sum(axis=1).mean())


# --------------------------------------------------------------------------- what the model says


def _answers(r: Reading) -> Iterator[tuple[str, float]]:
    """All answers at the query, the likeliest first: each word with its share, softmax(logits) in float64."""
    if r.model.info.class_head is not None:
        yield from ((said.label, said.probability) for said in classes_at(r.model, r.trace, r.query))
        return
    logits = r.trace.logits_at([r.query])[0].double().cpu()
    shares, ids = logits.softmax(dim=-1).sort(descending=True)
    for share, id_ in zip(shares.tolist(), ids.tolist(), strict=True):
        name = r.model.piece_label(id_)
        yield name.lstrip("␣") or name, share


def _next(r: Reading) -> str:
    return next(_answers(r))[0]


def _next_probability(r: Reading) -> float:
    return next(_answers(r))[1]


def _probability(r: Reading) -> float:
    return _place(r)[1]


def _rank(r: Reading) -> float:
    return float(_place(r)[0])


def _place(r: Reading) -> tuple[int, float]:
    """The rank of its word, from 1, and its share."""
    for rank, (name, share) in enumerate(_answers(r), start=1):
        if name == r.fact.word:
            return rank, share
    raise LookupError(f"“{r.fact.word}” is none of the model's answers")


def _moved(r: Reading) -> float:
    """How far interventions move the answer: the total variation distance, 0 to 1."""
    if r.model.info.class_head is not None:
        raise ValueError("it is of words")
    both = [r.trace, r.current.untouched(r.should_stop)]
    now, before = (t.logits_at([r.query])[0].double().cpu().softmax(dim=-1) for t in both)
    return float((now - before).abs().sum() / 2)


def _writes(r: Reading) -> str:
    """What it writes after the text, or its translation."""
    text: Prompt = r.prompt if isinstance(r.prompt, str | Pair) else plain_text(r.current.inputs.prompt)
    named = {name: getattr(r.fact.settings, name) for name in r.fact.settings.__dataclass_fields__}
    steps = list(decode(r.model, text, r.fact.steps, **named, interventions=r.changes, should_stop=r.should_stop))
    return steps[-1].text.strip() if steps else ""


def _tokens(r: Reading) -> float:
    return float(len(r.trace.source or r.trace.tokens))


def _cosine(r: Reading) -> float:
    """Between the vectors of a word in the run's text and in `text`, after block `at` (0: the embedding)."""
    if r.fact.text is None:
        raise ValueError("it needs another text")
    own = plain_text(r.current.inputs.prompt)
    found = r.get_or_compute(
        ("cosine", r.fact.word),
        lambda: word_in_context(r.model, own, str(r.fact.text), r.fact.word, interventions=r.changes).cosine,
    )
    if not 0 <= r.fact.at < len(found):
        raise LookupError(f"there is no layer {r.fact.at}")
    return float(found[r.fact.at])


# --------------------------------------------------------------------------- the model


def _query_parameters(r: Reading) -> float:
    """Weights of the matrix that makes the queries of one layer, all heads together."""
    return float(r.model.info.width * r.site.heads * r.site.head_dim)


def _other(r: Reading) -> Rerun:
    """The run with other weights of its head that leaves the answer as it is; the panel goes on with the search."""
    return r.get_or_compute(("other", r.site.ref, r.fact.head, r.query), lambda: _search(r))


def _search(r: Reading) -> Rerun:
    fact, own = r.fact, r.current
    if fact.text is None and fact.target is None:
        request = AdversarialAttentionRequest(run=own.ticket, site=r.site.ref, head=fact.head, position=r.query)
        search = search_of(request, own)
        while not search.is_whole:
            search.advance(r.should_stop)
        return search.view(request).same
    return adversarial_attention(
        r.model,
        r.prompt,
        r.site.ref,
        fact.head,
        position=r.query,
        written=fact.target,
        interventions=own.trace.interventions,
        should_stop=r.should_stop,
    ).same


_KINDS: dict[str, Callable[[Reading], Value]] = {
    "weight": _weight,
    "product": _product,
    "scaled score": _scaled_score,
    "entropy": _entropy,
    "visible": _visible,
    "visible keys": visible_keys,
    "peak": _peak,
    "peak weight": _peak_weight,
    "received": _received,
    "diagonal": _diagonal,
    "above": _above,
    "mask": mask,
    "role": role,
    "role score": role_score,
    "even role score": even_role_score,
    "next": _next,
    "next probability": _next_probability,
    "probability": _probability,
    "rank": _rank,
    "moved": _moved,
    "writes": _writes,
    "tokens": _tokens,
    "cosine": _cosine,
    "layers": lambda r: float(len({s.layer for s in r.trace.sites})),
    "heads": lambda r: float(r.site.heads if r.fact.site is not None else sum(s.heads for s in r.trace.sites)),
    "all heads": lambda r: float(sum(site.heads for site in r.trace.sites)),
    "head width": lambda r: float(r.site.head_dim),
    "width": lambda r: float(r.model.info.width),
    "vocabulary": lambda r: float(r.model.info.vocabulary),
    "context": lambda r: float(r.model.info.context or 0),
    "parameters": lambda r: float(r.model.info.parameters),
    "query parameters": _query_parameters,
    "joined width": lambda r: float(r.site.heads * r.site.head_dim),
    "head effect": effect_facts.head_effect,
    "agreement": effect_facts.agreement,
    "early": effect_facts.early,
    "settled after": effect_facts.settled_after,
    "value length": effect_facts.value_length,
    "read length": effect_facts.read_length,
    "read peak": effect_facts.read_peak,
    "gradient": effect_facts.gradient,
    "gradient peak": effect_facts.gradient_peak,
    "raw product": raw_product,
    "raw weight": raw_weight,
    "raw peak": raw_peak,
    "cells": cells,
    "attention products": attention_products,
    "matrix products": matrix_products,
    "cached bytes": cached_bytes,
    "weights apart": lambda r: from_nats(float(_other(r).divergence.max()), "bits"),
    "answer apart": lambda r: float(_other(r).distance),
    "softmax": softmax_share,
    "division": division,
    "variance": variance,
    "largest share": largest_share,
    "turn error": turn_error,
    "wave likeness": wave_likeness,
}
