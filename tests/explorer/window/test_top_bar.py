"""The line at the top: the checkpoint menu, the facts, and work in progress."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtWidgets import QApplication, QWidget

from attention_explorer.panels.trust.status_chip import StatusChip, StatusKind
from attention_explorer.paths import resource
from attention_explorer.session.hover import Hover
from attention_explorer.session.intents import Busy, Measure, OpenCheckpoint
from attention_explorer.session.state import State
from attention_explorer.window.top_bar import TopBar, facts
from attention_models.files.catalogue import shipped
from attention_models.protocol.export import ExportRequest
from attention_models.protocol.interventions import Adapter
from attention_models.protocol.quality import QualityRequest
from attention_models.protocol.request import Lane
from attention_models.protocol.running import ForwardRequest, RunInputs
from attention_models.protocol.values import AdapterInfo
from tests.explorer.real_window import opened_window, settle, wait_until
from tests.explorer.session import answers
from tests.explorer.silent import SilentSession

TICKS: tuple[tuple[tuple[StatusKind, str], ...], ...] = (
    (("ok", "eval mode"), ("ok", "ids"), ("ok", "rows sum to 1"), ("ok", "equals the model (exactly)")),
    (
        ("ok", "eval mode"),
        ("ok", "ids"),
        ("ok", "rows and sinks sum to 1"),
        ("ok", "equals the model to float32 rounding"),
    ),
    (("ok", "eval mode"), ("none", "ids as given"), ("none", "rows to sum"), ("none", "compare with the model")),
    (("ok", "eval mode"), ("ok", "ids"), ("pending", "rows to sum"), ("pending", "comparing with the formulas")),
    (("ok", "eval mode"), ("warning", "starts twice"), ("warning", "1,024 rows sum to 0"), ("warning", "edited run")),
    (
        ("error", "train mode"),
        ("error", "wrong ids"),
        ("error", "rows miss 1 by 3e-04"),
        ("error", "the model's answers differ"),
    ),
)
"""What the four signs say at once: mode, ids, rows, equality."""


@pytest.fixture
def session() -> SilentSession:
    return SilentSession(State())


@pytest.fixture
def bar(qtbot, session) -> TopBar:
    widget = TopBar(session, Hover(session))
    qtbot.addWidget(widget)
    widget.set_recent([])
    widget.resize(1200, 48)
    widget.show()
    return widget


def entries(bar: TopBar) -> list[str]:
    return [bar.menu.itemData(i) for i in range(bar.menu.count()) if bar.menu.itemData(i)]


def test_the_menu_lists_what_is_shipped_with_a_word_on_each(bar):
    assert entries(bar)[:2] == ["story-gpt", "story-bert"]
    assert bar.menu.currentData() == "story-gpt"
    assert all(bar.menu.itemData(i, Qt.ItemDataRole.ToolTipRole) for i in range(2))


def test_folders_opened_lately_follow_by_their_names(bar):
    bar.set_recent(["/models/my gpt", "C:\\models\\llama\\"])
    assert entries(bar)[-2:] == ["/models/my gpt", "C:\\models\\llama\\"]
    names = [bar.menu.itemText(i) for i in range(bar.menu.count())]
    assert names[-2:] == ["my gpt", "llama"]
    assert bar.menu.itemData(bar.menu.count() - 2, Qt.ItemDataRole.ToolTipRole) == "/models/my gpt"


def test_choosing_opens_and_choosing_what_is_open_does_nothing(bar, session, qtbot):
    qtbot.keyClick(bar.menu, Qt.Key.Key_Down)
    assert session.state.document.checkpoint == "story-bert"
    state = session.state
    bar.menu.activated.emit(bar.menu.currentIndex())
    assert session.state is state


def test_a_folder_that_is_being_opened_is_in_the_menu(bar, session):
    session.dispatch(OpenCheckpoint("/models/new"))
    assert bar.menu.currentData() == "/models/new"
    assert bar.menu.currentText() == "new"


def test_the_menu_is_not_built_anew_for_every_change(bar, session):
    built = []
    bar.menu.model().rowsInserted.connect(lambda *_: built.append(1))
    session.arrive(answers.loaded(), answers.ran())
    assert built == []


def test_open_asks_for_a_folder(bar, qtbot):
    with qtbot.waitSignal(bar.open_asked):
        qtbot.mouseClick(bar.open_button, Qt.MouseButton.LeftButton)


def test_facts_of_the_model_and_the_run(bar, session):
    assert bar.facts.text() == ""
    session.arrive(answers.loaded())
    assert bar.facts.text() == "8 layers × 8 heads"
    session.arrive(answers.ran())
    assert bar.facts.text() == "8 layers × 8 heads  ·  4 of 512 tokens"
    assert facts(session.state) == bar.facts.toolTip()


def test_one_layer_of_one_head_is_not_several(bar, session):
    loaded = answers.loaded()
    one = replace(loaded.info.stacks[0], layers=1, heads=2, key_heads=1)
    session.arrive(replace(loaded, info=replace(loaded.info, stacks=(one,))))
    assert bar.facts.text() == "1 layer × 2 heads sharing 1 key"


def test_short_work_is_not_announced_and_long_work_is(bar, session, qtbot):
    session.dispatch(Busy(frozenset({ForwardRequest.lane})))
    assert not bar.progress.isVisible()
    qtbot.waitUntil(bar.progress.isVisible)
    assert bar.doing.text() == "Working …"
    assert bar.progress.maximum() == 0
    session.arrive(answers.progress(ForwardRequest(inputs=RunInputs("a")), "Running the model", 0.25))
    assert bar.doing.text() == "Running the model …"
    assert bar.progress.value() / bar.progress.maximum() == 0.25
    session.dispatch(Busy(frozenset()))
    assert not bar.progress.isVisible()
    assert not bar.doing.isVisible()


def test_after_long_work_words_and_the_room_for_them_come_back_together(bar, session, qtbot):
    session.arrive(answers.loaded(), answers.ran(), answers.atlas_view(), answers.trust_report())
    while bar.trust.mode.drawn == "✓" or bar.trust.rows.drawn == "✓":
        bar.resize(bar.width() + 10, 48)
    session.dispatch(Busy(frozenset({ForwardRequest.lane})))
    qtbot.waitUntil(lambda: bar.trust.mode.drawn == "✓")
    session.dispatch(Busy(frozenset()))
    QApplication.processEvents()  # a picture may be taken now
    assert bar.trust.mode.drawn == "✓ eval mode"
    assert bar.trust.mode.width() >= bar.trust.mode.width_of("✓ eval mode")


def test_a_measurement_is_one_piece_of_work_however_many_requests_it_is(bar, session, qtbot):
    session.dispatch(Measure(answers.QUALITY))
    session.dispatch(Busy(frozenset({QualityRequest.lane})))
    qtbot.waitUntil(bar.progress.isVisible)
    session.arrive(answers.progress(answers.QUALITY, "Opening a"))
    assert bar.doing.text() == "Opening a …"
    session.arrive(answers.quality_view(3, 12))
    assert bar.doing.text() == "Measuring quality …"
    assert bar.progress.value() / bar.progress.maximum() == 0.25


def test_saving_weights_can_be_cancelled_and_nothing_else_can(bar, session, qtbot):
    session.dispatch(Busy(frozenset({ForwardRequest.lane})))
    qtbot.waitUntil(bar.progress.isVisible)
    assert not bar.cancel.isVisible()
    export = ExportRequest(run=1, path="a.npz")
    session.dispatch(Busy(frozenset({ForwardRequest.lane, ExportRequest.lane})))
    session.arrive(answers.progress(export, "Writing the weights", 0.5))
    session.arrive(answers.progress(ForwardRequest(inputs=RunInputs("a")), "Running the model", 0.1))
    assert bar.doing.text() == "Writing the weights …"
    assert bar.progress.value() / bar.progress.maximum() == 0.5
    bar.resize(940, 48)
    session.arrive(answers.progress(export, "Writing the weights", 0.75))
    assert not bar.progress.isVisible()  # a narrow bar tells it in words
    assert bar.doing.text() == "75 % …"
    called_off: list[Lane] = []
    session.called_off.connect(called_off.append)
    qtbot.mouseClick(bar.cancel, Qt.MouseButton.LeftButton)
    assert called_off == [ExportRequest.lane]
    assert session.state.notice.text == "Saving the weights was cancelled."
    session.dispatch(Busy(frozenset({ForwardRequest.lane})))
    assert not bar.cancel.isVisible()
    assert bar.doing.text() == "Running the model …"
    assert bar.progress.isVisible()


def test_work_that_ends_in_time_is_never_announced(bar, session, qtbot):
    session.dispatch(Busy(frozenset({ForwardRequest.lane})))
    session.dispatch(Busy(frozenset()))
    qtbot.wait(400)
    assert not bar.progress.isVisible()


def test_an_adapter_is_named_with_its_scale_and_whether_it_ran(bar, session):
    loaded = answers.loaded()
    adapter = AdapterInfo("tuned", "", "LORA", rank=8, alpha=16, scale=2)
    session.arrive(replace(loaded, info=replace(loaded.info, adapter=adapter)))
    session.arrive(answers.ran())
    assert "LoRA tuned, scale 2  ·" in facts(session.state)
    session.arrive(answers.changed(answers.ran(run=2), interventions=(Adapter(on=False),)))
    assert "LoRA tuned, scale 2: off  ·" in facts(session.state)


def test_every_included_checkpoint_says_what_it_is_and_what_to_look_at(bar, session):
    for card in shipped():
        place = bar.menu.findData(card.name)
        tip = bar.menu.itemData(place, Qt.ItemDataRole.ToolTipRole)
        assert tip == f"{card.summary} {card.look}"
        assert " Look at " in tip
        session.dispatch(OpenCheckpoint(card.name))
        assert bar.menu.toolTip().startswith(tip)
    session.dispatch(OpenCheckpoint("/somewhere/else"))
    assert bar.menu.toolTip().startswith("The model that is open")


def say(bar: TopBar, ticks: tuple[tuple[StatusKind, str], ...]) -> None:
    trust = bar.trust
    trust.ids.show()
    for chip, (kind, text) in zip((trust.mode, trust.ids, trust.rows, trust.equal), ticks, strict=True):
        chip.set_status(kind, text)
    QApplication.processEvents()


def over_each_other(bar: TopBar) -> list[tuple[str, ...]]:
    """Visible parts of the bar, each sign by itself, that lie on one another or beyond the bar."""
    chips = [bar.trust.mode, bar.trust.ids, bar.trust.rows, bar.trust.equal]
    parts: list[QWidget] = [bar.menu, bar.open_button, bar.examples.button, bar.devices]
    parts += [bar.facts, bar.doing, bar.progress, bar.cancel, *chips]
    places = []
    for part in parts:
        if part.isVisible():
            name = part.drawn if isinstance(part, StatusChip) else type(part).__name__
            places.append((name, QRect(part.mapTo(bar, QPoint(0, 0)), part.size())))
    beyond: list[tuple[str, ...]] = [(name,) for name, place in places if not bar.rect().contains(place)]
    return beyond + [(a, b) for (a, one), (b, other) in combinations(places, 2) if one.intersects(other)]


@pytest.mark.parametrize("ticks", TICKS)
def test_ticks_lie_on_nothing_else_where_the_bar_becomes_narrow(bar, session, qtbot, ticks):
    """As where a lesson opens beside it."""
    session.arrive(answers.loaded(), answers.ran())
    for wide, narrow in ((1280, 954), (1440, 1100), (1100, 960)):
        bar.resize(wide, 48)
        say(bar, ticks)
        assert over_each_other(bar) == [], wide
        bar.resize(narrow, 48)
        QApplication.processEvents()
        assert over_each_other(bar) == [], narrow
        session.dispatch(Busy(frozenset({ForwardRequest.lane})))
        say(bar, ticks)
        qtbot.waitUntil(bar.doing.isVisible)
        QApplication.processEvents()
        assert over_each_other(bar) == [], f"{narrow}, at work"
        session.dispatch(Busy(frozenset()))
        say(bar, ticks)
        assert over_each_other(bar) == [], f"{narrow}, after work"


@pytest.mark.full
def test_ticks_lie_on_nothing_else_where_a_lesson_opens(qapp):
    lesson = next(path for path in resource("lessons").glob("*.toml") if path.name.startswith("03"))
    with opened_window() as window:
        bar = window.top_bar
        for width in (1280, 1024):
            window.resize(width, 740)
            settle(window)
            whole = bar.width()
            window.lessons.begin(lesson)
            wait_until(lambda: window.lessons.guide is not None and window.lessons.guide.is_settled)
            settle(window)
            assert bar.width() < whole
            assert over_each_other(bar) == [], width
            for ticks in TICKS:
                say(bar, ticks)
                window.resize(width + 400, 740)  # dragged by its edge: nothing but the place of things changes
                QApplication.processEvents()
                window.resize(width, 740)
                QApplication.processEvents()
                assert over_each_other(bar) == [], f"{width}, {ticks}"
            window.lessons.end()
            settle(window)
            assert over_each_other(bar) == [], f"{width}, after it"
