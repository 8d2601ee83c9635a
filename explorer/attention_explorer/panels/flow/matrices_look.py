"""What the matrices are drawn with: colours, fonts, and where each of them lies."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtGui import QFont, QFontMetricsF

from attention_explorer.panels.flow.matrices_layout import Layout
from attention_explorer.panels.flow.matrices_scene import Scene
from attention_explorer.theme import Theme


@dataclass(frozen=True)
class Look:
    """Made anew for every paint."""

    theme: Theme
    font: QFont
    number_font: QFont  # of numbers in cells
    scene: Scene
    layout: Layout

    @property
    def bold(self) -> QFont:
        font = QFont(self.font)
        font.setBold(True)
        return font

    @property
    def line(self) -> float:
        """The height of a line of text."""
        return QFontMetricsF(self.bold).height()
