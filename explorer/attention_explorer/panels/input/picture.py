"""What a vision model reads in the place of a text: a picture in patches, by the positions of its tokens."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from attention_explorer.panels.input.patch_view import SMALLEST, PatchView
from attention_explorer.widgets.page import wrapped
from attention_explorer.widgets.screens import WindowSize
from attention_models.files.sample_pictures import samples, title_of_picture
from attention_models.protocol.values import SeenPicture

_LOW, _SHARE = 800, 0.4
"""A window of this height has the smallest picture; of every pixel more the picture gets this share."""


class PictureInput(QWidget):
    """The picture, the same with one token's weights, and beside them other pictures to choose."""

    chosen = Signal(str)  # the reference of a picture
    open_asked = Signal()
    patch_selected = Signal(int)
    patch_hovered = Signal(int)  # -1 when the pointer leaves

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.view, self.weights = PatchView(), PatchView()
        self.weights.setAccessibleName("Where the token looks")
        self.weights.setToolTip("The stronger the colour, the more the selected token looks at a patch.")
        self.samples = QComboBox()
        self.samples.setAccessibleName("Picture")
        self.samples.setToolTip("What the model looks at")
        self.samples.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.samples.activated.connect(self._on_chosen)
        self.open_button = QPushButton("Open picture…")
        self.open_button.setToolTip("Choose a picture of your own; a file can be dropped on the window too")
        self.open_button.clicked.connect(self.open_asked)
        title = QLabel("Picture")
        title.setProperty("role", "title")
        title.setBuddy(self.samples)
        self.facts = wrapped(role="dim")
        choose = QHBoxLayout()
        choose.setSpacing(10)
        for widget in (title, self.samples, self.open_button):
            choose.addWidget(widget)
        choose.addStretch(1)
        side = QVBoxLayout()
        side.addLayout(choose)
        side.addWidget(self.facts)
        side.addStretch(1)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(14)
        for view in (self.view, self.weights):
            row.addWidget(view, 0, Qt.AlignmentFlag.AlignTop)
            view.patch_selected.connect(self.patch_selected)
            view.hovered.connect(self.patch_hovered)
        row.addLayout(side, 1)
        WindowSize(self).changed.connect(self._fit_window)

    def _fit_window(self) -> None:
        """The higher the window, the larger the picture: the panels below keep most of what is added."""
        for view in (self.view, self.weights):
            view.set_side(round(_SHARE * (self.window().height() - _LOW)) + SMALLEST)

    def set_picture(self, pixels: NDArray[np.uint8] | None, rows: int = 0, columns: int = 0) -> None:
        """What the model sees, (height, width, 3), in patches; None before it has run."""
        for view in (self.view, self.weights):
            view.set_picture(pixels, rows, columns)

    def set_selection(self, query: int, key: int) -> None:
        for view in (self.view, self.weights):
            view.set_selection(query, key)

    def set_hover(self, patch: int) -> None:
        for view in (self.view, self.weights):
            view.set_hover(patch)

    def set_choices(self, choices: Sequence[tuple[str, str]], current: str) -> None:
        """(reference, title) of each picture, `current` among them."""
        known = [(self.samples.itemData(i), self.samples.itemText(i)) for i in range(self.samples.count())]
        if list(choices) != known:
            self.samples.clear()
            for reference, title in choices:
                self.samples.addItem(title, reference)
        self.samples.setCurrentIndex(self.samples.findData(current))

    def _on_chosen(self, index: int) -> None:
        self.chosen.emit(self.samples.itemData(index))


class PictureRow(PictureInput):
    """Shows a picture, its patches and what the selected token attends to. Tokens have positions, patches numbers."""

    position_selected = Signal(int)
    position_hovered = Signal(int)  # -1 when the pointer leaves

    def __init__(self) -> None:
        super().__init__()
        self._seen: SeenPicture | None = None
        self.patch_selected.connect(self._on_selected)
        self.patch_hovered.connect(lambda patch: self.position_hovered.emit(self.position_of(patch)))

    def show_picture(self, chosen: str, channels: int, seen: SeenPicture | None, labels: list[str]) -> None:
        """The picture that is `chosen` among those of so many channels, and what the model saw of it.

        `labels` are those of the tokens before its patches.
        """
        choices = [(sample.reference, sample.title) for sample in samples(channels)]
        if chosen not in dict(choices):
            choices.append((chosen, title_of_picture(chosen)))
        self.set_choices(choices, chosen)
        if seen is not self._seen:
            self._seen = seen
            self._show_seen(seen, labels)

    def select(self, query: int, key: int) -> None:
        """Frame the patches at two positions."""
        self.set_selection(self.patch_of(query), self.patch_of(key))

    def hover(self, position: int) -> None:
        """Mark the patch at the position that the pointer is over anywhere."""
        self.set_hover(self.patch_of(position))

    def show_weights(self, weights: NDArray[np.float32] | None) -> None:
        """The weights of one token's row, (keys,); None where they are not known."""
        self.weights.set_weights(None if weights is None or self._seen is None else weights[self._seen.first :])

    def patch_of(self, position: int) -> int:
        """The number of the patch at a position, -1 for a token that is none."""
        seen = self._seen
        return position - seen.first if seen is not None and seen.patch(position) is not None else -1

    def position_of(self, patch: int) -> int:
        """The position of a patch among the tokens, -1 for none."""
        return patch + self._seen.first if self._seen is not None and patch >= 0 else -1

    def _on_selected(self, patch: int) -> None:
        position = self.position_of(patch)
        if position >= 0:
            self.position_selected.emit(position)

    def _show_seen(self, seen: SeenPicture | None, extra: list[str]) -> None:
        if seen is None:
            self.set_picture(None)
            self.facts.setText("")
            return
        self.set_picture(seen.pixels, seen.rows, seen.columns)
        height, width, _ = seen.pixels.shape
        self.facts.setText(
            f"The model sees {width} × {height} pixels in {seen.columns} × {seen.rows} patches, a token each"
            + (f", and {', '.join(extra)} before them." if extra else ".")
            + (f" Of the picture: {'; '.join(seen.changes)}." if seen.changes else "")
        )
