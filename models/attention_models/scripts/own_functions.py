"""Lines that go through this program's own functions, where transformers alone would not give the run on screen."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attention_models.files.text_parts import whole_of
from attention_models.files.training_steps import step_of
from attention_models.forward.current_run import CurrentRun
from attention_models.forward.model import Model
from attention_models.protocol.errors import InputError
from attention_models.protocol.interventions import Intervention
from attention_models.scripts.writing import Script

_HOMES = {
    **dict.fromkeys(("Adapter", "Batch", "Mask", "Pair", "Positions", "Scale", "Skip"), "models"),
    **{
        "Chat": "attention_models.protocol.chat",
        "Turn": "attention_models.protocol.chat",
        "SiteRef": "attention_models.protocol.values",
    },
}
_CALLED = re.compile(r"\b([A-Z]\w+)\(")

_BORROWED = "This model is an object of another program: no script could open it."


def open_here(script: Script, model: Model, function: str, why: str) -> None:
    """Lines after which `model` is the open one, and `function` of `models` is there; `why` it is needed.

    Raises:
        InputError: the model is no checkpoint that could be opened again.
    """
    info = model.info
    if info.borrowed:
        raise InputError(_BORROWED)
    script.uses(f"from attention_models import {function}, open_checkpoint")
    sentence = f"{why[0].upper()}{why[1:]}, so that this goes through functions of this program"
    script.remark(f"{sentence}: run it in the program's folder, or where it is installed.")
    at, reference = step_of(info.reference), info.reference
    if at is not None:
        reference = f"{at.folder.absolute()}@{at.step}"
    elif Path(reference).exists() or ((whole := whole_of(reference)) and Path(whole).exists()):
        reference = str(Path(reference).absolute())
    placed = f", dtype={model.dtype_name!r}" if model.dtype_name != "float32" else ""
    script.line(f"model = open_checkpoint({reference!r}{placed})")


def written_out(script: Script, value: Any) -> str:
    """A text or interventions as Python, with the imports that it needs."""
    code = repr(value)
    if isinstance(value, str):
        return code
    script.uses(*(f"from {_HOMES[name]} import {name}" for name in _CALLED.findall(code) if name in _HOMES))
    return code


def call(script: Script, function: str, run: CurrentRun, given: Mapping[str, Any], result: str = "view") -> None:
    """`text = ...`, and `view = function(model, text, ...)` with the run's target and interventions."""
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
    script.line("\n".join([f"{result} = {function}(", f"    model, {', '.join(texts)},", *lines, ")"]))
