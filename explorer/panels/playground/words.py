"""What is said of a training: where it stands, and what the (i) tells. Pure."""

from __future__ import annotations

from explorer.panels.about import About
from explorer.session.training import LeftTraining, TrainingState
from explorer.widgets.number_text import ago

_WHAT = (
    "A small transformer, or a recurrent model, learns a task from nothing, in a process of its own. Flow, Decode and "
    "the other panels show it while it learns."
)
_HELD = "One row in 16 is held out: it never learns from those, and they say whether it has understood the task."
_TRY = "Try: press Train, look at All heads, then take Positions: none and train again."

_PHASES = {
    "starting": "Starting …",
    "running": "Learning",
    "paused": "Paused",
    "ended": "Ended",
    "failed": "Broken off",
}


def right(training: TrainingState | None) -> str:
    """ "99.2 % of held-out rows right"; "" before they were looked at."""
    held = None if training is None else training.held_out
    return "" if held is None else f"{100 * held.sequences_right:.1f} % of {held.rows:,} held-out rows right"


def standing(training: TrainingState | None) -> str:
    """Step, speed and time left, in a line."""
    if training is None:
        return ""
    said = [_PHASES[training.phase]]
    if training.phase != "starting":
        said.append(f"step {training.step:,}")
    if training.speed:
        said.append(f"{training.speed:,.0f} tokens a second")
    left = training.seconds_left
    if left is not None:
        said.append(f"{duration(left)} left")
    elif training.seconds:
        said.append(f"{duration(training.seconds)} of training")
    return " · ".join(said)


def left_title(left: LeftTraining, now: float) -> str:
    """ "reverse, step 1,240, 2 hours ago"; `now` in seconds since the epoch."""
    return f"{left.asked.task.partition(':')[0]}, step {left.step:,}, {ago(now - left.written)}"


def duration(seconds: float) -> str:
    """ "32 s", "4 min 5 s"."""
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60:,} min {whole % 60} s"


def about(training: TrainingState | None) -> About:
    if training is None:
        return About((_WHAT, _HELD, "Nothing has been trained here yet: with the defaults it takes a minute."), _TRY)
    now = f"It learns to {training.title}: {standing(training)}." if training.title else f"{standing(training)}."
    return About.of((_WHAT, _HELD, now, f"{right(training)}." if right(training) else ""), _TRY)
