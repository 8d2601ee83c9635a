"""Does order matter? The same words in another order, with the model's positions and without.

Without positions attention treats its keys as a set: in a bidirectional model each token's output moves along with the
token, unchanged. A causal mask still tells order: what comes earlier is seen by more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from attention_models.forward.context import Context
from attention_models.forward.model import Model
from attention_models.forward.run import run
from attention_models.forward.trace import Trace
from attention_models.protocol.batch import Batch
from attention_models.protocol.chat import Pair
from attention_models.protocol.errors import InputError
from attention_models.protocol.interventions import Intervention, Mask, Positions
from attention_models.protocol.positions import Moved, ShuffleRequest, ShuffleView
from attention_models.protocol.values import Token
from attention_models.views.positions import describe_positions
from attention_models.views.residual import stream_after

_OF_ONE_WORD = "A single word has no other order. Type a second one."
_NO_WORDS = "These tokens would be read as others if they were written as a text, so no word of it can be moved."
_STAYS: dict[type, str] = {
    Pair: "Each word of a pair belongs to its text, so none changes places. Remove the second text to try it with one.",
    Batch: "The order of words is changed in one text alone: take the others of the batch out.",
}
_ROWS = 256  # positions whose logits are held at once


def answer(request: ShuffleRequest, context: Context) -> ShuffleView:
    run = context.run(request.run)
    context.report("Running the text in another order", None)
    if isinstance(run.text, list):
        raise InputError(_NO_WORDS)
    text = run.text if isinstance(run.text, Pair | Batch) else run.model.text_read(run.text)
    return shuffle_view(request, run.model, run.trace, text, context.should_stop)


@torch.no_grad()
def shuffle_view(
    request: ShuffleRequest, model: Model, trace: Trace, text: str | Pair | Batch, should_stop: Callable[[], bool]
) -> ShuffleView:
    """How far each token's output moves with its words in the order that the request's seed says.

    Interventions of the run are left out, but for the positions: painted cells and windows name places themselves.

    Raises:
        InputError: the model reads no words.
        Cancelled: `should_stop()` was true.
    """
    if model.info.family == "vision":
        raise InputError(f"{model.info.name} looks at pictures: there are no words whose order could be changed.")
    tokens = trace.source or trace.tokens
    words = words_of(tokens, text) if isinstance(text, str) else []
    order = new_order(words, len(tokens), request.seed)
    scheme = describe_positions(model, trace.sites[0])
    causal = not model.seq2seq and trace.sites[0].causal
    can_open = causal and not model.info.weights_only  # such a model's mask is out of reach
    moved = sorted(order) != list(order)

    def measure(*interventions: Intervention) -> Moved:
        if not moved:
            return Moved(np.zeros(len(tokens), np.float32))
        return _moved(model, [token.id for token in tokens], order, interventions, should_stop)

    off = Positions("off")
    return ShuffleView(
        request=request,
        words=tuple(token.word for token in tokens),
        order=tuple(order),
        fixed=tuple(_is_fixed(tokens)),
        measured="hidden states" if model.seq2seq or not trace.has_logits else "logits",
        causal=causal,
        on=measure(),
        off=None if scheme.off_note else measure(off),
        off_open=measure(off, Mask("none")) if can_open and not scheme.off_note else None,
        note="" if moved else _STAYS.get(type(text), _OF_ONE_WORD),
        scheme=scheme,
    )


def words_of(tokens: Sequence[Token], text: str) -> list[list[int]]:
    """The places of the tokens that make up each word, without those that stay where they are."""
    words: list[list[int]] = []
    end, has_letters = 0, False
    for place, (token, stays) in enumerate(zip(tokens, _is_fixed(tokens), strict=True)):
        if stays:
            continue
        piece, before = text[token.start : token.end], text[end : token.start]
        # white space opens a word, and goes with what follows it
        if not words or (has_letters and (before.isspace() or piece[:1].isspace())):
            words.append([])
            has_letters = False
        words[-1].append(place)
        has_letters = has_letters or bool(piece.strip())
        end = token.end
    return words


def _is_fixed(tokens: Sequence[Token]) -> list[bool]:
    """Whether each token stays where it is: a special one, and in a conversation all that its template wrote."""
    is_chat = any(token.role for token in tokens)
    return [token.special or (is_chat and not token.role) for token in tokens]


def new_order(words: Sequence[Sequence[int]], tokens: int, seed: int) -> list[int]:
    """Which token stands at each place once the words have changed places: a permutation of 0 ... tokens - 1.

    Words stay whole. Seed 0 swaps the first word and the last, others draw; never the order as it was where there is
    another one.
    """
    ranks = list(range(len(words)))
    if len(words) > 1:
        if seed == 0:
            ranks[0], ranks[-1] = ranks[-1], ranks[0]
        else:
            generator = np.random.default_rng(seed)
            while ranks == sorted(ranks):
                ranks = [int(rank) for rank in generator.permutation(len(words))]
    moving = iter([place for rank in ranks for place in words[rank]])
    free = {place for word in words for place in word}
    return [next(moving) if place in free else place for place in range(tokens)]


def _moved(
    model: Model,
    ids: Sequence[int],
    order: Sequence[int],
    interventions: Sequence[Intervention],
    should_stop: Callable[[], bool],
) -> Moved:
    """By place in the new order: the largest absolute difference to what the same token gave in the old one."""
    written, changed = (
        run(model, list(some), interventions=interventions, should_stop=should_stop)
        for some in (ids, [ids[place] for place in order])
    )
    apart = [
        (_outputs(model, changed, rows) - _outputs(model, written, [order[row] for row in rows])).abs().amax(dim=-1)
        for rows in (range(i, min(i + _ROWS, len(ids))) for i in range(0, len(ids), _ROWS))
    ]
    array = torch.cat(apart).float().cpu().numpy()  # (tokens,)
    array.flags.writeable = False
    return Moved(array)


def _outputs(model: Model, trace: Trace, rows: Sequence[int]) -> Tensor:
    """(rows, vocabulary or width): logits, or where there are none of the shuffled text, its last hidden states."""
    if trace.has_logits and not model.seq2seq:
        return trace.logits_at(rows)
    site, inputs = trace.sites[0], trace.inputs[0]
    if site.stack not in trace.residual:  # a recurrent model: the encoder states that it looks back at
        return inputs.value[0, 0, list(rows)]
    return stream_after(model, trace, site.stack, len(trace.residual[site.stack]) - 2)[list(rows)]
