"""An answer that is a sentence stands in lines, within the width that there is."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QFont, QFontMetrics, QImage, QPainter
from PySide6.QtWidgets import QApplication

from attention_explorer.window.lesson.question import CELLS, OptionButton, draw_mask, is_visible, lines_of

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


@pytest.mark.parametrize(
    ("kind", "rows"),
    [
        ("causal", "#..... ##.... ###... ####.. #####. ######"),
        ("none", "###### ###### ###### ###### ###### ######"),
        ("window", "#..... ##.... ###... .###.. ..###. ...###"),
        ("prefix", "###... ###... ###... ####.. #####. ######"),
        ("padding", "####.. ####.. ####.. ####.. ####.. ####.."),
        ("blocks", "###... ###... ###... ...### ...### ...###"),
    ],
)
def test_the_picture_of_a_mask_has_its_cells(qapp: QApplication, kind: str, rows: str) -> None:
    cells = range(CELLS)
    assert " ".join("".join(".#"[is_visible(kind, q, k)] for k in cells) for q in cells) == rows
    image = QImage(120, 120, QImage.Format.Format_RGB32)
    image.fill(QColor("white"))
    painter = QPainter(image)
    draw_mask(painter, kind, QRectF(0, 0, 120, 120), QColor("black"))
    painter.end()
    drawn = ["".join(".#"[image.pixelColor(20 * k + 10, 20 * q + 10).value() < 128] for k in cells) for q in cells]
    assert " ".join(drawn) == rows


def test_words_leave_room_for_the_picture_of_a_mask(qapp: QApplication) -> None:
    button = OptionButton("A", SENTENCE, "causal")
    button.resize(300, 60)
    button.show()
    bold = QFont(button.font())
    bold.setBold(True)
    longest = max(QFontMetrics(bold).horizontalAdvance(line) for line in button.text().split("\n"))
    side = button.sizeHint().height() - 10  # of the picture, which is higher than one line
    assert longest < 300 - side
    assert OptionButton("A", "One", "causal").sizeHint().height() > OptionButton("A", "One").sizeHint().height()
