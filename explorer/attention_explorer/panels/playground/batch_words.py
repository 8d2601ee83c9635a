"""A dissected step as lines, rows and sentences. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from attention_explorer.panels.about import About
from attention_explorer.widgets.cells_widget import NOWHERE, Cell, CellsWidget
from attention_explorer.widgets.number_text import MINUS, counted, percent_text, value_text
from attention_explorer.widgets.weight_table import WeightCell, WeightRow
from attention_models.protocol.gradient_breakdown import AdamStep, GradientBreakdown, NumericalGradient, TokenLoss

# One row of a batch, painted: what is read, what is to be said beneath it, and what each token costs.


_PAD = 6.0
_LEAST = 42.0  # width of a column: a loss of three digits
_DARKEST = 0.6  # opacity of the colour of a loss


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the grid; "" where there is nothing in a column. `shades` are from 0 to 1."""

    caption: str
    cells: tuple[str, ...]
    shades: tuple[float, ...] = ()


class BatchGrid(CellsWidget):
    """Columns are positions. A click or the arrow keys choose one at which something is to be said."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("One row of the batch", parent)
        self._lines: tuple[Line, ...] = ()
        self._tips: dict[int, str] = {}
        self._widths: tuple[float, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    @property
    def lines(self) -> tuple[Line, ...]:
        return self._lines

    def show_row(self, lines: Sequence[Line], tips: dict[int, str]) -> None:
        """`tips` are those of the columns that can be chosen, by column."""
        self._lines, self._tips = tuple(lines), tips
        self._measure()
        self._keep_cells()
        heard = (f"{line.caption}: {' '.join(cell or '–' for cell in line.cells)}" for line in self._lines)
        self.setAccessibleDescription(". ".join(heard))
        self.updateGeometry()
        self.update()

    # cells

    def shape(self) -> tuple[int, int]:
        return (1, len(self._widths)) if self._lines else (0, 0)

    def cell_rect(self, row: int, column: int) -> QRectF:
        left = self._caption_width() + sum(self._widths[:column])
        return QRectF(left, 0, self._widths[column], self._line_height() * len(self._lines))

    def tooltip_of(self, cell: Cell) -> str:
        return self._tips.get(cell[1], "")

    def _holds(self, cell: Cell) -> bool:
        return super()._holds(cell) and cell[1] in self._tips

    def _cell_at(self, position: QPointF) -> Cell:
        columns = range(len(self._widths))
        return next(((0, c) for c in columns if self.cell_rect(0, c).contains(position)), NOWHERE)

    def _with_labels(self, rect: QRectF) -> QRectF:
        return rect.adjusted(-self._caption_width(), 0, 0, 0)

    # geometry

    def _measure(self) -> None:
        metrics = QFontMetricsF(self.bold_font())
        cells = zip(*(line.cells for line in self._lines), strict=True)
        widths = (max(metrics.horizontalAdvance(text) for text in column) for column in cells)
        self._widths = tuple(max(_LEAST, width + 10) for width in widths)

    def _look_changed(self) -> None:
        self._measure()
        super()._look_changed()

    def _caption_width(self) -> float:
        metrics = QFontMetricsF(self.font())
        return max((metrics.horizontalAdvance(line.caption) for line in self._lines), default=0.0) + 2 * _PAD

    def _line_height(self) -> float:
        return QFontMetricsF(self.font()).height() + 8

    def sizeHint(self) -> QSize:
        width = self._caption_width() + sum(self._widths) + 1
        return QSize(round(width), round(self._line_height() * len(self._lines)) + 2)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    # painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for column in range(len(self._widths)):
            if self.cell_rect(0, column).intersects(QRectF(event.rect())):
                self._draw_column(painter, column)
        self._draw_captions(painter)
        self._draw_focus_ring(painter)

    def _draw_column(self, painter: QPainter, column: int) -> None:
        theme, rect, height = self._theme, self.cell_rect(0, column), self._line_height()
        is_chosen = (0, column) == self._selection
        if is_chosen or (0, column) == self._hover:
            painter.fillRect(rect, QColor(theme.surface_hover if is_chosen else theme.surface_alt))
        painter.setFont(self.bold_font() if is_chosen else self.font())
        for number, line in enumerate(self._lines):
            cell = QRectF(rect.left(), number * height, rect.width(), height)
            if line.shades and line.cells[column]:
                shade = QColor(theme.error)
                shade.setAlphaF(_DARKEST * min(1.0, max(0.0, line.shades[column])))
                painter.fillRect(cell.adjusted(1, 1, -1, -1), shade)
            painter.setPen(QColor(theme.text))
            painter.drawText(cell, Qt.AlignmentFlag.AlignCenter, line.cells[column])
        if is_chosen:
            painter.setPen(QPen(QColor(theme.focus), 1.5))
            painter.drawRect(rect.adjusted(1, 1, -1, -1))

    def _draw_captions(self, painter: QPainter) -> None:
        """At the left of what can be seen."""
        seen = self.visibleRegion().boundingRect()
        height = self._line_height()
        box = QRectF(seen.left(), 0, self._caption_width(), height * len(self._lines))
        painter.fillRect(box, QColor(self._theme.surface))
        painter.setFont(self.font())
        painter.setPen(QColor(self._theme.text_dim))
        for number, line in enumerate(self._lines):
            cell = QRectF(box.left(), number * height, box.width() - _PAD, height)
            painter.drawText(cell, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, line.caption)


_READS = {"decoder_input_ids": "Decoder reads"}  # the other is "input_ids"
READS, ENCODER_READS, IS_TO_SAY = "Reads", "Encoder reads", "Is to say"
PROBABILITY, LOSS = "Probability", "Loss"


def word(found: GradientBreakdown, id_: int) -> str:
    """A token as it is drawn."""
    return found.words[id_] if 0 <= id_ < len(found.words) else ""


def of_row(found: GradientBreakdown, row: int) -> dict[int, TokenLoss]:
    """The tokens that one row is learned from, by position."""
    return {token.place: token for token in found.tokens if token.row == row}


def lines_of(found: GradientBreakdown, row: int) -> tuple[Line, ...]:
    """What the model reads in one row of the batch, what it is to say, with which probability it does, the loss."""
    tokens = of_row(found, row)
    ids = [(name, rows[row]) for name, rows in found.inputs if name in ("input_ids", *_READS)]
    columns = max(len(found.labels[row]), *(len(read) for _, read in ids))
    alone = READS if len(ids) == 1 else ENCODER_READS
    reading = [Line(_READS.get(name, alone), _padded([word(found, i) for i in read], columns)) for name, read in ids]
    evenly = math.log(len(found.words))
    return (
        Line("Position", tuple(str(place) for place in range(columns))),
        *reading,
        Line(IS_TO_SAY, _by_place(columns, {place: word(found, token.label) for place, token in tokens.items()})),
        Line(PROBABILITY, _by_place(columns, {p: percent_text(token.probability) for p, token in tokens.items()})),
        Line(
            LOSS,
            _by_place(columns, {place: f"{token.loss:.3f}" for place, token in tokens.items()}),
            tuple(tokens[p].loss / evenly if p in tokens else 0.0 for p in range(columns)),
        ),
    )


def _padded(words: list[str], columns: int) -> tuple[str, ...]:
    return (*words, *[""] * (columns - len(words)))


def _by_place(columns: int, texts: dict[int, str]) -> tuple[str, ...]:
    return tuple(texts.get(place, "") for place in range(columns))


def tip(found: GradientBreakdown, token: TokenLoss) -> str:
    """What pointing at a position tells."""
    smoothed = f", {value_text(token.plain)} without label smoothing" if found.smoothing else ""
    return (
        f"Position {token.place}: reads “{word(found, token.read)}”, is to say “{word(found, token.label)}”.\n"
        f"Its probability is {percent_text(token.probability)}, the loss {value_text(token.loss)} nats{smoothed}."
    )


def heading(found: GradientBreakdown) -> str:
    rows, tokens = counted(found.rows, "row"), counted(len(found.tokens), "token")
    return f"Step {found.step:,}, not taken yet: {rows}, {tokens} to say"


def mean(found: GradientBreakdown) -> str:
    smoothed = f" (with label smoothing {found.smoothing:g})" if found.smoothing else ""
    return (
        f"The loss of the batch is {value_text(found.loss)} nats{smoothed}: the mean of the losses of its tokens. "
        "What is red costs much: at full strength as much as guessing evenly."
    )


def likeliest(found: GradientBreakdown, token: TokenLoss) -> tuple[WeightRow, ...]:
    """The tokens with the largest logits at a position; the right one beneath them where it is none of these."""
    listed = list(token.top)
    if all(id_ != token.label for id_, _, _ in listed):
        listed.append((token.label, token.logit, token.probability))
    return tuple(
        WeightRow(
            word(found, id_),
            (WeightCell(p, percent_text(p), value_text(logit)),),
            value="is to say" if id_ == token.label else "",
            tooltip=f"Press to see the gradient of a weight of “{word(found, id_)}”",
        )
        for id_, logit, p in listed
    )


def ids_of(token: TokenLoss) -> tuple[int, ...]:
    """Those of `likeliest`."""
    listed = tuple(id_ for id_, _, _ in token.top)
    return listed if token.label in listed else (*listed, token.label)


def short(parameter: str) -> str:
    """ "decoder.1.cross_attn.k_proj" of "model.decoder.layers.1.cross_attn.k_proj.weight"."""
    return parameter.removeprefix("model.").replace(".layers.", ".").removesuffix(".weight")


# --------------------------------------------------------------------------- the gradient of a weight


def rule(found: GradientBreakdown) -> str:
    output = found.output
    name = word(found, output.token)
    return (
        f"The logit of “{name}” is the sum of W[“{name}”, i] · h[i], with h the state that is made into logits. So the "
        f"gradient of W[“{name}”, {output.dimension}] is the sum of (p {MINUS} y) · h[{output.dimension}] / N "
        f"over the N = {len(output.terms):,} tokens to say: p is the probability of “{name}” there, "
        f"y what it should be."
    )


def sums(found: GradientBreakdown, row: int) -> tuple[tuple[str, float], ...]:
    """What the terms of one row add up to with the rest, down to autograd's own figure."""
    output = found.output
    here = math.fsum(term.term for term in output.terms if term.row == row)
    added = [
        (f"Row {row + 1}", here),
        (f"The other {counted(found.rows - 1, 'row')}", math.fsum(t.term for t in output.terms if t.row != row)),
        ("All rows", output.through_output),
    ]
    if output.through_embedding:
        added.append(("By way of the embedding, which is the same matrix", output.through_embedding))
        added.append(("Both ways", output.through_output + output.through_embedding))
    return (*added, ("PyTorch's own gradient", output.total))


