"""The audience's window mirrors what is presented, and the presenter's tools are seen in both, by keys and mouse."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
import segno
from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, QRect, QRectF, Qt
from PySide6.QtGui import QColor, QGuiApplication, QImage, QPaintEvent, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from attention_explorer.panels.head.panel import HeadMapPanel
from attention_explorer.session.intents import SelectHead, Show
from attention_explorer.session.state import Notice
from attention_explorer.widgets.screens import fill_screen
from attention_explorer.window.audience import tools as toolbar
from attention_explorer.window.audience.audience_window import AudienceWindow
from attention_explorer.window.audience.marks import INK, placed
from attention_explorer.window.audience.stage import area_of, parts_of
from attention_explorer.window.lesson.guide import LessonGuide
from attention_explorer.window.short_texts import QUIET
from attention_explorer.window.window import MainWindow
from attention_models.protocol.values import SiteRef
from tests.explorer.lessons import BEGINNING
from tests.explorer.real_window import click_cell, key, panel_of, press, settle, wait_until
from tests.explorer.window.audience.seen import colour, middle, mirrored, picture, point_at, rest

pytestmark = pytest.mark.x

LESSON = f"""{BEGINNING}
[[step]]
title = "Three roles"
say = "The end."
"""


def presents(window: MainWindow) -> bool:
    return window.presenter.is_on


def in_hand(window: MainWindow) -> str:
    return window.presenter.tools.marks.tool


# the picture


def test_it_opens_beside_the_window_which_presents(presenting: MainWindow, audience: AudienceWindow) -> None:
    window = presenting
    assert audience.isVisible()
    assert window.presenter.is_on
    assert window.menus["audience"].isChecked()
    key(window, Qt.Key.Key_F5, Qt.KeyboardModifier.ControlModifier)
    assert window.audience.window is None
    assert not window.menus["audience"].isChecked()
    assert window.presenter.is_on, "it goes on in this window"


@pytest.mark.short("light")
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_cell_has_the_colour_that_the_teacher_sees(
    presenting: MainWindow, audience: AudienceWindow, theme: str
) -> None:
    window = presenting
    window.set_theme_name(theme)  # type: ignore[arg-type]
    window.session.dispatch(SelectHead(SiteRef("decoder", 3), 2))
    rest(window)
    own, theirs = picture(window), picture(audience)
    seen = {
        (query, at): (
            colour(own, middle(window, query, at)),
            colour(theirs, mirrored(window, middle(window, query, at))),
        )
        for query in range(14)
        for at in range(query)
        for where in (middle(window, query, at),)
    }
    window.set_theme_name("light")
    assert [cell for cell, (mine, other) in seen.items() if mine != other] == []
    assert len({mine for mine, _ in seen.values()}) > 10, "a map of one colour would show nothing"


def test_it_is_painted_for_its_own_size(presenting: MainWindow, audience: AudienceWindow) -> None:
    window = presenting
    """Larger, it is sharper than a picture of the teacher's window: the edge of a cell takes one pixel, not several."""
    audience.resize(2560, 1440)
    rest(window)
    image = picture(audience)
    edge = mirrored(window, middle(window, 1, 0))
    row = [image.pixelColor(x, edge.y()).lightness() for x in range(edge.x(), edge.x() + 120)]
    steps = [abs(after - before) for before, after in pairwise(row)]
    jump = max(steps)
    assert jump > 60, "from the brightest cell to a dark one"
    around = steps[max(0, steps.index(jump) - 3) : steps.index(jump) + 4]
    assert sum(step > 0.15 * jump for step in around) <= 2


def test_it_follows_the_teacher_and_not_while_frozen(presenting: MainWindow, audience: AudienceWindow) -> None:
    window = presenting
    before = picture(audience)
    click_cell(window, 12, 4)
    rest(window)
    after = picture(audience)
    assert after != before
    key(window, Qt.Key.Key_F)
    click_cell(window, 9, 2)
    rest(window)
    assert picture(audience) == after
    assert window.audience.notes is not None
    assert window.audience.notes.state.text().startswith("Frozen")
    key(window, Qt.Key.Key_F)
    rest(window)
    assert picture(audience) != after


def test_a_frozen_picture_is_of_the_moment_it_was_frozen_in(presenting: MainWindow, audience: AudienceWindow) -> None:
    window = presenting
    click_cell(window, 12, 4)
    settle(window)
    own = middle(window, 12, 4)
    key(window, Qt.Key.Key_F)  # before the next picture is due
    frozen = picture(audience)
    key(window, Qt.Key.Key_F)
    rest(window)
    assert colour(picture(audience), mirrored(window, own)) == colour(frozen, mirrored(window, own))
    assert frozen == picture(audience)


