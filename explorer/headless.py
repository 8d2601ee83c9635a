"""The command line without a window: a picture of it, the weights as arrays, or what the model writes."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from explorer.console import complain, say, signals_raised
from explorer.first_state import first_state, placement_of
from explorer.log import log_to_file
from explorer.session.intents import SetTarget, SetText
from models.files.weights_path import weights_path
from models.protocol.batch import Batch
from models.protocol.errors import ExplorerError, InputError
from models.protocol.prompt import plain_text
from models.protocol.request import Failure, Result
from models.protocol.run_inputs import RunInputs
from models.protocol.running import ForwardRequest

if TYPE_CHECKING:
    from explorer.compute.worker import EngineLike
    from models.decoding.decode import DecodedStep
    from models.forward.model import Model
    from models.protocol.prompt import Prompt
    from models.protocol.values import CheckpointInfo

TIMEOUT_SECONDS = 300.0
_CUT = " --cut keeps what fits."


def run_without_window(args: argparse.Namespace) -> int:
    """Do what `--weights`, `--png` and `--decode` ask; 0, or 1 after a sentence on standard error."""
    log_to_file()
    if args.text == "":
        return _refuse("The text is empty. Give --text a sentence for the model to read, or leave it out.")
    if args.weights:
        try:
            path = weights_path(args.weights)
        except ExplorerError as error:
            return _refuse(str(error))
        if path != Path(args.weights):
            complain(f"The weights are written to {path}.")
            args.weights = str(path)
    if args.weights and args.decode is None:
        sentence = _write_weights(args)
        if sentence:
            return _refuse(sentence)
    if args.png:
        sentence = _write_picture(args)
        if sentence:
            return _refuse(sentence)
    if args.decode is not None:
        sentence = _write_text(args)
        if sentence:
            return _refuse(sentence)
    return 0


def _refuse(sentence: str) -> int:
    complain(sentence)
    return 1


def _write_weights(args: argparse.Namespace) -> str:
    """Ask the engine, in this thread: there is no window to keep responsive."""
    from explorer.compute.worker import open_engine
    from explorer.session.view_options import ViewOptions
    from models.files.sample_pictures import default_picture
    from models.protocol.export import ExportRequest
    from models.protocol.loading import Loaded, LoadRequest

    engine = open_engine()
    inputs = first_state(args, ViewOptions()).document.inputs
    loaded = engine.run(LoadRequest(reference=args.checkpoint, placement=placement_of(args), ticket=1), _never, _silent)
    if isinstance(loaded, Failure):
        return loaded.sentence
    assert isinstance(loaded, Loaded)
    unsuited = _unsuited(args, loaded.info)
    if unsuited:
        return unsuited
    if loaded.info.family == "vision" and not inputs.picture:
        inputs = replace(inputs, picture=default_picture(loaded.info.channels))
    ran = partial(_ran, engine)
    result = ran(inputs, 2)
    if isinstance(result, Failure) and args.cut:
        inputs = _fitting(ran, inputs)
        result = ran(inputs, 2)
    for shown, path in enumerate(_paths(inputs, Path(args.weights))):
        ticket = 2 + 2 * shown
        result = ran(_showing(inputs, shown), ticket) if shown else result
        if not isinstance(result, Failure):
            export = ExportRequest(run=ticket, path=str(path), words=args.words, ticket=ticket + 1)
            with signals_raised():
                result = engine.run(export, _never, _silent)
        if isinstance(result, Failure):
            return _sentence(result)
    return ""


def _ran(engine: EngineLike, inputs: RunInputs, ticket: int) -> Result:
    return engine.run(ForwardRequest(inputs=inputs, ticket=ticket), _never, _silent)


def _paths(inputs: RunInputs, path: Path) -> list[Path]:
    """Where the weights of each text go: `path`, or of several texts path-1, path-2 and so on."""
    if not isinstance(inputs.prompt, Batch):
        return [path]
    paths = [path.with_name(f"{path.stem}-{place + 1}{path.suffix}") for place in range(len(inputs.prompt.texts))]
    complain(f"The weights of {len(paths):,} texts are written to {paths[0]} to {paths[-1].name}.")
    return paths


def _showing(inputs: RunInputs, shown: int) -> RunInputs:
    """The same run, of which another text is shown."""
    batch = inputs.prompt
    if not isinstance(batch, Batch):
        return inputs
    target = batch.targets[shown] if batch.targets else inputs.target
    return replace(inputs, prompt=batch.showing(shown), target=target)


def _fitting(ran: Callable[[RunInputs, int], Result], inputs: RunInputs) -> RunInputs:
    """What fits of each text, and of each target, that is too long."""
    for shown in range(len(inputs.prompt.texts) if isinstance(inputs.prompt, Batch) else 1):
        for _ in range(2):  # its text and its target
            one = _showing(inputs, shown)
            result = ran(one, 2)
            if isinstance(result, Failure) and result.cut_to is not None:
                inputs = _showing(_cut(one, result), 0)
    return inputs


def _cut(inputs: RunInputs, failure: Failure) -> RunInputs:
    """What fits of the text, or of the target, that was too long."""
    batch = inputs.prompt if isinstance(inputs.prompt, Batch) else None
    if failure.of_target:
        target = (inputs.target or "")[: failure.cut_to]
        if batch is not None and batch.targets:
            others = batch.targets
            targets = (*others[: batch.shown], target, *others[batch.shown + 1 :])
            return replace(inputs, target=target, prompt=replace(batch, targets=targets))
        return replace(inputs, target=target)
    text = plain_text(inputs.prompt)[: failure.cut_to]
    return replace(inputs, prompt=text if batch is None else batch.with_prompt(text))


def _sentence(failure: Failure | InputError) -> str:
    """What went wrong, with the option that helps."""
    text = failure.sentence if isinstance(failure, Failure) else str(failure)
    return f"{text}{_CUT}" if failure.cut_to is not None else text


def _unsuited(args: argparse.Namespace, info: CheckpointInfo) -> str:
    """Which option gives the model something that it does not take; "" where all suit."""
    if info.family == "vision":
        if args.text is not None or args.pair is not None or args.target is not None or args.chat:
            return f"{info.name} looks at pictures and reads no text. Give it a --picture instead."
    elif args.more and info.textbook:
        return f"{info.name} takes one text at a time. Give one --text."
    elif args.picture:
        return f"{info.name} reads text. Leave --picture out, or open a vision model, as with --checkpoint vit-cifar10."
    elif args.target is not None and info.family != "seq2seq":
        return f"{info.name} has no decoder beside its encoder that --target could speak for. Leave --target out."
    elif args.pair is not None and not info.pairs:
        return f"{info.name} reads no pairs of texts. Leave --pair out."
    return ""


def _never() -> bool:
    return False


def _silent(_label: str, _fraction: float | None) -> None:
    """Nobody watches."""


def _write_text(args: argparse.Namespace) -> str:
    """Print what the model writes, and nothing else; what is to be said of it goes to standard error."""
    from explorer.language import foreign_remark
    from explorer.session.view_options import ViewOptions
    from models.decoding.decode import decode
    from models.files.devices import is_out_of_memory
    from models.opening.open import open_checkpoint
    from models.protocol.errors import NO_MEMORY

    prompt = first_state(args, ViewOptions()).document.prompt
    last: DecodedStep | None = None
    try:
        model = open_checkpoint(args.checkpoint, device=args.device, dtype=args.dtype)
        unsuited = _unsuited(args, model.info)
        if unsuited:
            return unsuited
        options = {**asdict(args.decode_settings), "interventions": args.interventions}
        try:
            steps = decode(model, prompt, args.decode, **options)
        except InputError as error:
            if error.cut_to is None or not args.cut:
                return _sentence(error)
            prompt = plain_text(prompt)[: error.cut_to]
            steps = decode(model, prompt, args.decode, **options)
        for step in steps:
            last = step
        if args.weights:
            with signals_raised():
                _write_both(args, model, prompt, last)
    except Exception as error:
        if is_out_of_memory(error):
            return NO_MEMORY
        if not isinstance(error, ExplorerError):
            raise
        return str(error)
    say(last.text if last is not None else "")
    remarks = (foreign_remark(plain_text(prompt), model.info), _unended(model, last, args.decode))
    for remark in filter(None, remarks):
        complain(remark)
    return ""


def _write_both(args: argparse.Namespace, model: Model, prompt: Prompt, last: DecodedStep | None) -> None:
    """The weights of the text and of what was written after it; of the text alone where nothing was."""
    from models.decoding.written_run import run_written
    from models.forward.run import run
    from models.views.export import save_weights

    if last is None:
        save_weights(run(model, prompt, interventions=args.interventions), args.weights, words=args.words)
    else:
        trace, generated = run_written(model, prompt, last, args.decode_settings, args.interventions)
        save_weights(trace, args.weights, generated=generated, words=args.words)


def _unended(model: Model, last: DecodedStep | None, steps: int) -> str:
    """Where the text stops, and one would not expect it there."""
    from models.decoding.choosing import end_ids

    name, family, context = model.info.name, model.info.family, model.info.context
    ids = last.ids if last is not None else ()
    if family == "masked" or (ids and ids[-1] in end_ids(model)):
        return ""
    if len(ids) < steps and context is not None:
        return f"The context is full: {name} takes {context:,} tokens, and the text has them all."
    if family == "seq2seq":
        return f"{name} has not ended the text: all {steps:,} tokens are used up. Raise --decode to go on."
    return ""


def _write_picture(args: argparse.Namespace) -> str:
    size = re.fullmatch(r"(\d{3,4})x(\d{3,4})", args.size)
    if size is None:
        return f"“{args.size}” is no size. Write width x height in pixels, like 1920x1080."
    width, height = int(size[1]), int(size[2])
    path = Path(args.png)
    if not path.parent.is_dir():
        return f"There is no folder {path.parent} to write {path.name} into."
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    from explorer.window.display import qt_messages_logged
    from explorer.window.shell import SMALLEST

    if width < SMALLEST.width() or height < SMALLEST.height():
        return f"The window does not fit into {args.size}. It needs {SMALLEST.width()}x{SMALLEST.height()} at least."
    with qt_messages_logged():
        return _write_picture_of(args, width, height, path)


def _write_picture_of(args: argparse.Namespace, width: int, height: int, path: Path) -> str:
    """Wait for a window that is on no screen to show what `args` ask for. Returns a sentence where it does not."""
    from PySide6.QtCore import QDeadlineTimer, QEventLoop, QTimer
    from PySide6.QtWidgets import QApplication

    from explorer.session.view_options import ViewOptions
    from explorer.settings import Settings
    from explorer.window.display import why_unreadable
    from explorer.window.saving import save_picture
    from explorer.window.window import MainWindow

    app = QApplication.instance() or QApplication(sys.argv[:1])
    if unreadable := why_unreadable():
        return unreadable
    first = first_state(args, ViewOptions(words=args.words))
    window = MainWindow(first, Settings(theme=args.theme or "light"), remembers=False)
    window.resize(width, height)
    window.show()
    window.start()
    deadline = QDeadlineTimer(int(TIMEOUT_SECONDS * 1000))
    waker = QTimer()
    waker.start(20)  # with a time limit of its own processEvents would not sleep

    def settle() -> None:
        while not window.is_settled() and not deadline.hasExpired():
            app.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)

    settle()
    notice = window.session.state.notice
    if args.cut and notice is not None and isinstance(notice.action, (SetText, SetTarget)):
        window.session.dispatch(notice.action)
        settle()
    app.processEvents()  # what the last answer changed is laid out anew
    loaded, notice = window.session.state.results.loaded, window.session.state.notice
    sentence = notice.text if notice is not None and notice.kind != "info" else ""
    if sentence and notice is not None and isinstance(notice.action, (SetText, SetTarget)):
        sentence += _CUT
    sentence = sentence or (_unsuited(args, loaded.info) if loaded is not None else "")
    if not sentence and not window.is_settled():
        sentence = f"The model did not answer within {TIMEOUT_SECONDS:.0f} seconds."
    with signals_raised():
        sentence = sentence or save_picture(window.grab(), path)
    window.close()
    app.processEvents()
    return sentence
