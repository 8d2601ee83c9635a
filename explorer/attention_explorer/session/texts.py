"""The texts of a document that are run together, of which one is shown: adding, choosing and removing some. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from attention_explorer.session.prompt_modes import with_prompt
from attention_explorer.session.state import BatchText, Document
from attention_models.protocol.batch import Batch
from attention_models.protocol.chat import Pair
from attention_models.protocol.prompt import Prompt, plain_text


def texts_of(document: Document) -> tuple[BatchText, ...]:
    """All of them in their order, that which is shown among them."""
    return (*document.before, shown_text(document), *document.after)


def shown_text(document: Document) -> BatchText:
    return BatchText(document.text, document.second, document.target)


def with_texts(document: Document, texts: Iterable[BatchText], shown: int) -> Document:
    """The document with these texts. IndexError where there is no text `shown`."""
    listed = tuple(texts)
    one = listed[shown]
    second = one.second
    if document.second is not None and second is None:
        second = ""  # the field stays open
    return replace(
        document,
        text=one.text,
        second=second,
        target=one.target,
        before=listed[:shown],
        after=listed[shown + 1 :],
    )


def with_more_texts(document: Document, more: Iterable[str], choices: bool = False) -> Document:
    """The document with these texts after all others, and the first of them shown. A text that says nothing goes.

    As `choices` they are second texts, each beside the first text of the one that was shown.
    """
    added = tuple(BatchText(document.text, text) if choices else BatchText(text) for text in more)
    if not added:
        return document
    kept = (*document.before, *((shown_text(document),) if document.text.strip() else ()), *document.after)
    return with_texts(document, (*kept, *added), len(kept))


def showing(document: Document, index: int) -> Document:
    """The document with another text shown; the one that was is left out if nothing was written in it."""
    at = len(document.before)
    if index == at:
        return document
    listed = texts_of(document)
    if document.text.strip():
        return with_texts(document, listed, index)
    return with_texts(document, (*listed[:at], *listed[at + 1 :]), index - (index > at))


def without_text(document: Document, index: int) -> Document:
    """The document without one of its texts; of the last that is left nothing is taken. The next one is shown."""
    listed, at = texts_of(document), len(document.before)
    if len(listed) == 1:
        return document
    left = (*listed[:index], *listed[index + 1 :])
    return with_texts(document, left, min(at - (index < at), len(left) - 1))


def with_first_of_choices(document: Document, text: str) -> Document:
    """The document that reads `text`; choices that were read with the same first text as the one shown are, with it."""
    was = document.text

    def moved(texts: tuple[BatchText, ...]) -> tuple[BatchText, ...]:
        return tuple(replace(one, text=text) if one.text == was and one.second is not None else one for one in texts)

    before, after = moved(document.before), moved(document.after)
    return replace(with_prompt(document, text), before=before, after=after)


def alone(document: Document) -> Document:
    """The document with the text that is shown, and no other."""
    return replace(document, before=(), after=())


def each_text(document: Document, **changes: str | None) -> Document:
    """The document with some fields of each of its texts changed."""
    others = [
        tuple(replace(text, **changes) for text in part)  # type: ignore[arg-type]
        for part in (document.before, document.after)
    ]
    return replace(document, before=others[0], after=others[1], **changes)  # type: ignore[arg-type]


def with_prompt_texts(document: Document, prompt: Prompt) -> Document:
    """The document that reads `prompt`; of a batch, all of its texts."""
    document = with_prompt(document, prompt)
    if not isinstance(prompt, Batch):
        return document
    targets = prompt.targets or (None,) * len(prompt.texts)
    texts = tuple(
        BatchText(one.first, one.second, target) if isinstance(one, Pair) else BatchText(plain_text(one), None, target)
        for one, target in zip(prompt.texts, targets, strict=True)
    )
    return replace(
        document,
        before=texts[: prompt.shown],
        after=texts[prompt.shown + 1 :],
        target=targets[prompt.shown],
        padding=prompt.padding,
    )
