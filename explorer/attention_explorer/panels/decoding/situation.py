"""How the pages of the player are laid out, and how their numbers are written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from attention_explorer.session.branches import Branches
from attention_explorer.session.writing import Origin
from attention_explorer.widgets.heat_map.heat_map import HeatMap
from attention_explorer.widgets.labels import SaidLabel
from attention_explorer.widgets.number_text import MINUS
from attention_models.protocol.decoding import (
    DecodeSamplesRequest,
    DecodeSamplesView,
    DecodeSettings,
    DecodeStepRequest,
    DecodeStepView,
)
from attention_models.protocol.information import Unit, from_nats
from attention_models.protocol.loading import Loaded
from attention_models.protocol.running import RunInputs
from attention_models.protocol.values import SiteRef

# What the player knows of the session and what it has the session do: all of it, so that it works without one.


@dataclass(frozen=True, slots=True, eq=False)
class Situation:
    """What of the state the player goes by."""

    loaded: Loaded | None
    origin: Origin  # what the tree belongs to: a checkpoint, its text and target, and what is changed meanwhile
    branches: Branches
    site: SiteRef | None  # of the selected head, whose rows are kept on the way
    head: int
    up_to_date: bool  # whether what is on screen was computed from this text
    caught_up: bool  # whether it shows all that was written, or cannot
    answer: DecodeStepView | DecodeSamplesView | None  # the engine's last
    pending: DecodeStepRequest | DecodeSamplesRequest | None  # the step under way
    passage: int  # what is being written in one go; 0 when it was broken off
    problem: str  # why the last step could not be done, as the notice says it; "" where it could

    @property
    def family(self) -> str:
        """Of the open model; "" while none is open."""
        return self.loaded.info.family if self.loaded is not None else ""

    @property
    def inputs(self) -> RunInputs:
        """What is written after, and what is changed meanwhile."""
        return self.origin[1]


class Actions(Protocol):
    """What the player has done. What comes of it stands in the next `Situation`, at once but for what is computed."""

    def ask_step(self, request: DecodeStepRequest, parent: int, goes_on: bool) -> None:
        """Let the engine choose the token after node `parent`; `goes_on` where the last one is undone with it."""

    def ask_samples(self, request: DecodeSamplesRequest, parents: tuple[int, ...], shown: int, goes_on: bool) -> None:
        """Let the engine draw the token after each of `parents`, of which that at place `shown` is in view."""

    def go_to(self, node: int) -> None: ...

    def name(self, node: int, name: str) -> None: ...

    def delete(self, node: int) -> None:
        """Delete the branch of a node, up to where it parts from the others."""


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
