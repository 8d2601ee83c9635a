"""Several texts that are run together: how an intent changes them. Pure."""

from __future__ import annotations

from dataclasses import replace

from attention_explorer.session.intents import AddTexts, KeepShownText, RemoveText, SetPadding, ShowText
from attention_explorer.session.rules import chooses, rule, with_prompt_of
from attention_explorer.session.state import State
from attention_explorer.session.text_limits import MOST_CHARACTERS
from attention_explorer.session.texts import alone, showing, texts_of, with_more_texts, without_text
from attention_models.protocol.batch import MOST_TEXTS


@rule.register
def _(intent: AddTexts, state: State) -> State:
    longest = max((len(text) for text in intent.texts), default=0)
    if longest > MOST_CHARACTERS:
        raise ValueError(f"One of these texts has {longest:,} characters, and the window takes {MOST_CHARACTERS:,}.")
    document = with_more_texts(state.document, intent.texts, chooses(state))
    count = len(texts_of(document))
    if count > MOST_TEXTS:
        raise ValueError(f"These would be {count:,} texts; {MOST_TEXTS} are run at once at most.")
    return with_prompt_of(state, document)


@rule.register
def _(intent: ShowText, state: State) -> State:
    _check(intent.index, state)
    return with_prompt_of(state, showing(state.document, intent.index))


@rule.register
def _(intent: RemoveText, state: State) -> State:
    if _check(intent.index, state) == 1:
        raise ValueError("It is the only text: there is none beside it.")
    return with_prompt_of(state, without_text(state.document, intent.index))


@rule.register
def _(intent: KeepShownText, state: State) -> State:
    return with_prompt_of(state, alone(state.document))


@rule.register
def _(intent: SetPadding, state: State) -> State:
    return with_prompt_of(state, replace(state.document, padding=intent.side))


def _check(index: int, state: State) -> int:
    """How many texts there are. Raises ValueError where none is at `index`."""
    count = len(texts_of(state.document))
    if not 0 <= index < count:
        raise ValueError(f"There is no text {index + 1}: there are {count}.")
    return count
