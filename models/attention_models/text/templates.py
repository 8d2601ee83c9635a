"""Renders a conversation by the template of a checkpoint, and tells which characters of the text were whose.

A template is a program in Jinja that comes with the tokenizer. It runs within limits, in a process of its own
(`attention_models.text.template_process`).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

from attention_models.protocol.chat import Chat, Role, Turn
from attention_models.protocol.errors import InputError
from attention_models.text.template_limits import MOST_SECONDS, MOST_WRITTEN, Failed, Refused, Stopped, within_limits
from attention_models.text.template_process import THE_PROCESS

_MARK = "\ue0d7{}\ue0d8"  # in the place of a turn's text; of the private use area, which no template trims
_MARKS = re.compile("\ue0d7([0-9]+)\ue0d8")


@dataclass(frozen=True, slots=True)
class Span:
    """Characters `start` to `end` of a rendered text, said by `role`."""

    start: int
    end: int
    role: Role


@dataclass(frozen=True, slots=True)
class Rendered:
    """A conversation as the model reads it, up to where the assistant is to go on."""

    text: str
    spans: tuple[Span, ...]  # in order; what lies between was written by the template

    def role_of(self, start: int, end: int) -> Role | None:
        """Who said most of the characters `start` to `end`; None where most are the template's own, or there are none.

        Exactly half of them is enough.
        """
        said: dict[Role, int] = {}
        if start == end:
            return None
        first = bisect_right(self.spans, start, key=_end)
        for span in takewhile(lambda span: span.start < end, self.spans[first:]):
            shared = min(end, span.end) - max(start, span.start)
            said[span.role] = said.get(span.role, 0) + shared
        most = max(said, key=said.__getitem__, default=None)
        return most if most is not None and 2 * said[most] >= end - start else None


def has_template(tokenizer: Any) -> bool:
    return bool(getattr(tokenizer, "chat_template", None))


def render(tokenizer: Any, chat: Chat, name: str = "This model") -> Rendered:
    """The text that the model reads of `chat`, ending where the assistant goes on.

    After a turn of another that is the prompt for a new turn of the assistant, as the template has it. The assistant's
    own last turn is left open: nothing ends it.

    Raises:
        InputError: no template, no turn, a conversation that the template refuses (in its own words), or a template
            that fails or does not end.
    """
    if not has_template(tokenizer):
        raise InputError(f"{name} has no chat template. Give it plain text, or open a model that was made to converse.")
    if not chat.turns:
        raise InputError("The conversation is empty. Add a turn for the model to read.")
    if all(not turn.text.strip() for turn in chat):
        raise InputError("The conversation is empty. Type something into one of its turns.")
    render_turns = _Renderer(tokenizer, name)
    *before, last = chat.turns
    if last.role != "assistant" or not before:
        text = render_turns(chat.turns, last.role != "assistant")
        return Rendered(text, _spans(render_turns, chat.turns, text, last.role != "assistant"))
    whole = render_turns(chat.turns, False)  # it may refuse the last turn
    head = render_turns(before, True)
    spans = _spans(render_turns, before, head, True)
    lead, said = _left_open(head, whole, last.text)
    start = len(head) + len(lead)
    return Rendered(head + lead + said, (*spans, *_nonempty(Span(start, start + len(said), "assistant"))))


def turn_end(tokenizer: Any) -> str:
    """What the template writes after a turn of the assistant; "" where that cannot be told."""
    turns = [Turn("user", "a"), Turn("assistant", _MARK.format(1))]
    try:
        text = _Renderer(tokenizer, "")(turns, False)
    except InputError:
        return ""
    found = _MARKS.search(text)
    return text[found.end() :] if found is not None else ""


class _Renderer:
    """Renders turns by the template of one tokenizer."""

    def __init__(self, tokenizer: Any, name: str) -> None:
        self._tokenizer, self._name = tokenizer, name

    def __call__(self, turns: Sequence[Turn], prompts: bool) -> str:
        """The text of `turns`, with the prompt for the assistant if `prompts`."""
        messages = [{"role": turn.role, "content": turn.text} for turn in turns]
        try:
            text = self._rendered(messages, prompts)
        except Stopped as error:
            raise InputError(f"The chat template of {self._name} was stopped: {error}. Give it plain text.") from None
        except Refused as error:
            raise InputError(_refusal(self._name, str(error))) from error
        except Failed as error:
            raise InputError(
                f"The chat template of {self._name} fails on this conversation ({_shortened(str(error))}). "
                "Change the turns, or give it plain text."
            ) from error
        if not text:
            raise InputError(f"The chat template of {self._name} leaves nothing of this conversation.")
        return text

    def _rendered(self, messages: list[dict[str, str]], prompts: bool) -> str:
        """What the template makes of `messages`.

        Raises:
            Refused, Failed, Stopped: it gives none.
        """
        from transformers import PreTrainedTokenizerBase

        tokenizer = self._tokenizer
        own = getattr(type(tokenizer), "apply_chat_template", None)
        if own is not PreTrainedTokenizerBase.apply_chat_template:  # code of the person who gave the object
            with within_limits(MOST_SECONDS, MOST_WRITTEN):
                return str(tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=prompts))
        try:
            template = tokenizer.get_chat_template()  # of several, the one named "default"
        except ValueError as error:
            raise Failed(str(error)) from error
        return THE_PROCESS.render(template, messages, prompts, tokenizer.special_tokens_map)


def _refusal(name: str, sentence: str) -> str:
    """What a template says with `raise_exception`."""
    said = _shortened(" ".join(sentence.split())) or "it gives no reason"
    return f"The chat template of {name} refuses this conversation: {said.rstrip('.')}. Change the turns."


def _shortened(sentence: str) -> str:
    return sentence if len(sentence) <= 300 else sentence[:300] + "…"


def _left_open(head: str, whole: str, text: str) -> tuple[str, str]:
    """The assistant's last turn without its end: white space that the template puts before `text`, and the text.

    Where the template would change the words, they follow the prompt as they are: so the model read them when it
    wrote them.
    """
    rest, core = whole[len(head) :] if whole.startswith(head) else "", text.strip()
    if not core or not rest.lstrip().startswith(core):
        return "", text
    lead = rest[: rest.index(core)]
    own = text[: len(text) - len(text.lstrip())]
    kept = next((own[at:] for at in range(len(own) + 1) if lead.endswith(own[at:])), "")
    return lead[: len(lead) - len(kept)], kept + text.lstrip()


def _spans(render_turns: _Renderer, turns: Sequence[Turn], text: str, prompts: bool) -> tuple[Span, ...]:
    """Where each turn's words lie in `text`.

    A second rendering with a mark in place of each turn's words shows what the template itself writes. Where it treats
    the marks differently from the words, whose characters they are stays unknown.
    """
    marked = [replace(turn, text=_MARK.format(i) if turn.text else "") for i, turn in enumerate(turns)]
    try:
        parts = _MARKS.split(render_turns(marked, prompts))  # own text, number, own text, number, ..., own text
    except InputError:
        return ()
    if not text.startswith(parts[0]):
        return ()
    spans: list[Span] = []
    at = len(parts[0])
    for place in range(1, len(parts), 2):
        number, own = int(parts[place]), parts[place + 1]
        if number >= len(turns):
            return tuple(spans)  # no mark of ours
        turn = turns[number]
        end = _end_of(text, at, turn.text, own, is_last=place + 2 == len(parts))
        if end is None:
            return tuple(spans)
        spans += _nonempty(Span(at, end, turn.role))
        at = end + len(own)
    return tuple(spans)


def _end_of(text: str, at: int, said: str, own: str, is_last: bool) -> int | None:
    """Where the words `said`, as the template left them, end in `text`; the template's `own` text follows."""
    for words in (said, said.strip(), said.rstrip(), said.lstrip()):
        end = at + len(words)
        if text.startswith(words, at) and text.startswith(own, end) and (not is_last or end + len(own) == len(text)):
            return end
    # the template kept a part of it: what stands before its own next words, if that was said
    end = len(text) - len(own) if is_last else text.find(own, at) if own else -1
    return end if end >= at and text.startswith(own, end) and text[at:end].strip() in said else None


def _end(span: Span) -> int:
    return span.end


def _nonempty(span: Span) -> tuple[Span, ...]:
    return (span,) if span.start < span.end else ()
