"""What decides a run."""

from __future__ import annotations

from dataclasses import dataclass

from attention_models.protocol.interventions import Intervention
from attention_models.protocol.prompt import Prompt
from attention_models.protocol.request import Request


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
