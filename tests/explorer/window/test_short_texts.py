"""Copy as a short text, open one, and show it as a QR code, in the window."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
import segno
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from attention_explorer.session.intents import PutIntervention, SelectCell, SetText, SetView
from attention_explorer.session.kept import KeptState
from attention_explorer.session.short_texts import decode, encode
from attention_explorer.session.state import Document, InterventionItem, State
from attention_explorer.settings import Settings
from attention_explorer.widgets import dialogs
from attention_explorer.window.short_texts import QUIET
from attention_explorer.window.window import MainWindow
from attention_models.protocol.interventions import Scale
from attention_models.protocol.values import SiteRef
from tests.explorer.real_window import START, destroy, look_put_back, press, settle, wait_until

pytestmark = pytest.mark.x


@pytest.mark.full
def test_what_is_copied_here_is_opened_there(window: MainWindow, monkeypatch: pytest.MonkeyPatch) -> None:
    window.session.dispatch(PutIntervention(Scale(0.5, SiteRef("decoder", 5), 5)))
    window.session.dispatch(SelectCell(9, 3))
    window.dock_host.raise_panel("lookup")
    settle(window)
    window.menus["copy_short_text"].trigger()
    told = window.session.state.notice
    assert told is not None
    text, document = QApplication.clipboard().text(), window.session.state.document
    assert re.search(rf"\b{len(text)} characters\b", told.text)

    window.session.dispatch(SetText("Something else"))
    window.session.dispatch(SetView("colour_map", "magma"))
    window.dock_host.raise_panel("map")
    settle(window)
    asked: list[str] = []

    def answer(_window: object, _title: str, _label: str, there: str) -> str:
        asked.append(there)
        return there

    monkeypatch.setattr(dialogs, "line", answer)
    window.menus["open_short_text"].trigger()
    wait_until(lambda: window.session.state.document.text == document.text and window.is_settled())
    assert asked == [text], "what is on the clipboard stands in the field"
    own = replace(document, view=replace(document.view, colour_map="magma"))
    assert replace(window.session.state.document, writings=()) == replace(own, writings=())
    assert "lookup" in window.dock_host.front_panels()


def test_a_bad_one_changes_nothing(window: MainWindow, monkeypatch: pytest.MonkeyPatch) -> None:
    settle(window)
    before = window.session.state.document
    monkeypatch.setattr(dialogs, "line", lambda *_: "attn1.AAAAAAAAAA")
    window.menus["open_short_text"].trigger()
    notice = window.session.state.notice
    assert notice is not None
    assert notice.kind == "error"
    assert notice.text.startswith("This is no short text that can be opened: a part of it is missing")
    assert window.session.state.document == before


def modules_in(picture: QImage, window: MainWindow) -> np.ndarray:
    """What a camera sees of the code: which modules are darker than grey."""
    sheet, ratio = window.short_texts.sheet, picture.devicePixelRatio()
    code = sheet.code_rect()
    count = int(segno.make_qr(sheet.text, error="l").symbol_size(border=QUIET)[0])
    size = code.width() / count
    return np.array(
        [
            [
                picture.pixelColor(
                    round((code.x() + (x + 0.5) * size) * ratio), round((code.y() + (y + 0.5) * size) * ratio)
                ).lightness()
                < 128
                for x in range(count)
            ]
            for y in range(count)
        ]
    )


@pytest.mark.full
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_code_says_the_state_in_every_theme(window: MainWindow, theme: str) -> None:
    window.set_theme_name(theme)  # type: ignore[arg-type]
    settle(window)
    window.menus["show_code"].trigger()
    sheet = window.short_texts.sheet
    wait_until(sheet.isVisible)
    QTest.qWait(50)
    assert decode(sheet.text).document.text == window.session.state.document.text
    assert sheet.geometry() == window.contents.rect()
    seen = modules_in(sheet.grab().toImage(), window)
    meant = [[bool(value) for value in row] for row in segno.make_qr(sheet.text, error="l").matrix_iter(border=QUIET)]
    assert seen.tolist() == meant
    assert sheet.code_rect().height() > 0.75 * sheet.height()
    window.resize(1100, 700)
    QTest.qWait(100)
    assert sheet.geometry() == window.contents.rect()
    press(sheet, Qt.Key.Key_Escape)
    assert not sheet.isVisible()
    window.set_theme_name("light")


def test_a_click_puts_the_code_away(window: MainWindow) -> None:
    settle(window)
    window.menus["show_code"].trigger()
    wait_until(window.short_texts.sheet.isVisible)
    QTest.mouseClick(window.short_texts.sheet, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, QPoint(5, 5))
    assert not window.short_texts.sheet.isVisible()


@pytest.mark.full
def test_a_window_may_begin_with_one(qapp: QApplication) -> None:
    document = Document(checkpoint="story-bert", text="One [MASK].", interventions=(InterventionItem(Scale(0.5)),))
    with look_put_back():
        window = MainWindow(State(START), Settings(theme="light"), remembers=False)
        window.first_text = encode(KeptState(document))
        window.show()
        window.start()
        try:
            wait_until(lambda: window.session.state.ran is not None and window.is_settled())
            now = window.session.state
            assert (now.document.checkpoint, now.document.text) == (document.checkpoint, document.text)
            assert now.document.interventions == document.interventions
        finally:
            window.close()
            destroy(window)
