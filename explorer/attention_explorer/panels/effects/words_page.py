"""A word in two texts: how alike the model's vectors of it are, as a curve, in a plane, and as a map of all tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial

import numpy as np
from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetricsF, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QSlider,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from attention_explorer.look.colour_maps import ColourTable
from attention_explorer.panels.effects.value_grid import Grid, ValueGrid
from attention_explorer.session.effects_choices import LONGEST, EffectsChoices
from attention_explorer.widgets.layouts import FlowLayout, in_row
from attention_explorer.widgets.number_text import MINUS, nice_ticks, percent_text, tick_texts
from attention_explorer.widgets.page import wrapped
from attention_explorer.widgets.plot.figure import Axis, Figure, Series
from attention_explorer.widgets.plot.plot import Plot
from attention_explorer.widgets.scroll_areas import BoundedArea, scroll_to
from attention_explorer.widgets.segments import Segments
from attention_explorer.widgets.themed import ThemedWidget
from attention_explorer.widgets.together import Together
from attention_models.protocol.effects import InContextView, place_of_word
from attention_models.protocol.values import Token

# Tokens of two texts as points of a plane, by their first two principal components.


_REACH = 14.0
_DOT, _WORD_DOT = 3.5, 6.0
_SPARE = 0.08


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """`places` are (tokens, 2), of both texts; `text` says of each which, `is_word` whether it is of the word."""

    places: np.ndarray
    labels: tuple[str, ...]
    text: tuple[int, ...]
    is_word: tuple[bool, ...]
    explained: tuple[float, float]


class WordPlane(ThemedWidget):
    """Both axes in the same scale, so that distances are what they look like. A click chooses the token's word."""

    chosen = Signal(int)
    """A token, counted over both texts."""

    def __init__(self) -> None:
        super().__init__("Tokens of both texts in the plane of most variance")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMouseTracking(True)
        self._points: Points | None = None
        self._hover = -1

    @property
    def points(self) -> Points | None:
        return self._points

    def show_points(self, points: Points | None) -> None:
        self._points, self._hover = points, -1
        self.setToolTip("")
        self.setAccessibleDescription("" if points is None else "; ".join(map(self.said_of, range(len(points.labels)))))
        self.update()

    def said_of(self, place: int) -> str:
        """ "A, bank: 3.1, −0.2"."""
        assert self._points is not None
        x, y = tick_texts_of(self._points.places[place])
        return f"{'AB'[self._points.text[place]]}, {self._points.labels[place]}: {x}, {y}"

    def said_at(self, position: QPoint) -> str:
        return "principal component variance"

    def minimumSizeHint(self) -> QSize:
        return QSize(200, round(12 * QFontMetricsF(self.font()).height()))

    # geometry

    def _room(self) -> QRectF:
        line = QFontMetricsF(self.font()).height()
        return QRectF(self.rect()).adjusted(3.2 * line, 0.5 * line, -0.6 * line, -2.4 * line)

    def _scale(self) -> tuple[float, float, float]:
        """Pixels for one unit along either axis, and the values in the middle."""
        assert self._points is not None
        room, places = self._room(), self._points.places
        low, high = places.min(axis=0), places.max(axis=0)
        span = np.maximum(high - low, 1e-9) * (1 + 2 * _SPARE)
        pixels = min(max(10.0, room.width()) / span[0], max(10.0, room.height()) / span[1])
        middle = (low + high) / 2
        return float(pixels), float(middle[0]), float(middle[1])

    def point(self, place: int) -> QPointF:
        """Where a token lies, in the widget's pixels."""
        assert self._points is not None
        return self._at(*self._points.places[place].tolist())

    def _at(self, x: float, y: float) -> QPointF:
        pixels, across, up = self._scale()
        centre = self._room().center()
        return QPointF(centre.x() + (x - across) * pixels, centre.y() - (y - up) * pixels)

    def _nearest(self, position: QPointF) -> int:
        if self._points is None:
            return -1
        away = [(self.point(i) - position).manhattanLength() for i in range(len(self._points.labels))]
        best = min(range(len(away)), key=away.__getitem__)
        return best if away[best] <= _REACH else -1

    # painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self._points is None:
            self._draw_empty_text(painter)
            return
        self._draw_axes(painter, self._points)
        self._draw_points(painter, self._points)
        self._draw_focus_ring(painter)

    def _draw_axes(self, painter: QPainter, points: Points) -> None:
        room, metrics = self._room(), QFontMetricsF(self.font())
        pixels, across, up = self._scale()
        line = metrics.height()
        ends_x = across - room.width() / 2 / pixels, across + room.width() / 2 / pixels
        ends_y = up - room.height() / 2 / pixels, up + room.height() / 2 / pixels
        grid, dim = QPen(QColor(self._theme.border), 1), QColor(self._theme.text_dim)
        for ends, is_x in ((ends_x, True), (ends_y, False)):
            ticks = nice_ticks(*ends, max(2, int((room.width() if is_x else room.height()) / (5 * line))))
            for tick, text in zip(ticks, tick_texts(ticks), strict=True):
                at = self._at(tick, up) if is_x else self._at(across, tick)
                painter.setPen(grid)
                if is_x:
                    painter.drawLine(QPointF(at.x(), room.top()), QPointF(at.x(), room.bottom()))
                    place = QRectF(at.x() - 40, room.bottom() + 2, 80, line)
                    flags = Qt.AlignmentFlag.AlignHCenter
                else:
                    painter.drawLine(QPointF(room.left(), at.y()), QPointF(room.right(), at.y()))
                    place = QRectF(line, at.y() - line / 2, room.left() - line - 4, line)
                    flags = Qt.AlignmentFlag.AlignRight
                painter.setPen(dim)
                painter.drawText(place, flags | Qt.AlignmentFlag.AlignVCenter, text)
        painter.setPen(dim)
        self._draw_title(painter, points, 0, QRectF(room.left(), self.height() - line - 2, room.width(), line))
        painter.save()
        painter.translate(line / 2, room.center().y())
        painter.rotate(-90)
        self._draw_title(painter, points, 1, QRectF(-room.height() / 2, -line / 2, room.height(), line))
        painter.restore()

    def _draw_title(self, painter: QPainter, points: Points, component: int, rect: QRectF) -> None:
        title = f"component {component + 1}: {percent_text(points.explained[component])} of variance"
        shown = QFontMetricsF(self.font()).elidedText(title, Qt.TextElideMode.ElideRight, rect.width())
        painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, shown)

    def _draw_points(self, painter: QPainter, points: Points) -> None:
        metrics = QFontMetricsF(self.font())
        taken: list[QRectF] = []
        order = sorted(range(len(points.labels)), key=lambda i: (i != self._hover, not points.is_word[i]))
        for i in order:
            at, radius = self.point(i), _WORD_DOT if points.is_word[i] else _DOT
            colour = QColor(self._theme.query if points.text[i] == 0 else self._theme.key)
            painter.setPen(QPen(QColor(self._theme.surface), 1))
            painter.setBrush(colour)
            if points.text[i] == 0:
                painter.drawEllipse(at, radius, radius)
            else:  # the shape says it too, for eyes that see no colours
                painter.drawRect(QRectF(at.x() - radius, at.y() - radius, 2 * radius, 2 * radius))
            font = self.bold_font() if points.is_word[i] else self.font()
            width = QFontMetricsF(font).horizontalAdvance(points.labels[i])
            for dx, dy in ((radius + 3, -metrics.height() / 2), (-width - radius - 3, -metrics.height() / 2),
                           (-width / 2, -metrics.height() - radius - 1), (-width / 2, radius + 1)):  # fmt: skip
                rect = QRectF(at.x() + dx, at.y() + dy, width, metrics.height())
                if not any(rect.intersects(other) for other in taken) and QRectF(self.rect()).contains(rect):
                    taken.append(rect)
                    painter.setFont(font)
                    painter.setPen(colour if points.is_word[i] or i == self._hover else QColor(self._theme.text))
                    painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, points.labels[i])
                    break

    # pointer

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        hover = self._nearest(event.position())
        if hover != self._hover:
            self._hover = hover
            self.setToolTip("" if hover < 0 else self.said_of(hover))
            self.update()

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._hover = -1
        self.setToolTip("")
        self.update()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        place = self._nearest(event.position())
        if event.button() == Qt.MouseButton.LeftButton and place >= 0:
            self.chosen.emit(place)
        else:
            event.ignore()


