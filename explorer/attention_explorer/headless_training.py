"""`--train`: a small transformer learns a task, without a window."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from attention_explorer.console import Interrupted, complain, say, signals_noted
from attention_explorer.headless_finetuning import resume_tuning
from attention_explorer.headless_model import sentence_of, show_progress
from attention_explorer.training_options import budget_of, resumed_length
from attention_models.protocol.errors import NO_MEMORY_TO_TRAIN, as_sentence

if TYPE_CHECKING:
    from attention_models.training.common import Budget
    from attention_models.training.experiment import Experiment
    from attention_models.training.training import Training
    from attention_models.training.training_loop import Command, Point

_MEASURED_EVERY = 200  # steps


def train(args: argparse.Namespace) -> str:
    """Train, save the folder and print how many held-out rows come out right; a sentence where that cannot be done.

    A signal that ends programs ends the training: what was learned until then is saved first.

    Raises:
        Interrupted: a signal came.
    """
    try:
        return _begin(args) if args.resume is None else _resume(args)
    except ValueError as error:
        return as_sentence(str(error))
    except Exception as error:
        return sentence_of(error, NO_MEMORY_TO_TRAIN)


def _begin(args: argparse.Namespace) -> str:
    from attention_models.files.text_lines import read_text
    from attention_models.files.training_steps import SNAPSHOTS
    from attention_models.files.whole_files import not_written
    from attention_models.training.experiment import experiment
    from attention_models.training.folders import save, why_not

    folder = Path(args.out)
    if sentence := why_not(folder):
        return sentence
    switches = dict(word.split("=", 1) for word in args.set)
    text = read_text(args.data, "as it is") if args.data is not None else ""
    planned = experiment(args.train, switches, args.seed or 0, text)
    training = planned.training(folder / SNAPSHOTS)
    budget = budget_of(args)
    assert training.snapshots is not None
    try:
        save(training, planned, folder, budget)  # from now on it can be opened, and taken up again
    except OSError as error:
        return not_written("The model", folder, error)
    training.snapshots.clear()  # of an earlier training
    training.snapshot()
    return _train(training, planned, folder, budget, 0, 0.0)


def _resume(args: argparse.Namespace) -> str:
    """Go on with a training from its newest snapshot, as if it had not been broken off."""
    from attention_models.training.resuming import resumed
    from attention_models.training.tuned_folders import is_tuned

    folder = Path(args.resume)
    if is_tuned(folder):
        return resume_tuning(args)
    found = resumed(folder)
    training, step = found.training, found.training.step_number
    length = resumed_length(args, found.budget, found.spent, step)
    if isinstance(length, str):
        return length
    budget, since, spent = length
    say(f"going on from step {step}")
    return _train(training, found.experiment, folder, budget, since, spent)


def _train(training: Training, planned: Experiment, folder: Path, budget: Budget, since: int, spent: float) -> str:
    from attention_models.files.whole_files import not_written
    from attention_models.training.folders import save

    def told(point: Point) -> None:
        if point.step % 10 == 0:
            show_progress(f"step {point.step:,}, loss {point.loss:.3f}, {point.accuracy:.1%} of tokens right", None)
        if point.step % _MEASURED_EVERY == 0:
            found = training.measure()
            show_progress("", None)
            say(f"step {point.step}: loss {found.loss:.4f}, held-out tokens right: {found.tokens_right:.3f}")

    with signals_noted() as signals:

        def command() -> Command:
            return "stop" if signals else "go"

        outcome = training.run(budget, command, told, cool_down=True, since=since, spent=spent)
        if training.snapshots is not None and training.step_number not in training.snapshots.steps:
            training.snapshot()
        show_progress("", None)
        if outcome.notice or training.notice:
            complain(outcome.notice or training.notice)
        found = training.measure()
        try:
            save(training, planned, folder, budget, outcome.seconds)
        except OSError as error:
            return not_written("The model", folder, error)
        say(f"{outcome.step} steps in {outcome.seconds:.1f} s of training, saved in {folder}")
        what = "characters" if planned.name.startswith("text:") else "sequences"
        right = found.tokens_right if what == "characters" else found.sequences_right
        say(f"held-out {what} right: {right:.3f}")
    if signals:
        raise Interrupted(signals[0])
    return ""
