"""What is on screen before anything has loaded, as the command's options ask for it."""

from __future__ import annotations

import argparse

from explorer.session.state import BatchText, Document, InterventionItem, Notice, State
from explorer.session.talking import as_chat
from explorer.session.view_options import ViewOptions
from models.files.catalogue import folder_of, read_card
from models.files.sample_pictures import reference_of
from models.protocol.errors import CheckpointError
from models.protocol.values import Placement


def first_state(args: argparse.Namespace, view: ViewOptions, notice: Notice | None = None) -> State:
    """What is on screen before anything has loaded: the text is there at once, the numbers follow."""
    text, second = (args.text, None) if args.text is not None else example_of(args.checkpoint)
    interventions = tuple(InterventionItem(value) for value in args.interventions)
    document = Document(
        checkpoint=args.checkpoint,
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


def placement_of(args: argparse.Namespace) -> Placement:
    """What `--device` and `--dtype` ask for."""
    return Placement(args.device, args.dtype)


def example_of(checkpoint: str) -> tuple[str, str | None]:
    """Its text, and the second one of a model that was made for pairs."""
    try:
        card = read_card(folder_of(checkpoint))
    except (OSError, RuntimeError, CheckpointError):  # a name too long, the home of nobody: opening it will say so
        return "", None
    return card.example, card.second or None
