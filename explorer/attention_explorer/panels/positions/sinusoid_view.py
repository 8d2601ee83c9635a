"""The textbook's sinusoids: waves, the whole table, how alike positions are, and wavelengths."""

from __future__ import annotations

import numpy as np
from PySide6.QtWidgets import QHBoxLayout, QLabel, QWidget

from attention_explorer.look.colour_maps import sequential
from attention_explorer.panels.positions.sections import Page, SideBySide, flow, heading, sentence
from attention_explorer.panels.positions.table_image import TableImage
from attention_explorer.panels.positions.waveforms import Wave, Waveforms
from attention_explorer.widgets.number_field import WholeBox
from attention_explorer.widgets.plot.figure import Axis, Figure, Series
from attention_explorer.widgets.plot.plot import Plot
from attention_explorer.widgets.segments import Segments
from attention_models.textbook import waves

_INTRO = (
    "Attention sees a set of words. To tell it their order, every position gets a vector of waves, fast to slow: "
    "dimension 2i is sin(position / base^(2i/width)), dimension 2i+1 the cosine (Vaswani et al. 2017, section 3.5)."
)


_ALIBI = (
    "Nothing is added to the embedding. Each head takes a fixed amount from its scores for every token of distance: "
    "1/2, 1/4, ... 1/256 for eight heads. Steep heads look near, flat ones far (Press et al. 2022)."
)
_SLOPED_HEADS, _SLOPED_TOKENS = 8, 32


