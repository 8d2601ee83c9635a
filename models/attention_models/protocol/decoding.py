"""What the decoding player asks of the engine, and what a step of writing tells: plain values, torch-free."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from attention_models.protocol.decoding_settings import DecodeSettings
from attention_models.protocol.interventions import Intervention
from attention_models.protocol.prompt import Prompt
from attention_models.protocol.request import Lane, Result
from attention_models.protocol.run_inputs import InputsRequest, RunInputs
from attention_models.protocol.values import SiteRef

if TYPE_CHECKING:
    import numpy as np

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
