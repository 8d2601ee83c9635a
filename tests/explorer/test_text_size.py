"""How small text may be drawn: as a widget likes it at a desk, and not below the presenter's size."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QApplication

from attention_explorer.look.text_size import is_read_from_afar, line_scale, set_least_points, smaller


@pytest.fixture(autouse=True)
def at_a_desk(qapp: QApplication) -> Iterator[None]:
    yield
    set_least_points(0.0)


def font(points: float) -> QFont:
    made = QFont()
    made.setPointSizeF(points)
    return made


def test_at_a_desk_text_is_as_small_as_it_is_asked_to_be() -> None:
    assert smaller(font(12), 0.75).pointSizeF() == 9
    assert smaller(font(8), 0.75, least=7.5).pointSizeF() == 7.5
    assert line_scale() == 1
    assert not is_read_from_afar()


def test_what_is_presented_has_no_smaller_text_and_wider_lines() -> None:
    set_least_points(18.0)
    assert is_read_from_afar()
    assert smaller(font(18), 0.75).pointSizeF() == 18
    assert smaller(font(30), 0.75).pointSizeF() == 22.5
    assert smaller(font(12), 0.75).pointSizeF() == 12, "it is never made larger"
    assert line_scale() == pytest.approx(1.8)
