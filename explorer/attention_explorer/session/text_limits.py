"""How much text the window takes, whichever way it comes in: typed, pasted, dropped, from a file or a command. Pure."""

from __future__ import annotations

from attention_explorer.session.state import Document

MOST_CHARACTERS = 200_000
"""Beyond this a key press takes longer than the eye forgives (measured: 24 ms at 200,000 characters in one line)."""


def texts_of(document: Document) -> dict[str, str]:
    """Everything in it that a field of the window shows, by what a sentence calls it; of B too."""
    texts = {"its text": document.text, "its second text": document.second or "", "its target": document.target or ""}
    turns = {f"turn {place}": turn.text for place, turn in enumerate(document.turns, start=1)}
    others: dict[str, str] = {}
    for place, text in enumerate((*document.before, *document.after), start=1):
        others |= {f"text {place} beside it": text.text}
        others |= {f"the second text of text {place} beside it": text.second or ""}
        others |= {f"the target of text {place} beside it": text.target or ""}
    of_b = {} if document.compared is None else texts_of(document.compared.document)
    return {**texts, **turns, **others, **{f"{what}, of B": text for what, text in of_b.items()}}


def check_document(document: Document) -> None:
    """Refuse a document with more text than the window takes.

    Raises:
        ValueError: as a clause; it says which text is too long.
    """
    for what, text in texts_of(document).items():
        if len(text) > MOST_CHARACTERS:
            raise ValueError(too_long(what, text))


def too_long(what: str, text: str) -> str:
    return f"{what} has {len(text):,} characters, and the window takes {MOST_CHARACTERS:,}"
