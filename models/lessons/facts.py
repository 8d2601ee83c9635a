"""Single figures by name: what a lesson says, asks for and checks is computed here, of the run that is open.

Each is the same number as the panel of that subject shows, from the same functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from models.decoding.decode import decode
from models.effects.in_context import word_in_context
from models.effects.other_weights import other_weights, search_of
from models.forward.classes import classes_at
from models.forward.context import Context
from models.forward.current_run import CurrentRun
from models.forward.model import Model
from models.forward.run import run
from models.forward.trace import Trace
from models.protocol.chat import Pair
from models.protocol.errors import InputError
from models.protocol.facts import Fact, FactsRequest, FactsView, Value
from models.protocol.information import entropy
from models.protocol.named_tokens import Named, position_of
from models.protocol.other_weights import OtherWeightsRequest, Rerun
from models.protocol.prompt import Prompt, plain_text
from models.protocol.values import Site, Token, site_tokens
from models.protocol.work import Cancelled
from models.textbook.waves import cosines, sinusoidal
from models.views.lookup import soft_weights
from models.views.variance import softmax

_SEED = 0
_DRAWS, _KEYS = 4096, 16  # of random queries and keys, in figures of dot products


def answer(request: FactsRequest, context: Context) -> FactsView:
    current = context.run(request.run)
    values = []
    for number, fact in enumerate(request.facts, start=1):
        if context.should_stop():
            raise Cancelled
        try:
            values.append(value_of(fact, current, context.should_stop))
        except (ValueError, LookupError) as error:
            raise InputError(f"Figure {number} of this step, “{fact.kind}”, cannot be computed: {error}") from error
    return FactsView(request=request, values=tuple(values))


def value_of(fact: Fact, current: CurrentRun, should_stop: Callable[[], bool]) -> Value:
    """Of the run that is open, or of another text that the same model reads.

    Raises:
        ValueError, LookupError: there is no such head, token, word or number; the sentence says which.
    """
    return _KINDS[fact.kind](_Reading(fact, current, should_stop))


@dataclass
class _Reading:
    """One fact, and the run that it is read from."""

    fact: Fact
    current: CurrentRun
    should_stop: Callable[[], bool]

    @property
    def model(self) -> Model:
        return self.current.model

    @property
    def prompt(self) -> Any:
        fact = self.fact
        if fact.text is None:
            return self.current.text
        return fact.text if fact.second is None else Pair(fact.text, fact.second)

    @cached_property
    def trace(self) -> Trace:
        fact, own = self.fact, self.current.trace
        if fact.text is None and fact.target is None:
            return self.current.untouched(self.should_stop) if fact.unchanged else own
        changes = () if fact.unchanged else own.interventions
        found: Trace = run(
            self.model, self.prompt, target=fact.target, interventions=changes, should_stop=self.should_stop
        )
        return found

    @property
    def site(self) -> Site:
        fact, trace = self.fact, self.trace
        if fact.site is None:
            raise LookupError("it needs a layer")
        found = next((site for site in trace.sites if site.ref == fact.site), None)
        if found is None or not 0 <= fact.head < found.heads:
            raise LookupError(f"there is no head {fact.head} in layer {fact.site.layer} of the {fact.site.stack}")
        return found

    @property
    def query(self) -> int:
        """Where it is read: among the queries of its site, else among all tokens."""
        tokens = self.trace.tokens if self.fact.site is None else site_tokens(self.trace, self.site)[0]
        return _position(self.fact.query, tokens)

    @property
    def key(self) -> int:
        return _position(self.fact.key, site_tokens(self.trace, self.site)[1])

    @property
    def row(self) -> np.ndarray:
        """The weights of its query, (keys,) float64."""
        row: np.ndarray = self.trace.weights(self.site, self.fact.head, [self.query])[0].astype(np.float64)
        return row

    @property
    def matrix(self) -> np.ndarray:
        """All weights of its head, (queries, keys) float64."""
        if self.site.is_long:
            raise ValueError("the text is too long")
        return self.trace.weights(self.site, self.fact.head).astype(np.float64)


def _position(token: int | Named, tokens: tuple[Token, ...]) -> int:
    if isinstance(token, Named):
        found = position_of(token.word, token.place, tokens)
        if found is None:
            raise LookupError(f"there is no token “{token.word}” ({token.place})")
        return found
    if not 0 <= token < len(tokens):
        raise LookupError(f"there is no token {token}")
    return token


# --------------------------------------------------------------------------- attention


def _weight(r: _Reading) -> float:
    return float(r.row[r.key])


def _product(r: _Reading) -> float:
    """q . k, unscaled, in float64 from the kept queries and keys."""
    x = r.trace.at(r.site, r.fact.head)
    q = x.query[0, r.fact.head, r.query].double()
    k = x.key[0, r.fact.head // x.group, r.key].double()
    return float(q @ k)


def _scaled_score(r: _Reading) -> float:
    """What enters the softmax before the mask."""
    return float(r.trace.scores(r.site, r.fact.head, [r.query])[0, r.key])


def _entropy(r: _Reading) -> float:
    """Of the row, in bits."""
    return float(entropy(r.row))


def _visible(r: _Reading) -> float:
    """How many keys the query can attend to."""
    masked = r.trace.masked(r.site, r.fact.head, [r.query])
    return float(r.site.keys if masked is None else (~masked[0]).sum())


def _peak(r: _Reading) -> str:
    """The key with the largest weight of the row."""
    return site_tokens(r.trace, r.site)[1][int(r.row.argmax())].word


def _peak_weight(r: _Reading) -> float:
    return float(r.row.max())


def _received(r: _Reading) -> float:
    """What all rows together give the key."""
    return float(r.matrix[:, r.key].sum())


def _diagonal(r: _Reading) -> float:
    """The mean weight on the key `at` places before the query, over the rows that have one."""
    return float(np.diagonal(r.matrix, -r.fact.at).mean())


def _above(r: _Reading) -> float:
    """The mean over rows of the weight on later tokens."""
    return float(np.triu(r.matrix, 1).sum(axis=1).mean())


# --------------------------------------------------------------------------- what the model says


def _answers(r: _Reading) -> Iterator[tuple[str, float]]:
    """All answers at the query, the likeliest first: each word with its share, softmax(logits) in float64."""
    if r.model.info.class_head is not None:
        yield from ((said.label, said.probability) for said in classes_at(r.model, r.trace, r.query))
        return
    logits = r.trace.logits_at([r.query])[0].double().cpu()
    shares, ids = logits.softmax(dim=-1).sort(descending=True)
    for share, id_ in zip(shares.tolist(), ids.tolist(), strict=True):
        name = r.model.piece_label(id_)
        yield name.lstrip("␣") or name, share


def _next(r: _Reading) -> str:
    return next(_answers(r))[0]


def _next_probability(r: _Reading) -> float:
    return next(_answers(r))[1]


def _probability(r: _Reading) -> float:
    return _place(r)[1]


def _rank(r: _Reading) -> float:
    return float(_place(r)[0])


def _place(r: _Reading) -> tuple[int, float]:
    """The rank of its word, from 1, and its share."""
    for rank, (name, share) in enumerate(_answers(r), start=1):
        if name == r.fact.word:
            return rank, share
    raise LookupError(f"“{r.fact.word}” is none of the model's answers")


def _moved(r: _Reading) -> float:
    """How far interventions move the answer: the total variation distance, 0 to 1."""
    if r.model.info.class_head is not None:
        raise ValueError("it is of words")
    both = [r.trace, r.current.untouched(r.should_stop)]
    now, before = (t.logits_at([r.query])[0].double().cpu().softmax(dim=-1) for t in both)
    return float((now - before).abs().sum() / 2)


def _writes(r: _Reading) -> str:
    """What it writes after the text, or its translation."""
    text: Prompt = r.prompt if isinstance(r.prompt, str | Pair) else plain_text(r.current.inputs.prompt)
    changes = () if r.fact.unchanged else r.current.trace.interventions
    named = {name: getattr(r.fact.settings, name) for name in r.fact.settings.__dataclass_fields__}
    steps = list(decode(r.model, text, r.fact.steps, **named, interventions=changes, should_stop=r.should_stop))
    return steps[-1].text.strip() if steps else ""


def _tokens(r: _Reading) -> float:
    return float(len(r.trace.source or r.trace.tokens))


def _cosine(r: _Reading) -> float:
    """Between the vectors of a word in the run's text and in `text`, after block `at` (0: the embedding)."""
    if r.fact.text is None:
        raise ValueError("it needs another text")
    own = plain_text(r.current.inputs.prompt)
    found = word_in_context(r.model, own, r.fact.text, r.fact.word, interventions=r.current.trace.interventions).cosine
    if not 0 <= r.fact.at < len(found):
        raise LookupError(f"there is no layer {r.fact.at}")
    return float(found[r.fact.at])


