"""Running the open model on a text, a conversation or a picture: what is asked, and what is answered."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from attention_models.protocol.head import AttentionPeaks
from attention_models.protocol.interventions import Intervention
from attention_models.protocol.prompt import Prompt
from attention_models.protocol.request import Lane, Request, Result
from attention_models.protocol.values import SeenPicture, Site, SiteRef, Token

# What decides a run.


@dataclass(frozen=True, slots=True)
class RunInputs:
    """What a model is given, and what is changed while it runs. Runs of equal inputs are equal."""

    prompt: Prompt = ""  # a text, a pair of texts, or a conversation
    target: str | None = None  # what the decoder of an encoder-decoder model is made to say; None: what it likes
    picture: str = ""  # what a vision model is given instead: a path, or "sample:NAME"; models of text ignore it
    interventions: tuple[Intervention, ...] = ()
    continuation: tuple[int, ...] = ()  # tokens that the model wrote after it (or into its masks), read along with it


@dataclass(frozen=True, slots=True, kw_only=True)
class InputsRequest(Request):
    """To be answered by running the open model on `inputs`, or writing after them."""

    inputs: RunInputs


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardRequest(InputsRequest):
    """Run the open model. Answered by `Ran`. Without a target an encoder-decoder model writes one by beam search."""

    lane: ClassVar[Lane] = Lane("forward", order=1)
    activity: ClassVar[str] = "running the model on the text"
    answered_by: ClassVar[str] = "attention_models.engine.running:answer"
    printed_by: ClassVar[str] = "attention_models.scripts.tokens:write"


@dataclass(frozen=True, slots=True, kw_only=True)
class RerunRequest(ForwardRequest):
    """Run what ran before with other interventions. The run before is shown first: of a drag one sees every step."""

    lane: ClassVar[Lane] = Lane("forward", finishes=True)
    activity: ClassVar[str] = "running the model with other interventions"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ran(Result):
    """A forward pass that ended: `run` names it in every later request."""

    request: ForwardRequest
    tokens: tuple[Token, ...]
    sites: tuple[Site, ...]
    masks: tuple[int, ...]  # positions of mask tokens, empty for models without them
    source: tuple[Token, ...] = ()  # of the encoder, in an encoder-decoder model
    seen: SeenPicture | None = None  # what a vision model saw
    unknown: int = 0  # tokens of the text that is read which stand for words that the vocabulary does not know
    unknown_characters: int = 0  # that those tokens stand for
    tags: tuple[str, ...] = ()  # of a model that labels tokens: the class of each
    looks: AttentionPeaks | None = (
        None  # where to look first; None where only interventions are others, or there is no head
    )
    written: str = ""  # what its decoder said: the target, or what it wrote itself
    continued: tuple[int, ...] = ()  # positions of the tokens of the inputs' continuation
    whole: Prompt | None = None  # the prompt with that in it; None where there is no continuation, or it is a target
    seconds: float
    trace_bytes: int
    _by_ref: dict[SiteRef, Site] = field(init=False, repr=False)  # asked for many times at each click

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_ref", {site.ref: site for site in self.sites})

    def site(self, ref: SiteRef) -> Site | None:
        """The site of this name as it ran, None where the model has none."""
        return self._by_ref.get(ref)

    @property
    def run(self) -> int:
        return self.request.ticket

    @property
    def inputs(self) -> RunInputs:
        return self.request.inputs
