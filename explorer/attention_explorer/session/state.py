"""The one frozen `State`: what is on screen. Only `reduce` makes a new one."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from attention_explorer.session.branches import Branches
from attention_explorer.session.effects_choices import EffectsChoices
from attention_explorer.session.live import Live
from attention_explorer.session.placed import Placed
from attention_explorer.session.results import Results
from attention_explorer.session.training import LeftTraining
from attention_explorer.session.view_options import ViewOptions
from attention_explorer.session.writing import Decoding, Origin, PendingStep, Writing, strategy_of, with_tree
from attention_models.protocol.batch import Batch, PaddingSide
from attention_models.protocol.chat import Chat, Pair, Turn
from attention_models.protocol.corpus import CorpusQuestion, CorpusRequest
from attention_models.protocol.interventions import Intervention, Mask, applies, precedence
from attention_models.protocol.loading import StepRequest
from attention_models.protocol.mask_kinds import Cell
from attention_models.protocol.prompt import Prompt
from attention_models.protocol.quality import QualityRequest
from attention_models.protocol.request import Lane
from attention_models.protocol.roles import HeadQuestion
from attention_models.protocol.running import Ran, RunInputs
from attention_models.protocol.values import DEFAULT_PLACEMENT, Placement, Site, SiteRef, TrainingSteps


@dataclass(frozen=True, slots=True)
class Selection:
    """What every panel shows: one head of one site, and one cell of it. None where nothing was chosen yet."""

    site: SiteRef | None = None
    head: int = 0
    query: int = 0
    key: int = 0
    chosen: bool = field(default=False, compare=False)  # by a person: it is kept when another text comes


@dataclass(frozen=True, slots=True)
class InterventionItem:
    """An intervention in the session's list; switched off it stays there and changes nothing."""

    value: Intervention
    on: bool = True


@dataclass(frozen=True, slots=True)
class BatchText:
    """One of several texts that are run together, with what belongs to it alone. As the fields of `Document`."""

    text: str
    second: str | None = None
    target: str | None = None

    @property
    def prompt(self) -> str | Pair:
        return Pair(self.text, self.second) if self.second and self.second.strip() else self.text


@dataclass(frozen=True, slots=True)
class CorpusChoice:
    """A file of texts that is read through the model, and what is looked for in it; "" where none was chosen."""

    path: str = ""
    question: CorpusQuestion = field(default_factory=CorpusQuestion)


@dataclass(frozen=True, slots=True)
class HeadsAsked:
    """What all heads are coloured by: thumbnails of their weights, a question, or a role; and what is drawn on them."""

    question: HeadQuestion | None = None  # of every head of the run
    role: str = ""  # a role's name: over texts; "" where a question or the weights are shown
    badges: bool = False  # the roles that heads plainly have are named on them
    above_even: bool = False  # only the heads that score more than one that attends evenly


@dataclass(frozen=True)
class Document:
    """What a person chose. Undo walks through these; a session file is one of these."""

    checkpoint: str = "story-gpt"
    text: str = ""
    selection: Selection = field(default_factory=Selection)
    view: ViewOptions = field(default_factory=ViewOptions)
    interventions: tuple[InterventionItem, ...] = ()
    second: str | None = None  # read together with the text, as a pair; None: its field is not open
    target: str | None = None  # typed for the decoder of an encoder-decoder model; None: it writes itself
    before: tuple[BatchText, ...] = ()  # texts that are run together with this one and stand before it in their list,
    after: tuple[BatchText, ...] = ()  # and those that stand after it
    padding: PaddingSide = "right"  # where texts that are run together are filled up to the length of the longest
    picture: str = ""  # what a vision model reads: the path of a file, or "sample:NAME"; models of text ignore it
    chat: bool = False  # the model reads the conversation, and not the text
    turns: tuple[Turn, ...] = ()  # of the conversation; kept while the model reads a text
    decoding: Decoding = field(default_factory=Decoding)
    effects: EffectsChoices = field(default_factory=EffectsChoices)  # what is asked in Effects
    writings: tuple[Writing, ...] = ()  # what was written after this text and after others, changed last at the end
    heads: HeadsAsked = HeadsAsked()
    compared: Compared | None = None  # B, where what is open is compared with another state

    corpus: CorpusChoice = CorpusChoice()
    probe: str = ""  # the file of texts that roles are found on; "" for the texts that come along

    @cached_property
    def prompt(self) -> Prompt:
        """What a model of texts is given to read."""
        if self.chat:
            return Chat(self.turns)
        texts = (*self.before, BatchText(self.text, self.second, self.target), *self.after)
        shown = len(self.before)
        if len(texts) == 1:
            return texts[0].prompt
        targets = tuple(one.target for one in texts)
        typed = any(target is not None for target in targets)
        return Batch(tuple(one.prompt for one in texts), self.padding, shown, targets if typed else ())

    @cached_property
    def origin(self) -> Origin:
        """What a tree of branches belongs to."""
        return self.checkpoint, replace(self.inputs, picture="")  # one writes after a text

    @cached_property
    def branches(self) -> Branches:
        """The ways that this text went on."""
        return next((writing.branches for writing in self.writings if writing.origin == self.origin), Branches())

    @cached_property
    def written_otherwise(self) -> tuple[int, ...]:
        """What the model wrote last after this text with other interventions: an edited run is of the same words."""
        prompt = replace(self.origin[1], interventions=())
        alike = (
            writing.branches.ids()
            for writing in reversed(self.writings)
            if writing.checkpoint == self.checkpoint and replace(writing.inputs, interventions=()) == prompt
        )
        return next(alike, ())

    def with_branches(self, branches: Branches) -> Document:
        """The document with another tree after its text."""
        if branches == self.branches:
            return self
        return replace(self, writings=with_tree(self.writings, Writing(*self.origin, branches)))

    @cached_property
    def edits(self) -> tuple[Intervention, ...]:
        """The interventions that are on."""
        return tuple(listed.value for listed in self.interventions if listed.on)

    @cached_property
    def inputs(self) -> RunInputs:
        """What the open model runs on."""
        return RunInputs(self.prompt, self.target, self.picture, self.edits)

    @cached_property
    def corpus_request(self) -> CorpusRequest:
        """What reads its file of texts from the beginning."""
        return CorpusRequest(path=self.corpus.path, question=self.corpus.question, interventions=self.edits)


