"""Lines that go through this program's own functions, where transformers alone would not give the run on screen."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attention_models.files.names import whole_of
from attention_models.files.training_steps import step_of
from attention_models.forward.current_run import CurrentRun
from attention_models.forward.model import Model
from attention_models.protocol.errors import InputError
from attention_models.protocol.interventions import Intervention
from attention_models.scripts.script_text import NAME, Script

FACE = "import attention_explorer as ax"
_OF_THE_FACE = {"Adapter", "Batch", "Chat", "Mask", "Pair", "Positions", "Scale", "Ablation"}
_HOMES = {"Turn": "attention_models.protocol.chat", "SiteRef": "attention_models.protocol.values"}
_CALLED = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|\b([A-Z]\w+)\(""")
"""A call of a class, outside of strings."""

_BORROWED = "This model is an object of another program: no script could open it."


def open_here(script: Script, model: Model, why: str) -> None:
    """Lines after which `model` is the open one, for functions of `ax`; `why` these are needed.

    Raises:
        InputError: the model is no checkpoint that could be opened again.
    """
    info = model.info
    if info.borrowed:
        raise InputError(_BORROWED)
    script.uses(FACE)
    sentence = f"{why[0].upper()}{why[1:]}, so that this goes through functions of this program"
    script.remark(f"{sentence}: run it where {NAME} is installed.")
    at, reference = step_of(info.reference), info.reference
    if at is not None:
        reference = f"{at.folder.absolute()}@{at.step}"
    elif Path(reference).exists() or ((whole := whole_of(reference)) and Path(whole).exists()):
        reference = str(Path(reference).absolute())
    placed = f", dtype={model.dtype_name!r}" if model.dtype_name != "float32" else ""
    script.line(f"model = ax.open_checkpoint({reference!r}{placed})")


def written_out(script: Script, value: Any) -> str:
    """A text or interventions as Python, with the imports that it needs."""
    code = repr(value)
    if isinstance(value, str):
        return code

    def named(found: re.Match[str]) -> str:
        if found[1] in _OF_THE_FACE:
            script.uses(FACE)
            return f"ax.{found[0]}"
        if found[1] in _HOMES:
            script.uses(f"from {_HOMES[found[1]]} import {found[1]}")
        return found[0]

    return _CALLED.sub(named, code)


def call(script: Script, function: str, run: CurrentRun, given: Mapping[str, Any], result: str = "view") -> None:
    """`text = ...`, and `view = ax.function(model, text, ...)` with the run's target and interventions."""
    script.line(f"text = {written_out(script, run.text)}")
    named = dict(given)
    if run.written is not None:
        named["target" if function == "run" else "written"] = run.written
    call_with(script, function, ["text"], named, run.trace.interventions, result)


def call_with(
    script: Script,
    function: str,
    texts: Sequence[str],
    given: Mapping[str, Any],
    interventions: tuple[Intervention, ...],
    result: str = "view",
) -> None:
    """The same on `texts`, each as Python."""
    named = dict(given)
    if interventions:
        named["interventions"] = interventions
    lines = [f"    {name}={written_out(script, value)}," for name, value in named.items() if value is not None]
    script.line("\n".join([f"{result} = ax.{function}(", f"    model, {', '.join(texts)},", *lines, ")"]))
