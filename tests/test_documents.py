"""What README and docs speak of is there: every file that they name or link to, every included model."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from models.files.catalogue import shipped

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "resources/README.md"]

_LINK = re.compile(r"\]\(([^)#]+?)(?:#[^)]*)?\)")
_INSTALLED = "explorer/resources/"  # where an installed copy has what stands beside it in the source
_NAMED = re.compile(r"`((?:models|explorer|resources|tests|docs|packaging)/[\w./-]*)`")


def text_of(document: Path) -> str:
    return re.sub(r"```.*?```", "", document.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_file_that_is_named_is_there(document: Path) -> None:
    text = text_of(document)
    links = [link for link in _LINK.findall(text) if "://" not in link]
    named = _NAMED.findall(text)
    assert links or named
    missing = [link for link in links if not (document.parent / link).exists()]
    missing += [name for name in named if name != _INSTALLED and not (ROOT / name).exists()]
    assert missing == []


def test_nothing_is_promised_that_is_not_there() -> None:
    folders = {path.name for path in (ROOT / "resources").iterdir() if path.is_dir()}
    for document in DOCUMENTS:
        for word in ("lessons", "translations of the interface"):
            assert word in folders or word not in text_of(document), document


def test_every_included_model_is_listed() -> None:
    readme = text_of(ROOT / "README.md")
    listed = re.search(r"## Included models(.*?)## What you see", readme, re.DOTALL)
    assert listed is not None
    for card in shipped():
        assert card.name in listed[1], card.name
