"""Libraries of the system that an import may lack on a bare Linux, and the packages that have them."""

from __future__ import annotations

import ctypes
import os
import re
import shutil

PACKAGES = {
    "libEGL.so.1": ("libegl1", "libglvnd"),
    "libGL.so.1": ("libgl1", "libglvnd"),
    "libX11.so.6": ("libx11-6", "libx11"),
    "libX11-xcb.so.1": ("libx11-xcb1", "libx11"),
    "libdbus-1.so.3": ("libdbus-1-3", "dbus"),
    "libfontconfig.so.1": ("libfontconfig1", "fontconfig"),
    "libfreetype.so.6": ("libfreetype6", "freetype2"),
    "libglib-2.0.so.0": ("libglib2.0-0", "glib2"),
    "libgthread-2.0.so.0": ("libglib2.0-0", "glib2"),
    "libsystemd.so.0": ("libsystemd0", "systemd-libs"),
    "libwayland-client.so.0": ("libwayland-client0", "wayland"),
    "libwayland-cursor.so.0": ("libwayland-cursor0", "wayland"),
    "libwayland-egl.so.1": ("libwayland-egl1", "wayland"),
    "libxcb.so.1": ("libxcb1", "libxcb"),
    "libxcb-cursor.so.0": ("libxcb-cursor0", "xcb-util-cursor"),
    "libxcb-icccm.so.4": ("libxcb-icccm4", "xcb-util-wm"),
    "libxcb-image.so.0": ("libxcb-image0", "xcb-util-image"),
    "libxcb-keysyms.so.1": ("libxcb-keysyms1", "xcb-util-keysyms"),
    "libxcb-randr.so.0": ("libxcb-randr0", "libxcb"),
    "libxcb-render.so.0": ("libxcb-render0", "libxcb"),
    "libxcb-render-util.so.0": ("libxcb-render-util0", "xcb-util-renderutil"),
    "libxcb-shape.so.0": ("libxcb-shape0", "libxcb"),
    "libxcb-shm.so.0": ("libxcb-shm0", "libxcb"),
    "libxcb-sync.so.1": ("libxcb-sync1", "libxcb"),
    "libxcb-util.so.1": ("libxcb-util1", "xcb-util"),
    "libxcb-xfixes.so.0": ("libxcb-xfixes0", "libxcb"),
    "libxcb-xkb.so.1": ("libxcb-xkb1", "libxcb"),
    "libxkbcommon.so.0": ("libxkbcommon0", "libxkbcommon"),
    "libxkbcommon-x11.so.0": ("libxkbcommon-x11-0", "libxkbcommon-x11"),
}
"""File names of libraries that Qt needs, and their packages on Debian and Ubuntu, and on Arch. Fedora and openSUSE
install by file name. `packaging/linux/libraries.sh` has the same table, less libsystemd, of the frozen program."""

_OPTIONAL = ("libsystemd.so.0", "libwayland-client.so.0", "libwayland-cursor.so.0", "libwayland-egl.so.1")
"""Named only where the loader does: Qt does without."""

_MISSING = re.compile(r"(lib[\w.+-]+\.so[\w.]*): cannot open shared object file")

_INSTALL = {
    "apt-get": "apt-get install",
    "dnf": "dnf install",
    "zypper": "zypper install",
    "pacman": "pacman -S",
}


def missing_library(said: str) -> str:
    """A sentence for the person where the loader's message is about a library that is not there; "" otherwise.

    The loader names only the first that it misses. The sentence names all that Qt would miss after it, and one command
    that installs them with this computer's package manager.
    """
    found = _MISSING.search(said)
    if found is None:
        return ""
    named = found[1]
    if named not in PACKAGES:
        return f"The library {named} is missing on this computer. Install it from your distribution."
    missing = sorted({named, *(name for name in PACKAGES if name not in _OPTIONAL and not _loads(name))})
    names = f"library {named} is" if len(missing) == 1 else f"libraries {', '.join(missing)} are"
    install = "Install it" if len(missing) == 1 else "Install them"
    return f"The {names} missing on this computer. {install} {_how(missing)}"


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def _how(libraries: list[str]) -> str:
    """With which command they are installed here."""
    manager = next(filter(shutil.which, _INSTALL), None)
    if manager is None:
        return "from your distribution."
    if manager in ("dnf", "zypper"):
        packages = [f"'{library}()(64bit)'" for library in libraries]
    else:
        packages = sorted({PACKAGES[library][manager == "pacman"] for library in libraries})
    root = "" if os.geteuid() == 0 else "sudo "
    return f"with: {root}{_INSTALL[manager]} {' '.join(packages)}"
