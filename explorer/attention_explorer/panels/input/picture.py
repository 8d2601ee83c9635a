"""What a vision model reads in the place of a text: a picture in patches, by the positions of its tokens."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import Signal

from attention_explorer.panels.input.picture_input import PictureInput
from attention_models.files.sample_pictures import samples, title_of_picture
from attention_models.protocol.values import SeenPicture


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
