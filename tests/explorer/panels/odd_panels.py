"""Panels of a package that somebody else has written, most of them badly."""

from __future__ import annotations

from importlib.metadata import EntryPoint

from PySide6.QtWidgets import QLabel, QVBoxLayout

from attention_explorer.look.theme import Theme
from attention_explorer.panels.base import Panel
from attention_explorer.panels.registry import GROUP
from attention_explorer.session.hover import Pointed
from attention_explorer.session.state import State
from attention_models.protocol.request import Request
from attention_models.protocol.values import CheckpointInfo


def point(name: str, value: str = "") -> EntryPoint:
    """The entry point of a class in this file, or of any other object."""
    return EntryPoint(name, value or f"{__name__}:{name}", GROUP)


class Sound(Panel):
    """Shows the text, and raises in the method that `breaks_in` names."""

    api_version = 1
    name = "sound"
    title = "Sound"
    hint = "Shows the text."
    breaks_in = ""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self.label = QLabel()
        QVBoxLayout(self).addWidget(self.label)
        self.broke("init")

    def broke(self, where: str) -> None:
        if self.breaks_in == where:
            raise KeyError(where)

    def render_state(self, state: State, old: State | None) -> None:
        self.broke("render")
        if state.document.text == "Break.":
            self.broke("render later")
        self.label.setText(state.document.text)

    def render_hover(self, pointed: Pointed) -> None:
        self.broke("hover")

    def wants(self, state: State) -> Request | None:
        self.broke("wants")
        return None

    def set_theme(self, theme: Theme) -> None:
        self.broke("theme")


class Fragile(Sound):
    name = "fragile"
    title = "Fragile"


class Unsuited(Fragile):
    @classmethod
    def suits(cls, info: CheckpointInfo) -> bool:
        raise KeyError("suits")


class InConstructor(Sound):
    breaks_in = "init"


class Interrupting(Sound):
    def __init__(self, *args: object) -> None:
        raise KeyboardInterrupt


class Numbered(Sound):
    name = 5  # type: ignore[assignment]


class Untitled(Sound):
    name = "untitled"
    title = ""


class Newer(Sound):
    api_version = 99


class Ageless(Panel):
    name = "ageless"
    title = "Ageless"


class Twin(Sound):
    """Called as the built-in map is."""

    name = "map"
