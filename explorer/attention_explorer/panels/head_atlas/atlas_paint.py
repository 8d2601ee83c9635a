"""How the atlas of heads is drawn: one sheet of thumbnails, frames, badges, labels and the caption."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QImage, QPainter, QPen

from attention_explorer.panels.head_atlas.atlas_layout import GAP, AtlasLayout
from attention_explorer.text_size import smaller, wide
from attention_explorer.theme import Theme
from attention_explorer.widgets import cell_image
from attention_explorer.widgets.hatching import draw_hatching
from attention_explorer.widgets.padding_overlay import Share, draw_padding_overlay

EDGE = 5.0  # around everything: room for the selection's glow
HATCH_STEP = 6.0
LABEL_GAP = 8.0  # between the row labels and the thumbnails
_MIDDLE = Qt.AlignmentFlag.AlignVCenter


def draw_sheet(
    layout: AtlasLayout, heads: cell_image.Codes, means: cell_image.Codes | None, colours: list[int], ratio: float
) -> QImage:
    """All thumbnails in one image at the device's own pixels, with transparent gaps.

    heads: (rows, columns, height, width); means: (rows, height, width) when the layout has a column for them.
    """
    thumb = round(layout.thumb * ratio)
    xs = [round((layout.column_x(column) - layout.left) * ratio) for column in range(layout.across)]
    ys = [round(row * layout.step * ratio) for row in range(layout.rows)]
    sheet = np.zeros((ys[-1] + thumb, xs[-1] + thumb), dtype=np.uint8)
    heads = _scaled(heads, thumb)  # (rows, columns, thumb, thumb)
    means = None if means is None else _scaled(means, thumb)  # (rows, thumb, thumb)
    for row, y in enumerate(ys):
        for column, x in enumerate(xs):
            picture = heads[row, column] if means is None or column < layout.columns else means[row]
            sheet[y : y + thumb, x : x + thumb] = picture
    image = cell_image.to_image(sheet, colours)
    image.setDevicePixelRatio(ratio)
    return image


def _scaled(codes: cell_image.Codes, pixels: int) -> cell_image.Codes:
    """The last two axes of `codes` drawn in pixels by pixels."""
    for axis in (codes.ndim - 2, codes.ndim - 1):
        codes = cell_image.stretch(codes, axis, 0.0, pixels / codes.shape[axis], pixels)
    return codes


@dataclass(frozen=True)
class AtlasPainter:
    """Draws one state of the atlas; made for each paint.

    `shown` is the part of the widget that a scroll area lets through: column labels and caption keep to it.
    """

    theme: Theme
    font: QFont
    bold: QFont
    layout: AtlasLayout
    shown: QRectF

    def draw_tiles(self, painter: QPainter, exposed: QRectF, hatched: Collection[tuple[int, int]] = ()) -> None:
        """What shows where a thumbnail has no value: the hatching of the large map where that is for a mask."""
        for row in range(self.layout.rows):
            for column in range(self.layout.across):
                rect = self.layout.rect(row, column)
                if rect.intersects(exposed):
                    painter.fillRect(rect, QColor(self.theme.surface_alt))
                    if (row, column) in hatched:
                        draw_hatching(painter, self.theme, rect, HATCH_STEP)

    def draw_faded(self, painter: QPainter, rows: Sequence[Share], columns: Sequence[Share]) -> None:
        """Lay the ground's colour over some rows and columns of every thumbnail."""
        if not (rows or columns):
            return
        for row in range(self.layout.rows):
            for column in range(self.layout.across):
                draw_padding_overlay(painter, self.theme, self.layout.rect(row, column), rows, columns)

    def draw_hover_frame(self, painter: QPainter, row: int, column: int) -> None:
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(QColor(self.theme.text), wide(1.5)))
        painter.drawRoundedRect(self.layout.rect(row, column).adjusted(-1.5, -1.5, 1.5, 1.5), 2, 2)

    def draw_selection_frame(self, painter: QPainter, row: int, column: int) -> None:
        """A frame in the query accent with a faint glow."""
        rect = self.layout.rect(row, column)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        glow = QColor(self.theme.query)
        for outset, alpha in ((4.0, 45), (2.5, 90)):
            glow.setAlpha(alpha)
            painter.setPen(QPen(glow, 2.0))
            painter.drawRoundedRect(rect.adjusted(-outset, -outset, outset, outset), 4, 4)
        painter.setPen(QPen(QColor(self.theme.query), wide(2.5)))
        painter.drawRoundedRect(rect.adjusted(-1.25, -1.25, 1.25, 1.25), 2, 2)

    def draw_badges(self, painter: QPainter, badges: Mapping[tuple[int, int], str]) -> None:
        """The names of some heads, at the foot of their thumbnails; a dot where the word has no room."""
        font = smaller(self.bold, 0.78, least=7.5)
        metrics = QFontMetricsF(font)
        painter.setFont(font)
        for head, text in badges.items():
            thumb = self.layout.rect(*head)
            width, height = metrics.horizontalAdvance(text) + 4, metrics.height()
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(self.theme.query))
            if width > thumb.width() or 2 * height > thumb.height():
                painter.drawEllipse(QRectF(thumb.right() - 8, thumb.bottom() - 8, 7, 7))
                continue
            badge = QRectF(thumb.right() - width, thumb.bottom() - height, width, height)
            painter.drawRoundedRect(badge, 3, 3)
            painter.setPen(QColor(self.theme.on_accent))
            painter.drawText(badge, Qt.AlignmentFlag.AlignCenter, text)

    def draw_labels(
        self, painter: QPainter, rows: Sequence[str], columns: Sequence[str], chosen: tuple[int, int]
    ) -> None:
        """Every row's label, the columns' as far as they fit beside each other; the chosen ones in the accent."""
        layout, metrics = self.layout, QFontMetricsF(self.font)
        for row, label in enumerate(rows):
            y = layout.rect(row, 0).center().y() - metrics.height() / 2
            rect = QRectF(0, y, layout.left - LABEL_GAP, metrics.height())
            self._label(painter, rect, Qt.AlignmentFlag.AlignRight, label, row == chosen[0])
        head = QRectF(self.shown.left(), self.shown.top(), self.shown.width(), layout.top - 4)
        if self.shown.top() > 0:
            painter.fillRect(head, QColor(self.theme.surface))
        step = math.ceil((max(metrics.horizontalAdvance(label) for label in columns) + 4) / layout.step)
        for column, label in enumerate(columns):
            is_chosen = column == chosen[1]
            if is_chosen or (column % step == 0 and (step == 1 or abs(column - chosen[1]) >= step)):
                self._label(painter, self._above(column, head), Qt.AlignmentFlag.AlignHCenter, label, is_chosen)
        if layout.has_mean:
            self._label(painter, self._above(layout.columns, head), Qt.AlignmentFlag.AlignHCenter, "mean", False)

    def draw_caption(self, painter: QPainter, name: str, scale: str, height: float, has_masked: bool = False) -> None:
        """A line below the thumbnails: which head, over which range all are coloured, and what is hatched.

        height: the widget's.
        """
        metrics, bold = QFontMetricsF(self.font), QFontMetricsF(self.bold)
        line_height = metrics.height() + 6
        y = min(self.shown.bottom() - line_height, self.layout.bottom + GAP)
        line = QRectF(self.shown.left(), y, self.shown.width(), line_height)
        if self.shown.bottom() < height:
            painter.fillRect(line, QColor(self.theme.surface))
        line.adjust(EDGE, 0, -EDGE, 0)
        painter.setFont(self.bold)
        painter.setPen(QColor(self.theme.text))
        painter.drawText(line, Qt.AlignmentFlag.AlignLeft | _MIDDLE, name)
        painter.setFont(self.font)
        painter.setPen(QColor(self.theme.text_dim))
        left_over = line.width() - bold.horizontalAdvance(name) - 12
        hatched = "hatched: masked · " if has_masked else ""
        for text in (f"{hatched}one range for all: {scale}", f"{hatched}{scale}", scale):
            if metrics.horizontalAdvance(text) <= left_over:
                painter.drawText(line, Qt.AlignmentFlag.AlignRight | _MIDDLE, text)
                break

    def _above(self, column: int, head: QRectF) -> QRectF:
        return QRectF(self.layout.column_x(column) - 20, head.top(), self.layout.thumb + 40, head.height())

    def _label(self, painter: QPainter, rect: QRectF, side: Qt.AlignmentFlag, label: str, chosen: bool) -> None:
        painter.setFont(self.bold if chosen else self.font)
        painter.setPen(QColor(self.theme.query if chosen else self.theme.text_dim))
        painter.drawText(rect, side | _MIDDLE, label)
