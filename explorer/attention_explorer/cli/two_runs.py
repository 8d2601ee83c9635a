"""`--compare`: how much every head differs between two runs, as a table, without a window."""

from __future__ import annotations

import argparse
import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from attention_explorer.cli.first_state import OPEN_IN_WINDOW
from attention_explorer.cli.model import no_folder, show_progress, unsuited
from attention_explorer.console import complain, signals_raised
from attention_explorer.session import attn
from attention_explorer.session.comparing import as_b, kept_as_b, typed_as_b, typed_text
from attention_explorer.session.intents import Arrived
from attention_explorer.session.reduce import reduce
from attention_explorer.session.session_check import checked, with_checkpoint
from attention_explorer.session.state import Compared, InterventionItem, State
from attention_models.files.sample_pictures import reference_of
from attention_models.opening.trial_process import start_for
from attention_models.protocol.ablation import Ablation
from attention_models.protocol.errors import ExplorerError
from attention_models.protocol.loading import Loaded, LoadRequest
from attention_models.protocol.request import Failure, never
from attention_models.protocol.running import ForwardRequest
from attention_models.protocol.two_runs import OtherRun, RunSide, TwoRunsRequest, TwoRunsView

if TYPE_CHECKING:
    from attention_explorer.compute.worker import EngineLike
    from attention_models.protocol.values import CheckpointInfo

_NO_B = (
    "--compare needs B, the run to compare with. Say what is other in it: --with-text, --with-checkpoint, --with-mask, "
    "--with-skip, --with-scale, --with-target, --with-picture, or the state of a session, --with-session FILE.attn."
)
_A_RUN = 2


def write_comparison(args: argparse.Namespace, state: State) -> str:
    """Write the table or the arrays to the file that was named; a sentence where that cannot be done."""
    path = Path(args.compare)
    if sentence := no_folder(path):
        return sentence
    if state.document.compared is None and not args.other_given:
        return _NO_B
    from attention_explorer.compute.worker import open_engine
    from attention_models.compare.two_runs_export import save_comparison

    start_for(state.document.checkpoint)
    engine = open_engine()
    request = LoadRequest(reference=state.document.checkpoint, placement=state.placement, ticket=1)
    loaded = engine.run(request, never, show_progress)
    try:
        if isinstance(loaded, Failure):
            return loaded.sentence
        assert isinstance(loaded, Loaded)
        if sentence := unsuited(args, loaded.info):
            return sentence
        state = reduce(state, Arrived(loaded))
        b = _other(args, state)
        info = _described(b.document.checkpoint, loaded.info)
        if info is not None:
            if sentence := _unsuited(args, info):
                return sentence
            b = _with_stacks_named(b, info)
        view = _compared(engine, state, b, args)
        show_progress("", None)
        if isinstance(view, Failure):
            return view.sentence
        if not view.changes:
            return f"{' '.join(view.why_not)} There is no table of heads to write."
        with signals_raised():
            save_comparison(view, path)
    except (ExplorerError, ValueError) as error:  # a session of B that cannot be read, a file that cannot be written
        return str(error)
    _tell(view, path)
    return ""


def _other(args: argparse.Namespace, state: State) -> Compared:
    """What the options say of B, on top of a session's state or, where none is named, of what A is.

    Raises:
        ValueError: the session cannot be opened, or its checkpoint or picture is another or elsewhere.
    """
    b = state.document.compared or as_b(state)
    if args.with_session is not None:
        path = Path(args.with_session).expanduser()
        there, named = attn.load(path).present, args.with_checkpoint
        there = there if named is None else with_checkpoint(there, named)
        found = checked(there, path.resolve().parent, never, () if named is None else (named,))
        if found.found == "elsewhere":
            raise ValueError(f"{found.question} {OPEN_IN_WINDOW}")
        if found.found != "same":
            raise ValueError(f"{found.question} Say with --with-checkpoint another one for B.")
        if found.picture:
            raise ValueError(found.picture)
        b = kept_as_b(found.state)
    text = typed_text(b.document) if args.with_text is None else args.with_text
    b = typed_as_b(replace(state, document=replace(state.document, compared=b)), text, _checkpoint(args, b))
    document = b.document
    if args.other_interventions is not None:
        items = tuple(InterventionItem(value) for value in args.other_interventions)
        document = replace(document, interventions=items)
    if args.with_target is not None:
        document = replace(document, target=args.with_target)
    if args.with_picture is not None:
        document = replace(document, picture=reference_of(args.with_picture))
    return b if document == b.document else replace(b, document=document)


