"""How the pages of the player are laid out, and how their numbers are written."""

from __future__ import annotations

from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from attention_explorer.widgets.heat_map.heat_map import HeatMap
from attention_explorer.widgets.number_text import MINUS
from attention_explorer.widgets.said_label import SaidLabel
from attention_models.protocol.decoding_settings import DecodeSettings
from attention_models.protocol.information import Unit, from_nats


def column(parent: QWidget, *widgets: QWidget) -> None:
    column = QVBoxLayout(parent)
    column.setContentsMargins(0, 2, 8, 4)
    column.setSpacing(6)
    for widget in widgets:
        column.addWidget(widget, 1 if isinstance(widget, HeatMap) else 0)
    column.addStretch(0 if any(isinstance(widget, HeatMap) for widget in widgets) else 1)


def dim(text: str) -> QLabel:
    label = SaidLabel(text)
    label.setProperty("role", "dim")
    return label


def say(label: QLabel, text: str) -> None:
    label.setText(text)
    label.setVisible(bool(text))


def count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def plain(text: str) -> str:
    return text.replace("␣", " ").strip() or "␣"


def ranked_text(log_probability: float, length: int, settings: DecodeSettings, unit: Unit) -> str:
    """A text's log-probability, and what a beam search makes of it to rank by: "−4.05 / 5 = −0.81 nats"."""
    power = settings.length_penalty
    if power == 0:
        return f"{log_text(log_probability, unit)} {unit}"
    over = f"{length}" if power == 1 else f"{length}^{power:g}".replace("-", MINUS)
    ranked = log_text(score(log_probability, length, settings), unit)
    return f"{log_text(log_probability, unit)} / {over} = {ranked} {unit}"


def score(log_probability: float, length: int, settings: DecodeSettings) -> float:
    """What a beam search ranks by: the log-probability, divided by the length to the power of the length penalty."""
    return log_probability / float(length**settings.length_penalty)


def log_text(nats: float, unit: Unit) -> str:
    """A log-probability in `unit`: two decimals; −0.003 and −2e-5 where these would all be 0."""
    value = from_nats(nats, unit)
    if abs(value) >= 0.01 or value == 0:
        text = f"{abs(value):.2f}"
    elif abs(value) >= 1e-4:
        text = f"{abs(value):.1g}"
    else:
        mantissa, exponent = f"{abs(value):.0e}".split("e")
        text = f"{mantissa}e{int(exponent)}"
    return MINUS + text if value < 0 else text