# --------------------------------------------------------------------------- the model


def _query_parameters(r: _Reading) -> float:
    """Weights of the matrix that makes the queries of one layer, all heads together."""
    return float(r.model.info.width * r.site.heads * r.site.head_dim)


def _other(r: _Reading) -> Rerun:
    """The run with other weights of its head that leaves the answer as it is; the panel goes on with the search."""
    fact, own = r.fact, r.current
    if fact.text is None and fact.target is None:
        request = OtherWeightsRequest(run=own.ticket, site=r.site.ref, head=fact.head, position=r.query)
        search = search_of(request, own)
        while not search.is_whole:
            search.advance(r.should_stop)
        return search.view(request).same
    return other_weights(
        r.model,
        r.prompt,
        r.site.ref,
        fact.head,
        position=r.query,
        written=fact.target,
        interventions=own.trace.interventions,
        should_stop=r.should_stop,
    ).same


# --------------------------------------------------------------------------- formulas


def _softmax(r: _Reading) -> float:
    """The share of number `at` by softmax."""
    return float(soft_weights(r.fact.numbers)[_at(r)])


def _division(r: _Reading) -> float:
    """The share of number `at` by plain division by the sum."""
    numbers = np.array(r.fact.numbers, np.float64)
    if not len(numbers) or (numbers < 0).any() or not numbers.sum() > 0:
        raise ValueError("shares are made of numbers that are not negative, one of them above 0")
    return float((numbers / numbers.sum())[_at(r)])


