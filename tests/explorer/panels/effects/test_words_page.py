"""Words in context: chosen by clicking and by typing, and every figure that of the layer under the slider."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from attention_explorer.panels.effects.panel import EffectsPanel
from attention_explorer.panels.effects.questions import WORDS, missing_word
from attention_explorer.panels.effects.words_page import CURVE, MAP, PLANE, cosine_text, words_of
from attention_explorer.session.effects_choices import EffectsChoices
from attention_explorer.session.state import State
from attention_models.protocol.effects import InContextRequest
from attention_models.protocol.request import Failure
from tests.explorer.panels.effects.words_answers import REQUEST, comparison
from tests.explorer.session import answers
from tests.explorer.silent import SilentSession, shown


@pytest.fixture
def session() -> SilentSession:
    return SilentSession(answers.after(State(), answers.loaded(), answers.ran()))


@pytest.fixture
def panel(qtbot, session) -> EffectsPanel:
    panel = shown(qtbot, EffectsPanel, session)
    panel.resize(600, 900)
    panel.pages.button(WORDS).click()
    return panel


def last(session: SilentSession) -> InContextRequest:
    request = session.asked[-1]
    assert isinstance(request, InContextRequest)
    return request


def test_a_stranger_sees_a_word_in_two_texts_at_once(panel, session):
    assert last(session) == REQUEST
    assert panel.words.sentence.text() == "The two texts are being run."
    session.arrive(comparison())
    assert panel.words.stack.isVisible()
    assert panel.words.slider.value() == 1
    said = panel.words.sentence.text()
    assert "After layer 0: cosine of “bank” in A and B 0.750, where any two tokens have 0.200" in said
    assert "by their first tokens (“(start)”) 0.800, by the means of all their tokens 0.700" in said
    assert "“bank” in A is 2 tokens (“ba” + “nk.”), whose vectors are averaged" in said


def test_the_slider_and_the_curve_go_together(panel, session):
    session.arrive(comparison())
    panel.words.slider.setFocus()
    QTest.keyClick(panel.words.slider, Qt.Key.Key_Right)
    assert "After layer 1: cosine of “bank” in A and B −0.250" in panel.words.sentence.text()
    assert panel.words.plot.cursor_place == 2
    assert "−0.250" in panel.words.plot.figure.value_text(panel.words.plot.figure.series[0].at(2))
    QTest.mouseClick(panel.words.plot, Qt.MouseButton.LeftButton, pos=panel.words.plot.point(0, 0.5).toPoint())
    assert panel.words.slider.value() == 0
    assert panel.words.at.text() == "After the embedding"
    np.testing.assert_array_equal(panel.words.plot.figure.series[0].y, [1.0, 0.75, -0.25])


def test_the_layer_of_a_session_is_shown_also_where_it_comes_before_the_answer(qtbot, session):
    again = shown(qtbot, EffectsPanel, session)
    again.choose_again({"page": WORDS, "picture of words": PLANE, "layer of words": 0})
    session.arrive(comparison())
    assert again.words.slider.value() == 0
    assert again.words.at.text() == "After the embedding"
    assert again.words.stack.currentIndex() == PLANE
    assert again.chosen() == {"page": WORDS, "picture of words": PLANE, "layer of words": 0}


def test_a_click_on_a_word_and_a_typed_one_ask_anew(panel, session):
    session.arrive(comparison())
    start = {word: at for at, word in words_of(REQUEST.texts[0])}["river"]
    QTest.mouseClick(panel.words.buttons[0].buttons[start], Qt.MouseButton.LeftButton)
    assert (last(session).words, last(session).starts) == (("river", "bank"), (start, None))
    assert panel.words.buttons[0].buttons[start].isChecked()
    field = panel.words.words[1]
    field.setFocus()
    field.selectAll()
    QTest.keyClicks(field, "money")
    QTest.keyClick(field, Qt.Key.Key_Return)
    assert last(session).words == ("river", "money")
    session.undo()
    assert last(session).words == ("river", "bank")
    assert field.text() == "bank"
    session.undo()
    assert session.state.document.effects == EffectsChoices()


def test_of_a_long_text_some_lines_of_words_show_with_the_chosen_one(panel, session, qtbot):
    qtbot.waitUntil(lambda: panel.words.buttons[0].height() > 0)
    few = panel.words.buttons[0].height()
    panel.words.texts[0].setText(" ".join(["the old man and the sea"] * 20 + ["by the bank"] + ["of the river"] * 20))
    panel.words.texts[0].editingFinished.emit()
    area = panel.words.buttons[0]
    chosen = next(button for button in area.buttons.values() if button.isChecked())
    qtbot.waitUntil(lambda: area.viewport().rect().contains(chosen.mapTo(area.viewport(), chosen.rect().center())))
    assert few < area.height() < 4 * few
    assert chosen.text() == "bank"
    kept = [button for button in area.widget().children() if button.isWidgetType() and button.isVisible()]
    assert len(kept) == len(area.buttons)  # those of the text before are gone


def test_a_word_that_is_not_there_is_said_and_nothing_is_asked(panel, session):
    session.arrive(comparison())
    asked = len(session.asked)
    for text, sentence in (("shore", "Text A does not have “shore” in it"), ("", "Click a word of text A")):
        panel.words.words[0].setText(text)
        panel.words.words[0].editingFinished.emit()
        assert sentence in panel.words.sentence.text()
        assert not panel.words.stack.isVisible()
    panel.words.texts[1].setText("  ")
    panel.words.texts[1].editingFinished.emit()
    assert len(session.asked) == asked
    session.undo()
    session.undo()
    session.undo()
    assert panel.words.stack.isVisible()


def test_a_point_and_a_cell_choose_their_words(panel, session):
    view = comparison()
    session.arrive(view)
    panel.words.pictures.button(PLANE).click()
    plane = panel.words.plane
    assert plane.points is not None
    assert plane.points.explained == (0.4, 0.2)
    far = int(np.abs(view.plane[1]).sum(axis=1).argmax())
    QTest.mouseClick(plane, Qt.MouseButton.LeftButton, pos=plane.point(far).toPoint())
    count = len(view.tokens[0])
    token = (*view.tokens[0], *view.tokens[1])[far]
    if not token.special:
        assert token.text in "".join(last(session).words)
    panel.words.pictures.button(MAP).click()
    grid = panel.words.map.grid
    assert grid is not None
    np.testing.assert_array_equal(grid.values, view.similarity[1, :count, count:])
    QTest.mouseClick(panel.words.map, Qt.MouseButton.LeftButton, pos=panel.words.map.cell_rect(1, 2).center().toPoint())
    assert last(session).words == ("They", "has")
    assert last(session).starts == (0, 4)
    panel.words.pictures.button(CURVE).click()
    assert panel.words.stack.currentIndex() == CURVE


def test_a_special_token_is_no_word(panel, session):
    session.arrive(comparison())
    panel.words.pictures.button(MAP).click()
    QTest.mouseClick(panel.words.map, Qt.MouseButton.LeftButton, pos=panel.words.map.cell_rect(0, 1).center().toPoint())
    assert last(session).words == ("bank", "She")


def test_what_the_engine_refuses_is_said_by_the_window_alone(panel, session):
    session.arrive(Failure(request=last(session), sentence="The two texts are 300 tokens long."))
    assert session.state.notice is not None
    assert panel.words.sentence.text().strip() == ""
    assert not panel.words.stack.isVisible()


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (EffectsChoices(), ""),
        (EffectsChoices(texts=("", "b"), words=("a", "b")), "Type a text A."),
        (EffectsChoices(texts=("a", "b"), words=("a", " ")), "Click a word of text B, or type it."),
        (EffectsChoices(texts=("a", "b"), words=("a", "c")), "Text B does not have “c” in it: click a word of it, or"),
    ],
)
def test_what_is_still_to_be_typed(asked, sentence):
    assert missing_word(asked).startswith(sentence)
    assert bool(missing_word(asked)) == bool(sentence)


def test_a_cosine_that_rounds_to_nothing_has_no_sign():
    assert (cosine_text(-0.0004), cosine_text(-0.004, 2), cosine_text(-0.25), cosine_text(1.0)) == (
        "0.000",
        "0.00",
        "−0.250",
        "1.000",
    )


def test_words_and_where_they_begin():
    text = "Don't go, O'Neil — it's the well-known ñandú."
    found = words_of(text)
    assert [word for _, word in found] == ["Don't", "go", ",", "O'Neil", "—", "it's", "the", "well-known", "ñandú", "."]
    assert all(text[at:].startswith(word) for at, word in found)


def test_a_model_of_pictures_reads_no_words(qtbot):
    loaded = answers.loaded()
    loaded = replace(loaded, info=replace(loaded.info, family="vision"))
    session = SilentSession(answers.after(State(), loaded, answers.ran()))
    panel = shown(qtbot, EffectsPanel, session)
    asked = len(session.asked)
    panel.pages.button(WORDS).click()
    assert panel.words.sentence.text() == "This model reads pictures and no words."
    assert len(session.asked) == asked
