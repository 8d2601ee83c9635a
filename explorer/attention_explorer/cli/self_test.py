"""`--self-test`: whether this installation can do what the program is for. A line for each thing that was tried.

The lines of the checkpoints tell the numbers too: two installations on one computer must print the same.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from attention_explorer.console import complain, say

if TYPE_CHECKING:
    from attention_explorer.session.training import TrainingState
    from attention_explorer.window.window import MainWindow

_WINDOW_SECONDS = 120.0  # that the window may take to settle
_TRAINED_SECONDS = 5.0
_DECODED = 10  # tokens
_PICTURE = "sample:chelsea"

Step = tuple[str, Callable[[], str]]
"""What is tried, and a function that returns what came of it, or raises."""


def self_test(more: str = "") -> int:
    """Try everything; the exit code is 0 if all of it worked.

    Args:
        more: a folder of checkpoints, each of which is opened and run too.
    """
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    before = os.environ.get("ATTENTION_EXPLORER_HOME")
    with tempfile.TemporaryDirectory(prefix="attention-explorer-ü ", ignore_cleanup_errors=True) as made:
        os.environ["ATTENTION_EXPLORER_HOME"] = str(Path(made, "home"))  # the person's settings stay as they are
        try:
            failed = [name for name, step in _steps(Path(made), more) if not _works(name, step)]
        finally:
            os.environ.pop("ATTENTION_EXPLORER_HOME")
            if before is not None:
                os.environ["ATTENTION_EXPLORER_HOME"] = before
    say(f"{'FAIL' if failed else 'ok'}\tself-test\t{', '.join(failed) or 'all of it worked'}")
    return 1 if failed else 0


@contextmanager
def _faults_raised() -> Iterator[None]:
    """What is raised while Qt paints reaches nobody: it is raised again at the end."""
    found: list[BaseException] = []
    before, sys.excepthook = sys.excepthook, lambda _kind, error, _trace: found.append(error)
    try:
        yield
    finally:
        sys.excepthook = before
    if found:
        raise found[0]


def _works(name: str, step: Callable[[], str]) -> bool:
    began = time.monotonic()
    try:
        with _faults_raised():
            found = step()
    except Exception as error:
        complain(traceback.format_exc())
        say(f"FAIL\t{name}\t{type(error).__name__}: {error}")
        return False
    complain(f"{name}: {time.monotonic() - began:.1f} s")
    say(f"ok\t{name}\t{found}")
    return True


def _steps(folder: Path, more: str) -> Iterator[Step]:
    from attention_models.files.catalogue import shipped

    for card in shipped():
        yield f"checkpoint {card.name}", partial(_run_checkpoint, card.name, card.example, folder)
    for path in sorted(Path(more).iterdir()) if more else ():
        if (path / "config.json").is_file():
            yield f"checkpoint {path.name}", partial(_run_checkpoint, str(path), "Tom and Anna went home.", folder)
    yield "decoding", _decode
    yield "session", partial(_save_session, folder)
    yield "chat template", _render
    yield from _window_steps(folder)


def _run_checkpoint(reference: str, text: str, folder: Path) -> str:
    """Its weights as they are saved and read again, by their SHA-256, and what it says last."""
    import attention_models as models
    from attention_models.opening.trial import TrialRequest
    from attention_models.opening.trial_process import verdict_on

    verdict_on(TrialRequest(reference=reference))
    model = models.open_checkpoint(reference)
    trace = models.run(model, _PICTURE if model.info.family == "vision" else text)
    path = folder / "weights.npz"
    models.save_weights(trace, path)
    saved, digest, count = models.load_weights(path), hashlib.sha256(), 0
    for site in saved.sites:
        stack, _, layer = site.rpartition(".")
        weights = saved.weights(stack, int(layer))
        digest.update(weights.tobytes())
        count += weights.size
    logits = trace.output_logits
    last = "no logits" if logits is None else f"largest logit {float(logits[-1].max()):.6f}"
    return f"{len(trace.tokens)} tokens, {count} weights, SHA-256 {digest.hexdigest()[:16]}, {last}"


def _decode() -> str:
    import attention_models as models

    model = models.open_checkpoint("story-gpt")
    *_, last = models.decode(model, "Once upon a time", steps=_DECODED)
    if len(last.ids) != _DECODED:
        raise AssertionError(f"it wrote {len(last.ids)} tokens instead of {_DECODED}")
    return f"{last.text!r}"


def _save_session(folder: Path) -> str:
    """By the command itself, and opened again."""
    from attention_explorer.cli.arguments import parse
    from attention_explorer.cli.headless import run_without_window
    from attention_explorer.session import attn

    path = folder / "a lesson.attn"
    if run_without_window(parse(["--text", "Tom fell.", "--mask", "window:2", "--save", str(path)])):
        raise OSError("the session was not saved")
    document = attn.load(path).present.document
    if (document.text, len(document.interventions)) != ("Tom fell.", 1):
        raise AssertionError("the session came back as another")
    return "saved and opened again"


def _render() -> str:
    """In the process that renders templates."""
    from attention_models.text.template_process import THE_PROCESS

    template = "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}{% endfor %}<{{ add_generation_prompt }}>"
    rendered = THE_PROCESS.render(template, [{"role": "user", "content": "Hi! ü"}], True, {})
    THE_PROCESS.close()
    if rendered != "<user>Hi! ü<True>":
        raise AssertionError(f"it gave {rendered!r}")
    return "rendered in a process of its own"


def _window_steps(folder: Path) -> Iterator[Step]:
    """A window with the real engine: each checkpoint, every panel that it has, a training beside it, and a picture."""
    from attention_models.files.catalogue import SHIPPED

    opened: list[MainWindow] = []

    def begin() -> str:
        opened.append(_open_window())
        return f"opened with {len(opened[0].contents.panels)} panels"

    yield "window", begin
    if not opened:
        return
    for name in SHIPPED:
        yield f"panels of {name}", partial(_visit, opened[0], name)
    yield "training", partial(_train, opened[0], folder)
    yield "picture", partial(_save_picture, opened[0], folder)
    yield "closing", partial(_close, opened[0])


def _open_window() -> MainWindow:
    from PySide6.QtWidgets import QApplication

    from attention_explorer.cli.arguments import parse
    from attention_explorer.cli.first_state import first_state
    from attention_explorer.session.view_options import ViewOptions
    from attention_explorer.settings import Settings
    from attention_explorer.window.display import why_unreadable
    from attention_explorer.window.window import MainWindow

    QApplication.instance() or QApplication(sys.argv[:1])
    if unreadable := why_unreadable():
        raise OSError(unreadable)
    window = MainWindow(first_state(parse([]), ViewOptions()), Settings(theme="light"), remembers=False)
    window.resize(1440, 900)
    window.show()
    window.start()
    _settle(window)
    return window


def _settle(window: MainWindow) -> None:
    from attention_explorer.window.screen import wait_within

    if not wait_within(_WINDOW_SECONDS, window.is_settled):
        raise TimeoutError(f"the window has not settled within {_WINDOW_SECONDS:.0f} seconds")
    notice = window.session.state.notice
    if notice is not None and notice.kind == "error":
        raise RuntimeError(notice.text)


def _visit(window: MainWindow, checkpoint: str) -> str:
    from attention_explorer.session.intents import OpenCheckpoint

    if window.session.state.document.checkpoint != checkpoint:
        window.session.dispatch(OpenCheckpoint(checkpoint))
        _settle(window)
    loaded = window.session.state.results.loaded
    if loaded is None or loaded.info.name != checkpoint:
        raise RuntimeError(f"{checkpoint} is not open")
    visited = []
    for panel in tuple(window.contents.panels):
        if panel.name in window.dock_host.docks:
            window.dock_host.raise_panel(panel.name)
            _settle(window)
            if panel not in window.contents.panels:
                raise RuntimeError(f"the panel {panel.title} was switched off")
            visited.append(panel.title)
    return ", ".join(visited)


def _train(window: MainWindow, folder: Path) -> str:
    """As the Playground does: a process learns beside the window, which opens what it learns and saves it."""
    import attention_models as models
    from attention_explorer.session.intents import TellTraining, Train
    from attention_models.protocol.training_messages import Asked, Save

    out = folder / "learned"
    window.session.dispatch(Train(Asked("copy", seconds=_TRAINED_SECONDS)))
    ended = _trained(window, lambda training: training.phase == "ended")
    _settle(window)  # on the checkpoint of its first step
    window.session.dispatch(TellTraining(Save(str(out))))
    _trained(window, lambda training: training.saved == str(out))
    if not (ended.step and ended.curves.points):
        raise RuntimeError("it learned nothing")
    name = models.open_checkpoint(str(out)).info.name
    return f"{name} learned for {_TRAINED_SECONDS:.0f} s in a process of its own, was saved, and is open"


def _trained(window: MainWindow, is_there: Callable[[TrainingState], bool]) -> TrainingState:
    """The window's training once it has come so far."""
    from attention_explorer.window.screen import wait_within

    def training() -> TrainingState:
        found = window.session.live.learning
        assert found is not None
        return found

    if not wait_within(_WINDOW_SECONDS, lambda: training().phase == "failed" or is_there(training())):
        raise TimeoutError(f"the training is still {training().phase} after {_WINDOW_SECONDS:.0f} seconds")
    if training().phase == "failed":
        raise RuntimeError(training().sentence)
    return training()


def _save_picture(window: MainWindow, folder: Path) -> str:
    from attention_explorer.window.dialogs import save_picture

    path = folder / "window.png"
    if sentence := save_picture(window.grab(), path):
        raise OSError(sentence)
    if not path.read_bytes().startswith(b"\x89PNG"):
        raise OSError("the picture is no PNG")
    return "saved"


def _close(window: MainWindow) -> str:
    from PySide6.QtWidgets import QApplication

    window.close()
    QApplication.processEvents()
    if not window.stopped:
        raise RuntimeError("the engine did not stop")
    return "the window is closed, its engine stopped"
