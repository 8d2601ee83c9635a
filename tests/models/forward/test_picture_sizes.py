"""Sizes that no picture is prepared to: said before anything of that size is made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attention_models import open_checkpoint, run
from attention_models.forward import vision
from attention_models.protocol.errors import CheckpointError, InputError
from tests.models import tiny_vision


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tiny_vision.save("vit", tmp_path / "vit")


def prepare(folder: Path, **changes: Any) -> None:
    path = folder / "preprocessor_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"size": {"height": 30_000, "width": 30_000}}, "size asks for pictures of 30,000 pixels a side"),
        ({"crop_size": {"height": 24, "width": 10**9}}, "crop_size asks for pictures of 1,000,000,000 pixels"),
        ({"size": 5000}, "size asks for pictures of 5,000 pixels"),
        ({"size": {"height": -24, "width": 24}}, "size asks for pictures of -24 pixels"),
    ],
)
def test_a_size_beyond_all(folder: Path, changes: dict[str, Any], said: str) -> None:
    prepare(folder, **changes)
    with pytest.raises(CheckpointError) as refused:
        open_checkpoint(folder)
    assert f"vit: {said}" in str(refused.value)
    assert "Correct its preprocessor_config.json" in str(refused.value)


def test_a_picture_that_scaling_would_make_endless(folder: Path) -> None:
    model = open_checkpoint(folder)
    prepare(folder, size={"shortest_edge": 24}, do_center_crop=True, crop_size={"height": 24, "width": 24})
    model.processor = vision.open_processor(folder)  # type: ignore[attr-defined]
    assert run(model, np.zeros((24, 500), np.uint8)).picture is not None
    with pytest.raises(
        InputError, match="The array is 60000 × 1 pixels, and the model wants it scaled to 1440000 × 24"
    ):
        run(model, np.zeros((1, 60_000), np.uint8))


def test_more_patches_than_are_shown(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = open_checkpoint(folder)
    monkeypatch.setattr(vision, "MOST_PATCHES", 8)
    with pytest.raises(InputError, match="is cut into 3 × 3 patches, more than the 8 that are shown"):
        run(model, np.zeros((24, 24), np.uint8))
