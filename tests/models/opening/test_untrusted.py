"""Nothing that comes with a checkpoint is run: no pickle, no code, no kernel."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from attention_models import open_checkpoint, run
from attention_models.engine.engine import Engine
from attention_models.opening.inspect_checkpoint import inspect_checkpoint
from attention_models.protocol.errors import CheckpointError
from tests.models.opening.damage import NAME, change_config, plant_bomb
from tests.models.opening.refusal import assert_refused
from tests.models.tiny import TinyFolder


def test_safetensors_beside_a_pickle(folder: Path, tmp_path: Path) -> None:
    plant_bomb(folder / "pytorch_model.bin", tmp_path / "loaded")
    assert len(run(open_checkpoint(folder), "Tom").sites) == 3
    assert not (tmp_path / "loaded").exists()


@pytest.mark.parametrize("pickle_name", ["pytorch_model.bin", "model.pt", "weights.ckpt"])
def test_pickle_is_never_loaded(engine: Engine, folder: Path, tmp_path: Path, pickle_name: str) -> None:
    (folder / "model.safetensors").unlink()
    plant_bomb(folder / pickle_name, tmp_path / "loaded")
    assert_refused(engine, str(folder), NAME, pickle_name, "any program", "Convert it")
    assert not (tmp_path / "loaded").exists()


def test_pickle_named_as_weights_is_never_loaded(engine: Engine, folder: Path, tmp_path: Path) -> None:
    plant_bomb(folder / "model.safetensors", tmp_path / "loaded")
    assert_refused(engine, str(folder), NAME, "Fetch it again")
    assert not (tmp_path / "loaded").exists()


def test_code_beside_a_tokenizer_is_never_run(folder: Path, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    (folder / "evil.py").write_text(f"import os\nos.mkdir({str(marker)!r})\nclass T: pass\n")
    path = folder / "tokenizer_config.json"
    names = {"auto_map": {"AutoTokenizer": ["evil.T", "evil.T"]}, "tokenizer_class": "T"}
    path.write_text(json.dumps({**json.loads(path.read_text()), **names}))
    assert len(open_checkpoint(folder).tokenize("Tom and Anna")) > 2
    assert not marker.exists()


@pytest.mark.parametrize("name", ["attn_implementation", "_attn_implementation", "experts_implementation"])
def test_kernels_that_a_config_names_are_never_fetched(folder: Path, name: str) -> None:
    change_config(folder, **{name: "someone/kernel"})
    config = inspect_checkpoint(str(folder)).config
    assert "someone/kernel" not in (config._attn_implementation, config._experts_implementation)
    open_checkpoint(folder)


def test_a_tokenizer_that_is_code(tiny_folder: TinyFolder, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tiny_folder("llama"), tmp_path / "code"))
    settings = {"tokenizer_class": "Evil", "auto_map": {"AutoTokenizer": ["evil.X", None]}}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    with pytest.raises(
        CheckpointError, match=r"code has a tokenizer that is program code, which is never run here. Save"
    ):
        open_checkpoint(folder)
