"""What of a map is kept from one paint to the next: its cells as a picture, and the pictures of its labels."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPainter, QPixmap

from attention_explorer.colour_maps import ColourTable
from attention_explorer.widgets import cell_image
from attention_explorer.widgets.heat_map.cell_numbers import draw_numbers
from attention_explorer.widgets.heat_map.labels import AxisLabels, LabelLook
from attention_explorer.widgets.heat_map.painter import MapPainter
from attention_explorer.widgets.heat_map.tiled_values import TiledValues
from attention_explorer.widgets.heat_map.whole_values import WholeValues
from attention_explorer.widgets.kept_pictures import is_of_other_scale

Source = WholeValues | TiledValues


class MapPicture:
    """Draws what follows neither pointer nor selection once, until somebody says that it is another one."""

    def __init__(self) -> None:
        self._cells: QPixmap | None = None
        self._labels = AxisLabels()
        self._look: LabelLook | None = None

    def forget_cells(self) -> None:
        """Values, colours or the view are others now."""
        self._cells = None

    def forget_labels(self) -> None:
        """Names, fonts, theme or the view are others now."""
        self._look = None

    def draw_cells(
        self, painter: QPainter, artist: MapPainter, source: Source, table: ColourTable, size: QSize
    ) -> None:
        """The cells and the titles of the axes, in a widget of `size`."""
        if is_of_other_scale(painter, artist.ratio):
            painter.save()
            _draw(painter, artist, source, table)
            painter.restore()
            return
        if self._cells is None or self._cells.devicePixelRatio() != artist.ratio:
            self._cells = _drawn(artist, source, table, size)
        painter.drawPixmap(0, 0, self._cells)

    def draw_labels(
        self,
        painter: QPainter,
        artist: MapPainter,
        rows: Sequence[str],
        columns: Sequence[str],
        selection: tuple[int, int],
        hover: tuple[int, int],
    ) -> None:
        """The names along both axes; see `AxisLabels.draw`."""
        if self._look is None or self._look.ratio != artist.ratio:
            self._look = LabelLook(artist.theme, artist.frame, artist.view, rows, columns, artist.ratio)
        self._labels.draw(painter, self._look, selection, hover)


def _drawn(artist: MapPainter, source: Source, table: ColourTable, size: QSize) -> QPixmap:
    pixmap = QPixmap(size * artist.ratio)
    pixmap.setDevicePixelRatio(artist.ratio)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    _draw(painter, artist, source, table)
    painter.end()
    return pixmap


def _draw(painter: QPainter, artist: MapPainter, source: Source, table: ColourTable) -> None:
    image = cell_image.to_image(source.pixels(artist.view, artist.ratio), cell_image.colours(table, *source.span))
    image.setDevicePixelRatio(artist.ratio)
    artist.draw_map(painter, image, source.has_gaps)
    if artist.frame.has_numbers:
        draw_numbers(painter, artist, image, source, artist.frame.font)
    artist.draw_titles(painter)
