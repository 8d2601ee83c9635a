"""The atlas of heads as a person uses it."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QApplication, QScrollArea

from attention_explorer.look.colour_maps import sequential
from attention_explorer.look.theme import DARK, LIGHT
from attention_explorer.panels.all_heads.atlas import LARGEST, SMALLEST, AtlasLayout, AtlasPainter, HeadAtlas
from tests.explorer.widgets.pictures import rendered, rgb
from tests.explorer.widgets.pointer import move_pointer

LAYERS, HEADS = [str(layer) for layer in range(4)], [str(head) for head in range(6)]


def images() -> np.ndarray:
    values = np.zeros((4, 6, 8, 8), dtype=np.float32)
    values[2, 3] = 1.0
    values[1, 1] = np.nan
    return values


@pytest.fixture
def atlas(qtbot) -> HeadAtlas:
    widget = HeadAtlas()
    qtbot.addWidget(widget)
    widget.resize(420, 320)
    widget.set_images(images(), LAYERS, HEADS, 1.0)
    widget.show()
    return widget


def middle(atlas: HeadAtlas, row: int, column: int) -> QPoint:
    return atlas.cell_rect(row, column).center().toPoint()


def test_a_click_selects_a_head(atlas, qtbot):
    with qtbot.waitSignal(atlas.cell_selected) as caught:
        qtbot.mouseClick(atlas, Qt.MouseButton.LeftButton, pos=middle(atlas, 2, 3))
    assert caught.args == [2, 3]
    assert atlas.selection == (2, 3)


def test_a_click_between_heads_selects_none(atlas, qtbot):
    gap = atlas.cell_rect(1, 1).topLeft() - QPointF(2, 2)
    with qtbot.assertNotEmitted(atlas.cell_selected):
        qtbot.mouseClick(atlas, Qt.MouseButton.LeftButton, pos=gap.toPoint())


def test_arrows_move_the_selection_within_the_grid(atlas, qtbot):
    atlas.set_selection(0, 0)
    seen = []
    atlas.cell_selected.connect(lambda row, column: seen.append((row, column)))
    for key in (Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Down, Qt.Key.Key_Up, Qt.Key.Key_Up):
        qtbot.keyClick(atlas, key)
    assert seen == [(0, 1), (1, 1), (0, 1)]


def test_selecting_from_outside_emits_nothing(atlas, qtbot):
    with qtbot.assertNotEmitted(atlas.cell_selected):
        atlas.set_selection(3, 5)
    assert atlas.selection == (3, 5)
    atlas.set_selection(4, 0)
    assert atlas.selection == (-1, -1)


def test_hover_is_told_and_named(atlas, qtbot):
    seen = []
    atlas.hovered.connect(lambda row, column: seen.append((row, column)))
    atlas.set_badges({(1, 2): "prev"})
    before = (atlas.size(), atlas.cell_rect(1, 2), atlas.selection)
    move_pointer(atlas, middle(atlas, 1, 2))
    assert atlas.toolTip() == "layer 1, head 2: prev"
    QApplication.sendEvent(atlas, QEvent(QEvent.Type.Leave))
    assert seen == [(1, 2), (-1, -1)]
    assert before == (atlas.size(), atlas.cell_rect(1, 2), atlas.selection)


def test_thumbnails_have_the_colours_of_their_values(atlas):
    image, table = rendered(atlas), sequential()
    assert rgb(image.pixelColor(middle(atlas, 2, 3))) == tuple(table[255])
    assert rgb(image.pixelColor(middle(atlas, 0, 0))) == tuple(table[0])
    assert image.pixelColor(middle(atlas, 1, 1)).name() == LIGHT.surface_alt  # not computed


def test_one_range_for_all(atlas):
    values = np.zeros((4, 6, 8, 8), dtype=np.float32)
    values[0, 0], values[0, 1] = 0.5, 1.0
    atlas.set_images(values, LAYERS, HEADS, 1.0)
    image, table = rendered(atlas), sequential()
    halfway = np.array(rgb(image.pixelColor(middle(atlas, 0, 0))))
    assert np.abs(halfway - table[128].astype(int)).max() <= 4
    assert rgb(image.pixelColor(middle(atlas, 0, 1))) == tuple(table[255])


def test_a_single_strong_weight_stays_visible_in_a_small_thumbnail(atlas):
    values = np.zeros((4, 6, 300, 300), dtype=np.float32)
    values[1, 2, 217, 113] = 1.0
    atlas.set_images(values, LAYERS, HEADS, 1.0)
    thumb = rendered(atlas).copy(atlas.cell_rect(1, 2).toRect())
    brightest = tuple(sequential()[255])
    pixels = [rgb(thumb.pixelColor(x, y)) for x in range(thumb.width()) for y in range(thumb.height())]
    assert brightest in pixels


def test_the_column_of_means_can_be_pointed_at_and_not_selected(atlas, qtbot):
    before = atlas.cell_rect(0, 0).width()
    atlas.set_mean_column(np.ones((4, 8, 8), dtype=np.float32))
    assert atlas.cell_rect(0, 0).width() <= before
    where = middle(atlas, 1, 6)
    assert rgb(rendered(atlas).pixelColor(where)) == tuple(sequential()[255])
    with qtbot.assertNotEmitted(atlas.cell_selected), qtbot.assertNotEmitted(atlas.hovered):
        qtbot.mouseClick(atlas, Qt.MouseButton.LeftButton, pos=where)
        move_pointer(atlas, where + QPoint(1, 1))
    assert atlas.toolTip() == "layer 1, mean of its heads"
    atlas.set_mean_column(None)
    assert atlas.cell_rect(0, 0).width() == before


def test_names_of_the_axes(atlas):
    atlas.set_axis_names("site", "head")
    assert atlas.head_name(1, 0) == "site 1, head 0"


def test_badges_are_drawn_where_there_is_a_head(atlas):
    plain = rendered(atlas)
    atlas.set_badges({(9, 9): "nobody"})
    assert rendered(atlas) == plain
    atlas.set_badges({(1, 1): "prev"})
    with_badge = rendered(atlas)
    assert with_badge != plain
    thumb = atlas.cell_rect(1, 1).toRect()
    colours = {with_badge.pixelColor(x, thumb.bottom() - 3).name() for x in range(thumb.left(), thumb.right())}
    assert LIGHT.query in colours


@pytest.mark.parametrize("ratio", [1.0, 1.25, 1.5, 1.75, 2.0])
@pytest.mark.parametrize("width", [300, 331, 420])
def test_every_screen_resolution(atlas, ratio, width):
    atlas.resize(width, 320)
    atlas.set_mean_column(np.ones((4, 8, 8), dtype=np.float32))
    image = rendered(atlas, ratio)
    spot = atlas.cell_rect(2, 3).center() * ratio
    assert rgb(image.pixelColor(spot.toPoint())) == tuple(sequential()[255])


def test_nothing_to_show_is_a_sentence(atlas, qtbot):
    atlas.set_images(None, [], [], 1.0)
    blank = rendered(atlas)
    atlas.set_empty_text("This model gives no heads.")
    assert rendered(atlas) != blank
    with qtbot.assertNotEmitted(atlas.cell_selected):
        qtbot.keyClick(atlas, Qt.Key.Key_Right)
        qtbot.mouseClick(atlas, Qt.MouseButton.LeftButton, pos=QPoint(50, 50))


def test_labels_that_do_not_match_are_refused(atlas):
    with pytest.raises(ValueError, match="4 rows and 5 columns"):
        atlas.set_images(images(), LAYERS, HEADS[:5], 1.0)


def test_theme_changes_the_picture(atlas):
    light = rendered(atlas)
    atlas.set_theme(DARK)
    assert rendered(atlas) != light


def test_thumbnails_fill_the_room_between_their_limits():
    def thumb(rows: int, columns: int, width: float, height: float) -> int:
        return AtlasLayout.fit(rows, columns, False, 0, 0, width, height).thumb

    assert thumb(8, 8, 395, 900) == 45
    assert thumb(1, 1, 900, 900) == LARGEST
    assert thumb(48, 16, 300, 300) == SMALLEST


@pytest.fixture
def many_layers(qtbot) -> tuple[QScrollArea, HeadAtlas]:
    area, atlas = QScrollArea(), HeadAtlas()
    qtbot.addWidget(area)
    area.setWidget(atlas)
    area.setWidgetResizable(True)
    atlas.set_images(np.zeros((48, 6, 4, 4), np.float32), [str(layer) for layer in range(48)], HEADS, 1.0)
    area.resize(300, 300)
    area.show()
    QApplication.processEvents()
    return area, atlas


def test_many_layers_scroll_and_the_keyboard_is_followed(many_layers, qtbot):
    area, atlas = many_layers
    assert atlas.height() > area.viewport().height()
    atlas.set_selection(0, 0)
    atlas.set_hover(47, 0)
    assert area.verticalScrollBar().value() == 0
    for _ in range(30):
        qtbot.keyClick(atlas, Qt.Key.Key_Down)
    shown = atlas.visibleRegion().boundingRect()
    assert shown.contains(middle(atlas, 30, 0))


def test_labels_and_caption_stay_in_view_when_scrolled(many_layers):
    area, atlas = many_layers
    atlas.set_selection(20, 3)
    area.verticalScrollBar().setValue(300)
    QApplication.processEvents()
    shown = atlas.visibleRegion().boundingRect()
    image = atlas.grab(shown).toImage()
    head = image.copy(0, 0, image.width(), round(atlas.cell_rect(0, 0).top()) - 4)
    accents = {head.pixelColor(x, y).name() for x in range(head.width()) for y in range(head.height())}
    assert LIGHT.query in accents  # the label of the selected column


def test_masked_cells_are_hatched_and_not_coloured_as_0(atlas):
    values, masked = np.zeros((4, 6, 8, 8), dtype=np.float32), np.zeros((4, 1, 8, 8), bool)
    masked[0] = np.triu(np.ones((8, 8), bool), 1)
    values[0, 2] = np.nan  # not computed yet
    atlas.resize(900, 700)
    atlas.set_images(values, LAYERS, HEADS, 1.0, masked=masked)
    image, lowest = rendered(atlas), tuple(sequential()[0])
    thumb = atlas.cell_rect(0, 0)
    area = image.copy(
        QRectF(thumb.center().x() + 4, thumb.top() + 2, thumb.width() / 2 - 6, thumb.height() / 2 - 6).toRect()
    )
    colours = {area.pixelColor(x, y).name() for x in range(area.width()) for y in range(area.height())}
    assert LIGHT.surface_alt in colours
    assert len(colours) > 1  # lines
    assert not any(rgb(QColor(colour)) == lowest for colour in colours)
    below = thumb.center() + QPointF(-thumb.width() / 4, thumb.height() / 4)
    assert rgb(image.pixelColor(below.toPoint())) == lowest  # a weight of 0 that may be seen
    waiting = image.copy(atlas.cell_rect(0, 2).toRect().adjusted(2, 2, -2, -2))
    assert {waiting.pixelColor(x, x).name() for x in range(waiting.width())} == {LIGHT.surface_alt}


def test_the_legend_names_the_hatching_where_there_is_some(atlas, monkeypatch):
    said = []
    monkeypatch.setattr(AtlasPainter, "draw_caption", lambda _self, _painter, *what: said.append(what[-1]))
    rendered(atlas)
    masked = np.zeros((4, 1, 8, 8), bool)
    masked[3, 0, 0, 1:] = True
    atlas.set_images(np.zeros((4, 6, 8, 8), np.float32), LAYERS, HEADS, 1.0, masked=masked)
    rendered(atlas)
    assert said[0] is False
    assert said[-1] is True
