"""What of all that was written after a text is in view, and whether anything follows on it. Asks for nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from PySide6.QtCore import QObject

from attention_explorer.panels.decoding.answers import Answers, SearchAnswers
from attention_explorer.panels.decoding.decode_sentences import (
    CLASSIFIES,
    SILENT,
    made_with,
    search_is_over,
    text_is_over,
    token_is_over,
)
from attention_explorer.panels.decoding.side_by_side import SampleSet, SideText, beam_texts
from attention_explorer.panels.decoding.situation import Situation
from attention_explorer.session.branches import MOST_NODES, ROOT, Branches, Node
from attention_models.protocol.decoding import (
    Beam,
    DecodeSamplesRequest,
    DecodeSettings,
    DecodeStepRequest,
    DecodeStepView,
)
from attention_models.protocol.prompt import Prompt, with_other_end

# What the player asks of the engine. Pure.


def step_request(
    now: Situation,
    settings: DecodeSettings,
    steps: int,
    ids: tuple[int, ...] = (),
    number: int | None = None,
    forced: int | None = None,
) -> DecodeStepRequest:
    """The token after `ids`; or step `number` of a beam search, which has no `ids`."""
    return DecodeStepRequest(
        inputs=now.inputs,
        settings=settings,
        steps=steps,
        number=len(ids) + 1 if number is None else number,
        ids=ids,
        forced=forced,
        site=now.site,
        head=now.head,
    )


def samples_request(now: Situation, samples: SampleSet, steps: int) -> DecodeSamplesRequest:
    """A token more of each sample that has not ended."""
    writing = samples.writing(now.branches)
    ids = tuple(now.branches.ids(samples.nodes[sample]) for sample in writing)
    return DecodeSamplesRequest(
        inputs=now.inputs,
        settings=samples.settings,
        steps=steps,
        number=len(ids[0]) + 1,
        samples=writing,
        ids=ids,
        site=now.site,
        head=now.head,
    )


_FULL = f"The branches of this text hold {MOST_NODES:,} tokens, the most that are kept. Delete one to go on."


class InView(QObject):
    """`settings`, `steps`, `samples` and `problem` are what the knobs say; `work` is what the engine said."""

    def __init__(self, now: Callable[[], Situation], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.now = now
        self.settings, self.steps, self.samples, self.problem = DecodeSettings(), 20, 1, ""
        self.work = Answers()
        # sets of samples, a tree, and what that has of these: looked up many times a step
        self._found_in: tuple[list[SampleSet], Branches, tuple[int, SampleSet] | None] = [], Branches(), None

    @property
    def is_beam(self) -> bool:
        return self.settings.strategy == "beam"

    @property
    def branches(self) -> Branches:
        return self.now().branches

    @property
    def at(self) -> int:
        """The step in view; 0 is the prompt."""
        search = self.work.search
        return (search.at if search is not None else 0) if self.is_beam else len(self.branches.path())

    @property
    def count(self) -> int:
        """How many texts a step draws."""
        return self.samples if self.settings.draws else 1

    @property
    def samples_in_view(self) -> SampleSet | None:
        """The samples side by side, while one of them is in view."""
        found = self._found()
        return None if found is None else found[1]

    def _found(self) -> tuple[int, SampleSet] | None:
        """The set of samples of which one is in view, as far as the tree has it, and its place among the sets.

        Where there are several, that which is made as the knobs say comes first, then the one that was begun last.
        """
        branches, sets = self.branches, self.work.sets
        if self._found_in[0] is not sets or self._found_in[1] is not branches:
            cut = [(place, drawn.within(branches)) for place, drawn in enumerate(sets)]
            there = [
                (place, drawn)
                for place, drawn in cut
                if drawn is not None and drawn.is_begun and drawn.shown(branches) is not None
            ]
            there.sort(key=lambda found: (self.is_as_set(found[1]), found[0]))
            self._found_in = sets, branches, there[-1] if there else None
        return self._found_in[2]

    def is_as_set(self, made: SearchAnswers | SampleSet) -> bool:
        """Whether the knobs say what it was made with, so that it goes on with the next step."""
        if isinstance(made, SearchAnswers):
            return (made.settings, made.steps) == (self.settings, self.steps)
        return (made.settings, len(made.ways)) == (self.settings, self.count)

    def other_settings(self) -> str:
        """The settings that what is in view was made with, where the knobs say others; "" where they do not."""
        if self.is_beam:
            search = self.work.search
            return made_with(search.settings, search.steps) if search and not self.is_as_set(search) else ""
        drawn = self.samples_in_view
        if drawn is None or self.is_as_set(drawn):
            return ""
        return made_with(drawn.settings, samples=len(drawn.ways))

    def tokens(self) -> tuple[Node, ...]:
        """The tokens of the text in view, those after the step in view included."""
        drawn, branches = self.samples_in_view, self.branches
        sample = drawn.shown(branches) if drawn is not None else None
        return branches.furthest() if drawn is None or sample is None else branches.path(drawn.nodes[sample])

    def shown_view(self) -> DecodeStepView | None:
        work, branches, drawn = self.work, self.branches, self.samples_in_view
        if self.is_beam:
            return work.search.shown[-1] if work.search is not None and work.search.shown else None
        sample = drawn.shown(branches) if drawn is not None else None
        settings = None if drawn is None or sample is None else replace(drawn.settings, sample=sample)
        return work.view_of(branches.path(), settings)

    @property
    def shown_beam(self) -> Beam | None:
        """The hypothesis of the search that is in view."""
        return self.work.search.shown_beam if self.work.search is not None else None

    def shown_ids(self) -> tuple[int, ...]:
        """What was written up to the shown step, by the picked beam in a search."""
        view, beam = self.shown_view(), self.shown_beam
        if view is None:
            return ()
        return beam.ids if self.is_beam and beam is not None else view.ids

    def shown_whole(self) -> Prompt:
        """The same with what it follows on: what "use this text" puts into the input."""
        view, beam = self.shown_view(), self.shown_beam
        if view is None or not self.is_beam or beam is None:
            return view.whole if view is not None else ""
        return with_other_end(view.whole, view.text, beam.text)

    def side_by_side(self) -> list[SideText]:
        """The texts that are written at once, if there are several."""
        if self.is_beam:
            return beam_texts(self.work.search.shown, self.shown_beam) if self.work.search is not None else []
        if self.samples_in_view is None:
            return []
        fills = self.now().family == "masked"  # its words do not stand side by side
        return self.samples_in_view.texts(self.branches, ", " if fills else "")

    def lacking(self, now: Situation) -> DecodeStepRequest | None:
        """The step in view, where it came from a file, say, and has to be computed again."""
        branches = now.branches
        if self.is_beam or branches.current == ROOT or now.pending is not None or not now.up_to_date:
            return None
        like = step_request(now, self.settings, self.steps)
        return self.work.missing(branches.path(), self.steps, like)

    def silence(self) -> str:
        """Why the open model writes nothing at all; "" where it does."""
        loaded, family = self.now().loaded, self.now().family
        if loaded is not None and loaded.info.class_head is not None:
            return CLASSIFIES
        return SILENT.get(family, "") if family else "No model is open yet."

    @property
    def begins_anew(self) -> bool:
        """Whether the next step is one after the prompt: the text in view is over, and was written otherwise.

        By another strategy, say, or with another seed than the knobs say.
        """
        path = self.branches.path()
        if self.is_beam or not path or (self.samples_in_view is not None and self.is_as_set(self.samples_in_view)):
            return False
        as_set = (replace(path[-1].settings, sample=self.settings.sample), self._drawn_beside()) == (
            self.settings,
            self.count,
        )
        return not as_set and bool(self._over(path))

    def why_not(self) -> str:
        """Why no step follows on what is in view, nor after the prompt; "" where one can."""
        silence = self.silence()
        if silence:
            return silence
        if self.is_beam:
            search = self.work.search
            return search_is_over(search) if search is not None and self.is_as_set(search) else ""
        if not self.branches.has_room(self.count):
            return _FULL
        if self.samples_in_view is not None and self.is_as_set(self.samples_in_view):
            return self._why_no_sample(self.samples_in_view)
        return "" if self.begins_anew else self._over(self.branches.path())

    def _over(self, path: tuple[Node, ...]) -> str:
        """Why no token follows the last of `path`, which is in view; "" where one can."""
        view = self.shown_view()
        if view is None:
            return token_is_over(path[-1], len(path), self.steps) if path else ""
        return text_is_over(view, self.steps)

    def _drawn_beside(self) -> int:
        """How many texts were drawn at once when that in view was."""
        return len(self.samples_in_view.ways) if self.samples_in_view is not None else 1

    def _why_no_sample(self, drawn: SampleSet) -> str:
        branches = self.branches
        if branches.current != drawn.nodes[drawn.shown(branches) or 0]:
            return ""  # what follows is known
        writing = drawn.writing(branches)
        if not writing:
            return "All samples have ended."
        return token_is_over(None, len(branches.path(drawn.nodes[writing[0]])), self.steps)
