"""How alike the positions of patches are: cosines of the rows that a vision model adds to its patches."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from attention_models import open_checkpoint, run
from attention_models.forward.model import Model
from attention_models.forward.trace import Trace
from attention_models.protocol.positions import PatchPositionsRequest
from attention_models.views import patch_positions
from attention_models.views.patch_positions import patch_positions_view, patch_table
from tests.models import tiny_vision
from tests.models.tiny import SENTENCE

REQUEST = PatchPositionsRequest(run=1)
VisionRun = Callable[[str], tuple[Model, Trace]]


@pytest.fixture(scope="module")
def vision(tmp_path_factory: pytest.TempPathFactory) -> VisionRun:
    def made(kind: str) -> tuple[Model, Trace]:
        folder: Path = tmp_path_factory.mktemp(kind)
        model = open_checkpoint(tiny_vision.save(kind, folder / kind))
        Image.effect_noise((24, 24), 90).convert("RGB").save(folder / "noise.png")
        return model, run(model, str(folder / "noise.png"))

    return cache(made)


TABLES = {  # where transformers keeps the table, and how many rows stand before those of the patches
    "vit": ("vit.embeddings.position_embeddings", 1),
    "deit": ("deit.embeddings.position_embeddings", 2),
    "dinov2": ("embeddings.position_embeddings", 1),
    "dinov2_registers": ("embeddings.position_embeddings", 1),  # registers have no place
    "clip_vision": ("embeddings.position_embedding.weight", 1),
    "siglip_vision": ("embeddings.position_embedding.weight", 0),
}


@pytest.mark.parametrize("kind", TABLES)
def test_they_are_cosines_of_the_rows_that_the_model_adds(vision, kind):
    model, trace = vision(kind)
    ending, before = TABLES[kind]
    name = next(name for name, _ in model.module.named_parameters() if name.endswith(ending))
    rows = dict(model.module.named_parameters())[name].detach().double().reshape(-1, 32).numpy()[before:]
    assert len(rows) == 9
    lengths = np.sqrt((rows**2).sum(axis=1))
    expected = (rows @ rows.T / lengths / lengths[:, None]).reshape(3, 3, 3, 3)
    view = patch_positions_view(REQUEST, model, trace)
    assert view.alike is not None
    np.testing.assert_allclose(view.alike, expected, atol=1e-6)
    assert not view.alike.flags.writeable
    assert "vectors of 32 numbers, one a patch" in view.words


def test_without_its_positions_a_patch_is_its_projection_and_nothing_more(vision):
    """The rows are added in the order of the patches: what enters the first layer less the projection is the row."""
    model, trace = vision("vit")
    seen = trace.picture
    assert seen is not None
    table = patch_table(model, seen)
    assert table is not None
    pixels = torch.tensor(np.asarray(seen.pixels)).float().permute(2, 0, 1)[None] / 255 * 2 - 1
    projected = model.module.vit.embeddings.patch_embeddings(pixels)[0]
    added = trace.residual["encoder"][0][seen.first :] - projected
    torch.testing.assert_close(added, table, atol=1e-5, rtol=0)


def test_the_trained_one_knows_neighbours_from_those_afar():
    model = open_checkpoint("vit-cifar10")
    view = patch_positions_view(REQUEST, model, run(model, "sample:chelsea"))
    assert view.alike is not None
    assert view.alike.shape == (8, 8, 8, 8)
    np.testing.assert_allclose([view.alike[i, j, i, j] for i in range(8) for j in range(8)], 1, atol=1e-6)
    beside = np.mean([view.alike[i, j, i, j + 1] for i in range(8) for j in range(7)])
    afar = np.mean([view.alike[i, j, (i + 4) % 8, (j + 4) % 8] for i in range(8) for j in range(8)])
    assert beside > 0.5 > 0 > afar


@pytest.mark.parametrize("kind", ["beit", "data2vec"])
def test_a_model_without_a_table_says_so(vision, kind):
    model, trace = vision(kind)
    view = patch_positions_view(REQUEST, model, trace)
    assert view.alike is None
    assert view.words.startswith("No table of positions that has a vector for each patch")


def test_too_many_patches_and_texts_are_told(vision, story_bert, monkeypatch):
    monkeypatch.setattr(patch_positions, "MOST_PATCHES", 8)
    assert patch_positions_view(REQUEST, *vision("vit")).words.startswith("9 patches are too many")
    view = patch_positions_view(REQUEST, story_bert, run(story_bert, SENTENCE))
    assert (view.alike, view.words) == (None, "This model reads texts: its patches have no places.")
