"""The look of the application: two themes and one style sheet.

Two accents mean the same thing everywhere: `query` for what looks, `key` for what is looked at. Nothing else uses them
for another meaning, so the focus ring is a neutral of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from string import Template
from typing import TYPE_CHECKING, Any, Literal

from attention_explorer.paths import resource

if TYPE_CHECKING:  # Qt is loaded where a theme is applied: the names below are read without a window too
    from PySide6.QtGui import QPalette
    from PySide6.QtWidgets import QApplication

ThemeName = Literal["system", "light", "dark"]

SEQUENTIAL_MAPS = ("viridis", "cividis", "magma", "inferno", "plasma")
"""Names of colour maps that a person can choose from; `colour_maps` has the colours."""

LEGIBLE = 4.5  # to 1: the contrast of text, and of lines on a projector
SMALLEST_FONT = 10.0  # points: what still reads from the back of a room


@dataclass(frozen=True)
class Theme:
    """Colours by role, as "#rrggbb". Text roles keep a contrast of at least 4.5 to 1 on every surface."""

    name: str
    is_dark: bool
    window: str
    surface: str
    surface_alt: str
    surface_hover: str
    border: str
    border_strong: str
    text: str
    text_dim: str
    query: str
    key: str
    on_accent: str  # text drawn upon the query, key or bar colour
    ok: str
    warning: str
    error: str
    hatch: str  # lines over cells that the mask hides
    bar: str
    focus: str
    system: str  # whose turn of a conversation; told apart by the kind of line too
    user: str
    assistant: str
    first: str  # of two texts that are read together; told apart by the kind of line too
    second: str
    stream: str  # the residual stream, where it is not the selected token's
    attention: str  # what attention wrote into it
    cross: str  # what cross-attention wrote
    feed_forward: str  # what the feed-forward network wrote


LIGHT = Theme(
    name="light",
    is_dark=False,
    window="#eef0f3",
    surface="#ffffff",
    surface_alt="#f3f5f8",
    surface_hover="#e6eaf0",
    border="#dfe3e9",
    border_strong="#949dab",
    text="#1b2027",
    text_dim="#596270",
    query="#b54a04",
    key="#0b63ce",
    on_accent="#ffffff",
    ok="#14713a",
    warning="#7d5200",
    error="#b3261e",
    hatch="#cfd5dd",
    bar="#2c7fd2",
    focus="#39424f",
    system="#6e5500",
    user="#008577",
    assistant="#7a3fb8",
    first="#008577",
    second="#7a3fb8",
    stream="#d3d9e4",
    attention="#d97706",
    cross="#8e5bd0",
    feed_forward="#0f9d76",
)

DARK = Theme(
    name="dark",
    is_dark=True,
    window="#14161a",
    surface="#1b1e24",
    surface_alt="#232833",
    surface_hover="#2d3441",
    border="#2f3540",
    border_strong="#667081",
    text="#e8ebf0",
    text_dim="#a0a9b8",
    query="#ffb454",
    key="#5cc0f5",
    on_accent="#14161a",
    ok="#74d68c",
    warning="#ecd35a",
    error="#ff938a",
    hatch="#414957",
    bar="#53b1e1",
    focus="#d3dae4",
    system="#d8c27a",
    user="#2fb89a",
    assistant="#d98fe0",
    first="#2fb89a",
    second="#d98fe0",
    stream="#3b4252",
    attention="#e8983a",
    cross="#b693f0",
    feed_forward="#4fd1a5",
)


def contrast(first: str, second: str) -> float:
    """The WCAG contrast ratio of two colours, 1 (the same) to 21 (black on white)."""
    lighter, darker = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    return sum(
        share * (channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4)
        for share, channel in zip((0.2126, 0.7152, 0.0722), (c / 255 for c in bytes.fromhex(colour[1:])), strict=True)
    )


_TEXT = ("text_dim", "query", "key", "ok", "warning", "error")
_LINES = ("bar", "border_strong", "attention", "cross", "feed_forward")
_LINES_OF_TEXTS = ("system", "user", "assistant", "first", "second")
_WIDE = 3.0  # to 1, of what is as wide as a bar and has lines upon it
_STEPS = 50


def for_projector(theme: Theme) -> Theme:
    """The same colours, with those of text and of lines a contrast of 4.5 from their grounds: projectors wash out."""
    grounds = theme.window, theme.surface, theme.surface_alt
    changed: dict[str, Any] = {role: _apart(theme, role, LEGIBLE, *grounds, theme.surface_hover) for role in _TEXT}
    changed |= {role: _apart(theme, role, LEGIBLE, *grounds) for role in (*_LINES, *_LINES_OF_TEXTS)}
    return replace(theme, **changed, stream=_apart(theme, "stream", _WIDE, *grounds))


def _apart(theme: Theme, role: str, ratio: float, *grounds: str) -> str:
    """A role's colour, moved towards that of text by as little as gives it this contrast on all grounds."""
    own, text = (bytes.fromhex(getattr(theme, name)[1:]) for name in (role, "text"))
    for step in range(_STEPS + 1):
        share = step / _STEPS
        colour = "#" + bytes(round(a + share * (b - a)) for a, b in zip(own, text, strict=True)).hex()
        if min(contrast(colour, ground) for ground in grounds) >= ratio:
            break
    return colour


