"""What is said of a prepared experiment: how long it takes, where it stands, and what came out. Pure."""

from __future__ import annotations

from attention_explorer.panels.about import About
from attention_explorer.panels.playground.training_sentences import duration
from attention_explorer.session.experiment import ExperimentState
from attention_models.protocol.experiment_messages import Finding
from attention_models.training.prepared import MEASURES, Prepared

_WHAT = (
    "A prepared experiment trains two to four small models side by side, a step of each in turn, from one seed and "
    "with all switches alike but those that it compares."
)
_CLAIM = "What is claimed of it is checked with the figures of these runs: each check is a line with what was measured."
_NONE = "–"
_TRY = "Try: run it again with another seed, and see whether the claim still holds."


def cost(prepared: Prepared) -> str:
    """ "2 runs of 250 steps, about 3 s of one processor core."."""
    return f"{len(prepared.runs)} runs of {prepared.steps:,} steps, about {duration(prepared.seconds)} of one core."


def standing(experiment: ExperimentState) -> str:
    """Where it stands, in a line."""
    if experiment.phase == "starting":
        return "Starting …"
    at = f"step {experiment.step:,} of {experiment.prepared.steps:,}"
    if experiment.phase == "running":
        left = experiment.seconds_left
        said = ["Stopping …" if experiment.is_stopping else "Learning", at]
        if left is not None and not experiment.is_stopping:
            said.append(f"{duration(left)} left")
        return " · ".join(said)
    if experiment.phase == "failed":
        return f"Broken off · {at}" if experiment.step else "Broken off"
    if experiment.ended is None or experiment.ended.how == "stopped":
        return f"Stopped · {at}"
    return f"Done · {experiment.step:,} steps in {duration(experiment.seconds)}"


def elsewhere(experiment: ExperimentState | None) -> str:
    """What runs while another experiment is looked at; "" where nothing does."""
    if experiment is None or not experiment.is_under_way:
        return ""
    return f"“{experiment.prepared.title}” is under way: {standing(experiment)}."


def remarks(experiment: ExperimentState) -> list[str]:
    """What a person has to know beside: a training that waits, or one that goes on beside it; what went wrong."""
    said = [experiment.sentence] if experiment.sentence else []
    if experiment.has_paused:
        said.append(
            "The training that was under way waits, so that these runs have the processor. “Go on” takes it up."
        )
    if experiment.has_company and experiment.is_clocked:
        said.append("A training went on beside these runs, so times are longer here than they are by themselves.")
    return said


def verdict(experiment: ExperimentState) -> str:
    """Whether the claim holds; "" while nobody can know."""
    ended = experiment.ended
    if ended is None:
        return ""
    if ended.how == "stopped":
        return "Stopped before the last step: the claim is about all steps, and is not judged."
    holds = all(finding.holds for finding in ended.findings)
    return f"The claim {'holds' if holds else 'does not hold'} with seed {experiment.seed}."


def checks(experiment: ExperimentState) -> str:
    """The claim, and a line for each figure that it stands on; "" where it is not judged."""
    ended = experiment.ended
    if ended is None or not ended.findings:
        return ""
    return "\n".join((experiment.prepared.claim, *map(_check, ended.findings)))


def _check(finding: Finding) -> str:
    clocked = " (by the clock)" if finding.is_clocked else ""
    return f"{'✓' if finding.holds else '✗'}  {finding.sentence}{clocked}"


def meaning(measure: str) -> str:
    """What a figure is, as a sentence; "" of those that say it by their name."""
    return f"{measure}: {MEASURES[measure]}." if measure in MEASURES else ""


def figures(experiment: ExperimentState) -> dict[str, tuple[str, ...]]:
    """By name, of each run: the figures of the step that was told last, and in the end what was measured then."""
    found = {}
    if experiment.parameters:
        found["parameters"] = tuple(f"{count:,}" for count in experiment.parameters)
    points = [curve.points[-1] if curve.points else None for curve in experiment.curves]
    held = [curve.held_out[-1] if curve.held_out else None for curve in experiment.curves]
    if any(points):
        found["loss of the last batch"] = tuple(_text(point.loss) if point else _NONE for point in points)
    if any(held):
        found["held-out loss"] = tuple(_text(point.loss) if point else _NONE for point in held)
        found["tokens right"] = tuple(_text(point.tokens_right) if point else _NONE for point in held)
        found["sequences right"] = tuple(_text(point.sequences_right) if point else _NONE for point in held)
    if experiment.ended is not None:
        found |= {measure.name: measure.figures for measure in experiment.ended.measures}
    return found


def about(experiment: ExperimentState | None, prepared: Prepared) -> About:
    now = ""
    if experiment is not None and experiment.prepared.name == prepared.name:
        now = f"{experiment.prepared.title}: {standing(experiment)}."
    return About.of((_WHAT, f"Here: {prepared.compares}", _CLAIM, now), _TRY)


def _text(value: float) -> str:
    return f"{value:.3g}"
