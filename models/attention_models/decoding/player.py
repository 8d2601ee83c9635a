"""Writes one step a request for the decoding player, and goes back and sideways in its key/value cache."""

from __future__ import annotations

from dataclasses import replace

from attention_models.decoding.continuation_run import ContinuationRun
from attention_models.decoding.filling import Filling
from attention_models.decoding.generation import Generation
from attention_models.decoding.next_token import write_into_input
from attention_models.forward.context import Context
from attention_models.forward.model import Model
from attention_models.protocol.decoding import (
    DecodeRowsRequest,
    DecodeRowsView,
    DecodeSamplesRequest,
    DecodeSamplesView,
    DecodeStepRequest,
    DecodeStepView,
)
from attention_models.protocol.errors import InputError, StaleRunError
from attention_models.protocol.prompt import shown_of
from attention_models.protocol.run_inputs import RunInputs
from attention_models.protocol.work import ShouldStop


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
