"""The window started from Python, on a checkpoint or on a model that the program has as an object."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QApplication

from attention_explorer import settings as remembered
from attention_explorer.cli.first_state import example_of
from attention_explorer.compute.worker import open_engine
from attention_explorer.session.prompt_modes import with_prompt
from attention_explorer.session.state import Document, State
from attention_explorer.session.text_limits import check_document
from attention_explorer.session.texts import with_prompt_texts
from attention_explorer.window.display import check_display
from attention_explorer.window.window import MainWindow
from attention_models.files import collecting
from attention_models.protocol.batch import Batch
from attention_models.protocol.chat import Pair
from attention_models.protocol.errors import DisplayError, InputError

log = logging.getLogger(__name__)

_windows: set[MainWindow] = set()
"""Open ones: nobody else may hold them."""

_applications: list[QApplication] = []
"""Ours, where there was none. Python must not let go of it."""

_shells: list[Any] = []
"""The shell that tells us of its cells."""


def open(  # the name that a person writes: ax.open(model, tokenizer)
    model: Any,
    tokenizer: Any = None,
    text: str | tuple[str, str] | Sequence[str | tuple[str, str]] = "",
    *,
    name: str = "",
    family: Literal["causal", "masked", "encoder"] = "causal",
    forward: Callable[[Any], Any] | None = None,
    context: int | None = None,
    vocabulary: int | None = None,
) -> MainWindow:
    """Open a window on a model.

    In a notebook or an IPython shell it returns at once and Qt's events are served between cells; in a program that
    runs a Qt application it returns at once too; in a plain script it returns when the window is closed.

    Args:
        model: a checkpoint (a shipped name or a folder), or a torch module: one of transformers, or one of your own
            whose attention is torch's `scaled_dot_product_attention`, `nn.MultiheadAttention` or `ax.attend`.
            While the window is open the module is in eval mode and runs in the window's thread; closing gives it back
            as it was.
        tokenizer: for a module: one of transformers or tokenizers, an object with `encode` and `decode`, or a pair of
            such functions.
        text: what to run first: a text, a pair of texts ("first", "second"), or a list of such, which run together.
        name, family, forward, context, vocabulary: for a module of your own, see `ax.adopt`.

    Raises:
        attention_models.protocol.errors.CheckpointError: nothing of the module could be shown; the sentence says why.
        TypeError: a module without a tokenizer, or a checkpoint with what only a module needs.
        InputError: a text that is longer than the window takes, more texts than run at once, or something else.
        DisplayError: there is no display, Qt lacks a library, or this is not the main thread; the sentence says which.
    """
    document = _document(text)
    _check_window()
    if isinstance(model, (str, Path)):
        if tokenizer is not None or forward is not None:
            raise TypeError("A checkpoint brings its own tokenizer and forward: give its name or folder alone.")
        reference, factory, release = str(model), open_engine, _nothing
        if not text:
            first, second = example_of(reference)
            document = replace(document, text=first or document.text, second=second)
    else:
        if tokenizer is None:
            raise TypeError("A module needs a tokenizer beside it: ax.open(model, tokenizer).")
        from attention_models import adopt

        adopted = adopt(
            model, tokenizer, name=name, family=family, forward=forward, context=context, vocabulary=vocabulary
        )
        reference, release = adopted.info.reference, adopted.release
        factory = partial(open_engine, (adopted,))
    owner = _application()
    settings, sentence = remembered.load()
    if sentence:
        log.warning(sentence)
    document = replace(document, checkpoint=reference, view=settings.view)
    window = MainWindow(State(document), settings, factory)
    _windows.add(window)

    def on_closed() -> None:
        _windows.discard(window)
        release()

    window.closed.connect(on_closed)
    window.show()
    window.start()
    if owner:
        QApplication.exec()
    return window


def _document(text: object) -> Document:
    """The document that reads `text`, as `open` takes it. Raises InputError where the window does not take it."""
    if isinstance(text, str):
        document = Document(checkpoint="", text=text or "Hello")
    elif isinstance(text, (tuple, Pair)):
        document = with_prompt(Document(checkpoint="", text=""), Pair.of(text) if isinstance(text, tuple) else text)
    elif isinstance(text, list) and all(isinstance(one, (str, tuple, Pair)) for one in text):
        document = with_prompt_texts(Document(checkpoint="", text=""), Batch.of(text))
    else:
        raise InputError(
            f"The window opens with a text, a pair of texts or a list of such, not with a {type(text).__name__}."
        )
    try:
        check_document(document)
    except ValueError as cause:
        raise InputError(f"{str(cause).capitalize()}. Give it a shorter part.") from cause
    return document


def _check_window() -> None:
    """Raise DisplayError where Qt would abort the process, and with it all that a notebook holds."""
    if threading.current_thread() is not threading.main_thread():
        raise DisplayError("A window opens from the main thread alone. Call ax.open there.")
    application = QCoreApplication.instance()
    if application is None:
        check_display()
    elif not isinstance(application, QApplication):
        kind = type(application).__name__
        raise DisplayError(f"This program runs a {kind}, which shows no widgets. Make a QApplication in its place.")


def _application() -> bool:
    """Make sure that there is a QApplication; whether this call is to run it."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is not None:
        shell.enable_gui("qt6")
        if not _shells:
            _shells.append(shell)
            shell.events.register("pre_run_cell", _before_cell)
            shell.events.register("post_run_cell", _after_cell)
    if QApplication.instance() is not None:
        return False
    application = QApplication(sys.argv[:1])
    application.setApplicationName("Attention Explorer")
    _applications.append(application)
    return shell is None


def _before_cell(*_: object) -> None:
    """While a cell runs Qt serves no events, and nothing of Qt's becomes garbage: Python may look for it again."""
    collecting.collect()
    collecting.give_back_for_a_while()


def _after_cell(*_: object) -> None:
    collecting.take_again()


def _nothing() -> None:
    pass
