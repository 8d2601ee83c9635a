"""The command line without a window: a picture of it, the weights as arrays, a session, or what the model writes."""

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

from attention_explorer.cli.finetuning import finetune, resume_tuning
from attention_explorer.cli.first_state import Given, given
from attention_explorer.cli.lessons import check_lessons
from attention_explorer.cli.model import no_folder, opened, sentence_of, show_progress, unsuited
from attention_explorer.cli.training_options import budget_of, is_training, resumed_length
from attention_explorer.cli.two_runs import write_comparison
from attention_explorer.console import Interrupted, complain, say, signals_noted, signals_raised
from attention_explorer.paths import resource
from attention_explorer.recovery.log import log_to_file
from attention_explorer.session import session_check
from attention_explorer.session.intents import Arrived, SetTarget, SetText
from attention_explorer.session.kept import ENDING, KeptState, SessionFile
from attention_explorer.session.reduce import reduce
from attention_explorer.session.state import State
from attention_explorer.session.texts import with_prompt_texts
from attention_explorer.session.view_options import ViewOptions
from attention_explorer.session.writing import Decoding
from attention_models.files.weights_path import path_of_text, weights_path
from attention_models.opening.trial_process import start_for
from attention_models.protocol.batch import Batch
from attention_models.protocol.decoding import DecodeSettings
from attention_models.protocol.errors import NO_MEMORY_TO_TRAIN, ExplorerError, InputError, as_sentence
from attention_models.protocol.loading import Loaded, LoadRequest
from attention_models.protocol.prompt import plain_text
from attention_models.protocol.request import Failure, Result
from attention_models.protocol.running import ForwardRequest, RunInputs
from attention_models.protocol.values import AUTO, BEST

if TYPE_CHECKING:
    from attention_explorer.compute.worker import EngineLike
    from attention_models.decoding.decode import DecodedStep
    from attention_models.forward.model import Model
    from attention_models.protocol.prompt import Prompt
    from attention_models.training.common import Budget
    from attention_models.training.comparison import Comparison
    from attention_models.training.experiment import Experiment
    from attention_models.training.training import Training
    from attention_models.training.training_loop import Command, Point


_MEASURED_EVERY = 200  # steps


def train(args: argparse.Namespace) -> str:
    """Train, save the folder and print how many held-out rows come out right; a sentence where that cannot be done.

    A signal that ends programs ends the training: what was learned until then is saved first.

    Raises:
        Interrupted: a signal came.
    """
    try:
        return _begin(args) if args.resume is None else _resume(args)
    except ValueError as error:
        return as_sentence(str(error))
    except Exception as error:
        return sentence_of(error, NO_MEMORY_TO_TRAIN)


def _begin(args: argparse.Namespace) -> str:
    from attention_models.files.safe_files import not_written
    from attention_models.files.text_stream import read_text
    from attention_models.files.training_steps import SNAPSHOTS
    from attention_models.training.experiment import experiment
    from attention_models.training.folders import save, why_not

    folder = Path(args.out)
    if sentence := why_not(folder):
        return sentence
    switches = dict(word.split("=", 1) for word in args.set)
    text = read_text(args.data, "as it is") if args.data is not None else ""
    planned = experiment(args.train, switches, args.seed or 0, text)
    training = planned.training(folder / SNAPSHOTS)
    budget = budget_of(args)
    assert training.snapshots is not None
    try:
        save(training, planned, folder, budget)  # from now on it can be opened, and taken up again
    except OSError as error:
        return not_written("The model", folder, error)
    training.snapshots.clear()  # of an earlier training
    training.snapshot()
    return _train(training, planned, folder, budget, 0, 0.0)


def _resume(args: argparse.Namespace) -> str:
    """Go on with a training from its newest snapshot, as if it had not been broken off."""
    from attention_models.training.resuming import resumed
    from attention_models.training.tuned_folders import is_tuned

    folder = Path(args.resume)
    if is_tuned(folder):
        return resume_tuning(args)
    found = resumed(folder)
    training, step = found.training, found.training.step_number
    length = resumed_length(args, found.budget, found.spent, step)
    if isinstance(length, str):
        return length
    budget, since, spent = length
    say(f"going on from step {step}")
    return _train(training, found.experiment, folder, budget, since, spent)


