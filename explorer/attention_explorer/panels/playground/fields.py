"""One switch of the form: its label, and a list, a tick or a number."""

from __future__ import annotations

from PySide6.QtCore import QSize, Signal, SignalInstance
from PySide6.QtWidgets import QCheckBox, QLabel, QVBoxLayout, QWidget

from attention_explorer.panels.playground.switches import Choose, Flag, Real, Switch, Whole
from attention_explorer.widgets.choices_kept import Choice, choice_of, data_choice
from attention_explorer.widgets.number_field import RealBox, WholeBox
from attention_explorer.widgets.whole_list_box import WholeListBox

_CHARACTERS = 16  # that a list shows
_WIDTH = 22  # characters


class SwitchField(QWidget):
    changed = Signal()

    def __init__(self, switch: Switch, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.switch = switch
        self.setToolTip(switch.tip)
        self.control, self._choice = _control(switch, self.changed)
        self.control.setToolTip(switch.tip)
        self.control.setAccessibleName(switch.label)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        if not isinstance(switch.kind, Flag):
            label = QLabel(switch.label)
            label.setProperty("role", "dim")
            label.setBuddy(self.control)
            column.addWidget(label)
        column.addWidget(self.control)
        column.addStretch(1)

    def sizeHint(self) -> QSize:
        """Each as wide as the others, so that they stand in columns."""
        width = self.fontMetrics().averageCharWidth() * _WIDTH
        return QSize(max(width, super().minimumSizeHint().width()), super().sizeHint().height())

    @property
    def choice(self) -> Choice:
        """For a session file."""
        return self._choice

    @property
    def word(self) -> str:
        """What is chosen in a list; "" of a tick or a number."""
        return str(self._choice.get()) if isinstance(self.switch.kind, Choose) else ""

    @property
    def asked(self) -> str:
        """What is set, as `--set` takes it; "" where that is the default, or where the switch changes nothing."""
        value, kind = self._choice.get(), self.switch.kind
        if self.isHidden() or value == default_of(self.switch):
            return ""
        if isinstance(kind, Flag):
            return "on" if value else "off"
        return f"{value:g}" if isinstance(kind, Real) else str(value)

    def set_back(self) -> None:
        self._choice.choose(default_of(self.switch))


def default_of(switch: Switch) -> bool | int | float | str:
    kind = switch.kind
    if isinstance(kind, Choose):
        return kind.words[0][0]
    return kind.on if isinstance(kind, Flag) else kind.default


def _control(switch: Switch, changed: SignalInstance) -> tuple[QWidget, Choice]:
    kind = switch.kind
    if isinstance(kind, Flag):
        box = QCheckBox(switch.label)
        box.setChecked(kind.on)
        box.toggled.connect(lambda _: changed.emit())
        return box, choice_of(box)
    if isinstance(kind, Choose):
        listed = WholeListBox()
        listed.setMinimumContentsLength(min(_CHARACTERS, max(len(label) for _, label in kind.words)))
        for word, label in kind.words:
            listed.addItem(label, word)
        listed.currentIndexChanged.connect(lambda _: changed.emit())
        return listed, data_choice(listed)
    field: WholeBox | RealBox
    if isinstance(kind, Whole):
        field = WholeBox()
        field.setRange(kind.least, kind.most)
        field.setSpecialValueText(kind.zero)
        field.setValue(kind.default)
    else:
        field = RealBox()
        field.setDecimals(kind.decimals)
        field.setRange(kind.least, kind.most)
        field.setSingleStep(kind.step)
        field.setValue(kind.default)
    field.valueChanged.connect(lambda _: changed.emit())
    return field, choice_of(field)
