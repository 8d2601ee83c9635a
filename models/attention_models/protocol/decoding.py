"""What the decoding player asks of the engine, and what a step of writing tells: plain values, torch-free."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, ClassVar, Literal, get_args

from attention_models.protocol.interventions import Intervention
from attention_models.protocol.prompt import Prompt
from attention_models.protocol.request import Lane, Result
from attention_models.protocol.running import InputsRequest, RunInputs
from attention_models.protocol.values import SiteRef

if TYPE_CHECKING:
    import numpy as np


Strategy = Literal["greedy", "sample", "beam"]

MOST_SAMPLES = 8
"""Written side by side."""

MOST_SEED = 1 << 62
"""What a session file can hold."""

_MOST = 1_000_000_000  # of what counts tokens: more than any vocabulary or text has
_LEAST_FACTOR, _MOST_FACTOR = 1e-6, 1e6  # logits divided by less than that, or multiplied by more, are no numbers
_BETWEEN = "0.000001 to 1,000,000"
_STEEPEST = 10.0  # a length to a larger power is no number


@dataclass(frozen=True, slots=True)
class DecodeSettings:
    """Named and meant as in transformers' `generate`; None or the neutral value switches a filter off.

    Raises:
        ValueError: a value outside its range; the sentence says which and what it may be.
    """

    strategy: Strategy = "greedy"
    temperature: float = 1.0  # divides the logits before the softmax; 0 means greedy
    top_k: int | None = None  # keep the k likeliest (Fan et al. 2018)
    top_p: float | None = None  # keep the likeliest that together reach p (Holtzman et al. 2020)
    min_p: float | None = None  # keep those at least min_p times as likely as the likeliest (Nguyen et al. 2024)
    repetition_penalty: float = 1.0  # divides positive logits of tokens seen before (Keskar et al. 2019)
    no_repeat_ngram: int = 0  # never write the same n tokens in a row twice
    beams: int = 4  # width of the beam search
    length_penalty: float = 1.0  # a finished beam's log-probability is divided by its length to this power
    seed: int = 0
    sample: int = 0  # of those that one seed gives: step n draws from a generator seeded with (seed, n, sample)

    def __post_init__(self) -> None:
        _check(self.strategy in get_args(Strategy), f"There is no strategy “{self.strategy}”: greedy, sample or beam.")
        _check(
            math.isfinite(self.temperature) and self.temperature >= 0,
            f"A temperature of {self.temperature} makes no probabilities: it is 0 (greedy) or more.",
        )
        _check(
            self.temperature == 0 or _LEAST_FACTOR <= self.temperature <= _MOST_FACTOR,
            f"A temperature of {self.temperature} is not offered: 0 (greedy), or {_BETWEEN}.",
        )
        _check(self.top_k is None or self.top_k >= 1, f"top-k {self.top_k} keeps no token: it is 1 or more.")
        _check(self.top_k is None or self.top_k <= _MOST, f"A top-k of {self.top_k} is not offered: {_MOST:,} at most.")
        _check(self.top_p is None or 0 < self.top_p <= 1, f"top-p {self.top_p} is no share: it is above 0, at most 1.")
        _check(self.min_p is None or 0 <= self.min_p <= 1, f"min-p {self.min_p} is no share: it is between 0 and 1.")
        _check(
            math.isfinite(self.repetition_penalty) and self.repetition_penalty > 0,
            f"A repetition penalty of {self.repetition_penalty} is none: it is above 0, and 1 changes nothing.",
        )
        _check(
            _LEAST_FACTOR <= self.repetition_penalty <= _MOST_FACTOR,
            f"A repetition penalty of {self.repetition_penalty} is not offered: {_BETWEEN}, and 1 changes nothing.",
        )
        _check(self.no_repeat_ngram >= 0, f"An n-gram has no {self.no_repeat_ngram} tokens: give 0 (off) or more.")
        _check(self.no_repeat_ngram <= _MOST, f"n-grams of {self.no_repeat_ngram} are not offered: {_MOST:,} at most.")
        _check(1 <= self.beams <= 32, f"A beam search of width {self.beams} is not offered: 1 to 32.")
        _check(0 <= self.seed <= MOST_SEED, f"A seed of {self.seed} is not offered: 0 to {MOST_SEED:,}.")
        _check(0 <= self.sample <= _MOST, f"There is no sample {self.sample}: they count from 0 to {_MOST:,}.")
        _check(
            abs(self.length_penalty) <= _STEEPEST,  # false for nan
            f"A length penalty of {self.length_penalty} is not offered: -{_STEEPEST:g} to {_STEEPEST:g}.",
        )

    def of_strategy(self, strategy: Strategy) -> DecodeSettings:
        """These settings for `strategy`, with what it leaves alone at its first value: equal where they act alike."""
        alone = {name: value for name, value in _FIRST.items() if strategy not in _USED_BY[name]}
        return replace(self, strategy=strategy, **alone)  # type: ignore[arg-type]

    @property
    def draws(self) -> bool:
        """Whether tokens are drawn at random. At temperature 0 sampling is greedy."""
        return self.strategy == "sample" and self.temperature > 0


_USED_BY: dict[str, tuple[Strategy, ...]] = {
    **dict.fromkeys(("temperature", "top_k", "top_p", "min_p", "seed", "sample"), ("sample",)),
    **dict.fromkeys(("beams", "length_penalty"), ("beam",)),
}
"""What only some strategies use."""

_FIRST = {field.name: field.default for field in fields(DecodeSettings) if field.name in _USED_BY}


def _check(holds: bool, sentence: str) -> None:
    if not holds:
        raise ValueError(sentence)


Ending = Literal["", "model", "steps", "context", "masks", "misread"]
"""Why nothing follows: the model ended the text, the steps are used up, the context is full, no mask is left, or the
text with the chosen token in it would be read as other tokens."""


@dataclass(frozen=True, slots=True)
class DecodeCandidate:
    """One candidate of a step, before and after the settings acted."""

    id: int
    label: str
    logit: float
    probability: float  # of the model
    kept: float  # after the filters, 0 where one cut it
    cut_by: str = ""  # the filter that did


@dataclass(frozen=True, slots=True)
class Stage:
    """What one filter did to the distribution that the filters before it had left, and what it left itself."""

    filter: str
    tokens: int  # that it cut
    probability: float  # that the model gave to these, all together
    moved: float  # taken from some tokens and given to others: half the sum of |after - before| (total variation)
    left: int  # tokens that are not cut yet
    shares: tuple[float, ...]  # of each candidate after it, in the order of the candidates; 0 where cut
    ahead: tuple[float, ...]  # of each candidate, what all likelier tokens held before it: what top-p goes by
    peak: float  # the likeliest token's share before it: what min-p goes by
    meaning: str = ""  # a sentence, of a filter that the checkpoint brings along; "" of one that a person set


@dataclass(frozen=True, slots=True)
class Beam:
    """One continuation that a step considered: a node of the tree of hypotheses."""

    node: int  # counts from 0 through the whole search
    parent: int  # its node, -1 for the prompt
    token: int
    label: str
    ids: tuple[int, ...]  # all that it wrote
    log_probability: float  # of all that it wrote
    finished: bool  # it ends here and is kept as a result
    kept: bool  # the search goes on from it; neither finished nor kept: pruned
    text: str = ""  # all that it wrote, special tokens left out


@dataclass(frozen=True, slots=True)
class CacheLayer:
    """Keys and values of one attention module, after a step."""

    stack: str  # "decoder", or "cross" for the source's
    layer: int
    heads: int  # that read them
    key_heads: int  # that are stored; fewer than `heads` where query heads share them
    head_dim: int
    reused: int  # tokens whose keys and values earlier steps had computed
    computed: int  # tokens that this step added
    stored: int  # tokens that are kept for the next; a sliding window forgets those that it has left behind
    bytes: int  # of all that is stored
    texts: int = 1  # that are written side by side, each with keys and values of its own


# --------------------------------------------------------------------------- requests


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeStepRequest(InputsRequest):
    """Choose the token after `inputs` and `ids`. Answered by `DecodeStepView`.

    The engine keeps its key/value cache from one step to the next, and goes back in it where `ids` do. In a beam search
    `number` says which step of the search is wanted, and `ids` are empty.

    A step `into_input` goes on with the run of `inputs` that is on screen, and writes a character of several tokens
    whole, since the text is tokenized anew after it (see `into_input`).
    """

    lane: ClassVar[Lane] = Lane("decode:play")
    activity: ClassVar[str] = "choosing a token"
    answered_by: ClassVar[str] = "attention_models.decoding.player:answer_step"
    printed_by: ClassVar[str] = "attention_models.scripts.decoding:write"
    settings: DecodeSettings
    steps: int  # the most to write
    number: int  # of this step, counts from 1
    ids: tuple[int, ...] = ()  # chosen in the steps before
    forced: int | None = None  # the token that a person chose; None lets the settings choose
    site: SiteRef | None = None  # whose attention rows are kept on the way
    head: int = 0
    top: int = 10  # candidates listed
    place: int | None = None  # the position of the mask to fill; None: the one that the model is most confident of
    into_input: bool = False  # what the Step button asks for: the answer takes the place of the input


def into_input(inputs: RunInputs) -> DecodeStepRequest:
    """The likeliest token after what was run (in the place of its most confident mask), to be put into the input."""
    return DecodeStepRequest(inputs=inputs, settings=DecodeSettings(), steps=1, number=1, into_input=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeSamplesRequest(InputsRequest):
    """Draw the token of step `number` for several samples side by side. Answered by `DecodeSamplesView`."""

    lane: ClassVar[Lane] = Lane("decode:play")
    activity: ClassVar[str] = "drawing a token of each sample"
    answered_by: ClassVar[str] = "attention_models.decoding.player:answer_samples"
    settings: DecodeSettings  # `sample` does not matter
    steps: int
    number: int
    samples: tuple[int, ...]  # which of those that one seed gives; those that have ended are left out
    ids: tuple[tuple[int, ...], ...]  # what each of them has written, all of the same length
    site: SiteRef | None = None
    head: int = 0
    top: int = 10

    def alone(self, place: int) -> DecodeStepRequest:
        """What asks for the sample at `place` of `samples` alone."""
        return DecodeStepRequest(
            ticket=self.ticket,
            inputs=self.inputs,
            settings=replace(self.settings, sample=self.samples[place]),
            steps=self.steps,
            number=self.number,
            ids=self.ids[place],
            site=self.site,
            head=self.head,
            top=self.top,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeRowsRequest(InputsRequest):
    """What one head attended to in every step so far: its rows over prompt and `ids`. Answered by `DecodeRowsView`."""

    lane: ClassVar[Lane] = Lane("decode:rows")
    activity: ClassVar[str] = "computing where the head looked while the text was written"
    answered_by: ClassVar[str] = "attention_models.decoding.player:answer_rows"
    ids: tuple[int, ...] = ()
    site: SiteRef
    head: int


# --------------------------------------------------------------------------- results


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DecodeStepView(Result):
    """What one step of decoding did."""

    request: DecodeStepRequest
    text: str  # written so far, special tokens left out; of the best beam in a beam search
    whole: Prompt  # what "use this text" puts into the input (the target, in an encoder-decoder model)
    ids: tuple[int, ...]
    candidates: tuple[DecodeCandidate, ...]  # the likeliest by the model, and the chosen one; empty in a beam search
    stages: tuple[Stage, ...]  # one a filter that is on, in the order in which they act
    chosen: DecodeCandidate | None  # None in a beam search, where `beams` tell
    drawn: float | None  # the uniform random number that decided, None where nothing was drawn
    log_probability: float  # by the model: of the chosen token; of the best beam's whole text in a beam search
    ending: Ending
    cache: tuple[CacheLayer, ...]  # empty where the model keeps none
    cache_bytes: int
    beams: tuple[Beam, ...] = ()  # every continuation considered in this step, the best first
    place: int | None = None  # the position of the mask that was filled
    masks: int = 0  # that are left to fill
    misread: str = ""  # of a step into the input, or of a mask: as what `whole` would be read instead
    prevents_caching: Intervention | None = None  # the mask under which nothing can be kept from one step to the next
    own: tuple[str, ...] = ()  # what the checkpoint itself says of how it writes, in sentences; it acts at every step
    unapplied: tuple[str, ...] = ()  # settings of the checkpoint that act in transformers' `generate` and not here
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DecodeSamplesView(Result):
    """One step of several samples, each as `DecodeStepRequest` would have had it answered alone."""

    request: DecodeSamplesRequest
    steps: tuple[DecodeStepView, ...]  # in the order of the request's samples


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DecodeRowsView(Result):
    """One head's weights over prompt and written tokens, a whole triangle in a causal stack.

    Of a long text (see `is_long`) only some rows: the last, or those about the mask that was filled.
    """

    request: DecodeRowsRequest
    weights: np.ndarray  # (rows, keys) float32
    masked: np.ndarray | None  # (rows, keys) bool: masked, or not written yet
    queries: tuple[str, ...]  # labels of the rows
    keys: tuple[str, ...]
    first: int  # the place of the first row; 0 where all are here
    chose: int  # the row that chose the step's token; -1 in an encoder, where none did
    prompt: int  # how many of the rows were given, not written: those come first
    from_steps: bool  # assembled from the steps' rows; else one forward pass over all of it
