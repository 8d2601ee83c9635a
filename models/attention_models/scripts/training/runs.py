"""The runs of a prepared experiment as a script: what differs between them, and one loop for all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from attention_models.forward.context import Context
from attention_models.protocol.errors import InputError, as_sentence
from attention_models.protocol.training_messages import HeldOutPoint, TrainingPoint
from attention_models.protocol.training_scripts import RunsOnScreen
from attention_models.scripts.script_text import Script
from attention_models.scripts.training.learning import losses_of
from attention_models.scripts.training.lines import LOSS, MEASURE, SAME_BITS, STEP, adam, filled, same_threads
from attention_models.training.comparison import HELD_OUT, planned_run
from attention_models.training.experiment import TEXT
from attention_models.training.prepared import Prepared, Run, read_prepared
from attention_models.training.training import reads_ahead

_FIRST = 5  # steps of each run that are printed


def write(request: RunsOnScreen, context: Context) -> Script:
    """Raises InputError where a run cannot be made."""
    prepared = read_prepared(Path(request.file))[request.name]
    try:
        planned = [planned_run(run, request.seed, prepared.characters) for run in prepared.runs]
    except ValueError as error:
        raise InputError(as_sentence(str(error))) from error
    ahead = any(reads_ahead(one.config) for one in planned)
    script = Script(
        f"{prepared.title}: {len(prepared.runs)} runs of {prepared.steps} steps, seed {request.seed}",
        prepared.compares,
        f"Look for: {prepared.look_for}",
        f"Claimed: {prepared.claim} ({prepared.source})",
        SAME_BITS,
    )
    same_threads(script)
    _runs(script, prepared, request.seed)
    script.section("the numbers on screen")
    _on_screen(script, prepared, request)
    _learn(script, prepared, ahead)
    script.line("\n\nfor name, planned in runs.items():\n    learn(name, planned)")
    return script


def _runs(script: Script, prepared: Prepared, seed: int) -> None:
    script.uses("from attention_models.training.experiment import experiment")
    script.section("the runs: a task, what is set of model and training, the seed of weights, rows and dropout")
    script.line(f"seed = {seed}")
    reads_text = any(run.spec.partition(":")[0] == TEXT for run in prepared.runs)
    if reads_text:
        script.uses("from attention_models.textbook.sentences import english_text")
        script.line(f"text = english_text({prepared.characters}, seed)", "attention_models/textbook/sentences.py")
    text = "text" if reads_text else '""'
    shared = {
        name: value
        for name, value in prepared.runs[0].switches.items()
        if all(run.switches.get(name) == value for run in prepared.runs)
    }
    script.line(f"shared = {shared!r}")
    script.line("\n".join(["runs = {", *(_run(run, shared, text) for run in prepared.runs), "}"]))


def _run(run: Run, shared: dict[str, str], text: str) -> str:
    own = {name: value for name, value in run.switches.items() if name not in shared}
    switches = f"shared | {own!r}" if own else "shared"
    return f"    {run.name!r}: experiment({run.spec!r}, {switches}, seed, {text}),"


def _on_screen(script: Script, prepared: Prepared, request: RunsOnScreen) -> None:
    """`on_screen` and `measured`, each by the run's name."""
    names = [run.name for run in prepared.runs]
    points: Sequence[Sequence[TrainingPoint]] = request.points or [()] * len(names)
    held_out: Sequence[Sequence[HeldOutPoint]] = request.held_out or [()] * len(names)
    script.remark("Of each run the loss of steps, by their number.")
    script.line("on_screen = {")
    for name, some in zip(names, points, strict=True):
        script.line(f"    {name!r}: {losses_of(some, _FIRST)!r},")
    script.line("}")
    script.remark("Of each run what held-out rows gave when they were measured last: loss, tokens right, rows right.")
    script.line("measured = {")
    for name, found in zip(names, held_out, strict=True):
        last = {h.step: (h.loss, h.tokens_right, h.sequences_right) for h in found[-1:]}
        script.line(f"    {name!r}: {last!r},")
    script.line("}")


_LEARN = """
def learn(name, planned):
    config, settings = planned.config, planned.settings
    torch.manual_seed(seed)
    model = model_of(config)
    optimizer = ADAM
    held_out = planned.rows.held_out(HELD_OUT)  # what it is called with, and what it is to say
    smoothing, first, risen = getattr(config, "label_smoothing", 0.0), 0.0, 0
    for number in range(0, STEPS + 1):
        if number > 0:
            rate = settings.learning_rate(number, config.width)  # section 5.3, equation 3
STEP
            if number in on_screen[name]:
                print(f"{name}, loss of step {number}:", loss, "  on screen:", on_screen[name][number])
            elif number % 50 == 0:
                print(f"{name}, step {number}: loss {loss:.4f}")
        if number in measured[name] or number == STEPS:
            found = measure(model, *held_out, HELD_OUT)
            shown = measured[name].get(number, ())
            for i, what in enumerate(("loss", "tokens right", "rows right")):
                beside = f"  on screen: {shown[i]}" if shown else ""
                print(f"{name}, held-out {what} after step {number}: {found[i]}{beside}")
"""
_OWN_WHOLE = "written_right(model, some, wanted) if reads_ahead(model.config) else int(hits.all(1).sum())  # by itself"


def _learn(script: Script, prepared: Prepared, ahead: bool) -> None:
    """`learn(name, planned)`, which trains and prints."""
    script.uses("import math", "import torch.nn.functional as F")
    names = "model_of, reads_ahead, written_right" if ahead else "model_of"
    script.uses(f"from attention_models.training.training import {names}")
    script.section("loss and held-out rows")
    script.line("IGNORE = -100", "the label of a place where nothing is to be said")
    script.line(LOSS.rstrip("\n"))
    script.line(filled(MEASURE, {"WHOLE": _OWN_WHOLE if ahead else "int(hits.all(1).sum())"}).rstrip("\n"))
    script.section("the computation")
    step = filled(
        STEP.strip("\n"),
        {
            "of_step(number)": "planned.rows.batch(number - 1, settings.batch)",
            "SMOOTHING": "smoothing",
            "CLIP": "settings.clip",
            "ON_DIVERGED": 'return print(f"{name}: at step {number} the loss diverges.")',
        },
    )
    indented = "\n".join(f"        {line}" for line in step.split("\n"))
    lines = _LEARN.replace("STEP\n", f"{indented}\n")
    values = {"STEPS": str(prepared.steps), "HELD_OUT": str(HELD_OUT), "ADAM": adam()}
    script.line(filled(lines, values).strip("\n"))
