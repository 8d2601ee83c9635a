"""What was written after one text, and the sentences about it."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field, replace

from explorer.panels.decoding.layout import log_text
from explorer.panels.decoding.side_by_side import Drawn, best_of, followed
from explorer.session.branches import Branches, Node
from explorer.widgets.number_text import MINUS, percent_text
from explorer.widgets.token_text import shortened
from models.protocol.decoding import Beam, DecodeStepRequest, DecodeStepView
from models.protocol.decoding_settings import DecodeSettings
from models.protocol.interventions import Intervention, describe

READY = "Press Step to let the model write one token, or Play."
ENDINGS = {
    "model": "The model ended the text.",
    "context": "The context is full: the model takes no more tokens.",
    "masks": "All masks are filled.",
}
_USED_UP = "All {} steps are used up, and the model has not ended the text. Raise Steps (under Settings) to go on."
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

_VIEWS_KEPT = 2000  # of a text; any other is computed again when it is looked at
_SEARCHES_KEPT = 8
_SETS_KEPT = 8  # older samples are still branches

# tokens before, the settings, and the token that a person chose: what decides the outcome of a step
_Step = tuple[tuple[int, ...], DecodeSettings, int | None]


@dataclass
class BeamSearch:
    """What the engine said of the steps of one search, and where a person looks at it."""

    settings: DecodeSettings
    steps: int
    views: list[DecodeStepView] = field(default_factory=list)
    at: int = 0  # the step that is looked at, 0 for the prompt
    picked: Beam | None = None  # that a person looks at; None: the best

    @property
    def shown(self) -> list[DecodeStepView]:
        """The steps up to the one that is looked at."""
        return self.views[: self.at]

    @property
    def shown_beam(self) -> Beam | None:
        return self.picked or best_of(self.shown)

    def go_to(self, step: int) -> None:
        """Look at another step, and at what the picked beam is there."""
        self.at = min(max(step, 0), len(self.views))
        if self.picked is not None:
            self.picked = followed(self.shown, self.picked)


@dataclass
class Work:
    """What the engine said of the steps after one text. The tree itself is the document's."""

    views: OrderedDict[_Step, DecodeStepView] = field(default_factory=OrderedDict)
    searches: list[BeamSearch] = field(default_factory=list)  # the one that is looked at last
    sets: list[Drawn] = field(default_factory=list)  # samples side by side, those begun last at the end

    @property
    def is_empty(self) -> bool:
        return not self.views and not self.searches and not self.sets

    @property
    def search(self) -> BeamSearch | None:
        """The beam search that is looked at, whatever it was made with."""
        return self.searches[-1] if self.searches else None

    def search_with(self, settings: DecodeSettings, steps: int) -> BeamSearch | None:
        return next((s for s in self.searches if (s.settings, s.steps) == (settings, steps)), None)

    def look_at_search_with(self, settings: DecodeSettings, steps: int) -> None:
        """The search that was made so is looked at, if there is one; else still the last."""
        found = self.search_with(settings, steps)
        if found is not None:
            self.searches.sort(key=lambda search: search is found)

    def keep_beams(self, view: DecodeStepView) -> None:
        """Take a step of a search, and look at it."""
        settings, steps = view.request.settings, view.request.steps
        search = self.search_with(settings, steps)
        if search is None:
            search = BeamSearch(settings, steps)
            self.searches = [*self.searches, search][-_SEARCHES_KEPT:]
        search.views[view.number - 1 :] = [view]
        search.go_to(len(search.views))
        self.look_at_search_with(settings, steps)

    def begin_set(self, drawn: Drawn) -> None:
        self.sets = [*(begun for begun in self.sets if begun.is_begun), drawn][-_SETS_KEPT:]

    def keep(self, view: DecodeStepView) -> None:
        """Remember a step, so that it is there when one comes back to its node; beams are no nodes."""
        asked = view.request
        if asked.settings.strategy == "beam":
            return
        self.views[asked.ids, asked.settings, asked.forced] = view
        while len(self.views) > _VIEWS_KEPT:
            self.views.popitem(last=False)

    def view_of(self, path: tuple[Node, ...], sample: DecodeSettings | None = None) -> DecodeStepView | None:
        """The step that chose the last node of a path; None where it has to be computed again, or at the prompt.

        A token that several samples drew has several: that of the sample with these settings comes first.
        """
        own = self.views.get((tuple(n.token for n in path[:-1]), sample, None)) if path and sample is not None else None
        if own is not None:
            return own
        return next((view for step in _ways(path) if (view := self._chose(step, path[-1])) is not None), None)

    def is_astray(self, path: tuple[Node, ...]) -> bool:
        """Whether the settings of the last node choose another token today: it was written by other weights."""
        view = self.views.get(_ways(path)[0]) if path else None
        return view is not None and view.chosen is not None and view.chosen.id != path[-1].token

    def missing(self, path: tuple[Node, ...], steps: int, like: DecodeStepRequest) -> DecodeStepRequest | None:
        """What to ask for to see the last step of `path`, of the text that `like` is of; None where it is here."""
        if not path or self.view_of(path) is not None:
            return None
        before, settings, forced = _ways(path)[1 if self.is_astray(path) else 0]
        return replace(like, settings=settings, steps=steps, number=len(path), ids=before, forced=forced)

    def _chose(self, step: _Step, node: Node) -> DecodeStepView | None:
        view = self.views.get(step)
        return view if view is not None and view.chosen is not None and view.chosen.id == node.token else None


def _ways(path: tuple[Node, ...]) -> list[_Step]:
    """How the last node of a path was chosen, and the other way to come to it: choosing it by hand."""
    if not path:
        return []
    before, node = tuple(n.token for n in path[:-1]), path[-1]
    by_hand = (before, node.settings, node.token)
    return [by_hand] if node.forced else [(before, node.settings, None), by_hand]


def search_is_over(search: BeamSearch) -> str:
    """Why it goes no further than where it is looked at; "" where it does."""
    view = search.shown[-1] if search.shown else None
    if view is None or search.at < len(search.views) or not view.ending:
        return ""
    if view.ending == "steps":
        return f"The search is over: it had {search.steps} steps, and no beam that ended was better."
    return "The search is over: no beam that goes on can get better. " + ENDINGS.get(view.ending, "")


def text_is_over(view: DecodeStepView, steps: int) -> str:
    """Why no token follows what `view` chose; "" where one can."""
    if view.ending in ENDINGS:
        return ENDINGS[view.ending]
    return _USED_UP.format(steps) if view.number >= steps else ""


def token_is_over(node: Node | None, number: int, steps: int) -> str:
    """The same, of a step that is not at hand. `node` is None for a text that is known to go on."""
    if node is not None and node.ended:
        return "Nothing follows here: the text is at its end."
    return _USED_UP.format(steps) if number >= steps else ""


def reading_anew(mask: Intervention) -> str:
    return (
        f"With “{describe(mask)}” a token can see what is written after it, so nothing can be kept from one step to "
        "the next: each step reads the whole text anew."
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


def step_words(view: DecodeStepView, branches: Branches) -> str:
    if view.chosen is None:
        return (
            f"Step {view.number}: best so far “{view.text.strip()}”, log-probability {log_text(view.log_probability)}."
        )
    how = "you chose" if view.request.forced is not None else "drew" if view.drawn is not None else "took"
    place = f" in position {view.place}" if view.place is not None else ""
    chance = percent_text(view.chosen.probability)
    return (
        f"Step {view.number}: {how} “{shortened(view.chosen.label)}”{place} with {chance}. "
        f"Log-probability {log_text(view.log_probability)}, {log_text(branches.log_probability())} in all."
    )
