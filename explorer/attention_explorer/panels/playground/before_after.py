"""A checkpoint as it was and as it has become: held-out rows, and what each writes after a prompt, or says of it."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QLabel, QPushButton, QVBoxLayout, QWidget

from attention_explorer.panels.playground.pairs import Pairs
from attention_explorer.panels.playground.training_sentences import losses, standing
from attention_explorer.session.training import TrainingState
from attention_explorer.widgets.bar_list import BarGroup, BarList, BarRow, groups_beside
from attention_explorer.widgets.long_words import breakable
from attention_explorer.widgets.number_text import percent_text
from attention_explorer.widgets.page import wrapped
from attention_models.protocol.training_messages import Classified, Wrote

_TWO_COLUMNS = 380  # pixels
_GAP = 8


class BeforeAfter(QWidget):
    compared = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.losses, self.standing, self.sentence = wrapped(role="heading"), wrapped(role="dim"), wrapped()
        self.before, self.after = _Side("Before"), _Side("After")
        self.compare = QPushButton("Compare the two")
        self.compare.setToolTip("Show every head of the model before and after, in Compare")
        self.compare.clicked.connect(lambda: self.compared.emit())
        self._sides = Pairs((self.before, self.after), _TWO_COLUMNS, _GAP)
        self.classified, self.classes = wrapped(role="dim"), BarList()
        self.classes.setAccessibleName("Classes before and after")
        self._found: Classified | None = None
        self._is_wide = False
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        for label in (self.losses, self.standing, self.sentence):
            column.addWidget(label)
        for widget in (self._sides, self.classified, self.classes):
            column.addWidget(widget)
        column.addWidget(self.compare, 0, Qt.AlignmentFlag.AlignLeft)
        self.show_training(None)

    def show_training(self, training: TrainingState | None) -> None:
        self.setVisible(training is not None)
        if training is None:
            return
        for label, text in (
            (self.losses, losses(training)),
            (self.standing, standing(training)),
            (self.sentence, training.sentence),
        ):
            label.setText(text)
            label.setVisible(bool(text))
        self.losses.setToolTip(f"The mean in nats a {training.curves.of}, over rows that it never learns from")
        wrote, self._found = training.wrote, None
        self._sides.setVisible(isinstance(wrote, Wrote))
        for widget in (self.classified, self.classes):
            widget.setVisible(isinstance(wrote, Classified))
        if isinstance(wrote, Classified):
            self._show_classes(wrote)
        elif wrote is not None:
            self.before.show_text("Before", wrote.prompt, wrote.before)
            self.after.show_text(f"After step {wrote.step:,}", wrote.prompt, wrote.after)
        self.compare.setVisible(training.step > 0)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self._found is not None and self._is_wide != (groups_beside(self.width()) > 1):
            self._show_classes(self._found)

    def _show_classes(self, found: Classified) -> None:
        """Beside each other where there is room; else each class in one bar, with an outline of what it was."""
        self._found, self._is_wide = found, groups_beside(self.width()) > 1
        texts = " · ".join(text for text in (found.prompt, found.second) if text)
        others = f" · {found.others:,} less likely classes are left out" if found.others else ""
        self.classified.setText(breakable(f"{texts}{others}"))
        after = f"After step {found.step:,}"
        if self._is_wide:
            before = BarGroup("Before", tuple(_bar(one.label, one.before) for one in found.classes))
            groups = [before, BarGroup(after, tuple(_bar(one.label, one.after) for one in found.classes))]
        else:
            rows = tuple(_bar(one.label, one.after, one.before) for one in found.classes)
            groups = [BarGroup(f"{after}; before: the outline", rows)]
        self.classes.set_groups(groups)


def _bar(label: str, share: float, before: float | None = None) -> BarRow:
    was = "" if before is None else f", was {percent_text(before)}"
    tooltip = f"“{label}”: probability {share:.6g}" + ("" if before is None else f", was {before:.6g}")
    return BarRow(label, share, f"{percent_text(share)}{was}", before=before, tooltip=tooltip, acts=False)


class _Side(QWidget):
    """What one of the two writes."""

    def __init__(self, title: str) -> None:
        super().__init__()
        self.title = QLabel(title)
        self.title.setProperty("role", "title")
        self.prompt, self.text = wrapped(role="dim"), wrapped()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        for label in (self.title, self.prompt, self.text):
            column.addWidget(label)
        column.addStretch(1)

    def show_text(self, title: str, prompt: str, text: str) -> None:
        self.title.setText(title)
        self.prompt.setText(prompt)
        written = text.lstrip() or "It writes nothing: it ends at once."
        shown = breakable(written)
        self.text.setText(shown)
        flags = Qt.TextInteractionFlag
        self.text.setTextInteractionFlags(flags.TextSelectableByMouse if shown == written else flags.NoTextInteraction)
