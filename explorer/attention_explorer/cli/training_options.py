"""The options of `--train` and `--experiment`, which make models from nothing and go with no other."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attention_models.training.common import Budget

_SECONDS = 60.0
_OWN = ("train", "resume", "finetune", "only", "lora", "seconds", "steps", "set", "out", "data", "seed")
_MAKERS = ("train", "resume", "finetune")


def add_training_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("training", "a small transformer learns a task, without a window")
    group.add_argument(
        "--train",
        metavar="TASK[:N]",
        help="copy, reverse, sort, shift, previous, induction, recall, brackets, modular, addition, addition-reversed, "
        "spanish, feeling, dates, text with --data: what is learned; N is how hard it is, as reverse:12",
    )
    group.add_argument(
        "--resume",
        metavar="FOLDER",
        help="go on with the training in this folder, from its newest snapshot to the length that was asked for, to "
        "step --steps, or for --seconds more",
    )
    group.add_argument(
        "--finetune",
        metavar="CHECKPOINT",
        help="with --data: a decoder, an encoder-decoder or a masked model goes on learning, from a text or from two "
        "columns, inputs and outputs (tabs, or .csv); a classifier from texts and their classes",
    )
    what = group.add_mutually_exclusive_group()
    what.add_argument("--only", choices=["head"], help="with --finetune: what gives the logits, and no more")
    what.add_argument("--lora", metavar="RANK", type=int, help="with --finetune: a LoRA adapter of this rank, by peft")
    group.add_argument("--seconds", metavar="S", type=float, help=f"train for so long, {_SECONDS:.0f} if left out")
    group.add_argument("--steps", metavar="N", type=int, help="train for so many steps instead")
    group.add_argument(
        "--set",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="a switch of the model or the training, as positions=none, layers=4 or rate=0.3; may be given again",
    )
    group.add_argument(
        "--out", metavar="FOLDER", help="where the model and its snapshots go; it opens with --checkpoint"
    )
    group.add_argument("--data", metavar="FILE", help="with --train text or --finetune: what to learn")
    group.add_argument(
        "--experiment",
        metavar="NAME",
        help="a prepared experiment, as without-positions: its runs side by side, what was measured, and whether what "
        "is claimed holds here, which else ends the program with 1; --seed for another one",
    )


def is_training(args: argparse.Namespace) -> bool:
    """Whether a model is to be made or changed, and nothing to be looked at."""
    return any(getattr(args, name) is not None for name in _MAKERS)


def budget_of(args: argparse.Namespace) -> Budget:
    """How long to train, where nothing has been trained before."""
    from attention_models.training.common import Budget

    return Budget(_SECONDS if args.seconds is None and args.steps is None else args.seconds, args.steps)


def resumed_length(
    args: argparse.Namespace, budget: Budget | None, spent: float, step: int
) -> tuple[Budget, int, float] | str:
    """Of a training at `step` that was to take `budget`: what it takes now, from which step on, and what is gone of it.

    A sentence where it has come to its end.
    """
    from attention_models.training.common import Budget

    since = 0
    if args.seconds is not None:
        budget, since, spent = Budget(args.seconds), step, 0.0
    elif args.steps is not None:
        budget = Budget(steps=args.steps)
    if budget is None or budget.fraction(step, spent) >= 1:
        done = f"The training in {args.resume} has come to step {step:,}"
        return f"{done}, and that is its end. Say how far it is to go, as --steps {2 * step or 100}, or --seconds 60."
    return budget, since, spent


def check_training(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Whether what is said of a training is whole, and said of one.

    Raises:
        ValueError: an option that is missing, does not go with the others, or is out of range.
    """
    if args.experiment is not None:
        _check_experiment(args, parser)
        return
    if not is_training(args):
        given = next((name for name in _OWN[3:-1] if getattr(args, name) not in (None, [])), None)
        if given in ("only", "lora"):
            raise ValueError(f"--{given} says what is fine-tuned, and --finetune is missing.")
        if given is not None:
            raise ValueError(f"--{given} is of a training, and --train is missing: try --train reverse --out FOLDER.")
        return
    other = next((n for n, value in vars(args).items() if n not in _OWN and value != parser.get_default(n)), None)
    if other is not None:
        what = "--train makes a model from nothing"
        if args.train is None:
            what = "--finetune tunes a checkpoint" if args.resume is None else "--resume goes on with a training"
        raise ValueError(f"{what}, and --{other.replace('_', '-')} is not of that.")
    if args.resume is not None:
        said = ("train", "finetune", "only", "lora", "set", "out", "data", "seed")
        again = next((name for name in said if getattr(args, name) not in (None, [])), None)
        if again is not None:
            raise ValueError(f"--resume goes on with what its folder says. Leave --{again} out.")
        if not args.resume:
            raise ValueError("--resume needs the folder of a training.")
    elif not args.out:
        maker = "--train" if args.finetune is None else "--finetune"
        raise ValueError(f"{maker} needs a folder for the model: --out FOLDER.")
    if args.seconds is not None and args.steps is not None:
        raise ValueError("--seconds and --steps both say how long. Give one of them.")
    for name in ("seconds", "steps"):
        value = getattr(args, name)
        if value is not None and not 0 < value < 1e9:
            raise ValueError(f"--{name} {value:g} is no length of a training: it is above 0.")
    _check_seed(args.seed)
    if args.resume is not None:
        return
    _check_finetuning(args)
    if args.finetune is None and (args.train.partition(":")[0] == "text") != (args.data is not None):
        raise ValueError("--train text learns the characters of a file, --data FILE; the other tasks make their own.")
    wrong = next((word for word in args.set if not all(word.partition("=")[::2])), None)
    if wrong is not None:
        raise ValueError(f"--set takes a name and a value, as positions=none, not “{wrong}”.")


def _check_seed(seed: int | None) -> None:
    from attention_models.training.settings import MOST_SEED

    if seed is not None and not 0 <= seed <= MOST_SEED:
        raise ValueError(f"--seed is 0 or more, and {MOST_SEED:,} at most.")


def _check_finetuning(args: argparse.Namespace) -> None:
    if args.finetune is None:
        alone = next((name for name in ("only", "lora") if getattr(args, name) is not None), None)
        if alone is not None:
            raise ValueError(f"--{alone} says what is fine-tuned, and --train makes a model from nothing.")
    elif args.train is not None:
        raise ValueError("--train makes a model from nothing, and --finetune is not of that.")
    elif not args.finetune:
        raise ValueError("--finetune needs a checkpoint, as --finetune story-gpt.")
    elif args.data is None:
        raise ValueError("--finetune needs what is to be learned: --data FILE, a text or two columns.")


def _check_experiment(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    given = (n for n, value in vars(args).items() if value != parser.get_default(n))
    other = next((n for n in given if n not in ("experiment", "seed")), None)
    if other is not None:
        option = other.replace("_", "-")
        raise ValueError(f"--experiment says all of its runs but the seed, and --{option} is not of it.")
    _check_seed(args.seed)
