"""Ink, spotlight and red dot as painted: where they are, readable on every surface of both themes."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from PySide6.QtCore import QPointF, QRect, QRectF, QSize
from PySide6.QtGui import QColor, QImage, QPainter

from attention_explorer.look.theme import DARK, LIGHT, Theme, contrast
from attention_explorer.window.audience.audience import other_screen
from attention_explorer.window.audience.audience_window import fitted
from attention_explorer.window.audience.marks import INK, Marks, dot_radius, paint, path_of, placed, share, spot_radius
from attention_explorer.window.audience.teacher_notes import spelled

AREA = QRectF(40, 20, 800, 500)


def painted(marks: Marks, theme: Theme, background: str) -> QImage:
    image = QImage(900, 560, QImage.Format.Format_RGB32)
    image.fill(QColor(background))
    painter = QPainter(image)
    paint(painter, marks, AREA, theme)
    painter.end()
    return image


def at(image: QImage, where: QPointF) -> str:
    return image.pixelColor(where.toPoint()).name()


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)
def test_ink_is_readable_on_every_surface(theme: Theme) -> None:
    for surface in (theme.window, theme.surface, theme.surface_alt, theme.surface_hover):
        assert contrast(INK[theme.is_dark], surface) >= 4.5


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)
@pytest.mark.parametrize("background", ["#440154", "#fde725", "#808080"])
def test_a_rim_keeps_ink_readable_on_the_colours_of_a_map(theme: Theme, background: str) -> None:
    line = ((0.1, 0.5), (0.5, 0.5), (0.9, 0.5))
    image = painted(Marks(strokes=(line,)), theme, background)
    middle = placed((0.5, 0.5), AREA)
    column = [at(image, middle + QPointF(0, by)) for by in range(-12, 13)]
    assert column[12] == INK[theme.is_dark]
    assert theme.surface in column[:12]
    assert theme.surface in column[13:]
    assert (column[0], column[-1]) == (background, background)


def test_the_red_dot_is_where_the_mouse_is() -> None:
    image = painted(Marks(tool="laser", pointer=(0.25, 0.75)), LIGHT, "#ffffff")
    centre = placed((0.25, 0.75), AREA)
    assert centre == QPointF(240, 395)
    assert at(image, centre) == INK[False]
    assert at(image, centre + QPointF(2 * dot_radius(AREA), 0)) == "#ffffff"


def test_the_spotlight_dims_all_but_a_circle() -> None:
    image = painted(Marks(tool="spotlight", pointer=(0.5, 0.5)), LIGHT, "#ffffff")
    centre, reach = placed((0.5, 0.5), AREA), spot_radius(AREA)
    assert at(image, centre) == at(image, centre + QPointF(0.95 * reach, 0)) == "#ffffff"
    assert image.pixelColor((centre + QPointF(1.1 * reach, 0)).toPoint()).lightness() < 100
    assert at(image, QPointF(20, 10)) == "#ffffff", "outside of the panels nothing is dimmed"


def test_a_black_screen_is_black_whatever_else_is_drawn() -> None:
    image = painted(Marks(tool="laser", pointer=(0.5, 0.5), is_black=True), LIGHT, "#ffffff")
    assert {at(image, placed((x / 9, y / 9), AREA)) for x in range(1, 9) for y in range(1, 9)} == {"#000000"}


def test_a_stroke_goes_smoothly_from_its_first_point_to_its_last() -> None:
    points = [QPointF(0, 0), QPointF(10, 0), QPointF(20, 10), QPointF(30, 30)]
    path = path_of(points)
    assert (path.pointAtPercent(0), path.currentPosition()) == (points[0], points[-1])
    angles = [path.angleAtPercent(share_of / 50) for share_of in range(1, 50)]
    turns = [abs((after - before + 180) % 360 - 180) for before, after in pairwise(angles)]
    assert max(turns) < 15, "no corner, where the straight lines between have one of 45°"


def test_a_dab_is_seen() -> None:
    image = painted(Marks(strokes=(((0.5, 0.5),),)), LIGHT, "#ffffff")
    assert at(image, placed((0.5, 0.5), AREA)) == INK[False]


@pytest.mark.parametrize("point", [(0.0, 0.0), (0.3, 0.8), (1.0, 1.0)])
def test_a_place_is_found_again_in_an_area_of_another_size(point: tuple[float, float]) -> None:
    assert share(placed(point, AREA), AREA) == pytest.approx(point)
    assert share(QPointF(39, 30), AREA) is None


def test_what_is_mirrored_keeps_its_form_in_the_middle() -> None:
    assert fitted(QSize(400, 300), QRect(0, 0, 1600, 900)) == QRectF(200, 0, 1200, 900)
    assert fitted(QSize(1600, 400), QRect(0, 0, 800, 600)) == QRectF(0, 200, 800, 200)


def test_the_clock() -> None:
    assert [spelled(n) for n in (0, 65, 600, 3599, 3600, 4025)] == [
        "0:00",
        "1:05",
        "10:00",
        "59:59",
        "1:00:00",
        "1:07:05",
    ]


def screen(x: int) -> Any:
    return SimpleNamespace(geometry=lambda: QRect(x, 0, 1280, 800))


def test_the_audience_gets_the_other_screen() -> None:
    own, other, mirrored = screen(0), screen(1280), screen(0)
    assert other_screen(own, [own, other]) is other
    assert other_screen(own, [own]) is None
    assert other_screen(own, [own, mirrored]) is None, "both show the same"
