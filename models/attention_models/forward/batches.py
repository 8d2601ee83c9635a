"""Several texts made into one input, as a training loop makes it: padded to one length, the padding masked.

Each text is read as if it were run alone. Of padding on the left most families with absolute positions know nothing:
their own forward counts it, so that position ids are given to them, as transformers' `generate` gives them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import torch
from torch import Tensor

from attention_models.files.memory import KEPT_BYTES
from attention_models.forward.model import Encoded, Given, Model, Target
from attention_models.forward.position_tables import own_positions
from attention_models.protocol.batch import Batch, PaddingSide
from attention_models.protocol.chat import Chat, Pair
from attention_models.protocol.errors import InputError
from attention_models.protocol.values import Token

MOST_TOKENS = 1 << 15
"""A batch comes to no more tokens than this, unless the model takes a text that is longer."""

Targets = Target | Sequence[Target]
"""What decoders have written: one for all texts of a batch, or one for each."""


def encode(model: Model, given: Given | Batch, target: Targets = None) -> Encoded:
    """As `Model.encode`; of a batch the text that is shown, whose inputs are those of the whole batch."""
    if isinstance(given, Batch):
        return encode_batch(model, given, target)[given.shown]
    return model.encode(given, target)  # type: ignore[arg-type]


def encode_batch(model: Model, batch: Batch, target: Targets = None) -> tuple[Encoded, ...]:
    """Each text of `batch`; all hold the same inputs, (texts, tokens).

    Raises:
        InputError: the model takes one text at a time, or a text alone or all together are too long for it.
    """
    if model.info.family == "vision" or model.info.textbook:
        raise InputError(f"{model.info.name} takes one input at a time.")
    alone = [
        _alone(model, batch, place, text, written)
        for place, (text, written) in enumerate(zip(batch.texts, targets_of(batch, target), strict=True), 1)
    ]
    return joined(model, alone, batch.padding)


def joined(model: Model, alone: Sequence[Encoded], side: PaddingSide = "right") -> tuple[Encoded, ...]:
    """Texts that were encoded one by one, as rows of one batch; all hold the same inputs, (texts, tokens).

    Raises:
        InputError: the model cannot hide padding, or all of them together are too long for it.
    """
    if "attention_mask" not in alone[0].inputs:
        raise InputError(f"{model.info.name} takes no attention mask, so padding cannot be hidden: run one text alone.")
    longest = max(max(len(one.tokens), len(one.source)) for one in alone)
    _check_size(model, len(alone), longest)
    inputs = _padded_inputs(model, [one.inputs for one in alone], side)
    positions = own_positions(model, inputs)
    if positions is not None:
        inputs["position_ids"] = positions
    decoded = max(len(one.tokens) for one in alone)
    read = max(len(one.source) for one in alone)
    filler = _filler(model, pad_id(model))
    written_filler = _filler(model, _decoder_pad_id(model)) if model.seq2seq else filler
    return tuple(
        replace(
            one,
            inputs=inputs,
            tokens=_filled(one.tokens, decoded, written_filler, side),
            source=_filled(one.source, read, filler, side),
            row=row,
        )
        for row, one in enumerate(alone)
    )


def real_keys(model: Model, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Which keys are no padding, (texts, keys) bool, by stack."""
    read = inputs["attention_mask"].bool()
    if not model.seq2seq:
        return {"decoder": read, "encoder": read}
    written = inputs.get("decoder_attention_mask", torch.ones_like(inputs["decoder_input_ids"])).bool()
    return {"encoder": read, "cross": read, "decoder": written}


def pad_id(model: Model) -> int:
    """What texts are filled up with: the tokenizer's padding, or, as is the custom where it has none, its end token.

    Raises:
        InputError: it has neither.
    """
    for name in ("pad_token_id", "eos_token_id"):
        value = getattr(model.tokenizer, name, None)
        if isinstance(value, int) and 0 <= value < (model.info.vocabulary or value + 1):
            return value
    raise InputError(f"{model.info.name}'s tokenizer has no token to fill texts up with. Give it a pad_token.")


