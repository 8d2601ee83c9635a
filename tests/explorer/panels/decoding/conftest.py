"""The Decode panel on story-gpt."""

from __future__ import annotations

import pytest

from attention_explorer.panels.decoding.panel import DecodingPanel
from attention_explorer.session.intents import (
    SelectHead,
)
from attention_models.engine.engine import Engine
from attention_models.protocol.loading import LoadRequest
from attention_models.protocol.run_inputs import RunInputs
from attention_models.protocol.running import ForwardRequest
from attention_models.protocol.values import SiteRef
from tests.explorer.panels.decoding.answered import TEXT, Answered
from tests.explorer.silent import shown


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine()


@pytest.fixture
def session(engine) -> Answered:
    session = Answered(engine, TEXT)
    session.run(LoadRequest(ticket=1, reference="story-gpt"))
    session.run(ForwardRequest(inputs=RunInputs(TEXT), ticket=2))
    session.dispatch(SelectHead(SiteRef("decoder", 5), 5))
    return session


@pytest.fixture
def panel(qtbot, session) -> DecodingPanel:
    panel = shown(qtbot, DecodingPanel, session)
    panel.resize(440, 520)
    return panel
