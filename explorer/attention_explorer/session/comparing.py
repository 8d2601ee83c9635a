"""State B: what is made of what is open, of a branch, of another head, or of a text that was typed. Pure."""

from __future__ import annotations

from dataclasses import replace

from attention_explorer.session.branches import ROOT, Branches
from attention_explorer.session.kept import LONGEST_NAME, KeptState
from attention_explorer.session.prompt_modes import with_prompt
from attention_explorer.session.state import Compared, Document, State
from attention_explorer.session.texts import alone
from attention_explorer.session.view_options import ViewOptions
from attention_models.files.fingerprint import title_of_reference
from attention_models.files.sample_pictures import title_of_picture
from attention_models.protocol.prompt import plain_text, shown_of
from attention_models.protocol.values import SiteRef

BEFORE = "the model before the interventions"


def as_b(state: State) -> Compared:
    """What is open, with what was written after it as far as it is shown."""
    loaded, document = state.results.loaded, replace(state.document, selection=state.selection)
    if loaded is not None:  # what is being opened is named already, and may not open
        document = replace(document, checkpoint=loaded.info.reference)
    own = document.compared is not None and document.compared.own_head
    return Compared(frozen(document), state.continuation, own_head=own)


def branch_as_b(state: State, node: int) -> Compared:
    """The text with the branch that ends at `node` of its tree. KeyError where there is none."""
    branches = state.document.branches.go(node)
    document = frozen(replace(state.document, selection=state.selection).with_branches(branches))
    name = "" if node == ROOT else branches.node(node).name[:LONGEST_NAME]
    return Compared(document, branches.ids(), name)


def before_as_b(state: State) -> Compared:
    """What is open without any intervention; of what was written after it the very tokens."""
    b = as_b(state)
    return replace(b, document=replace(b.document, interventions=()), name=BEFORE, own_head=False)


def head_as_b(state: State, site: SiteRef, head: int) -> Compared:
    """What is open, with another of its heads to be shown."""
    b = as_b(state)
    selection = replace(b.document.selection, site=site, head=head)
    return replace(b, document=replace(b.document, selection=selection), own_head=True)


def typed_as_b(state: State, text: str, checkpoint: str, picture: str | None = None) -> Compared:
    """A text, read by a checkpoint, or a picture: as B is where there is one, else as what is open."""
    b = state.document.compared or as_b(state)
    document, own_head = b.document, b.own_head
    if checkpoint != document.checkpoint:  # layers, heads and cells mean something else there
        document, own_head = replace(document, checkpoint=checkpoint, interventions=(), target=None), False
    if text != typed_text(document):
        document = replace(with_prompt(alone(document), text), target=None)
    if picture is not None:
        document = replace(document, picture=picture)
    if document == b.document:
        return b
    return replace(b, document=frozen(document), continuation=(), name="", own_head=own_head)


def typed_text(document: Document) -> str:
    """What a field of one line shows of what B reads."""
    return plain_text(shown_of(document.prompt)) if document.chat else document.text


def kept_as_b(kept: KeptState) -> Compared:
    """A state that was kept, with its branch in view where it follows."""
    document = kept.document
    ids = document.branches.ids() if document.view.follow else ()
    return Compared(frozen(document), ids, kept.name)


def frozen(document: Document) -> Document:
    """What is run and shown of a document as B: not how it is drawn, nor what was written after other texts."""
    checkpoint, inputs = document.origin
    of_this_text = tuple(
        writing
        for writing in document.writings
        if writing.checkpoint == checkpoint and replace(writing.inputs, interventions=inputs.interventions) == inputs
    )
    return replace(document, compared=None, writings=of_this_text, view=ViewOptions())


def opened_from(b: Compared, state: State) -> Document:
    """The document to open where B takes the place of what is open, which becomes B."""
    now = state.document
    view = replace(now.view, follow=now.view.follow or bool(b.continuation))
    document = replace(b.document, view=view, compared=replace(as_b(state), name=""))
    if not b.own_head and b.document.checkpoint == now.checkpoint:  # the head that both show
        selection = replace(document.selection, site=state.selection.site, head=state.selection.head)
        document = replace(document, selection=selection)
    return document


def loses_its_continuation(b: Compared) -> bool:
    """Whether what was written after B's text is in no tree, as with a beam search, so that it cannot be opened."""
    opened = State(replace(b.document, view=replace(b.document.view, follow=True)))
    return bool(b.continuation) and opened.continuation != b.continuation


def name_of(b: Compared, state: State) -> str:
    """What to call B: a person's name for it, or what it has that A has not."""
    if b.name:
        return b.name
    a, parts = state.document, []
    if b.document.checkpoint != a.checkpoint:
        parts.append(title_of_reference(b.document.checkpoint))
    if b.document.prompt != a.prompt or b.document.target != a.target:
        said = b.document.target or plain_text(shown_of(b.document.prompt))
        parts.append(f"“{said}”")
    if b.document.picture != a.picture:
        parts.append(title_of_picture(b.document.picture))
    if b.document.inputs.interventions != a.inputs.interventions:
        count = len(b.document.inputs.interventions)
        parts.append("no intervention" if not count else f"{count} intervention{'s' if count > 1 else ''}")
    if b.continuation != state.continuation:
        parts.append(_written(b.document.branches, len(b.continuation)))
    return ", ".join(parts) or "the same state"


def _written(branches: Branches, count: int) -> str:
    words = "".join(node.label for node in branches.path())
    return f"the branch “{words.replace('␣', ' ').strip()}”" if words else f"{count} tokens written"
