"""The titled surface."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent
from PySide6.QtWidgets import QApplication, QLabel, QPushButton

from attention_explorer.look import theme
from attention_explorer.look.theme import DARK, LIGHT
from attention_explorer.widgets.bar_list import BarList
from attention_explorer.widgets.card import Card
from tests.explorer.real_window import look_put_back


@pytest.fixture
def card(qtbot) -> Card:
    widget = Card("All heads")
    qtbot.addWidget(widget)
    widget.resize(400, 300)
    widget.show()
    return widget


def labels(card: Card) -> list[str]:
    return [label.text() for label in card.findChildren(QLabel) if label.isVisible()]


def test_title_and_subtitle(card):
    card.set_subtitle("layers down")
    assert labels(card) == ["All heads", "layers down"]
    assert card.accessibleName() == "All heads"


def test_tokens_are_never_read_as_mark_up(card):
    card.set_title("<b>Tom</b>")
    plain = card.findChildren(QLabel)[0]
    assert plain.sizeHint().width() > plain.fontMetrics().horizontalAdvance("<b>Tom")


def test_a_long_subtitle_does_not_widen_the_card(card):
    narrow = card.minimumSizeHint().width()
    card.set_subtitle("where a very long token looks " * 20)
    assert card.minimumSizeHint().width() == narrow
    assert any(label.toolTip().startswith("where a very long") for label in card.findChildren(QLabel))


def test_content_is_replaced(card):
    first, second = QLabel("first"), QLabel("second")
    card.set_content(first)
    card.set_content(second)
    QApplication.processEvents()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    assert "first" not in labels(card)
    assert "second" in labels(card)


def test_controls_stand_at_the_right_of_the_title(card):
    button = QPushButton("Pin")
    card.add_control(button)
    QApplication.processEvents()
    assert button.isVisible()
    assert button.mapTo(card, button.rect().topRight()).x() > card.width() - 30


def test_without_a_title_there_is_no_head(qtbot):
    card = Card()
    qtbot.addWidget(card)
    content = QLabel("content")
    card.set_content(content)
    card.resize(300, 100)
    card.show()
    assert content.mapTo(card, content.rect().topLeft()).y() < 20
    card.set_title("Now it has one")
    QApplication.processEvents()
    assert content.mapTo(card, content.rect().topLeft()).y() > 20


def test_a_theme_reaches_the_content(card):
    bars = BarList()
    card.set_content(bars)
    card.set_theme(DARK)
    assert bars.theme is DARK


def test_the_mark_is_shorter_where_the_title_would_be_cut(qtbot):
    with look_put_back() as app:
        theme.apply(app, LIGHT)
        card = Card("Layer 5, head 5")
        qtbot.addWidget(card)
        card.add_control(QPushButton("Weights"))
        card.show()
        card.set_mark("edited × 1", "Interventions are on", "× 1")
        title = card.findChildren(QLabel)[0]
        mark = next(button for button in card.findChildren(QPushButton) if button.property("role") == "mark")
        said = {}
        for width in (600, card.minimumSizeHint().width() + 30):
            card.resize(width, 300)
            app.processEvents()
            assert title.width() >= title.sizeHint().width()
            said[card.width()] = mark.text()
        assert list(said.values()) == ["edited × 1", "× 1"]
        assert mark.accessibleName() == "edited × 1"
