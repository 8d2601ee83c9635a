"""Writes one step a request for the decoding player, and goes back and sideways in its key/value cache."""

from __future__ import annotations

import sys
import time
from dataclasses import replace

import torch

from attention_models.decoding.choosing import choose
from attention_models.decoding.filling import Filling, fill
from attention_models.decoding.generation import Generation
from attention_models.decoding.samples import ContinuationRun
from attention_models.decoding.spelling import Spelled, at_the_end, decoded, in_target
from attention_models.forward.context import Context
from attention_models.forward.current_run import CurrentRun
from attention_models.forward.model import Model
from attention_models.forward.run import run as run_whole
from attention_models.forward.trace import Trace
from attention_models.protocol.batch import Batch
from attention_models.protocol.decoding import (
    DecodeRowsRequest,
    DecodeRowsView,
    DecodeSamplesRequest,
    DecodeSamplesView,
    DecodeStepRequest,
    DecodeStepView,
)
from attention_models.protocol.errors import InputError, StaleRunError
from attention_models.protocol.prompt import Prompt, plain_text, shown_of
from attention_models.protocol.request import ShouldStop
from attention_models.protocol.running import RunInputs

# a character of several byte tokens is written whole: UTF-8 has at most four
_CHARACTER_TOKENS = 4


def write_into_input(request: DecodeStepRequest, run: CurrentRun) -> DecodeStepView:
    """The input with the chosen token in it: at its end (causal), or in the most confident mask (masked models).

    In a conversation it is the assistant who goes on. An encoder-decoder model goes on with the target. Where the model
    chooses to end the text (by a token that stands for no text), the answer's `ending` is "model" and `whole` is the
    input as it was. Where no spelling of the token is read back as that token, `misread` says what it would be. Nothing
    is run again but to complete a character.

    Raises:
        InputError: the context is full, there is no mask to fill, or the model writes nothing.
    """
    started = time.perf_counter()
    model, trace, inputs = run.model, run.trace, run.inputs
    if model.info.family == "masked":
        return fill(model, trace, _input(run), request)
    if model.info.family not in ("causal", "seq2seq"):
        raise InputError(f"{model.info.name} writes no text after its input.")
    if model.seq2seq and inputs.target is None:
        raise InputError(
            "The model has written its whole answer. Begin the target yourself, or empty it, to go step by step."
        )
    limit = model.info.context
    given = [token.id for token in trace.tokens if not token.padding]
    if limit is not None and len(given) >= limit:
        raise InputError(
            f"The context is full: {model.info.name} reads at most {limit:,} tokens, and the text has them all. "
            "Take some text away to let it write on."
        )
    logits = trace.logits_at([trace.last]).float()  # (1, vocabulary)
    choice = choose(model, logits, torch.tensor([given]), request.settings, request.number, request.top, request.forced)
    ends = model.stands_for_no_text(choice.token) or choice.token in model.turn_end_ids
    ids, spelled = ((choice.token,), Spelled(_input(run))) if ends else _written(run, given, choice.token)
    return DecodeStepView(
        request=request,
        text=plain_text(spelled.whole)[len(plain_text(_input(run))) :],
        whole=spelled.whole,
        misread=spelled.misread,
        ids=ids,
        candidates=choice.candidates,
        stages=choice.stages,
        chosen=choice.chosen,
        drawn=choice.drawn,
        log_probability=choice.log_probability,
        ending="model" if ends else "misread" if spelled.misread else "steps",
        cache=(),
        cache_bytes=0,
        seconds=time.perf_counter() - started,
    )


def _input(run: CurrentRun) -> Prompt:
    """What the model goes on with: what was typed, with what it has written after it."""
    model, inputs, read = run.model, run.inputs, run.read
    if model.seq2seq:
        return inputs.target or "" if read is None else decoded(model, [t.id for t in run.trace.tokens[1:]])
    if read is None or read.whole is None:
        return inputs.prompt
    return inputs.prompt.with_prompt(shown_of(read.whole)) if isinstance(inputs.prompt, Batch) else read.whole


def _written(run: CurrentRun, given: list[int], first: int) -> tuple[tuple[int, ...], Spelled]:
    """The token `first`, with those that complete its character, and the input with what they add to it."""
    model, inputs = run.model, run.inputs
    before, ids = len(decoded(model, given)), [*given, first]
    most = min(len(given) + _CHARACTER_TOKENS, model.info.context or sys.maxsize)
    while len(ids) < most:
        added = decoded(model, ids)[before:]
        if added and not added.endswith("\ufffd"):
            break
        prompt, target = (inputs.prompt, ids[1:]) if model.seq2seq else (ids, None)  # after the start token
        longer: Trace = run_whole(model, prompt, target=target, interventions=inputs.interventions)
        ids.append(int(longer.logits_at([len(ids) - 1])[0].argmax()))
    written = tuple(ids[len(given) :])
    if model.seq2seq:
        return written, in_target(model, plain_text(_input(run)), given[1:], written)
    return written, at_the_end(model, _input(run), run.trace.tokens, written)


