from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from explorer.missing_libraries import PACKAGES, missing_library

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            "libEGL.so.1: cannot open shared object file: No such file or directory",
            "The library libEGL.so.1 is missing on this computer. On Debian or Ubuntu: apt-get install libegl1.",
        ),
        (
            "Cannot load library /x/libqxcb.so: (libxcb-cursor.so.0: cannot open shared object file: No such file)",
            "The library libxcb-cursor.so.0 is missing on this computer. On Debian or Ubuntu: apt-get install "
            "libxcb-cursor0.",
        ),
        (
            "libnew.so.7: cannot open shared object file: No such file or directory",
            "The library libnew.so.7 is missing on this computer. Install it from your distribution.",
        ),
        ("No module named 'torch'", ""),
        ("", ""),
    ],
)
def test_the_loaders_message_becomes_a_sentence(said, words):
    assert missing_library(said) == words


def test_every_package_that_the_readme_asks_for_is_known():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    block = text.partition("## Qt's libraries on a bare Linux")[2].partition("```bash")[2].partition("```")[0]
    asked = set(re.findall(r"\blib[\w.-]+", block))
    assert len(asked) > 10
    assert asked <= set(PACKAGES.values())


def test_every_library_that_the_bundle_leaves_to_the_system_is_known():
    layout = runpy.run_path(str(ROOT / "packaging" / "linux" / "layout.py"))
    asked = set(re.findall(r"\blib[\w.-]+", f"{layout['DEPENDS']}, {layout['RECOMMENDS']}")) - {"libc6"}
    assert {"libxcb1", "libegl1"} < asked
    assert asked <= set(PACKAGES.values())
