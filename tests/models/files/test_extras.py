"""What the program says about packages that are not there."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from attention_models.files import extras
from tests.models import lora
from tests.models.gguf_maker import gguf_of
from tests.models.tiny import TinyFolder

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(("extra", "names"), [("gguf", extras.GGUF), ("spread", extras.SPREAD)])
def test_what_is_asked_for_is_what_the_extra_installs(extra: str, names: tuple[str, ...]) -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"][extra]
    assert sorted(re.match(r"[\w-]+", line)[0] for line in declared) == sorted(names)  # type: ignore[index]


def test_only_what_is_missing_is_named() -> None:
    assert extras.lacking(("numpy", "no_such_package", "torch")) == ["no_such_package"]
    assert extras.install_command(("gguf", "accelerate")) == "python -m pip install gguf accelerate"


def test_no_advice_installs_this_program_by_name_from_an_index() -> None:
    """Nothing of that name is published, and whoever took the name would be installed."""
    files = [
        ROOT / "README.md",
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "explorer").rglob("*.py"),
        *(ROOT / "models").rglob("*.py"),
    ]
    advice = re.compile(r"pip3? install (-\S+ )*[\"']?attention[-_]explorer")
    assert [path.name for path in files if advice.search(path.read_text("utf-8"))] == []


SHADOWED = ("gguf", "accelerate", "peft", "kernels", "sentencepiece", "tiktoken", "datasets")
NOT_INSTALLED = """
import importlib.machinery, importlib.metadata, sys

hidden, version = {hidden!r}, importlib.metadata.version

class Folders:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name in hidden:
            return importlib.machinery.PathFinder.find_spec(name, [{folder!r}])

def version_of(name):
    if name in hidden:
        raise importlib.metadata.PackageNotFoundError(name)
    return version(name)

sys.meta_path.insert(0, Folders)
importlib.metadata.version = version_of

import attention_models as models
from attention_models.files import extras
from attention_models.protocol.errors import CheckpointError

assert extras.lacking(hidden) == list(hidden)
for reference, options in {opened!r}:
    try:
        model = models.open_checkpoint(reference, **options)
    except CheckpointError as error:
        print(error)
    else:
        print(len(models.run(model, "Tom went home.").tokens), model.info.adapter and model.info.adapter.why)
"""


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")  # of peft
def test_a_folder_named_as_a_package_is_not_taken_for_it(tmp_path: Path, tiny_folder: TinyFolder) -> None:
    """As where somebody keeps GGUF files in a folder called gguf."""
    for name in SHADOWED:
        (tmp_path / "here" / name).mkdir(parents=True)
        (tmp_path / "here" / name / "notes.txt").write_text("no package")
    file = gguf_of(tiny_folder("llama"), tmp_path / "tiny.gguf")
    adapted = lora.save("gpt2", tiny_folder("gpt2"), tmp_path / "adapter")
    opened = [("story-gpt", {}), ("en-es", {}), (str(file), {}), (str(adapted), {}), ("story-gpt", {"device": "auto"})]
    program = NOT_INSTALLED.format(hidden=SHADOWED, folder=str(tmp_path / "here"), opened=opened)
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    story, translator, gguf, adapter, spread = done.stdout.splitlines()
    assert story == "5 None"
    assert translator == "1 None"  # what its decoder begins with
    assert gguf.endswith("Install them with: python -m pip install gguf accelerate")
    assert "python -m pip install peft" in adapter
    assert "python -m pip install accelerate" in spread


def test_a_package_that_is_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    assert extras.lacking(("numpy", "gguf", "torch")) == []
