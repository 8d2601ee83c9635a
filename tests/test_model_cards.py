"""Every shipped checkpoint has a card that says what it is, and the lines it gives for loading run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
WEIGHTS = ROOT / "models" / "weights"
DATES = ("dates-bahdanau", "dates-bottleneck", "dates-luong")
RECURRENT = ("recurrent-en-es-bahdanau", "recurrent-en-es-bottleneck")
NAMES = (*DATES, "en-es", *RECURRENT, "story-bert", "story-gpt", "vit-cifar10", "vit-quickdraw")

SECTIONS = (
    "Architecture",
    "Tokenizer",
    "Data and licences",
    "Training",
    "Held-out figure",
    "Limits",
    "Load it",
)

LICENCES = {
    **{name: ["MIT"] for name in DATES},
    "en-es": ["CC BY 2.0 FR"],
    **{name: ["CC BY 2.0 FR"] for name in RECURRENT},
    "story-bert": ["Apache-2.0", "CDLA-Sharing-1.0", "CC BY 4.0", "public domain", "CC BY 2.0 FR", "CC BY-SA 4.0"],
    "story-gpt": ["Apache-2.0", "CDLA-Sharing-1.0", "CC BY 4.0", "public domain", "CC BY 2.0 FR"],
    "vit-cifar10": ["state no licence"],
    "vit-quickdraw": ["CC BY 4.0"],
}

FIGURES = {
    **dict.fromkeys(DATES, "of 2,000"),
    "en-es": "79.5 %",
    **dict.fromkeys(RECURRENT, "| longer | 116 | **19.0** | **7.1** | 42.5 |"),
    "story-bert": "70.6 %",
    "story-gpt": "2.407 nats",
    "vit-cifar10": "78.0 %",
    "vit-quickdraw": "85.9 %",
}


def sections(name: str) -> dict[str, str]:
    """The text below each second-level heading of a card."""
    card = (WEIGHTS / name / "README.md").read_text(encoding="utf-8")
    parts = re.split(r"^## (.+)$", card, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_cards_cover_the_shipped_checkpoints() -> None:
    assert sorted(p.name for p in WEIGHTS.iterdir() if p.is_dir()) == list(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_card_is_complete(name: str) -> None:
    found = sections(name)
    assert tuple(found) == SECTIONS
    assert all(text.strip() for text in found.values())
    for licence in LICENCES[name]:
        assert licence in found["Data and licences"]
    assert FIGURES[name] in found["Held-out figure"]


@pytest.mark.parametrize("name", NAMES)
def test_menu_entry_is_complete(name: str) -> None:
    entry = json.loads((WEIGHTS / name / "explorer.json").read_text(encoding="utf-8"))
    reads = set() if name.startswith(("dates-", "vit-")) else {"reads"}  # a language, where it was made for one
    assert set(entry) == {"title", "summary", "example", "prefix"} | reads
    assert entry.get("reads", "en") == "en"
    assert entry["title"] == name
    assert 20 < len(entry["summary"]) < 120
    assert bool(entry["example"]) is not name.startswith("vit-")


@pytest.mark.parametrize("name", NAMES)
def test_lines_for_loading_run(name: str) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", sections(name)["Load it"], flags=re.DOTALL)
    said = re.findall(r'print\(.*\)  # "(.*)"$', code, flags=re.MULTILINE)
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    for words in said:
        assert words in done.stdout
