"""One more token: what the model would write after a text, or in the place of its most confident mask."""

from __future__ import annotations

from dataclasses import dataclass

from models.forward.context import Context
from models.forward.model import Model
from models.forward.predictions import predict
from models.forward.trace import Trace
from models.protocol.chat import Pair, Prompt, plain_text, with_more
from models.protocol.errors import InputError
from models.protocol.step import Stepped, StepRequest
from models.protocol.values import Candidate, Token

# a character of several byte tokens is written whole: UTF-8 has at most four
_CHARACTER_TOKENS = 4


@dataclass(frozen=True, slots=True)
class Written:
    text: Prompt
    chosen: Candidate
    target: str | None = None  # of an encoder-decoder model: what its decoder has said
    ended: bool = False  # the model chose to end the text (a token that stands for no text); `text` is as it was


def answer(request: StepRequest, context: Context) -> Stepped:
    run = context.run(request.run)
    written = write_next(run.model, run.trace, run.text, run.written)
    return Stepped(
        request=request, text=written.text, chosen=written.chosen, ended=written.ended, target=written.target
    )


def write_next(model: Model, trace: Trace, text: Prompt, target: str | list[int] | None = None) -> Written:
    """The text with the likeliest token in it: at its end (causal), or in the most confident mask (masked models).

    In a conversation it is the assistant who goes on.

    An encoder-decoder model goes on with `target`, what its decoder has said so far.

    Raises:
        InputError: the context is full, there is no mask to fill, or the model writes nothing.
    """
    if model.info.family == "masked":
        return _fill_mask(model, trace, text)
    if model.info.family not in ("causal", "seq2seq"):
        raise InputError(f"{model.info.name} writes no text after its input.")
    if model.seq2seq and not isinstance(target, str):
        raise InputError(
            "The model has written its whole answer. Begin the target yourself, or empty it, to go step by step."
        )
    limit = model.info.context
    if limit is not None and len(trace.tokens) >= limit:
        raise InputError(
            f"The context is full: {model.info.name} reads at most {limit:,} tokens, and the text has them all. "
            "Take some text away to let it write on."
        )
    chosen = predict(model, trace, [len(trace.tokens) - 1], top=1)[0].candidates[0]
    if model.stands_for_no_text(chosen.id) or chosen.id in model.turn_end_ids:
        return Written(text, chosen, target if isinstance(target, str) else None, ended=True)
    if model.seq2seq:
        said = [token.id for token in trace.tokens[1:]]  # after the start token
        return Written(text, chosen, _decode(model, [*said, chosen.id]))
    return Written(with_more(text, _written(model, trace, chosen.id)), chosen)


def _written(model: Model, trace: Trace, first: int) -> str:
    """What the chosen token adds to the text; where it is part of a character, with the tokens that complete it."""
    from models.forward.run import run

    ids = [token.id for token in trace.tokens]
    before = _decode(model, ids)
    ids.append(first)
    for _ in range(_CHARACTER_TOKENS):
        added = _decode(model, ids)[len(before) :]
        if added and not added.endswith("\ufffd"):
            return added
        if model.info.context is not None and len(ids) >= model.info.context:
            break
        ids.append(int(run(model, ids).logits_at([len(ids) - 1])[0].argmax()))
    return added


def _decode(model: Model, ids: list[int], skip_special: bool = True) -> str:
    text: str = model.tokenizer.decode(ids, skip_special_tokens=skip_special, clean_up_tokenization_spaces=False)
    return text


def _fill_mask(model: Model, trace: Trace, text: Prompt) -> Written:
    masks = [i for i, token in enumerate(trace.tokens) if token.piece == model.info.mask_token]
    if not masks:
        raise InputError(
            f"There is no {model.info.mask_token} to fill. Select a word and press Mask, then Step lets the model "
            "fill it."
        )
    most_confident = max(
        predict(model, trace, masks, top=1), key=lambda prediction: prediction.candidates[0].probability
    )
    chosen = most_confident.candidates[0]
    return Written(filled(model, text, trace.tokens[most_confident.position], chosen.id), chosen)


def filled(model: Model, text: Prompt, mask: Token, id_: int) -> Prompt:
    """`text` with the vocabulary entry `id_` in the place of `mask`, one of its tokens."""
    if isinstance(text, Pair):
        return text.with_text(mask.segment, _filled(model, text.text(mask.segment), mask, id_))
    return _filled(model, plain_text(text), mask, id_)


def _filled(model: Model, text: str, mask: Token, id_: int) -> str:
    before, after = text[: mask.start], text[mask.end :]
    piece = model.piece(id_)
    if piece.startswith("##"):  # WordPiece goes on with the word before it
        return before.rstrip() + piece.removeprefix("##") + after
    # RoBERTa's mask takes the space before it along
    space = mask.text[: len(mask.text) - len(mask.text.lstrip())]
    return before + space + _decode(model, [id_], skip_special=False).strip() + after