@dataclass(frozen=True, slots=True)
class Compared:
    """State B of a comparison, as it was when it was chosen. A is what is open."""

    document: Document  # whose own B is None, and whose selection says which head is shown
    continuation: tuple[int, ...] = ()  # what was written after its text and is read along with it, as tokens
    name: str = ""  # a person's word for it; "" for what tells it from A
    own_head: bool = False  # its head was chosen by hand; else it is the one that matches A's

    @property
    def inputs(self) -> RunInputs:
        """What its model runs on."""
        return replace(self.document.inputs, continuation=self.continuation)


@dataclass(frozen=True, slots=True)
class Notice:
    """A sentence for the person; `action` names what its button does."""

    kind: Literal["info", "warning", "error"]
    text: str
    action_label: str = ""
    action: object | None = None  # an intent, dispatched by the button
    lane: Lane | None = None  # whose answer it is; it goes when that lane's input changes or its next answer comes


@dataclass(frozen=True, eq=False)
class State:
    document: Document = field(default_factory=Document)
    results: Results = field(default_factory=Results)
    notice: Notice | None = None
    live: Live = field(default_factory=Live)  # what is under way: the session tells of it by a signal of its own
    placement: Placement = DEFAULT_PLACEMENT  # where checkpoints are opened, as asked for
    stepping: StepRequest | None = None  # another step of the open checkpoint's training is on its way
    following: bool = False  # the newest snapshot of that training is shown, and each that comes
    snapshots: tuple[int, ...] = ()  # of that training, where there are others than when it was opened
    loading: str | None = None  # the checkpoint chosen since the last one that opened; no text runs meanwhile
    refused: RunInputs | None = None  # what the open model could not run: not tried again unless asked
    expected: tuple[int, ...] = ()  # what the text that was put into the input was written as; not read yet
    written_on: bool = False  # the input is the text that ran with what the model wrote into it; not read yet
    pending_step: PendingStep | None = None  # the step of decoding that is under way
    beam: tuple[int, ...] = ()  # the tokens of the beam that the Decode panel shows: a search is in no tree
    passage: int = 0  # what is being written in one go, and undone at once; 0 when it was broken off
    passages: int = 0  # that there were
    measuring: QualityRequest | None = None  # the next batch of the measurement under way
    reading: bool = False  # the document's file of texts is being read
    recent_texts: tuple[str, ...] = ()  # files of texts that were chosen lately, the last one first
    opening: Document | None = None  # of a session file: it comes on screen when its checkpoint has been opened
    example: Placed | None = None  # chosen, and its text has not run yet: its tokens are not known
    opening_place: Placed | None = None  # of the document that is opening, as an example's
    left_trainings: tuple[LeftTraining, ...] = ()  # not saved, of ended windows and of this one; the newest first
    discarded_trainings: tuple[LeftTraining, ...] = ()  # that the person does not want, in their order
    restored: bool = False  # the document came whole: the next load keeps its text, the next run its selection
    shown: tuple[Selection, Selection] | None = None  # a restored selection, and what is selected until its text ran

    @cached_property
    def selection(self) -> Selection:
        """What the panels show: the document's selection, within what ran.

        That of a restored document is for its own text. Until that has run, it is what was selected in the run before.
        """
        return clamped(self.of_the_run, self.results.ran)

    @cached_property
    def of_the_run(self) -> Selection:
        """What is selected in the run on screen, as it was chosen: its query may still be the end of a text."""
        chosen, shown = self.document.selection, self.shown
        is_to_come = self.results.ran is not None and not self.up_to_date and self.inputs != self.refused
        return shown[1] if shown is not None and is_to_come and shown[0] == chosen else chosen

    @cached_property
    def training(self) -> TrainingSteps | None:
        """The training that the open checkpoint comes from, with the snapshots that there are now."""
        loaded = self.results.loaded
        found = None if loaded is None else loaded.info.training
        return replace(found, steps=self.snapshots) if found is not None and self.snapshots else found

    @cached_property
    def is_own_training(self) -> bool:
        """Whether the open checkpoint is of the training of this window, which may write its last weights anew."""
        loaded, own = self.results.loaded, self.live.learning
        return loaded is not None and own is not None and own.is_open(loaded.info)

    @cached_property
    def question(self) -> HeadQuestion | None:
        """What every head of the run is asked."""
        return self.document.heads.question

    @cached_property
    def ran(self) -> Ran | None:
        return self.results.ran

    @cached_property
    def site(self) -> Site | None:
        """The selected site as it ran, None before the first run or where the model has no such site."""
        return site_of(self.results.ran, self.of_the_run.site)

    @cached_property
    def continuation(self) -> tuple[int, ...]:
        """What the Decode panel has written after the text, as tokens, while the window follows it."""
        document = self.document
        if not document.view.follow:
            return ()
        info = None if self.results.loaded is None else self.results.loaded.info
        if strategy_of(document.decoding, info, document.branches) == "beam":
            return self.beam
        return document.branches.ids() if document.branches.nodes else document.written_otherwise

    @cached_property
    def inputs(self) -> RunInputs:
        """What is to be on screen: the document's inputs with the continuation."""
        return replace(self.document.inputs, continuation=self.continuation)

    @cached_property
    def up_to_date(self) -> bool:
        """Whether what is shown was computed from the text in the input, with the interventions that are on.

        More or less of what was written after it may be shown along with it.
        """
        return self.ran is not None and replace(self.ran.inputs, continuation=()) == self.document.inputs

    @cached_property
    def caught_up(self) -> bool:
        """Whether it was, with all that was written after it."""
        return self.ran is not None and self.ran.inputs == self.inputs

    @cached_property
    def edit_scope(self) -> tuple[SiteRef | None, int | None]:
        """The site and head of an intervention that is put in place now; None stands for all of them."""
        selection, scope = self.selection, self.document.view.edit_scope
        site = None if scope == "everywhere" else selection.site
        return site, selection.head if scope == "head" and site is not None else None

    @cached_property
    def painted_cells(self) -> tuple[Cell, ...]:
        """(query, key, allowed) of every cell painted at the selected head, whatever the scope, as now in force."""
        site, head = self.site, self.selection.head
        if site is None:
            return ()
        masks = [i.value for i in self.document.interventions if i.on and isinstance(i.value, Mask)]
        here = [m for m in masks if m.paints and applies(m, site) and m.head in (None, head)]
        cells = {(q, k): allow for mask in sorted(here, key=precedence) for q, k, allow in mask.cells or ()}
        return tuple((q, k, allow) for (q, k), allow in cells.items())

    def with_live(self, **changes: object) -> State:
        """The state with something else under way."""
        return replace(self, live=replace(self.live, **changes))  # type: ignore[arg-type]

    def with_document(self, **changes: object) -> State:
        """The state with some of the document's fields changed; this very state where nothing changes."""
        document = replace(self.document, **changes)  # type: ignore[arg-type]
        return self if document == self.document else replace(self, document=document)


def site_of(ran: Ran | None, ref: SiteRef | None) -> Site | None:
    """The site named `ref` as it ran, None where it did not."""
    return None if ran is None or ref is None else ran.site(ref)


def clamped(selection: Selection, ran: Ran | None) -> Selection:
    """`selection` with its head, query and key among those that ran; only made non-negative before the first run."""
    if ran is None:
        return replace(selection, query=max(0, selection.query), key=max(0, selection.key))
    site = site_of(ran, selection.site)
    queries, keys = (site.queries, site.keys) if site else (len(ran.tokens), len(ran.tokens))
    return Selection(
        site=selection.site,
        head=max(0, min(selection.head, site.heads - 1)) if site else selection.head,
        query=max(0, min(selection.query, queries - 1)),
        key=max(0, min(selection.key, keys - 1)),
        chosen=selection.chosen,
    )
