"""Attention of one head as matrices: a page with the picture, and the sum behind one number of it in digits.

It is given values and knows no session.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QObject, Qt, QTimer, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QPlainTextEdit,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from attention_explorer.look.colour_maps import sequential
from attention_explorer.panels.flow.matrices_picture import WITH_NUMBERS, MatricesPicture
from attention_explorer.panels.flow.matrices_scene import Scene
from attention_explorer.widgets.labels import ElidedLabel
from attention_explorer.widgets.page import wrapped
from attention_models.protocol.matrices import MatricesView

_LINES, _LOW = 3, 24  # of the sum; lines of height below which a page is low
_WAITING = "The matrices of the selected head appear here when the model has run."


class MatricesPage(QWidget):
    """`show_view` shows a head, `show_reason` why there is none. Queries and keys are counted in the whole text."""

    cell_selected = Signal(int, int)  # query, key
    hovered = Signal(int, int)  # query, key under the pointer; -1 for none

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.picture = MatricesPicture()
        self.picture.set_empty_text(_WAITING)
        self.picture.cell_selected.connect(self._on_selected)
        self.picture.hovered.connect(self._on_hovered)
        self.picture.place_changed.connect(self._tell)
        self.picture.zoomed.connect(self._tell)
        self.area = QScrollArea()
        self.area.setWidget(self.picture)
        self.area.setWidgetResizable(True)
        self.area.setFrameShape(QFrame.Shape.NoFrame)
        self.area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.area.viewport().installEventFilter(self)
        for bar in (self.area.horizontalScrollBar(), self.area.verticalScrollBar()):
            bar.valueChanged.connect(lambda _: self.picture.update())  # names stay in sight
        self.note = wrapped(role="dim")
        self.fit = QPushButton("Fit")
        self.fit.setToolTip("Cells as large as there is room for (key 0)")
        self.numbers = QPushButton("Numbers")
        self.numbers.setToolTip(f"Cells of {WITH_NUMBERS:.0f} pixels and more, with their numbers (keys + and −)")
        for button in (self.fit, self.numbers):
            button.setCheckable(True)
        self.fit.clicked.connect(self.picture.fit)
        self.fit.clicked.connect(self._tell)  # a press of what is down leaves it down
        self.numbers.clicked.connect(self.picture.show_numbers)
        self.numbers.clicked.connect(self._tell)
        self.what = ElidedLabel()
        self.what.setProperty("role", "title")
        self.what.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.sum = QPlainTextEdit()
        self.sum.setReadOnly(True)
        self.sum.setAccessibleName("The sum in digits")
        self.sum.setFrameShape(QFrame.Shape.NoFrame)
        self.sum.setTabChangesFocus(True)
        self._scene: Scene | None = None
        self._lay_out()
        self.show_reason(_WAITING)

    def _lay_out(self) -> None:
        line = QHBoxLayout()
        line.addWidget(self.what, 1)
        line.addWidget(self.fit)
        line.addWidget(self.numbers)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addWidget(self.note)
        column.addWidget(self.area, 1)
        column.addLayout(line)
        column.addWidget(self.sum)

    # what to show

    def show_reason(self, reason: str) -> None:
        """Show a sentence in the place of matrices."""
        self._scene = None
        self.picture.set_empty_text(reason)
        self.picture.set_scene(None)
        self._show_parts()

    def show_view(
        self, view: MatricesView, queries: Sequence[str], keys: Sequence[str], colour_map: str = "viridis"
    ) -> None:
        """Show a head; `queries` and `keys` name the tokens of the whole text. Raises ValueError for another number."""
        self.picture.set_colour_map(sequential(colour_map))
        if self._scene is None or self._scene.view is not view:
            self._scene = Scene.of(view, queries, keys)
            self.picture.set_scene(self._scene)
        self._show_parts()

    def set_selection(self, query: int, key: int) -> None:
        """The selected cell. Emits nothing."""
        self.picture.set_selection(*self._inside(query, key))

    def set_hover(self, query: int, key: int) -> None:
        """The cell that is pointed at elsewhere, -1 for none. Emits nothing."""
        self.picture.set_hover(*self._inside(query, key))

    def _show_parts(self) -> None:
        scene = self._scene
        self.note.setText("" if scene is None else scene.note)
        self.note.setVisible(bool(self.note.text()))
        for part in (self.fit, self.numbers, self.what, self.sum):
            part.setVisible(scene is not None)
        self._set_lines()
        self._tell()

    def _set_lines(self) -> None:
        """The sum has less room in a low page."""
        spacing = self.fontMetrics().lineSpacing()
        lines = _LINES if self.height() >= _LOW * spacing else 2
        self.sum.setFixedHeight(round(lines * spacing + 14))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._set_lines()

    def _tell(self) -> None:
        """Say the sum behind the number that is pointed at, or chosen."""
        scene, place = self._scene, self.picture.told
        self.fit.setChecked(self.picture.is_fitted)
        self.numbers.setChecked(self.picture.has_numbers)
        if scene is None or place is None:
            self.what.clear()
            self.sum.clear()
            return
        self.what.setText(f"{scene.title(place)}   (colours {scene.matrices[place.name].span})")
        text = scene.sum_of(place)
        if text != self.sum.toPlainText():
            self.sum.setPlainText(text)

    # places in the whole text

    def _inside(self, query: int, key: int) -> tuple[int, int]:
        """Among those shown; -1 for one that is not."""
        if self._scene is None:
            return -1, -1
        first, (rows, columns) = self._scene.view.request, self._scene.view.raw.shape
        row, column = query - first.first_query, key - first.first_key
        return row if 0 <= row < rows else -1, column if 0 <= column < columns else -1

    def _outside(self, query: int, key: int) -> tuple[int, int]:
        if self._scene is None:
            return -1, -1
        first = self._scene.view.request
        return (query + first.first_query if query >= 0 else -1), (key + first.first_key if key >= 0 else -1)

    def _on_selected(self, query: int, key: int) -> None:
        if query >= 0 and key >= 0:
            self.cell_selected.emit(*self._outside(query, key))

    def _on_hovered(self, query: int, key: int) -> None:
        self.hovered.emit(*self._outside(query, key))

    # zoom

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self.area.viewport() and event.type() == QEvent.Type.Resize:
            self.picture.set_space(self.area.viewport().size())
            QTimer.singleShot(0, self, self.picture.show_told)  # once the area knows how large the picture is
        return super().eventFilter(watched, event)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange and hasattr(self, "_scene"):
            self._show_parts()
