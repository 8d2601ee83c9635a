"""Where the ids of a run come from, and whether the tokenizer's own call gives the same of the same text.

What is compared is a table of inputs by name (input_ids, and token_type_ids where the model reads them), as a tokenizer
of transformers gives it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from transformers import PreTrainedTokenizerBase

from attention_models.forward.model import Model
from attention_models.forward.trace import Trace
from attention_models.protocol.batch import Batch
from attention_models.protocol.chat import Chat, Pair
from attention_models.protocol.trust import InputReport
from attention_models.text.plain_tokenizer import GivenTokenizer, PlainTokenizer

_COMPARED = ("input_ids", "token_type_ids")
_SURROGATES = re.compile("[\ud800-\udfff]")


def report_on_input(model: Model, given: Any, trace: Trace) -> InputReport | None:
    """What can be said of the ids of `trace`, a run of `model` on `given`, as in `ax.run`; None of a picture."""
    if isinstance(given, Batch):
        given = given.prompt
    if model.tokenizer is None or not isinstance(given, (str, Chat, Pair, list)):
        return None
    if isinstance(given, list) and given and isinstance(given[0], Mapping):
        given = Chat.of(given)
    if isinstance(given, list):
        return InputReport("The ids were given as they are: there is no text of which a tokenizer would make them.")
    read = trace.source or trace.tokens  # what was run, and not what would be run now
    ours = {"input_ids": [token.id for token in read if not token.padding]}
    if trace.origin is not None and trace.origin.segment_ids:
        segments = zip(trace.origin.segment_ids, read, strict=False)
        ours["token_type_ids"] = [segment for segment, token in segments if not token.padding]
    wanted, call = _own_call(model, given)
    found = first_difference(model, ours, wanted) or _difference_of_target(model, trace)
    if found:
        return InputReport(f"{found} {call} was asked again.", equal=False)
    twice = _starts_twice(model, wanted["input_ids"])
    if isinstance(model.tokenizer, PlainTokenizer):
        story = (
            f"The ids are those of {call}. Whether the model was trained with them cannot be known: a function comes "
            f"without a tokenizer to compare it with. {twice}"
        )
        return InputReport(story.strip(), starts_twice=bool(twice))
    return InputReport(f"Asked again, {call} gives the same ids. {twice}".strip(), equal=True, starts_twice=bool(twice))


def first_difference(model: Model, ours: Mapping[str, Sequence[int]], wanted: Mapping[str, Sequence[int]]) -> str:
    """Where two tables of inputs part, as a sentence; "" where they do not. What is not given counts as zeros."""
    for name in _COMPARED:
        if name not in wanted or not (name == "input_ids" or model.takes_segments(wanted[name])):
            continue
        theirs = list(wanted[name])
        mine = list(ours.get(name, [0] * len(theirs)))
        if mine == theirs:
            continue
        if mine[:1] == theirs[:1] and mine[1:] == theirs:
            return f"The first token, {model.piece(mine[0])}, comes twice."
        place = next((i for i, (a, b) in enumerate(zip(mine, theirs, strict=False)) if a != b), None)
        if place is None:
            return f"{len(mine):,} tokens were run, and its tokenizer makes {len(theirs):,} of this text."
        if name == "token_type_ids":
            return f"Token {place} was run as of segment {mine[place]}; its tokenizer puts it in {theirs[place]}."
        return (
            f"Token {place} was run as {mine[place]} ({model.piece(mine[place])}); its tokenizer makes it "
            f"{theirs[place]} ({model.piece(theirs[place])})."
        )
    return ""


def _difference_of_target(model: Model, trace: Trace) -> str:
    """Where the ids of a typed target part from the tokenizer's own, as a sentence; "" where they do not.

    It is made to be said up to its end, so that the end, which the tokenizer puts there, is left out.
    """
    target = None if trace.origin is None else trace.origin.target
    if not target or not isinstance(model.tokenizer, PreTrainedTokenizerBase):
        return ""
    ours = [token.id for token in trace.tokens if not token.padding][1:]
    safe = _SURROGATES.sub("\ufffd", target)
    called = model.tokenizer(text_target=safe, return_special_tokens_mask=True)
    ids, added = called["input_ids"], called["special_tokens_mask"]
    if ids[: len(ours)] == ours and all(added[len(ours) :]):
        return ""
    start = next((i for i, is_added in enumerate(added) if not is_added), 0)
    typed = model.tokenizer(text_target=safe, add_special_tokens=False)["input_ids"]
    if start and typed == ours and ours[:start] == ids[:start]:
        return ""  # its start was typed, and stands there once
    place = next((i for i, (a, b) in enumerate(zip(ours, ids, strict=False)) if a != b), None)
    if place is None:
        return f"Of the target {len(ours):,} tokens were run, and its tokenizer makes {len(ids):,} of it, with its end."
    return (
        f"Token {place + 1} of the target was run as {ours[place]} ({model.piece(ours[place])}); its tokenizer makes "
        f"it {ids[place]} ({model.piece(ids[place])})."
    )


def _own_call(model: Model, given: str | Chat | Pair) -> tuple[dict[str, list[int]], str]:
    """What the tokenizer itself makes of it, and what to call that."""
    if isinstance(given, Pair):
        return _own_call_with_pair(model, given)
    tokenizer, text = model.tokenizer, _SURROGATES.sub("\ufffd", model.text_read(given))
    if isinstance(tokenizer, GivenTokenizer):
        return {"input_ids": tokenizer.own_ids(text)}, f"{tokenizer.whose}(text)"
    whose = "the tokenizer that was handed over" if model.info.borrowed else f"{model.info.name}'s own tokenizer"
    if isinstance(given, Chat):
        return dict(tokenizer(text, add_special_tokens=False)), f"{whose}, given what its chat template writes,"
    found = {name: list(part) for name, part in tokenizer(text).items()}
    if model.info.prefix:
        # training put it there, and the tokenizer does not: Model.info says so of shipped ones
        before = tokenizer(model.info.prefix, add_special_tokens=False)["input_ids"]
        found = {"input_ids": [*before, *found["input_ids"]]}
        return found, f"{whose}, with {model.info.prefix} in front as in training,"
    return found, whose


def _own_call_with_pair(model: Model, pair: Pair) -> tuple[dict[str, list[int]], str]:
    whose = "the tokenizer that was handed over" if model.info.borrowed else f"{model.info.name}'s own tokenizer"
    first, second = (_SURROGATES.sub("\ufffd", text) for text in (pair.first, pair.second))
    found = model.tokenizer(first, second, return_token_type_ids=True)  # some leave them out unless they are asked for
    return {name: list(part) for name, part in found.items()}, f"{whose}, given both texts,"


def _starts_twice(model: Model, ids: Sequence[int]) -> str:
    """A remark where the tokenizer itself begins twice: its start was typed into the text, or added by a template."""
    if len(ids) > 1 and ids[0] == ids[1] and model.stands_for_no_text(ids[0]):
        return f"They begin with {model.piece(ids[0])} twice, which no model is trained on: leave one out."
    return ""
