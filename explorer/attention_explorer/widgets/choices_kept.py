"""What is chosen in a panel and is no part of the state, as plain values to save and to go back to."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from PySide6.QtWidgets import QAbstractButton, QAbstractSlider, QComboBox, QDoubleSpinBox, QSpinBox, QWidget

from attention_explorer.widgets.segments import Segments

Value = bool | int | float | str

LONGEST = 4096
"""Characters of a text that is kept."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One choice: how it is read, how a person's choosing it is done again, and whether a value can be chosen."""

    get: Callable[[], Value]
    choose: Callable[[Value], object]
    allows: Callable[[Value], bool]


def choice_of(widget: QWidget) -> Choice:
    """Of a row of buttons, a check box, a number's field or a slider. TypeError for another kind of widget."""
    match widget:
        case Segments():
            return Choice(
                lambda: widget.current,
                lambda value: widget.button(int(value)).click(),
                lambda value: type(value) is int and widget.has(value) and not widget.button(value).isHidden(),
            )
        case QAbstractButton():
            return Choice(widget.isChecked, lambda on: widget.setChecked(bool(on)), lambda on: type(on) is bool)
        case QSpinBox() | QAbstractSlider():
            return Choice(
                widget.value,
                lambda value: widget.setValue(int(value)),
                lambda value: type(value) is int and widget.minimum() <= value <= widget.maximum(),
            )
        case QDoubleSpinBox():
            return Choice(
                widget.value,
                lambda value: widget.setValue(float(value)),
                lambda value: type(value) in (int, float) and widget.minimum() <= float(value) <= widget.maximum(),
            )
    raise TypeError(f"What is chosen in a {type(widget).__name__} cannot be kept without saying how.")


def number_choice(get: Callable[[], int], choose: Callable[[int], object], values: Sequence[int]) -> Choice:
    """Of something that has one of several numbers."""
    return Choice(get, lambda value: choose(int(value)), lambda value: type(value) is int and value in values)


def text_choice(
    get: Callable[[], str], choose: Callable[[str], object], texts: Collection[str] | None = None
) -> Choice:
    """Of something that says one of `texts`, or what a person may type; what is longer than files hold is not kept."""
    return Choice(
        lambda: text if len(text := get()) <= LONGEST else "",
        lambda value: choose(str(value)),
        lambda value: isinstance(value, str) and (len(value) <= LONGEST if texts is None else value in texts),
    )


def data_choice(box: QComboBox) -> Choice:
    """Of a list whose entries have words as their data, by these."""
    return text_choice(
        lambda: str(box.currentData()),
        lambda word: box.setCurrentIndex(box.findData(word)),
        [box.itemData(i) for i in range(box.count())],
    )


def values_of(choices: Mapping[str, Choice]) -> dict[str, Value]:
    return {name: choice.get() for name, choice in choices.items()}


def choose_again(choices: Mapping[str, Choice], values: Mapping[str, Value]) -> None:
    """Choose what was chosen. Values come from files: those that cannot be chosen are left alone."""
    for name, choice in choices.items():
        if name in values and choice.allows(values[name]) and choice.get() != values[name]:
            choice.choose(values[name])
