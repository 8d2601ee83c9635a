"""The figures of runs side by side: a column a run, headed by its line in the plots."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from PySide6.QtCore import QPointF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from attention_explorer.panels.playground.experiment_figures import Style, style_of
from attention_explorer.theme import LIGHT, Theme
from attention_explorer.widgets.page import wrapped
from attention_explorer.widgets.plot.geometry import LEGEND_KEY
from attention_explorer.widgets.plot.paint import paint_key
from attention_explorer.widgets.rows import clear
from attention_explorer.widgets.themed import ThemedWidget

_NAME, _FIGURE = 16, 16  # average characters of a name beside figures, and of a figure


class LineKey(ThemedWidget):
    """The piece of line that stands for a run."""

    def __init__(self, style: Style) -> None:
        super().__init__("")
        self._style = style
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setFixedSize(self.sizeHint())

    def sizeHint(self) -> QSize:
        return QSize(int(LEGEND_KEY), 16)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        colour = QColor(getattr(self.theme, self._style.role))
        paint_key(painter, self._style.line, self._style.mark, colour, QPointF(2, self.height() / 2))


class RunsTable(QWidget):
    def __init__(self, meaning: Callable[[str], str], parent: QWidget | None = None) -> None:
        """`meaning` is the tooltip of a figure's name."""
        super().__init__(parent)
        self.setAccessibleName("Figures of the runs")
        self._meaning = meaning
        self._runs: tuple[str, ...] = ()
        self._names: tuple[str, ...] = ()
        self._cells: list[list[QLabel]] = []
        self._is_narrow = False
        self._theme = LIGHT
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 4, 0, 4)
        self._grid.setHorizontalSpacing(12)
        self._grid.setVerticalSpacing(4)

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        for key in self.findChildren(LineKey):
            key.set_theme(theme)

    def show_figures(self, runs: Sequence[str], figures: Mapping[str, Sequence[str]]) -> None:
        """`figures` by name, one of each run."""
        if (tuple(runs), tuple(figures)) != (self._runs, self._names):
            self._runs, self._names = tuple(runs), tuple(figures)
            self._build()
        for line, row in zip(self._cells, figures.values(), strict=True):
            for label, text in zip(line, row, strict=True):
                label.setText(text)

    def texts(self) -> dict[str, tuple[str, ...]]:
        """What it shows."""
        return {
            name: tuple(label.text() for label in line) for name, line in zip(self._names, self._cells, strict=True)
        }

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self._wants_lines_of_their_own() != self._is_narrow:
            texts = self.texts()
            self._build()
            self.show_figures(self._runs, texts)

    def _wants_lines_of_their_own(self) -> bool:
        """Whether there is no room for the names of figures beside these."""
        return self.width() < self.fontMetrics().averageCharWidth() * (_NAME + _FIGURE * len(self._runs))

    def _build(self) -> None:
        clear(self._grid)
        self._is_narrow = self._wants_lines_of_their_own()
        self._cells = []
        beside = 0 if self._is_narrow else 1  # columns
        for column in range(self._grid.columnCount()):  # of the runs before
            self._grid.setColumnStretch(column, 0)
        if not self._names:
            return
        for run, name in enumerate(self._runs):
            label = wrapped(name, "title")
            label.setMinimumWidth(max(label.fontMetrics().horizontalAdvance(f"{word} ") for word in name.split()))
            label.setAlignment(Qt.AlignmentFlag.AlignTop)
            key = LineKey(style_of(run))
            key.set_theme(self._theme)
            self._grid.addWidget(key, 0, run + beside, Qt.AlignmentFlag.AlignLeft)
            self._grid.addWidget(label, 1, run + beside)
        for column in range(len(self._runs) + beside):
            self._grid.setColumnStretch(column, 1)
        for number, name in enumerate(self._names):
            line = 2 + number * (2 - beside)
            label = wrapped(name, "dim")
            label.setToolTip(self._meaning(name))
            self._grid.addWidget(label, line, 0, 1, 1 if beside else len(self._runs))
            self._cells.append([QLabel() for _ in self._runs])
            for run, cell in enumerate(self._cells[-1]):
                cell.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
                self._grid.addWidget(cell, line + 1 - beside, run + beside)
