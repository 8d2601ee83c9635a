"""Where the matrices lie: rows of a query token at one height, K^T above the scores, V above the output. Pure geometry.

They stand side by side where there is room, else in two or three bands under each other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from PySide6.QtCore import QRectF, QSizeF

from attention_explorer.panels.flow.matrices_scene import SIDES, Name, Place, Scene

Bands = tuple[tuple[Name, ...], ...]

BANDS: tuple[Bands, ...] = (
    (("q", "raw", "scaled", "masked", "weights", "output"),),
    (("q", "raw", "scaled"), ("masked", "weights", "output")),
    (("q", "raw"), ("scaled", "masked"), ("weights", "output")),
)
"""From the widest to the tallest: what stands in each band, from left to right."""

ABOVE: dict[Name, Name] = {"raw": "k", "output": "v"}
"""What stands above a matrix, and shares its columns."""

WITH_NUMBERS = 40.0
"""Pixels that a cell takes at least from which on its number stands in it; more where letters are larger."""

SMALLEST, LARGEST_FITTED, LARGEST = 3.0, 30.0, 96.0
"""Pixels that a token takes: the least, the most before anybody zooms, the most."""

_LEAST, _SCROLLED = 112.0, 12.0  # where all tokens take less they are made larger, and the page scrolls up and down
_SMALLEST_DIM = 2.0
_VECTOR = 0.75  # of what the tokens take


@dataclass(frozen=True)
class Room:
    """Pixels that go to everything but the cells."""

    row_label: float  # left of a band, and left of V
    column_label: float  # above a matrix over keys
    caption: float  # above each
    gap: float  # between two, for what happens there
    margin: float
    number: float = WITH_NUMBERS  # what a cell takes at least to hold a number
    caption_width: float = 0.0  # of the widest caption: as far apart are matrices where there is room


@dataclass(frozen=True)
class Layout:
    """Where each matrix lies, and how large a cell is along tokens and along the dimensions of a vector."""

    rects: dict[Name, QRectF]
    bands: Bands
    token: float
    dim: float
    size: QSizeF
    room: Room

    @classmethod
    def fitted(cls, scene: Scene, room: Room, width: float, height: float) -> Layout:
        """With cells as large as the room allows; where they would be tiny, taller than the room."""
        layouts = [_largest(scene, room, bands, width, height) for bands in BANDS]
        best = max(layouts, key=lambda layout: (layout.fits(width, height), layout.token))  # of equals the widest
        tokens = max(len(scene.queries), len(scene.keys), 14)
        if best.fits(width, height) and best.token * tokens >= _LEAST:
            return best.spread(scene, width)
        by_width = [_largest(scene, room, bands, width, float("inf"), _SCROLLED) for bands in BANDS]
        many = tokens * (_SCROLLED - 2) > 2 * _LEAST  # even small cells make large matrices
        least = 1.5 * _LEAST / tokens if many else _SCROLLED - 2
        large = [layout for layout in by_width if layout.fits(width, float("inf")) and layout.token >= least]
        chosen = large[0] if large else max(by_width, key=lambda layout: layout.token)
        while chosen.token > max(least, SMALLEST + 1) and chosen.band_height > height:  # each band can be seen whole
            chosen = cls.at(scene, room, chosen.token - 1, chosen.bands)
        return chosen.spread(scene, width)

    @classmethod
    def at(cls, scene: Scene, room: Room, token: float, bands: Bands) -> Layout:
        """With cells of `token` pixels along tokens."""
        dim, rects = _dim(scene, token, room.number), dict[Name, QRectF]()
        y, widest = room.margin, 0.0

        def size(name: Name) -> QSizeF:
            rows, columns = scene.matrices[name].values.shape
            sides = SIDES[name]
            return QSizeF(columns * (dim if sides[1] == "dim" else token), rows * (dim if sides[0] == "dim" else token))

        for band in bands:
            lead = max(_lead(name, size(ABOVE[name]).height() if name in ABOVE else 0.0, room) for name in band)
            x = room.margin + room.row_label
            for name in band:
                x += room.row_label if name == "output" else 0.0  # V has its keys' names at its left
                rects[name] = QRectF(x, y + lead, size(name).width(), size(name).height())
                if name in ABOVE:
                    above = size(ABOVE[name])
                    top = y + lead - room.caption - above.height()
                    rects[ABOVE[name]] = QRectF(x, top, above.width(), above.height())
                x += size(name).width() + room.gap
            widest = max(widest, x - room.gap + room.column_label / 2)  # the last slanted label
            y += lead + len(scene.queries) * token + room.margin
        return cls(rects, bands, token, dim, QSizeF(widest + room.margin, y), room)

    def spread(self, scene: Scene, width: float) -> Layout:
        """With what is left of the width between the matrices, as far as captions have use for it."""
        gaps = max(len(band) for band in self.bands) - 1
        narrowest = min(self.rects[name].width() for name in self.rects)
        wanted = self.room.caption_width - narrowest - self.room.gap
        more = min((width - self.size.width()) / max(gaps, 1), wanted)
        if more < 1:
            return self
        room = replace(self.room, gap=self.room.gap + int(more))
        return Layout.at(scene, room, self.token, self.bands)

    @property
    def band_height(self) -> float:
        """Of the tallest band."""
        ends = [self.rects[band[0]].bottom() + self.room.margin for band in self.bands]
        return max(end - start for start, end in zip((0.0, *ends), ends, strict=False))

    def fits(self, width: float, height: float) -> bool:
        return self.size.width() <= width and self.size.height() <= height

    def centred(self, width: float, height: float) -> Layout:
        """In the middle of a larger room, and as large as that."""
        size = QSizeF(max(width, self.size.width()), max(height, self.size.height()))
        right, down = (size.width() - self.size.width()) / 2, (size.height() - self.size.height()) / 2
        rects = {name: rect.translated(right, down) for name, rect in self.rects.items()}
        return replace(self, rects=rects, size=size)

    def cell_size(self, name: Name) -> QSizeF:
        rows, columns = SIDES[name]
        return QSizeF(self.dim if columns == "dim" else self.token, self.dim if rows == "dim" else self.token)

    def cell(self, place: Place) -> QRectF:
        """Where a number lies."""
        rect, size = self.rects[place.name], self.cell_size(place.name)
        left, top = rect.left() + place.column * size.width(), rect.top() + place.row * size.height()
        return QRectF(left, top, size.width(), size.height())

    def place_at(self, x: float, y: float) -> Place | None:
        """The number under a point."""
        for name, rect in self.rects.items():
            if rect.left() <= x < rect.right() and rect.top() <= y < rect.bottom():
                size = self.cell_size(name)
                return Place(name, int((y - rect.top()) / size.height()), int((x - rect.left()) / size.width()))
        return None

    def begins_band(self, name: Name) -> bool:
        return any(band[0] == name for band in self.bands)

    def is_topmost(self, name: Name) -> bool:
        """Whether nothing stands above it, so that it has the names of its columns there."""
        return name not in ABOVE

    def has_numbers(self, name: Name) -> bool:
        """Whether there is room for a number in each of its cells."""
        size = self.cell_size(name)
        return min(size.width(), size.height()) >= self.room.number


def _lead(name: Name, above: float, room: Room) -> float:
    """From the top of a band to a matrix of it, under which another of a height of `above` may stand."""
    labels = room.column_label if name not in ("q", "output") else 0.0
    return labels + room.caption + (above + room.caption if above else 0.0)


def _dim(scene: Scene, token: float, number: float) -> float:
    """A vector takes less room than the tokens do, until numbers are to be read in it."""
    if token >= number:
        return token
    dims = max(scene.view.q.shape[1], scene.view.v.shape[1])
    return max(_SMALLEST_DIM, min(token, float(int(_VECTOR * token * max(len(scene.keys), 8) / dims))))


def _largest(
    scene: Scene, room: Room, bands: Bands, width: float, height: float, most: float = LARGEST_FITTED
) -> Layout:
    """With the largest whole number of pixels with which it fits; `SMALLEST` where none does."""
    token = most
    while True:
        layout = Layout.at(scene, room, token, bands)
        if token <= SMALLEST or layout.fits(width, height):
            return layout
        token -= 1.0
