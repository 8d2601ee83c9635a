"""Where the input panel's parts stand: the text (turns, a picture) and its buttons, the tokens, what is said."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QVBoxLayout, QWidget

from attention_explorer.panels.input.batch import BatchParts
from attention_explorer.panels.input.chat import ChatParts
from attention_explorer.panels.input.labels import KeyButton
from attention_explorer.panels.input.pair import PairParts
from attention_explorer.panels.input.target import TargetParts

_FIELD = 60
"""Letters that the text has room for before buttons say their keys."""


class InputBody(QWidget):
    """Lays out parts that the panel has made."""

    def __init__(
        self,
        heading: QWidget,
        text: QWidget,
        chat: ChatParts,
        batch: BatchParts,
        pair: PairParts,
        picture: QWidget,
        buttons: Sequence[QWidget],
        tokens: QWidget,
        target: TargetParts,
        said: Sequence[QWidget],
    ) -> None:
        """`said` are labels; the first two take the room that is left."""
        super().__init__()
        top = Qt.AlignmentFlag.AlignTop
        texts = QGridLayout()  # the two texts begin and end below each other
        texts.setHorizontalSpacing(10)
        texts.setVerticalSpacing(4)
        texts.setColumnStretch(1, 1)
        middle = Qt.AlignmentFlag.AlignVCenter
        for place, part in enumerate(batch.row):
            texts.addWidget(part, 0, place, *((Qt.AlignmentFlag.AlignRight | middle,) if place == 2 else ()))
        texts.addWidget(heading, 1, 0, top)
        texts.addWidget(text, 1, 1)
        texts.addWidget(chat.side, 1, 0, top)
        texts.addWidget(chat.turns, 1, 1)
        texts.addWidget(picture, 1, 0, 1, 2)  # in the place of the text
        line = QHBoxLayout()
        line.setSpacing(10)
        for part in buttons:
            line.addWidget(part, 0, middle)
        texts.addLayout(line, 1, 2, top)
        for place, part in enumerate(pair.row):
            texts.addWidget(part, 2, place, top | Qt.AlignmentFlag.AlignRight if place == 2 else top)
        texts.addWidget(tokens, 3, 0, 1, 3)
        self._buttons, self._line = tuple(buttons), line
        self._tokens, self._is_low = tokens, False
        self._texts, self._target_tokens = texts, target.area
        self._after_target = QHBoxLayout()
        self._after_target.setSpacing(10)
        self._after_target.addStretch(0)
        *before, last = target.row
        for place, part in enumerate(before):
            texts.addWidget(part, 4, place, top)
        self._after_target.addWidget(last, 0, top)
        texts.addLayout(self._after_target, 4, len(before))
        texts.addWidget(target.area, 5, 0, 1, 3)
        below = QHBoxLayout()
        below.setSpacing(10)
        below.addWidget(chat.legend)
        below.addWidget(pair.legend)
        for place, part in enumerate(said):
            below.addWidget(part, int(place < 2))
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addLayout(texts)
        column.addLayout(below)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._say_keys()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:  # a button came or went, or letters have another size
            self._say_keys()
        return super().event(event)

    def _say_keys(self) -> None:
        """The keys stand on the buttons where the text keeps its room."""
        shown = [button for button in self._buttons if not button.isHidden()]
        keyed = [button for button in shown if isinstance(button, KeyButton)]
        taken = sum(button.sizeHint().width() + self._line.spacing() for button in shown)
        taken += sum(button.key_width for button in keyed if not button.says_key)
        says = self.width() - taken >= _FIELD * self.fontMetrics().averageCharWidth()
        for button in keyed:
            button.set_says_key(says)

    def set_low(self, low: bool) -> None:
        """In a low window the target's tokens stand beside it, not below."""
        self._is_low = low
        if self._texts.indexOf(self._tokens) < 0:
            return  # they are given away
        if low:
            self._texts.removeWidget(self._target_tokens)
            self._after_target.insertWidget(1, self._target_tokens, 1)
        else:
            self._after_target.removeWidget(self._target_tokens)
            self._texts.addWidget(self._target_tokens, 5, 0, 1, 3)

    def give_tokens(self) -> tuple[QWidget, QWidget]:
        """The tokens of the text and of the target, to be shown elsewhere until `take_tokens`."""
        self._texts.removeWidget(self._tokens)
        (self._after_target if self._is_low else self._texts).removeWidget(self._target_tokens)
        return self._tokens, self._target_tokens

    def take_tokens(self) -> None:
        """Put the tokens back in their places."""
        self._texts.addWidget(self._tokens, 3, 0, 1, 3)
        self._texts.addWidget(self._target_tokens, 5, 0, 1, 3)
        if self._is_low:
            self.set_low(True)
