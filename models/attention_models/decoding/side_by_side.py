"""What the player keeps between two steps of a beam search, and of several samples."""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile

import torch

from attention_models.decoding.beam import BeamSearch
from attention_models.decoding.cached_run import CachedRun, Run
from attention_models.decoding.choosing import Choice, end_ids
from attention_models.decoding.decode import beam_step, room
from attention_models.decoding.filters import filters
from attention_models.decoding.generation_config import GenerationConfigProcessors
from attention_models.decoding.samples import Samples
from attention_models.forward.model import Model
from attention_models.protocol.decoding import Beam, DecodeSamplesRequest, DecodeStepRequest
from attention_models.protocol.errors import InputError


class Search:
    """A beam search in the middle."""

    def __init__(
        self,
        model: Model,
        run: Run,
        request: DecodeStepRequest,
        text_of: Callable[[tuple[int, ...]], str],
        own: GenerationConfigProcessors,
    ) -> None:
        self.model, self.run, self.done = model, run, 0
        self._key = (request.settings, request.steps)
        self._text_of = text_of
        self._chain = filters(request.settings, own)
        settings = request.settings
        steps = room(model, run, request.steps)
        self.search = BeamSearch(settings.beams, settings.length_penalty, end_ids(model), steps)

    def leads_to(self, request: DecodeStepRequest) -> bool:
        """Whether the step that is asked for lies ahead on this search."""
        return self._key == (request.settings, request.steps) and self.done < request.number

    @torch.no_grad()
    def advance(self) -> tuple[Beam, ...]:
        if self.search.is_over:
            raise InputError("The beam search is over. Restart to search again.")
        looked_at, _ = beam_step(self.model, self.run, self.search, self._chain, self._text_of)
        self.done += 1
        return looked_at


class Drawing:
    """Samples in the middle."""

    def __init__(self, model: Model, run: Run, request: DecodeSamplesRequest, own: GenerationConfigProcessors) -> None:
        """Bring `run`, which stands at the prompt, to what each of the samples has written."""
        self.run = run
        self._settings = request.settings
        self.ids = dict(zip(request.samples, request.ids, strict=True))
        self._samples = Samples(model, run, request.settings, request.samples, own)
        shared = _shared(request.ids)
        for token in request.ids[0][:shared]:  # as one sequence
            self._read()
            run.append(torch.tensor([token], device=run.ids.device))
        for place in range(shared, len(request.ids[0])):
            if place == shared and isinstance(run, CachedRun):
                run.logits()  # what they share is read once
            self._read()
            self._samples.append({sample: ids[place] for sample, ids in self.ids.items()})

    def leads_to(self, request: DecodeSamplesRequest) -> bool:
        """Whether these are the samples that are to go on."""
        wanted = dict(zip(request.samples, request.ids, strict=True))
        return self._settings == request.settings and self.ids == wanted

    def advance(self, number: int, top: int) -> dict[int, Choice]:
        choices = self._samples.advance(number, top)
        self.ids = {sample: (*self.ids[sample], choices[sample].token) for sample in self._samples.writing}
        return choices

    def _read(self) -> None:
        if not isinstance(self.run, CachedRun):  # a state takes in one token at a time
            self.run.logits()


def _shared(texts: tuple[tuple[int, ...], ...]) -> int:
    """How many tokens all of them begin with."""
    return sum(1 for _ in takewhile(lambda tokens: len(set(tokens)) == 1, zip(*texts, strict=True)))