class SinusoidView(Page):
    """Needs no model. The cursor's position is one for all pictures."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Sinusoids", parent)
        self.positions = _box(WholeBox(), 2, 512, 64, "How many positions are drawn")
        self.width_box = _box(WholeBox(), 4, 512, 64, "How many dimensions a position's vector has")
        self.width_box.setSingleStep(2)
        self.base = WholeBox()
        self.base.setRange(2, 1_000_000)
        self.base.setValue(10_000)
        self.base.setGroupSeparatorShown(True)
        self.base.setStepType(WholeBox.StepType.AdaptiveDecimalStepType)
        self.base.setToolTip("What the slowest wave grows with: 10,000 in the paper")
        self.waveforms = Waveforms()
        self.table = TableImage("The table of all positions")
        self.table.set_titles("position", "dimension")
        self.kind = Segments(
            [
                ("Dot product", "Multiply the vectors of two positions and add up"),
                ("Distance", "How far apart the vectors of two positions are"),
            ],
            "What is compared",
            wraps=True,
        )
        self.alike = TableImage("Every two positions compared", square=True)
        self.alike.set_titles("position", "position")
        self.by_distance = Plot("The cursor's position compared with all others", 230)
        self.lengths = Plot("Wavelengths")
        self.lengths_note = sentence()
        self.slopes = Plot("ALiBi's slopes")

        self.add(sentence(_INTRO), self._controls(), heading("Waves: drag the line to move the position"))
        self.add(self.waveforms)
        self.add(heading("The whole table: one row a position"), self.table)
        self.add(heading("How alike are two positions?"), self.kind, SideBySide(self.alike, self.by_distance))
        self.add(sentence("The dot product depends on the distance alone, wherever the two positions are."))
        self.add(heading("Wavelength of each pair of dimensions"), self.lengths_note, self.lengths)
        self.add(heading("Another way: slopes instead of waves (ALiBi)"), sentence(_ALIBI), self.slopes)
        self.end()

        self._position, self._row = 13, 1
        self._compared = self._position  # the position that the plot compares with the cursor's
        self._pairs: list[int] = []
        for box in (self.positions, self.width_box, self.base):
            box.valueChanged.connect(self._rebuild)
        self.waveforms.cursor_moved.connect(self.set_position)
        self.waveforms.row_chosen.connect(self._choose_row)
        self.waveforms.pair_stepped.connect(self._step_pair)
        self.table.chosen.connect(self._on_table)
        self.alike.chosen.connect(lambda row, _: self.set_position(row))
        self.lengths.cursor_moved.connect(lambda pair: self._set_pair(self._row, round(pair)))
        self.by_distance.cursor_moved.connect(self._on_compared)
        self.kind.chosen.connect(lambda _: self._compare())
        self._draw_slopes()
        self._rebuild()

    @property
    def position(self) -> int:
        return self._position

    @property
    def pairs(self) -> tuple[int, ...]:
        """The pairs whose waves are drawn."""
        return tuple(self._pairs)

    @property
    def width_shown(self) -> int:
        """Numbers of a position's vector."""
        return int(self._values.shape[1])

    @property
    def wavelengths(self) -> tuple[float, float]:
        """Of the fastest and of the slowest pair, in positions a round."""
        return float(self._wavelengths[0]), float(self._wavelengths[-1])

    def set_position(self, position: int) -> None:
        """Move the cursor of all pictures."""
        if position != self._position:
            self._position = position
            self._draw()

    def _controls(self) -> QWidget:
        named = []
        for name, box in (("Positions", self.positions), ("Width", self.width_box), ("Base", self.base)):
            label = QLabel(name)
            label.setBuddy(box)
            label.setProperty("role", "dim")
            box.setAccessibleName(name)
            group = QWidget()
            line = QHBoxLayout(group)
            line.setContentsMargins(0, 0, 6, 0)
            line.addWidget(label)
            line.addWidget(box)
            named.append(group)
        return flow(*named)

    def _rebuild(self) -> None:
        count, width, base = self.positions.value(), self.width_box.value() // 2 * 2, self.base.value()
        self._values = waves.sinusoidal(count, width, base)
        self._wavelengths = waves.wavelengths(width, base)
        last = width // 2 - 1
        if not self._pairs or max(self._pairs) > last:  # else what the person chose stays
            self._pairs = sorted({0, width // 16, width // 8, width // 4} - {last + 1})
        self._row = min(self._row, len(self._pairs) - 1)
        self._position = min(self._position, count - 1)
        self.table.set_values(self._values, -1.0, 1.0)
        wavelengths = Series("λ", np.arange(last + 1), self._wavelengths)
        x, y = Axis("pair of dimensions", whole=True), Axis("positions a round", log=True)
        self.lengths.set_figure(Figure(x, y, (wavelengths,)))
        self._compare()

    def _compare(self) -> None:
        compare = waves.dot_products if self.kind.current == 0 else waves.distances
        self._alike = compare(self._values)
        self.alike.set_values(self._alike, float(self._alike.min()), float(self._alike.max()), sequential())
        self._draw()

    def _draw(self) -> None:
        position, count = self._position, len(self._values)
        shown = [
            Wave(
                p,
                float(self._wavelengths[p]),
                float(self._values[position, 2 * p]),
                float(self._values[position, 2 * p + 1]),
            )
            for p in self._pairs
        ]
        self.waveforms.set_waves(shown, count, position, self._row)
        pair = self._pairs[self._row]
        self.table.set_cross(position, 2 * pair)
        self.table.set_sentence(lambda row, column, value: f"position {row}, dimension {column}: {value}")
        self.alike.set_cross(position, position)
        what = "dot product" if self.kind.current == 0 else "distance"
        self.alike.set_sentence(lambda row, column, value: f"{row} and {column}: {what} {value}")
        apart = np.arange(count) - position
        x = Axis(f"places after position {position}", whole=True)
        self.by_distance.set_figure(Figure(x, Axis(what), (Series(what, apart, self._alike[position]),)))
        self.by_distance.set_cursor(self._compared - position)
        self.lengths.set_cursor(pair)
        slowest = self._wavelengths[-1]
        self.lengths_note.setText(
            f"From {self._wavelengths[0]:.2f} positions a round to {slowest:,.0f}: each pair is slower than the one "
            f"before by the same factor, {self._wavelengths[1] / self._wavelengths[0]:.3f}."
        )

    def _draw_slopes(self) -> None:
        apart = np.arange(-_SLOPED_TOKENS, 1)
        slopes = waves.alibi_slopes(_SLOPED_HEADS)
        named = {0, _SLOPED_HEADS - 1}
        series = tuple(
            Series(
                f"head {head}",
                apart,
                slope * apart,
                "bar" if head in named else "border_strong",
                context=head not in named,
            )
            for head, slope in enumerate(slopes)
        )
        x = Axis("key's place less query's place", whole=True)
        self.slopes.set_figure(Figure(x, Axis("added to the score"), series))
        self.slopes.set_cursor(-_SLOPED_TOKENS // 2)

    def _on_compared(self, apart: float) -> None:
        self._compared = self._position + round(apart)

    def _choose_row(self, row: int) -> None:
        self._row = row
        self._draw()

    def _step_pair(self, row: int, by: int) -> None:
        self._set_pair(row, self._pairs[row] + by)

    def _set_pair(self, row: int, pair: int) -> None:
        pair = min(max(pair, 0), len(self._wavelengths) - 1)
        if self._pairs[row] != pair:
            self._pairs[row] = pair
            self._draw()

    def _on_table(self, row: int, column: int) -> None:
        self._position = row
        self._pairs[self._row] = column // 2
        self._draw()


def _box(box: WholeBox, low: int, high: int, value: int, tooltip: str) -> WholeBox:
    box.setRange(low, high)
    box.setValue(value)
    box.setToolTip(tooltip)
    return box