def tick_texts_of(place: np.ndarray) -> tuple[str, str]:
    x, y = (f"{value:.3g}".replace("-", MINUS) for value in place.tolist())
    return x, y


# What is drawn and said of a word in two texts. Pure.


_WORD = re.compile(r"\w+(?:['’-]\w+)*|[^\w\s]")

MOST_BUTTONS = 300
"""Words of a text that can be clicked; those beyond are typed."""


def words_of(text: str) -> list[tuple[int, str]]:
    """The words of a text and where each begins."""
    return [(found.start(), found.group()) for found in _WORD.finditer(text)][:MOST_BUTTONS]


def layer_name(layer: int) -> str:
    return "the embedding" if layer == 0 else f"layer {layer - 1}"


def cosine_text(value: float, decimals: int = 3) -> str:
    """ "0.930"; what rounds to 0 has no sign."""
    return f"{round(value, decimals) + 0.0:.{decimals}f}".replace("-", MINUS)


def names(view: InContextView) -> tuple[str, str]:
    """What each word is called: ("bank", "bank")."""
    return view.request.words


def pair_name(view: InContextView) -> str:
    first, second = names(view)
    return f"“{first}” and “{second}”" if first != second else f"“{first}” in A and B"


def curve(view: InContextView) -> Figure:
    """Cosines over the layers; the embedding is 0, what leaves block l is l + 1."""
    x = np.arange(view.layers)
    low = min(0.0, float(np.nanmin(view.cosine)), float(view.anisotropy.min()), float(view.sentences.min()))
    return Figure(
        Axis("blocks that have run: 0 is the embedding", whole=True, text=lambda at: f"after {layer_name(int(at))}"),
        Axis("cosine", low=low, high=1.05, text=cosine_text),
        (
            Series(pair_name(view), x, view.cosine, "query", width=2.5, mark="circle"),
            Series("means of all tokens", x, view.sentences[:, 1], "key", mark="square", mark_size=5.0),
            Series("first tokens", x, view.sentences[:, 0], "text", mark="diamond", mark_size=5.0),
            Series("any two tokens", x, view.anisotropy, "text_dim", line="dashed"),
        ),
        names="legend",
    )


