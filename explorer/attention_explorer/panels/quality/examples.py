"""Sentences of one length, one at a time: the source, a reference, and what each model made of it."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QLabel, QPushButton, QVBoxLayout, QWidget

from attention_explorer.panels.quality.quality_sentences import Style
from attention_explorer.theme import LIGHT, Theme
from attention_explorer.widgets.flow_layout import FlowLayout
from attention_explorer.widgets.page import wrapped
from attention_explorer.widgets.rows import clear
from attention_models.protocol.quality import QualityBin, QualityExample


class ExamplesView(QWidget):
    used = Signal(str)  # a sentence to put into the input

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = LIGHT
        self._bin: QualityBin | None = None
        self._styles: Sequence[Style] = ()
        self._unit = ""
        self._at = 0
        self.place = QLabel()
        self.place.setProperty("role", "dim")
        self.back, self.next = QPushButton("‹"), QPushButton("›")
        self.use = QPushButton("Use this")
        for button, tip in (
            (self.back, "The sentence before"),
            (self.next, "The next sentence"),
            (self.use, "Put this sentence into the input, to see how the open model reads it"),
        ):
            button.setToolTip(tip)
            button.setAccessibleName(tip)
        self.source, self.reference = wrapped(role="title"), wrapped(role="dim")
        self.written = QVBoxLayout()
        self.written.setSpacing(4)
        row = QWidget()
        flow = FlowLayout(row, gap=6)
        for widget in (self.back, self.next, self.use, self.place):
            flow.addWidget(widget)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addWidget(row)
        column.addWidget(self.source)
        column.addWidget(self.reference)
        column.addLayout(self.written)
        self.back.clicked.connect(lambda: self._go(-1))
        self.next.clicked.connect(lambda: self._go(1))
        self.use.clicked.connect(lambda: self.used.emit(self.example.source))
        self._show()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self._show()

    def set_bin(self, bin_: QualityBin | None, named: Sequence[Style], unit: str) -> None:
        """Begin with the first sentence that tells the models apart; None shows nothing."""
        if bin_ is not self._bin or tuple(named) != tuple(self._styles):
            self._bin, self._styles, self._unit = bin_, tuple(named), unit
            self._at = 0 if bin_ is None else telling(bin_.examples)
            self._show()

    @property
    def example(self) -> QualityExample:
        assert self._bin is not None
        return self._bin.examples[self.place_of_example]

    @property
    def place_of_example(self) -> int:
        """Of the sentence that is read, among those of its length."""
        return self._at

    def _go(self, step: int) -> None:
        if self._bin is not None:
            self._at = (self._at + step) % self._bin.sentences
            self._show()

    def _show(self) -> None:
        self.setVisible(self._bin is not None)
        if self._bin is None:
            return
        example = self.example
        self.place.setText(f"{self._bin.name} {self._unit}: {self._at + 1} of {self._bin.sentences:,}")
        self.source.setText(example.source)
        self.reference.setText("  |  ".join(example.references[:4]))
        clear(self.written)
        for style, text, exact in zip(self._styles, example.written, example.exact, strict=True):
            label = wrapped(f"{style.name}{' ✓' if exact else ''}: {text or 'nothing'}")
            label.setStyleSheet(f"color: {getattr(self._theme, style.role)};")
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            self.written.addWidget(label)


def telling(examples: Sequence[QualityExample]) -> int:
    """The first sentence that some models have right and others not; else the first one."""
    return next((i for i, example in enumerate(examples) if len(set(example.exact)) > 1), 0)
