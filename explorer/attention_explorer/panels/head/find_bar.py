"""Finding a place in a long text: by what a token says, or by its number."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLabel, QLineEdit, QToolButton, QWidget

from attention_explorer.widgets.number_field import WholeBox


class TokenSearch:
    """`words` are what tokens are called, `texts` what they add to the text, with the white space before them.

    Upper and lower case are alike, and every white space is a space.
    """

    def __init__(self, words: Sequence[str] = (), texts: Sequence[str] = ()) -> None:
        self.words, self.texts = tuple(words), tuple(texts)

    def __len__(self) -> int:
        return len(self.words)

    def places(self, wanted: str) -> list[int]:
        """The tokens that have `wanted` in them, and those where it begins when it takes several; rising."""
        wanted = " ".join(wanted.lower().split())
        if not wanted:
            return []
        found = {place for place, word in enumerate(self._words) if wanted in word}
        whole, ends = self._whole
        at = whole.find(wanted)
        while at >= 0:
            found.add(bisect_right(ends, at))
            at = whole.find(wanted, at + 1)
        return sorted(found)

    @cached_property
    def _words(self) -> tuple[str, ...]:
        return tuple(word.lower() for word in self.words)

    @cached_property
    def _whole(self) -> tuple[str, list[int]]:
        """All of the text, and where in it each token ends."""
        parts = ["".join(" " if c.isspace() else c for c in text.lower()) for text in self.texts]
        return "".join(parts), list(accumulate(map(len, parts)))


_SIDES = (("query", "Go to the row of the token: where it looks"), ("key", "Go to its column: who looks at it"))


class _Field(QLineEdit):
    """Enter asks for the next match, Shift+Enter for the one before, Escape empties it."""

    stepped = Signal(int)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.stepped.emit(-1 if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else 1)
        elif event.key() == Qt.Key.Key_Escape and self.text():
            self.clear()
        else:
            super().keyPressEvent(event)


class FindBar(QWidget):
    """A field for a token, with the number of its places, and which side they are of.

    `position`, a field for a number, belongs to it and is laid out by whoever holds it.
    """

    chosen = Signal(str, int)  # "query" or "key", and the position to go to

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._tokens = (TokenSearch(), TokenSearch())  # of the queries, of the keys
        self._matches: list[int] = []
        self._at = -1  # which match was gone to last
        self.field = _Field()
        self.field.setPlaceholderText("Find a token")
        self.field.setClearButtonEnabled(True)
        self.field.setAccessibleName("Find a token")
        self.field.setToolTip(
            "Part of a token, or words that take several (Ctrl+F). "
            "Enter goes to the next place, Shift+Enter to the one before."
        )
        self.field.textChanged.connect(self._search)
        self.field.stepped.connect(self.step)
        self.back = self._button(Qt.ArrowType.UpArrow, "The place before (Shift+Enter)", -1)
        self.on = self._button(Qt.ArrowType.DownArrow, "The next place (Enter)", 1)
        self.count = QLabel()
        self.count.setProperty("role", "dim")
        self.side = QComboBox()
        self.side.setAccessibleName("Which tokens to find")
        for name, meaning in _SIDES:
            self.side.addItem(f"as {name}", name)
            self.side.setItemData(self.side.count() - 1, meaning, Qt.ItemDataRole.ToolTipRole)
        self.side.setToolTip("Whether the place is one of the tokens that look (rows) or that are looked at (columns)")
        self.side.currentIndexChanged.connect(self._change_side)
        self.position = WholeBox(self)
        self.position.setAccessibleName("Position")
        self.position.setPrefix("position ")
        self.position.setKeyboardTracking(False)  # not after every digit
        self.position.setToolTip("Type a position and press Enter to go there")
        self.position.valueChanged.connect(lambda value: self.chosen.emit(self._side, value))
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(4)
        row.addWidget(self.field, 1)
        for widget in (self.back, self.on, self.count, self.side):
            row.addWidget(widget)
        self._search()

    def set_tokens(self, queries: TokenSearch, keys: TokenSearch) -> None:
        """The tokens of the queries, and those of the keys."""
        if [(t.words, t.texts) for t in (queries, keys)] != [(t.words, t.texts) for t in self._tokens]:
            self._tokens = (queries, keys)
            self._search()
        self._set_range()

    def set_place(self, query: int, key: int) -> None:
        """Where the selection is. Emits nothing."""
        self._place = (query, key)
        self.position.blockSignals(True)
        self.position.setValue(query if self._side == "query" else key)
        self.position.blockSignals(False)

    @property
    def matches(self) -> tuple[int, ...]:
        """The positions whose token has the text in it, or where it begins if it takes several."""
        return tuple(self._matches)

    def step(self, by: int) -> None:
        """Go to the next match, or to the one before; round at the ends."""
        if not self._matches:
            return
        if self._at < 0:  # the first from where the selection is
            here = self._place[0 if self._side == "query" else 1]
            after = next((i for i, place in enumerate(self._matches) if place >= here), 0)
            self._at = after if by > 0 else (after - 1) % len(self._matches)
        else:
            self._at = (self._at + by) % len(self._matches)
        self._show_count()
        self.chosen.emit(self._side, self._matches[self._at])

    _place = (0, 0)

    @property
    def _side(self) -> str:
        side: str = self.side.currentData()
        return side

    @property
    def _those(self) -> TokenSearch:
        return self._tokens[0 if self._side == "query" else 1]

    def _change_side(self) -> None:
        self._search()
        self._set_range()
        self.set_place(*self._place)

    def _set_range(self) -> None:
        self.position.blockSignals(True)
        self.position.setRange(0, max(0, len(self._those) - 1))
        self.position.blockSignals(False)

    def _search(self) -> None:
        self._matches = self._those.places(self.field.text())
        self._at = -1
        for button in (self.back, self.on):
            button.setEnabled(bool(self._matches))
        self._show_count()

    def _show_count(self) -> None:
        if not self.field.text().strip():
            self.count.setText("")
        elif not self._matches:
            self.count.setText("not there")
        elif self._at < 0:
            self.count.setText(f"{len(self._matches):,}")
        else:
            self.count.setText(f"{self._at + 1:,} of {len(self._matches):,}")

    def _button(self, arrow: Qt.ArrowType, tip: str, by: int) -> QToolButton:
        button = QToolButton()
        button.setArrowType(arrow)
        button.setToolTip(tip)
        button.setAccessibleName(tip)
        button.clicked.connect(lambda: self.step(by))
        return button
