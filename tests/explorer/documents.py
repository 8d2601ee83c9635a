"""A document alone as a session file, for tests that care for nothing else in it."""

from __future__ import annotations

from pathlib import Path

from attention_explorer.session import attn
from attention_explorer.session.kept import KeptState, SessionFile
from attention_explorer.session.state import Document


def save(document: Document, path: Path) -> None:
    attn.save(SessionFile(KeptState(document)), path)


def load(path: Path) -> Document:
    return attn.load(path).present.document
