"""Open checkpoints, each made once for all tests: nothing may change them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest
import transformers

from attention_models import open_checkpoint
from attention_models.engine.engine import Engine
from attention_models.forward.model import Model
from tests import pretend_device
from tests.models import tiny
from tests.models.asking import opened
from tests.models.tiny import TinyFolder, TinyModel

transformers.logging.disable_progress_bar()


@pytest.fixture
def pretended() -> Iterator[None]:
    """A computer with an accelerator as strict as any: without float64, as Apple's have none."""
    with pretend_device.pretended(no_float64=True):
        yield


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> TinyFolder:
    """The folder of a tiny checkpoint, by its name in `tiny.KINDS`."""
    return cache(lambda kind: tiny.save(kind, tmp_path_factory.mktemp(kind) / kind))


@pytest.fixture(scope="session")
def tiny_model(tiny_folder: TinyFolder) -> TinyModel:
    """A tiny checkpoint, open, by its name in `tiny.KINDS`."""
    return cache(lambda kind: open_checkpoint(tiny_folder(kind)))


@pytest.fixture(scope="session")
def story_gpt() -> Model:
    return open_checkpoint("story-gpt")


@pytest.fixture(scope="session")
def story_bert() -> Model:
    return open_checkpoint("story-bert")


@pytest.fixture(scope="session")
def en_es() -> Model:
    return open_checkpoint("en-es")


@pytest.fixture(scope="module")
def gpt() -> Engine:
    """story-gpt, open. Tests run what they need and leave it open."""
    return opened("story-gpt")


@pytest.fixture(scope="module")
def bert() -> Engine:
    return opened("story-bert")
