"""The page of matrices, with pointer and keys."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QFontMetricsF
from PySide6.QtTest import QTest

from attention_explorer.look.colour_maps import diverging, sequential
from attention_explorer.look.theme import DARK, LIGHT
from attention_explorer.panels.flow.matrices import MatricesPage
from attention_explorer.panels.flow.matrices_picture import ABOVE, BANDS, WITH_NUMBERS, Layout, Room
from attention_explorer.panels.flow.matrices_scene import NAMES, Lit, Place
from tests.explorer.panels.flow.matrices_views import names, scene_of, shown
from tests.explorer.widgets.pointer import move_pointer

ROOM = Room(50, 40, 20, 60, 8)


@pytest.fixture
def page(qtbot) -> MatricesPage:
    made = MatricesPage()
    qtbot.addWidget(made)
    made.resize(1240, 620)
    made.show_view(shown(), *names(shown()))
    made.set_selection(13, 1)
    made.show()
    qtbot.waitExposed(made)
    return made


def middle(page: MatricesPage, place: Place) -> QPoint:
    return page.picture.cell_rect(place).center().toPoint()


@pytest.mark.parametrize("size", [(1240, 480), (760, 480), (430, 400), (2000, 1200)])
def test_rows_of_a_query_lie_at_one_height_and_nothing_overlaps(size) -> None:
    scene = scene_of(shown())
    layout = Layout.fitted(scene, ROOM, *size)
    rects = layout.rects
    assert set(rects) == set(NAMES)
    assert not any(a.intersects(b) for a, b in itertools.combinations(rects.values(), 2))
    for band in layout.bands:
        assert len({rects[name].top() for name in band}) == 1
    for below, above in ABOVE.items():
        assert (rects[below].left(), rects[below].width()) == (rects[above].left(), rects[above].width())
        assert rects[above].bottom() < rects[below].top()
    assert layout.size.width() <= size[0]
    for name in NAMES:
        rows, columns = scene.matrices[name].values.shape
        for place in (Place(name, 0, 0), Place(name, rows - 1, columns - 1)):
            cell = layout.cell(place).center()
            assert layout.place_at(cell.x(), cell.y()) == place


@pytest.mark.parametrize("width", [760, 1190, 1240, 1600])
def test_what_is_left_of_the_width_goes_between_the_matrices(width) -> None:
    """As far as a caption has use for it, and no further than the room."""
    room = replace(ROOM, caption_width=190)
    layout, close = (Layout.fitted(scene_of(shown()), each, width, 480) for each in (room, ROOM))
    assert layout.token == close.token
    assert layout.size.width() <= width
    gaps = max(len(band) for band in layout.bands) - 1
    left, narrowest = width - layout.size.width(), min(rect.width() for rect in layout.rects.values())
    assert layout.room.gap >= ROOM.gap
    assert left < gaps + 1 or 0 <= 190 - narrowest - layout.room.gap < 1


def test_where_the_page_is_scrolled_each_band_can_be_seen_whole() -> None:
    layout = Layout.fitted(scene_of(shown()), ROOM, 760, 360)
    assert layout.size.height() > 360
    assert layout.band_height <= 360 < Layout.at(scene_of(shown()), ROOM, layout.token + 1, layout.bands).band_height


@pytest.mark.parametrize("size", [(1240, 530), (760, 300), (680, 190)])
def test_of_many_tokens_all_matrices_fit_the_width(size) -> None:
    """64 of them: the page scrolls up and down, and never to the side as well."""
    layout = Layout.fitted(scene_of(shown(times=5)), ROOM, *size)
    assert layout.size.width() <= size[0]
    assert layout.token >= 3
    assert layout.band_height <= size[1] or layout.token <= 4


def test_a_wide_room_has_one_band_and_a_narrow_one_three() -> None:
    scene = scene_of(shown())
    assert Layout.fitted(scene, ROOM, 1900, 700).bands is BANDS[0]
    assert Layout.fitted(scene, ROOM, 430, 2000).bands is BANDS[2]


def test_numbers_stand_in_cells_of_40_pixels() -> None:
    scene = scene_of(shown())
    small, large = Layout.at(scene, ROOM, 39, BANDS[0]), Layout.at(scene, ROOM, 40, BANDS[0])
    assert not any(small.has_numbers(name) for name in NAMES)
    assert all(large.has_numbers(name) for name in NAMES)


def test_pointing_at_a_number_lights_what_made_it_and_says_the_sum(page) -> None:
    told = []
    page.hovered.connect(lambda query, key: told.append((query, key)))
    move_pointer(page.picture, middle(page, Place("output", 13, 5)))
    assert page.picture.lit == (Lit("weights", 13, None), Lit("v", None, 5))
    span = scene_of(shown()).matrices["output"].span
    assert page.what.text() == f"output of the head at “q13”, dimension 5   (colours {span})"
    assert page.sum.toPlainText() == scene_of(shown()).sum_of(Place("output", 13, 5))
    move_pointer(page.picture, middle(page, Place("weights", 13, 1)))
    assert told == [(13, -1), (13, 1)]
    move_pointer(page.picture, QPoint(1, 1))
    assert told[-1] == (-1, -1)
    assert page.picture.told == Place("raw", 13, 1)


def test_a_click_selects_the_cell(page) -> None:
    chosen = []
    page.cell_selected.connect(lambda query, key: chosen.append((query, key)))
    for place in (Place("weights", 7, 3), Place("q", 4, 9), Place("k", 2, 6), Place("output", 11, 0)):
        QTest.mouseClick(page.picture, Qt.MouseButton.LeftButton, pos=middle(page, place))
    assert chosen == [(7, 3), (4, 3), (4, 6), (11, 6)]
    page.set_selection(2, 2)
    assert chosen[-1] == (11, 6)
    assert page.picture.told in (Place("output", 2, 0), Place("output", 11, 0))


def test_keys_go_from_number_to_number_and_from_matrix_to_matrix(page) -> None:
    chosen = []
    page.cell_selected.connect(lambda query, key: chosen.append((query, key)))
    picture = page.picture
    QTest.keyClick(picture, Qt.Key.Key_Up)
    QTest.keyClick(picture, Qt.Key.Key_Right)
    assert chosen == [(12, 1), (12, 2)]
    for key, place in (
        (Qt.Key.Key_PageDown, Place("scaled", 12, 2)),
        (Qt.Key.Key_PageDown, Place("masked", 12, 2)),
        (Qt.Key.Key_PageDown, Place("weights", 12, 2)),
        (Qt.Key.Key_PageDown, Place("v", 2, 0)),
        (Qt.Key.Key_Right, Place("v", 2, 1)),
        (Qt.Key.Key_PageDown, Place("output", 12, 1)),
        (Qt.Key.Key_PageDown, Place("output", 12, 1)),
        (Qt.Key.Key_Down, Place("output", 13, 1)),
        (Qt.Key.Key_Down, Place("output", 13, 1)),  # the last row
    ):
        QTest.keyClick(picture, key)
        assert picture.told == place
    assert chosen[-1] == (13, 2)


def test_zoom(page) -> None:
    fitted = page.picture.token_size
    assert page.fit.isChecked()
    QTest.mouseClick(page.numbers, Qt.MouseButton.LeftButton)
    assert page.picture.token_size >= WITH_NUMBERS
    assert page.numbers.isChecked()
    assert not page.fit.isChecked()
    visible = page.picture.visibleRegion().boundingRect()
    assert visible.intersects(page.picture.cell_rect(Place("raw", 13, 1)).toRect())
    QTest.keyClick(page.picture, Qt.Key.Key_0)
    assert page.picture.token_size == fitted
    QTest.keyClick(page.picture, Qt.Key.Key_Plus)
    assert page.picture.token_size > fitted
    assert not page.numbers.isChecked()
    QTest.mouseClick(page.fit, Qt.MouseButton.LeftButton)
    assert page.picture.token_size == fitted


def test_places_are_counted_in_the_whole_text(page) -> None:
    view = shown(30, 20, times=8)
    page.show_view(view, *names(view))
    page.set_selection(40, 25)
    chosen = []
    page.cell_selected.connect(lambda query, key: chosen.append((query, key)))
    assert page.picture.told == Place("raw", 10, 5)
    QTest.mouseClick(page.picture, Qt.MouseButton.LeftButton, pos=middle(page, Place("weights", 63, 0)))
    assert chosen == [(93, 20)]
    assert "A window about the selection" in page.note.text()


def test_a_reason_takes_the_place_of_matrices(page) -> None:
    page.show_reason("There are no scores.")
    assert page.picture.empty_text == "There are no scores."
    assert page.picture.told is None
    assert not page.sum.isVisible()
    QTest.keyClick(page.picture, Qt.Key.Key_Down)
    page.show_view(shown(), *names(shown()))
    assert page.sum.isVisible()


@pytest.mark.parametrize("theme", [LIGHT, DARK])
@pytest.mark.parametrize("numbers", [False, True])
def test_each_cell_has_the_colour_of_its_number(page, theme, numbers) -> None:
    page.picture.set_theme(theme)
    if numbers:
        page.picture.show_numbers()
    image = page.picture.grab().toImage()
    scene = scene_of(shown())
    for name in NAMES:
        matrix, table = scene.matrices[name], sequential() if name == "weights" else diverging()
        for row, column in ((3, 1), (7, 2), (11, 5)):
            cell = page.picture.cell_rect(Place(name, row, column))
            aside = min(2.0, cell.height() / 2)  # from the number, and from the frame of the column before
            seen = image.pixelColor(int(cell.right() - aside), int(cell.top() + aside))
            share = (matrix.values[row, column] - matrix.low) / (matrix.high - matrix.low)
            wanted = table[round(float(share) * 255)].astype(int)
            assert np.abs(np.array(seen.getRgb()[:3]) - wanted).max() <= 12, (name, row, column)


def test_numbers_are_written_where_there_is_room(page) -> None:
    def inked() -> bool:
        rect = page.picture.cell_rect(Place("raw", 5, 3)).toRect().adjusted(3, 3, -3, -3)
        image = page.picture.grab(rect).toImage()
        return len({image.pixel(x, y) for x in range(image.width()) for y in range(image.height())}) > 1

    assert not inked()
    page.picture.show_numbers()
    assert inked()


@pytest.mark.parametrize("points", [10.0, 15.0, 20.0])
def test_a_number_fits_into_its_cell_whatever_the_size_of_the_text(page, points) -> None:
    font = page.font()
    font.setPointSizeF(points)
    page.setFont(font)
    QTest.mouseClick(page.numbers, Qt.MouseButton.LeftButton)
    assert page.picture.has_numbers
    assert page.numbers.isChecked()
    room = page.picture.cell_rect(Place("raw", 13, 1)).width()
    assert room >= max(WITH_NUMBERS, QFontMetricsF(page.picture._number_font()).horizontalAdvance("−58.6"))


def test_the_number_that_is_told_of_is_scrolled_into_sight(page, qtbot) -> None:
    page.resize(500, 420)
    qtbot.waitUntil(lambda: page.area.viewport().width() < 500)
    place = page.picture.cell_rect(Place("raw", 13, 1)).toRect()
    qtbot.waitUntil(lambda: page.picture.visibleRegion().contains(place))