def test_the_next_panel_is_mirrored_and_one_that_is_not_for_the_audience_is_not(
    presenting: MainWindow, audience: AudienceWindow
) -> None:
    window = presenting
    window.audience.set_shown("next", False)
    shown = picture(audience)
    window.dock_host.go_to("next")
    rest(window)
    assert window.contents.one_panel.alone == "next"
    assert picture(audience) == shown, "the audience keeps what it had"
    window.audience.set_shown("next", True)
    rest(window)
    assert picture(audience) != shown


def test_the_menu_says_which_panels_are_for_the_audience(window: MainWindow) -> None:
    menu = next(
        menu for menu in window.findChildren(type(window.recent_menu)) if menu.title() == "What the audience &sees"
    )
    menu.aboutToShow.emit()
    action = next(action for action in menu.actions() if action.text() == "Lookup")
    assert action.isChecked()
    action.trigger()
    assert window.audience.left_out == {"lookup"}
    assert window.settings.not_for_audience == ["lookup"]
    action.trigger()
    assert window.settings.not_for_audience == []


def test_no_notice_dialog_or_tooltip_is_a_part_of_it(presenting: MainWindow, audience: AudienceWindow) -> None:
    window = presenting
    window.session.dispatch(Show(Notice("info", "The session is saved: /home/somebody/class.attn.")))
    rest(window)
    assert window.notice_bar.isVisible()
    widgets = [part.widget for part in window.audience._parts()]
    assert not any(widget.isAncestorOf(window.notice_bar) or widget is window.notice_bar for widget in widgets)
    window.session.dispatch(Show(None))


def test_a_projector_of_another_scale_gets_another_picture(presenting: MainWindow, audience: AudienceWindow) -> None:
    presenting.audience._picture.stop()
    QApplication.sendEvent(audience, QEvent(QEvent.Type.DevicePixelRatioChange))
    assert presenting.audience._picture.isActive()


def test_an_unplugged_projector_leaves_the_teacher_s_window_in_sight(
    presenting: MainWindow, audience: AudienceWindow
) -> None:
    fill_screen(audience, True)
    wait_until(audience.isFullScreen)
    QGuiApplication.instance().screenRemoved.emit(presenting.screen())  # type: ignore[union-attr]
    wait_until(lambda: not audience.isFullScreen())
    assert audience.size() == audience.sizeHint()


def test_letters_are_as_high_as_the_last_row_needs(presenting: MainWindow, audience: AudienceWindow) -> None:
    window = presenting
    from PySide6.QtGui import QFontMetricsF

    area = area_of(window.audience._parts())
    scale = min(audience.width() / area.width(), audience.height() / area.height())
    for widget in (panel_of(window, HeadMapPanel).map, window.input.strip):
        assert QFontMetricsF(widget.font()).capHeight() * scale >= 0.02 * audience.height()


# a lesson


def begun(window: MainWindow, folder: Path) -> LessonGuide:
    path = folder / "trial.toml"
    path.write_text(LESSON)
    window.lessons.begin(path)
    wait_until(lambda: window.lessons.guide is not None and window.lessons.guide.is_settled and window.is_settled())
    assert window.lessons.guide is not None
    return window.lessons.guide


def test_the_class_sees_the_question_and_the_teacher_the_notes(
    presenting: MainWindow, audience: AudienceWindow, tmp_path: Path
) -> None:
    window = presenting
    guide, notes = begun(window, tmp_path), window.audience.notes
    rest(window)
    assert notes is not None
    column = guide.column
    assert notes.notes.toPlainText() == "Wait for a hand to go up."
    assert notes.next.text() == "Next: Three roles"
    shown = [part.widget for part in window.audience._parts()]
    assert column.text in shown
    assert column.question in shown
    assert not any(widget.isAncestorOf(column.notes) or widget is column.notes for widget in shown)
    assert not column.notes_button.isVisible()
    before = picture(audience)
    column.notes_button.setChecked(True)
    rest(window)
    assert picture(audience) == before
    column.notes_button.setChecked(False)
    window.audience.close()
    assert column.notes_button.isVisible()


