"""The score of a lesson, and its table."""

from __future__ import annotations

import csv
import io

from attention_explorer.session.lessons import Answer, as_csv, score

ANSWERS = (Answer(0, "Which?", "Tom", "Tom", True), Answer(3, "How\nmany, “about”?", "=1+1", "42 %", False))


def test_the_score_counts_what_is_right() -> None:
    assert score(ANSWERS) == (1, 2)
    assert score(()) == (0, 0)


def test_the_table_reads_back_and_no_spreadsheet_computes_it() -> None:
    rows = list(csv.reader(io.StringIO(as_csv("Masks", ANSWERS))))
    assert rows[0] == ["lesson", "step", "question", "answer", "model", "right"]
    assert rows[1] == ["Masks", "1", "Which?", "Tom", "Tom", "1"]
    assert rows[2] == ["Masks", "4", "How\nmany, “about”?", "'=1+1", "42 %", "0"]
