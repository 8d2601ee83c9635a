"""A folder to break, and an engine that has another checkpoint open meanwhile."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from attention_models.engine.engine import Engine
from attention_models.protocol.loading import Loaded, LoadRequest
from attention_models.protocol.running import ForwardRequest, Ran, RunInputs
from tests.models.asking import never, silent
from tests.models.opening.damage import NAME
from tests.models.tiny import TinyFolder


@pytest.fixture
def folder(tiny_folder: TinyFolder, tmp_path: Path) -> Path:
    """A sound checkpoint of one's own, to break."""
    return Path(shutil.copytree(tiny_folder("gpt2"), tmp_path / NAME))


@pytest.fixture(scope="module")
def engine(tiny_folder: TinyFolder) -> Engine:
    """An engine with a checkpoint open and a run held."""
    engine = Engine()
    assert isinstance(engine.run(LoadRequest(reference=str(tiny_folder("llama"))), never, silent), Loaded)
    assert isinstance(engine.run(ForwardRequest(inputs=RunInputs("Tom and Anna"), ticket=5), never, silent), Ran)
    return engine
