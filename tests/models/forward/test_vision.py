"""Vision transformers look at pictures: as transformers prepares them, with the weights of its eager attention."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from attention_models import open_checkpoint, run
from attention_models.engine.engine import Engine
from attention_models.forward.model import Model
from attention_models.forward.predictions import predict
from attention_models.opening.open import describe
from attention_models.protocol.atlas import AtlasRequest
from attention_models.protocol.cell import CellRequest, CellView
from attention_models.protocol.comparison import CompareRequest, CompareView
from attention_models.protocol.decoding import into_input
from attention_models.protocol.errors import CheckpointError, InputError
from attention_models.protocol.interventions import Mask, Scale
from attention_models.protocol.loading import Loaded, LoadRequest
from attention_models.protocol.positions import PositionsRequest, ShuffleRequest
from attention_models.protocol.prediction import PredictionRequest, PredictionView
from attention_models.protocol.request import Failure, Request, Result
from attention_models.protocol.running import ForwardRequest, Ran, RunInputs
from attention_models.protocol.trust import TrustReport, TrustRequest
from attention_models.protocol.values import SiteRef
from attention_models.protocol.variance import VarianceRequest, VarianceView
from attention_models.trust.check import compare_with_eager
from attention_models.views.cell import cell_view
from tests.models import tiny_vision
from tests.models.asking import never, silent

VisionFolder = Callable[[str], Path]
VisionOpen = Callable[[str], Model]

PREFIXES = {
    "vit": ["CLS"],
    "vit_grey": ["CLS"],
    "vit_bare": ["CLS"],
    "deit": ["CLS", "DIST"],
    "dinov2": ["CLS"],
    "dinov2_registers": ["CLS", "REG 1", "REG 2"],
    "dinov2_classes": ["CLS"],
    "clip_vision": ["CLS"],
    "clip": ["CLS"],  # its vision half
    "siglip_vision": [],
    "beit": ["CLS"],
    "beit_shared": ["CLS"],
    "data2vec": ["CLS"],  # gives its weights alone
    "data2vec_bare": ["CLS"],
}
HEADLESS = (
    *("vit_bare", "dinov2", "dinov2_registers", "clip_vision", "clip", "siglip_vision", "beit_shared", "data2vec_bare"),
)


@pytest.fixture(scope="session")
def vision_folder(tmp_path_factory: pytest.TempPathFactory) -> VisionFolder:
    return cache(lambda kind: tiny_vision.save(kind, tmp_path_factory.mktemp(kind) / kind))


@pytest.fixture(scope="session")
def vision_model(vision_folder: VisionFolder) -> VisionOpen:
    return cache(lambda kind: open_checkpoint(vision_folder(kind)))


@pytest.fixture(scope="session")
def picture() -> np.ndarray:
    """(36, 30, 3) uint8: no square, and of no size that a model takes."""
    return np.random.default_rng(0).integers(0, 256, (36, 30, 3), dtype=np.uint8)


@pytest.mark.short("vit_grey", "deit", "dinov2_registers", "clip", "beit", "data2vec")
@pytest.mark.parametrize("kind", PREFIXES)
def test_equals_eager(vision_folder: VisionFolder, vision_model: VisionOpen, picture: np.ndarray, kind: str) -> None:
    model = vision_model(kind)
    image = Image.fromarray(picture).convert("L" if kind == "vit_grey" else "RGB")
    pixels = tiny_vision.own_pixels(vision_folder(kind), image)
    theirs = tiny_vision.eager_run(vision_folder(kind), pixels, kind)
    trace = run(model, picture)
    assert [token.label for token in trace.tokens] == [
        *PREFIXES[kind],
        *(f"r{row} c{column}" for row in (1, 2, 3) for column in (1, 2, 3)),
    ]
    assert [token.special for token in trace.tokens] == [True] * len(PREFIXES[kind]) + [False] * 9
    assert [site.ref for site in trace.sites] == [SiteRef("encoder", layer) for layer in range(3)]
    for site, weights in zip(trace.sites, theirs.attentions, strict=True):
        assert (site.heads, site.queries, site.keys, site.causal) == (4, *weights.shape[2:], False)
        for head in range(4):
            np.testing.assert_allclose(trace.weights(site, head), weights[0, head].numpy(), atol=1e-5)
    # the heads choose: otherwise any two would agree
    assert float(np.abs(trace.weights(0, 0) - trace.weights(0, 1)).max()) > 0.05
    assert (trace.output_logits is None) == (kind in HEADLESS)
    if trace.output_logits is not None:
        for row in (0, len(trace.tokens) - 1):  # what is said of the picture is said at every position
            np.testing.assert_allclose(trace.logits[row], theirs.logits[0].numpy(), atol=1e-5)
    assert trace.atlas_view(8).rows.error < 1e-5
    assert len(trace.residual["encoder"]) == 4
    assert model.info.family == "vision"
    assert model.info.vocabulary == (0 if kind in HEADLESS else 3)
    assert model.info.channels == (1 if kind == "vit_grey" else 3)


@pytest.mark.parametrize("kind", PREFIXES)
def test_trust_strip_holds(vision_model: VisionOpen, picture: np.ndarray, kind: str) -> None:
    model = vision_model(kind)
    found = compare_with_eager(model, model.encode(picture), run(model, picture))
    assert max(found.logit_difference, found.weight_difference) < 1e-5


@pytest.mark.short("vit-bfloat16", "dinov2-float16", "clip_vision-float16")
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("kind", PREFIXES)
def test_trust_strip_holds_in_half_precision(
    vision_folder: VisionFolder, picture: np.ndarray, kind: str, dtype: str
) -> None:
    model = open_checkpoint(vision_folder(kind), dtype=dtype)
    found = compare_with_eager(model, model.encode(picture), run(model, picture))
    assert found.weight_difference < 1e-6
    assert found.logit_difference == 0.0
    assert (found.rounding is None) == kind.startswith("data2vec")
    assert found.rounding is None or found.rounding < 1


def test_a_bias_by_distance_is_part_of_the_scores(vision_model: VisionOpen, picture: np.ndarray) -> None:
    """Of BEiT, whose table has a row for each distance between two patches (Bao et al. 2022, section 2.1)."""
    model = vision_model("beit")
    trace = run(model, picture)
    bias = model.module.get_submodule("beit.layers.1.relative_position_bias")
    assert isinstance(bias.relative_position_bias_table, Tensor)
    table = bias.relative_position_bias_table.detach().double().numpy()  # (distances, heads)
    x = trace.inputs[1]
    q, k = x.query[0, 2].double().numpy(), x.key[0, 2].double().numpy()
    rest = trace.scores(1, 2) - q @ k.T / 8**0.5
    for one, other in ((0, 0), (0, 8), (8, 0), (4, 7)):  # patches of a grid of 3 x 3
        down, across = (a - b for a, b in zip(divmod(one, 3), divmod(other, 3), strict=True))
        row = (down + 2) * 5 + across + 2
        assert rest[1 + one, 1 + other] == pytest.approx(table[row, 2], abs=1e-4)
    assert float(np.abs(table).max()) > 0.1


def test_classes_are_what_is_predicted(vision_model: VisionOpen, picture: np.ndarray) -> None:
    model = vision_model("vit")
    trace = run(model, picture)
    (prediction,) = predict(model, trace, [0])
    p = np.exp(trace.logits[0].astype(np.float64))
    p /= p.sum()
    best = np.argsort(-p)
    assert [candidate.label for candidate in prediction.candidates] == [("cat", "dog", "ship")[i] for i in best]
    assert [candidate.probability for candidate in prediction.candidates] == pytest.approx(p[best], abs=1e-6)
    assert prediction.actual is None


def test_what_the_model_saw(vision_model: VisionOpen, picture: np.ndarray) -> None:
    seen = vision_model("vit").encode(picture).picture
    assert seen is not None
    small = np.asarray(Image.fromarray(picture).resize((24, 24), Image.Resampling.BILINEAR))
    assert np.abs(seen.pixels.astype(int) - small.astype(int)).max() <= 1
    assert not seen.pixels.flags.writeable
    assert (seen.rows, seen.columns, seen.first) == (3, 3, 1)
    assert [seen.patch(i) for i in (0, 1, 3, 4, 9, 10)] == [None, (0, 0), (0, 2), (1, 0), (2, 2), None]


def test_grey_is_seen_as_grey(vision_model: VisionOpen, picture: np.ndarray) -> None:
    seen = vision_model("vit_grey").encode(picture).picture
    assert seen is not None
    assert seen.pixels.shape == (24, 24, 3)
    assert (seen.pixels[..., 0] == seen.pixels[..., 2]).all()


@pytest.mark.parametrize(
    ("name", "sample", "classes", "patches"),
    [("vit-cifar10", "sample:chelsea", 10, 64), ("vit-quickdraw", "sample:fish-1", 10, 49)],
)
def test_shipped_models_name_a_sample(name: str, sample: str, classes: int, patches: int) -> None:
    model = open_checkpoint(name)
    trace = run(model, sample)
    assert len(trace.tokens) == 1 + patches
    assert trace.logits.shape == (1 + patches, classes)
    (prediction,) = predict(model, trace, [0])
    assert prediction.candidates[0].label == ("cat" if name == "vit-cifar10" else "fish")


def test_a_file_that_changed_is_read_again(vision_model: VisionOpen, picture: np.ndarray, tmp_path: Path) -> None:
    model = vision_model("vit")
    path = tmp_path / "bild mit ñandú.png"
    Image.fromarray(picture).save(path)
    first = model.encode(str(path))
    assert model.encode(path) is first
    np.testing.assert_array_equal(first.inputs["pixel_values"], model.encode(picture).inputs["pixel_values"])
    Image.fromarray(255 - picture[:30]).save(path)
    assert not np.array_equal(model.encode(path).inputs["pixel_values"], first.inputs["pixel_values"])


# --------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("swin", "swin works in 2 stages: a patch looks only within its window of 4 x 4, and patches are merged"),
        ("swinv2", "swinv2 works in 2 stages: a patch looks only within its window of 4 x 4, and patches are merged"),
        ("pvt", "pvt works in 4 stages: patches are merged from each stage to the next, so its attention cannot be"),
        ("mobilevit", "mobilevit has no one stack of layers that all look at the same patches, so its attention"),
    ],
)
def test_what_has_no_one_grid_of_patches_is_refused_before_it_is_loaded(
    vision_folder: VisionFolder, kind: str, words: str
) -> None:
    with pytest.raises(CheckpointError, match=words):
        describe(str(vision_folder(kind)))


def with_attentions(monkeypatch: pytest.MonkeyPatch, change: Callable[[Any], Any]) -> None:
    """Have a data2vec model give other weights than it has."""
    from transformers.models.data2vec.modeling_data2vec_vision import Data2VecVisionForImageClassification as Kind

    forward = Kind.forward

    def changed(self: Any, **options: Any) -> Any:
        out = forward(self, **options)
        out.attentions = change(out.attentions)
        return out

    monkeypatch.setattr(Kind, "forward", changed)


@pytest.mark.parametrize(
    "change",
    [
        lambda _: None,
        lambda attentions: attentions[:-1],
        lambda attentions: tuple(w[..., :4, :4] for w in attentions),
        lambda attentions: tuple(w[..., :4] for w in attentions),
        lambda attentions: tuple(w.repeat(4, 1, 1, 1) for w in attentions),
        lambda attentions: tuple(w * 0.5 for w in attentions),
    ],
    ids=["none", "a layer less", "windows", "fewer keys", "windows one by one", "no weights"],
)
def test_weights_that_are_not_of_all_patches_are_refused(
    vision_folder: VisionFolder, monkeypatch: pytest.MonkeyPatch, change: Callable[[Any], Any]
) -> None:
    with_attentions(monkeypatch, change)
    with pytest.raises(CheckpointError, match="data2vec-vision does not let every patch look at every other"):
        open_checkpoint(vision_folder("data2vec"))


def test_more_patches_than_weights_can_be_kept_of(vision_folder: VisionFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attention_models.files.memory.KEPT_BYTES", 4 * 12 * 9 * 9)  # of a token less than there are
    with pytest.raises(CheckpointError, match="10 patches have more weights than can be kept"):
        open_checkpoint(vision_folder("data2vec"))


def test_without_a_processor(vision_folder: VisionFolder, tmp_path: Path) -> None:
    folder = tiny_vision.save("vit", tmp_path / "mine")
    (folder / "preprocessor_config.json").unlink()
    with pytest.raises(CheckpointError, match=r"it\. Add its preprocessor_config\.json\.$"):
        open_checkpoint(folder)
    (folder / "preprocessor_config.json").write_text("{")
    with pytest.raises(CheckpointError, match=r"preprocessor_config\.json cannot be read .* Fetch the file"):
        open_checkpoint(folder)


@pytest.mark.parametrize("text", [[1, 2], [], ""])
def test_a_vision_model_takes_no_text(vision_model: VisionOpen, text: Any) -> None:
    with pytest.raises(InputError, match=r"looks at pictures|no picture"):
        run(vision_model("vit"), text)


def test_a_text_model_takes_no_picture(story_gpt: Model, picture: np.ndarray) -> None:
    with pytest.raises(InputError, match="story-gpt reads text"):
        run(story_gpt, picture)


def test_said_before_loading() -> None:
    info = describe("vit-quickdraw")
    assert (info.family, info.channels, info.vocabulary, info.context) == ("vision", 1, 10, None)


# --------------------------------------------------------------------------- the engine


@pytest.fixture(scope="module")
def engine() -> Engine:
    engine = Engine()
    assert isinstance(engine.run(LoadRequest(reference="vit-cifar10"), never, silent), Loaded)
    return engine


def ask(engine: Engine, request: Request) -> Result:
    ran = engine.run(ForwardRequest(inputs=RunInputs("ignored", picture="sample:coffee"), ticket=1), never, silent)
    assert isinstance(ran, Ran)
    return engine.run(request, never, silent)


def test_a_run_of_the_engine(engine: Engine) -> None:
    ran = engine.run(ForwardRequest(inputs=RunInputs("ignored", picture="sample:coffee"), ticket=1), never, silent)
    assert isinstance(ran, Ran)
    assert (ran.inputs.prompt, ran.inputs.picture, ran.masks, ran.source) == ("ignored", "sample:coffee", (), ())
    assert ran.seen is not None
    assert (ran.seen.rows, ran.seen.columns, ran.seen.pixels.shape) == (8, 8, (32, 32, 3))


def test_a_cell_moves_the_logit_of_the_likeliest_class() -> None:
    """Its write taken out of the stream, the last normalisation's divisor held, the logit is less by the effect."""
    model = open_checkpoint("vit-cifar10")
    trace = run(model, "sample:coffee")
    view = cell_view(CellRequest(run=1, site=SiteRef("encoder", 3), head=2, query=0, key=17), model, trace)
    reference: Any = model.module
    norm, classifier = reference.vit.layernorm, reference.classifier
    stream = trace.residual["encoder"][-1][0].double()  # (width,)
    deviation = (stream.var(unbiased=False) + norm.eps).sqrt()
    assert view.write is not None
    lessened = stream - torch.from_numpy(view.write.copy()).double()
    logits = [
        classifier.weight.double() @ ((x - x.mean()) / deviation * norm.weight.double() + norm.bias.double())
        + classifier.bias.double()
        for x in (stream, lessened)
    ]  # (classes,)
    assert view.target == int(logits[0].argmax())
    assert view.target_label == reference.config.id2label[view.target]
    assert view.logit == pytest.approx(float(logits[0][view.target]), abs=1e-5)
    assert view.effect == pytest.approx(float((logits[0] - logits[1])[view.target]), abs=1e-6)


