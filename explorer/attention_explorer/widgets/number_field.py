"""Fields for numbers that read what is typed alike under every desktop language.

They write ASCII digits and "."; they read "." and "," as the decimal mark, the digits of every script, and 1e3.
"""

from __future__ import annotations

import re
import unicodedata
from fractions import Fraction

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QKeyEvent, QValidator
from PySide6.QtWidgets import QDoubleSpinBox, QLineEdit, QSpinBox, QWidget

_SIGNS = {
    "\N{MINUS SIGN}": "-",
    "\N{ARABIC DECIMAL SEPARATOR}": ".",
    "\N{ARABIC COMMA}": ",",
    "\N{FULLWIDTH FULL STOP}": ".",
    "\N{FULLWIDTH COMMA}": ",",
}
# what some languages put between thousands besides "." and ",", and the marks that turn a line's direction
_IGNORED = frozenset("\N{ARABIC THOUSANDS SEPARATOR}\N{RIGHT SINGLE QUOTATION MARK}'_\u200e\u200f\u061c")
_GROUPED = re.compile(r"[+-]?\d{1,3}([.,])\d{3}(?:\1\d{3})*")  # 10,000 and 1.234.567
_BEGINNINGS = frozenset({"", "+", "-", ".", ",", "-.", "-,"})
_UNSIGNED = frozenset({"", "+", ".", ","})
_POWER = re.compile(r"(.*\d[.,]?)[eE]([+-]?\d{0,3})")  # 1e3, and what is on the way to it: 1e, 1e-
Result = tuple[QValidator.State, str, int]


def read_real(text: str) -> float:
    """The number in `text`; one mark is a decimal mark, marks before it or repeated part thousands.

    0.5, 0,5, 5e-1 and ٠٫٥ are a half, 1.234,5 and 1,234.5 the same, and 1,000 is 1.

    Raises:
        ValueError: there is no number, or an infinite one.
    """
    plain = _plain(text)
    marks = [character for character in plain if character in ".,"]
    if len(marks) > 1:
        decimal = marks[-1] if marks.count(marks[-1]) == 1 else ""
        whole, _, fraction = plain.rpartition(decimal) if decimal else (plain, "", "0")
        if not _GROUPED.fullmatch(whole):
            raise ValueError(f"“{text}” is no number")
        plain = f"{re.sub('[.,]', '', whole)}.{fraction}"
    value = float(plain.replace(",", "."))
    if value - value != 0:
        raise ValueError(f"“{text}” is no finite number")
    return value


def read_whole(text: str) -> int:
    """The whole number in `text`: 10000, 10,000, 10.000 and 1e4 are the same.

    Raises:
        ValueError: there is none.
    """
    plain = _plain(text)
    if (power := _POWER.fullmatch(plain)) is not None:
        value = read_whole(power[1]) * Fraction(10) ** int(power[2])
        if value.denominator != 1:
            raise ValueError(f"“{text}” is no whole number")
        return int(value)
    return int(re.sub("[.,]", "", plain) if _GROUPED.fullmatch(plain) else plain)


def _plain(text: str) -> str:
    """`text` with ASCII digits and signs, and without what only parts thousands."""
    return "".join(_ascii(character) for character in text if character not in _IGNORED and not character.isspace())


def _ascii(character: str) -> str:
    digit = unicodedata.decimal(character, None)
    return _SIGNS.get(character, character) if digit is None else str(digit)


class WholeBox(QSpinBox):
    """A whole number, with arrows."""

    def validate(self, text: str, position: int) -> Result:
        typed = _bare(self, text)
        try:
            value = read_whole(typed)
        except ValueError:
            plain = _plain(typed)
            # 10, and 10.0 are on the way to 10,000
            begun = (
                plain in _beginnings(self)
                or re.fullmatch(r"[+-]?\d{1,3}(([.,])\d{3})*[.,]\d{0,2}", plain) is not None
                or _is_before_power(plain)
            )
            return QValidator.State.Intermediate if begun else QValidator.State.Invalid, text, position
        return _state(value, self.minimum(), self.maximum()), text, position

    def valueFromText(self, text: str) -> int:
        return read_whole(_bare(self, text))

    def textFromValue(self, value: int) -> str:
        return f"{value:,}" if self.isGroupSeparatorShown() else str(value)

    def fixup(self, text: str) -> str:
        """Leaves it: what cannot be read is put back by Qt."""
        return text


class RealBox(QDoubleSpinBox):
    """A real number with so many decimals, with arrows."""

    def validate(self, text: str, position: int) -> Result:
        typed = _bare(self, text)
        plain = _plain(typed)
        power = _POWER.fullmatch(plain)
        digits = plain if power is None else power[1]
        if re.fullmatch(r"[+-]?[\d.,]*", digits) is None:
            return QValidator.State.Invalid, text, position
        if power is None and self._decimals_of(plain) > self.decimals():
            return QValidator.State.Invalid, text, position
        try:
            value = read_real(typed)
        except ValueError:
            grouped = sum(plain.count(mark) for mark in ".,") > 1
            begun = plain in _beginnings(self) or grouped or _is_before_power(plain)
            return QValidator.State.Intermediate if begun else QValidator.State.Invalid, text, position
        return _state(value, self.minimum(), self.maximum()), text, position

    def valueFromText(self, text: str) -> float:
        return read_real(_bare(self, text))

    def textFromValue(self, value: float) -> str:
        return f"{value:.{self.decimals()}f}"

    def fixup(self, text: str) -> str:
        """Leaves it: what cannot be read is put back by Qt."""
        return text

    def _decimals_of(self, plain: str) -> int:
        marks = [character for character in plain if character in ".,"]
        is_grouped = len(marks) > 1 and marks.count(marks[-1]) > 1
        return 0 if is_grouped or not marks else len(plain) - 1 - plain.rindex(marks[-1])


def _bare(box: QSpinBox | QDoubleSpinBox, text: str) -> str:
    return text.strip().removeprefix(box.prefix().strip()).removesuffix(box.suffix().strip())


def _beginnings(box: QSpinBox | QDoubleSpinBox) -> frozenset[str]:
    return _BEGINNINGS if box.minimum() < 0 else _UNSIGNED


def _is_before_power(plain: str) -> bool:
    power = _POWER.fullmatch(plain)
    return power is not None and power[2] in ("", "+", "-")


def _state(value: float, low: float, high: float) -> QValidator.State:
    if low <= value <= high:
        return QValidator.State.Acceptable
    # digits that follow lead further from 0
    leads_away = value > max(high, 0) or value < min(low, 0)
    return QValidator.State.Invalid if leads_away else QValidator.State.Intermediate


class NumberField(QLineEdit):
    """A number that is typed, or nothing; Up and Down change it by a step. Whoever holds it reads and judges it."""

    def __init__(self, value: str, step: float, parent: QWidget | None = None) -> None:
        super().__init__(value, parent)
        self._step = step
        self.setPlaceholderText("off")
        self._fit_width()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self._fit_width()

    def _fit_width(self) -> None:
        self.setFixedWidth(7 * self.fontMetrics().averageCharWidth() + 18)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        sign = {Qt.Key.Key_Up: 1, Qt.Key.Key_Down: -1}.get(Qt.Key(event.key()))
        if sign is None:
            super().keyPressEvent(event)
            return
        try:
            now = read_real(self.text()) if self.text().strip() else 0.0
        except ValueError:
            return
        self.setText(f"{now + sign * self._step:.6g}")