def _variance(r: _Reading) -> float:
    """Measured, of q . k of vectors of width `at` drawn from a normal distribution of deviation 1."""
    q, k = _drawn(r.fact.at)
    return float((q * k[:, 0]).sum(axis=-1).var(ddof=1))


def _largest_share(r: _Reading) -> float:
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


def _turn_error(r: _Reading) -> float:
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


def _wave_likeness(r: _Reading) -> float:
    """The cosine of the vectors of two positions, `numbers`, of width 64."""
    if len(r.fact.numbers) != 2 or not all(0 <= n < 1000 for n in r.fact.numbers):
        raise ValueError("it is of two positions below 1000")
    one, other = (int(n) for n in r.fact.numbers)
    return float(cosines(sinusoidal(max(one, other) + 1, 64))[one, other])


def _at(r: _Reading) -> int:
    if not 0 <= r.fact.at < len(r.fact.numbers):
        raise LookupError(f"there is no number {r.fact.at}")
    return r.fact.at


_KINDS: dict[str, Callable[[_Reading], Value]] = {
    "weight": _weight,
    "product": _product,
    "scaled score": _scaled_score,
    "entropy": _entropy,
    "visible": _visible,
    "peak": _peak,
    "peak weight": _peak_weight,
    "received": _received,
    "diagonal": _diagonal,
    "above": _above,
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
    "head width": lambda r: float(r.site.head_dim),
    "width": lambda r: float(r.model.info.width),
    "vocabulary": lambda r: float(r.model.info.vocabulary),
    "context": lambda r: float(r.model.info.context or 0),
    "parameters": lambda r: float(r.model.info.parameters),
    "query parameters": _query_parameters,
    "weights apart": lambda r: float(_other(r).divergence.max()),
    "answer apart": lambda r: float(_other(r).distance),
    "softmax": _softmax,
    "division": _division,
    "variance": _variance,
    "largest share": _largest_share,
    "turn error": _turn_error,
    "wave likeness": _wave_likeness,
}
