"""The Positions panel: the textbook's waves alone, and the shipped models on the real engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QScrollArea

from attention_explorer.compute.bridge import Bridge, connect
from attention_explorer.panels.positions.panel import PositionsPanel, told
from attention_explorer.session.hover import Hover
from attention_explorer.session.intents import OpenCheckpoint, SelectQuery, SetText
from attention_explorer.session.session import Session
from attention_explorer.session.state import Document, State
from attention_models import open_checkpoint, run
from attention_models.protocol.interventions import Positions
from attention_models.protocol.positions import Moved, PositionScheme, ShuffleRequest, ShuffleView
from tests.explorer.real_window import destroy, wait_until
from tests.explorer.session import answers
from tests.explorer.silent import SilentSession, shown
from tests.explorer.widgets.pointer import move_pointer

LEFT = Qt.MouseButton.LeftButton
EXAMPLE = "Tom and Anna went to the park."
SINUSOIDS, MODEL, ORDER = range(3)


class Host:
    def __init__(self, checkpoint: str, text: str) -> None:
        self.session = Session(State(Document(checkpoint=checkpoint, text=text)))
        self.bridge = Bridge()
        connect(self.session, self.bridge)
        self.panel = PositionsPanel(self.session, Hover())
        self.panel.resize(430, 540)
        self.panel.show()
        self.session.start()
        self.settle()

    @property
    def state(self) -> State:
        return self.session.state

    def settle(self) -> None:
        """Wait until the panel shows the newest text, or a notice says why it cannot."""

        def settled() -> bool:
            state = self.state
            if self.bridge.busy or state.results.loaded is None:
                return False
            return state.notice is not None or (state.up_to_date and not self.panel.is_waiting())

        wait_until(settled)

    def open_page(self, page: int) -> None:
        QTest.mouseClick(self.panel.chooser.button(page), LEFT)
        self.settle()


@contextmanager
def hosted(checkpoint: str, text: str = EXAMPLE) -> Iterator[Host]:
    host = Host(checkpoint, text)
    try:
        yield host
    finally:
        host.bridge.stop()
        host.panel.close()
        destroy(host.panel)


@pytest.fixture(scope="module")
def opened(qapp) -> Iterator[Host]:
    with hosted("story-bert") as host:
        yield host


@pytest.fixture
def bert(opened: Host) -> Host:
    """story-bert with the example, nothing changed, at the sinusoids."""
    opened.session.dispatch(SetText(EXAMPLE))
    for listed in opened.state.document.interventions:
        assert isinstance(listed.value, Positions)
    if opened.state.document.interventions:
        opened.panel.order.off_toggled.emit(False)
    opened.open_page(SINUSOIDS)
    return opened


@pytest.fixture
def session() -> SilentSession:
    return SilentSession(answers.after(State(), answers.loaded(), answers.ran()))


# --------------------------------------------------------------------------- sinusoids


@pytest.fixture
def panel(qtbot, session) -> PositionsPanel:
    made = shown(qtbot, PositionsPanel, session)
    assert isinstance(made, PositionsPanel)
    return made


def test_the_textbook_asks_for_nothing(panel, session):
    assert session.asked == []
    assert not panel.is_waiting()


def test_dragging_the_cursor_reads_the_waves_there(panel):
    view = panel.sinusoids
    waveforms = view.waveforms
    y = round(waveforms.row_rect(0).center().y())
    QTest.mousePress(waveforms, LEFT, Qt.KeyboardModifier.NoModifier, QPoint(round(waveforms.x_of(13)), y))
    move_pointer(waveforms, QPoint(round(waveforms.x_of(30)), y), held=LEFT)
    QTest.mouseRelease(waveforms, LEFT)
    assert view.position == 30
    for wave in waveforms.waves:
        angle = 30 / 10_000 ** (2 * wave.pair / 64)
        assert wave.sine == pytest.approx(np.sin(angle), abs=1e-6)
        assert wave.cosine == pytest.approx(np.cos(angle), abs=1e-6)
    assert view.table.cross[0] == 30
    assert view.alike.cross == (30, 30)
    QTest.keyClick(waveforms, Qt.Key.Key_Right)
    assert view.position == 31


def test_up_and_down_change_the_pair_of_the_chosen_row(panel):
    view = panel.sinusoids
    before = view.pairs
    QTest.mouseClick(view.waveforms, LEFT, pos=QPoint(4, round(view.waveforms.row_rect(2).center().y())))
    QTest.keyClick(view.waveforms, Qt.Key.Key_Up)
    QTest.keyClick(view.waveforms, Qt.Key.Key_Up)
    assert view.pairs == (*before[:2], before[2] + 2, before[3])
    for _ in range(60):
        QTest.keyClick(view.waveforms, Qt.Key.Key_Down)
    assert view.pairs[2] == 0


def test_a_click_in_the_table_sets_position_and_pair(panel):
    view = panel.sinusoids
    view.ensureWidgetVisible(view.table)
    QTest.mouseClick(view.table, LEFT, pos=view.table.cell_centre(40, 21).toPoint())
    assert view.position == 40
    assert view.pairs[1] == 10


def test_curves_are_numpys(panel):
    view = panel.sinusoids
    places = np.arange(64)[:, None] / 10_000 ** (np.arange(0, 64, 2) / 64)
    rows = np.concatenate([np.sin(places), np.cos(places)], axis=1)
    QTest.mouseClick(view.by_distance, LEFT, pos=view.by_distance.point(37, 20).toPoint())
    assert view.by_distance.readout() == f"37:  dot product {rows[13] @ rows[50]:.2f}"
    QTest.mouseClick(view.kind.button(1), LEFT)
    assert view.by_distance.readout() == f"37:  distance {np.linalg.norm(rows[13] - rows[50]):.3f}"
    view.lengths.set_cursor(5)
    assert view.lengths.readout() == f"5:  λ {2 * np.pi * 10_000 ** (10 / 64):.2f}"


@pytest.mark.parametrize(("positions", "width", "base"), [(2, 4, 2), (512, 512, 1_000_000), (64, 6, 10_000)])
def test_every_size_is_drawn(panel, positions, width, base):
    view = panel.sinusoids
    view.set_position(60)
    view.positions.setValue(positions)
    view.width_box.setValue(width)
    view.base.setValue(base)
    assert view.position == min(60, positions - 1)
    assert max(view.pairs) < width // 2
    assert not view.grab().isNull()


def test_sizes_that_make_no_sense_can_not_be_set(panel):
    view = panel.sinusoids
    view.positions.setValue(0)
    view.width_box.setValue(5)
    view.base.setValue(0)
    assert (view.positions.value(), view.base.value()) == (2, 2)
    assert view.table.readout() != ""


# --------------------------------------------------------------------------- this model


def test_a_learned_table_is_shown_with_the_sum_of_the_selected_token(bert):
    bert.open_page(MODEL)
    bert.session.dispatch(SelectQuery(3))
    bert.settle()
    page = bert.panel.scheme
    assert page.title.text() == "Learned positions"
    assert page.sum_title.text() == "What goes in for “Anna” at position 3"
    model = open_checkpoint("story-bert")
    weights = {name: w.double() for name, w in model.module.state_dict().items()}
    words, places = (weights[f"bert.embeddings.{kind}_embeddings.weight"] for kind in ("word", "position"))
    token = run(model, EXAMPLE).tokens[3].id
    expected = [float(v.norm()) for v in (words[token], places[3], words[token] + places[3])]
    assert page.bars.lengths == pytest.approx(expected, rel=1e-5)
    assert page.table.cross == (3, -1)
    assert page.alike.cross == (3, 3)
    page.table.set_cross(7, 11)
    assert page.table.readout().startswith("position 7, dimension 11:")
    assert float(page.table.readout().split(": ")[1].replace("−", "-")) == pytest.approx(float(places[7, 11]), rel=5e-3)


def test_nothing_shown_is_wider_than_the_panel(bert):
    for page in (SINUSOIDS, MODEL, ORDER):
        bert.open_page(page)
        shown_page = bert.panel.pages.currentWidget()
        assert isinstance(shown_page, QScrollArea)
        body = shown_page.widget()
        assert body is not None
        assert body.width() <= shown_page.viewport().width()


# --------------------------------------------------------------------------- order


def test_the_panel_proves_that_bert_without_positions_sees_a_set(bert):
    bert.open_page(ORDER)
    view = bert.state.results.of(ShuffleView)
    assert view is not None
    assert view.off is not None
    assert view.off.largest < 1e-5
    assert bert.panel.order.verdict.text().startswith("Without positions the outputs permute with the words")
    before = view.order
    QTest.mouseClick(bert.panel.order.shuffle, LEFT)
    bert.settle()
    assert bert.state.results.of(ShuffleView).order != before
    QTest.mouseClick(bert.panel.order.swap, LEFT)
    bert.settle()
    assert bert.state.results.of(ShuffleView).order == before


def test_man_bites_dog(bert):
    bert.open_page(ORDER)
    QTest.mouseClick(bert.panel.order.example, LEFT)
    bert.settle()
    assert bert.state.document.text == "dog bites man"
    assert bert.panel.order.map.accessibleDescription().startswith("[CLS] man bite ‿s dog [SEP]. on: at most")


def test_a_single_word_is_told(bert):
    bert.open_page(ORDER)
    bert.session.dispatch(SetText("dog"))
    bert.settle()
    order = bert.panel.order
    assert order.verdict.text() == "A single word has no other order. Type a second one."
    assert not order.shuffle.isEnabled()
    bert.session.dispatch(SetText(EXAMPLE))
    bert.settle()
    assert order.shuffle.isEnabled()


def test_the_check_box_runs_the_model_without_positions(bert):
    bert.open_page(ORDER)
    order = bert.panel.order
    order.ensureWidgetVisible(order.off)
    QTest.keyClick(order.off, Qt.Key.Key_Space)
    bert.settle()
    assert [listed.value for listed in bert.state.document.interventions] == [Positions("off")]
    assert bert.state.ran.inputs.interventions == (Positions("off"),)
    assert not order.shift.isEnabled()
    bert.session.undo()
    bert.settle()
    assert not order.off.isChecked()
    assert bert.state.document.interventions == ()


def test_the_spin_box_shifts_as_far_as_the_table_goes(bert):
    bert.open_page(ORDER)
    order = bert.panel.order
    tokens = len(bert.state.ran.tokens)
    assert order.shift.maximum() == 256 - tokens
    order.shift.setValue(9)
    bert.settle()
    assert bert.state.ran.inputs.interventions == (Positions("shift", 9),)
    order.shift.setValue(9999)
    bert.settle()
    assert bert.state.ran.inputs.interventions == (Positions("shift", 256 - tokens),)
    assert bert.state.notice is None
    order.shift.setValue(0)
    bert.settle()
    assert bert.state.document.interventions == ()


def test_a_text_that_outgrows_the_shift_is_refused_and_can_be_taken_back(bert):
    bert.open_page(ORDER)
    order = bert.panel.order
    order.shift.setValue(order.shift.maximum())
    bert.settle()
    bert.session.dispatch(SetText(EXAMPLE + " Tom and Anna went home."))
    bert.settle()
    assert bert.state.notice is not None
    assert "past the end of story-bert's table, which holds 256" in bert.state.notice.text
    assert order.shift.isEnabled()
    order.shift.setValue(0)
    bert.settle()
    assert bert.state.notice is None
    assert bert.state.up_to_date


@pytest.mark.full
def test_other_models_say_what_they_are(bert):
    try:
        bert.session.dispatch(OpenCheckpoint("en-es"))
        bert.settle()
        bert.open_page(ORDER)
        order = bert.panel.order
        assert not order.shift.isEnabled()
        assert order.off.isEnabled()
        assert "en-es always counts its positions from 0" in order.edit_note.text()
        assert order.verdict.text().startswith("Without positions the outputs permute")
        bert.open_page(MODEL)
        assert bert.panel.scheme.title.text() == "Sinusoidal positions"
        bert.session.dispatch(OpenCheckpoint("story-gpt"))
        bert.settle()
        bert.open_page(ORDER)
        assert order.verdict.text().startswith("Even without positions order shows")
        assert "permute with the words" in order.because.text()
    finally:
        bert.session.dispatch(OpenCheckpoint("story-bert"))
        bert.settle()


def test_a_stale_answer_changes_nothing(session):
    view = made_up(on=1.0, off=1e-6)
    older = replace(view, request=ShuffleRequest(run=99))
    session.arrive(older)
    assert session.state.results.of(ShuffleView) is None
    session.arrive(view)
    assert session.state.results.of(ShuffleView) is view


def made_up(on: float, off: float | None, off_open: float | None = None, **changes: object) -> ShuffleView:
    def moved(value: float | None) -> Moved | None:
        return None if value is None else Moved(np.array([0.0, value], np.float32))

    first = moved(on)
    assert first is not None
    fields: dict[str, object] = {
        "request": ShuffleRequest(run=1),
        "words": ("a", "b"),
        "order": (1, 0),
        "fixed": (False, False),
        "measured": "logits",
        "causal": off_open is not None,
        "on": first,
        "off": moved(off),
        "off_open": moved(off_open),
        "note": "",
        "scheme": PositionScheme(kind="none", name="none found", title="", words="", off_note="It has none."),
    }
    return ShuffleView(**{**fields, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("view", "verdict", "because"),
    [
        (lambda: made_up(8, 7e-6), "permute with the words: largest difference 7e-6.", "differ by up to 8."),
        (lambda: made_up(8, 5, 1e-5), "Even without positions order shows", "is 1e-5: the outputs permute"),
        (lambda: made_up(8, 5, 0.5), "Even without positions order shows", "is 0.5."),
        (lambda: made_up(8, 5), "Without positions outputs still move by up to 5.", "With positions by up to 8."),
        (lambda: made_up(8, None), "Outputs move by up to 8.", "It has none."),
        (lambda: made_up(0, 0, note="One word."), "One word.", ""),
    ],
)
def test_the_verdict_is_what_the_numbers_say(view: Callable[[], ShuffleView], verdict, because):
    said, why = told(view())
    assert verdict in said
    assert because in why
