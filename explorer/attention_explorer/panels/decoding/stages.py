"""The filters of a step one after the other: what each was given, what it cut, and what it left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QBrush, QColor, QFont, QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QVBoxLayout, QWidget

from attention_explorer.look.text_size import wide
from attention_explorer.panels.decoding.situation import count
from attention_explorer.widgets.items_widget import RowsWidget
from attention_explorer.widgets.number_text import percent_text
from attention_explorer.widgets.segments import Segments
from attention_explorer.widgets.token_text import byte_note
from attention_models.protocol.decoding import DecodeSettings, DecodeStepView, Stage

# Candidates of one step as bars: what the model says, what the settings leave of it, and who cut the rest.


_WIDEST_LABEL = 130.0
_PAD = 8.0
_MODEL, _KEPT = "model", "after cuts"


@dataclass(frozen=True)
class FilterRow:
    """One candidate. `probability` and `kept` are between 0 and 1; `cut_by` names the filter that cut it.

    `start` shifts the bar of `probability` to the right, as in a running sum.
    """

    label: str
    probability: float
    kept: float
    cut_by: str = ""
    chosen: bool = False
    tooltip: str = ""
    start: float = 0.0


class FilterBars(RowsWidget):
    """A click or Enter activates a row, Up and Down move between rows.

    Where nothing was changed there is one bar a row. Else the thin upper bar is the model's and the one below it is
    what the settings made of it; a cut candidate is hatched, and the filter's name stands where its share would.
    """

    keys_choose = False
    row_activated = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Candidates", parent)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._rows: tuple[FilterRow, ...] = ()
        self._changed = False
        self._names = _MODEL, _KEPT
        self._threshold: float | None = None

    def set_rows(
        self,
        rows: Sequence[FilterRow],
        names: tuple[str, str] = (_MODEL, _KEPT),
        threshold: float | None = None,
        always_two: bool = False,
    ) -> None:
        """Show candidates.

        Args:
            names: of what `probability` and `kept` are.
            threshold: a share at which a line is drawn: what a filter goes by.
            always_two: draw both bars also where they are alike.
        """
        self._rows, self._names, self._threshold = tuple(rows), names, threshold
        self._changed = always_two or any(row.cut_by or abs(row.kept - row.probability) > 1e-4 for row in rows)
        self._keep_items()
        self._current = next((i for i, row in enumerate(self._rows) if row.chosen), -1)
        said = (
            f"{row.label} {percent_text(row.probability)}" + (f", cut by {row.cut_by}" if row.cut_by else "")
            for row in self._rows
        )
        self.setAccessibleDescription("; ".join(said))
        self._look_changed()

    @property
    def rows(self) -> tuple[FilterRow, ...]:
        return self._rows

    def row_rect(self, row: int) -> QRectF:
        """Where a row lies."""
        height = self._row_height()
        return QRectF(0, self._head_height() + row * height, self.width(), height)

    def sizeHint(self) -> QSize:
        count = max(3, len(self._rows))
        return QSize(400, round(self._head_height() + count * self._row_height()))

    def minimumSizeHint(self) -> QSize:
        return QSize(240, self.sizeHint().height())

    def _row_height(self) -> float:
        return QFontMetricsF(self.font()).height() + 8

    def _head_height(self) -> float:
        return QFontMetricsF(self.font()).height() + 2 if self._changed else 0.0

    # painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if not self._rows:
            self._draw_empty_text(painter)
        else:
            self._draw_rows(painter)
        self._draw_focus_ring(painter)

    def _draw_rows(self, painter: QPainter) -> None:
        metrics, bold = QFontMetricsF(self.font()), QFontMetricsF(self.bold_font())
        label = min(_WIDEST_LABEL, max(bold.horizontalAdvance(row.label) for row in self._rows)) + 1
        number = max(bold.horizontalAdvance("100.0 %"), metrics.horizontalAdvance(self._names[0])) + _PAD
        kept = 0.0
        if self._changed:
            words = [self._names[1], *(row.cut_by for row in self._rows)]
            kept = max(number, *(metrics.horizontalAdvance(word) + _PAD for word in words))
            painter.setPen(QColor(self._theme.text_dim))
            head, right = QRectF(0, 0, self.width() - _PAD, self._head_height()), Qt.AlignmentFlag.AlignRight
            painter.drawText(head.adjusted(0, 0, -kept, 0), right, self._names[0])
            painter.drawText(head, right, self._names[1])
        most = max(1e-9, self._threshold or 0.0, *(max(row.start + row.probability, row.kept) for row in self._rows))
        for index, row in enumerate(self._rows):
            self._draw_row(painter, index, row, label, number, kept, most)
        if self._threshold is not None:
            room = self._bar_room(self.row_rect(0), label, number, kept)
            x = room.left() + room.width() * self._threshold / most
            painter.setPen(QPen(QColor(self._theme.text), wide(1.5), Qt.PenStyle.DashLine))
            painter.drawLine(QPointF(x, self._head_height()), QPointF(x, self.height()))

    def _draw_row(
        self, painter: QPainter, index: int, row: FilterRow, label: float, number: float, kept: float, most: float
    ) -> None:
        theme, rect = self._theme, self.row_rect(index)
        if index == self._hover or (index == self._current and self.hasFocus()):
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(theme.surface_hover))
            painter.drawRoundedRect(rect.adjusted(0, 1, 0, -1), 5, 5)
        font = self.bold_font() if row.chosen else QFont(self.font())
        middle, right = Qt.AlignmentFlag.AlignVCenter, Qt.AlignmentFlag.AlignRight
        struck = QFont(font)
        struck.setStrikeOut(bool(row.cut_by))
        painter.setFont(struck)
        painter.setPen(QColor(theme.text_dim if row.cut_by else theme.text))
        shown = QFontMetricsF(struck).elidedText(row.label, Qt.TextElideMode.ElideRight, label)
        painter.drawText(QRectF(_PAD, rect.top(), label, rect.height()), middle | right, shown)
        self._draw_bars(painter, row, self._bar_room(rect, label, number, kept), most)
        painter.setFont(font)
        painter.setPen(QColor(theme.text))
        numbers = rect.adjusted(0, 0, -_PAD - kept, 0)
        painter.drawText(numbers, middle | right, percent_text(row.probability))
        if self._changed:
            painter.setPen(QColor(theme.text_dim if row.cut_by else theme.text))
            painter.drawText(rect.adjusted(0, 0, -_PAD, 0), middle | right, row.cut_by or percent_text(row.kept))

    def _bar_room(self, rect: QRectF, label: float, number: float, kept: float) -> QRectF:
        """Where the bars of a row lie: what its texts leave."""
        start = label + 2 * _PAD
        return QRectF(start, rect.top() + 4, max(8.0, rect.width() - start - number - kept - _PAD), rect.height() - 8)

    def _draw_bars(self, painter: QPainter, row: FilterRow, room: QRectF, most: float) -> None:
        theme = self._theme
        solid = QColor(theme.query if row.chosen else theme.bar)
        model = QRectF(room)
        model.moveLeft(room.left() + room.width() * row.start / most)
        model.setWidth(max(2.0, room.width() * row.probability / most))
        painter.setPen(Qt.PenStyle.NoPen)
        if not self._changed:
            painter.setBrush(solid)
            painter.drawRoundedRect(model, min(3.0, model.width() / 2), 3)
            return
        if row.cut_by:
            painter.setPen(QPen(QColor(theme.border_strong), 1))
            painter.setBrush(QBrush(QColor(theme.border_strong), Qt.BrushStyle.BDiagPattern))
            painter.drawRect(model.adjusted(0.5, 0.5, -0.5, -0.5))
            return
        model.setHeight(room.height() * 0.32)
        painter.setBrush(QColor(theme.border_strong))
        painter.drawRoundedRect(model, 2, 2)
        rest = QRectF(room.left(), model.bottom() + 1, 0, room.bottom() - model.bottom() - 1)
        rest.setWidth(max(2.0, room.width() * row.kept / most))
        painter.setBrush(solid)
        painter.drawRoundedRect(rest, min(3.0, rest.width() / 2), 3)

    # pointer and keyboard

    def _choose(self, item: int) -> None:
        self.row_activated.emit(item)


# in the order in which they act
FILTERS = (
    "repetition penalty",
    "no repeated n-gram",
    "no n-gram of the source",  # this and those up to "suppressed at first" are a checkpoint's own
    "banned words",
    "least length",
    "least new tokens",
    "first token",
    "suppressed tokens",
    "suppressed at first",
    "temperature",
    "top-k",
    "top-p",
    "min-p",
)
_RESHAPE = ("repetition penalty", "temperature")


class StageButtons(QWidget):
    """All filters at once, or one of those that act. Hidden where none does."""

    stage_chosen = Signal()

    def __init__(self) -> None:
        super().__init__()
        every = ("All filters", "What the model says, and what all filters together leave of it")
        each = ((name[:1].upper() + name[1:], f"What {name} was given, and what it left") for name in FILTERS)
        self.buttons = Segments((every, *each), "Which filter", wraps=True)
        self.buttons.chosen.connect(lambda _: self.stage_chosen.emit())
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.buttons)
        self._acting: tuple[str, ...] = ()

    @property
    def current(self) -> int | None:
        """The place among the filters that act; None for all at once."""
        chosen = self.buttons.current
        return None if chosen == 0 else self._acting.index(FILTERS[chosen - 1])

    def show_stages(self, acting: Sequence[str]) -> None:
        self._acting = tuple(acting)
        if self.buttons.current and FILTERS[self.buttons.current - 1] not in acting:
            self.buttons.choose(0)
        for place, name in enumerate(FILTERS, 1):
            self.buttons.button(place).setVisible(name in acting)
        self.setVisible(bool(acting))


def overview(view: DecodeStepView) -> list[FilterRow]:
    """What the model says of each candidate, and what all filters together make of it."""
    chosen = view.chosen.id if view.chosen is not None else None
    return [
        FilterRow(
            label=candidate.label,
            probability=candidate.probability,
            kept=candidate.kept,
            cut_by=candidate.cut_by,
            chosen=candidate.id == chosen,
            tooltip=f"id {candidate.id}: logit {candidate.logit:.4f}, probability {candidate.probability:.6g}, "
            f"after the settings {candidate.kept:.6g}. Click to go this way.{byte_note(candidate.label)}",
        )
        for candidate in view.candidates
    ]


def stage_rows(view: DecodeStepView, place: int) -> list[FilterRow]:
    """What one filter was given of each candidate, and what it left."""
    stage = view.stages[place]
    before = view.stages[place - 1].shares if place else tuple(candidate.probability for candidate in view.candidates)
    so_far = {other.filter for other in view.stages[: place + 1]}
    chosen = view.chosen.id if view.chosen is not None else None
    return [
        FilterRow(
            label=candidate.label,
            probability=given,
            kept=left,
            cut_by=candidate.cut_by if candidate.cut_by in so_far else "",
            chosen=candidate.id == chosen,
            tooltip=f"id {candidate.id}: {given:.6g} before {stage.filter}, {left:.6g} after it; likelier tokens held "
            f"{ahead:.6g} together. Click to go this way.{byte_note(candidate.label)}",
            start=ahead if stage.filter == "top-p" else 0.0,
        )
        for candidate, given, left, ahead in zip(view.candidates, before, stage.shares, stage.ahead, strict=True)
    ]


def threshold(stage: Stage, settings: DecodeSettings) -> float | None:
    """The share that a filter goes by, where it goes by one."""
    if stage.filter == "top-p":
        return settings.top_p
    return settings.min_p * stage.peak if stage.filter == "min-p" and settings.min_p is not None else None


def stage_text(stage: Stage, settings: DecodeSettings, number: int, of: int) -> str:
    """ "2 of 3. Top-k keeps the 40 likeliest tokens. It cut 8,152 tokens, which held 12.4 %; 40 are left." """
    if stage.filter in _RESHAPE:
        did = f"It moved {percent_text(stage.moved)} of the probability from some tokens to others, and cut none"
    elif stage.tokens:
        verb = "held" if stage.tokens != 1 else "had"
        did = f"It cut {count(stage.tokens, 'token')}, which {verb} {percent_text(stage.moved)} of what was there"
        did += "; the others share that among them"
    else:
        did = "It cut nothing here"
    left = f"{count(stage.left, 'token')} {'is' if stage.left == 1 else 'are'} left"
    return f"{number} of {of}. {stage.meaning or _meaning(stage.filter, settings)} {did}. {left}."


def _meaning(name: str, settings: DecodeSettings) -> str:
    """What a filter does, with its number."""
    match name:
        case "repetition penalty":
            number = f"{settings.repetition_penalty:g}"
            return f"Logits of tokens seen before are divided by {number}, negative ones multiplied by it."
        case "no repeated n-gram":
            return f"Tokens that would write the same {settings.no_repeat_ngram} in a row a second time are cut."
        case "temperature":
            return f"All logits are divided by {settings.temperature:g}."
        case "top-k":
            return f"The {settings.top_k:,} likeliest tokens stay."
        case "top-p":
            return (
                f"The likeliest tokens stay, as many as it takes to reach {settings.top_p:g} together: each bar begins "
                "where the likelier ones end, and the line is at the sum to reach."
            )
    return f"Tokens stay that are at least {settings.min_p:g} times as likely as the likeliest: those beyond the line."


def cuts_text(view: DecodeStepView) -> str:
    """What each filter did in this step."""
    parts = []
    for cut in view.stages:
        if cut.tokens:
            parts.append(f"{cut.filter} cut {count(cut.tokens, 'token')} ({percent_text(cut.probability)})")
        else:
            reshapes = cut.filter in _RESHAPE
            parts.append(f"{cut.filter} {'changed the shares' if reshapes else 'cut nothing'}")
    drawn = f"The draw was {view.drawn:.4f} of 1." if view.drawn is not None else ""
    words = "; ".join(parts)
    said = f"{words[:1].upper()}{words[1:]}." if words else ""
    return " ".join(part for part in (said, drawn, unapplied_text(view)) if part)


def unapplied_text(view: DecodeStepView) -> str:
    """Which of the checkpoint's own settings do not act; "" where all do."""
    if not view.unapplied:
        return ""
    return f"The checkpoint's own {', '.join(view.unapplied)} acts in transformers' generate, and not here."
