"""Every field for a number in the window, typed into under other languages."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QLocale, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QAbstractSpinBox, QLineEdit, QMenu, QWidget

from attention_explorer.panels.decoding.knobs import DecodeKnobs
from attention_explorer.widgets.number_field import NumberField, RealBox, WholeBox

WORDS = {
    "Find a token",
    "Name of this branch",
    "The key to look up",
    "The other text",
    "Which answer is measured",
    "Less which other answer",
    "Prompt",
    "Second text",
    "Text A",
    "Text B",
    "The token that heads are asked about, as it is drawn: the, ball",
    "What B reads",
    "Whose rank is followed",
    "Whose rows are compared across the texts, as it is drawn: the, ball",
    "Word of text A",
    "Word of text B",
}
"""Accessible names of the fields that take words."""


def type_text(widget: QWidget, text: str) -> None:
    for character in text:
        for kind in (QEvent.Type.KeyPress, QEvent.Type.KeyRelease):
            QCoreApplication.sendEvent(widget, QKeyEvent(kind, 0, Qt.KeyboardModifier.NoModifier, character))


def press_return(widget: QWidget) -> None:
    for kind in (QEvent.Type.KeyPress, QEvent.Type.KeyRelease):
        QCoreApplication.sendEvent(widget, QKeyEvent(kind, Qt.Key.Key_Return, Qt.KeyboardModifier.NoModifier))


@pytest.mark.full
def test_every_field_for_a_number_is_of_the_kind_that_reads_all(window) -> None:
    # pyqtgraph makes menus of its own, which no plot here shows
    boxes = [box for box in window.findChildren(QAbstractSpinBox) if not isinstance(box.window(), QMenu)]
    assert len(boxes) >= 8
    assert {type(box) for box in boxes} == {RealBox, WholeBox}
    loose = [
        edit
        for edit in window.findChildren(QLineEdit)
        if not isinstance(edit, NumberField) and not isinstance(edit.parent(), QAbstractSpinBox)
    ]
    assert {edit.accessibleName() for edit in loose} <= WORDS


@pytest.mark.parametrize("language", ["C", "de_DE", "tr_TR", "ar_EG", "fa_IR"])
def test_a_number_typed_is_that_number_in_every_field(window, language: str) -> None:
    before = QLocale()
    QLocale.setDefault(QLocale(language))
    try:
        for box in window.findChildren(RealBox) + window.findChildren(WholeBox):
            box.blockSignals(True)  # of the field alone: what follows from numbers has tests of its own
            old, low, high, can = box.value(), box.minimum(), box.maximum(), box.isEnabled()
            box.setEnabled(True)
            real = isinstance(box, RealBox)
            wanted = min(max(0.5 if real else 2, low), high)
            for mark in ".,٫":
                box.setValue(high)
                box.selectAll()
                type_text(box, f"{wanted}".replace(".", mark))
                press_return(box)
                assert box.value() == wanted, (language, box.accessibleName(), box.toolTip(), mark)
            box.setValue(old)
            box.setEnabled(can)
            box.blockSignals(False)
        (knobs,) = window.findChildren(DecodeKnobs)
        knobs.choose("sample")
        for name, typed, value in (("temperature", "0,5", 0.5), ("top_p", "٠٫٩", 0.9), ("top_k", "۱۲", 12)):
            field = knobs.fields[name]
            field.selectAll()
            type_text(field, typed)
            assert getattr(knobs.settings, name) == value, (language, name)
            assert knobs.problem == ""
        knobs.choose("greedy")
    finally:
        QLocale.setDefault(before)
