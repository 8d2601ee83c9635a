"""What is said of the effect: of the loss, of rows that may attend to nothing, of the next token. Pure."""

from __future__ import annotations

from attention_models.protocol.comparison import CompareView
from attention_models.protocol.information import Unit, from_nats
from attention_models.protocol.running import Ran
from attention_models.protocol.values import ClassHead

_LOSS_STEP = 5e-4  # what the three decimals on screen can tell apart


def loss_sentence(view: CompareView, unit: Unit) -> str:
    """What the change of the loss, told in `unit`, means, said honestly; nothing for a model without one."""
    if view.loss_before is None or view.loss_after is None or view.done < 1:
        return ""
    change = from_nats(view.loss_after - view.loss_before, unit)
    if abs(change) < _LOSS_STEP:
        return "The loss is as it was: on this text the change makes no difference to it."
    if view.peeks and change < 0:
        return "The loss falls while tokens may peek at the very words that they are asked to guess: a leak, not skill."
    if view.peeks:
        return "The future is open, and still the loss rises: layers never learned to read what lies ahead of a token."
    if change < 0:
        return "The loss falls on this text, without a look ahead; on other texts it may not."
    return "The loss rises: the model was not trained to work like this."


def dead_sentence(view: CompareView, queries: list[str]) -> str:
    """Which rows may attend to nothing, and what the model then computes."""
    dead = view.dead_rows
    if not dead:
        return ""
    named = ", ".join(f"“{queries[row]}”" for row in dead[:4]) + (f" and {len(dead) - 4} more" if len(dead) > 4 else "")
    if len(dead) == 1:
        return f"Row {named} may look at nothing: its weights are all 0, and this head writes nothing there."
    return f"Rows {named} may look at nothing: their weights are all 0, and this head writes nothing there."


_OF_CLASSES = {
    "text": "What it says of the text",
    "span": "Where the answer starts and ends",
    "choice": "Which text it chooses",
}


def prediction_title(ran: Ran, position: int, head: ClassHead | None = None, fills_in: bool = False) -> str:
    """What a prediction at `position` is of: a vision model's is of the whole picture, a classifier's of its head.

    A model that `fills_in` masks says what stands there, not what comes next.
    """
    if head is not None:
        return _OF_CLASSES.get(head.of) or f"Label of “{ran.tokens[position].word}”"
    if ran.seen is not None:
        return "What it sees in the picture"
    where = "Token at" if fills_in else "Next token after"
    return f"{where} “{ran.tokens[position].word}”"
