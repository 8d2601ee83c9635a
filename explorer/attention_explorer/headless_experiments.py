"""`--experiment`: the runs of a prepared experiment side by side, and whether what is claimed of them holds here."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from attention_explorer.console import Interrupted, say, signals_noted
from attention_explorer.headless_model import sentence_of, show_progress
from attention_explorer.paths import resource
from attention_models.protocol.errors import NO_MEMORY_TO_TRAIN

if TYPE_CHECKING:
    from attention_models.training.comparison import Comparison

_LINES = 10  # of losses, on the way


def run_experiment(args: argparse.Namespace) -> str:
    """Run it and print what was measured; a sentence where the claim does not hold, or where it cannot be run.

    Raises:
        Interrupted: a signal came.
    """
    from attention_models.training.comparison import Comparison
    from attention_models.training.prepared import read_prepared

    experiments = read_prepared(resource("experiments.toml"))
    prepared = experiments.get(args.experiment)
    if prepared is None:
        return f"There is no experiment “{args.experiment}”. There are {', '.join(experiments)}."
    say(f"{prepared.title}. {prepared.compares}")
    say(f"Look for: {prepared.look_for}")
    try:
        comparison = Comparison(prepared, args.seed or 0)
        _train(comparison)
        verdict = comparison.verdict()
    except Interrupted:
        raise
    except Exception as error:
        return sentence_of(error, NO_MEMORY_TO_TRAIN)
    for line in verdict.lines():
        say(line)
    say(f"{'Holds' if verdict.holds else 'Does not hold'} here: {prepared.claim}")
    return "" if verdict.holds else f"The claim does not hold with seed {args.seed or 0}."


def _train(comparison: Comparison) -> None:
    every = max(1, comparison.prepared.steps // _LINES)
    with signals_noted() as signals:
        while not comparison.is_done and not signals:
            comparison.step()
            number = comparison.step_number
            if number % every == 0:
                show_progress("", None)
                losses = (f"{one.name} {one.losses[-1]:.3f}" for one in comparison.learners if one.losses)
                say(f"step {number}: loss {', '.join(losses)}")
            else:
                show_progress(f"step {number} of {comparison.prepared.steps}", None)
        show_progress("", None)
    if signals:
        raise Interrupted(signals[0])