def test_an_answer_is_covered_for_both_until_it_is_revealed(
    presenting: MainWindow, audience: AudienceWindow, tmp_path: Path
) -> None:
    window = presenting
    guide = begun(window, tmp_path)
    rest(window)

    def row() -> list[str]:
        image = picture(audience)
        return [colour(image, mirrored(window, middle(window, 13, at))) for at in range(14)]

    covered = row()
    surfaces = {window.theme.surface, window.theme.hatch}
    assert sum(QColor(each).saturation() > 60 for each in covered) == 0, f"nothing of a map, but {surfaces}"
    guide.column.question.take_token("Tom")
    QTest.mouseClick(guide.column.question.reveal, Qt.MouseButton.LeftButton)
    rest(window)
    assert sum(QColor(each).saturation() > 60 for each in row()) > 10
    own = picture(window)
    assert colour(own, middle(window, 13, 3)) == row()[3]


def test_all_of_a_long_question_is_seen_however_little_the_teacher_sees_of_it(
    presenting: MainWindow, audience: AudienceWindow, tmp_path: Path
) -> None:
    window = presenting
    guide = begun(window, tmp_path)
    window.resize(1280, 620)
    rest(window)
    part = next(part for part in window.audience._parts() if part.widget is guide.column.question)
    assert part.seen == guide.column.question.rect()
    assert area_of(window.audience._parts()).contains(part.place)


# tools


def test_the_laser_is_where_the_mouse_is_in_both(presenting: MainWindow, audience: AudienceWindow) -> None:
    window = presenting
    key(window, Qt.Key.Key_L)
    where = middle(window, 9, 4)
    point_at(window, where)
    wait_until(lambda: colour(picture(window), where) == INK[False])
    wait_until(lambda: colour(picture(audience), mirrored(window, where)) == INK[False])
    other = middle(window, 3, 1)
    point_at(window, other)
    wait_until(lambda: colour(picture(audience), mirrored(window, where)) != INK[False])
    key(window, Qt.Key.Key_L)
    assert colour(picture(audience), mirrored(window, other)) != INK[False]


class Painted(QObject):
    """Notes which parts of a widget are painted."""

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget)
        self.parts: list[QRect] = []
        widget.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QPaintEvent):
            self.parts.append(event.region().boundingRect())
        return False


def test_what_the_laser_passes_is_painted_and_nothing_else(window: MainWindow) -> None:
    window.presenter.begin()
    rest(window)
    key(window, Qt.Key.Key_L)
    start = middle(window, 9, 4)
    for step in (0, 1):
        point_at(window, start + QPoint(step, 0))
        rest(window)
    painted = Painted(window.presenter.tools.overlay)
    for step in range(2, 6):
        point_at(window, start + QPoint(step, 0))  # within a cell: the map points at nothing else
    assert len(painted.parts) >= 4
    assert max(max(part.width(), part.height()) for part in painted.parts) < 80, painted.parts


