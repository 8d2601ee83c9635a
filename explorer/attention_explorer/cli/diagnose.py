"""`--diagnose`: what a fault may depend on, to be sent along with its report. Nothing in it says who sends it."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from attention_explorer.console import say
from attention_explorer.missing_libraries import missing_library
from attention_explorer.presets import presets_path
from attention_explorer.recovery.log import log_path
from attention_explorer.settings import folder
from attention_explorer.version import __version__

PACKAGES = (
    *("PySide6-Essentials", "torch", "transformers", "tokenizers", "safetensors", "huggingface_hub", "httpx2"),
    *("numpy", "pyqtgraph", "pillow", "msgspec", "psutil", "gguf", "accelerate", "peft"),
)

_ENVIRONMENT = (
    *("ATTENTION_EXPLORER_HOME", "QT_QPA_PLATFORM", "QT_SCALE_FACTOR", "XDG_SESSION_TYPE", "OMP_NUM_THREADS"),
    *("HF_HOME", "HF_HUB_OFFLINE", "CUDA_VISIBLE_DEVICES", "LANG"),
)
"""Variables that change what the program does. No token is among them."""


def diagnose() -> int:
    """Print the report; the exit code is 0 also where parts of the program cannot be loaded, which it says."""
    for line in lines():
        say(line)
    return 0


def lines() -> Iterator[str]:
    """The report. The person's home folder is written ~."""
    yield f"Attention Explorer {__version__}, {_kind()}"
    yield f"Python {platform.python_version()} on {platform.platform()}, {platform.machine()}"
    yield ""
    for name in PACKAGES:
        yield f"{name} {_version(name)}"
    yield ""
    yield from _part("torch", _torch)
    yield from _part("Qt", _qt)
    yield ""
    for what, path in (("settings", folder()), ("log", log_path().parent), ("checkpoints fetched", _cache())):
        yield f"{what}: {without_home(path)} ({_writable(path)})"
    yield f"presets: {without_home(presets_path())} ({'there' if presets_path().is_file() else 'none'})"
    for name in _ENVIRONMENT:
        if name in os.environ:
            yield f"{name}={without_home(os.environ[name])}"


def without_home(text: str | Path) -> str:
    """`text` with ~ in the place of the person's home folder."""
    said, home = str(text), str(Path.home())
    return said.replace(home, "~") if len(home) > 1 else said


def _kind() -> str:
    if getattr(sys, "frozen", False):
        return "an installed program of its own"
    return f"in {without_home(sys.prefix)}"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "(not installed)"


def _part(name: str, about: Callable[[], Iterator[str]]) -> Iterator[str]:
    """What is said of a library, or in a line why it does not load."""
    try:
        yield from about()
    except (ImportError, OSError, RuntimeError) as error:
        yield f"{name} does not load: {missing_library(str(error)) or without_home(str(error))}"


def _torch() -> Iterator[str]:
    from attention_models.files.devices import devices

    for device in devices():
        yield f"device {device.name}: {device.label}"


def _qt() -> Iterator[str]:
    from attention_explorer.window.qt_facts import qt_facts

    yield from qt_facts()


def _cache() -> Path:
    from attention_models.files.hub_cache import cache_location

    return Path(cache_location())


def _writable(path: Path) -> str:
    there = next((place for place in (path, *path.parents) if place.exists()), path)
    if not os.access(there, os.W_OK):
        return "cannot be written"
    return "can be written" if there == path else "not there yet, can be made"
