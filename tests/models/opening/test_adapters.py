"""LoRA adapters, against peft on transformers' own eager model, and against the base."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file

from attention_models import Adapter, decode, load_weights, open_checkpoint, run, save_weights
from attention_models.engine.engine import Engine
from attention_models.files import adapter_files
from attention_models.forward.adapter import MergedAdapter
from attention_models.forward.model import Model
from attention_models.opening.describe import capabilities
from attention_models.opening.open import describe
from attention_models.protocol.errors import CheckpointError
from attention_models.protocol.interventions import check, is_neutral, same_slot
from attention_models.protocol.loading import LoadRequest
from attention_models.protocol.running import ForwardRequest, Ran, RunInputs
from attention_models.protocol.trust import TrustReport, TrustRequest
from attention_models.protocol.values import AdapterInfo
from attention_models.trust.check import compare_with_eager
from attention_models.views.residual import output_weight
from tests.models import lora, tiny, tiny_vision
from tests.models.asking import never, silent
from tests.models.eager import TARGET
from tests.models.tiny import TinyFolder

Trained = Callable[..., Path]

# peft asks transformers for it
pytestmark = [
    pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning"),
    pytest.mark.filterwarnings("ignore:Model has `tie_word_embeddings=True`:UserWarning"),
]


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


@pytest.mark.short("gpt2-True", "llama-False", "t5-True")
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


@pytest.mark.short("gpt2")
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


@pytest.mark.short("gpt2")
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


@pytest.mark.short("dora", "all")
@pytest.mark.parametrize("way", lora.WAYS)
def test_other_ways_to_the_weights_equal_peft_merged_and_not(
    tiny_folder: TinyFolder, adapter: Trained, way: str
) -> None:
    folder = adapter("llama", **lora.WAYS[way])
    model, base = open_checkpoint(folder), open_checkpoint(tiny_folder("llama"))
    on = run(model, tiny.SENTENCE)
    tuned = PeftModel.from_pretrained(tiny.eager(base), folder).eval()
    inputs = base.encode(tiny.SENTENCE).inputs
    with torch.no_grad():
        loose = tuned(**inputs, output_attentions=True)
        merged = tuned.merge_and_unload().eval()
        out = merged(**inputs, output_attentions=True)
    for site in on.sites:
        for head in range(site.heads):
            np.testing.assert_allclose(on.weights(site, head), out.attentions[site.layer][0, head], atol=1e-6)
            np.testing.assert_allclose(on.weights(site, head), loose.attentions[site.layer][0, head], atol=2e-5)
    np.testing.assert_allclose(on.logits, out.logits[0].numpy(), atol=1e-5)
    np.testing.assert_allclose(on.logits, loose.logits[0].numpy(), atol=1e-4)
    off = run(model, tiny.SENTENCE, interventions=[Adapter(on=False)])
    plain = run(base, tiny.SENTENCE)
    assert np.array_equal(off.logits, plain.logits)
    assert all(np.array_equal(off.weights(site, 0), plain.weights(site, 0)) for site in off.sites)
    assert float(np.abs(on.logits - off.logits).max()) > 0.01
    assert np.array_equal(run(model, tiny.SENTENCE).logits, on.logits)


def test_a_replaced_head_that_was_tied_leaves_the_embeddings(tiny_folder: TinyFolder, adapter: Trained) -> None:
    folder = adapter("gpt2", modules_to_save=["lm_head"])
    model, base = open_checkpoint(folder), open_checkpoint(tiny_folder("gpt2"))
    theirs = PeftModel.from_pretrained(tiny.eager(base), folder).eval()
    with torch.no_grad():
        out = theirs(**base.encode(tiny.SENTENCE).inputs)
    np.testing.assert_allclose(run(model, tiny.SENTENCE).logits, out.logits[0].numpy(), atol=1e-4)
    embeddings = model.module.get_parameter("transformer.wte.weight")
    assert torch.equal(embeddings, base.module.get_parameter("lm_head.weight"))


def test_dora_of_matrices_that_are_held_the_other_way(tiny_folder: TinyFolder, adapter: Trained) -> None:
    folder = adapter("gpt2", use_dora=True)
    merged = PeftModel.from_pretrained(tiny.eager(open_checkpoint(tiny_folder("gpt2"))), folder).merge_and_unload()
    model = open_checkpoint(folder)
    with torch.no_grad():
        out = merged.eval()(**model.encode(tiny.SENTENCE).inputs)
    np.testing.assert_allclose(run(model, tiny.SENTENCE).logits, out.logits[0].numpy(), atol=1e-5)
    assert model.adapter is not None
    for name, weight in model.adapter.from_file(model.module).items():
        np.testing.assert_allclose(model.module.get_parameter(name), weight, atol=1e-6)


def test_what_is_said_of_them(adapter: Trained) -> None:
    def words(kind: str, **settings: Any) -> str:
        info = open_checkpoint(adapter(kind, **settings)).info.adapter
        assert info is not None
        return info.words

    assert words("llama", **lora.WAYS["patterns of root of rank"]).startswith("LoRA of ranks 4 to 9 (scales 1 to 10)")
    assert words("bert", use_dora=True).startswith("DoRA of rank 4, alpha 6 (scale 1.5)")
    assert words("gpt2", modules_to_save=["lm_head"]).endswith("(9 matrices); lm_head replaced")


def test_a_rank_is_taken_from_the_tensors_and_no_expression_is_matched(beside: Trained) -> None:
    folder = beside("gpt2", rank_pattern={"c_attn": 2})
    change(folder, rank_pattern={"(a+)+$": 8})
    info = open_checkpoint(folder).info.adapter
    assert info is not None
    assert {name.rpartition(".")[2]: rank for name, rank in zip(info.modules, info.ranks, strict=True)} == {
        "c_attn": 2,
        "c_proj": 4,
    }


@pytest.mark.parametrize("kind", ["vit", "dinov2_classes"])
def test_an_adapter_of_a_vision_model(tmp_path: Path, kind: str) -> None:
    base = tiny_vision.save(kind, tmp_path / kind)
    plain = open_checkpoint(base)
    names = {name.rpartition(".")[2] for name, _ in plain.module.named_modules()}
    targets = [name for name in ("query", "value", "q_proj", "v_proj") if name in names]
    options = LoraConfig(r=4, lora_alpha=6, target_modules=targets, modules_to_save=["classifier"])
    tuned = get_peft_model(tiny.eager(plain), options)
    torch.manual_seed(3)
    with torch.no_grad():
        for name, parameter in tuned.named_parameters():
            if "lora_" in name or "modules_to_save" in name:
                parameter.copy_(torch.randn_like(parameter) * 0.1)
    tuned.peft_config["default"].base_model_name_or_path = str(base)
    tuned.save_pretrained(str(tmp_path / "tuned"))
    model = open_checkpoint(tmp_path / "tuned")
    pixels = np.random.default_rng(0).integers(0, 255, (32, 32, model.info.channels), np.uint8)
    merged = PeftModel.from_pretrained(tiny.eager(plain), tmp_path / "tuned").merge_and_unload().eval()
    with torch.no_grad():
        out = merged(**model.encode(pixels).inputs, output_attentions=True)
    on = run(model, pixels)
    np.testing.assert_allclose(on.logits[0], out.logits[0].numpy(), atol=1e-5)
    for site in on.sites:
        np.testing.assert_allclose(on.weights(site, 1), out.attentions[site.layer][0, 1].numpy(), atol=1e-6)
    off = run(model, pixels, interventions=[Adapter(on=False)])
    assert np.array_equal(off.logits, run(plain, pixels).logits)
    assert float(np.abs(on.logits - off.logits).max()) > 1e-3
    report = compare_with_eager(model, model.encode(pixels), on)
    assert max(report.logit_difference, report.weight_difference) <= 1e-5


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


def test_a_file_of_weights_says_by_hash_which_adapter_was_on(adapter: Trained, tmp_path: Path) -> None:
    folder = adapter("gpt2")
    model = open_checkpoint(folder)
    save_weights(run(model, "Tom and"), tmp_path / "a.npz")
    said = load_weights(tmp_path / "a.npz").meta["checkpoint"]["sha256"]
    files = {name: folder / name for name in ("adapter_config.json", "adapter_model.safetensors")}
    files["model.safetensors"] = Path(model.info.folder) / "model.safetensors"
    assert said == {name: hashlib.sha256(file.read_bytes()).hexdigest() for name, file in files.items()}


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
            model.module.get_parameter(name).data = weight

    assert trusted(folder, drop).weight_difference > 1e-3


SPOILT: dict[str, Callable[[AdapterInfo], AdapterInfo]] = {
    "dora": lambda info: replace(info, dora=False),  # the magnitude is dropped
    "alpha_pattern": lambda info: replace(info, scales=(info.scale,) * len(info.scales)),  # the pattern is ignored
    "patterns of root of rank": lambda info: replace(  # the root is forgotten
        info, scales=tuple(s / r**0.5 for s, r in zip(info.scales, info.ranks, strict=True))
    ),
    "modules to save": lambda info: replace(info, replaced=()),  # the head is left as it was
}


@pytest.mark.short("dora")
@pytest.mark.parametrize("way", SPOILT)
def test_strip_turns_red_where_a_part_of_it_is_dropped(adapter: Trained, way: str) -> None:
    """Planted: weights as they would be without the magnitude, the pattern, the root or the replaced head."""
    folder = adapter("llama", **lora.WAYS[way])
    fine = trusted(folder, lambda model: None)
    assert max(fine.weight_difference, fine.logit_difference) < fine.tolerance

    def spoil(model: Model) -> None:
        assert model.adapter is not None
        wrong = MergedAdapter(SPOILT[way](model.adapter.info), model.adapter.base).from_file(model.module)
        for name, weight in {**model.adapter.base, **wrong}.items():
            model.module.get_parameter(name).data = weight

    red = trusted(folder, spoil)
    assert max(red.weight_difference, red.logit_difference) > 1e-3


def change(folder: Path, **settings: Any) -> None:
    path = folder / "adapter_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **settings}))


@pytest.mark.short("settings4-no list of names of modules", "settings13-changed its model's own weights")
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"peft_type": "IA3"}, "of the kind “IA3”"),
        ({"use_dora": True}, "has no magnitude"),
        ({"bias": "all"}, "trains biases too"),
        ({"modules_to_save": ["lm_head"]}, "replaces lm_head (modules_to_save), which is not in its file"),
        ({"modules_to_save": "lm_head"}, "no list of names of modules"),
        ({"modules_to_save": ["(a+)+$"]}, "no list of names of modules"),
        ({"alpha_pattern": {"(a+)+$": 8}}, "has an expression"),
        ({"alpha_pattern": {"c_attn": "8"}}, "names no number for c_attn"),
        ({"alpha_pattern": ["c_attn"]}, "no table of modules and numbers"),
        ({"use_new_kind_of_lora": True}, "it sets use_new_kind_of_lora, and what that changes is not known"),
        ({"lora_bias": True}, "biases of its own"),
        ({"trainable_token_indices": [1]}, "replaces rows of the embeddings"),
        ({"ensure_weight_tying": True}, "ties what it replaces"),
        ({"init_lora_weights": "pissa"}, "changed its model's own weights"),
        ({"megatron_config": {"a": 1}, "megatron_core": "os"}, "Megatron"),
        ({"r": 0}, "names no rank"),
        ({"r": 5}, "is not of the rank 5"),
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


def test_a_base_on_a_share_is_refused_before_it_is_looked_for(adapter: Trained, tiny_folder: TinyFolder) -> None:
    folder = adapter("gpt2")
    share = f"/{tiny_folder('gpt2')}"  # which is there, where two slashes are no share
    change(folder, base_model_name_or_path=share)
    with pytest.raises(CheckpointError, match=rf"an adapter for {share}, a place on another computer, .* not touched"):
        open_checkpoint(folder)


def test_an_adapter_of_another_model(adapter: Trained, tiny_folder: TinyFolder) -> None:
    folder = adapter("gpt2")
    change(folder, base_model_name_or_path=str(tiny_folder("llama")))
    with pytest.raises(CheckpointError, match=r"does not fit .* there is no transformer\.h\.0"):
        open_checkpoint(folder)


def test_an_adapter_with_a_head_that_its_model_lacks(adapter: Trained, tiny_folder: TinyFolder) -> None:
    folder = adapter("bert_classifier", target_modules=["query"], modules_to_save=["classifier"])
    change(folder, base_model_name_or_path=str(tiny_folder("bert")))
    with pytest.raises(CheckpointError, match=r"brings a head of its own \(classifier\), where the model has none"):
        open_checkpoint(folder)


def test_a_classifier_s_head_is_replaced_with_it(adapter: Trained, tiny_folder: TinyFolder) -> None:
    folder = adapter("bert_classifier", target_modules=["query"], modules_to_save=["classifier"])
    model, base = open_checkpoint(folder), open_checkpoint(tiny_folder("bert_classifier"))
    merged = PeftModel.from_pretrained(tiny.eager(base), folder).merge_and_unload().eval()
    with torch.no_grad():
        out = merged(**base.encode(tiny.SENTENCE).inputs)
    on, off = run(model, tiny.SENTENCE), run(model, tiny.SENTENCE, interventions=[Adapter(on=False)])
    np.testing.assert_allclose(on.logits[0], out.logits[0].numpy(), atol=1e-5)
    assert np.array_equal(off.logits, run(base, tiny.SENTENCE).logits)


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