def _firsts(view: InContextView) -> str:
    first, second = (tokens[0].word for tokens in view.tokens)
    return first if first == second else f"{first}”, “{second}"


def points(view: InContextView, layer: int) -> Points:
    both = (*view.tokens[0], *view.tokens[1])
    count = len(view.tokens[0])
    return Points(
        places=view.plane[layer],
        labels=tuple(token.word for token in both),
        text=tuple(int(i >= count) for i in range(len(both))),
        is_word=tuple(i in view.positions[0] or i - count in view.positions[1] for i in range(len(both))),
        explained=(float(view.explained[layer, 0]), float(view.explained[layer, 1])),
    )


def similarity_grid(view: InContextView, layer: int, table: ColourTable) -> Grid:
    """Tokens of A down, of B across."""
    count = len(view.tokens[0])
    values = view.similarity[layer, :count, count:]
    down, across = ([token.word for token in tokens] for tokens in view.tokens)
    return Grid(
        values=values,
        row_labels=tuple(down),
        column_labels=tuple(across),
        low=min(0.0, float(values.min())),
        high=1.0,
        row_name="A \\ B",
        words=tuple(tuple(cosine_text(v, 2) for v in row) for row in values.tolist()),
        tips=tuple(
            tuple(
                f"“{a}” in A and “{b}” in B after {layer_name(layer)}: cosine {cosine_text(v)}"
                for b, v in zip(across, row, strict=True)
            )
            for a, row in zip(down, values.tolist(), strict=True)
        ),
        least_width=44.0,
        has_numbers=True,
        table=table,
    )


