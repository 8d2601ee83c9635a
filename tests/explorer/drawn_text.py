"""What text a window draws, and how large: by widgets of ours, through `QPainter.drawText`, and by Qt's own."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import pytest
from PySide6.QtGui import QFont, QFontMetricsF, QPaintDevice, QPaintEngine, QPaintEngineState, QPainter, QTextItem
from PySide6.QtWidgets import QWidget


class Drawn(NamedTuple):
    """A piece of text, and how high its capital letters are on screen, in pixels."""

    text: str
    cap_height: float


def _of(text: str, font: QFont, scale: float) -> Drawn:
    return Drawn(text, QFontMetricsF(font).capHeight() * scale)


class _Engine(QPaintEngine):
    """Draws nothing, and notes each text."""

    def __init__(self, notes: list[Drawn]) -> None:
        super().__init__(QPaintEngine.PaintEngineFeature.AllFeatures)
        self._notes = notes
        self._scale = 1.0

    def begin(self, device: QPaintDevice) -> bool:
        return True

    def end(self) -> bool:
        return True

    def type(self) -> QPaintEngine.Type:
        return QPaintEngine.Type.User

    def updateState(self, state: QPaintEngineState) -> None:
        transform = state.transform()
        self._scale = math.hypot(transform.m11(), transform.m12())

    def drawTextItem(self, where: object, item: QTextItem) -> None:
        if item.text().strip():
            self._notes.append(_of(item.text(), item.font(), self._scale))

    def drawPixmap(self, *what: object) -> None:
        pass

    def drawImage(self, *what: object) -> None:
        pass

    def drawPath(self, path: object) -> None:
        pass

    def drawPolygon(self, *what: object) -> None:
        pass

    def drawLines(self, *what: object) -> None:
        pass

    def drawRects(self, *what: object) -> None:
        pass

    def drawEllipse(self, *what: object) -> None:
        pass

    def drawPoints(self, *what: object) -> None:
        pass


class _Sheet(QPaintDevice):
    """As large as a widget."""

    def __init__(self, widget: QWidget, notes: list[Drawn]) -> None:
        super().__init__()
        self._widget, self._engine = widget, _Engine(notes)

    def paintEngine(self) -> QPaintEngine:
        return self._engine

    def metric(self, which: QPaintDevice.PaintDeviceMetric) -> int:
        kind = QPaintDevice.PaintDeviceMetric
        screen = self._widget.screen()
        dots = {
            kind.PdmDpiX: screen.logicalDotsPerInchX(),
            kind.PdmPhysicalDpiX: screen.logicalDotsPerInchX(),
            kind.PdmDpiY: screen.logicalDotsPerInchY(),
            kind.PdmPhysicalDpiY: screen.logicalDotsPerInchY(),
        }
        sizes = {
            kind.PdmWidth: self._widget.width(),
            kind.PdmHeight: self._widget.height(),
            kind.PdmDepth: 32,
            kind.PdmNumColors: 1 << 24,
            kind.PdmDevicePixelRatio: 1,
            kind.PdmDevicePixelRatioScaled: 65536,
        }
        return int({**dots, **sizes}.get(which, 0))


@contextmanager
def text_of_ours(patch: pytest.MonkeyPatch) -> Iterator[list[Drawn]]:
    """What is drawn in Python meanwhile, also into pictures that are kept."""
    notes: list[Drawn] = []
    draw = QPainter.drawText

    def noted(painter: QPainter, *what: object) -> object:
        text = next((each for each in what if isinstance(each, str)), "")
        if text.strip():
            transform = painter.worldTransform()
            notes.append(_of(text, painter.font(), math.hypot(transform.m11(), transform.m12())))
        return draw(painter, *what)  # type: ignore[call-overload]

    with patch.context() as patched:
        patched.setattr(QPainter, "drawText", noted)
        yield notes


def text_on(widget: QWidget) -> list[Drawn]:
    """What `widget` and all that is in it draw now, but for what comes out of pictures that it keeps."""
    notes: list[Drawn] = []
    widget.render(_Sheet(widget, notes))
    return notes
