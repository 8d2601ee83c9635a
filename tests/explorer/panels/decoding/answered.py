"""A session that a real engine answers, and what a person does in the Decode panel."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import Qt

from attention_explorer.session.state import Document, State
from attention_explorer.session.view_options import ViewOptions
from attention_models.engine.engine import Engine
from attention_models.forward.run import run
from attention_models.protocol.decoding import (
    DecodeRowsRequest,
    DecodeRowsView,
    DecodeSamplesRequest,
    DecodeStepRequest,
)
from attention_models.protocol.request import Request
from attention_models.protocol.values import SiteRef
from tests.explorer.silent import SilentSession
from tests.models.asking import ask

TEXT = "Tom and Anna went to the park. Anna gave the ball to"
LEFT = Qt.MouseButton.LeftButton
DECODING = (DecodeStepRequest, DecodeSamplesRequest, DecodeRowsRequest)


class Answered(SilentSession):
    """A session that a real engine answers, when it is told to. No window follows what is written."""

    def __init__(self, engine: Engine, text: str) -> None:
        super().__init__(State(Document(text=text, view=ViewOptions(follow=False))))
        self.engine = engine
        self.tickets = 10

    def answer(self) -> None:
        """What the panel asked for, and what it asks for because of that."""
        while waiting := [request for request in self.asked if isinstance(request, DECODING)]:
            for request in waiting:
                self.asked.remove(request)
                self.arrive(ask(self.engine, request))

    def run(self, request: Request) -> None:
        self.arrive(ask(self.engine, request))


def press(qtbot, session, button) -> None:
    qtbot.mouseClick(button, LEFT)
    session.answer()


def press_without_answer(qtbot, button) -> None:
    qtbot.mouseClick(button, LEFT)


def steps(qtbot, session, panel, count: int) -> None:
    for _ in range(count):
        press(qtbot, session, panel.view.transport.step_button)


def words(panel) -> str:
    return "".join(node.label for node in panel.player.branches.path())


def click_row(qtbot, session, bars, row: int) -> None:
    qtbot.mouseClick(bars, LEFT, pos=bars.row_rect(row).center().toPoint())
    session.answer()


def shown_rows(session, story_gpt_ids) -> None:
    """The picture is that of a whole pass over what the picked text had read."""
    view = session.state.results.of(DecodeRowsView)
    model = session.engine.workspace.model
    prompt = [token.id for token in model.tokenize(TEXT)]
    trace = run(model, [*prompt, *story_gpt_ids[:-1]], interventions=view.request.inputs.interventions)
    assert view.request.ids == tuple(story_gpt_ids)
    np.testing.assert_allclose(view.weights, trace.weights(SiteRef("decoder", 5), 5), atol=1e-5, rtol=0)
