"""The report that goes with a fault: what it depends on, and nothing of the person."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import torch

from attention_explorer.app import main
from attention_explorer.version import __version__


def test_it_says_versions_device_platform_and_folders_and_not_whose_they_are(capsys, monkeypatch, tmp_path):
    home = tmp_path / "anna secret"
    (home / "settings").mkdir(parents=True)
    monkeypatch.setattr(Path, "home", lambda: home)
    monkeypatch.setenv("ATTENTION_EXPLORER_HOME", str(home / "settings"))
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    assert main(["--diagnose"]) == 0
    said = capsys.readouterr().out
    lines = said.splitlines()
    assert lines[0].startswith(f"Attention Explorer {__version__}")
    assert f"torch {torch.__version__}" in lines
    assert f"transformers {version('transformers')}" in lines
    assert "device cpu: CPU" in said
    assert "platform offscreen" in said
    assert "settings: ~/settings (can be written)" in lines
    assert "secret" not in said


def test_a_folder_that_cannot_be_made_is_said_so(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("attention_explorer.cli.diagnose.os.access", lambda path, mode: False)
    assert main(["--diagnose"]) == 0
    assert "(cannot be written)" in capsys.readouterr().out