def palette(theme: Theme) -> QPalette:
    """The Qt palette of a theme, for every control that the style sheet leaves to Fusion."""
    from PySide6.QtGui import QColor, QPalette

    result = QPalette()
    role = QPalette.ColorRole
    for target, colour in (
        (role.Window, theme.window),
        (role.WindowText, theme.text),
        (role.Base, theme.surface),
        (role.AlternateBase, theme.surface_alt),
        (role.Text, theme.text),
        (role.PlaceholderText, theme.text_dim),
        (role.Button, theme.surface_alt),
        (role.ButtonText, theme.text),
        (role.BrightText, theme.error),
        (role.ToolTipBase, theme.surface),
        (role.ToolTipText, theme.text),
        (role.Highlight, theme.key),
        (role.HighlightedText, theme.on_accent),
        (role.Accent, theme.key),
        (role.Link, theme.key),
        (role.LinkVisited, theme.key),
        (role.Light, theme.surface_hover),
        (role.Midlight, theme.surface_alt),
        (role.Mid, theme.border_strong),
        (role.Dark, theme.border_strong),
        (role.Shadow, theme.border),
    ):
        result.setColor(target, QColor(colour))
    for target in (role.WindowText, role.Text, role.ButtonText):
        result.setColor(QPalette.ColorGroup.Disabled, target, QColor(theme.border_strong))
    return result


_HEADING = 15.0  # points, at least
_STYLED = "attention_explorer_styled"


def apply(app: QApplication, theme: Theme) -> None:
    """Give the whole application a theme. Painted widgets take theirs through their own `set_theme`."""
    from attention_explorer.look.styling import put_off

    if not app.property(_STYLED):  # under a style sheet the style has no name of its own, and setting it takes a while
        app.setStyle("Fusion")  # native styles ignore half of a style sheet, each a different half
        app.setProperty(_STYLED, True)
    font = app.font()
    if 0 < font.pointSizeF() < SMALLEST_FONT:
        font.setPointSizeF(SMALLEST_FONT)
        app.setFont(font)
    put_off()
    app.setPalette(palette(theme))
    app.setStyleSheet("")  # of 2,000 widgets Qt replaces one sheet by another in four times as long
    app.setStyleSheet(stylesheet(theme, app.font().pointSizeF()))


