"""The settings of the Decode panel: typed, refused, part of the document."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt

from attention_explorer.panels.decoding.knobs import DecodeKnobs
from attention_explorer.panels.decoding.panel import DecodingPanel
from attention_explorer.session import files
from attention_explorer.session.intents import (
    RestoreDocument,
    SetDecoding,
)
from attention_explorer.session.writing import Decoding
from attention_models.protocol.decoding import DecodeSettings
from tests.explorer.panels.decoding.answered import LEFT, steps
from tests.explorer.silent import shown


def test_what_is_typed_is_part_of_the_document_and_comes_back_with_it(qtbot, session, panel):
    assert panel.view.knobs.decoding == session.state.document.decoding
    qtbot.mouseClick(panel.view.knobs.strategy_buttons.button(1), LEFT)
    field = panel.view.knobs.fields["temperature"]
    field.selectAll()
    qtbot.keyClicks(field, "0,50")
    assert field.text() == "0,50"  # as it was typed
    said = session.state.document.decoding
    assert (said.settings.strategy, said.settings.temperature, said.chosen) == ("sample", 0.5, True)
    qtbot.keyClicks(field, "x")
    assert "“0,50x” is none" in panel.view.knobs.remark.text()
    assert session.state.document.decoding == said  # what is no number is not in it
    saved = files.decode(files.encode(session.state.document))
    session.undo()
    assert field.text() == "1"
    assert panel.view.knobs.problem == ""
    session.undo()
    assert panel.view.knobs.strategy == "greedy"
    session.redo()
    session.redo()
    assert (panel.view.knobs.strategy, field.text()) == ("sample", "0.5")
    session.undo()
    session.dispatch(RestoreDocument(saved))
    assert (panel.view.knobs.settings.temperature, field.text()) == (0.5, "0.5")


def test_a_panel_that_is_opened_later_says_what_the_document_says(qtbot, session):
    numbers = DecodeSettings("beam", beams=2, length_penalty=-0.5, temperature=1e-6)
    session.dispatch(SetDecoding(Decoding(numbers, 7, 3, chosen=True)))
    panel = shown(qtbot, DecodingPanel, session)
    assert panel.view.knobs.strategy == "beam"
    texts = {name: field.text() for name, field in panel.view.knobs.fields.items()}
    assert texts["beams"] == "2"
    assert texts["length_penalty"] == "-0.5"
    assert (texts["steps"], texts["samples"], texts["temperature"], texts["top_k"]) == ("7", "3", "1e-06", "")
    assert panel.view.knobs.settings == DecodeSettings("beam", beams=2, length_penalty=-0.5)
    steps(qtbot, session, panel, 1)
    view = panel.player.shown_view()
    assert view is not None
    assert view.request.steps == 7


@pytest.mark.parametrize(
    ("strategy", "field", "value", "said"),
    [
        ("sample", "top_k", "0", "top-k 0 keeps no token"),
        ("sample", "top_p", "2", "top-p 2.0 is no share"),
        ("sample", "temperature", "-1", "temperature of -1.0"),
        ("sample", "temperature", "hot", "Temperature needs a number; “hot” is none."),
        ("greedy", "steps", "", "Steps needs a whole number; it is empty."),
        ("greedy", "steps", "0", "0 steps are not offered"),
        ("beam", "beams", "0", "width 0 is not offered"),
        ("sample", "samples", "9", "9 samples are not offered: 1 to 8"),
        ("sample", "seed", "9" * 30, "is not offered: 0 to 4,611,686,018,427,387,904"),
        ("sample", "top_k", "9" * 30, "is not offered: 1,000,000,000 at most"),
        ("sample", "temperature", "1e-40", "A temperature of 1e-40 is not offered: 0 (greedy), or 0.000001 to"),
        ("beam", "length_penalty", "1000", "A length penalty of 1000.0 is not offered: -10 to 10."),
    ],
)
def test_a_wrong_value_is_explained_and_nothing_can_be_pressed(panel, strategy, field, value, said):
    panel.view.knobs.choose(strategy)
    panel.view.knobs.set_number(field, value)
    assert said in panel.view.knobs.remark.text()
    assert not panel.view.transport.step_button.isEnabled()
    panel.view.knobs.set_number(field, "1")
    assert panel.view.transport.step_button.isEnabled()


@pytest.mark.parametrize(
    ("strategy", "field", "value"), [("sample", "temperature", "0"), ("beam", "beams", "1"), ("sample", "top_k", "1")]
)
def test_what_is_greedy_is_called_so(qtbot, strategy, field, value):
    knobs = DecodeKnobs()
    qtbot.addWidget(knobs)
    knobs.choose(strategy)
    knobs.set_number(field, value)
    assert "greedy" in knobs.remark.text()
    assert knobs.problem == ""


def test_arrow_keys_change_a_number(qtbot):
    knobs = DecodeKnobs()
    qtbot.addWidget(knobs)
    knobs.choose("sample")
    qtbot.keyClick(knobs.fields["temperature"], Qt.Key.Key_Up)
    assert knobs.settings.temperature == pytest.approx(1.1)


def test_a_number_has_room_in_larger_text_too(qtbot):
    knobs = DecodeKnobs()
    qtbot.addWidget(knobs)
    field = knobs.fields["seed"]
    before, font = field.width(), field.font()
    font.setPointSizeF(1.5 * font.pointSizeF())
    knobs.setFont(font)
    assert field.width() > 1.2 * before
    assert field.width() - 18 >= 7 * field.fontMetrics().averageCharWidth()