def _train(training: Training, planned: Experiment, folder: Path, budget: Budget, since: int, spent: float) -> str:
    from attention_models.files.safe_files import not_written
    from attention_models.training.folders import save

    def told(point: Point) -> None:
        if point.step % 10 == 0:
            show_progress(f"step {point.step:,}, loss {point.loss:.3f}, {point.accuracy:.1%} of tokens right", None)
        if point.step % _MEASURED_EVERY == 0:
            found = training.measure()
            show_progress("", None)
            say(f"step {point.step}: loss {found.loss:.4f}, held-out tokens right: {found.tokens_right:.3f}")

    with signals_noted() as signals:

        def command() -> Command:
            return "stop" if signals else "go"

        outcome = training.run(budget, command, told, cool_down=True, since=since, spent=spent)
        if training.snapshots is not None and training.step_number not in training.snapshots.steps:
            training.snapshot()
        show_progress("", None)
        if outcome.notice or training.notice:
            complain(outcome.notice or training.notice)
        found = training.measure()
        try:
            save(training, planned, folder, budget, outcome.seconds)
        except OSError as error:
            return not_written("The model", folder, error)
        say(f"{outcome.step} steps in {outcome.seconds:.1f} s of training, saved in {folder}")
        what = "characters" if planned.name.startswith("text:") else "sequences"
        right = found.tokens_right if what == "characters" else found.sequences_right
        say(f"held-out {what} right: {right:.3f}")
    if signals:
        raise Interrupted(signals[0])
    return ""


_LINES = 10  # of losses, on the way


def run_experiment(args: argparse.Namespace) -> str:
    """Run it and print what was measured; a sentence where the claim does not hold, or where it cannot be run.

    Raises:
        Interrupted: a signal came.
    """
    from attention_models.training.comparison import Comparison
    from attention_models.training.prepared import read_prepared

    experiments = read_prepared(resource("experiments.toml"))
    prepared = experiments.get(args.experiment)
    if prepared is None:
        return f"There is no experiment “{args.experiment}”. There are {', '.join(experiments)}."
    say(f"{prepared.title}. {prepared.compares}")
    say(f"Look for: {prepared.look_for}")
    try:
        comparison = Comparison(prepared, args.seed or 0)
        _train_runs(comparison)
        verdict = comparison.verdict()
    except Interrupted:
        raise
    except Exception as error:
        return sentence_of(error, NO_MEMORY_TO_TRAIN)
    for line in verdict.lines():
        say(line)
    say(f"{'Holds' if verdict.holds else 'Does not hold'} here: {prepared.claim}")
    return "" if verdict.holds else f"The claim does not hold with seed {args.seed or 0}."


