"""The JSON of a document in a session file. It is untrusted: every value is checked before any is used."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from attention_explorer import json_files
from attention_explorer.session.branches import MOST_NODES, ROOT, Branches, Node
from attention_explorer.session.changes import Change, Place, SiteRecord, intervention, record, site_of, site_record
from attention_explorer.session.effects_choices import EffectsChoices
from attention_explorer.session.state import BatchText, CorpusChoice, Document, HeadsAsked, InterventionItem, Selection
from attention_explorer.session.view_options import ViewOptions
from attention_explorer.session.writing import Decoding
from attention_models.protocol.ablation import LAYER, UNITS, Ablation
from attention_models.protocol.batch import MOST_TEXTS, PaddingSide
from attention_models.protocol.chat import MOST_TURNS, Role, Turn
from attention_models.protocol.corpus import CorpusQuestion
from attention_models.protocol.decoding import DecodeSettings
from attention_models.protocol.interventions import Adapter
from attention_models.protocol.roles import ROLE_NAMES, HeadQuestion

VERSION = 9
"""1 had no branches, 2 no conversations, 3 not how to write, 4 no second text, 5 no adapters, 6 no other texts, 7 no
parts of blocks that are switched off, 8 no heads, neurons and whole layers among them, and nothing that is held."""

WHOLE_PARTS, WITHOUT_SKIP, ONE_TEXT, WITHOUT_ADAPTER, WITHOUT_SECOND = 8, 7, 6, 5, 4
"""Written where there is no such thing, so that programs that know of none read the file too."""

LARGEST = 4 << 20
"""Bytes of the largest file that is written or read."""

_MOST_LISTED = 1000
_LONGEST_LABEL = 1000
_MOST_CELLS = 100_000

MOST_ID = 1 << 40
"""The ids of tokens and of nodes are smaller."""

_Path = Annotated[str, Meta(max_length=4096)]


class _Selection(msgspec.Struct, forbid_unknown_fields=True):
    site: SiteRecord | None = None
    head: Place = 0
    query: Place = 0
    key: Place = 0


class _Turn(msgspec.Struct, forbid_unknown_fields=True):
    role: Role
    text: str


class _BatchText(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    text: str
    second: str | None = None
    target: str | None = None


class _Others(msgspec.Struct, forbid_unknown_fields=True):
    """Texts that are run together with the one that is shown."""

    before: Annotated[list[_BatchText], Meta(max_length=MOST_TEXTS)] = []
    after: Annotated[list[_BatchText], Meta(max_length=MOST_TEXTS)] = []
    padding: PaddingSide = "right"


class _Node(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """A token of the tree. `chosen` says with which of the tree's settings."""

    id: Annotated[int, Meta(gt=ROOT, lt=MOST_ID)]
    parent: Annotated[int, Meta(ge=ROOT, lt=MOST_ID)]
    token: Annotated[int, Meta(ge=0, lt=MOST_ID)]
    label: Annotated[str, Meta(max_length=_LONGEST_LABEL)]
    log_probability: Annotated[float, Meta(le=0)]
    chosen: Annotated[int, Meta(ge=0, lt=MOST_NODES)]
    forced: bool
    ended: bool
    name: Annotated[str, Meta(max_length=_LONGEST_LABEL)]


class _Branches(msgspec.Struct, forbid_unknown_fields=True):
    """The tree of the text. Parents come before their children."""

    nodes: Annotated[list[_Node], Meta(max_length=MOST_NODES)] = []
    settings: Annotated[list[DecodeSettings], Meta(max_length=MOST_NODES)] = []
    current: Annotated[int, Meta(ge=ROOT, lt=MOST_ID)] = ROOT
    made: Annotated[int, Meta(ge=ROOT, lt=MOST_ID)] = 0


