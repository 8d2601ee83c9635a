"""A word in two texts: how alike the model's vectors of it are, as a curve, in a plane, and as a map of all tokens."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QScrollArea,
    QSlider,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from attention_explorer.colour_maps import ColourTable
from attention_explorer.panels.effects.value_grid import ValueGrid
from attention_explorer.panels.effects.word_plane import WordPlane
from attention_explorer.panels.effects.words_shown import (
    clicked_word,
    curve,
    layer_name,
    points,
    sentence,
    similarity_grid,
    words_of,
)
from attention_explorer.session.effects_choices import LONGEST, EffectsChoices
from attention_explorer.widgets.bounded_area import BoundedArea
from attention_explorer.widgets.flow_layout import FlowLayout
from attention_explorer.widgets.in_sight import scroll_to
from attention_explorer.widgets.page import wrapped
from attention_explorer.widgets.plot.plot import Plot
from attention_explorer.widgets.rows import in_row
from attention_explorer.widgets.segments import Segments
from attention_explorer.widgets.together import Together
from attention_models.protocol.in_context import InContextView, place_of_word

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