def sentence(view: InContextView, layer: int) -> str:
    """The figures of one layer, and what was averaged."""
    firsts, means = view.sentences[layer].tolist()
    said = (
        f"After {layer_name(layer)}: cosine of {pair_name(view)} {cosine_text(float(view.cosine[layer]))}, where any "
        f"two tokens have {cosine_text(float(view.anisotropy[layer]))}. The texts: by their first tokens "
        f"(“{_firsts(view)}”) {cosine_text(firsts)}, by the means of all their tokens {cosine_text(means)}."
    )
    return f"{said}{_pieces(view)}"


def _pieces(view: InContextView) -> str:
    """Which words are several tokens, whose vectors are averaged."""
    found = []
    for name, word, tokens, places in zip("AB", names(view), view.tokens, view.positions, strict=True):
        if len(places) > 1:
            pieces = " + ".join(f"“{tokens[i].word}”" for i in places)
            found.append(f"“{word}” in {name} is {len(places)} tokens ({pieces}), whose vectors are averaged")
    return f" {'; '.join(found)}." if found else ""


def clicked_word(text: str, token: Token) -> tuple[int, str] | None:
    """The word of the text that a token is of; None of one that covers none, as CLS."""
    if token.special or token.end <= token.start:
        return None
    return next(((at, word) for at, word in words_of(text) if at < token.end and at + len(word) > token.start), None)


CURVE, PLANE, MAP = range(3)
_PICTURES = (
    ("By layer", "The cosine of the two words after each layer"),
    ("In two dimensions", "All tokens of both texts, by their first two principal components"),
    ("Token by token", "The cosine of each token of A with each of B"),
)
_LEGENDS = (
    "cosine: 1 the same direction, 0 at right angles · click: that layer",
    "circles: A · squares: B · the words large · both axes in one scale: what lies near is alike as far as these two "
    "components say",
    "bright: alike · a click on a cell compares these two words",
)


_LINES = 3
"""Of words that can be clicked; more scroll."""

_NOT_YET = 9999
"""Where the slider stands until a layer is chosen, by a person or a session."""

_LEAST_HEIGHT = 240
"""Pixels of a picture; below that the page scrolls."""