def test_a_click_goes_through_the_laser_and_the_spotlight(presenting: MainWindow, audience: AudienceWindow) -> None:
    window = presenting
    for tool in (Qt.Key.Key_L, Qt.Key.Key_O):
        window.session.dispatch(SelectHead(SiteRef("decoder", 5), 5))
        key(window, tool)
        where = middle(window, 8, 5)
        QTest.mouseClick(window.windowHandle(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, where)
        settle(window)
        assert (window.session.state.selection.query, window.session.state.selection.key) == (8, 5)
        key(window, tool)


def test_the_spotlight_dims_the_rest(presenting: MainWindow, audience: AudienceWindow) -> None:
    window = presenting
    inside, outside = middle(window, 2, 0), middle(window, 13, 0)
    before = picture(audience)
    key(window, Qt.Key.Key_O)
    point_at(window, inside)
    after = picture(audience)
    assert colour(after, mirrored(window, inside)) == colour(before, mirrored(window, inside))
    here = mirrored(window, outside)
    assert after.pixelColor(here).lightness() < 0.5 * before.pixelColor(here).lightness()


def draw(window: MainWindow, *points: QPoint) -> None:
    handle, left = window.windowHandle(), Qt.MouseButton.LeftButton
    QTest.mousePress(handle, left, Qt.KeyboardModifier.NoModifier, points[0])
    for point in points[1:]:
        QTest.mouseMove(handle, point)
    QTest.mouseRelease(handle, left, Qt.KeyboardModifier.NoModifier, points[-1])
    QTest.qWait(50)


def is_inked(image: QImage, where: QPoint) -> bool:
    """Whether ink covers one of the pixels about a point: it may lie between two."""
    return any(colour(image, where + QPoint(x, y)) == INK[False] for x in (-1, 0, 1) for y in (-1, 0, 1))


def test_ink_is_of_one_panel_and_goes_with_clear(presenting: MainWindow, audience: AudienceWindow) -> None:
    window = presenting
    selection = window.session.state.selection
    key(window, Qt.Key.Key_D)
    start, end = middle(window, 10, 1), middle(window, 4, 3)
    between = (start + end) / 2
    draw(window, start, between, end)
    assert window.session.state.selection == selection, "the pen chooses nothing"
    for image, where in ((picture(window), between), (picture(audience), mirrored(window, between))):
        assert is_inked(image, where)
    key(window, Qt.Key.Key_Tab)
    rest(window)
    assert window.presenter.tools.marks.strokes == ()
    key(window, Qt.Key.Key_Backtab, Qt.KeyboardModifier.ShiftModifier)
    rest(window)
    assert is_inked(picture(audience), mirrored(window, between))
    key(window, Qt.Key.Key_E)
    rest(window)
    assert not is_inked(picture(audience), mirrored(window, between))


def test_ink_stays_at_its_place_in_another_size(presenting: MainWindow, audience: AudienceWindow) -> None:
    window = presenting
    key(window, Qt.Key.Key_D)
    draw(window, middle(window, 9, 2), middle(window, 9, 3))
    audience.resize(800, 600)
    rest(window)
    area = QRectF(area_of(window.audience._parts()))
    where = placed(window.presenter.tools.marks.strokes[0][0], area).toPoint()
    assert is_inked(picture(audience), mirrored(window, where))


@pytest.mark.parametrize("remote", [Qt.Key.Key_Period, Qt.Key.Key_B])
def test_a_remote_s_black_screen_is_the_audience_s(
    presenting: MainWindow, audience: AudienceWindow, remote: Qt.Key
) -> None:
    window = presenting
    cell = QRect(middle(window, 2, 0) - QPoint(9, 9), middle(window, 2, 0) + QPoint(9, 9))
    before, own = picture(audience), picture(window).copy(cell)
    key(window, remote)
    black = picture(audience)
    assert {black.pixel(x, y) & 0xFFFFFF for x in range(0, 1280, 40) for y in range(0, 720, 40)} == {0}
    assert picture(window).copy(cell) == own, "the teacher goes on"
    assert any(own.pixel(x, y) & 0xFFFFFF for x in range(own.width()) for y in range(own.height()))
    press(audience, remote)  # the keyboard may be in either window
    assert picture(audience) == before


def test_without_an_audience_the_window_itself_is_black(window: MainWindow) -> None:
    key(window, Qt.Key.Key_F5)
    rest(window)
    key(window, Qt.Key.Key_B)
    black = picture(window)
    points = [(x, y) for x in range(10, window.width(), 60) for y in range(10, window.height(), 60)]
    assert {black.pixel(x, y) & 0xFFFFFF for x, y in points} == {0}
    key(window, Qt.Key.Key_Escape)
    assert window.presenter.is_on
    assert colour(picture(window), middle(window, 2, 0)) != "#000000"


@pytest.mark.full
def test_escape_ends_the_tool_first_and_then_the_presenter(presenting: MainWindow, audience: AudienceWindow) -> None:
    window = presenting
    for tool in (Qt.Key.Key_D, Qt.Key.Key_O, Qt.Key.Key_L):
        key(window, tool)
        assert in_hand(window)
        key(window, Qt.Key.Key_Escape)
        assert not in_hand(window)
        assert presents(window)
    press(audience, Qt.Key.Key_Escape)
    assert not presents(window)
    assert audience.isVisible()
    press(audience, Qt.Key.Key_F5)
    assert presents(window)
    for _ in range(2):
        press(audience, Qt.Key.Key_Escape)
    assert not window.audience.is_open


def test_what_is_frozen_without_an_audience_is_what_the_mouse_points_at(window: MainWindow) -> None:
    key(window, Qt.Key.Key_F5)
    rest(window)
    point_at(window, middle(window, 9, 4))
    pointed = window.hover.pointed
    assert (pointed.query, pointed.key) == (9, 4)
    key(window, Qt.Key.Key_F)
    point_at(window, middle(window, 5, 2))
    assert window.hover.pointed == pointed
    key(window, Qt.Key.Key_Escape)
    QTest.qWait(300)
    point_at(window, QPoint(3, 3))
    assert window.hover.pointed != pointed, "it follows again once the presenter has ended"


def test_the_buttons_come_with_the_mouse_and_go_by_themselves(presenting: MainWindow, audience: AudienceWindow) -> None:
    window = presenting
    bar = window.presenter.tools.toolbar
    bar._goes.setInterval(500)
    point_at(window, middle(window, 2, 0))
    wait_until(lambda: not bar.isVisible())
    area = area_of(window.audience._parts())
    point_at(window, QPoint(area.center().x(), window.height() - 5))
    wait_until(bar.isVisible)
    wait_until(lambda: not bar.isVisible())
    bar.come(area)
    QTest.mouseClick(bar.buttons["laser"], Qt.MouseButton.LeftButton)
    assert window.presenter.tools.marks.tool == "laser"
    assert bar.buttons["laser"].isChecked()
    bar._goes.setInterval(toolbar.STAYS)
    assert not any(isinstance(part.widget, toolbar.Toolbar) for part in window.audience._parts())


@pytest.mark.full
@pytest.mark.parametrize("by", ["key", "wheel", "button"])
def test_text_is_made_larger_while_one_presents_and_is_as_before_after(window: MainWindow, by: str) -> None:
    own, scale = QApplication.font().pointSizeF(), window.settings.text_scale
    key(window, Qt.Key.Key_F5)
    QTest.qWait(300)
    before = QApplication.font().pointSizeF()
    if by == "key":
        key(window, Qt.Key.Key_Plus, Qt.KeyboardModifier.ControlModifier)
    elif by == "button":
        QTest.mouseClick(window.presenter.tools.toolbar.buttons["larger"], Qt.MouseButton.LeftButton)
    else:
        heat_map = panel_of(window, HeadMapPanel).map
        view = heat_map.view
        where = QPointF(heat_map.rect().center())
        event = QWheelEvent(
            where,
            heat_map.mapToGlobal(where),
            QPoint(),
            QPoint(0, 120),
            Qt.MouseButton.NoButton,
            Qt.KeyboardModifier.ControlModifier,
            Qt.ScrollPhase.NoScrollPhase,
            False,
        )
        QApplication.sendEvent(heat_map, event)
        assert heat_map.view == view
    QTest.qWait(100)
    assert QApplication.font().pointSizeF() == pytest.approx(1.125 * before, rel=0.04)
    key(window, Qt.Key.Key_0, Qt.KeyboardModifier.ControlModifier)
    QTest.qWait(100)
    assert QApplication.font().pointSizeF() == pytest.approx(before, rel=0.04)
    key(window, Qt.Key.Key_F5)
    QTest.qWait(300)
    assert QApplication.font().pointSizeF() == own
    assert window.settings.text_scale == scale


def test_a_remote_walks_through_the_states_that_were_kept(presenting: MainWindow, audience: AudienceWindow) -> None:
    window = presenting
    names = window.dock_host.open_panels()
    key(window, Qt.Key.Key_PageDown)
    assert window.contents.one_panel.alone == names[names.index("map") + 1], "without any, through the panels"
    key(window, Qt.Key.Key_PageUp)
    assert window.contents.one_panel.alone == "map"
    window.sessions.keep("One")
    click_cell(window, 9, 3)
    settle(window)
    window.sessions.keep("Two")
    key(window, Qt.Key.Key_PageUp)
    wait_until(lambda: window.session.state.selection.query == 13 and window.is_settled())
    assert window.audience.notes is not None
    assert window.audience.notes.notes.toPlainText() == "No notes in this session.", "and none of a step: there is none"
    assert window.audience.notes.next.text() == "Next: Two"
    press(audience, Qt.Key.Key_PageDown)
    wait_until(lambda: window.session.state.selection.query == 9)


def test_the_class_sees_the_qr_code_as_large_as_its_window(presenting: MainWindow, audience: AudienceWindow) -> None:
    window = presenting
    window.menus["show_code"].trigger()
    rest(window)
    sheet = window.short_texts.sheet
    assert [part.widget for part in window.audience._parts()] == [sheet]
    code = sheet.code_rect()
    corner = sheet.mapTo(window, code.topLeft())
    assert colour(picture(audience), mirrored(window, corner + QPoint(3, 3))) == "#ffffff"
    high = mirrored(window, corner + QPoint(0, code.height())).y() - mirrored(window, corner).y()
    assert high > 0.6 * audience.height()
    size = code.width() / int(segno.make_qr(sheet.text, error="l").symbol_size(border=QUIET)[0])
    first, last = (
        mirrored(window, corner + (QPointF(x, QUIET + 0.5) * size).toPoint()) for x in (QUIET + 0.5, QUIET + 6.5)
    )
    seen = picture(audience)
    edge = {colour(seen, QPoint(x, first.y())) for x in range(first.x(), last.x())}
    assert edge == {"#000000"}, "no light between the modules of a finder, whatever the scale"
    press(sheet, Qt.Key.Key_Escape)
    assert window.presenter.is_on
    assert not sheet.isVisible()
    rest(window)
    assert parts_of(window.contents, (), None)
