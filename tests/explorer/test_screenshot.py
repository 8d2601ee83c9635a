"""What is in the picture: the colours of the weights, hatching, frames, text; never only that there is one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QRect
from PySide6.QtGui import QColor, QImage
from PySide6.QtWidgets import QApplication, QWidget

import attention_models as models
from attention_explorer.look import theme as themes
from attention_explorer.look.colour_maps import sequential
from attention_explorer.look.theme import DARK, LIGHT, Theme
from attention_explorer.panels.all_heads.panel import HeadAtlasPanel
from attention_explorer.panels.head.panel import HeadMapPanel
from attention_explorer.panels.next_token.panel import NextTokenPanel
from attention_explorer.session.intents import Show
from attention_explorer.session.state import Notice
from attention_explorer.window.window import MainWindow
from attention_models.protocol.atlas import AtlasView
from tests.explorer.real_window import EXAMPLE, back_to_start, opened_window, panel_of
from tests.explorer.widgets.pictures import rgb

pytestmark = pytest.mark.x

WIDTH, HEIGHT = 1280, 800


def pixels_of(image: QImage) -> np.ndarray:
    """(height, width, 3) uint8"""
    image = image.convertToFormat(QImage.Format.Format_RGB888)
    lines = np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), image.bytesPerLine())
    return lines[:, : 3 * image.width()].reshape(image.height(), image.width(), 3).copy()  # the image goes


def taken(tmp_path_factory: pytest.TempPathFactory, theme: str) -> np.ndarray:
    """The picture that the command takes, in a process of its own."""
    path = tmp_path_factory.mktemp(theme) / "window.png"
    options = ["--png", str(path), "--size", f"{WIDTH}x{HEIGHT}", "--theme", theme]
    program = f"from attention_explorer.app import main; raise SystemExit(main({options!r}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return pixels_of(QImage(str(path)))


@pytest.fixture(scope="module")
def pictures(tmp_path_factory) -> Callable[[str], np.ndarray]:
    """Of a theme."""
    return cache(partial(taken, tmp_path_factory))


@pytest.fixture(scope="module")
def weights() -> np.ndarray:
    """(queries, keys) of layer 5, head 5, computed without any window."""
    return models.run(models.open_checkpoint("story-gpt"), EXAMPLE).weights(("decoder", 5), 5)


def expected_colour(weight: float, highest: float) -> np.ndarray:
    """The colours that a weight may have: those of the table within one step of it. (3, 3)"""
    step = round(255 * weight / highest)
    steps = np.clip([step - 1, step, step + 1], 0, 255)
    colours: np.ndarray = sequential("viridis").astype(int)[steps]
    return colours


def count(pixels: np.ndarray, colour: np.ndarray | tuple[int, ...], tolerance: int = 0) -> int:
    """How many pixels have a colour."""
    if tolerance == 0:
        return int((pixels == np.array(colour, dtype=np.uint8)).all(axis=-1).sum())
    return int((np.abs(pixels.astype(int) - np.array(colour)).max(axis=-1) <= tolerance).sum())


# --------------------------------------------------------------------------- as the command takes it


@pytest.mark.full
@pytest.mark.parametrize(("name", "theme"), [("light", LIGHT), ("dark", DARK)])
def test_surfaces_accents_and_text_are_the_themes(pictures, name, theme):
    pixels = pictures(name)
    assert count(pixels, rgb(QColor(theme.surface))) > 100_000
    assert count(pixels, rgb(QColor(theme.window))) > 20_000
    assert count(pixels, rgb(QColor(theme.text))) > 500
    assert pixels.shape == (HEIGHT, WIDTH, 3)
    for accent in (theme.query, theme.key, theme.ok, theme.bar):
        assert count(pixels, rgb(QColor(accent)), tolerance=8) > 40, accent
    for written in (theme.attention, theme.feed_forward):  # a bar of 14 tokens in each of 8 blocks
        assert count(pixels, rgb(QColor(written))) > 8 * 14 * 10, written


@pytest.mark.full
def test_light_and_dark_differ(pictures):
    light, dark = pictures("light").astype(int), pictures("dark").astype(int)
    differing = (np.abs(light - dark).max(axis=-1) > 40).mean()
    assert differing > 0.5
    assert light.mean() > 160
    assert dark.mean() < 90


# --------------------------------------------------------------------------- place by place


@pytest.fixture(scope="module")
def opened(qapp) -> Iterator[MainWindow]:
    with opened_window() as window:
        yield window


@pytest.fixture(params=["light", "dark"])
def window(opened: MainWindow, request: pytest.FixtureRequest) -> MainWindow:
    back_to_start(opened)
    opened.menus[f"theme_{request.param}"].trigger()
    QApplication.processEvents()
    return opened


def theme_of(window: MainWindow) -> Theme:
    return panel_of(window, HeadMapPanel).theme


def cut(window: MainWindow, widget: QWidget, rect: QRect | None = None) -> np.ndarray:
    """What the whole window shows in a part of one of its widgets: (height, width, 3)."""
    part = widget.rect() if rect is None else rect
    return pixels_of(window.grab(QRect(widget.mapTo(window, part.topLeft()), part.size())).toImage())


def test_every_cell_has_the_colour_of_its_weight(window, weights):
    heat_map = panel_of(window, HeadMapPanel).map
    pixels = cut(window, heat_map)
    for query in range(14):
        for key in range(query + 1):
            middle = heat_map.cell_rect(query, key).center().toPoint()
            colours = expected_colour(float(weights[query, key]), float(weights.max()))
            assert any((pixels[middle.y(), middle.x()] == colour).all() for colour in colours), (query, key)


def test_masked_cells_are_hatched_and_allowed_ones_are_plain(window):
    heat_map, theme = panel_of(window, HeadMapPanel).map, theme_of(window)
    pixels = cut(window, heat_map)

    def inside(query: int, key: int) -> np.ndarray:
        rect = heat_map.cell_rect(query, key).toAlignedRect().adjusted(3, 3, -3, -3)
        return pixels[rect.top() : rect.bottom(), rect.left() : rect.right()]

    for query, key in ((0, 13), (2, 9), (5, 11)):
        cell = inside(query, key)
        plain = count(cell, rgb(QColor(theme.surface)), tolerance=4) / cell[..., 0].size
        assert 0.4 < plain < 0.95, (query, key)
    assert len(np.unique(inside(9, 3).reshape(-1, 3), axis=0)) == 1


def test_the_selected_cell_and_thumbnail_are_framed_in_the_accent(window):
    theme = theme_of(window)
    accent = rgb(QColor(theme.query))
    heat_map, atlas = panel_of(window, HeadMapPanel).map, panel_of(window, HeadAtlasPanel).atlas
    cell = cut(window, heat_map, heat_map.cell_rect(13, 1).toAlignedRect().adjusted(-3, -3, 3, 3))
    other = cut(window, heat_map, heat_map.cell_rect(11, 4).toAlignedRect().adjusted(-3, -3, 3, 3))
    assert count(cell, accent, tolerance=12) > cell.shape[0]
    assert count(other, accent, tolerance=12) == 0
    chosen = cut(window, atlas, atlas.cell_rect(5, 5).toAlignedRect().adjusted(-3, -3, 3, 3))
    assert count(chosen, accent, tolerance=12) > chosen.shape[0]


def test_thumbnails_are_pictures_of_the_heads(window):
    atlas, view = panel_of(window, HeadAtlasPanel).atlas, window.session.state.results.of(AtlasView)
    pixels = cut(window, atlas)
    for layer in range(8):
        for head in range(8):
            rect = atlas.cell_rect(layer, head).toAlignedRect()
            thumbnail = pixels[rect.top() + 1 : rect.bottom(), rect.left() + 1 : rect.right()]
            assert len(np.unique(thumbnail.reshape(-1, 3), axis=0)) >= 8, (layer, head)
    first = atlas.cell_rect(2, 4)
    cell = first.width() / 14
    shown = pixels[round(first.top() + cell / 2), round(first.left() + cell / 2)]
    colours = expected_colour(float(view.images[2, 4, 0, 0]), float(np.nanmax(view.images)))
    assert any((shown == colour).all() for colour in colours)


def ink(pixels: np.ndarray, theme: Theme) -> float:
    """The share of pixels that stand out from the surface as text does."""
    surfaces = [rgb(QColor(colour)) for colour in (theme.surface, theme.surface_alt, theme.window)]
    distance = np.min([np.abs(pixels.astype(int) - surface).sum(axis=-1) for surface in surfaces], axis=0)
    return float((distance > 150).mean())


def test_there_is_text_wherever_there_should_be(window):
    theme, heat_map = theme_of(window), panel_of(window, HeadMapPanel).map
    first = heat_map.cell_rect(0, 0)
    left_of_map = QRect(0, round(first.top()), round(first.left()) - 2, round(13 * first.height()))
    above_map = QRect(round(first.left()), 0, round(13 * first.width()), round(first.top()) - 2)
    below = QRect(0, heat_map.height() - 24, heat_map.width(), 24)
    places = {
        "row labels": cut(window, heat_map, left_of_map),
        "column labels": cut(window, heat_map, above_map),
        "readout": cut(window, heat_map, below),
        "bars": cut(window, panel_of(window, NextTokenPanel).bars, QRect(0, 0, 200, 200)),
        "input": cut(window, window.input.text),
        "caption": cut(window, window.input.caption),
        "facts": cut(window, window.top_bar.facts, QRect(0, 0, 200, window.top_bar.facts.height())),
        "trust": cut(window, window.top_bar.trust),
        "menu": cut(window, window.top_bar.menu),
        "run": cut(window, window.input.run_button),
    }
    for place, pixels in places.items():
        assert ink(pixels, theme) > 0.015, place
    for token in range(14):
        rect = window.input.strip.chip_rect(token).toAlignedRect().adjusted(4, 4, -4, -4)
        assert ink(cut(window, window.input.strip, rect), theme) > 0.003, token


def test_each_row_label_stands_beside_its_row(window):
    theme, heat_map = theme_of(window), panel_of(window, HeadMapPanel).map
    for query in range(14):
        cell = heat_map.cell_rect(query, 0)
        beside = QRect(round(cell.left()) - 40, round(cell.top()) + 2, 38, round(cell.height()) - 4)
        assert ink(cut(window, heat_map, beside), theme) > 0.002, query


@pytest.mark.short("light-warning", "dark-error")
@pytest.mark.parametrize("kind", ["info", "warning", "error"])
def test_a_notice_is_seen(window, kind):
    theme = theme_of(window)
    assert not window.notice_bar.isVisible()
    window.session.dispatch(Show(Notice(kind, "Something that a person should know.", action_label="Do it")))
    QApplication.processEvents()
    bar = cut(window, window.notice_bar)
    assert bar.shape[1] > 1200
    accent = {"info": theme.key, "warning": theme.warning, "error": theme.error}[kind]
    assert count(bar, rgb(QColor(accent)), tolerance=8) > 4 * bar.shape[0]
    assert ink(bar, theme) > 0.02


def test_text_can_be_told_from_what_it_stands_on(window):
    """In every strip of the window that holds text, the darkest and the brightest pixel are far apart."""
    for widget in (window.top_bar.facts, window.input.caption, window.input.text, window.menuBar()):
        grey = cut(window, widget).mean(axis=-1)
        dark, bright = (
            f"#{round(level):02x}{round(level):02x}{round(level):02x}" for level in (grey.min(), grey.max())
        )
        assert themes.contrast(dark, bright) > 4.0, widget


def test_nothing_is_cut_off_at_the_smallest_projector(window):
    """Every widget with text lies wholly inside the window."""
    for widget in (window.input.step_button, window.top_bar.trust, window.input.caption):
        corner = widget.mapTo(window, QPoint(widget.width(), widget.height()))
        assert corner.x() <= window.width()
        assert corner.y() <= window.height()
        assert widget.width() >= widget.minimumSizeHint().width()