def precise(value: float) -> str:
    """Five significant digits: as far as float32 agrees with a sum in float64."""
    text = re.sub(r"e-0*", "e-", f"{abs(value):.5g}")
    return MINUS + text if value < 0 else text


def adam(step: AdamStep, length: float, clip: float) -> str:
    first, second = step.betas
    cut = (
        f" All gradients together have a length of {value_text(length)}, more than {clip:g}, so it counts as "
        f"{precise(step.clipped)}."
        if step.clipped != step.gradient and length > clip
        else ""
    )
    return (
        f"Adam then moves the weight.{cut} "
        f"m = {first:g} · {precise(step.m_before)} + {1 - first:.2g} · {precise(step.clipped)} = {precise(step.m)}, "
        f"v = {second:g} · {precise(step.v_before)} + {1 - second:.2g} · {precise(step.clipped)}² = {precise(step.v)}; "
        f"divided by 1 {MINUS} {first:g}^{step.step} and 1 {MINUS} {second:g}^{step.step}: "
        f"{precise(step.m_corrected)} and {precise(step.v_corrected)}. "
        f"Learning rate {precise(step.rate)} · {precise(step.m_corrected)} / √{precise(step.v_corrected)} is taken "
        f"off: the weight goes from {precise(step.before)} to {precise(step.after)}."
    )


