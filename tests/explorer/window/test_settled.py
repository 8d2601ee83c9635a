"""The window is at rest when nothing more comes: also where something could not be had, and the sentence is gone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from PySide6.QtWidgets import QApplication

from attention_explorer.session.intents import SetText, Show
from attention_explorer.window.window import MainWindow
from attention_models.engine.engine import Engine
from attention_models.protocol.atlas import AtlasRequest
from attention_models.protocol.head import HeadRequest
from attention_models.protocol.prediction import PredictionRequest
from attention_models.protocol.request import Request
from attention_models.protocol.running import ForwardRequest
from tests.explorer.real_window import back_to_start, opened_window, settle, wait_until


@pytest.fixture(scope="module")
def opened(qapp: QApplication) -> Iterator[MainWindow]:
    with opened_window() as window:
        yield window


@pytest.mark.full
@pytest.mark.parametrize("kind", [ForwardRequest, HeadRequest, AtlasRequest, PredictionRequest])
def test_after_an_error_in_the_program_itself(
    opened: MainWindow, kind: type[Request], monkeypatch: pytest.MonkeyPatch
) -> None:
    back_to_start(opened)
    plain = Engine.run

    def broken(self: Engine, request: Request, *rest: Any) -> Any:
        if isinstance(request, kind):
            raise RuntimeError("a fault of the program")
        return plain(self, request, *rest)

    monkeypatch.setattr(Engine, "run", broken)
    opened.session.dispatch(SetText(f"Max ran home. {kind.__name__}"))
    wait_until(lambda: opened.session.state.notice is not None and not opened.bridge.busy)
    assert opened.is_settled()
    opened.session.dispatch(Show(None))  # by its cross, say
    settle(opened)
    assert opened.session.state.notice is None
    monkeypatch.undo()
    opened.session.dispatch(SetText("Max ran home."))  # and all is well again
    assert not opened.is_settled()
    settle(opened)
    assert opened.session.state.caught_up
    assert not any(panel.is_waiting() for panel in opened.panels)
