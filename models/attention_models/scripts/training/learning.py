"""A training from nothing as a script: rows, model, loss, Adam and schedule, each as plainly as it can be written."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from attention_models.forward.context import Context
from attention_models.protocol.errors import InputError
from attention_models.protocol.training_messages import Asked, HeldOutPoint, TrainingPoint
from attention_models.protocol.training_plan import PlanRequest
from attention_models.protocol.training_scripts import TrainingOnScreen
from attention_models.scripts.script_text import WIDTH, Script
from attention_models.scripts.training.lines import (
    BY_STEPS,
    BY_THE_CLOCK,
    DIVERGES,
    ON_DIVERGED,
    PRINT,
    SAME_BITS,
    STEP,
    adam,
    filled,
    functions,
    make_data,
    make_model,
    same_threads,
    smoothing_of,
)
from attention_models.training import plan
from attention_models.training.experiment import Experiment, experiment
from attention_models.training.settings import COOL_DOWN, COOLEST, cooled
from attention_models.training.taught import WATCHED

_FIRST = 10  # steps that are printed


def write(request: TrainingOnScreen, context: Context) -> Script:
    """Raises InputError where it cannot be trained, or its text is too long to be written out."""
    sentence = plan.answer(PlanRequest(asked=request.asked), context).sentence
    if sentence:
        raise InputError(sentence)
    return learning_script(request)


def learning_script(request: TrainingOnScreen) -> Script:
    asked = request.asked
    planned = experiment(asked.task, dict(asked.switches), asked.seed, asked.text)
    points = [*_as_written(request, planned)]
    script = Script(
        f"A model that learns to {planned.title}: {planned.name}, seed {asked.seed}",
        "The whole training, as Train begins it.",
        SAME_BITS,
    )
    same_threads(script)
    make_data(script, planned, request.folder)
    script.section("the model")
    script.line(f"torch.manual_seed({asked.seed})", "of the first weights")
    make_model(script, planned.config)
    script.line("model.train()")
    script.section("loss, schedule, held-out rows")
    functions(script, planned.config, planned.settings)
    script.section("the numbers on screen")
    losses_on_screen(script, points)
    script.section("the computation")
    _measured(script, next((h for h in request.held_out if h.step == 0), None), WATCHED, "before it learns")
    _loop(script, planned, asked)
    at_the_end = bool(points) and points[-1].step == asked.steps
    last = next((h for h in request.held_out if at_the_end and h.step == asked.steps), None)
    _measured(script, last, planned.settings.held_out, "at the end")
    return script


def _as_written(request: TrainingOnScreen, planned: Experiment) -> Iterator[TrainingPoint]:
    """Those of its points that the script comes by too: a person may have stopped in between, or gone on."""
    for number, point in enumerate(request.points, 1):
        steps = request.asked.steps
        cooling = 1.0 if steps is None else cooled((number - 1) / steps)
        rate = cooling * planned.settings.learning_rate(number, planned.config.width)
        if point.step != number or point.rate != rate or (steps is not None and number > steps):
            return
        yield point


def losses_of(points: Sequence[TrainingPoint], first: int) -> dict[int, float]:
    """By their number, of the `first` steps and of the last."""
    return {point.step: point.loss for point in (*points[:first], *points[first:][-1:])}


def losses_on_screen(script: Script, points: Sequence[TrainingPoint]) -> None:
    """`on_screen = {step: loss}`, of those steps that are printed."""
    script.remark("The loss of steps, by their number." if points else "Nothing has been learned yet.")
    losses = losses_of(points, _FIRST)
    given = textwrap.wrap(", ".join(f"{step}: {loss!r}" for step, loss in losses.items()), WIDTH - 4)
    script.line("\n".join(["on_screen = {", *(f"    {line}" for line in given), "}"]) if given else "on_screen = {}")


def print_measured(script: Script, shown: HeldOutPoint | None, when: str) -> None:
    """Lines that print `loss`, `right` of the labels and `rows_right`, beside what is on screen where it is known."""
    names = (("loss", "loss"), ("labels right", "right"), ("rows right", "rows_right"))
    values = (None,) * 3 if shown is None else (shown.loss, shown.tokens_right, shown.sequences_right)
    for (name, code), value in zip(names, values, strict=True):
        if value is None:
            script.line(f'print("held-out {name} {when}:", {code})')
        else:
            script.show(f"held-out {name} {when}", code, value)


def _measured(script: Script, shown: HeldOutPoint | None, most: int, when: str) -> None:
    """Lines that measure `most` held-out rows, or as many as what is on screen is of."""
    rows = most if shown is None else shown.rows
    script.line(f"loss, right, rows_right = measure(model, *held_out, {rows})")
    print_measured(script, shown, when)


_DONE = "    fraction = (number - 1) / STEPS  # of the training that is done\n"


def _loop(script: Script, planned: Experiment, asked: Asked) -> None:
    """Until the steps are taken, or the seconds are over."""
    head, spent, known = BY_STEPS + _DONE, "", "number in on_screen"
    if asked.steps is None:
        script.uses("import time")
        head, spent = BY_THE_CLOCK, "    spent += time.perf_counter() - begun\n"
        known += f" and fraction <= {1 - COOL_DOWN}"  # from there on the clock decides
    script.line(f"optimizer = {adam()}")
    script.line("first, risen = 0.0, 0", DIVERGES)
    cooling = f"min(1.0, max({COOLEST}, (1 - fraction) / {COOL_DOWN}))"  # as `cooled` has it
    rate = f"    rate = {cooling} * learning_rate(number)  # it falls at the end"
    values = {
        "STEPS": str(asked.steps),
        "SECONDS": repr(asked.seconds),
        "SMOOTHING": repr(smoothing_of(planned.config)),
        "CLIP": repr(planned.settings.clip),
        "ON_DIVERGED": ON_DIVERGED,
        "number in on_screen": known,
    }
    script.line(filled(head + rate + STEP + spent + PRINT.lstrip("\n"), values).strip("\n"))
