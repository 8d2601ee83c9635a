"""The input panel: its buttons, chips, arcs and words, from made-up runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from attention_explorer.panels.input.input_sentences import word_span
from attention_explorer.panels.input.panel import InputPanel
from attention_explorer.panels.input.token_strip import TokenStrip
from attention_explorer.session.hover import NOTHING, Pointed
from attention_explorer.session.intents import SelectCell, SelectHead, SelectQuery, SetText, SetView
from attention_explorer.session.state import State
from attention_models.protocol.decoding import DecodeStepRequest, into_input
from attention_models.protocol.head import HeadRequest, RowRequest, RowView, WordWeights
from attention_models.protocol.loading import Loaded
from attention_models.protocol.running import ForwardRequest, RunInputs
from attention_models.protocol.values import SiteRef, Token
from tests.explorer.session import answers
from tests.explorer.silent import SilentSession, shown
from tests.explorer.widgets.pictures import rendered
from tests.explorer.widgets.pointer import move_pointer


def loaded_as(family: str, mask: str | None = None) -> Loaded:
    loaded = answers.loaded()
    return replace(loaded, info=replace(loaded.info, family=family, mask_token=mask))


@pytest.fixture
def session() -> SilentSession:
    return SilentSession(answers.after(State(), answers.loaded(), answers.ran()))


@pytest.fixture
def panel(qtbot, session) -> InputPanel:
    return shown(qtbot, InputPanel, session)


def test_before_a_model_is_open_nothing_can_be_run(qtbot):
    panel = shown(qtbot, InputPanel, SilentSession(State()))
    assert not panel.run_button.isEnabled()
    assert not panel.step_button.isEnabled()
    assert not panel.mask_button.isVisible()


def test_it_wants_the_weights_that_its_arcs_show(panel, session):
    assert session.asked == [HeadRequest(run=1, site=SiteRef("decoder", 5), head=5)]
    bare = rendered(panel.strip)
    view = replace(answers.head_view(), weights=np.full((4, 4), 0.25, np.float32))
    session.arrive(view)
    assert rendered(panel.strip) != bare
    assert panel.caption.text() == "arcs: layer 5, head 5, from “went”"
    assert not panel.is_waiting()


def test_arcs_follow_the_pointer_and_come_back(panel, session):
    session.arrive(replace(answers.head_view(), weights=np.full((4, 4), 0.25, np.float32)))
    still = rendered(panel.strip)
    panel.hover.point(Pointed(query=1, key=0))
    assert panel.caption.text().endswith("from “and”")
    assert rendered(panel.strip) != still
    panel.hover.point(Pointed(query=99, key=0))  # of a run that is gone
    assert panel.caption.text().endswith("from “went”")
    panel.hover.point(NOTHING)
    assert rendered(panel.strip) == still


@pytest.mark.full
def test_of_a_long_text_arcs_show_the_selected_row_alone(qtbot):
    ran = answers.ran()
    ran = replace(ran, sites=tuple(replace(site, queries=4, keys=300_000) for site in ran.sites))
    session = SilentSession(answers.after(State(), answers.loaded(), ran))
    panel = shown(qtbot, InputPanel, session)
    ref = SiteRef("decoder", 5)
    request = RowRequest(run=1, site=ref, head=5, query=3)
    assert session.asked == [request]
    row = RowView(
        request=request,
        weights=np.full(300_000, 1 / 300_000, np.float32),
        masked=None,
    )
    session.arrive(row)
    assert not panel.is_waiting()
    assert panel.caption.text().endswith("from “went”")
    panel.hover.point(Pointed(query=1, key=0))  # its row is not here
    assert panel.caption.text().endswith("from “went”")


def test_typing_runs_the_model_and_says_which_text_the_tokens_are_of(panel, session):
    session.arrive(answers.head_view())
    QTest.keyClicks(panel.text, "!")
    assert [request.inputs.prompt for request in session.asked if isinstance(request, ForwardRequest)] == [
        "Tom and Anna went!"
    ]
    assert panel.caption.text().startswith("tokens of the last text that ran · ")
    assert not panel.step_button.isEnabled()
    panel.step()
    assert not any(isinstance(request, DecodeStepRequest) for request in session.asked)


def test_buttons_ask_the_engine(panel, session, qtbot):
    session.asked.clear()
    qtbot.mouseClick(panel.run_button, Qt.MouseButton.LeftButton)
    qtbot.mouseClick(panel.step_button, Qt.MouseButton.LeftButton)
    inputs = RunInputs("Tom and Anna went")
    assert session.asked == [ForwardRequest(inputs=inputs), into_input(inputs)]


@pytest.mark.parametrize(("family", "writes"), [("causal", True), ("masked", True), ("encoder", False)])
def test_only_models_that_write_can_step(qtbot, family, writes):
    session = SilentSession(answers.after(State(), loaded_as(family), answers.ran()))
    assert shown(qtbot, InputPanel, session).step_button.isEnabled() == writes


def test_masking_the_selected_word_or_what_is_marked(qtbot):
    session = SilentSession(answers.after(State(), loaded_as("masked", "[MASK]"), answers.ran()))
    panel = shown(qtbot, InputPanel, session)
    assert panel.mask_button.isVisible()
    session.dispatch(SelectQuery(2))
    qtbot.mouseClick(panel.mask_button, Qt.MouseButton.LeftButton)
    assert session.state.document.text == "Tom and [MASK] went"
    cursor = panel.text.textCursor()
    cursor.setPosition(0)
    cursor.setPosition(3, cursor.MoveMode.KeepAnchor)
    panel.text.setTextCursor(cursor)
    panel.mask_word()
    assert session.state.document.text == "[MASK] and [MASK] went"


def test_masking_nothing_says_what_to_do(qtbot):
    session = SilentSession(answers.after(State(), loaded_as("masked", "[MASK]"), answers.ran(framed=True)))
    panel = shown(qtbot, InputPanel, session)
    session.dispatch(SelectQuery(0))  # the special token
    panel.mask_word()
    assert session.state.notice is not None
    assert session.state.notice.text.startswith("Select a word first")
    assert session.state.document.text == "Tom and Anna went"


def test_a_click_and_the_keys_of_the_strip_select(panel, session, qtbot):
    qtbot.mouseClick(panel.strip, Qt.MouseButton.LeftButton, pos=panel.strip.chip_rect(1).center().toPoint())
    assert session.state.selection.query == 1
    qtbot.keyClick(panel.strip, Qt.Key.Key_Right, Qt.KeyboardModifier.ShiftModifier)
    assert session.state.selection.key == 1
    session.dispatch(SelectCell(3, 2))
    still = rendered(panel.strip)
    session.dispatch(SelectCell(3, 1))
    assert rendered(panel.strip) != still


def test_a_text_in_another_language_is_remarked_on_and_runs_all_the_same(qtbot):
    translator = answers.translator()
    translator = replace(translator, info=replace(translator.info, reads="en"))
    session = SilentSession(answers.after(answers.TRANSLATING, translator, answers.translation()))
    panel = shown(qtbot, InputPanel, session)
    panel.text.setPlainText("¿Dónde está la estación de tren?")
    assert panel.remark.text() == "This looks like Spanish; en-es reads English, so expect nonsense."
    assert ForwardRequest(inputs=RunInputs("¿Dónde está la estación de tren?")) in session.asked
    assert session.state.notice is None
    panel.text.setPlainText("Где находится вокзал?")
    assert panel.remark.text() == "This is written in Cyrillic letters; en-es reads English, so expect nonsense."
    panel.text.setPlainText("Where is the station?")
    assert panel.remark.text() == ""


def test_a_model_that_says_no_language_remarks_on_none(panel):
    panel.text.setPlainText("¿Dónde está la estación de tren?")
    assert panel.remark.text() == ""


def test_the_text_of_the_session_is_shown_with_the_cursor_left_alone(panel, session):
    panel.text.moveCursor(panel.text.textCursor().MoveOperation.Start)
    session.dispatch(SelectQuery(0))
    assert panel.text.textCursor().position() == 0
    panel.step()
    session.arrive(answers.stepped("Tom and Anna went to"))
    assert panel.text.text() == "Tom and Anna went to"


# --------------------------------------------------------------------------- words


def tokens_of(*texts: str) -> tuple[Token, ...]:
    tokens, start = [], 0
    for text in texts:
        tokens.append(Token(id=0, piece=text, text=text, start=start, end=start + len(text)))
        start += len(text)
    return tuple(tokens)


def test_a_byte_of_a_character_is_told_in_the_tooltip(panel, session):
    run = answers.ran(2, "Tom and")
    byte = Token(5, "Ù", "ع", 3, 4, part=(1, 2), label="‹D9›")
    several = Token(6, "Ø¹Ù", "عع", 3, 5, part=(2, 2), label="‹B9·D9›")
    session.dispatch(SetText("Tom and"))
    session.arrive(replace(run, tokens=(byte, several)))
    one, two = (chip.tooltip for chip in panel.strip._tokens)
    assert one.endswith("piece 1 of 2 of it\n‹D9›: byte D9 of a character that several tokens share")
    assert two.endswith("\n‹B9·D9›: bytes B9 D9 of a character that several tokens share")
    session.arrive(answers.ran(3, "Tom and"))
    assert "byte" not in panel.strip._tokens[0].tooltip


@pytest.mark.parametrize(
    ("texts", "position", "word"),
    [
        (("Tom", " and", " Anna"), 1, "and"),
        (("un", "believ", "able", " story"), 1, "unbelievable"),
        ((" un", "believ", "able"), 2, "unbelievable"),
        (("Anna", ".", " Tom"), 0, "Anna"),
        (("Anna", ".", " Tom"), 1, "."),
        (("don", "'", "t"), 0, "don"),
        (("年", "年"), 0, "年年"),
    ],
)
def test_the_word_a_token_belongs_to(texts, position, word):
    start, end = word_span(tokens_of(*texts), position)
    assert "".join(texts)[start:end] == word


def test_no_word_where_there_is_no_text():
    special = Token(id=0, piece="[CLS]", text="", start=0, end=0, special=True)
    assert word_span((special,), 0) == (0, 0)
    assert word_span((special,), 7) == (0, 0)
    assert word_span((), 0) == (0, 0)


# --------------------------------------------------------------------------- a source and a target


@pytest.fixture
def translating() -> SilentSession:
    session = SilentSession(answers.after(answers.TRANSLATING, answers.translator(), answers.translation()))
    session.dispatch(SelectHead(SiteRef("cross", 0), 0))
    return session


def labels(strip: TokenStrip) -> list[str]:
    return [chip.label for chip in strip._tokens]


def test_only_a_model_of_two_texts_has_a_target(qtbot, panel, translating):
    assert not panel.target.text.isVisible()
    assert not panel.target.strip.isVisible()
    both = shown(qtbot, InputPanel, translating)
    assert both.target.text.isVisible()
    assert labels(both.strip) == ["␣The", "␣cat", "⟨end⟩"]
    assert labels(both.target.strip) == ["⟨start⟩", "␣El", "␣gato"]


def test_what_the_model_wrote_stands_in_the_target(qtbot, translating):
    panel = shown(qtbot, InputPanel, translating)
    assert panel.target.text.text() == "El gato"
    assert panel.target.writes_button.isChecked()
    assert not panel.step_button.isEnabled()
    assert "Empty the target" in panel.step_button.toolTip()


def test_typing_emptying_and_letting_write_again(qtbot, translating):
    panel = shown(qtbot, InputPanel, translating)
    QTest.keyClicks(panel.target.text, "s")
    assert translating.state.document.target == "El gatos"
    assert not panel.target.writes_button.isChecked()
    panel.target.text.selectAll()
    QTest.keyClick(panel.target.text, Qt.Key.Key_Delete)
    assert translating.state.document.target == ""
    translating.arrive(answers.translation(run=2, target="", written=""))
    assert panel.step_button.isEnabled()
    qtbot.mouseClick(panel.step_button, Qt.MouseButton.LeftButton)
    assert translating.asked[-1] == into_input(RunInputs("The cat", target=""))
    translating.arrive(answers.stepped("El", RunInputs("The cat", target="")))
    assert panel.target.text.text() == "El"
    qtbot.mouseClick(panel.target.writes_button, Qt.MouseButton.LeftButton)
    assert translating.state.document.target is None
    assert panel.target.text.text() == "El"  # until the model has written
    translating.arrive(answers.translation(run=3))
    assert panel.target.text.text() == "El gato"
    qtbot.mouseClick(panel.target.writes_button, Qt.MouseButton.LeftButton)
    assert translating.state.document.target == "El gato"  # what it wrote is held on to


def test_undo_takes_back_what_was_typed_into_the_target(qtbot, translating):
    panel = shown(qtbot, InputPanel, translating)
    QTest.keyClicks(panel.target.text, "!")
    translating.undo()
    assert translating.state.document.target is None
    assert panel.target.text.text() == "El gato"
    translating.redo()
    assert panel.target.text.text() == "El gato!"


@pytest.mark.parametrize(
    ("stack", "source", "target", "caption"),
    [
        ("encoder", "arcs", "", "arcs: encoder layer 0, head 0, from “cat”"),
        ("decoder", "", "arcs", "arcs: decoder layer 0, head 0, from “El”"),
        ("cross", "shades", "", "shades: cross-attention layer 0, head 0, from “El → gato”"),
    ],
)
def test_weights_are_drawn_at_the_tokens_that_are_looked_at(qtbot, translating, stack, source, target, caption):
    panel = shown(qtbot, InputPanel, translating)
    translating.dispatch(SelectHead(SiteRef(stack, 0), 0))
    translating.dispatch(SelectCell(1, 1))
    site = translating.state.site
    before = [rendered(strip) for strip in (panel.strip, panel.target.strip)]
    weights = np.full((site.queries, site.keys), 1 / site.keys, np.float32)
    translating.arrive(replace(answers.head_view(site=site.ref, head=0), weights=weights))
    after = [rendered(strip) for strip in (panel.strip, panel.target.strip)]
    assert [a != b for a, b in zip(after, before, strict=True)] == [bool(source), bool(target)]
    room = [strip.chip_rect(0).top() >= 20 for strip in (panel.strip, panel.target.strip)]
    assert room == [source == "arcs", target == "arcs"]  # above the chips, only where there are arcs
    assert panel.caption.text() == caption
    shades = [strip._shades is not None for strip in (panel.strip, panel.target.strip)]
    assert shades == [source == "shades", False]


def test_across_texts_one_strip_chooses_the_query_and_the_other_the_key(qtbot, translating):
    panel = shown(qtbot, InputPanel, translating)
    for strip, token in ((panel.target.strip, 2), (panel.strip, 0)):
        qtbot.mouseClick(strip, Qt.MouseButton.LeftButton, pos=strip.chip_rect(token).center().toPoint())
    assert (translating.state.selection.query, translating.state.selection.key) == (2, 0)
    qtbot.keyClick(panel.strip, Qt.Key.Key_Right)
    qtbot.keyClick(panel.target.strip, Qt.Key.Key_Left, Qt.KeyboardModifier.ShiftModifier)
    assert (translating.state.selection.query, translating.state.selection.key) == (1, 1)


def test_a_token_of_the_other_text_is_answered_with_a_sentence(qtbot, translating):
    panel = shown(qtbot, InputPanel, translating)
    translating.dispatch(SelectHead(SiteRef("encoder", 0), 0))
    before = translating.state.selection
    strip = panel.target.strip
    qtbot.mouseClick(strip, Qt.MouseButton.LeftButton, pos=strip.chip_rect(1).center().toPoint())
    assert translating.state.selection == before
    assert translating.state.notice.text.startswith("The selected head looks only within the source.")


def test_the_pointer_means_the_side_that_the_head_looks_from(qtbot, translating):
    panel = shown(qtbot, InputPanel, translating)
    move_pointer(panel.strip, panel.strip.chip_rect(1).center().toPoint())
    assert panel.hover.pointed == Pointed(key=1)
    move_pointer(panel.target.strip, panel.target.strip.chip_rect(2).center().toPoint())
    assert panel.hover.pointed == Pointed(query=2)
    translating.dispatch(SelectHead(SiteRef("encoder", 0), 0))
    panel.hover.point(NOTHING)
    move_pointer(panel.target.strip, panel.target.strip.chip_rect(1).center().toPoint())
    assert panel.hover.pointed == NOTHING


def test_words_instead_of_pieces_are_chips_with_arcs_between_words(panel, session, qtbot):
    ran = answers.ran(text="un happy cats ran")
    tokens = tuple(replace(token, continues=i == 1) for i, token in enumerate(ran.tokens))
    session.arrive(replace(ran, tokens=tokens))
    session.dispatch(SetView("words", True))
    assert panel.strip.count == 3
    assert isinstance(session.asked[-1], HeadRequest)
    assert session.asked[-1].words
    merged = np.array([[1.0, 0.0, 0.0], [0.8, 0.2, 0.0], [0.7, 0.2, 0.1]], np.float32)
    view = answers.head_view()
    session.arrive(replace(view, request=session.asked[-1], by_word=WordWeights(merged, None)))
    session.dispatch(SelectCell(3, 1))
    assert panel.caption.text().endswith("from “ran” · words: from averaged, to summed")
    assert (panel.strip._query, panel.strip._key) == (2, 0)
    np.testing.assert_array_equal(panel.strip._weights, merged[2])
    QTest.mouseClick(panel.strip, Qt.MouseButton.LeftButton, pos=panel.strip.chip_rect(1).center().toPoint())
    assert session.state.selection.query == 2  # the first token of the second word
    panel.hover.point(Pointed(query=1))
    assert panel.strip._hover == 0
    session.dispatch(SetView("words", False))
    assert panel.strip.count == 4
    assert "words" not in panel.caption.text()


def test_buttons_say_their_keys_where_the_text_keeps_its_room(panel, session):
    session.arrive(loaded_as("encoder", mask="[MASK]"))
    buttons = {"Mask": panel.mask_button, "Run": panel.run_button, "Step": panel.step_button}
    sixty = 60 * panel.fontMetrics().averageCharWidth()
    for width, says in ((1200, True), (760, False), (1200, True)):
        panel.resize(width, panel.height())
        assert all((button.text() != name) == says for name, button in buttons.items())
        assert not says or panel.text.width() >= 0.9 * sixty
        assert all("(Ctrl+" in button.toolTip() or "(Enter)" in button.toolTip() for button in buttons.values())
