"""What the engine said of the steps after one text. The tree of what was written is the document's."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field, replace

from attention_explorer.panels.decoding.side_by_side import SampleSet, best_of, followed
from attention_explorer.session.branches import Node
from attention_models.protocol.decoding import Beam, DecodeSettings, DecodeStepRequest, DecodeStepView

_VIEWS_KEPT = 2000  # of a text; any other is computed again when it comes into view
_SEARCHES_KEPT = 8
_SETS_KEPT = 8  # older samples are still branches

# tokens before, the settings, and the token that a person chose: what decides the outcome of a step
_Step = tuple[tuple[int, ...], DecodeSettings, int | None]


@dataclass
class SearchAnswers:
    """What the engine said of the steps of one beam search, and which of them is in view."""

    settings: DecodeSettings
    steps: int
    views: list[DecodeStepView] = field(default_factory=list)
    at: int = 0  # the step in view, 0 for the prompt
    picked: Beam | None = None  # that a person chose to see; None: the best

    @property
    def shown(self) -> list[DecodeStepView]:
        """The steps up to the one in view."""
        return self.views[: self.at]

    @property
    def shown_beam(self) -> Beam | None:
        return self.picked or best_of(self.shown)

    def go_to(self, step: int) -> None:
        """Show another step, and what the picked beam is there."""
        self.at = min(max(step, 0), len(self.views))
        if self.picked is not None:
            self.picked = followed(self.shown, self.picked)


@dataclass
class Answers:
    """What the engine said of the steps after one text. The tree itself is the document's."""

    views: OrderedDict[_Step, DecodeStepView] = field(default_factory=OrderedDict)
    searches: list[SearchAnswers] = field(default_factory=list)  # the one in view last
    sets: list[SampleSet] = field(default_factory=list)  # samples side by side, those begun last at the end

    @property
    def is_empty(self) -> bool:
        return not self.views and not self.searches and not self.sets

    @property
    def search(self) -> SearchAnswers | None:
        """The beam search in view, whatever it was made with."""
        return self.searches[-1] if self.searches else None

    def search_with(self, settings: DecodeSettings, steps: int) -> SearchAnswers | None:
        return next((s for s in self.searches if (s.settings, s.steps) == (settings, steps)), None)

    def show_search_with(self, settings: DecodeSettings, steps: int) -> None:
        """Put the search that was made so in view, if there is one; else the last one stays."""
        found = self.search_with(settings, steps)
        if found is not None:
            self.searches.sort(key=lambda search: search is found)

    def keep_beams(self, view: DecodeStepView) -> None:
        """Take a step of a search, and show it."""
        settings, steps = view.request.settings, view.request.steps
        search = self.search_with(settings, steps)
        if search is None:
            search = SearchAnswers(settings, steps)
            self.searches = [*self.searches, search][-_SEARCHES_KEPT:]
        search.views[view.request.number - 1 :] = [view]
        search.go_to(len(search.views))
        self.show_search_with(settings, steps)

    def begin_set(self, drawn: SampleSet) -> None:
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
