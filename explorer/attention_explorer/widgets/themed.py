"""What every painted widget shares: a theme, a sentence for when it is empty, and a ring for keyboard users."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPoint, QRectF, Qt
from PySide6.QtGui import QColor, QFocusEvent, QFont, QPainter, QPen
from PySide6.QtWidgets import QWidget

from attention_explorer.look.text_size import wide
from attention_explorer.look.theme import LIGHT, Theme
from attention_explorer.widgets.scroll_areas import area_around, scroll_to


def set_role(widget: QWidget, role: str | None) -> None:
    """Give it a role of `theme.stylesheet`, or none."""
    if widget.property("role") != role:
        widget.setProperty("role", role)
        widget.style().unpolish(widget)
        widget.style().polish(widget)


_KEYBOARD = (
    Qt.FocusReason.TabFocusReason,
    Qt.FocusReason.BacktabFocusReason,
    Qt.FocusReason.ShortcutFocusReason,
)
_LOOK = (QEvent.Type.FontChange, QEvent.Type.DevicePixelRatioChange)


class ThemedWidget(QWidget):
    """A focusable widget that paints itself in the colours of a theme."""

    def __init__(self, accessible_name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = LIGHT
        self._empty_text = ""
        self._shows_ring = False
        self.setAccessibleName(accessible_name)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    @property
    def theme(self) -> Theme:
        return self._theme

    def set_theme(self, theme: Theme) -> None:
        """Paint in the colours of `theme` from now on."""
        if theme != self._theme:
            self._theme = theme
            self._look_changed()

    @property
    def empty_text(self) -> str:
        return self._empty_text

    def set_empty_text(self, text: str) -> None:
        """The sentence shown while there is nothing to draw."""
        if text != self._empty_text:
            self._empty_text = text
            self.update()

    def said_at(self, position: QPoint) -> str:
        """The words that are painted at a place and may need an explanation, beside what the tooltip says; "" for none.

        What stands for data (tokens, numbers) is none of them.
        """
        return ""

    def bold_font(self) -> QFont:
        font = QFont(self.font())
        font.setBold(True)
        return font

    def _look_changed(self) -> None:
        """Theme, font or screen changed: a subclass drops what it had measured or painted with the old one."""
        self.updateGeometry()
        self.update()

    def _keep_visible(self, rect: QRectF) -> None:
        """Scroll the area around this widget, if any, until `rect` shows. For the keyboard, never for hover."""
        area = area_around(self)
        inner = None if area is None else area.widget()
        if area is not None and inner is not None and not rect.isEmpty():
            middle = rect.center().toPoint() if inner is self else self.mapTo(inner, rect.center().toPoint())
            scroll_to(area, middle, round(rect.width() / 2) + 4, round(rect.height() / 2) + 4)

    def _draw_empty_text(self, painter: QPainter) -> None:
        painter.setPen(QColor(self._theme.text_dim))
        flags = Qt.AlignmentFlag.AlignCenter.value | Qt.TextFlag.TextWordWrap.value
        painter.drawText(QRectF(self.rect()).adjusted(16, 8, -16, -8), flags, self._empty_text)

    def _draw_focus_ring(self, painter: QPainter) -> None:
        if not (self._shows_ring and self.hasFocus()):
            return
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(self._theme.focus), wide(2)))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), 6, 6)
        painter.restore()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in _LOOK:
            self._look_changed()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self._shows_ring = event.reason() in _KEYBOARD
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.update()
