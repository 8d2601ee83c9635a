"""How a document goes from text to a conversation or a pair and back, so that nothing typed is lost. Pure."""

from __future__ import annotations

from dataclasses import replace

from attention_explorer.session.state import Document
from attention_models.protocol.chat import Chat, Pair, Turn
from attention_models.protocol.prompt import Prompt, shown_of


def as_chat(document: Document) -> Document:
    """The document as a conversation: the one that its text was made of, while that text is unchanged.

    Else its text is what a user says.
    """
    if document.chat:
        return document
    turns = document.turns if document.turns and Chat(document.turns).plain == document.text else None
    return replace(document, chat=True, turns=turns or (Turn("user", document.text),))


def as_text(document: Document) -> Document:
    """The document as plain text: what was said, without who said it. The turns are kept for the way back."""
    return replace(document, chat=False, text=Chat(document.turns).plain) if document.chat else document


def with_prompt(document: Document, prompt: Prompt) -> Document:
    """The document with another text, pair or conversation for the model to read; beside a text, its second stays.

    Of a batch that which is shown: the other texts are those that the document has.
    """
    prompt = shown_of(prompt)
    if isinstance(prompt, Pair):
        return replace(document, chat=False, text=prompt.first, second=prompt.second)
    if isinstance(prompt, Chat):
        return replace(document, chat=True, turns=prompt.turns)
    return replace(document, chat=False, text=prompt)
