"""A real pointer: the X server moves it and presses its buttons, by its XTest extension, as if a hand did."""

from __future__ import annotations

import ctypes
import ctypes.util
import time
from types import TracebackType

_TICK = 0.008  # s between two motions, as of a mouse that reports 125 times a second


class Pointer:
    """That of the display which DISPLAY names. Raises OSError where there is none, or no XTest."""

    def __init__(self) -> None:
        self._x = ctypes.CDLL(ctypes.util.find_library("X11") or "libX11.so.6")
        self._test = ctypes.CDLL(ctypes.util.find_library("Xtst") or "libXtst.so.6")
        self._x.XOpenDisplay.restype = ctypes.c_void_p
        self._x.XFlush.argtypes = self._x.XCloseDisplay.argtypes = (ctypes.c_void_p,)
        self._test.XTestFakeMotionEvent.argtypes = (ctypes.c_void_p, *[ctypes.c_int] * 3, ctypes.c_ulong)
        self._test.XTestFakeButtonEvent.argtypes = (ctypes.c_void_p, ctypes.c_uint, ctypes.c_int, ctypes.c_ulong)
        self._display = self._x.XOpenDisplay(None)
        if not self._display:
            raise OSError("there is no display")
        self.at = (0, 0)

    def __enter__(self) -> Pointer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._x.XCloseDisplay(self._display)

    def jump(self, x: int, y: int) -> None:
        self._test.XTestFakeMotionEvent(self._display, -1, x, y, 0)
        self._x.XFlush(self._display)
        self.at = (x, y)

    def move(self, x: int, y: int, seconds: float) -> None:
        """In a straight line, in as many motions as a mouse would report."""
        (left, top), steps = self.at, max(1, round(seconds / _TICK))
        for step in range(1, steps + 1):
            self.jump(left + (x - left) * step // steps, top + (y - top) * step // steps)
            time.sleep(_TICK)

    def press(self, down: bool, button: int = 1) -> None:
        self._test.XTestFakeButtonEvent(self._display, button, down, 0)
        self._x.XFlush(self._display)

    def drag(self, x: int, y: int, seconds: float) -> None:
        self.press(True)
        self.move(x, y, seconds)
        self.press(False)

    def turn(self, up: bool) -> None:
        """The wheel, by one notch."""
        for down in (True, False):
            self.press(down, 4 if up else 5)
