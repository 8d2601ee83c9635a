"""A masked model fills its masks one after the other, the most confident first, and reads all again after each."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np
import torch

from attention_models.attention.row_cache import most_rows
from attention_models.decoding.choosing import choose
from attention_models.decoding.samples import ContinuationRun
from attention_models.decoding.spelling import in_place_of
from attention_models.forward.current_run import ReadAlong
from attention_models.forward.model import Model
from attention_models.forward.run import run
from attention_models.forward.trace import Trace
from attention_models.protocol.decoding import (
    DecodeRowsRequest,
    DecodeRowsView,
    DecodeStepRequest,
    DecodeStepView,
    Ending,
)
from attention_models.protocol.errors import InputError
from attention_models.protocol.interventions import Intervention
from attention_models.protocol.prompt import Prompt, plain_text
from attention_models.protocol.request import Cancelled
from attention_models.text.common_start import common_start


class Filling:
    """A text, or a pair of texts, whose masks are being filled.

    Every step is a whole forward pass: nothing is kept from one to the next, since each word that comes in changes all
    others.
    """

    def __init__(self, model: Model, text: Prompt, interventions: Sequence[Intervention] = ()) -> None:
        self.model, self.text, self.interventions = model, text, tuple(interventions)
        self._texts = [text]  # after each choice
        self._ids: tuple[int, ...] = ()
        self._places: tuple[int, ...] = ()  # of each: where its mask was
        self._last: tuple[Prompt, Trace] | None = None  # the text that was read last, and its run

    def step(self, request: DecodeStepRequest, should_stop: Callable[[], bool]) -> DecodeStepView:
        """Fill the most confident mask that is left.

        Raises:
            InputError: no mask is left, or a beam search was asked for.
        """
        started = time.perf_counter()
        if request.settings.strategy == "beam":
            raise InputError(
                "A beam search writes from left to right; this model fills masks. Choose greedy or sampling."
            )
        self._go_to(request.ids, should_stop)
        view = fill(self.model, self._read(should_stop), self._texts[-1], request)
        return replace(view, seconds=time.perf_counter() - started)

    def rows(self, request: DecodeRowsRequest, should_stop: Callable[[], bool]) -> DecodeRowsView:
        """Where the head looked when the last of `ids` was chosen."""
        self._go_to(request.ids[:-1], should_stop)
        trace = self._read(should_stop)
        words, place = tuple(token.word for token in trace.tokens), most_confident(self.model, trace)[0]
        many = most_rows(len(words), len(words))
        first = max(0, min(place - many // 2, len(words) - many))
        rows = slice(first, first + many)
        weights = trace.weights(request.site, request.head, rows)
        weights.flags.writeable = False
        return DecodeRowsView(
            request=request,
            weights=weights,
            masked=trace.masked(request.site, request.head, rows),
            queries=words[rows],
            keys=words,
            first=first,
            chose=place - first,
            prompt=len(words[rows]),
            from_steps=False,
        )

    def read_along(self, ids: tuple[int, ...], should_stop: Callable[[], bool]) -> ContinuationRun:
        """The text with `ids` in its masks, as far as they can be written there, as it is read next."""
        with suppress(InputError):  # the step has said so
            self._go_to(ids, should_stop)
        trace, whole = self._read(should_stop), self._texts[-1]
        return ContinuationRun(trace, None, ReadAlong(whole, whole, self._places))

    def _read(self, should_stop: Callable[[], bool]) -> Trace:
        """Raises InputError where an intervention names a layer or head that the model does not have."""
        text = self._texts[-1]
        if self._last is None or self._last[0] != text:
            try:
                trace: Trace = run(self.model, text, interventions=self.interventions, should_stop=should_stop)
            except ValueError as error:
                raise InputError(str(error)) from None
            self._last = text, trace
        return self._last[1]

    def _go_to(self, ids: tuple[int, ...], should_stop: Callable[[], bool]) -> None:
        """Fill the masks with `ids`, in the order of confidence."""
        common = common_start(ids, self._ids)
        self._texts, self._ids, self._places = self._texts[: common + 1], ids[:common], self._places[:common]
        for id_ in ids[common:]:
            if should_stop():
                raise Cancelled
            trace = self._read(should_stop)
            place, _ = most_confident(self.model, trace)
            spelled = in_place_of(self.model, self._texts[-1], trace.tokens, place, id_)
            if spelled.misread:
                raise InputError(spelled.unwritable(f"“{self.model.piece_label(id_)}”"))
            self._texts.append(spelled.whole)
            self._ids, self._places = (*self._ids, id_), (*self._places, place)


def fill(model: Model, trace: Trace, text: Prompt, request: DecodeStepRequest) -> DecodeStepView:
    """Fill the most confident mask of `text`, which was run as `trace`.

    Raises:
        InputError: there is no mask, or none where one is asked for.
    """
    place, left = most_confident(model, trace)
    if request.place is not None:
        place = _mask_at(model, trace, request.place)
    ids = torch.tensor([[token.id for token in trace.tokens]])
    logits = trace.logits_at([place]).float()
    choice = choose(model, logits, ids, request.settings, request.number, request.top, request.forced)
    spelled = in_place_of(model, text, trace.tokens, place, choice.token)
    is_done: Ending = "masks" if left == 1 else "steps" if request.number >= request.steps else ""
    return DecodeStepView(
        request=request,
        text=plain_text(spelled.whole),
        whole=spelled.whole,
        misread=spelled.misread,
        ids=(*request.ids, choice.token),
        candidates=choice.candidates,
        stages=choice.stages,
        chosen=choice.chosen,
        drawn=choice.drawn,
        log_probability=choice.log_probability,
        ending="misread" if spelled.misread else is_done,
        cache=(),
        cache_bytes=0,
        place=place,
        masks=left - 1,
    )


def _mask_at(model: Model, trace: Trace, place: int) -> int:
    """`place`. Raises InputError where there is no mask."""
    if not 0 <= place < len(trace.tokens) or trace.tokens[place].piece != model.info.mask_token:
        raise InputError(f"There is no {model.info.mask_token} at position {place}.")
    return place


def most_confident(model: Model, trace: Trace) -> tuple[int, int]:
    """The position of the mask whose likeliest token is the likeliest, and how many masks there are.

    Raises:
        InputError: there is none.
    """
    masks = [i for i, token in enumerate(trace.tokens) if token.piece == model.info.mask_token]
    if not masks or not trace.has_logits:
        mask = model.info.mask_token
        raise InputError(
            f"There is no {mask} to fill. Write {mask} in the place of a word; in the window, select it and press Mask."
        )
    best = trace.logits_at(masks).float().softmax(dim=-1).amax(dim=-1)  # (masks,)
    return masks[int(np.argmax(best.cpu().numpy()))], len(masks)
