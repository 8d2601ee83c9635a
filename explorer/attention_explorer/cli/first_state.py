"""What is on screen before anything has loaded, as the command's options and a session file ask for it."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field, replace
from pathlib import Path

from attention_explorer.session.intents import PutIntervention
from attention_explorer.session.kept import Kept, Screen
from attention_explorer.session.prompt_modes import as_chat, with_prompt
from attention_explorer.session.reduce import reduce
from attention_explorer.session.session_check import checked, with_checkpoint
from attention_explorer.session.state import BatchText, Document, InterventionItem, Notice, State
from attention_explorer.session.texts import with_texts
from attention_explorer.session.view_options import ViewOptions
from attention_models.files.catalogue import FIRST, folder_of, read_card
from attention_models.files.sample_pictures import reference_of
from attention_models.protocol.errors import CheckpointError
from attention_models.protocol.request import never
from attention_models.protocol.values import BEST, Placement


def first_state(args: argparse.Namespace, view: ViewOptions, notice: Notice | None = None) -> State:
    """What is on screen before anything has loaded: the text is there at once, the numbers follow.

    A session file that is named is opened by the window, when it is there.
    """
    checkpoint = args.checkpoint or FIRST
    text, second = (args.text, None) if args.text is not None else example_of(checkpoint)
    interventions = tuple(InterventionItem(value) for value in args.interventions)
    document = Document(
        checkpoint=checkpoint,
        text=text,
        second=args.pair if args.pair is not None else second,
        view=view,
        interventions=interventions,
        target=args.target,
        after=tuple(BatchText(*given) for given in args.more),
        padding=args.padding or "right",
        picture=reference_of(args.picture or ""),
    )
    if args.chat:
        document = as_chat(document)
    return State(document, notice=notice, placement=placement_of(args))


OPEN_IN_WINDOW = "Open the session in the window, which asks you first, and save it again with copies on this computer."


@dataclass(frozen=True, slots=True)
class Given:
    """All that a command without a window works on."""

    state: State
    screen: Screen = field(default_factory=Screen)
    kept: Kept = field(default_factory=Kept)


def given(args: argparse.Namespace, view: ViewOptions) -> Given:
    """What the options ask for, on top of the session file where one is named.

    Raises:
        ValueError: the file cannot be opened, or its checkpoint is elsewhere or another; a sentence.
    """
    from attention_explorer.session import attn
    from attention_explorer.session.kept import SessionFile, is_short_text
    from attention_explorer.session.short_texts import decode

    if args.session is None:
        return Given(first_state(args, view))
    path = Path(args.session).expanduser()
    is_short = is_short_text(args.session)
    session = SessionFile(decode(args.session)) if is_short else attn.load(path)
    saved = session.present
    if args.checkpoint is not None:
        saved = with_checkpoint(saved, args.checkpoint)
    if args.picture is not None:
        saved = replace(saved, document=replace(saved.document, picture=reference_of(args.picture)), picture_hash="")
    named = tuple(filter(None, (args.checkpoint, args.picture)))
    found = checked(saved, None if is_short else path.resolve().parent, never, named)
    if found.found == "elsewhere":
        raise ValueError(f"{found.question} {OPEN_IN_WINDOW}")
    if found.found != "same":
        raise ValueError(f"{found.question} Say with --checkpoint where the session's own is.")
    if found.picture and args.picture is None:
        raise ValueError(f"{found.picture} Say with --picture which one to look at.")
    if found.of_b and args.compare and not args.with_session:
        raise ValueError(f"{found.of_b} Say with --with-session or the other options what B is.")
    saved = found.state
    document = _changed(saved.document, args)
    if args.words:
        document = replace(document, view=replace(document.view, words=True))
    placement = Placement(args.device or saved.placement.device, args.dtype or saved.placement.dtype)
    return Given(State(document, placement=placement, restored=True), saved.screen, session.kept)


def _changed(document: Document, args: argparse.Namespace) -> Document:
    """A session's document with what the options say in the place of what it says."""
    if args.text is not None and args.more:
        texts = ((args.text, args.pair, args.target), *args.more)
        document = replace(with_texts(document, (BatchText(*one) for one in texts), 0), chat=False)
    elif args.text is not None:
        document = with_prompt(document, args.text)
    if args.padding is not None:
        document = replace(document, padding=args.padding)
    if args.pair is not None:
        document = replace(document, second=args.pair)
    if args.chat:
        document = as_chat(document)
    if args.target is not None:
        document = replace(document, target=args.target)
    if args.picture is not None:
        document = replace(document, picture=reference_of(args.picture))
    state = State(document)
    for value in args.interventions:
        state = reduce(state, PutIntervention(value))
    return state.document


def placement_of(args: argparse.Namespace) -> Placement:
    """What `--device` and `--dtype` ask for."""
    return Placement(args.device or BEST, args.dtype or "float32")


def example_of(checkpoint: str) -> tuple[str, str | None]:
    """Its text, and the second one of a model that was made for pairs."""
    try:
        card = read_card(folder_of(checkpoint))
    except (OSError, RuntimeError, CheckpointError):  # a name too long, the home of nobody: opening it will say so
        return "", None
    return card.example, card.second or None
