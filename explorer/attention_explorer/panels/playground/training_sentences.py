"""What is said of a training: where it stands, and what the (i) tells. Pure."""

from __future__ import annotations

from attention_explorer.panels.about import About
from attention_explorer.session.training import LeftTraining, TrainingState
from attention_explorer.widgets.number_text import ago
from attention_models.protocol.training_messages import Asked
from attention_models.protocol.training_plan import PlanView

_WHAT = (
    "A small transformer, or a recurrent model, learns a task from nothing, in a process of its own. Flow, Decode and "
    "the other panels show it while it learns."
)
_HELD = "One row in 16 is held out: it never learns from those, and they say whether it has understood the task."
_TRY = "Try: press Train, look at All heads, then take Positions: none and train again."

_TUNING = "A copy of a checkpoint goes on learning, in a process of its own; the other panels show it while it learns."
_HELD_OF_TUNING = (
    "The last tenth of a text, or one input in ten of two columns, is held out: it never learns from these rows, and "
    "their loss is measured before and after."
)
_TRY_TUNING_FIRST = "Try: paste a page of a story, press Fine-tune, and read what is written before and after."
_TRY_TUNING = "Try: type another prompt, press the button beside it, then Compare the two."

_PHASES = {
    "starting": "Starting …",
    "running": "Learning",
    "paused": "Paused",
    "ended": "Ended",
    "failed": "Broken off",
}


def right(training: TrainingState | None) -> str:
    """ "99.2 % of held-out rows right", or of a tuned model its losses; "" before they were looked at."""
    if training is not None and training.tuning is not None:
        return losses(training)
    held = None if training is None else training.held_out
    return "" if held is None else f"{100 * held.sequences_right:.1f} % of {held.rows:,} held-out rows right"


def losses(training: TrainingState) -> str:
    """ "Held-out loss 4.556 → 1.660", of a classifier a line more: how many texts are right; "" before the first."""
    before, now = training.held_out_before, training.held_out
    if before is None or now is None:
        return ""
    said = f"Held-out loss {before.loss:.3f}" + (f" → {now.loss:.3f}" if now.step else "")
    best = training.held_out_best
    if best is not None and best.step < now.step and f"{best.loss:.3f}" != f"{now.loss:.3f}":
        when = f"after step {best.step:,}" if best.step else "before the first step"
        said = f"{said}, lowest {best.loss:.3f} {when}"
    if training.curves.of == "token":
        return said
    right = f"{100 * before.tokens_right:.1f} %" + (f" → {100 * now.tokens_right:.1f} %" if now.step else "")
    return f"{said}\nHeld-out texts right {right}"


def measured_apart(training: TrainingState | None) -> str:
    """Why the loss of a step lies above that of held-out rows; "" where nothing raises it."""
    if training is None or not training.curves.points:
        return ""
    on = (("dropout", training.dropout), ("label smoothing", training.smoothing))
    eased = " and ".join(f"{name} {value:g}" for name, value in on if value)
    if not eased:
        return ""
    them = "both" if training.dropout and training.smoothing else "it"
    return (
        f"“training” is each step's own loss, with {eased}, which can put it above “held out”. The other two curves "
        f"are measured without {them}: compare those."
    )


def plan_said(plan: PlanView) -> str:
    """How large the model is, or how much of it learns, and from how much."""
    if isinstance(plan.request.asked, Asked):
        return f"A model of {plan.parameters:,} parameters."
    if plan.parameters and not plan.rows:
        return f"{plan.parameters:,} parameters learn. How many rows there are is found when it begins: they are many."
    if not plan.rows:
        return "How much there is to learn is found when it begins: this checkpoint is not open."
    return f"{plan.parameters:,} parameters learn from {plan.rows:,} rows; {plan.held_out:,} more are held out."


def standing(training: TrainingState | None) -> str:
    """Step, speed and time left, in a line."""
    if training is None:
        return ""
    said = [_PHASES[training.phase]]
    if training.phase != "starting":
        said.append(f"step {training.step:,}")
    if training.speed:
        said.append(f"{training.speed:,.0f} {training.curves.of}s a second")
    left = training.seconds_left
    if left is not None:
        said.append(f"{duration(left)} left")
    elif training.seconds:
        said.append(f"{duration(training.seconds)} of training")
    return " · ".join(said)


def left_title(left: LeftTraining, now: float) -> str:
    """ "reverse, step 1,240, 2 hours ago"; `now` in seconds since the epoch."""
    return f"{left.asked.name}, step {left.step:,}, {ago(now - left.written)}"


def duration(seconds: float) -> str:
    """ "32 s", "4 min 5 s"."""
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60:,} min {whole % 60} s"


def about(training: TrainingState | None) -> About:
    if training is None:
        return About((_WHAT, _HELD, "Nothing has been trained here yet: with the defaults it takes a minute."), _TRY)
    if training.tuning is not None:
        return _of_tuning(training)
    now = f"It learns to {training.title}: {standing(training)}." if training.title else f"{standing(training)}."
    return About.of((_WHAT, _HELD, now, f"{right(training)}." if right(training) else ""), _TRY)


def about_tuning() -> About:
    """Before anything is tuned."""
    return About((_TUNING, _HELD_OF_TUNING), _TRY_TUNING_FIRST)


def _of_tuning(training: TrainingState) -> About:
    what = f"{training.title[:1].upper()}{training.title[1:]}: {standing(training)}."
    held, before = training.held_out, training.held_out_before
    loss = ""
    if held is not None and before is not None:
        nats = f"the loss of {held.rows:,} held-out rows, nats a {training.curves.of}"
        was = f"{nats}, was {before.loss:.3f} before the first step"
        loss = f"It never learns from held-out rows; {was}, and is {held.loss:.3f} after step {held.step:,}."
    return About.of((_TUNING, what if training.title else f"{standing(training)}.", loss), _TRY_TUNING)
