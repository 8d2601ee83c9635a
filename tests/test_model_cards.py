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
WEIGHTS = ROOT / "models" / "attention_models" / "weights"
DATES = ("dates-bahdanau", "dates-bottleneck", "dates-luong")
RECURRENT = ("recurrent-en-es-bahdanau", "recurrent-en-es-bottleneck")
NAMES = (*DATES, "en-es", *RECURRENT, "story-bert", "story-gpt", "story-next", "vit-cifar10", "vit-quickdraw")

SECTIONS = (
    "Architecture",
    "Tokenizer",
    "Data and licences",
    "Training",
    "Held-out figure",
    "Limits",
    "Load it",
)

RUN_EACH = """
import contextlib, io, json, sys, traceback

said = {}
for name, code in json.load(sys.stdin).items():
    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            exec(code, {"__name__": "__main__"})
        except BaseException:
            traceback.print_exc()
            print("FAILED", name)
    said[name] = out.getvalue()
json.dump(said, sys.stdout)
"""


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


@pytest.mark.parametrize("name", NAMES)
def test_menu_entry_is_complete(name: str) -> None:
    entry = json.loads((WEIGHTS / name / "explorer.json").read_text(encoding="utf-8"))
    reads = set() if name.startswith(("dates-", "vit-")) else {"reads"}  # a language, where it was made for one
    second = {"second"} if name == "story-next" else set()  # of a pair
    assert set(entry) == {"title", "summary", "look", "example", "prefix"} | reads | second
    assert entry.get("reads", "en") == "en"
    assert entry["title"] == name
    assert 20 < len(entry["summary"]) < 120
    assert entry["look"].startswith("Look at ")
    assert entry["look"].endswith(".")
    assert 20 < len(entry["look"]) < 130
    assert bool(entry["example"]) is not name.startswith("vit-")


def test_lines_for_loading_run() -> None:
    """All in one process, each with names of its own: importing torch takes longer than the lines do."""
    codes: dict[str, str] = {}
    for name in NAMES:
        (codes[name],) = re.findall(r"```python\n(.*?)```", sections(name)["Load it"], flags=re.DOTALL)
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", RUN_EACH],
        input=json.dumps(codes),
        cwd=ROOT,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    printed: dict[str, str] = json.loads(done.stdout)
    for name, code in codes.items():
        assert "FAILED" not in printed[name], done.stderr
        assert printed[name].strip(), name
        for words in re.findall(r'print\(.*\)  # "(.*)"$', code, flags=re.MULTILINE):
            assert words in printed[name], name
