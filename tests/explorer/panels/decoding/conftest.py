"""The Decode panel on story-gpt."""

from __future__ import annotations

import pytest

from attention_explorer.panels.decoding.panel import DecodingPanel
from attention_explorer.session.intents import (
    SelectHead,
)
from attention_models.engine.engine import Engine
from attention_models.forward.model import Model
from attention_models.protocol.loading import Loaded, LoadRequest
from attention_models.protocol.running import ForwardRequest, RunInputs
from attention_models.protocol.values import SiteRef
from tests.explorer.panels.decoding.answered import TEXT, Answered
from tests.explorer.silent import shown
from tests.models.asking import ask


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine()


@pytest.fixture(scope="module")
def story_gpt() -> tuple[Loaded, Model]:
    """What an engine answers that opens it, and the model."""
    engine = Engine()
    loaded, model = ask(engine, LoadRequest(ticket=1, reference="story-gpt")), engine.workspace.model
    assert isinstance(loaded, Loaded)
    assert model is not None
    return loaded, model


@pytest.fixture
def session(engine: Engine, story_gpt: tuple[Loaded, Model]) -> Answered:
    loaded, model = story_gpt
    engine.workspace.open(model)  # and nothing is left of the test before
    session = Answered(engine, TEXT)
    session.arrive(loaded)
    session.run(ForwardRequest(inputs=RunInputs(TEXT), ticket=2))
    session.dispatch(SelectHead(SiteRef("decoder", 5), 5))
    return session


@pytest.fixture
def panel(qtbot, session) -> DecodingPanel:
    panel = shown(qtbot, DecodingPanel, session)
    panel.resize(440, 520)
    return panel
