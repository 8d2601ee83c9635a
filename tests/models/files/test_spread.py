"""Models spread over several devices by accelerate, and what it parts wrongly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from attention_models import open_checkpoint, run
from attention_models.engine.engine import Engine
from attention_models.protocol.errors import CheckpointError
from attention_models.protocol.loading import Loaded, LoadRequest
from attention_models.protocol.values import AUTO, Placement
from tests.models import tiny
from tests.models.asking import ask
from tests.models.everything import PICTURES, aligned, everything, open_in, text_of, unlike
from tests.pretend_device import DEVICE

pytestmark = pytest.mark.usefixtures("pretended")


def told_of_cards(monkeypatch: pytest.MonkeyPatch, first: int, second: int) -> None:
    """accelerate, which knows the real ones, is told of these cards and how many bytes they have."""
    cards = {DEVICE: first, "pretend:1": second, "cpu": 1_000_000_000}
    monkeypatch.setattr("transformers.integrations.accelerate.get_max_memory", lambda _asked=None: cards)


@pytest.mark.full
def test_a_model_spread_over_two_cards_and_the_cpu_answers_the_same(monkeypatch, tmp_path):
    """What fits on neither card is kept aside on the CPU until it runs."""
    told_of_cards(monkeypatch, 16_000_000, 9_000_000)
    spread = Engine()
    loaded = ask(spread, LoadRequest(ticket=1, reference="story-gpt", placement=Placement(AUTO)))
    assert isinstance(loaded, Loaded)
    assert loaded.device == "PRETEND 1 (Card 1), PRETEND 0 (Card 0), CPU"
    assert loaded.placement == Placement(AUTO)
    # no gradients: torch prepares for the devices that there are when it first takes one, in whichever test that was
    here = everything(open_in("story-gpt", Placement("cpu")), tiny.SENTENCE, tmp_path, gradients=False)
    assert not unlike(here, everything(spread, tiny.SENTENCE, tmp_path, gradients=False))
    assert spread.workspace.run is not None
    assert {x.query.device.index for x in spread.workspace.run.trace.inputs} == {0, 1}


# accelerate says of a buffer beside the modules (mBART's) that it is no module
@pytest.mark.short("mbart")
@pytest.mark.filterwarnings("ignore:The following device_map keys do not match any submodules")
@pytest.mark.parametrize("kind", ["llama", "bert", "mbart", "t5", "gpt_oss", "modernbert"])
def test_a_family_can_be_spread(tiny_folder, monkeypatch, kind):
    here = open_checkpoint(tiny_folder(kind))
    size = sum(p.nbytes for p in aligned(here.module).parameters())
    told_of_cards(monkeypatch, size * 6 // 10, size)
    there = open_checkpoint(tiny_folder(kind), device=AUTO)
    text = text_of("bert") if here.info.mask_token else tiny.SENTENCE
    np.testing.assert_array_equal(run(there, text).logits, run(here, text).logits)
    assert {str(p.device) for p in there.module.parameters()} == {DEVICE, "pretend:1"}


def test_a_model_that_can_not_be_spread_after_all_is_refused_with_what_to_do(tiny_folder, monkeypatch):
    def broken(*_: Any, **__: Any) -> None:
        raise IndexError("list index out of range")  # as transformers 5.24, of some tied weights

    monkeypatch.setattr("transformers.integrations.accelerate.get_max_memory", broken)
    with pytest.raises(CheckpointError, match=r"cannot be loaded: list index out of range. Choose one device"):
        open_checkpoint(tiny_folder("llama"), device=AUTO)


def test_a_vision_model_can_be_spread(monkeypatch):
    here = open_checkpoint("vit-cifar10")
    size = sum(p.nbytes for p in aligned(here.module).parameters())
    told_of_cards(monkeypatch, size * 6 // 10, size)
    there = open_checkpoint("vit-cifar10", device=AUTO)
    picture = PICTURES["vit-cifar10"]
    np.testing.assert_array_equal(run(there, picture).logits, run(here, picture).logits)
    assert {str(p.device) for p in there.module.parameters()} == {DEVICE, "pretend:1"}


@pytest.mark.parametrize("kind", ["albert", "distilbert", "electra", "deberta_v2", "marian"])
def test_a_family_that_accelerate_would_part_within_its_attention_stays_on_one_card(tiny_folder, monkeypatch, kind):
    here = open_checkpoint(tiny_folder(kind))
    size = sum(p.nbytes for p in aligned(here.module).parameters())
    told_of_cards(monkeypatch, size // 2, size)
    there = open_checkpoint(tiny_folder(kind), device=AUTO)
    text = text_of("bert") if here.info.mask_token else tiny.SENTENCE
    np.testing.assert_array_equal(run(there, text).logits, run(here, text).logits)
    assert {str(p.device) for p in there.module.parameters()} == {DEVICE}
