"""LoRA adapters, against peft on transformers' own eager model, and against the base."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file, save_file

from models import Adapter, decode, open_checkpoint, run
from models.engine.engine import Engine
from models.files import adapter_files
from models.forward.model import Model
from models.opening.capabilities import capabilities
from models.opening.open import describe
from models.protocol.errors import CheckpointError
from models.protocol.interventions import check, is_neutral, same_slot
from models.protocol.loading import LoadRequest
from models.protocol.run_inputs import RunInputs
from models.protocol.running import ForwardRequest, Ran
from models.protocol.trust import TrustReport, TrustRequest
from models.views.residual import output_weight
from tests.models import lora, tiny
from tests.models.asking import never, silent
from tests.models.eager import TARGET
from tests.models.tiny import TinyFolder

Trained = Callable[..., Path]

# peft asks transformers for it
pytestmark = pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning")


@pytest.fixture
def adapter(tiny_folder: TinyFolder, tmp_path: Path) -> Trained:
    """The folder of an adapter of random numbers, as peft saves it, for a tiny checkpoint."""

    def make(kind: str, **settings: Any) -> Path:
        return lora.save(kind, tiny_folder(kind), tmp_path / f"{kind}-tuned", **settings)

    return make


@pytest.fixture
def beside(tiny_folder: TinyFolder, adapter: Trained, tmp_path: Path) -> Trained:
    """A checkpoint with the adapter in its folder."""

    def make(kind: str, **settings: Any) -> Path:
        folder = Path(shutil.copytree(tiny_folder(kind), tmp_path / f"{kind}-both"))
        for file in adapter(kind, **settings).glob("adapter_*"):
            shutil.copy(file, folder)
        return folder

    return make


def target_of(model: Model) -> str | None:
    return TARGET if model.seq2seq else None


def theirs(model: Model, base: Path, adapter: Path, on: bool) -> Any:
    """peft on transformers' own eager model, not merged."""
    plain = open_checkpoint(base)
    inputs = plain.encode(tiny.SENTENCE, target_of(plain)).inputs
    tuned = PeftModel.from_pretrained(tiny.eager(plain), adapter).eval()
    with torch.no_grad():
        if on:
            return tuned(**inputs, output_attentions=True)
        with tuned.disable_adapter():
            return tuned(**inputs, output_attentions=True)


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize("kind", lora.TARGETS)
def test_equals_peft_on_eager(tiny_folder: TinyFolder, adapter: Trained, kind: str, on: bool) -> None:
    folder = adapter(kind)
    model = open_checkpoint(folder)
    trace = run(model, tiny.SENTENCE, target=target_of(model), interventions=[] if on else [Adapter(on=False)])
    out = theirs(model, tiny_folder(kind), folder, on)
    attentions: dict[str, Any] = {
        "encoder": getattr(out, "encoder_attentions", None) or getattr(out, "attentions", None)
    }
    attentions["decoder"] = getattr(out, "decoder_attentions", None) or getattr(out, "attentions", None)
    attentions["cross"] = getattr(out, "cross_attentions", None)
    # the tuned weights are rounded once more where they are merged
    tolerance = 2e-5 if on else 1e-6
    for site in trace.sites:
        for head in range(site.heads):
            layers = attentions[site.stack] or out.attentions
            expected = layers[site.layer][0, head].numpy()
            np.testing.assert_allclose(trace.weights(site, head), expected, atol=tolerance)
    np.testing.assert_allclose(trace.logits, out.logits[0].numpy(), atol=1e-4 if on else 1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", lora.TARGETS)
def test_equals_peft_merged_to_the_last_digits(tiny_folder: TinyFolder, adapter: Trained, kind: str) -> None:
    folder = adapter(kind)
    model = open_checkpoint(folder)
    merged = PeftModel.from_pretrained(tiny.eager(open_checkpoint(tiny_folder(kind))), folder).merge_and_unload().eval()
    with torch.no_grad():
        out = merged(**model.encode(tiny.SENTENCE, target_of(model)).inputs, output_attentions=True)
    ours = run(model, tiny.SENTENCE, target=target_of(model))
    layers = out.encoder_attentions if model.seq2seq else out.attentions
    for site in ours.sites[: len(layers)]:
        np.testing.assert_allclose(ours.weights(site, 2), layers[site.layer][0, 2].numpy(), atol=1e-6)
    np.testing.assert_allclose(ours.logits, out.logits[0].numpy(), atol=1e-5)
    mine = dict(model.module.named_parameters())
    for name, parameter in merged.named_parameters():
        assert torch.equal(mine[name], parameter)


@pytest.mark.parametrize("kind", lora.TARGETS)
def test_off_is_the_base_to_the_last_bit_and_on_again_the_tuned(
    tiny_folder: TinyFolder, adapter: Trained, kind: str
) -> None:
    model, base = open_checkpoint(adapter(kind)), open_checkpoint(tiny_folder(kind))
    target = target_of(model)
    on = run(model, tiny.SENTENCE, target=target)
    off = run(model, tiny.SENTENCE, target=target, interventions=[Adapter(on=False)])
    plain = run(base, tiny.SENTENCE, target=target)
    assert np.array_equal(off.logits, plain.logits)
    assert float(np.abs(on.logits - off.logits).max()) > 0.01
    assert np.array_equal(run(model, tiny.SENTENCE, target=target).logits, on.logits)


def test_writing_with_the_adapter_off_is_that_of_the_base(tiny_folder: TinyFolder, adapter: Trained) -> None:
    model, base = open_checkpoint(adapter("gpt2")), open_checkpoint(tiny_folder("gpt2"))
    off = [step.ids for step in decode(model, tiny.SENTENCE, 8, interventions=[Adapter(on=False)])]
    assert off == [step.ids for step in decode(base, tiny.SENTENCE, 8)]
    assert off != [step.ids for step in decode(model, tiny.SENTENCE, 8)]


def test_scale_of_the_root_of_the_rank(tiny_folder: TinyFolder, adapter: Trained) -> None:
    folder = adapter("llama", use_rslora=True)
    model = open_checkpoint(folder)
    assert model.info.adapter is not None
    assert model.info.adapter.scale == pytest.approx(3)
    out = theirs(model, tiny_folder("llama"), folder, on=True)
    np.testing.assert_allclose(run(model, tiny.SENTENCE).logits, out.logits[0].numpy(), atol=1e-4)


def test_an_adapter_beside_the_weights_is_said_and_put_on(beside: Trained) -> None:
    folder = beside("gpt2")
    said = {line.name: line for line in capabilities(describe(str(folder)))}["Adapter"]
    assert said.works
    assert said.why == "LoRA of rank 4, alpha 6 (scale 1.5), on c_attn, c_proj (9 matrices)"
    assert open_checkpoint(folder).adapter is not None


def test_an_adapter_of_an_adapter_s_folder_is_named_after_it(adapter: Trained, tiny_folder: TinyFolder) -> None:
    folder = adapter("bert")
    info = open_checkpoint(folder).info
    assert (info.name, info.reference, info.folder) == ("bert-tuned", str(folder), str(tiny_folder("bert")))


def test_the_cell_reads_the_weights_that_ran(adapter: Trained, tiny_folder: TinyFolder) -> None:
    model, base = open_checkpoint(adapter("gpt2")), open_checkpoint(tiny_folder("gpt2"))
    trace = run(model, "Tom and")
    site = trace.sites[0]
    tuned, plain = output_weight(model, trace, site, 1), output_weight(base, trace, site, 1)
    assert tuned is not None
    assert plain is not None
    assert not torch.equal(tuned, plain)
    assert model.adapter is not None
    with model.adapter.off(model.module):
        untuned = output_weight(model, trace, site, 1)
    assert untuned is not None
    assert torch.equal(untuned, plain)


def trusted(folder: Path, spoil: Callable[[Model], None]) -> TrustReport:
    engine = Engine()
    engine.run(LoadRequest(reference=str(folder)), never, silent)
    model = engine.workspace.model
    assert model is not None
    spoil(model)
    ran = engine.run(ForwardRequest(inputs=RunInputs(tiny.SENTENCE), ticket=1), never, silent)
    assert isinstance(ran, Ran)
    report = engine.run(TrustRequest(run=1), never, silent)
    assert isinstance(report, TrustReport)
    return report


@pytest.mark.parametrize("kind", ["gpt2", "llama", "bert"])
def test_strip_holds_and_a_dropped_adapter_turns_it_red(adapter: Trained, kind: str) -> None:
    folder = adapter(kind)
    fine = trusted(folder, lambda model: None)
    assert max(fine.weight_difference, fine.logit_difference) < fine.tolerance

    def drop(model: Model) -> None:
        assert model.adapter is not None
        for name, weight in model.adapter.base.items():
            model.module.get_parameter(f"{name}.weight").data = weight

    assert trusted(folder, drop).weight_difference > 1e-3


def change(folder: Path, **settings: Any) -> None:
    path = folder / "adapter_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **settings}))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"peft_type": "IA3"}, "of the kind “IA3”"),
        ({"use_dora": True}, "DoRA"),
        ({"bias": "all"}, "trains biases too"),
        ({"modules_to_save": ["lm_head"]}, "replaces whole modules"),
        ({"rank_pattern": {"(a+)+$": 8}}, "rank of its own"),
        ({"init_lora_weights": "pissa"}, "changed its model's own weights"),
        ({"megatron_config": {"a": 1}, "megatron_core": "os"}, "Megatron"),
        ({"r": 0}, "is not of the rank 0"),
        ({"r": 5}, "is not of the rank"),
        ({"lora_alpha": None}, "names no rank"),
    ],
)
def test_what_is_not_put_on_is_said_and_the_model_opens_without(
    beside: Trained, tiny_folder: TinyFolder, settings: dict[str, Any], words: str
) -> None:
    folder = beside("gpt2")
    change(folder, **settings)
    model = open_checkpoint(folder)
    assert model.adapter is None
    assert model.info.adapter is not None
    assert words in model.info.adapter.why
    line = {line.name: line for line in capabilities(model.info)}["Adapter"]
    assert not line.works
    assert "not put on" in line.why
    assert np.array_equal(run(model, "Tom and").logits, run(open_checkpoint(tiny_folder("gpt2")), "Tom and").logits)
    with pytest.raises(ValueError, match="opened without an adapter"):
        run(model, "Tom and", interventions=[Adapter(on=False)])