def answer_step(request: DecodeStepRequest, context: Context) -> DecodeStepView:
    if request.into_input:
        return write_into_input(request, context.run_of(request.inputs))
    return player_of(context).step(request, context.should_stop)


def answer_samples(request: DecodeSamplesRequest, context: Context) -> DecodeSamplesView:
    return player_of(context).samples(request, context.should_stop)


def answer_rows(request: DecodeRowsRequest, context: Context) -> DecodeRowsView:
    return player_of(context).rows(request, context.should_stop)


def player_of(context: Context) -> Player:
    """The one that writes for the open model."""
    if context.workspace.model is None:
        raise StaleRunError
    return context.kept_of_model.get_or_compute(Player, lambda: Player(context.model))


class Player:
    """Answers the steps of one open model. What it keeps of the last text only saves time."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._writing: Generation | None = None
        self._filling: Filling | None = None

    def step(self, request: DecodeStepRequest, should_stop: ShouldStop) -> DecodeStepView:
        """Choose one more token.

        Raises:
            InputError: the text is empty or too long, the context is full, or the model does not write; a token that
                is not in the vocabulary.
        """
        self._check((*request.ids, request.forced or 0))
        if self.model.info.family == "masked":
            return self._filling_of(request.inputs).step(request, should_stop)
        return self._written_of(request.inputs).step(request, should_stop)

    def samples(self, request: DecodeSamplesRequest, should_stop: ShouldStop) -> DecodeSamplesView:
        """Choose one more token of each sample.

        Raises:
            InputError: as in `step`.
        """
        self._check(tuple(id_ for ids in request.ids for id_ in ids))
        if self.model.info.family == "masked":
            filling = self._filling_of(request.inputs)
            steps = [filling.step(request.alone(place), should_stop) for place in range(len(request.samples))]
            return DecodeSamplesView(request=request, steps=tuple(steps))
        return self._written_of(request.inputs).samples(request, should_stop)

    def rows(self, request: DecodeRowsRequest, should_stop: ShouldStop) -> DecodeRowsView:
        """Where one head looked in the steps so far.

        Raises:
            IndexError: no such site or head.
            InputError: a token that is not in the vocabulary.
        """
        self._check(request.ids)
        if self.model.info.family == "masked":
            return self._filling_of(request.inputs).rows(request, should_stop)
        return self._written_of(request.inputs).rows(request, should_stop)

    def read_along(self, inputs: RunInputs, should_stop: ShouldStop) -> ContinuationRun:
        """The prompt of `inputs` and its continuation as one run.

        Raises:
            InputError: as in `step`.
        """
        self._check(inputs.continuation)
        alone = replace(inputs, continuation=())
        if self.model.info.family == "masked":
            return self._filling_of(alone).read_along(inputs.continuation, should_stop)
        return self._written_of(alone).read_along(inputs.continuation, should_stop)

    def written(self, inputs: RunInputs) -> Generation:
        """What is written after the prompt of `inputs`, from left to right.

        Raises:
            InputError: the model fills in masks, or as in `step`.
        """
        if self.model.info.family == "masked":
            raise InputError("This model fills in masks: the choice at each is what Next shows of it.")
        return self._written_of(inputs)

    def _check(self, ids: tuple[int, ...]) -> None:
        """Tokens may come from a session file."""
        vocabulary = self.model.info.vocabulary
        stray = next((id_ for id_ in ids if not 0 <= id_ < vocabulary), None)
        if stray is not None:
            raise InputError(
                f"This text was written with token {stray:,}, and the vocabulary of {self.model.info.name} ends at "
                f"{vocabulary - 1:,}. Delete this branch, or open the checkpoint that wrote it."
            )

    def _written_of(self, inputs: RunInputs) -> Generation:
        if self._writing is None or self._writing.inputs != inputs:
            self._writing = Generation(self.model, inputs)
        return self._writing

    def _filling_of(self, inputs: RunInputs) -> Filling:
        filling, text = self._filling, shown_of(inputs.prompt)
        if filling is None or (filling.text, filling.interventions) != (text, inputs.interventions):
            filling = self._filling = Filling(self.model, text, inputs.interventions)
        return filling
