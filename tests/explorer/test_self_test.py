"""`--self-test`: all of it works here, its numbers are the models' own, and what does not work is told."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import attention_models as models
from attention_explorer.cli import self_test
from attention_models.files.catalogue import SHIPPED, shipped

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.full
def test_all_of_it_works_and_its_numbers_are_the_models_own():
    done = subprocess.run(
        [sys.executable, "-m", "attention_explorer", "--self-test"],
        cwd=ROOT,
        env={**os.environ, "ATTENTION_EXPLORER_DEBUG": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.split("\t") for line in done.stdout.splitlines() if "\t" in line]
    found = {name: said for kind, name, said in lines if kind == "ok"}
    assert {f"checkpoint {name}" for name in SHIPPED} <= set(found)
    assert {"decoding", "session", "chat template", "training", "window", "picture", "closing"} <= set(found)
    for card in shipped()[:2]:
        trace = models.run(models.open_checkpoint(card.name), card.example)
        digest = hashlib.sha256()
        for site in trace.sites:
            for head in range(8):
                digest.update(trace.weights(site, head).tobytes())
        assert f"SHA-256 {digest.hexdigest()[:16]}" in found[f"checkpoint {card.name}"]


def test_what_does_not_work_is_told_and_the_rest_goes_on(capsys, monkeypatch):
    def broken() -> str:
        raise OSError("no room")

    monkeypatch.setattr(self_test, "_steps", lambda folder, more: iter([("one", broken), ("two", lambda: "fine")]))
    assert self_test.self_test() == 1
    assert capsys.readouterr().out == "FAIL\tone\tOSError: no room\nok\ttwo\tfine\nFAIL\tself-test\tone\n"


def test_what_is_raised_while_qt_paints_is_a_failure_too(capsys, monkeypatch):
    def paints() -> str:
        sys.excepthook(OSError, OSError("no pen"), None)
        return "painted"

    monkeypatch.setattr(self_test, "_steps", lambda folder, more: iter([("picture", paints)]))
    assert self_test.self_test() == 1
    assert capsys.readouterr().out.startswith("FAIL\tpicture\tOSError: no pen\n")
