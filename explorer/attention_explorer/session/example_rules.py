"""Showing an example: its text at once, the tokens that it names when they are known. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from attention_explorer.session.branches import ROOT
from attention_explorer.session.examples import Example, examples_of
from attention_explorer.session.intents import ShowExample
from attention_explorer.session.placed import Placed
from attention_explorer.session.rules import broken_off, rule, with_prompt_of
from attention_explorer.session.state import Document, InterventionItem, Notice, Selection, State, clamped, site_of
from attention_explorer.session.texts import alone
from attention_models.files.catalogue import DATE_MODELS, SHIPPED
from attention_models.protocol.interventions import Mask
from attention_models.protocol.named_tokens import position_of
from attention_models.protocol.running import Ran
from attention_models.protocol.values import CheckpointInfo, Token, site_tokens


@rule.register
def _(intent: ShowExample, state: State) -> State:
    example = intent.example
    document = alone(state.document)
    if example.picture:
        document = replace(document, picture=example.picture)
    else:
        document = replace(document, text=example.text, second=example.second, target=None, chat=False)
    view = replace(document.view, painting="off")
    document = replace(document, view=view, interventions=changed_everywhere(example))
    document = document.with_branches(document.branches.go(ROOT))  # without what was written after it before
    state = with_prompt_of(broken_off(state), document)
    return with_its_place(replace(state, example=example, notice=Notice("info", example.say)))


def with_its_place(state: State) -> State:
    """The state with what an example says of its tokens, once the run on screen is of its text."""
    example, ran = state.example, state.ran
    if example is None or ran is None or not state.up_to_date:
        return state
    state = replace(state, example=None)
    try:
        selection = selection_of(example, ran, None if isinstance(example, Example) else state.selection)
    except LookupError:  # another tokenizer than that of the shipped weights
        return state
    blocked = interventions_of(example, selection)[len(example.everywhere) :]
    return state.with_document(selection=selection, interventions=(*state.document.interventions, *blocked))


def selection_of(example: Placed, ran: Ran, now: Selection | None = None) -> Selection:
    """The head and cell to look at in a run of `example`. LookupError where no token has its word.

    Of what it does not name that is selected `now` stays.
    """
    now = now or Selection()
    ref, head = (example.site, example.head) if example.site is not None else (now.site, now.head)
    site = site_of(ran, ref)
    queries, keys = (ran.tokens, ran.tokens) if site is None else site_tokens(ran, site)
    query = _place_of(example.query, example.query_place, queries, now.query)
    key = _place_of(example.key, example.key_place, keys, now.key)
    return clamped(Selection(ref, head, query, key, chosen=now.chosen), ran)


def changed_everywhere(example: Placed) -> tuple[InterventionItem, ...]:
    """What `example` changes at every head alike."""
    return tuple(InterventionItem(value) for value in example.everywhere)


def interventions_of(example: Placed, selection: Selection) -> tuple[InterventionItem, ...]:
    """All that `example` changes, once its cell is known."""
    if not example.blocks:
        return changed_everywhere(example)
    cell = (selection.query, selection.key, False)
    blocked = Mask("painted", cells=(cell,), site=selection.site, head=selection.head)
    return (*changed_everywhere(example), InterventionItem(blocked))


def unfit_words(text: str, info: CheckpointInfo) -> str:
    """A sentence where a text is not of the kind that a shipped model was made for; "" where it may be."""
    if not text.strip() or not info.example:
        return ""
    if info.reference in DATE_MODELS and not any(sign.isdecimal() for sign in text):
        return f"{info.name} rewrites dates, and this text has none: it is not the kind of text that it was made for."
    if info.reads and info.reference in SHIPPED and not any(sign.isalpha() for sign in text):
        return f"{info.name} was made for sentences, and this text has no words: it is not its kind of text."
    return ""


def untouched_examples(document: Document) -> tuple[Example, ...]:
    """The examples with the text or picture on screen. Of any shipped model: a text waits while pictures are shown."""
    every = (example for reference in SHIPPED for example in examples_of(reference))
    return tuple(example for example in every if _is_untouched(example, document))


def _is_untouched(example: Example, document: Document) -> bool:
    """Whether `document` has the text or the picture of `example`, unchanged."""
    if example.picture:
        return document.picture == example.picture
    return (document.text, document.second or None) == (example.text, example.second)


def _place_of(word: str | None, place: int, tokens: Sequence[Token], otherwise: int) -> int:
    """The position of the `place`-th token (from 1) of this word, `otherwise` of no word. LookupError: fewer."""
    if word is None:
        return otherwise
    position = position_of(word, place, tokens)
    if position is None:
        raise LookupError(f"There is no token “{word}” ({place}).")
    return position