class WordsPage(QWidget):
    asked = Signal(object)
    """Other texts or words, as fields of `EffectsChoices`."""

    def __init__(self) -> None:
        super().__init__()
        self._choices = EffectsChoices()
        self.view: InContextView | None = None
        self._table: ColourTable | None = None
        self.texts = tuple(_field(f"Text {name}") for name in "AB")
        self.words = tuple(_field(f"Word of text {name}") for name in "AB")
        self.buttons = tuple(_WordButtons(f"Words of text {name}") for name in "AB")
        for side in (0, 1):
            self.texts[side].editingFinished.connect(partial(self._on_text, side))
            self.words[side].editingFinished.connect(partial(self._on_word, side))
            self.buttons[side].chosen.connect(partial(self._choose, side))
        self.pictures = Segments(_PICTURES, "How the words are compared", wraps=True)
        self.pictures.chosen.connect(lambda _page: self._render())
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setAccessibleName("Layer")
        self.slider.setToolTip("After which layer: the embedding first")
        self.slider.setPageStep(1)
        self.slider.setRange(0, _NOT_YET)  # until it is known how many layers there are
        self.slider.setValue(_NOT_YET)
        self.slider.valueChanged.connect(lambda _value: self._render())
        self.at = QLabel()
        self.sentence, self.legend = wrapped(), wrapped(role="dim")
        self.plot = Plot("Cosine by layer", 200, grows=True)
        self.plot.cursor_moved.connect(lambda x: self.slider.setValue(round(x)))
        self.plane = WordPlane()
        self.plane.chosen.connect(self._on_point)
        self.map = ValueGrid("Cosine of each token of A with each of B")
        self.map.cell_selected.connect(self._on_cell)
        area = QScrollArea()
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.setWidget(self.map)
        area.setWidgetResizable(True)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setMinimumHeight(_LEAST_HEIGHT)
        self.plane.setMinimumHeight(_LEAST_HEIGHT)
        self.stack = QStackedWidget()
        for picture in (self.plot, self.plane, area):
            self.stack.addWidget(picture)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        self.layer_row = in_row(self.at, self.slider)
        self.slider.valueChanged.connect(Together(self.slider, self.stack).moved)
        for part in (self._fields(), self.pictures, self.layer_row):
            column.addWidget(part)
        column.addWidget(self.stack, 1)
        column.addWidget(self.sentence)
        column.addWidget(self.legend)

    def _fields(self) -> QWidget:
        fields = QWidget()
        grid = QGridLayout(fields)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(6)
        grid.setVerticalSpacing(3)
        for side, name in enumerate("AB"):
            grid.addWidget(QLabel(name), 2 * side, 0)
            grid.addWidget(self.texts[side], 2 * side, 1)
            grid.addWidget(QLabel("word"), 2 * side, 2)
            grid.addWidget(self.words[side], 2 * side, 3)
            grid.addWidget(self.buttons[side], 2 * side + 1, 1, 1, 3)
        grid.setColumnStretch(1, 3)
        grid.setColumnStretch(3, 1)
        return fields

    # ----------------------------------------------------------------- what it shows

    def show_choices(self, choices: EffectsChoices) -> None:
        self._choices = choices
        for side in (0, 1):
            _show(self.texts[side], choices.texts[side])
            _show(self.words[side], choices.words[side])
            place = place_of_word(choices.texts[side], choices.words[side], choices.starts[side])
            self.buttons[side].show_words(choices.texts[side], None if place is None else place[0])

    def show_view(self, view: InContextView | None, why: str, table: ColourTable) -> None:
        """What was found; or `why` there is nothing, "" while it is on its way."""
        is_new = view is not self.view or table is not self._table
        self.view, self._table = view, table
        if view is not None and self.slider.maximum() != view.layers - 1:
            chosen = self.slider.value()
            self.slider.setRange(0, view.layers - 1)
            self.slider.setValue(view.layers // 2 if chosen == _NOT_YET else chosen)
        for part in (self.pictures, self.layer_row, self.stack, self.legend):
            part.setVisible(view is not None)
        if view is None:
            self.sentence.setText(why or "The two texts are being run.")
        elif is_new:
            self._render()

    def _render(self) -> None:
        view, table = self.view, self._table
        if view is None or table is None:
            return
        layer, page = self.slider.value(), self.pictures.current
        self.at.setText(f"After {layer_name(layer)}")
        self.sentence.setText(sentence(view, layer))
        self.legend.setText(_LEGENDS[page])
        self.stack.setCurrentIndex(page)
        if page == CURVE:
            self.plot.set_figure(curve(view))
            self.plot.set_cursor(layer)
        elif page == PLANE:
            self.plane.show_points(points(view, layer))
        else:
            self.map.show_grid(similarity_grid(view, layer, table))
            self.map.set_selection(view.positions[0][-1], view.positions[1][-1])

    # ----------------------------------------------------------------- what is pressed

    def _on_text(self, side: int) -> None:
        text = _taken(self.texts[side])
        if text != self._choices.texts[side]:
            self._ask(texts=_with(self._choices.texts, side, text), starts=_with(self._choices.starts, side, None))

    def _on_word(self, side: int) -> None:
        word = _taken(self.words[side])
        if word != self._choices.words[side]:
            self._ask(words=_with(self._choices.words, side, word), starts=_with(self._choices.starts, side, None))

    def _choose(self, side: int, start: int, word: str) -> None:
        self._ask(words=_with(self._choices.words, side, word), starts=_with(self._choices.starts, side, start))

    def _on_point(self, place: int) -> None:
        if self.view is not None:
            count = len(self.view.tokens[0])
            self._choose_tokens({0: place} if place < count else {1: place - count})

    def _on_cell(self, row: int, column: int) -> None:
        self._choose_tokens({0: row, 1: column})

    def _choose_tokens(self, tokens: dict[int, int]) -> None:
        """The words that tokens are of, by the text and the place in it."""
        if self.view is None:
            return
        words, starts = self._choices.words, self._choices.starts
        for side, place in tokens.items():
            found = clicked_word(self.view.request.texts[side], self.view.tokens[side][place])
            if found is not None:
                starts, words = _with(starts, side, found[0]), _with(words, side, found[1])
        self._ask(words=words, starts=starts)

    def _ask(self, **changes: object) -> None:
        self.asked.emit(changes)


class _WordButtons(BoundedArea):
    """Each word of a text to click; of a long one some lines show, and scroll."""

    chosen = Signal(int, str)
    """Where the word begins, and the word."""

    def __init__(self, name: str) -> None:
        inside = QWidget()
        super().__init__(inside)
        self.setAccessibleName(name)
        self._line = FlowLayout(inside, gap=2, line_gap=2)
        self.verticalScrollBar().rangeChanged.connect(lambda _low, _high: self._reveal())  # they are laid out later
        self._text = ""
        self.buttons: dict[int, QPushButton] = {}

    def wanted_height(self) -> int:
        high = max((button.sizeHint().height() for button in self.buttons.values()), default=0)
        return min(self._line.heightForWidth(self.viewport().width()), _LINES * (high + 2))

    def show_words(self, text: str, chosen: int | None) -> None:
        """`chosen` is where the chosen word begins."""
        if text != self._text:
            self._text = text
            for button in self.buttons.values():
                self._line.removeWidget(button)
                button.hide()  # it is deleted only when this has ended
                button.deleteLater()
            self.buttons = {start: self._button(start, word) for start, word in words_of(text)}
            self.fit_height()
        for start, button in self.buttons.items():
            button.setChecked(start == chosen)
        if chosen in self.buttons:
            self._reveal()

    def _reveal(self) -> None:
        chosen = next((button for button in self.buttons.values() if button.isChecked()), None)
        if chosen is not None:
            scroll_to(self, chosen.geometry().center(), 0, chosen.height() // 2)

    def _button(self, start: int, word: str) -> QPushButton:
        button = QPushButton(word.replace("&", "&&"))
        button.setProperty("role", "flat")
        button.setCheckable(True)
        button.setToolTip("Compare this word")
        button.clicked.connect(lambda: self.chosen.emit(start, word))
        self._line.addWidget(button)
        return button


def _field(name: str) -> QLineEdit:
    field = QLineEdit()
    field.setAccessibleName(name)
    field.setToolTip(f"{name}: type, then Enter")
    field.setMaxLength(LONGEST)
    field.setMinimumWidth(60)
    return field


def _taken(field: QLineEdit) -> str:
    field.setModified(False)
    if not field.hasFocus():
        field.setCursorPosition(0)  # its beginning shows
    return field.text()


def _show(field: QLineEdit, text: str) -> None:
    if text != field.text() and not field.isModified():  # nobody is typing
        field.setText(text)
        field.setCursorPosition(0)


def _with(pair: tuple, side: int, value: object) -> tuple:  # type: ignore[type-arg]
    return (value, pair[1]) if side == 0 else (pair[0], value)