def _alone(model: Model, batch: Batch, place: int, text: str | Pair | Chat, target: Target) -> Encoded:
    with of_text(batch, place):
        return model.encode(text, target)


@contextmanager
def of_text(batch: Batch, place: int) -> Iterator[None]:
    """Around what is done with the text at `place`, from 1: what is wrong is said of it."""
    try:
        yield
    except InputError as error:
        cut_to = error.cut_to if place == batch.shown + 1 else None  # what is offered to be cut is the text shown
        raise InputError(f"Text {place}: {error}", cut_to, of_target=error.of_target) from None


def targets_of(batch: Batch, target: Targets = None) -> list[Target]:
    """The target of each text: those of `target`, else those that were typed.

    Raises:
        InputError: they are not as many as the texts.
    """
    count = len(batch.texts)
    if target is None:
        return list(batch.targets or (None,) * count)
    if target and not isinstance(target, str) and not isinstance(target[0], int):
        if len(target) != count:
            raise InputError(f"There are {len(target)} targets for {count} texts. Give one for each, or one for all.")
        return list(target)  # type: ignore[arg-type]
    return [target] * count  # type: ignore[list-item]


def _check_size(model: Model, texts: int, longest: int) -> None:
    """Raises InputError where more would be kept of a batch than of a text as long as any that is taken."""
    info = model.info
    most = max(MOST_TOKENS, info.context or 0)
    if info.weights_only:
        heads = sum(stack.layers * stack.heads for stack in info.stacks)
        most = min(most, KEPT_BYTES // (4 * max(heads, 1) * longest))
    if info.vocabulary and not model.accepts("logits_to_keep"):  # then all logits are kept
        most = min(most, KEPT_BYTES // (info.vocabulary * model.dtype.itemsize))
    if texts > 1 and texts * longest > most:
        raise InputError(
            f"These {texts} texts come to {texts * longest:,} tokens, each padded to the {longest:,} of the longest; "
            f"{info.name} takes {most:,} at once here. Give fewer texts, or shorter ones."
        )


def _padded_inputs(model: Model, alone: Sequence[Mapping[str, Tensor]], side: PaddingSide) -> dict[str, Tensor]:
    fill = {"input_ids": pad_id(model), "token_type_ids": getattr(model.tokenizer, "pad_token_type_id", 0)}
    names = dict.fromkeys(name for one in alone for name in one if name != "decoder_input_ids")
    inputs = {
        # beside a pair, a text alone is given the segments that are left out where all of them are 0
        name: pad([one.get(name, torch.zeros_like(one["input_ids"])) for one in alone], fill.get(name, 0), side)
        for name in names
    }
    if "decoder_input_ids" in alone[0]:
        written = [one["decoder_input_ids"] for one in alone]
        inputs["decoder_input_ids"] = pad(written, _decoder_pad_id(model), side)
        if len({ids.shape[1] for ids in written}) > 1:
            inputs["decoder_attention_mask"] = pad([torch.ones_like(ids) for ids in written], 0, side)
    return inputs


def pad(rows: Sequence[Tensor], fill: int, side: PaddingSide) -> Tensor:
    """Rows of (1, tokens) as one tensor, (rows, most tokens)."""
    longest = max(row.shape[1] for row in rows)
    padded = rows[0].new_full((len(rows), longest), fill)
    for i, row in enumerate(rows):
        count = row.shape[1]
        padded[i, slice(0, count) if side == "right" else slice(longest - count, longest)] = row[0]
    return padded


def _decoder_pad_id(model: Model) -> int:
    value = getattr(model.config, "pad_token_id", None)
    return value if isinstance(value, int) else pad_id(model)


def _filler(model: Model, id_: int) -> Token:
    return Token(id_, model.piece(id_), "", 0, 0, special=True, label="⟨pad⟩", padding=True)


def _filled(tokens: tuple[Token, ...], length: int, filler: Token, side: PaddingSide) -> tuple[Token, ...]:
    if not tokens:
        return ()
    more = (filler,) * (length - len(tokens))
    return (*tokens, *more) if side == "right" else (*more, *tokens)
