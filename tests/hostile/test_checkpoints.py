"""Hostile checkpoints, against a program of its own: a sentence each, in little time and memory; what is open stays."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.hostile.attack import Attack, Outcome
from tests.hostile.checkpoints import Hostile, every, make
from tests.models import tiny, tiny_vision

MOST_SECONDS = 5.0  # of the processor
MOST_BYTES = 1 << 30
TEXTS = ("a" * 60, "x" * 40 + " =" + "a " * 10, "1" * 50 + "\n" * 5)
"""What an ill-made regular expression takes long over."""

NAMED = (
    *("albert: num_hidden_groups of 1e+09", "albert: inner_group_num of 1e+06", "gpt_oss: num_local_experts of 1e+09"),
    *("gpt_neo: attention_types as list [[['global', 'local'], 1000000]]", "jamba: num_hidden_layers of 1e+06"),
    *("gpt_neo: attention_types as list [[['global', 'global', 'global', 'global", "mpt: max_seq_len of 1e+09"),
    *("bert_tagger: id2label as dict {'0': 'LABEL_0', '1': 'LABEL_1', '2': 'L", "vit: image_size as int 30000"),
    *("100,000 empty tensors", "20,000 layers of empty tensors", "a header of 9,223,372,036,854,775,808 bytes"),
    *("tokenizer.json: 60 MB of brackets", "tokenizer.json: 60 MB of empty lists in a table", "a million added tokens"),
    *("a million merges and their vocabulary", "300,000 tokens added in its settings", "split by (x+x+)+y"),
    *("GGUF: an array of 5 million texts", "GGUF: an array of 50 MB of bytes", "GGUF: block_count of 1e+09"),
    *("pictures scaled to 30,000 square", "pictures cut to 30,000 square", "config.json: a pipe"),
    *("tokenizer.json: links in a ring", "model.safetensors: a device", "config.json: deep"),
)
"""One of each kind: the ones that once hung."""

Sound = Callable[[str], Path]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Sound:
    """The folder of a sound checkpoint of a kind."""

    def saved(kind: str) -> Path:
        save = tiny.save if kind in tiny.KINDS else tiny_vision.save
        return save(kind, tmp_path_factory.mktemp(kind) / kind)

    return cache(saved)


@pytest.fixture
def attack(sound: Sound) -> Iterator[Attack]:
    with Attack(
        sound("llama"), "text", "Tom and Anna", most_seconds=4 * MOST_SECONDS, most_bytes=2 * MOST_BYTES
    ) as attack:
        attack.ask("load", str(sound("gpt2")))  # so that all is imported, and what tries checkpoints is running
        attack.ask("begin")
        yield attack


def faults(attack: Attack, hostile: Hostile, made: Path) -> list[str]:
    """What is wrong with how the program takes it."""
    outcomes = {what: attack.ask(what, str(made)) for what in ("describe", "load")}
    loaded = outcomes["load"]
    if loaded.opened:
        outcomes |= {f"read {text!r}": attack.ask("read", text) for text in TEXTS if not made.match("*vit*")}
        attack.ask("begin")
    found = [f"{what}: {fault}" for what, outcome in outcomes.items() for fault in faults_of(outcome)]
    if loaded.opened and not hostile.opens:
        found.append("it opened")
    if not (loaded.opened or loaded.said.endswith(".")):
        found.append(f"no sentence, but {loaded.said!r}")
    if not attack.ask("untouched").untouched:
        found.append("what was open is another")
    return [f"{hostile.name}: {fault}" for fault in found]


def faults_of(outcome: Outcome) -> Iterator[str]:
    if outcome.ended:
        yield outcome.ended
    if outcome.seconds > MOST_SECONDS:
        yield f"{outcome.seconds:.1f} seconds"
    if outcome.memory > MOST_BYTES:
        yield f"{outcome.memory / 1e9:.1f} GB"
    if outcome.said.startswith("Something went wrong"):
        yield outcome.said


def all_faults(attack: Attack, hostiles: Iterable[Hostile], sound: Sound, folder: Path) -> list[str]:
    found = []
    for number, hostile in enumerate(hostiles):
        made = make(hostile, sound(hostile.kind), folder / f"hostile {number}")
        found += faults(attack, hostile, made)
        shutil.rmtree(folder / f"hostile {number}")
    return found


@pytest.mark.full
def test_hostile_checkpoints(attack: Attack, sound: Sound, tmp_path: Path) -> None:
    chosen = [hostile for hostile in every() if hostile.name in NAMED]
    assert len(chosen) == len(NAMED)
    assert all_faults(attack, chosen, sound, tmp_path) == []


@pytest.mark.long
def test_all_hostile_checkpoints(attack: Attack, sound: Sound, tmp_path: Path) -> None:
    hostiles = every()
    assert len(hostiles) > 200
    assert len({hostile.name for hostile in hostiles}) == len(hostiles)
    assert all_faults(attack, hostiles, sound, tmp_path) == []