def test_views_of_the_engine(engine: Engine) -> None:
    site = SiteRef("encoder", 3)
    prediction = ask(engine, PredictionRequest(run=1, positions=(64,), top=3))
    assert isinstance(prediction, PredictionView)
    assert len(prediction.predictions[0].candidates) == 3
    cell = ask(engine, CellRequest(run=1, site=site, head=2, query=0, key=17))
    assert isinstance(cell, CellView)
    weights = run(open_checkpoint("vit-cifar10"), "sample:coffee").weights(site, 2)
    assert cell.weight == pytest.approx(weights[0, 17], abs=1e-6)
    # only the class token's stream is read by the classifier
    assert cell.effect is not None
    elsewhere = ask(engine, CellRequest(run=1, site=site, head=2, query=64, key=17))
    assert isinstance(elsewhere, CellView)
    assert elsewhere.effect is None
    assert "position 0" in elsewhere.effect_note
    trust = ask(engine, TrustRequest(run=1))
    assert isinstance(trust, TrustReport)
    assert trust.holds
    draw = VarianceRequest(run=1, site=site, batch=2, tokens=4, deviation=1.0, seed=0)
    variance = ask(engine, draw)
    assert isinstance(variance, VarianceView)
    assert variance.head is not None
    assert not isinstance(ask(engine, AtlasRequest(run=1, size=32)), Failure)
    assert not isinstance(ask(engine, PositionsRequest(run=1, site=site, head=0, query=0, key=1)), Failure)


