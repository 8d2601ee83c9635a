"""Hovering a text that holds a term shows its entry, whatever widget has it; and the glossary under Help."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QPoint, QRect, Qt, QUrl
from PySide6.QtGui import QHelpEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QPushButton, QTabBar, QToolTip, QWidget

from attention_explorer.glossary import glossary
from attention_explorer.panels.cell.panel import CellPanel
from attention_explorer.panels.head.panel import HeadMapPanel
from attention_explorer.panels.next_token.panel import NextTokenPanel
from attention_explorer.panels.variance.panel import VariancePanel
from attention_explorer.window import glossary as explaining
from attention_explorer.window.glossary import GlossaryWindow, page_of, tooltip
from tests.explorer.real_window import panel_of, press, settle, wait_until


@pytest.fixture(autouse=True)
def no_tooltip_left() -> Iterator[None]:
    """Qt takes one away a moment later."""
    yield
    QToolTip.hideText()
    wait_until(
        lambda: (
            not QToolTip.isVisible()
            and not [w for w in QApplication.topLevelWidgets() if w.objectName() == "qtooltip_label"]
        )
    )


def hover(widget: QWidget, at: QPoint | None = None) -> str:
    """What the tooltip says that a pointer at rest brings up."""
    QToolTip.hideText()
    where = widget.rect().center() if at is None else at
    QApplication.sendEvent(widget, QHelpEvent(QEvent.Type.ToolTip, where, widget.mapToGlobal(where)))
    return QToolTip.text()


def meaning(word: str) -> str:
    entry = glossary().of(word)
    assert entry is not None
    return entry.what


@pytest.fixture
def labels(window):
    """Two of Qt's own widgets in the window."""
    plain, button = QLabel("The logit of a token", window), QPushButton("Sof&tmax", window)
    button.setToolTip("What it was about")
    for widget in (plain, button):
        widget.resize(200, 30)
        widget.show()
    yield plain, button
    for widget in (plain, button):
        widget.hide()
        widget.setParent(None)
        widget.deleteLater()


def test_a_label_says_what_its_terms_mean(labels):
    said = hover(labels[0])
    assert "<b>logit</b>" in said
    assert meaning("logit")[:40] in said
    assert "<b>token</b>" in said


def test_what_a_button_says_anyway_stays(labels):
    said = hover(labels[1])
    assert said.index("What it was about") < said.index("<b>softmax</b>")


def test_a_text_without_a_term_is_left_to_qt(window, labels):
    labels[0].setText("Good morning")
    assert hover(labels[0]) == ""
    labels[0].setToolTip("Hello")
    assert hover(labels[0]) == "Hello"


def test_a_tip_has_no_tip(window, labels, monkeypatch):
    """Qt shows every tip by one label, which would become its own parent, and look for its style for ever."""
    assert "<b>logit</b>" in hover(labels[0])
    (tip,) = [shown for shown in QApplication.topLevelWidgets() if shown.objectName() == "qtooltip_label"]
    shown: list[QWidget] = []

    class Tips:
        @staticmethod
        def showText(at: QPoint, text: str, widget: QWidget, place: QRect) -> None:
            shown.append(widget)

    monkeypatch.setattr(explaining, "QToolTip", Tips)
    hover(labels[0])
    assert shown == [labels[0]]
    hover(tip)
    assert shown == [labels[0]]


def test_what_stands_in_a_text_is_never_read_as_mark_up():
    said = tooltip("a <b> & c\nd", ())
    assert said == "<p>a &lt;b&gt; &amp; c<br>d</p>"


def test_a_tab_says_what_its_panel_is_for_and_what_its_name_means(window):
    bar = next(bar for bar in window.dock_host.findChildren(QTabBar) if bar.count() > 3)
    place = next(i for i in range(bar.count()) if bar.tabText(i) == "Variance")
    said = hover(bar, bar.tabRect(place).center())
    assert VariancePanel.hint[:30] in said
    assert "<b>variance</b>" in said


def test_the_axes_of_a_map_say_what_query_and_key_are(window):
    window.dock_host.raise_panel("map")
    settle(window)
    heat_map = panel_of(window, HeadMapPanel).map
    said = hover(heat_map, QPoint(8, heat_map.height() // 2))
    assert "<b>query</b>" in said
    assert "<b>key</b>" in said


def test_a_step_of_a_cell_says_what_its_name_means(window):
    window.dock_host.raise_panel("cell")
    settle(window)
    steps = panel_of(window, CellPanel).steps
    place = next(i for i, step in enumerate(steps.steps) if step.name == "× W_O")
    said = hover(steps, steps.item_rect(place).center().toPoint())
    assert "<b>W_O</b>" in said


def test_the_title_line_says_what_entropy_and_bits_are(window):
    window.dock_host.raise_panel("next")
    settle(window)
    card = panel_of(window, NextTokenPanel).card
    subtitle = next(label for label in card.findChildren(QLabel) if "entropy" in label.text())
    said = hover(subtitle)
    assert "<b>entropy</b>" in said
    assert "<b>bits</b>" in said


# the window


@pytest.fixture
def opened_glossary(window):
    window.activateWindow()
    wait_until(window.isActiveWindow)
    press(window.input.text, Qt.Key.Key_F1, Qt.KeyboardModifier.ShiftModifier)
    glossary_window = next(w for w in window.findChildren(GlossaryWindow) if w.isVisible())
    yield glossary_window
    if window.findChildren(GlossaryWindow):
        glossary_window.close()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def test_it_opens_by_its_key_and_blocks_nothing(window, opened_glossary):
    assert not opened_glossary.isModal()
    assert opened_glossary.list.count() == len(glossary().entries)
    window.input.text.setFocus()
    press(window.input.text, Qt.Key.Key_Home)
    assert opened_glossary.isVisible()


def test_typing_searches_and_enter_goes_to_the_panel(window, opened_glossary):
    window.dock_host.raise_panel("cell")
    QTest.keyClicks(opened_glossary.field, "logit")
    assert opened_glossary.entry.term == "logit"
    assert meaning("logit")[:40] in opened_glossary.page.toPlainText()
    press(opened_glossary.field, Qt.Key.Key_Return)
    assert opened_glossary.isVisible()
    wait_until(panel_of(window, NextTokenPanel).isVisible)


def test_its_link_brings_the_panel_to_the_front(window, opened_glossary):
    window.dock_host.raise_panel("cell")
    opened_glossary.field.setText("attention weight")
    entry = opened_glossary.entry
    assert (entry.term, entry.panel) == ("weight", "map")
    assert 'href="panel:map"' in page_of(entry)
    opened_glossary.page.anchorClicked.emit(QUrl("panel:map"))
    wait_until(panel_of(window, HeadMapPanel).isVisible)


def test_what_no_term_has_is_said(window, opened_glossary):
    opened_glossary.field.setText("xyzzy")
    assert opened_glossary.entry is None
    assert "No term" in opened_glossary.page.toPlainText()
    opened_glossary.field.clear()
    press(opened_glossary.field, Qt.Key.Key_Down)
    assert opened_glossary.list.currentRow() == 1
    press(opened_glossary.field, Qt.Key.Key_Escape)
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    assert not window.findChildren(GlossaryWindow)
