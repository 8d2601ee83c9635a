"""What compiled code writes to standard error reaches the log and nobody's terminal."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from attention_models.files.catalogue import folder_of
from attention_models.text.tokenizer_checks import MOST_LOGGED, standard_error_logged

ROOT = Path(__file__).parents[3]


def test_what_is_written_meanwhile_is_logged(caplog, capfd):
    os.write(2, b"before\n")
    with standard_error_logged():
        os.write(2, b"thread panicked\n")
        with standard_error_logged():  # a tokenizer that is called by one
            os.write(2, b"and again\n")
        os.write(2, b"still\n")
    os.write(2, b"after\n")
    assert [record.getMessage() for record in caplog.records] == [
        "compiled code says: thread panicked\nand again\nstill"
    ]
    assert capfd.readouterr().err == "before\nafter\n"


def test_nothing_is_logged_of_nothing_and_not_all_of_too_much(caplog):
    with standard_error_logged():
        pass
    assert caplog.records == []
    with standard_error_logged():
        os.write(2, b"x" * (2 * MOST_LOGGED))
    assert len(caplog.text) < 1.1 * MOST_LOGGED


def test_standard_error_comes_back_after_an_error(capfd):
    with pytest.raises(ZeroDivisionError), standard_error_logged():
        raise ZeroDivisionError
    os.write(2, b"here\n")
    assert capfd.readouterr().err == "here\n"


@pytest.mark.skipif(os.name != "posix", reason="the shell's way of closing a stream")
def test_a_program_without_standard_error_has_none_afterwards():
    program = "from attention_models.text.tokenizer_checks import standard_error_logged as s\nwith s(): print('fine')"
    done = subprocess.run(
        ["sh", "-c", f'"{sys.executable}" -c "{program}" 2>&-'], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "fine\n")


@pytest.mark.full
def test_a_tokenizers_backtrace_stays_in_the_log(tmp_path, settings_folder):
    """One of tokenizers' own panics: pieces of no length."""
    folder = tmp_path / "broken"
    shutil.copytree(folder_of("story-gpt"), folder)
    file = folder / "tokenizer.json"
    settings = json.loads(file.read_text("utf-8"))
    settings["pre_tokenizer"] = {"type": "FixedLength", "length": 0}
    file.write_text(json.dumps(settings), "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "attention_explorer", "--checkpoint", str(folder), "--text", "Tom", "--decode", "2"],
        cwd=ROOT,
        env=os.environ | {"RUST_BACKTRACE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    (sentence,) = done.stderr.splitlines()
    assert "tokenizer" in sentence
    assert "panicked at" not in sentence
    assert "stack backtrace" in (settings_folder / "log.txt").read_text("utf-8")
