"""`--finetune`: a checkpoint learns from a file, without a window; and `--resume` of what came of it."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from attention_explorer.cli.model import sentence_of, show_progress
from attention_explorer.cli.training_options import budget_of, resumed_length
from attention_explorer.console import Interrupted, complain, say, signals_noted
from attention_models.protocol.errors import NO_MEMORY_TO_TRAIN, as_sentence

if TYPE_CHECKING:
    from attention_models.forward.model import Model
    from attention_models.training.finetuning import TuningSettings
    from attention_models.training.training_loop import Command, HeldOut
    from attention_models.training.tuned_folders import ResumedTuning

_NUMBERS: dict[str, type[int] | type[float]] = {"rate": float, "batch": int, "decay": float, "clip": float}


def finetune(args: argparse.Namespace) -> str:
    """Fine-tune, save the folder and print figures of held-out rows before and after; a sentence where it cannot be.

    Raises:
        Interrupted: a signal came; what was learned until then was saved.
    """
    try:
        return _begin(args)
    except ValueError as error:
        return as_sentence(str(error))
    except Exception as error:
        return sentence_of(error, NO_MEMORY_TO_TRAIN)


def _begin(args: argparse.Namespace) -> str:
    from attention_models.files.safe_files import not_written
    from attention_models.files.training_steps import SNAPSHOTS
    from attention_models.training.finetuning import FineTuning, check_trainable
    from attention_models.training.folders import why_not
    from attention_models.training.pairs_file import read_source
    from attention_models.training.tuned_folders import ResumedTuning, save_tuned
    from attention_models.training.tuning_rows import data_for, rows_of

    folder, settings = Path(args.out), _settings(args)
    source = read_source(Path(args.data))
    source.check_not_empty()
    model = _opened(args.finetune)
    if folder.exists() and Path(model.info.folder).resolve() == folder.resolve():
        return f"{folder} is the checkpoint that is tuned, and would be lost. Name another folder."
    if sentence := why_not(folder):
        return sentence
    check_trainable(model)
    rows = rows_of(model, data_for(model, source), settings.seed)
    tuning = FineTuning(model, rows, settings, folder / SNAPSHOTS)
    assert tuning.snapshots is not None
    tuning.measure()
    begun = ResumedTuning(tuning, source, budget_of(args), 0.0)
    try:
        save_tuned(tuning, folder, source, begun.budget)  # from now on it can be opened, and taken up again
    except OSError as error:
        return not_written("The model", folder, error)
    tuning.snapshots.clear()  # of an earlier training
    tuning.snapshot()
    return _tune(begun, folder, 0)


def resume_tuning(args: argparse.Namespace) -> str:
    """Go on with a fine-tuning from its newest snapshot, as if it had not been broken off; a sentence if it cannot be.

    Raises:
        ExplorerError: what lies in the folder is damaged, or of another checkpoint.
        Interrupted: as `finetune`.
    """
    from attention_models.training.tuned_folders import read_tuned, resumed_tuning

    folder = Path(args.resume)
    record = read_tuned(folder)
    found = resumed_tuning(record, folder, _opened(record.finetuned))
    step = found.tuning.step_number
    length = resumed_length(args, found.budget, found.spent, step)
    if isinstance(length, str):
        return length
    budget, since, spent = length
    say(f"going on from step {step}")
    return _tune(replace(found, budget=budget, spent=spent), folder, since)


def _opened(reference: str) -> Model:
    from attention_models.opening.open import open_checkpoint
    from attention_models.opening.trial import TrialRequest
    from attention_models.opening.trial_process import verdict_on
    from attention_models.protocol.values import Placement

    verdict_on(TrialRequest(reference=reference)).check(Placement("cpu"))
    return open_checkpoint(reference)


def _settings(args: argparse.Namespace) -> TuningSettings:
    from attention_models.textbook.typed_numbers import typed_number
    from attention_models.training.finetuning import TuningSettings

    numbers: dict[str, float] = {}
    for name, _, word in (said.partition("=") for said in args.set):
        if name not in _NUMBERS:
            raise ValueError(f"there is no switch “{name}” of fine-tuning. There are {', '.join(_NUMBERS)}")
        numbers[name] = typed_number(name, word, _NUMBERS[name])
    tuned = "lora" if args.lora is not None else "head" if args.only == "head" else "all"
    return TuningSettings(tuned=tuned, rank=args.lora or 0, seed=args.seed or 0, **numbers)  # type: ignore[arg-type]


def _tune(begun: ResumedTuning, folder: Path, since: int) -> str:
    """Let it learn, of its budget from step `since` on, and save it."""
    from attention_models.files.safe_files import not_written
    from attention_models.training.tuned_folders import ADAPTER, save_tuned

    tuning, budget = begun.tuning, begun.budget
    assert tuning.snapshots is not None
    assert budget is not None
    before = tuning.held_out[0] if tuning.held_out else tuning.measure()
    with signals_noted() as signals:

        def command() -> Command:
            return "stop" if signals else "go"

        say(f"{tuning.parameters:,} weights are learned; held-out loss before: {before.loss:.4f}")
        outcome = tuning.run(
            budget,
            command,
            lambda p: show_progress(f"step {p.step:,}, loss {p.loss:.3f}", None),
            since=since,
            spent=begun.spent,
        )
        show_progress("", None)
        if tuning.step_number not in tuning.snapshots.steps:
            tuning.snapshot()
        if tuning.notice:
            complain(tuning.notice)
        after = tuning.measure()
        try:
            save_tuned(tuning, folder, begun.source, budget, outcome.seconds)
        except OSError as error:
            return not_written("The model", folder, error)
        alone = f", its adapter alone in {folder / ADAPTER}" if tuning.adapted is not None else ""
        say(f"{tuning.step_number} steps in {outcome.seconds:.1f} s, saved in {folder}{alone}")
        say(_figures(before, after, tuning.model.info.class_head is not None))
    if signals:
        raise Interrupted(signals[0])
    return outcome.notice if outcome.ended == "diverged" else ""


def _figures(before: HeldOut, after: HeldOut, classifies: bool) -> str:
    said = f"held-out loss before: {before.loss:.4f}, after: {after.loss:.4f}"
    if not classifies:
        return said
    return f"{said}; held-out texts right before: {before.tokens_right:.3f}, after: {after.tokens_right:.3f}"
