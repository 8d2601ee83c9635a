"""What holds for every test: headless, offline, in a folder of its own, and nothing left behind.

With `-n auto` the tests run in one process a core, at most eight, each of which computes on one thread.

A test fails when an exception escapes a slot or a thread, when Qt logs a warning (`qt_log_level_fail` in
pyproject.toml), and when a thread or a top-level window outlives it.
"""

from __future__ import annotations

import gc
import logging
import os
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Generator, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from types import TracebackType

import hypothesis
import pytest

from attention_explorer.missing_libraries import missing_library

try:
    from PySide6.QtCore import QCoreApplication, QEvent
    from PySide6.QtWidgets import QApplication, QComboBox, QWidget
except ImportError as error:
    if sentence := missing_library(str(error)):
        sys.exit(sentence)
    raise

from tests.real_disks import Disk, mounted

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")  # a caller under Xvfb says xcb
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_OFFLINE"] = "1"
if "PYTEST_XDIST_WORKER" in os.environ:
    # Read when torch is imported. Two processes of two threads each, on two cores, take twice as long as one process.
    os.environ["OMP_NUM_THREADS"] = "1"

ROOT = Path(__file__).resolve().parents[1]

THREAD_GRACE_SECONDS = 2.0
"""How long a thread that was told to stop may take to end before it counts as leaked."""

call_failed = pytest.StashKey[bool]()


def pytest_configure(config: pytest.Config) -> None:
    if "not full" in config.option.markexpr:
        hypothesis.settings.register_profile("short", max_examples=25)
        hypothesis.settings.load_profile("short")
    # huggingface_hub reads HF_HOME once, when it is imported, so that one cannot be set test by test.
    hub = tempfile.TemporaryDirectory(prefix="attention-explorer-hub-")
    os.environ["HF_HOME"] = hub.name
    config.add_cleanup(hub.cleanup)
    # Processes that tests start find the packages of this checkout, as pytest does by `pythonpath`.
    os.environ["PYTHONPATH"] = os.pathsep.join(str(ROOT / name) for name in ("explorer", "models"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """For `-n auto`: each process holds torch and the included models, which is half a gigabyte or more."""
    return min(8, os.cpu_count() or 1)


@pytest.hookimpl(tryfirst=True)  # before `-m` is applied
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark `full` each case of a parametrized test that no pattern of its `short` marker matches.

    A pattern is a whole id, as between the brackets, or has `*` for any characters.
    """
    unmatched: dict[tuple[str, str], bool] = {}
    for item in items:
        if (marker := item.get_closest_marker("short")) and isinstance(item, pytest.Function):
            name = item.nodeid.removesuffix(f"[{item.callspec.id}]")
            found = [p for p in marker.args if fnmatchcase(item.callspec.id, p)]
            unmatched |= {(name, p): unmatched.get((name, p), True) and p not in found for p in marker.args}
            if not found:
                item.add_marker("full")
    wrong = [f"{name} has no case {pattern!r}" for (name, pattern), none in unmatched.items() if none]
    if wrong and not any("[" in argument for argument in config.args):  # all cases were collected
        raise pytest.UsageError("\n".join(wrong))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "call":
        item.stash[call_failed] = report.failed
    return report


@pytest.fixture(scope="session", autouse=True)
def settings_of_the_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A settings folder for fixtures that outlive a test, which `settings_folder` comes too late for."""
    with pytest.MonkeyPatch.context() as patch:
        if not os.environ.get("ATTENTION_EXPLORER_HOME"):
            patch.setenv("ATTENTION_EXPLORER_HOME", str(tmp_path_factory.mktemp("home")))
        yield


@pytest.fixture(autouse=True)
def settings_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty settings folder for this test alone; caches go below it too."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("ATTENTION_EXPLORER_HOME", str(folder))
    for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(folder / name.lower()))
    return folder


@pytest.fixture(autouse=True)
def nothing_left_behind(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that passed but leaves a running thread or a top-level window.

    After a failure nothing is checked: the traceback itself keeps widgets alive.
    """
    threads_before = set(threading.enumerate())
    windows_before = top_level_windows()
    yield
    if request.node.stash.get(call_failed, False):
        return
    threads = leaked_threads(threads_before)
    windows = leaked_windows(windows_before)
    if threads:
        pytest.fail("threads still running after the test: " + ", ".join(sorted(t.name for t in threads)))
    if windows:
        pytest.fail("top-level windows left after the test: " + ", ".join(describe(w) for w in windows))


@pytest.fixture(autouse=True)
def unhandled_exceptions(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[BaseException]]:
    """Exceptions that reached `sys.excepthook` (slots, virtual methods) or `threading.excepthook`, or for which a
    panel is left out or switched off; they fail the test.

    A test that provokes one on purpose asks for this fixture, checks the list and clears it.
    """
    caught: list[BaseException] = []

    def from_slot(_: type[BaseException], error: BaseException, __: TracebackType | None) -> None:
        caught.append(error)

    def from_thread(args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None and not isinstance(args.exc_value, SystemExit):
            caught.append(args.exc_value)

    class FromPanel(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            error = record.exc_info[1] if record.exc_info is not None else None
            caught.append(error or RuntimeError(record.getMessage()))

    from_panel, panels = FromPanel(logging.ERROR), logging.getLogger("attention_explorer.panels")
    panels.addHandler(from_panel)
    monkeypatch.setattr(sys, "excepthook", from_slot)
    monkeypatch.setattr(threading, "excepthook", from_thread)
    yield caught
    panels.removeHandler(from_panel)
    if caught:
        pytest.fail("exceptions nobody handled:\n" + "\n".join("".join(traceback.format_exception(e)) for e in caught))


def top_level_windows() -> list[QWidget]:
    """The application's top-level widgets; none where no QApplication was made.

    Without the lists of choices that Qt makes with combo boxes: they go with their boxes.
    """
    if QApplication.instance() is None:
        return []
    return [w for w in QApplication.topLevelWidgets() if not isinstance(w.parentWidget(), QComboBox)]


def leaked_threads(before: set[threading.Thread]) -> list[threading.Thread]:
    """Threads started since `before` that do not end within the grace."""
    deadline = time.monotonic() + THREAD_GRACE_SECONDS
    new = [t for t in threading.enumerate() if t not in before and not is_permanent(t)]
    for thread in new:
        thread.join(max(0.0, deadline - time.monotonic()))
    return [t for t in new if t.is_alive()]


def is_permanent(thread: threading.Thread) -> bool:
    """Threads that live as long as the process by design, none of them ours.

    A `_DummyThread` stands for a thread that Qt or torch made and that once called Python; tqdm keeps one monitor.
    """
    return type(thread).__name__ in ("_DummyThread", "TMonitor")


def leaked_windows(before: list[QWidget]) -> list[QWidget]:
    """Top-level windows opened since `before` that neither a deferred delete nor the garbage collector removes."""
    if QApplication.instance() is None:
        return []
    for _ in range(2):  # a collected wrapper may post one more deferred delete
        QApplication.processEvents()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
        if not any(w not in before for w in top_level_windows()):
            return []
        gc.collect()
    return [w for w in top_level_windows() if w not in before]


def describe(window: QWidget) -> str:
    """Class and title or object name of a window, for a failure message."""
    return f"{type(window).__name__} {window.windowTitle() or window.objectName()!r}"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Disk]:
    """Skipped where nothing can be mounted."""
    with mounted(tmp_path / "disk") as disk:
        yield disk
