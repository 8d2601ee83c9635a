"""`--finetune`: a checkpoint learns from a file, without a window."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from explorer.console import Interrupted, say, signals_noted
from explorer.headless_model import sentence_of, show_progress
from explorer.training_options import budget_of
from models.protocol.errors import as_sentence

if TYPE_CHECKING:
    from models.training.common import Budget
    from models.training.course import Command
    from models.training.finetuning import FineTuning, TuningSettings

_NUMBERS: dict[str, type[int] | type[float]] = {"rate": float, "batch": int, "decay": float, "clip": float}


def finetune(args: argparse.Namespace) -> str:
    """Fine-tune, save the folder and print the loss of held-out rows before and after; a sentence where it cannot be.

    Raises:
        Interrupted: a signal came; what was learned until then was saved.
    """
    try:
        return _finetune(args)
    except ValueError as error:
        return as_sentence(str(error))
    except Exception as error:
        return sentence_of(error)


def _finetune(args: argparse.Namespace) -> str:
    from models.opening.open import open_checkpoint
    from models.opening.trial import TrialRequest
    from models.opening.trial_process import verdict_on
    from models.protocol.values import Placement
    from models.training.finetuning import FineTuning, check_trainable
    from models.training.folders import why_not
    from models.training.pairs_file import read_data
    from models.training.tuning_rows import rows_of

    folder, settings = Path(args.out), _settings(args)
    if sentence := why_not(folder):
        return sentence
    data = read_data(Path(args.data))
    place = Placement("cpu")
    verdict_on(TrialRequest(reference=args.finetune)).check(place)
    model = open_checkpoint(args.finetune)
    if folder.exists() and Path(model.info.folder).resolve() == folder.resolve():
        return f"{folder} is the checkpoint that is tuned, and would be lost. Name another folder."
    check_trainable(model)
    rows = rows_of(model, data, settings.seed)
    tuning = FineTuning(model, rows, settings)
    return _tune(tuning, folder, budget_of(args), Path(args.data).name)


def _settings(args: argparse.Namespace) -> TuningSettings:
    from models.textbook.typed_numbers import typed_number
    from models.training.finetuning import TuningSettings

    numbers: dict[str, float] = {}
    for name, _, word in (said.partition("=") for said in args.set):
        if name not in _NUMBERS:
            raise ValueError(f"there is no switch “{name}” of fine-tuning. There are {', '.join(_NUMBERS)}")
        numbers[name] = typed_number(name, word, _NUMBERS[name])
    tuned = "lora" if args.lora is not None else "head" if args.only == "head" else "all"
    return TuningSettings(tuned=tuned, rank=args.lora or 0, seed=args.seed or 0, **numbers)  # type: ignore[arg-type]


def _tune(tuning: FineTuning, folder: Path, budget: Budget, data: str) -> str:
    from models.files.whole_files import not_written
    from models.training.tuned_folders import ADAPTER, save_tuned

    with signals_noted() as signals:

        def command() -> Command:
            return "stop" if signals else "go"

        before = tuning.measure().loss
        say(f"{tuning.parameters:,} weights are learned; held-out loss before: {before:.4f}")
        outcome = tuning.run(budget, command, lambda p: show_progress(f"step {p.step:,}, loss {p.loss:.3f}", None))
        show_progress("", None)
        if outcome.ended == "diverged":
            return f"{outcome.notice} Nothing was saved."
        after = tuning.measure().loss
        try:
            save_tuned(tuning, folder, data)
        except OSError as error:
            return not_written("The model", folder, error)
        alone = f", its adapter alone in {folder / ADAPTER}" if tuning.adapted is not None else ""
        say(f"{tuning.step_number} steps in {outcome.seconds:.1f} s, saved in {folder}{alone}")
        say(f"held-out loss before: {before:.4f}, after: {after:.4f}")
    if signals:
        raise Interrupted(signals[0])
    return ""