def _checkpoint(args: argparse.Namespace, b: Compared) -> str:
    return b.document.checkpoint if args.with_checkpoint is None else str(args.with_checkpoint)


def _compared(engine: EngineLike, state: State, b: Compared, args: argparse.Namespace) -> TwoRunsView | Failure:
    ran = engine.run(ForwardRequest(inputs=state.inputs, ticket=_A_RUN), never, show_progress)
    if isinstance(ran, Failure):
        return ran
    other = OtherRun(b.inputs, b.document.checkpoint)
    request = TwoRunsRequest(run=_A_RUN, site=None, other=other, matching=args.match)
    view = _asked(engine, request)
    if isinstance(view, TwoRunsView) and view.changed_most:  # the head whose map goes into an .npz
        most = view.changed_most[0]
        view = _asked(engine, replace(request, site=most.site, head=most.head))
    return view


def _asked(engine: EngineLike, request: TwoRunsRequest) -> TwoRunsView | Failure:
    """The last answer: each goes on from the one before."""
    while True:
        view = engine.run(request, never, show_progress)
        if isinstance(view, Failure):
            return view
        assert isinstance(view, TwoRunsView)
        if view.done >= 1:
            return view
        request = replace(request, have=view.done)


def _described(checkpoint: str, of_a: CheckpointInfo) -> CheckpointInfo | None:
    """What the checkpoint of B is; None where it cannot be opened, which opening it says."""
    from attention_models.opening.trial import TrialRequest
    from attention_models.opening.trial_process import verdict_on

    if checkpoint == of_a.reference:
        return of_a
    try:
        return verdict_on(TrialRequest(reference=checkpoint)).info
    except ExplorerError:
        return None


def _with_stacks_named(b: Compared, info: CheckpointInfo) -> Compared:
    """B with the stack of every part that is switched off, where "5.mlp" left it out."""

    def named(item: InterventionItem) -> InterventionItem:
        value = item.value
        return replace(item, value=value.of_stack(info.predicting_stack)) if isinstance(value, Ablation) else item

    return replace(b, document=replace(b.document, interventions=tuple(map(named, b.document.interventions))))


def _unsuited(args: argparse.Namespace, info: CheckpointInfo) -> str:
    """Which option gives B something that its model does not take; "" where all suit."""
    name, family = info.name, info.family
    if family == "vision" and (args.with_text is not None or args.with_target is not None):
        return f"{name} looks at pictures and reads no text. Give B a --with-picture instead."
    if family != "vision" and args.with_picture is not None:
        return f"{name} reads text. Leave --with-picture out."
    if family != "seq2seq" and args.with_target is not None:
        return f"{name} has no decoder beside its encoder that --with-target could speak for. Leave --with-target out."
    return ""


def _said(side: RunSide) -> str:
    """ "“␣Tom” (67.9 %)"; of an encoder-decoder model what it wrote; "" of a model that says nothing."""
    if side.family == "seq2seq":
        return f"“{side.written}”"
    if not side.output.candidates:
        return ""
    best = side.output.candidates[0]
    share = f"{best.logit:.3f}" if math.isnan(best.probability) else f"{best.probability:.1%}"
    return f"“{best.label}” ({share})"


def _tell(view: TwoRunsView, path: Path) -> None:
    if (a := _said(view.a)) and (b := _said(view.b)):
        complain(f"A says {a}, B {b}.")
    for sentence in filter(None, (view.why_not_by_index, *view.why_not, *view.remarks)):
        complain(sentence)
    most = view.changed_most[0]
    complain(
        f"How much {len(view.changes):,} heads differ is written to {path}: {most.site.stack} layer {most.site.layer}, "
        f"head {most.head} differs most, by {most.change:.3f}."
    )
