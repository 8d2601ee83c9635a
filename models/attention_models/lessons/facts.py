"""Single figures by name: what a lesson says, asks for and checks is computed here, of the run that is open.

Each is the same number as the panel of that subject shows, from the same functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from attention_models.decoding.decode import decode
from attention_models.effects.adversarial_attention import adversarial_attention, search_of
from attention_models.effects.in_context import word_in_context
from attention_models.forward.classes import classes_at
from attention_models.forward.context import Context
from attention_models.lessons import cost, effect_facts, formulas, head_facts, raw_words
from attention_models.lessons.reading import Reading
from attention_models.protocol.adversarial_attention import AdversarialAttentionRequest, Rerun
from attention_models.protocol.chat import Pair
from attention_models.protocol.errors import InputError
from attention_models.protocol.facts import FactsRequest, FactsView, Value
from attention_models.protocol.information import entropy, from_nats
from attention_models.protocol.prompt import Prompt, plain_text
from attention_models.protocol.values import site_tokens
from attention_models.protocol.work import Cancelled


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
    "visible keys": head_facts.visible_keys,
    "peak": _peak,
    "peak weight": _peak_weight,
    "received": _received,
    "diagonal": _diagonal,
    "above": _above,
    "mask": head_facts.mask,
    "role": head_facts.role,
    "role score": head_facts.role_score,
    "even role score": head_facts.even_role_score,
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
    "raw product": raw_words.raw_product,
    "raw weight": raw_words.raw_weight,
    "raw peak": raw_words.raw_peak,
    "cells": cost.cells,
    "attention products": cost.attention_products,
    "matrix products": cost.matrix_products,
    "cached bytes": cost.cached_bytes,
    "weights apart": lambda r: from_nats(float(_other(r).divergence.max()), "bits"),
    "answer apart": lambda r: float(_other(r).distance),
    "softmax": formulas.softmax_share,
    "division": formulas.division,
    "variance": formulas.variance,
    "largest share": formulas.largest_share,
    "turn error": formulas.turn_error,
    "wave likeness": formulas.wave_likeness,
}
