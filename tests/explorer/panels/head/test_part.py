"""Which part of a map shows, as session files keep it: what is written comes back, and what is no part is none."""

from __future__ import annotations

import pytest

from attention_explorer.panels.head.panel import Part


@pytest.mark.parametrize("part", [Part(2.0, 0.0, 3.5, 14, 14), Part(37.25, 4090.5, 0.0, 4096, 4096)])
def test_what_is_written_comes_back(part: Part) -> None:
    assert Part.of(part.text) == part


@pytest.mark.parametrize("text", ["", "1", "1 2 3 4 5 6", "a b c d e", "nan 0 0 1 1", "inf 0 0 1 1", "2 -1 0 1 1", 5])
def test_what_is_no_part_is_none(text: object) -> None:
    assert Part.of(text) is None
