"""Typing numbers under the languages of the world."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QLocale, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QWidget

from attention_explorer.widgets.number_field import NumberField, RealBox, WholeBox, read_real, read_whole

LOCALES = ("C", "de_DE", "tr_TR", "ar_EG", "fa_IR", "hi_IN")


@pytest.fixture(params=LOCALES)
def locale(request: pytest.FixtureRequest) -> Iterator[str]:
    """The desktop's language."""
    before = QLocale()
    QLocale.setDefault(QLocale(request.param))
    yield request.param
    QLocale.setDefault(before)


def type_text(widget: QWidget, text: str) -> None:
    """One key event a character, as the window system sends them; QTest knows Latin-1 only."""
    for character in text:
        for kind in (QEvent.Type.KeyPress, QEvent.Type.KeyRelease):
            event = QKeyEvent(kind, 0, Qt.KeyboardModifier.NoModifier, character)
            QCoreApplication.sendEvent(widget, event)


def press(widget: QWidget, key: Qt.Key) -> None:
    for kind in (QEvent.Type.KeyPress, QEvent.Type.KeyRelease):
        QCoreApplication.sendEvent(widget, QKeyEvent(kind, key, Qt.KeyboardModifier.NoModifier))


def shown(qtbot, widget: QWidget) -> QWidget:
    qtbot.addWidget(widget)
    widget.show()
    return widget


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.5", 0.5),
        ("0,5", 0.5),
        (",5", 0.5),
        ("2.", 2.0),
        ("٠٫٥", 0.5),
        ("۲٫۵", 2.5),
        ("२.५", 2.5),
        ("１．５", 1.5),
        ("10²", None),
        ("1,000", 1.0),
        ("1.234,5", 1234.5),
        ("1,234.5", 1234.5),
        ("1.234.567", 1234567.0),
        ("1 234,5", 1234.5),
        ("1’234.5", 1234.5),
        ("−2,5", -2.5),
        ("1,23,4", None),
        ("1,2345.6", None),
        ("", None),
        ("nan", None),
        ("1e999", None),
        ("1e3", 1000.0),
        ("1,5E-1", 0.15),
        ("1e", None),
    ],
)
def test_a_real_number_is_read_in_every_spelling(text: str, value: float | None) -> None:
    if value is None:
        with pytest.raises(ValueError, match=r".+"):
            read_real(text)
    else:
        assert read_real(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("10000", 10000), ("10,000", 10000), ("10.000", 10000), ("۱۲", 12), ("١٬٢٣٤", 1234), ("0,5", None)),
        *(("1.5", None), ("1e3", 1000), ("12E+2", 1200), ("1,000e1", 10_000), ("1e-1", None), ("1e", None)),
    ],
)
def test_a_whole_number_is_read_in_every_spelling(text: str, value: int | None) -> None:
    if value is None:
        with pytest.raises(ValueError, match=r".+"):
            read_whole(text)
    else:
        assert read_whole(text) == value


@pytest.mark.parametrize("typed", ["0.5", "0,5", "٠٫٥", "۰٫۵"])
def test_half_is_half_in_every_language(qtbot, locale: str, typed: str) -> None:
    box = RealBox()
    box.setDecimals(3)
    box.setPrefix("× ")
    box.setRange(0, 1000)
    box.setKeyboardTracking(False)
    box.setValue(7)
    shown(qtbot, box)
    box.selectAll()
    type_text(box, typed)
    press(box, Qt.Key.Key_Return)
    assert box.value() == 0.5
    assert box.text() == "× 0.500"
    press(box, Qt.Key.Key_Up)
    assert box.value() == 1.5


@pytest.mark.parametrize("typed", ["10,000", "10.000", "10000", "١٠٬٠٠٠", "۱۰۰۰۰"])
def test_thousands_may_be_parted(qtbot, locale: str, typed: str) -> None:
    box = WholeBox()
    box.setRange(2, 1_000_000)
    box.setGroupSeparatorShown(True)
    shown(qtbot, box)
    box.selectAll()
    type_text(box, typed)
    press(box, Qt.Key.Key_Return)
    assert box.value() == 10_000
    assert box.text() == "10,000"


def test_what_is_no_number_or_out_of_range_cannot_be_typed(qtbot) -> None:
    whole, real = WholeBox(), RealBox()
    whole.setRange(1, 100)
    whole.setKeyboardTracking(False)
    real.setRange(0, 10)
    for box in (whole, real):
        shown(qtbot, box)
        box.selectAll()
        type_text(box, "a7x")
        press(box, Qt.Key.Key_Return)
        assert box.value() == 7
    press(whole, Qt.Key.Key_End)
    type_text(whole, "00")  # 700 is too large
    press(whole, Qt.Key.Key_Return)
    assert whole.value() == 70
    whole.selectAll()
    type_text(whole, "5.5")  # half typed, and never whole
    press(whole, Qt.Key.Key_Return)
    assert whole.value() == 70
    real.selectAll()
    type_text(real, "-1")
    press(real, Qt.Key.Key_Return)
    assert real.value() == 1


def test_the_arrows_step_from_what_was_typed(qtbot, locale: str) -> None:
    field = NumberField("", 0.1)
    shown(qtbot, field)
    type_text(field, "٠٫٥")
    press(field, Qt.Key.Key_Up)
    assert field.text() == "0.6"


@pytest.mark.parametrize("kind", [WholeBox, RealBox])
@pytest.mark.parametrize(
    ("typed", "value"), [("1e3", 1000), ("1E+2", 100), ("5e", 7), ("5e-", 7), ("1e9", 7), ("2e0", 2)]
)
def test_powers_of_ten_are_read_and_what_is_none_is_put_back(qtbot, kind, typed: str, value: int) -> None:
    box = kind()
    box.setRange(0, 1000)
    box.setKeyboardTracking(False)
    box.setValue(7)
    shown(qtbot, box)
    box.selectAll()
    type_text(box, typed)
    press(box, Qt.Key.Key_Return)
    assert box.value() == value


def test_a_negative_power_is_typed(qtbot) -> None:
    box = RealBox()
    box.setDecimals(3)
    box.setRange(0, 1000)
    shown(qtbot, box)
    box.selectAll()
    type_text(box, "25e-2")
    press(box, Qt.Key.Key_Return)
    assert box.value() == 0.25