def _train_runs(comparison: Comparison) -> None:
    every = max(1, comparison.prepared.steps // _LINES)
    with signals_noted() as signals:
        while not comparison.is_done and not signals:
            comparison.step()
            number = comparison.step_number
            if number % every == 0:
                show_progress("", None)
                losses = (f"{one.name} {one.losses[-1]:.3f}" for one in comparison.learners if one.losses)
                say(f"step {number}: loss {', '.join(losses)}")
            else:
                show_progress(f"step {number} of {comparison.prepared.steps}", None)
        show_progress("", None)
    if signals:
        raise Interrupted(signals[0])


def write_tables(args: argparse.Namespace, state: State) -> str:
    """Write the files that were named; a sentence where that cannot be done."""
    for name in filter(None, (args.roles, args.weights_mean)):
        if sentence := no_folder(Path(name)):
            return sentence
    try:
        model = opened(state)
        if args.roles:
            _write_roles(args, model)
        if args.corpus:
            _write_means(args, model, state)
    except Exception as error:
        return sentence_of(error)
    return ""


def _write_roles(args: argparse.Namespace, model: Model) -> None:
    from attention_models.roles.roles import head_roles
    from attention_models.roles.roles_export import save_roles

    found = head_roles(model, args.probe, report=show_progress)
    show_progress("", None)
    with signals_raised():
        save_roles(found, args.roles)
    for sentence in found.left_out:
        complain(sentence)
    complain(f"The roles of {len(found.sites)} layers over {found.texts:,} texts are written to {args.roles}.")


def _write_means(args: argparse.Namespace, model: Model, state: State) -> None:
    from attention_models.corpus.corpus import read_corpus
    from attention_models.corpus.corpus_export import save_means

    edits = state.document.inputs.interventions
    view = read_corpus(model, args.corpus, interventions=edits, report=show_progress)
    show_progress("", None)
    with signals_raised():
        save_means(view, args.weights_mean)
    for sentence in view.left_out:
        complain(sentence)
    if view.left_out_count > len(view.left_out):
        complain(f"{view.left_out_count - len(view.left_out):,} more lines are left out.")
    complain(f"The means of {view.texts:,} texts ({view.tokens:,} tokens) are written to {args.weights_mean}.")


def write_ablation(args: argparse.Namespace, state: State) -> str:
    """Write the effects of the heads to the file that was named; a sentence where that cannot be done.

    The token is the one of `--target`, of an encoder-decoder model the likeliest after what `--target` makes it say.
    """
    from attention_models.effects.effects_file import save_effects
    from attention_models.effects.sweep import head_effects

    document, path = state.document, Path(args.ablate)
    if sentence := no_folder(path):
        return sentence
    interventions = document.inputs.interventions
    try:
        model = opened(state)
        given = document.picture if model.info.family == "vision" else document.prompt
        effects = head_effects(
            model,
            given,
            target=None if model.seq2seq else args.target,
            against=args.against,
            position=args.position,
            written=args.target if model.seq2seq else None,
            interventions=interventions,
        )
        with signals_raised():
            save_effects(effects, path)
    except ValueError as error:  # an intervention that this model does not take
        return str(error)
    except Exception as error:
        return sentence_of(error)
    found = effects.largest
    assert found is not None
    site, head, change = found
    complain(
        f"The effects on the {effects.aim.words}, {effects.aim.value:.3f}, are written to {path}: "
        f"{site.stack} layer {site.layer}, head {head} changes it most, by {change:+.3f}."
    )
    return ""


TIMEOUT_SECONDS = 300.0
_CUT = " --cut keeps what fits."


def run_without_window(args: argparse.Namespace) -> int:
    """Do what `--weights`, `--save`, `--png`, `--ablate`, `--roles`, `--corpus`, `--compare` and `--decode` ask.

    Returns:
        0, or 1 and a sentence on standard error that says why.
    """
    log_to_file()
    if is_training(args):
        sentence = finetune(args) if args.finetune is not None else train(args)
        return _refuse(sentence) if sentence else 0
    if args.experiment is not None:
        sentence = run_experiment(args)
        return _refuse(sentence) if sentence else 0
    if args.check_lessons is not None:
        return check_lessons(tuple(map(Path, args.check_lessons)))
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
    try:
        asked = given(args, ViewOptions(words=args.words))
    except ValueError as error:
        return _refuse(str(error))
    asked = replace(asked, state=_placed(asked.state))
    for is_asked, write in (
        (args.save or (args.weights and args.decode is None), partial(_write_files, args, asked)),
        (args.png, partial(_write_picture, args, asked)),
        (args.ablate, partial(write_ablation, args, asked.state)),
        (args.roles or args.corpus, partial(write_tables, args, asked.state)),
        (args.compare, partial(write_comparison, args, asked.state)),
        (args.decode is not None, partial(_write_text, args, asked.state)),
    ):
        if is_asked and (sentence := write()):
            return _refuse(sentence)
    return 0


def _refuse(sentence: str) -> int:
    complain(sentence)
    return 1


def _placed(state: State) -> State:
    """Where this computer can run what a session of another one ran; said where it is another place."""
    device = state.placement.device
    if not state.restored or device in (BEST, AUTO, "cpu"):
        return state
    from attention_models.files import devices

    try:
        devices.parse(state.placement)
    except ExplorerError:
        said = f"The session ran on {device}, which is not here. Figures may differ in their last digits."
        complain(said)
        return replace(state, placement=replace(state.placement, device=BEST))
    return state


def _write_files(args: argparse.Namespace, asked: Given) -> str:
    """The weights of a run, and its session. Asks the engine, in this thread: there is no window to keep responsive."""
    from attention_explorer.compute.worker import open_engine

    start_for(asked.state.document.checkpoint)
    engine, state = open_engine(), asked.state
    request = LoadRequest(reference=state.document.checkpoint, placement=state.placement, ticket=1)
    loaded = engine.run(request, _never, _silent)
    if isinstance(loaded, Failure):
        return loaded.sentence
    assert isinstance(loaded, Loaded)
    wrong = unsuited(args, loaded.info)
    if wrong:
        return wrong
    state = reduce(state, Arrived(loaded))
    inputs, ran = state.document.inputs, partial(_ran, engine)
    result = ran(inputs, 2)
    if isinstance(result, Failure) and args.cut:
        inputs = _showing(_fitting(ran, inputs), inputs.prompt.shown if isinstance(inputs.prompt, Batch) else 0)
        result = ran(inputs, 2)
    if isinstance(result, Failure):
        return _sentence(result)
    if args.save:
        document = replace(with_prompt_texts(state.document, inputs.prompt), target=inputs.target)
        state = reduce(replace(state, document=document), Arrived(result))
        with signals_raised():
            sentence = _save(args, replace(asked, state=state), loaded)
        if sentence:
            return sentence
    if args.weights and args.decode is None:
        return _write_weights(engine, inputs, Path(args.weights), state.document.view.words)
    return ""


def _write_weights(engine: EngineLike, inputs: RunInputs, path: Path, words: bool) -> str:
    from attention_models.protocol.export import ExportRequest

    for shown, one in enumerate(_paths(inputs, path)):
        ticket = 2 + 2 * shown
        is_batch = isinstance(inputs.prompt, Batch)
        result: Result | None = _ran(engine, _showing(inputs, shown), ticket) if is_batch else None  # else it has run
        if not isinstance(result, Failure):
            export = ExportRequest(run=ticket, path=str(one), words=words, ticket=ticket + 1)
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
    paths = [path_of_text(path, place) for place in range(len(inputs.prompt.texts))]
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


def _save(args: argparse.Namespace, asked: Given, loaded: Loaded) -> str:
    """Write what a window would save of this run."""
    document, path = asked.state.document, Path(args.save)
    if args.decode_settings is not None:
        document = replace(document, decoding=Decoding(args.decode_settings, steps=args.decode, chosen=True))
    if path.suffix.lower() != ENDING:
        path = Path(f"{path}{ENDING}")
        complain(f"The session is written to {path}.")
    present = KeptState(document, screen=asked.screen, placement=loaded.placement)
    try:
        session_check.write(SessionFile(present, asked.kept), path, _never)
    except ValueError as error:
        return str(error)
    return ""


def _sentence(failure: Failure | InputError) -> str:
    """What went wrong, with the option that helps."""
    text = failure.sentence if isinstance(failure, Failure) else str(failure)
    return f"{text}{_CUT}" if failure.cut_to is not None else text


def _never() -> bool:
    return False


def _silent(_label: str, _fraction: float | None) -> None:
    """Nobody watches."""


def _write_text(args: argparse.Namespace, state: State) -> str:
    """Print what the model writes, and nothing else; what is to be said of it goes to standard error."""
    from attention_explorer.language import foreign_remark
    from attention_models.decoding.decode import decode

    prompt, settings = state.document.prompt, _writing(args, state)
    interventions = state.document.inputs.interventions
    last: DecodedStep | None = None
    try:
        model = opened(state)
        wrong = unsuited(args, model.info)
        if wrong:
            return wrong
        options = {**asdict(settings), "interventions": interventions}
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
                _write_both(args, state, model, prompt, last)
    except Exception as error:
        return sentence_of(error)
    say(last.text if last is not None else "")
    remarks = (foreign_remark(plain_text(prompt), model.info), _unended(model, last, args.decode))
    for remark in filter(None, remarks):
        complain(remark)
    return ""


def _writing(args: argparse.Namespace, state: State) -> DecodeSettings:
    """How to write: as the options say, or as a session says where there are none."""
    asked: DecodeSettings = args.decode_settings
    said = state.document.decoding
    return said.settings if asked == DecodeSettings() and args.strategy is None and said.chosen else asked


def _write_both(args: argparse.Namespace, state: State, model: Model, prompt: Prompt, last: DecodedStep | None) -> None:
    """The weights of the text and of what was written after it; of the text alone where nothing was."""
    from attention_models.decoding.written_run import run_written
    from attention_models.forward.run import run
    from attention_models.views.export import save_weights

    interventions = state.document.inputs.interventions
    words = state.document.view.words
    if last is None:
        save_weights(run(model, prompt, interventions=interventions), args.weights, words=words)
    else:
        trace, generated = run_written(model, prompt, last, _writing(args, state), interventions)
        save_weights(trace, args.weights, generated=generated, words=words)


def _unended(model: Model, last: DecodedStep | None, steps: int) -> str:
    """Where the text stops, and one would not expect it there."""
    from attention_models.decoding.choosing import end_ids

    name, family, context = model.info.name, model.info.family, model.info.context
    ids = last.ids if last is not None else ()
    if family == "masked" or (ids and ids[-1] in end_ids(model)):
        return ""
    if len(ids) < steps and context is not None:
        return f"The context is full: {name} takes {context:,} tokens, and the text has them all."
    if family == "seq2seq":
        return f"{name} has not ended the text: all {steps:,} tokens are used up. Raise --decode to go on."
    return ""


def _write_picture(args: argparse.Namespace, asked: Given) -> str:
    size = re.fullmatch(r"(\d{3,4})x(\d{3,4})", args.size)
    if size is None:
        return f"“{args.size}” is no size. Write width x height in pixels, like 1920x1080."
    width, height = int(size[1]), int(size[2])
    path = Path(args.png)
    if sentence := no_folder(path):
        return sentence
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    from attention_explorer.window.display import qt_messages_logged
    from attention_explorer.window.shell import SMALLEST

    if width < SMALLEST.width() or height < SMALLEST.height():
        return f"The window does not fit into {args.size}. It needs {SMALLEST.width()}x{SMALLEST.height()} at least."
    with qt_messages_logged():
        return _write_picture_of(args, asked, width, height, path)


def _write_picture_of(args: argparse.Namespace, asked: Given, width: int, height: int, path: Path) -> str:
    """Wait for a window that is on no screen to show what `args` ask for. Returns a sentence where it does not."""
    from PySide6.QtCore import QDeadlineTimer
    from PySide6.QtWidgets import QApplication

    from attention_explorer.settings import Settings
    from attention_explorer.window.dialogs import save_picture
    from attention_explorer.window.display import why_unreadable
    from attention_explorer.window.screen import show_screen, wait_for
    from attention_explorer.window.window import MainWindow

    app = QApplication.instance() or QApplication(sys.argv[:1])
    if unreadable := why_unreadable():
        return unreadable
    window = MainWindow(asked.state, Settings(theme=args.theme or "light"), remembers=False)
    window.resize(width, height)
    window.show()
    window.start()
    deadline = QDeadlineTimer(int(TIMEOUT_SECONDS * 1000))
    wait_for(window.is_settled, deadline)
    show_screen(window.contents, asked.screen)
    wait_for(window.is_settled, deadline)
    notice = window.session.state.notice
    if args.cut and notice is not None and isinstance(notice.action, (SetText, SetTarget)):
        window.session.dispatch(notice.action)
        wait_for(window.is_settled, deadline)
    app.processEvents()  # what the last answer changed is laid out anew
    loaded, notice = window.session.state.results.loaded, window.session.state.notice
    sentence = notice.text if notice is not None and notice.kind != "info" else ""
    if sentence and notice is not None and isinstance(notice.action, (SetText, SetTarget)):
        sentence += _CUT
    sentence = sentence or (unsuited(args, loaded.info) if loaded is not None else "")
    if not sentence and not window.is_settled():
        sentence = f"The model did not answer within {TIMEOUT_SECONDS:.0f} seconds."
    with signals_raised():
        sentence = sentence or save_picture(window.grab(), path)
    window.close()
    app.processEvents()
    return sentence
