"""Everything that the engine answers, on a device that is not the CPU: nothing mixes the two, and no number differs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from transformers import AutoModelForCausalLM, AutoTokenizer

from attention_models import adopt, decode, open_checkpoint, run
from attention_models.attention import attention, masks, pooling, tiles
from attention_models.attention import output as mixing
from attention_models.attention.incremental import BlockSize
from attention_models.effects import batched_runs
from attention_models.engine.engine import Engine
from attention_models.forward import logits
from attention_models.forward.recurrent_model import RecurrentModel
from attention_models.protocol import values
from attention_models.protocol.loading import Loaded, LoadRequest
from attention_models.protocol.values import Placement
from attention_models.trust.report import compare_with_formulas
from attention_models.views import long_comparison
from attention_models.views.recurrent_views import score_of
from tests.models.asking import ask
from tests.models.everything import PICTURES, aligned, everything, open_in, text_of, unlike
from tests.models.own_modules import CHARACTERS, CONTEXT, Reader, Writer
from tests.pretend_device import DEVICE

pytestmark = pytest.mark.usefixtures("pretended")


@pytest.fixture(autouse=True)
def copies_as_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device runs more copies of a run at once, and a sum over more rows is rounded otherwise."""
    monkeypatch.setattr(batched_runs, "TOKENS_AT_ONCE_ON_DEVICE", batched_runs.TOKENS_AT_ONCE["cpu"])


def check_everything(reference: str | Path, name: str, dtype: str, folder: Path) -> None:
    here, there = (
        everything(open_in(reference, Placement(place, dtype)), text_of(name), folder, PICTURES.get(name, ""))
        for place in ("cpu", DEVICE)
    )
    assert not unlike(here, there)


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("story-gpt", "float32"),
        ("story-bert", "float32"),
        ("en-es", "float32"),
        ("vit-cifar10", "bfloat16"),
        ("vit-quickdraw", "float32"),
    ],
)
def test_an_included_model_answers_everything_as_on_the_cpu(tmp_path, name, dtype):
    check_everything(name, name, dtype, tmp_path)


@pytest.mark.short("t5-float32")
@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        ("llama", "float32"),
        ("llama", "bfloat16"),
        ("gemma2", "float32"),
        ("gpt_oss", "bfloat16"),
        ("modernbert", "float32"),
        ("t5", "float32"),
        ("bert2bert", "bfloat16"),
        ("albert", "float32"),
        ("gpt_neo", "float32"),
        ("bloom", "bfloat16"),
        ("deberta_v2", "float32"),
        ("bert_bare", "float32"),
        ("bert_several", "float32"),
        ("bert_tagger", "bfloat16"),
        ("bert_answerer", "float32"),
        ("gpt2_classifier", "float32"),
    ],
)
def test_a_family_answers_everything_as_on_the_cpu(tiny_folder, tmp_path, kind, dtype):
    check_everything(tiny_folder(kind), kind, dtype, tmp_path)


@pytest.fixture
def everything_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is done for long texts is done from a few tokens on: fused kernels, blocks of rows, logits made later."""
    for module, name, value in (
        (attention, "EXACT_KEYS", 4),
        (mixing, "_ROWS_BLOCK", BlockSize(512, 512)),
        (mixing, "_LEAST_ROWS", 4),
        (masks, "GROUP", 4),
        (masks, "_BLOCK", BlockSize(512, 512)),
        (mixing, "_CACHE_BLOCK", 128),
        (pooling, "_BLOCK", BlockSize(512, 512)),
        (tiles, "_BLOCK", BlockSize(128, 128)),
        (long_comparison, "_BLOCK", BlockSize(128, 128)),
        (logits, "KEPT_BYTES", 1),
        (values, "LARGEST_WHOLE", 4),
    ):
        assert hasattr(module, name)
        monkeypatch.setattr(module, name, value)


@pytest.mark.full
@pytest.mark.parametrize(("kind", "dtype"), [("gpt2", "float32"), ("gemma2", "float32"), ("t5", "bfloat16")])
def test_a_long_text_is_answered_as_on_the_cpu(tiny_folder, tmp_path, everything_is_long, kind, dtype):
    check_everything(tiny_folder(kind), kind, dtype, tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("how", ["sdpa", "attend", "torch's encoder", "transformers"])
def test_a_model_that_was_handed_over_is_run_where_it_lies(tiny_folder, tmp_path, how):
    answers = []
    for place in ("cpu", DEVICE):
        if how == "transformers":
            folder = tiny_folder("llama")
            module = aligned(AutoModelForCausalLM.from_pretrained(folder)).to(place)
            adopted = adopt(module, AutoTokenizer.from_pretrained(folder))
        elif how == "torch's encoder":
            adopted = adopt(Reader().to(place), CHARACTERS, family="encoder", context=CONTEXT)
        else:
            adopted = adopt(Writer(how).to(place), CHARACTERS, context=CONTEXT)
        engine = Engine([adopted])
        loaded = ask(engine, LoadRequest(ticket=1, reference=adopted.info.reference))
        assert isinstance(loaded, Loaded)
        assert loaded.placement.device == place
        answers.append(list(everything(engine, "Tom went to the park.", tmp_path)))
        adopted.release()
    here, there = answers
    assert not unlike(iter(here), iter(there))


def test_a_recurrent_model_can_be_moved_by_hand():
    here, there = open_checkpoint("dates-luong"), open_checkpoint("dates-luong")
    there.module.to(DEVICE)
    assert isinstance(there, RecurrentModel)
    text, target = "March 1st, 2020", "2020-03"
    trace = run(there, text, target=target)
    np.testing.assert_allclose(trace.logits, run(here, text, target=target).logits, atol=1e-5)
    assert compare_with_formulas(there, trace).logit_difference < 1e-5
    assert score_of(there, trace, 0, 0)[1].shape == (len(trace.source),)
    written = [[step.text for step in decode(model, text, strategy="beam", beams=2)] for model in (here, there)]
    assert written[0] == written[1]
