"""A document alone as a session file, for tests that care for nothing else in it."""

from __future__ import annotations

from pathlib import Path

from explorer.session import attn
from explorer.session.kept import KeptState, SessionFile
from explorer.session.state import Document


def save(document: Document, path: Path) -> None:
    attn.save(SessionFile(KeptState(document)), path)


def load(path: Path) -> Document:
    return attn.load(path).present.document
