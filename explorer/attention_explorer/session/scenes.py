"""What a step of a lesson puts on screen, as a file says it: a document and a screen, tokens named by words. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from attention_explorer.session import changes, files
from attention_explorer.session.effects_choices import EffectsChoices
from attention_explorer.session.kept import KeptState, Screen, Value
from attention_explorer.session.named_tokens import Count, Place, Word
from attention_explorer.session.state import BatchText, Compared, Document, InterventionItem, Selection
from attention_explorer.session.view_options import Block, Distance, Normalisation, ViewOptions
from attention_explorer.session.writing import Decoding
from attention_models.files.catalogue import SHIPPED
from attention_models.files.sample_pictures import PREFIX
from attention_models.protocol.interventions import Intervention
from attention_models.protocol.values import SiteRef

SMALLEST_TEXT, LARGEST_TEXT = 0.8, 2.5

_Text = Annotated[str, Meta(max_length=4000)]
_Choices = Annotated[dict[Word, bool | int | float | _Text], Meta(max_length=50)]

_ON_A_HUB = re.compile(r"hf://[\w.-]{1,96}/[\w.-]{1,96}(:[\w.-]{1,96}\.gguf)?")
_STEP_OF_A_RUN = re.compile(r"(?P<name>[\w.-]{1,60})@\d{1,9}")


class Drawn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How things are drawn for a step; all else is as the person likes it."""

    normalisation: Normalisation = "none"
    block: Block = "all"
    distance: Distance = "model"
    edit_scope: Literal["head", "layer", "everywhere"] = "head"
    words: bool = False
    top: Annotated[int, Meta(ge=1, le=100)] = 10


class Input(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model, what it reads, what is changed in it and where to look. Tokens are named by their words."""

    checkpoint: Annotated[str, Meta(min_length=1, max_length=300)] = "story-gpt"
    text: _Text = ""
    second: _Text | None = None
    target: _Text | None = None
    picture: _Text = ""
    others: Annotated[tuple[_Text, ...], Meta(max_length=16)] = ()  # texts that are run together with it
    stack: changes.Stack = "decoder"
    layer: Place | None = None  # None: the head that the program would choose
    head: Place = 0
    query: Word | None = None  # and which of those alike
    query_place: Count = 1
    key: Word | None = None
    key_place: Count = 1
    blocks: bool = False  # the cell is masked at its head
    interventions: Annotated[tuple[changes.Change, ...], Meta(max_length=50)] = ()

    def __post_init__(self) -> None:
        """Raise ValueError for a place outside the file, or a change that there is not."""
        check_reference(self.checkpoint)
        check_picture(self.picture)
        _ = self.everywhere

    @property
    def site(self) -> SiteRef | None:
        return None if self.layer is None else SiteRef(self.stack, self.layer)

    @property
    def everywhere(self) -> tuple[Intervention, ...]:
        """What is changed, but for a cell that is blocked: that is known with the tokens."""
        return tuple(changes.intervention(record) for record in self.interventions)

    @property
    def changes_the_model(self) -> bool:
        return self.blocks or bool(self.interventions)

    def document(self, view: ViewOptions) -> Document:
        """With the first cell of its head selected: its tokens are not known yet."""
        return Document(
            checkpoint=self.checkpoint,
            text=self.text,
            second=self.second,
            target=self.target,
            picture=self.picture,
            after=tuple(BatchText(text) for text in self.others),
            selection=Selection(self.site, self.head, chosen=self.site is not None),
            view=view,
            interventions=tuple(InterventionItem(value) for value in self.everywhere),
        )


class Other(Input, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """State B of a comparison."""

    name: Annotated[str, Meta(max_length=60)] = ""


class Scene(Input, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All that is on screen."""

    panel: Word = "map"  # comes to the front
    beside: Word | None = None  # another one, of another group of tabs
    choices: Annotated[dict[Word, _Choices], Meta(max_length=20)] = {}  # of panels, as in a session file
    view: Drawn = Drawn()
    decoding: Decoding | None = None
    effects: EffectsChoices | None = None
    heads: files.Heads | None = None
    compared: Other | None = None
    text_size: float | None = None  # of the window's text, where 1 is the person's own

    def __post_init__(self) -> None:
        Input.__post_init__(self)
        check_text_size(self.text_size)
        _ = None if self.heads is None else files.heads_asked(self.heads)

    def kept(self, view: ViewOptions) -> KeptState:
        """As a state of a session. `view` is how the person likes it."""
        drawn = {name: getattr(self.view, name) for name in self.view.__struct_fields__}
        document = self.document(replace(view.lasting, **drawn))
        if self.decoding is not None:
            document = replace(document, decoding=replace(self.decoding, chosen=True))
        if self.effects is not None:
            document = replace(document, effects=self.effects)
        if self.heads is not None:
            document = replace(document, heads=files.heads_asked(self.heads))
        if self.compared is not None:
            b = self.compared
            document = replace(document, compared=Compared(b.document(view.lasting), name=b.name))
        return KeptState(document, screen=self.screen)

    @property
    def screen(self) -> Screen:
        front = (self.panel,) if self.beside is None else (self.beside, self.panel)
        panels: Mapping[str, Mapping[str, Value]] = {**{name: {} for name in front}, **self.choices}
        return Screen(open=tuple(panels), front=front, panels=panels)


def with_comforts_of(view: ViewOptions, state: KeptState) -> KeptState:
    """A state as its lesson has it, in the colours and with the motion that a person can do with."""
    kept = replace(state.document.view, colour_map=view.colour_map, reduce_motion=view.reduce_motion)
    return replace(state, document=replace(state.document, view=kept))


def check_text_size(size: float | None) -> None:
    if size is not None and not (math.isfinite(size) and SMALLEST_TEXT <= size <= LARGEST_TEXT):
        raise ValueError(f"a text size of {size:g} is not offered: {SMALLEST_TEXT:g} to {LARGEST_TEXT:g}")


def check_reference(reference: str) -> None:
    """Raise ValueError for a checkpoint that a lesson may not open: another computer does not have it, or not there."""
    run = _STEP_OF_A_RUN.fullmatch(reference)
    if reference in SHIPPED or (run is not None and run["name"] in SHIPPED) or _ON_A_HUB.fullmatch(reference):
        return
    raise ValueError(
        f"“{reference[:80]}” is no checkpoint that a lesson may name: one that comes with the program, or hf://owner/name"
    )


def check_picture(picture: str) -> None:
    if picture and not picture.startswith(PREFIX):
        raise ValueError(f"a lesson shows pictures that come with the program, “{PREFIX}NAME”, and no file")


def check_state(state: KeptState) -> None:
    """Raise ValueError where a state names a place outside the lesson that it is in."""
    for document in (state.document, *((b.document,) if (b := state.document.compared) is not None else ())):
        check_reference(document.checkpoint)
        check_picture(document.picture)
        if document.corpus.path or document.probe:
            raise ValueError("a lesson reads no file of texts")
        for writing in document.writings:
            check_reference(writing.checkpoint)
