"""An answer that is a sentence stands in lines, within the width that there is."""

from __future__ import annotations

from PySide6.QtGui import QFont, QFontMetrics
from PySide6.QtWidgets import QApplication

from explorer.window.lesson.option_button import OptionButton, lines_of

SENTENCE = "Yes: next to nothing is left to any word but the likeliest"


def test_no_line_is_wider_than_there_is_room_and_no_word_is_lost(qapp: QApplication) -> None:
    metrics = QFontMetrics(QFont())
    for width in (80, 150, 240, 1000):
        lines = lines_of(SENTENCE, metrics, width)
        assert " ".join(line.strip() for line in lines) == SENTENCE
        assert all(metrics.horizontalAdvance(line.strip()) <= width for line in lines if " " in line.strip())
    assert lines_of(SENTENCE, metrics, 10_000) == [SENTENCE]


def test_it_takes_the_lines_that_its_width_asks_for(qapp: QApplication) -> None:
    button = OptionButton("A", f"{SENTENCE} & more")
    button.resize(900, 30)
    button.show()
    assert button.text() == f"A   {SENTENCE} && more"
    height = button.sizeHint().height()
    button.resize(200, 30)
    assert button.text().count("\n") >= 2
    assert button.sizeHint().height() > 2 * height - 12
    button.mark_right()
    assert button.text().endswith("✓")
    assert button.minimumSizeHint().width() < 100
