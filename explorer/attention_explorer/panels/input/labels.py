"""The labels and buttons of the input panel."""

from __future__ import annotations

from PySide6.QtWidgets import QLabel, QPushButton, QWidget

from attention_explorer.widgets.said_label import SaidLabel


class KeyButton(QPushButton):
    """A button that says its key, where there is room for that; its tooltip says it everywhere."""

    def __init__(self, text: str, key: str, tooltip: str, action: object) -> None:
        super().__init__()
        self._name, self._key, self.says_key = text, key, True
        self.setAccessibleName(text)
        self.setToolTip(tooltip)
        self.clicked.connect(action)
        self._say()

    def set_key(self, key: str) -> None:
        self._key = key
        self._say()

    def set_says_key(self, says: bool) -> None:
        self.says_key = says
        self._say()

    @property
    def key_width(self) -> int:
        """Pixels that saying the key takes."""
        metrics = self.fontMetrics()
        return metrics.horizontalAdvance(self._with_key()) - metrics.horizontalAdvance(self._name)

    def _with_key(self) -> str:
        return f"{self._name}  ·  {self._key}"

    def _say(self) -> None:
        said = self._with_key() if self.says_key else self._name
        if said != self.text():
            self.setText(said)


def title(text: str, buddy: QWidget) -> QLabel:
    """The bold name of a field."""
    label = QLabel(text)
    label.setProperty("role", "title")
    label.setBuddy(buddy)
    return label


def dim() -> QLabel:
    """A dim label for what may hold a token."""
    label = SaidLabel()
    label.setProperty("role", "dim")
    return label


def mark(tooltip: str) -> QPushButton:
    """A word in a frame that can be pressed, whose place is kept while it is hidden."""
    made = QPushButton()
    made.setProperty("role", "mark")
    made.setToolTip(tooltip)
    policy = made.sizePolicy()
    policy.setRetainSizeWhenHidden(True)
    made.setSizePolicy(policy)
    return made
