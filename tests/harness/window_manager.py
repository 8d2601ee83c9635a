"""What a window manager does when somebody presses a window's close button: it asks the window to go, through X."""

from __future__ import annotations

import ctypes
import ctypes.util


class _ClientMessage(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_int),
        ("serial", ctypes.c_ulong),
        ("send_event", ctypes.c_int),
        ("display", ctypes.c_void_p),
        ("window", ctypes.c_ulong),
        ("message_type", ctypes.c_ulong),
        ("format", ctypes.c_int),
        ("data", ctypes.c_long * 5),
        ("padding", ctypes.c_long * 24),  # XSendEvent reads a whole XEvent
    )


_CLIENT_MESSAGE = 33


def ask_to_close(window: int) -> None:
    """Send WM_DELETE_WINDOW to a window of the display that DISPLAY names."""
    x = ctypes.CDLL(ctypes.util.find_library("X11") or "libX11.so.6")
    x.XOpenDisplay.restype = ctypes.c_void_p
    x.XInternAtom.restype = ctypes.c_ulong
    x.XInternAtom.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int)
    x.XSendEvent.argtypes = (ctypes.c_void_p, ctypes.c_ulong, ctypes.c_int, ctypes.c_long, ctypes.c_void_p)
    x.XCloseDisplay.argtypes = (ctypes.c_void_p,)
    display = x.XOpenDisplay(None)
    if not display:
        raise OSError("there is no display")
    message = _ClientMessage(type=_CLIENT_MESSAGE, window=window, format=32)
    message.message_type = x.XInternAtom(display, b"WM_PROTOCOLS", False)
    message.data[0] = x.XInternAtom(display, b"WM_DELETE_WINDOW", False)
    x.XSendEvent(display, window, False, 0, ctypes.byref(message))
    x.XCloseDisplay(display)  # which sends it
