"""What a vision model looks at, in the place of a text."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from explorer.panels.input.picture_input import PictureInput
from explorer.session.state import State
from models.files.sample_pictures import samples, title_of_picture
from models.protocol.values import SeenPicture


class PictureRow(PictureInput):
    """Shows the state's picture, its patches and where the selected token looks."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: SeenPicture | None = None

    def show_state(self, state: State) -> None:
        loaded, ran = state.results.loaded, state.ran
        if loaded is None:
            return
        chosen = state.document.picture
        choices = [(sample.reference, sample.title) for sample in samples(loaded.info.channels)]
        if chosen not in dict(choices):
            choices.append((chosen, title_of_picture(chosen)))
        self.set_choices(choices, chosen)
        seen = None if ran is None else ran.seen
        if seen is not self._seen:
            self._seen = seen
            self._show_seen(seen, [] if seen is None or ran is None else [t.label for t in ran.tokens[: seen.first]])
        self.set_selection(self.patch_of(state.selection.query), self.patch_of(state.selection.key))

    def show_weights(self, weights: NDArray[np.float32] | None) -> None:
        """Where a token looks, (keys,); None where that is not known."""
        self.weights.set_weights(None if weights is None or self._seen is None else weights[self._seen.first :])

    def patch_of(self, position: int) -> int:
        """The number of the patch at a position, -1 for a token that is none."""
        seen = self._seen
        return position - seen.first if seen is not None and seen.patch(position) is not None else -1

    def position_of(self, patch: int) -> int:
        """The position of a patch among the tokens, -1 for none."""
        return patch + self._seen.first if self._seen is not None and patch >= 0 else -1

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
