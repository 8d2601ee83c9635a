"""Words written from right to left: no sentence, tooltip, menu or title about them is scrambled."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QPoint
from PySide6.QtGui import QHelpEvent
from PySide6.QtWidgets import QLabel, QLineEdit, QMenu, QPlainTextEdit, QTextEdit, QToolTip, QWidget
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from attention_explorer.panels.head.panel import ask_menu
from attention_explorer.session.intents import PutIntervention, SelectCell
from attention_explorer.widgets.token_text import apart, isolated
from attention_explorer.window.window import MainWindow
from attention_models.protocol.interventions import Mask
from attention_models.protocol.values import SiteRef
from tests.explorer.real_window import opened_window, settle
from tests.models import tiny

TEXT = "القط الأسود ينام على הכלב השחור"
NAME = "كتاب"  # of the checkpoint's folder
LEFTWARD = re.compile("[\u0590-\u08ff]")
ISOLATE = re.compile("\u2068[^\u2069]*\u2069")


def scrambled(said: str) -> bool:
    """Whether letters of both directions stand in one run of text (Unicode UAX 9)."""
    rest = ISOLATE.sub("", said)
    return bool(LEFTWARD.search(rest) and re.search("[A-Za-z]", rest))


def words() -> PreTrainedTokenizerFast:
    vocabulary = {word: i for i, word in enumerate(["<unk>", "<s>", *TEXT.split()])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="<s>", model_max_length=60
    )


@pytest.fixture(scope="module")
def window(qapp: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MainWindow]:
    folder: Path = tmp_path_factory.mktemp("right") / NAME
    folder.mkdir()
    tiny.save(replace(tiny.KINDS["gpt2"], tokenizer=words), folder)
    with opened_window(str(folder), TEXT) as window:
        mask = Mask("painted", cells=((3, 1, False),), site=SiteRef("decoder", 1), head=0)
        window.session.dispatch(PutIntervention(mask))
        window.session.dispatch(SelectCell(query=4, key=2))
        settle(window)
        yield window


def said_by(widget: QWidget) -> Iterator[str]:
    if isinstance(widget, QPlainTextEdit | QTextEdit | QLineEdit):
        return  # what is typed is Qt's to lay out
    for name in ("text", "title", "currentText", "windowTitle"):
        asked = getattr(widget, name, None)
        if callable(asked) and isinstance(said := asked(), str):
            yield said
    for action in widget.actions():
        yield from (action.text(), action.toolTip())
    yield isolated(widget.toolTip())  # as they are shown: below


@pytest.mark.full
def test_every_panel_keeps_words_apart(window: MainWindow) -> None:
    seen = 0
    for panel in window.panels:
        window.dock_host.raise_panel(panel.name)
        QCoreApplication.processEvents()
        settle(window)
        for widget in window.findChildren(QWidget):
            for said in said_by(widget):
                seen += bool(LEFTWARD.search(said))
                assert not scrambled(said), (panel.name, type(widget).__name__, said)
    assert seen > 20


def test_a_tooltip_is_shown_with_its_words_apart(window: MainWindow) -> None:
    label = QLabel("4", window)
    label.setToolTip(f"The row of “{TEXT.split()[0]}” rests on “{TEXT.split()[-1]}”: 0.5")
    label.show()
    QCoreApplication.sendEvent(label, QHelpEvent(QEvent.Type.ToolTip, QPoint(1, 1), QPoint(100, 100)))
    assert QToolTip.text() == isolated(label.toolTip()) != label.toolTip()
    QToolTip.hideText()
    label.deleteLater()


def test_questions_about_a_cell_keep_its_words_apart(window: MainWindow) -> None:
    menu = ask_menu(window, TEXT.split()[3], TEXT.split()[-1], lambda _kind: None)
    asked = [action.text() for action in menu.actions() if LEFTWARD.search(action.text())]
    assert len(asked) == 3
    assert not any(map(scrambled, asked))
    menu.deleteLater()


def test_titles_and_menus_keep_names_apart(window: MainWindow) -> None:
    window.sessions.keep("الحالة 2")
    assert window.windowTitle().startswith(f"{apart(NAME)} - ")
    listed = [action for action in window.menuBar().actions() if action.text() == "&States"]
    menu = listed[0].menu()
    assert isinstance(menu, QMenu)
    menu.aboutToShow.emit()
    kept = next(action for action in menu.actions() if "الحالة" in action.text())
    assert kept.toolTip().startswith(f"{apart('الحالة 2')}: ")
    assert not scrambled(kept.toolTip())