def stylesheet(theme: Theme, points: float = SMALLEST_FONT) -> str:
    """The style sheet of the application, for text of `points`.

    Labels take their look from a dynamic property: role = "title", "heading", "dim" or "mono"; a push button with
    role = "primary" carries the query accent, one with role = "flat" has no frame.
    """
    colours = {name: value for name, value in vars(theme).items() if isinstance(value, str)}
    arrows = {
        name: resource(f"icons/{file}-{theme.name}.svg").as_posix()
        for name, file in (("arrow", "arrow"), ("up", "arrow-up"), ("tick", "tick"))
    }
    scale = max(1.0, points / SMALLEST_FONT)
    button, box = round(18 * scale), round(12 * scale)
    sizes = {
        "button": button,
        "round": button // 2 + 1,
        "box": box,
        "dot": box // 2 + 2,
        "drop": round(22 * scale),
        "spin": round(20 * scale),
        "arrow_wide": round(10 * scale),
        "arrow_high": round(6 * scale),
    }
    return _SHEET.substitute(colours, heading=f"{max(_HEADING, 1.5 * points):.1f}", **arrows, **sizes)


_SHEET = Template(
    """
QMainWindow, QDialog { background: $window; }
QMainWindow::separator { background: $window; width: 8px; height: 8px; }
QMainWindow::separator:hover { background: $border_strong; }

Card, QuestionCard { background: $surface; border: 1px solid $border; border-radius: 8px; }
Callout { background: $surface_alt; border: 2px solid $key; border-radius: 8px; }
QLabel[role="try"] { border-left: 3px solid $query; padding-left: 8px; font-weight: 600; }
QToolButton[role="info"] {
  color: $key; background: transparent; border: 1px solid $border_strong; border-radius: ${round}px; padding: 0;
  min-width: ${button}px; max-width: ${button}px; min-height: ${button}px; max-height: ${button}px; font-weight: 600;
}
QToolButton[role="info"]:hover { background: $surface_hover; border-color: $key; }
QToolButton[role="info"]:checked { color: $on_accent; background: $key; border: 1px solid $key; padding: 0; }
QToolButton[role="info"]:focus { border: 2px solid $focus; padding: 0; }
QToolButton[role="code"] {
  color: $key; background: transparent; border: 1px solid $border_strong; border-radius: ${round}px; padding: 0 5px;
  min-height: ${button}px; max-height: ${button}px; font-weight: 600;
}
QToolButton[role="code"]:hover { background: $surface_hover; border-color: $key; }
QToolButton[role="code"]:disabled { color: $text_dim; border-color: $border; }
QToolButton[role="code"]:focus { border: 2px solid $focus; padding: 0 4px; }
QPlainTextEdit[role="mono"] { font-family: "DejaVu Sans Mono", "Menlo", "Consolas", monospace; }
#presenter_tools { background: $surface; border: 1px solid $border_strong; border-radius: 8px; }
TourBar { background: $surface; border: 2px solid $query; border-radius: 8px; }
QLabel[role="title"] { font-weight: 600; }
QLabel[role="heading"] { font-weight: 600; font-size: ${heading}pt; }
QLabel[role="dim"] { color: $text_dim; }
QLabel[role="warning"] { color: $warning; }
QLabel[role="mark"] {
  color: $warning; border: 1px solid $warning; border-radius: 5px; padding: 0 6px; font-weight: 600;
}
QPushButton[role="mark"] {
  color: $warning; background: transparent; border: 1px solid $warning; border-radius: 5px; padding: 0 6px;
  min-height: 0; font-weight: 600;
}
QPushButton[role="mark"]:hover { background: $surface_hover; border-color: $warning; }
QPushButton[role="mark"]:focus { border: 2px solid $focus; padding: 0 5px; }
QLabel[role="mono"] { font-family: "DejaVu Sans Mono", "Menlo", "Consolas", monospace; }

QPushButton, QToolButton, QComboBox {
  background: $surface_alt; color: $text; border: 1px solid $border; border-radius: 6px;
  padding: 4px 12px; min-height: 20px;
}
QToolButton { padding: 2px 8px; }
QPushButton:hover, QToolButton:hover, QComboBox:hover { background: $surface_hover; border-color: $border_strong; }
QPushButton:pressed, QToolButton:pressed { background: $border; }
QPushButton:checked, QToolButton:checked {
  background: $surface_hover; border-color: $border_strong; border-bottom: 3px solid $query; padding-bottom: 2px;
}
QPushButton:disabled, QToolButton:disabled, QComboBox:disabled { color: $border_strong; }
QPushButton[role="primary"] { border-color: $query; }
QTextBrowser[role="lesson"] { background: transparent; border: none; padding: 0; }
QFrame[role="preview"] { background: $surface; border-left: 3px solid $border_strong; }
QFrame[role="answers"] { border: 2px solid transparent; border-radius: 7px; }
QFrame[role="answers"]:focus { border-color: $focus; }
QPushButton[role="option"] { text-align: left; padding: 6px 10px; }
QPushButton[role="option"]:checked { background: $surface_hover; border-color: $query; font-weight: 600; }
QPushButton[role="option"]:disabled { color: $text_dim; }
QPushButton[role="flat"], QToolButton[role="flat"] { background: transparent; border-color: transparent; }
QPushButton[role="flat"]:checked { background: $surface_hover; border-color: $query; font-weight: 600; }
QPushButton[role="flat"]:hover, QToolButton[role="flat"]:hover { background: $surface_hover; }
QPushButton:focus, QToolButton:focus, QComboBox:focus { border: 2px solid $focus; padding: 3px 11px; }
QPushButton:checked:focus, QToolButton:checked:focus {
  border: 2px solid $focus; border-bottom: 3px solid $query; padding-bottom: 2px;
}
QToolButton:focus { padding: 1px 7px; }
/* a list that is as high as its entries: the other kind of popup hides the last one behind an arrow */
QComboBox { combobox-popup: 0; }
QComboBox::drop-down { border: 0; width: ${drop}px; }
QComboBox::down-arrow { image: url("$arrow"); width: ${arrow_wide}px; height: ${arrow_high}px; border: 0; }
QComboBox QAbstractItemView {
  background: $surface; color: $text; border: 1px solid $border_strong; padding: 4px; outline: 0;
  selection-background-color: $surface_hover; selection-color: $text;
}
QComboBox QAbstractItemView::item { min-height: 26px; }

QLineEdit, QPlainTextEdit, QTextEdit, QSpinBox, QDoubleSpinBox {
  background: $surface_alt; color: $text; border: 1px solid $border; border-radius: 6px; padding: 4px 8px;
  selection-background-color: $key; selection-color: $on_accent;
}
QLineEdit:hover, QPlainTextEdit:hover, QTextEdit:hover { border-color: $border_strong; }
QLineEdit:focus, QPlainTextEdit:focus, QTextEdit:focus, QSpinBox:focus, QDoubleSpinBox:focus {
  border: 2px solid $focus; padding: 3px 7px;
}
QLineEdit:disabled, QPlainTextEdit:disabled, QTextEdit:disabled { color: $border_strong; }

QSpinBox, QDoubleSpinBox { padding-right: ${spin}px; }
QSpinBox::up-button, QSpinBox::down-button, QDoubleSpinBox::up-button, QDoubleSpinBox::down-button {
  subcontrol-origin: border; width: ${spin}px; border: 0; background: transparent;
}
QSpinBox::up-button, QDoubleSpinBox::up-button { subcontrol-position: top right; margin-top: 2px; }
QSpinBox::down-button, QDoubleSpinBox::down-button { subcontrol-position: bottom right; margin-bottom: 2px; }
QSpinBox::up-button:hover, QSpinBox::down-button:hover, QDoubleSpinBox::up-button:hover,
QDoubleSpinBox::down-button:hover { background: $surface_hover; }
QSpinBox::up-arrow, QDoubleSpinBox::up-arrow { image: url("$up"); width: ${arrow_wide}px; height: ${arrow_high}px; }
QSpinBox::down-arrow, QDoubleSpinBox::down-arrow {
  image: url("$arrow"); width: ${arrow_wide}px; height: ${arrow_high}px;
}

QListWidget, QTreeWidget {
  background: $surface; color: $text; border: 1px solid $border; border-radius: 8px; padding: 6px; outline: 0;
}
QListWidget:focus, QTreeWidget:focus { border: 2px solid $focus; padding: 5px; }
QListWidget::item { padding: 5px 6px; border-radius: 5px; }
QTreeWidget::item { padding: 4px 6px; }
QListWidget::item:hover, QTreeWidget::item:hover { background: $surface_alt; }
QListWidget::item:selected, QTreeWidget::item:selected { background: $surface_hover; color: $text; }
QTreeWidget::item:selected:disabled { background: $surface_alt; }
QListWidget::item:disabled { color: $text_dim; background: transparent; }

QTabWidget::pane { border: 0; }
QTabBar { background: transparent; }
QTabBar::tab {
  background: transparent; color: $text_dim; border: 0; border-bottom: 3px solid transparent;
  padding: 6px 4px 5px 4px; margin: 0 1px;
}
QTabBar::tab:hover { color: $text; border-bottom-color: $border_strong; }
QTabBar::tab:selected { color: $text; font-weight: 600; border-bottom-color: $query; }
QTabBar QToolButton { padding: 0; min-height: 0; }
QTabBar::tab:focus { color: $text; background: $surface_hover; }

QDockWidget { color: $text; font-weight: 600; }
QDockWidget::title { background: $surface; border: 1px solid $border; border-radius: 6px; padding: 5px 10px; }

QMenuBar { background: $window; color: $text; }
QMenuBar::item { background: transparent; padding: 4px 10px; border-radius: 4px; }
QMenuBar::item:selected { background: $surface_hover; }
QMenu { background: $surface; color: $text; border: 1px solid $border_strong; padding: 4px; }
QMenu::item { padding: 5px 24px 5px 20px; border-radius: 4px; }
QMenu::item:selected { background: $surface_hover; }
QMenu::item:disabled { color: $border_strong; }
QMenu::separator { height: 1px; background: $border; margin: 4px 8px; }
QToolTip { background: $surface; color: $text; border: 1px solid $border_strong; padding: 4px 6px; }

QCheckBox::indicator, QRadioButton::indicator {
  width: ${box}px; height: ${box}px; border: 2px solid $border_strong; border-radius: 4px; background: $surface_alt;
}
QRadioButton::indicator { border-radius: ${dot}px; }
QCheckBox::indicator:hover, QRadioButton::indicator:hover { border-color: $text_dim; }
QCheckBox::indicator:checked, QRadioButton::indicator:checked { background: $key; border-color: $key; }
QCheckBox::indicator:checked { image: url("$tick"); }
QCheckBox::indicator:disabled, QRadioButton::indicator:disabled { border-color: $border; }
QCheckBox, QRadioButton { spacing: 6px; padding: 2px; border: 2px solid transparent; border-radius: 4px; }
QCheckBox:focus, QRadioButton:focus { border-color: $focus; }

QScrollArea, QScrollArea > QWidget > QWidget { background: transparent; }
QScrollArea { border: 0; }
QAbstractScrollArea::corner { background: transparent; border: 0; }
QScrollBar:vertical { background: transparent; width: 12px; margin: 0; }
QScrollBar:horizontal { background: transparent; height: 12px; margin: 0; }
QScrollBar::handle { background: $border_strong; border-radius: 4px; margin: 2px; }
QScrollBar::handle:vertical { min-height: 28px; }
QScrollBar::handle:horizontal { min-width: 28px; }
QScrollBar::handle:hover { background: $text_dim; }
QScrollBar::add-line, QScrollBar::sub-line { width: 0; height: 0; }
QScrollBar::add-page, QScrollBar::sub-page { background: transparent; }

QSplitter::handle { background: transparent; }
QSplitter::handle:hover { background: $border_strong; }
QStatusBar { background: $window; color: $text_dim; }
QStatusBar::item { border: 0; }
QHeaderView::section { background: $surface_alt; color: $text_dim; border: 0; padding: 4px 8px; }
"""
)
