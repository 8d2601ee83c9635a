"""What every refusal has to be."""

from __future__ import annotations

import pytest

from attention_models import open_checkpoint
from attention_models.engine.engine import Engine
from attention_models.protocol.errors import CheckpointError
from attention_models.protocol.head import HeadRequest, HeadView
from attention_models.protocol.loading import LoadRequest
from attention_models.protocol.request import Failure
from attention_models.protocol.values import SiteRef
from tests.models.asking import never, silent


def assert_refused(engine: Engine, reference: str, *words: str) -> None:
    """`reference` is refused with a sentence holding `words`, and the engine goes on with what it has."""
    with pytest.raises(CheckpointError) as caught:
        open_checkpoint(reference)
    sentence = str(caught.value)
    for word in words:
        assert word in sentence
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert len(sentence) < 600
    failure = engine.run(LoadRequest(ticket=9, reference=reference), never, silent)
    assert isinstance(failure, Failure)
    assert failure.sentence == sentence
    # the log gets what lies behind it, where anything does
    assert ("Traceback" in failure.cause) == (caught.value.__cause__ is not None)
    view = engine.run(HeadRequest(run=5, site=SiteRef("decoder", 1), head=2), never, silent)
    assert isinstance(view, HeadView)
