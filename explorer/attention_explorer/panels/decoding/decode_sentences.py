"""What the player says: of a step, of its settings, and why nothing follows. Pure."""

from __future__ import annotations

from attention_explorer.panels.decoding.answers import SearchAnswers
from attention_explorer.panels.decoding.situation import log_text, ranked_text
from attention_explorer.session.branches import Branches, Node
from attention_explorer.widgets.number_text import MINUS, percent_text
from attention_explorer.widgets.token_text import shortened
from attention_models.protocol.ablation import Ablation
from attention_models.protocol.decoding import DecodeSettings, DecodeStepView
from attention_models.protocol.information import Unit
from attention_models.protocol.interventions import Intervention, describe

READY = "Press Step to let the model write one token, or Play for up to {}."
ANEW = (
    "This text is over. Step and Play write another from the prompt, with what is set now; this one stays in Branches."
)
ENDINGS = {
    "model": "The model ended the text.",
    "context": "The context is full: the model takes no more tokens.",
    "masks": "All masks are filled.",
}
_USED_UP = "All {} steps are used up, and the text isn’t finished. Increase Steps (under Settings) to go on."
CLASSIFIES = "This model tells classes apart: it writes nothing. What it says stands under Next."
SILENT = {
    "encoder": "This model gives vectors, not words: it has nothing to write.",
    "vision": "This model looks at pictures: it writes nothing.",
}


_FILTERS = {
    "top_k": "top-k",
    "top_p": "top-p",
    "min_p": "min-p",
    "repetition_penalty": "repetition penalty",
    "no_repeat_ngram": "no repeated n-gram",
}


def search_is_over(search: SearchAnswers) -> str:
    """Why it goes no further than what is in view; "" where it does."""
    view = search.shown[-1] if search.shown else None
    if view is None or search.at < len(search.views) or not view.ending:
        return ""
    if view.ending == "steps":
        return f"The search is over: it had {search.steps} steps, and no beam that ended was better."
    return "The search is over: no beam that goes on can get better. " + ENDINGS.get(view.ending, "")


def text_is_over(view: DecodeStepView, steps: int) -> str:
    """Why no token follows what `view` chose; "" where one can."""
    if view.ending == "misread":
        return (
            f"Nothing follows this token: with it written there, the text {view.misread}. Choose another candidate, or "
            "go back."
        )
    if view.ending in ENDINGS:
        return ENDINGS[view.ending]
    return _USED_UP.format(steps) if view.request.number >= steps else ""


def token_is_over(node: Node | None, number: int, steps: int) -> str:
    """The same, of a step that is not at hand. `node` is None for a text that is known to go on."""
    if node is not None and node.ended:
        return "Nothing follows here: the text is at its end."
    return _USED_UP.format(steps) if number >= steps else ""


def uncached_because(item: Intervention) -> str:
    """Why each step computes the whole text again under this mask, or with this part held."""
    if isinstance(item, Ablation):
        return (
            f"With “{describe(item)}” each step needs what that position gives, so nothing can be kept from one step "
            "to the next: each step reads the whole text again."
        )
    return (
        f"With “{describe(item)}” a token can see what is written after it, so nothing can be kept from one step to "
        "the next: each step reads the whole text again."
    )


def made_with(settings: DecodeSettings, steps: int | None = None, samples: int | None = None) -> str:
    """What a search or a set of samples was made with, as it stands beside the fields: "beams 4, steps 20"."""
    first = DecodeSettings()
    said: list[tuple[str, float | None]] = [("samples", samples)]
    if settings.strategy == "beam":
        said += [("beams", settings.beams), ("length penalty", settings.length_penalty)]
    else:
        said += [("temperature", settings.temperature), ("seed", settings.seed)]
    for name, label in _FILTERS.items():
        value = getattr(settings, name)
        said.append((label, None if value == getattr(first, name) else value))
    said.append(("steps", steps))
    return ", ".join(f"{label} {_number(value)}" for label, value in said if value is not None)


def _number(value: float) -> str:
    return (str(value) if isinstance(value, int) else f"{value:g}").replace("-", MINUS)


def step_words(view: DecodeStepView, branches: Branches, unit: Unit) -> str:
    if view.chosen is None:
        ranked = ranked_text(view.log_probability, len(view.ids), view.request.settings, unit)
        return f"Step {view.request.number}: best so far “{view.text.strip()}”, log-probability {ranked}."
    how = "you chose" if view.request.forced is not None else "drew" if view.drawn is not None else "took"
    place = f" in position {view.place}" if view.place is not None else ""
    chance = percent_text(view.chosen.probability)
    return (
        f"Step {view.request.number}: {how} “{shortened(view.chosen.label)}”{place} with {chance}. "
        f"Log-probability {log_text(view.log_probability, unit)} {unit}, "
        f"{log_text(branches.log_probability(), unit)} in all."
    )