class _Corpus(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    path: _Path
    attends_to: Annotated[str, Meta(max_length=_LONGEST_LABEL)] = ""
    rows_of: Annotated[str, Meta(max_length=_LONGEST_LABEL)] = ""


class _Question(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    kind: Annotated[str, Meta(max_length=_LONGEST_LABEL)]  # `HeadQuestion` refuses a kind that there is not
    site: SiteRecord | None = None
    head: Place = 0
    query: Place = 0
    key: Place = 0
    cells: Annotated[list[tuple[Place, Place]], Meta(max_length=_MOST_CELLS)] = []


class Heads(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """What all heads are coloured by, as files have it."""

    question: _Question | None = None
    role: Annotated[str, Meta(max_length=_LONGEST_LABEL)] = ""
    badges: bool = False
    above_even: bool = False


class _File(msgspec.Struct, forbid_unknown_fields=True):
    """`view` may lack options, or have those of a later version: they change only how things are drawn."""

    program: Literal["attention-explorer"]
    version: int
    checkpoint: Annotated[str, Meta(min_length=1, max_length=4096)]
    text: str
    second: str | msgspec.UnsetType = msgspec.UNSET
    others: _Others | msgspec.UnsetType = msgspec.UNSET
    target: str | None = None
    picture: _Path = ""
    chat: bool = False
    turns: Annotated[list[_Turn], Meta(max_length=MOST_TURNS)] = []
    selection: _Selection = msgspec.field(default_factory=_Selection)
    view: ViewOptions = ViewOptions()
    interventions: Annotated[list[Change], Meta(max_length=_MOST_LISTED)] = []
    decoding: Decoding = Decoding()
    effects: EffectsChoices | msgspec.UnsetType = msgspec.UNSET
    branches: _Branches = msgspec.field(default_factory=_Branches)
    corpus: _Corpus | msgspec.UnsetType = msgspec.UNSET
    probe: _Path | msgspec.UnsetType = msgspec.UNSET
    heads: Heads | msgspec.UnsetType = msgspec.UNSET


def encode(document: Document) -> bytes:
    """The file's content. A brush that was in the hand is put down, and trees of other texts are left out.

    Raises:
        ValueError: it would be larger than `LARGEST`, or a text or target that no file can hold.
    """
    selection = document.selection
    file = _File(
        program="attention-explorer",
        version=_version(document),
        checkpoint=document.checkpoint,
        text=document.text,
        second=msgspec.UNSET if document.second is None else document.second,
        others=_to_others(document),
        target=document.target,
        picture=document.picture,
        chat=document.chat,
        turns=[_Turn(turn.role, turn.text) for turn in document.turns],
        selection=_Selection(
            site_record(selection.site), max(0, selection.head), max(0, selection.query), max(0, selection.key)
        ),
        view=replace(document.view, painting="off"),
        interventions=[record(listed) for listed in document.interventions],
        decoding=document.decoding,
        effects=msgspec.UNSET if document.effects == EffectsChoices() else document.effects,
        branches=_to_branches(document.branches),
        corpus=_to_corpus(document.corpus),
        probe=document.probe or msgspec.UNSET,
        heads=_to_heads(document.heads),
    )
    try:
        content = json_files.encode(file)
    except UnicodeEncodeError as cause:
        raise ValueError(
            "The text holds half a character, which no file can hold. Delete it and save again."
        ) from cause
    if len(content) > LARGEST:
        raise ValueError(
            f"This session takes {len(content):,} bytes, and a session file holds {LARGEST:,} at most. "
            "Shorten the text, or delete branches of it."
        )
    return content


def _version(document: Document) -> int:
    skips = [listed.value for listed in document.interventions if isinstance(listed.value, Ablation)]
    if skips:
        return VERSION if any(skip.fill != "zero" or skip.part in (*UNITS, LAYER) for skip in skips) else WHOLE_PARTS
    if isinstance(_to_others(document), _Others):
        return WITHOUT_SKIP
    if any(isinstance(listed.value, Adapter) for listed in document.interventions):
        return ONE_TEXT
    return WITHOUT_SECOND if document.second is None else WITHOUT_ADAPTER


def decode(content: bytes) -> Document:
    """The document in a file's content.

    Raises:
        ValueError: no session of this version; the sentence says what is wrong and where.
    """
    json_files.check_size(content, LARGEST)
    version = json_files.decode(content, _Version).version
    if not 1 <= version <= VERSION:
        raise ValueError(f"it is of version {version}, and this program reads versions 1 to {VERSION}")
    file = json_files.decode(content, _File)
    if file.chat and not file.turns:
        raise ValueError("it is of a conversation, and has no turn of it")
    others = _Others() if file.others is msgspec.UNSET else file.others
    texts = len(others.before) + 1 + len(others.after)
    if texts > MOST_TEXTS:
        raise ValueError(f"it has {texts:,} texts, and {MOST_TEXTS} are run at once at most")
    document = Document(
        checkpoint=file.checkpoint,
        text=file.text,
        second=None if file.second is msgspec.UNSET else file.second,
        target=file.target,
        before=_from_texts(others.before),
        after=_from_texts(others.after),
        padding=others.padding,
        picture=file.picture,
        chat=file.chat,
        turns=tuple(Turn(turn.role, turn.text) for turn in file.turns),
        selection=Selection(
            site_of(file.selection.site),
            file.selection.head,
            file.selection.query,
            file.selection.key,
            chosen=file.selection.site is not None,
        ),
        view=replace(file.view, painting="off"),
        interventions=tuple(InterventionItem(intervention(record), record.on) for record in file.interventions),
        decoding=file.decoding,
        corpus=_from_corpus(file.corpus),
        probe="" if file.probe is msgspec.UNSET else file.probe,
        heads=heads_asked(file.heads),
        effects=EffectsChoices() if file.effects is msgspec.UNSET else file.effects,
    )
    return document.with_branches(_from_branches(file.branches))


def members() -> frozenset[str]:
    """What a file of this version may have, by name."""
    return frozenset(_File.__struct_fields__)


class _Version(msgspec.Struct):
    """All that is read of a file before it is known to be of this version."""

    version: int


def _to_others(document: Document) -> _Others | msgspec.UnsetType:
    if not document.before and not document.after and document.padding == "right":
        return msgspec.UNSET
    return _Others(_to_texts(document.before), _to_texts(document.after), document.padding)


def _to_texts(texts: tuple[BatchText, ...]) -> list[_BatchText]:
    return [_BatchText(text.text, text.second, text.target) for text in texts]


def _from_texts(texts: list[_BatchText]) -> tuple[BatchText, ...]:
    return tuple(BatchText(text.text, text.second, text.target) for text in texts)


def _to_corpus(corpus: CorpusChoice) -> _Corpus | msgspec.UnsetType:
    if corpus == CorpusChoice():
        return msgspec.UNSET
    return _Corpus(corpus.path, corpus.question.attends_to, corpus.question.rows_of)


def _from_corpus(corpus: _Corpus | msgspec.UnsetType) -> CorpusChoice:
    if corpus is msgspec.UNSET:
        return CorpusChoice()
    return CorpusChoice(corpus.path, CorpusQuestion(corpus.attends_to, corpus.rows_of))


def _to_heads(heads: HeadsAsked) -> Heads | msgspec.UnsetType:
    if heads == HeadsAsked():
        return msgspec.UNSET
    asked = heads.question
    question = None
    if asked is not None:
        cells = list(asked.cells)
        question = _Question(asked.kind, site_record(asked.site), asked.head, asked.query, asked.key, cells)
    return Heads(question, heads.role, heads.badges, heads.above_even)


def heads_asked(heads: Heads | msgspec.UnsetType) -> HeadsAsked:
    """Raises ValueError for a question or a role that there is not."""
    if heads is msgspec.UNSET:
        return HeadsAsked()
    if heads.role and heads.role not in ROLE_NAMES:
        raise ValueError(f"there is no role “{heads.role}” that heads could be coloured by")
    asked = heads.question
    if asked is None:
        return HeadsAsked(None, heads.role, heads.badges, heads.above_even)
    question = HeadQuestion(asked.kind, site_of(asked.site), asked.head, asked.query, asked.key, tuple(asked.cells))
    return HeadsAsked(question, "", heads.badges, heads.above_even)


def _to_branches(branches: Branches) -> _Branches:
    places = {settings: place for place, settings in enumerate(dict.fromkeys(n.settings for n in branches.nodes))}
    nodes = [
        _Node(
            node.id,
            node.parent,
            node.token,
            node.label[:_LONGEST_LABEL],
            min(node.log_probability, 0.0),
            places[node.settings],
            node.forced,
            node.ended,
            node.name,
        )
        for node in branches.nodes
    ]
    return _Branches(nodes, list(places), branches.current, branches.made)


def _from_branches(file: _Branches) -> Branches:
    """Raises ValueError where this is no tree; the sentence says which token is wrong."""
    known, siblings, last = {ROOT}, set[tuple[int, int]](), ROOT
    for settings in file.settings:
        if settings.strategy == "beam":
            raise ValueError("no token of a branch was chosen with such settings: beam search")
    for place, node in enumerate(file.nodes):
        at = f"token {place} of its branches"
        if node.parent not in known:
            raise ValueError(f"{at} follows on token id {node.parent}, which does not come before it")
        if node.id <= last:
            raise ValueError(f"{at} has the id {node.id}, which is not above those before it")
        if node.chosen >= len(file.settings):
            raise ValueError(f"{at} names settings {node.chosen}, of which there are {len(file.settings)}")
        if (node.parent, node.token) in siblings:
            raise ValueError(f"{at} is there twice")
        last = node.id
        known.add(last)
        siblings.add((node.parent, node.token))
    if file.current not in known:
        raise ValueError(f"there is no token {file.current} of its branches to look at")
    if file.made < last:
        raise ValueError(f"its branches have ids up to {last}, and say that only {file.made} were made")
    nodes = tuple(
        Node(n.id, n.parent, n.token, n.label, n.log_probability, n.ended, n.name, file.settings[n.chosen], n.forced)
        for n in file.nodes
    )
    return Branches(nodes, file.current, file.made)