@pytest.mark.parametrize("edit", [Scale(0.25), Mask("window", window=6)])
def test_edits_change_what_is_seen(engine: Engine, edit: Scale | Mask) -> None:
    request = ForwardRequest(inputs=RunInputs("", picture="sample:chelsea", interventions=(edit,)), ticket=2)
    assert isinstance(engine.run(request, never, silent), Ran)
    compared = engine.run(CompareRequest(run=2, site=SiteRef("encoder", 2), head=1, position=9), never, silent)
    assert isinstance(compared, CompareView)
    assert compared.largest_difference > 0.01
    assert {change.label for change in compared.token_changes} >= {"cat"}
    assert compared.loss_before is None


@pytest.mark.parametrize("request_", [ShuffleRequest(run=1), into_input(RunInputs("ignored", picture="sample:coffee"))])
def test_what_is_for_text_is_refused_with_a_sentence(engine: Engine, request_: Request) -> None:
    answer = ask(engine, request_)
    assert isinstance(answer, Failure)
    assert "vit-cifar10" in answer.sentence


@pytest.mark.parametrize("picture", ["", "sample:nobody", "/nowhere/cat.png"])
def test_pictures_that_are_not_there(engine: Engine, picture: str) -> None:
    answer = engine.run(ForwardRequest(inputs=RunInputs("", picture=picture), ticket=3), never, silent)
    assert isinstance(answer, Failure)
    assert "Open" in answer.sentence


def test_a_model_of_texts_and_pictures_shows_its_vision_half(vision_folder: VisionFolder) -> None:
    info = describe(str(vision_folder("clip")))
    assert (info.family, info.architecture, info.model_type) == ("vision", "CLIPVisionModel", "clip_vision_model")
    assert [(stack.stack, stack.layers, stack.heads) for stack in info.stacks] == [("encoder", 3, 4)]