def test_without_peft_it_is_said_how_to_get_it(beside: Trained, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter_files, "lacking", list)
    info = open_checkpoint(beside("gpt2")).info
    assert info.adapter is not None
    assert "python -m pip install peft" in info.adapter.why


def test_a_pickle_is_not_read(beside: Trained) -> None:
    folder = beside("gpt2")
    torch.save({"a": torch.zeros(1)}, folder / "adapter_model.bin")
    (folder / "adapter_model.safetensors").unlink()
    info = open_checkpoint(folder).info
    assert info.adapter is not None
    assert "pickle" in info.adapter.why


def test_an_adapter_whose_model_is_not_here(adapter: Trained) -> None:
    folder = adapter("gpt2")
    change(folder, base_model_name_or_path="nobody/nothing")
    with pytest.raises(CheckpointError, match=r"an adapter, which is put on another model.*nobody/nothing"):
        open_checkpoint(folder)
    change(folder, base_model_name_or_path=None)
    with pytest.raises(CheckpointError, match="a model that it does not name"):
        open_checkpoint(folder)


def test_an_adapter_of_another_model(adapter: Trained, tiny_folder: TinyFolder) -> None:
    folder = adapter("gpt2")
    change(folder, base_model_name_or_path=str(tiny_folder("llama")))
    with pytest.raises(CheckpointError, match=r"does not fit .* there is no transformer\.h\.0"):
        open_checkpoint(folder)


def test_an_adapter_of_no_numbers(adapter: Trained) -> None:
    path = adapter("gpt2") / "adapter_model.safetensors"
    tensors = load_file(path)
    first = next(iter(tensors))
    save_file({**tensors, first: torch.full_like(tensors[first], torch.nan)}, path)
    with pytest.raises(CheckpointError, match="no numbers"):
        open_checkpoint(path.parent)


def test_the_intervention_stands_beside_the_others() -> None:
    off = Adapter(on=False)
    assert not is_neutral(off)
    assert is_neutral(Adapter(on=True))
    assert same_slot(off, Adapter(on=True))
    check([off], [])