def deeper(found: NumericalGradient) -> str:
    index = ", ".join(str(i) for i in found.index)
    return (
        f"Deeper in the model the rule is applied layer by layer. Of {found.name}[{index}] it gives "
        f"{precise(found.gradient)}; moving that weight by ±{found.width:g} changes the loss from {found.below:.9f} to "
        f"{found.above:.9f}, which is {precise(found.difference)} for each unit."
    )


# --------------------------------------------------------------------------- what the (i) tells

_WHAT = (
    "The batch that the model learns from next, before it does: what it reads, what it is to say, and what each token "
    "costs by its probability."
)
_EMPTY = "The numbers appear while a training waits: they are of one step, and a training takes many in a second."
_TRY = "Try: click a position, then one of the tokens that are listed, and see the gradient of a weight of that token."


def about(found: GradientBreakdown | None, row: int) -> About:
    if found is None:
        return About((_WHAT, _EMPTY), _TRY)
    dearest = max(of_row(found, row).values(), key=lambda token: token.loss, default=None)
    costs = (
        f"In row {row + 1} “{word(found, dearest.label)}” at position {dearest.place} costs most, "
        f"{value_text(dearest.loss)} nats: it has a probability of {percent_text(dearest.probability)}."
        if dearest is not None
        else ""
    )
    output, farthest = found.output, max(found.moved, key=lambda one: one.update)
    embeds = f", and {precise(output.through_embedding)} by way of the embedding" if output.through_embedding else ""
    gradient = (
        f"The gradient of W[“{word(found, output.token)}”, {output.dimension}] is {precise(output.total)}: "
        f"{len(output.terms):,} terms that add up to {precise(output.through_output)}{embeds}."
    )
    moves = f"Of all parameters {short(farthest.name)} would move the farthest, by {value_text(farthest.update)}."
    return About.of((_WHAT, costs, gradient, moves), _TRY)
