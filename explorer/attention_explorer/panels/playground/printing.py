"""What the pages show as requests for scripts: what was or would be learned, with the figures that are on screen."""

from __future__ import annotations

from msgspec.structs import replace

from attention_explorer.session.experiment import ExperimentState
from attention_explorer.session.training import TrainingState
from attention_models.protocol.request import Request
from attention_models.protocol.training_messages import Asked, AskedTuning
from attention_models.protocol.training_scripts import BatchOnScreen, RunsOnScreen, TrainingOnScreen, TuningOnScreen
from attention_models.training.prepared import Prepared


def training(asked: Asked | AskedTuning, training: TrainingState | None) -> Request:
    """What is asked for; with the figures of the window's training where that is the same."""
    begun = training if training is not None and _without_prompt(training.asked) == _without_prompt(asked) else None
    if isinstance(asked, AskedTuning):
        if begun is None:
            return TuningOnScreen(asked=asked)
        return TuningOnScreen(asked=asked, points=begun.curves.points, held_out=begun.curves.held_out)
    if begun is None:
        return TrainingOnScreen(asked=asked)
    curves = begun.curves
    return TrainingOnScreen(asked=asked, points=curves.from_the_first, held_out=curves.held_out, folder=begun.folder)


def _without_prompt(asked: Asked | AskedTuning) -> Asked | AskedTuning:
    """A prompt changes nothing in what is learned."""
    return replace(asked, prompt="", second="") if isinstance(asked, AskedTuning) else asked


def next_batch(training: TrainingState | None, row: int) -> Request | None:
    """The step that is taken apart on screen; None where none is."""
    if training is None or training.dissection is None or not isinstance(training.asked, Asked):
        return None
    return BatchOnScreen(asked=training.asked, dissection=training.dissection, row=row, folder=training.folder)


def runs(file: str, prepared: Prepared, seed: int, experiment: ExperimentState | None) -> Request:
    """The chosen experiment; with its figures where it is the one that was run."""
    if experiment is None or experiment.prepared.name != prepared.name:
        return RunsOnScreen(file=file, name=prepared.name, seed=seed)
    return RunsOnScreen(
        file=experiment.file,
        name=prepared.name,
        seed=experiment.seed,
        points=tuple(curves.points for curves in experiment.curves),
        held_out=tuple(curves.held_out for curves in experiment.curves),
    )
