"""A prepared experiment that takes a moment, for tests that run one or show one."""

from __future__ import annotations

from pathlib import Path

from attention_models.training.prepared import Prepared, read_prepared

_TINY = """
[tiny]
title = "Tiny"
compares = "The same decoder with positions and without."
look_for = "Without positions the loss stays higher."
claim = "Each loss ends below 50."
source = "Nobody"
task = "copy:3"
steps = {steps}
seconds = 1
set = {{ width = 16, heads = 2, layers = 1, batch = 8, shape = "decoder" }}
runs = [
    {{ name = "positions" }},
    {{ name = "no positions", set = {{ positions = "none" }} }},
]
holds = [
    {{ measure = "training loss", run = "positions", at_most = 50 }},
    {{ measure = "milliseconds a step", run = "positions", at_most = {milliseconds} }},
]
shown = ["held-out loss", "tokens right"]
"""


def tiny_experiment(folder: Path, steps: int = 20, milliseconds: float = 1e6) -> tuple[str, Prepared]:
    """The file and the experiment "tiny" in it."""
    path = folder / f"tiny-{steps}.toml"
    path.write_text(_TINY.format(steps=steps, milliseconds=milliseconds), encoding="utf-8")
    return str(path), read_prepared(path)["tiny"]
