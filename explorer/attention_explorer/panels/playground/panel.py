"""Playground: choose a task, a model and switches, or a checkpoint and a text, press Train, and watch it learn."""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from msgspec.structs import replace
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QMessageBox, QPushButton, QStackedWidget, QVBoxLayout, QWidget

from attention_explorer.panels.about import About
from attention_explorer.panels.base import COMPARE, Panel
from attention_explorer.panels.playground import printing
from attention_explorer.panels.playground.curves import CurvesPage
from attention_explorer.panels.playground.experiments import ExperimentsPage
from attention_explorer.panels.playground.fine_tune import FineTunePage
from attention_explorer.panels.playground.form import Form
from attention_explorer.panels.playground.one_batch import OneBatchPage
from attention_explorer.panels.playground.training_sentences import about, about_tuning, left_title, plan_said
from attention_explorer.recovery.training_folders import is_private
from attention_explorer.session.comparing import typed_as_b, typed_text
from attention_explorer.session.hover import Hover
from attention_explorer.session.intents import (
    CompareWith,
    DiscardTraining,
    OpenCheckpoint,
    OpenRun,
    RunExperiment,
    Show,
    StopExperiment,
    TakeUpTraining,
    TellTraining,
    Train,
)
from attention_explorer.session.live import Live
from attention_explorer.session.session import Session
from attention_explorer.session.state import Notice, State
from attention_explorer.session.training import LeftTraining, TrainingState
from attention_explorer.widgets import dialogs
from attention_explorer.widgets.card import Card
from attention_explorer.widgets.dialogs import answer_of
from attention_explorer.widgets.layouts import below, clear, flowing
from attention_explorer.widgets.page import scrolling, wrapped
from attention_explorer.widgets.plot.ahead import import_ahead
from attention_explorer.widgets.segments import Segments
from attention_models.files.fingerprint import title_of_reference
from attention_models.protocol.request import Request
from attention_models.protocol.training_messages import Asked, AskedTuning, Go, OneBatch, Pause, Save, Stop, Write
from attention_models.protocol.training_plan import PlanRequest, PlanView
from attention_models.training.prepared import Prepared

MOST_SHOWN = 3
"""At once: the panel has to show more than these."""


class LeftTrainings(QWidget):
    """Hidden while there are none."""

    chosen = Signal(object)
    """Go on with this `LeftTraining`."""
    discarded = Signal(object)
    """Delete this one: the person was asked, and does not want it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.buttons: list[QPushButton] = []
        self.discards: list[QPushButton] = []
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(4)
        self.hide()

    def show_trainings(self, found: tuple[LeftTraining, ...]) -> None:
        """Show the newest of these and no others."""
        clear(self._column)
        self.buttons, self.discards = [], []
        now = time.time()
        for left in found[:MOST_SHOWN]:
            title = left_title(left, now)
            button, discard = QPushButton("Go on with it"), QPushButton("Discard…")
            button.setAccessibleName(f"Go on with {title}")
            button.setToolTip("It waits at its last step")
            button.clicked.connect(partial(self.chosen.emit, left))
            discard.setAccessibleName(f"Discard {title}")
            discard.setToolTip("Delete this training from the disk")
            discard.clicked.connect(partial(self._ask, left, title))
            self.buttons.append(button)
            self.discards.append(discard)
            self._column.addWidget(flowing(button, discard, wrapped(f"Not saved: {title}", role="dim")))
        more = len(found) - MOST_SHOWN
        if more > 0:
            what = "1 older training isn't saved" if more == 1 else f"{more} older trainings aren't saved"
            self._column.addWidget(wrapped(f"{what} either. Discard or save one of these to see more.", role="dim"))
        self.setVisible(bool(found))

    def _ask(self, left: LeftTraining, title: str) -> None:
        box = QMessageBox(QMessageBox.Icon.Warning, "Discard a training", f"Discard {title}?", parent=self)
        box.setInformativeText("The model and its snapshots are deleted. This can't be undone.")
        discard = box.addButton("Discard", QMessageBox.ButtonRole.DestructiveRole)
        keep = box.addButton("Keep it", QMessageBox.ButtonRole.RejectRole)
        box.setDefaultButton(keep)
        box.setEscapeButton(keep)
        answer_of(box)
        if box.clickedButton() is discard:
            self.discarded.emit(left)


SET_UP, CURVES, ONE_BATCH, EXPERIMENTS, FINE_TUNE = range(5)
_UNSAVED = (
    "The open model was trained in this window and is not saved. Save it as a folder, and open that, or choose another "
    "checkpoint."
)


class PlaygroundPanel(Panel):
    api_version = 1
    name = "playground"
    title = "Playground"
    hint = "Choose a task, a model and switches, press Train, and watch it learn."
    reads = ("document.text", "document.second", "left_trainings", PlanView)

    def __init__(self, session: Session, hover: Hover, parent: QWidget | None = None) -> None:
        super().__init__(session, hover, parent)
        self.form, self.curves, self.one_batch = Form(), CurvesPage(), OneBatchPage()
        self.experiments, self.fine_tune = ExperimentsPage(), FineTunePage()
        self._tunes = False  # whether what Train begins is a checkpoint's, and not a model's from nothing
        self.pages = Segments(
            (
                ("Set up", "What is trained"),
                ("Curves", "How the training goes"),
                ("Next batch", "What it learns from next, what each token costs, and what that moves"),
                ("Experiments", "Prepared experiments: a few trainings side by side, and what there is to see"),
                ("Fine-tune", "A checkpoint goes on learning, from a text or a file of yours"),
            ),
            "What the playground shows",
            wraps=True,
        )
        self.train = QPushButton("Train")
        self.train.setProperty("role", "primary")
        self.pause, self.batch = QPushButton("Pause"), QPushButton("One batch")
        self.stop, self.save = QPushButton("Stop"), QPushButton("Save as a folder…")
        self.batch.setToolTip("Learn from one batch, and then wait")
        self.stop.setToolTip("End the training; what was learned stays, to be looked at, saved or gone on with")
        self.save.setToolTip("Save the model with its snapshots, to be opened again")
        self.left = LeftTrainings()
        self._build()
        self.pages.chosen.connect(self._show_page)
        self.train.clicked.connect(self._train)
        self.pause.clicked.connect(self._pause_or_go)
        self.batch.clicked.connect(lambda: self.dispatch(TellTraining(OneBatch())))
        self.stop.clicked.connect(lambda: self.dispatch(TellTraining(Stop())))
        self.save.clicked.connect(self._save)
        self.left.chosen.connect(self._take_up)
        self.left.discarded.connect(lambda left: self.dispatch(DiscardTraining(left)))
        self.one_batch.asked.connect(lambda: self.dispatch(TellTraining(Pause())))
        self.one_batch.wanted.connect(self._look_at_weight)
        self.experiments.run_asked.connect(self._run_experiment)
        self.experiments.stop_asked.connect(lambda: self.dispatch(StopExperiment()))
        self.experiments.open_asked.connect(lambda model: self.dispatch(OpenRun(model)))
        for form in (self.form, self.fine_tune):
            form.changed.connect(lambda: self.attempt(self._on_form))
            form.refused.connect(lambda sentence: self.dispatch(Show(Notice("warning", sentence))))
        self.fine_tune.prompted.connect(lambda *texts: self.dispatch(TellTraining(Write(*texts))))
        self.fine_tune.compared.connect(self._compare)
        self.keep("page", self.pages)
        self.keep("row of the batch", self.one_batch.row)
        for name, choice in {**self.form.kept(), **self.experiments.kept(), **self.fine_tune.kept()}.items():
            self.keep(name, choice)
        self._planned = self._chosen()
        self._show_buttons(None)

    def _build(self) -> None:
        self.stack = QStackedWidget()
        self.stack.addWidget(scrolling(self.form, keeps_width=True))
        self.stack.addWidget(scrolling(self.curves))
        self.stack.addWidget(self.one_batch)
        self.stack.addWidget(scrolling(self.experiments))
        self.of_the_training = below(flowing(self.train, self.pause, self.batch, self.stop, self.save), self.left)
        self.stack.addWidget(scrolling(self.fine_tune, keeps_width=True))
        body = QWidget()
        column = QVBoxLayout(body)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addWidget(self.pages)
        column.addWidget(self.of_the_training)
        column.addWidget(self.stack, 1)
        card = Card(self.title)
        card.set_content(body)
        self.fill(card)

    # what it shows

    def figures(self) -> Iterable[QWidget]:
        return ()  # of what is trained here

    def wants(self, state: State) -> Request | None:
        return PlanRequest(asked=self._planned)

    def render_state(self, state: State, old: State | None) -> None:
        if state.results.of(PlanView) is not None:
            import_ahead()  # of what draws curves: the window has started
        self._show_open(state)
        self._show_plan(state)
        if old is None or state.left_trainings is not old.left_trainings:
            self.left.show_trainings(state.left_trainings)

    def render_live(self, live: Live, old: Live | None) -> None:
        if live.learning is not None or live.experiment is not None:
            import_ahead()
        if old is None or live.learning is not old.learning:
            self.curves.show_training(live.learning)
            self.one_batch.show_training(live.learning)
            self.fine_tune.show_training(live.learning)
            self._show_buttons(live.learning)
            self._look_at_batch()
            if old is None or _folder_of(live.learning) != _folder_of(old.learning):
                self._show_open(self.session.state)
                self._ask_for(self.session.state)
        if old is None or live.experiment is not old.experiment:
            self.experiments.show_experiment(live.experiment)
        self.offer_script()

    def prints(self, state: State) -> Request | None:
        page, learning = self.stack.currentIndex(), self.session.live.learning
        if page == ONE_BATCH:
            return printing.next_batch(learning, self.one_batch.row.value() - 1)
        if page == EXPERIMENTS:
            it = self.experiments
            return printing.runs(str(it.file), it.prepared, it.seed.value(), self.session.live.experiment)
        if page == CURVES and learning is not None:
            return printing.training(learning.asked, learning)
        return printing.training(self._planned, learning)

    def show_script(self) -> None:
        self._planned = self._chosen()  # what was chosen a moment ago counts too
        super().show_script()

    def about(self, state: State) -> About:
        page = self.stack.currentIndex()
        if page == ONE_BATCH:
            return self.one_batch.about()
        if page == EXPERIMENTS:
            return self.experiments.about()
        learning = self.session.live.learning
        is_tuned = learning is not None and learning.tuning is not None
        return about_tuning() if page == FINE_TUNE and not is_tuned else about(learning)

    def _show_plan(self, state: State) -> None:
        plan = state.results.of(PlanView)
        if plan is None or plan.request.asked != self._planned:
            self._offer_train("")
            return
        asked, sentence = self._planned, plan.sentence
        if isinstance(asked, AskedTuning) and is_private(asked.checkpoint):
            sentence = _UNSAVED
        (self.fine_tune if self._tunes else self.form).say(sentence or plan_said(plan), bool(sentence))
        self._offer_train(sentence)

    def _offer_train(self, refusal: str) -> None:
        """Unless it is refused, which is said by the form: that may not be in sight."""
        whose = "with a copy of the checkpoint" if self._tunes else "with a new model"
        tip = f"Begin {whose}; a training before it that isn't saved stays, and is offered above"
        self.train.setToolTip(refusal or tip)
        self.train.setEnabled(not refusal)

    def _show_open(self, state: State) -> None:
        """Which checkpoint is tuned where no other is chosen: of a tuned one the one that it was made from."""
        loaded, learning, reference, title = state.results.loaded, self.session.live.learning, "", ""
        if loaded is not None:
            reference, title = loaded.info.reference, f"{loaded.info.name}, open now"
            if learning is not None and learning.tuning is not None and learning.is_open(loaded.info):
                reference = learning.tuning.checkpoint
                title = f"{title_of_reference(reference)}, as it was"
        is_another = reference != self.fine_tune.open_reference
        info, document = None if loaded is None else loaded.info, state.document
        classifies = info is not None and info.class_head is not None
        pairs = info is not None and info.pairs
        reads = info is None or info.family != "vision"
        text, second = (document.text, document.second or "") if reads else ("", "")
        self.fine_tune.show_open(reference, title, text, second, classifies, pairs)
        if is_another:
            self._planned = self._chosen()

    def _show_buttons(self, training: TrainingState | None) -> None:
        self.train.setText("Fine-tune" if self._tunes else "Train")
        phase = "" if training is None else training.phase
        has_failed_to_go_on = phase == "failed" and training is not None and training.left is not None
        exists = training is not None and (bool(training.folder) or has_failed_to_go_on)
        is_running = phase in ("starting", "running")
        self.pause.setText("Pause" if is_running or not exists else "Go on")
        self.pause.setToolTip("Wait after this batch" if is_running or not exists else "Learn on from here")
        self.pause.setEnabled(exists)
        self.batch.setEnabled(exists and not is_running)
        self.stop.setEnabled(exists and phase in ("running", "paused"))
        self.save.setEnabled(exists)

    # what a person does

    def _chosen(self) -> Asked | AskedTuning:
        """What is looked at before it is begun; a prompt changes nothing in that."""
        return replace(self.fine_tune.asked(), prompt="", second="") if self._tunes else self.form.asked()

    def _show_page(self, page: int) -> None:
        self.stack.setCurrentIndex(page)
        self.of_the_training.setVisible(page != EXPERIMENTS)
        if page in (SET_UP, FINE_TUNE):
            self._tunes = page == FINE_TUNE
            self._show_buttons(self.session.live.learning)
            self.attempt(self._on_form)
        self._look_at_batch()
        self.offer_script()

    def _on_form(self) -> None:
        self._planned = self._chosen()
        if self.isVisible():
            self._show_plan(self.session.state)
            self._refresh()  # which asks whether that can be trained

    def _train(self) -> None:
        self._planned = self._chosen()
        self.dispatch(Train(self.fine_tune.asked() if self._tunes else self._planned))
        self._go_to(FINE_TUNE if self._tunes else CURVES)

    def _take_up(self, left: LeftTraining) -> None:
        self.dispatch(TakeUpTraining(left))
        self._go_to(CURVES if isinstance(left.asked, Asked) else FINE_TUNE)

    def _go_to(self, page: int) -> None:
        self.pages.choose(page)
        self._show_page(page)

    def _run_experiment(self, prepared: Prepared, seed: int) -> None:
        self.dispatch(RunExperiment(str(self.experiments.file), prepared, seed))

    def _look_at_batch(self) -> None:
        """Ask for the next step in numbers, where these are on screen and not there yet."""
        message = self.one_batch.lacks(self.session.live.learning)
        if message is not None and self.isVisible() and self.stack.currentIndex() == ONE_BATCH:
            self.dispatch(TellTraining(message))

    def _look_at_weight(self) -> None:
        training = self.session.live.learning
        if training is not None:
            self.dispatch(TellTraining(self.one_batch.asked_for(training.number)))

    def _pause_or_go(self) -> None:
        training = self.session.live.learning
        if training is not None:
            self.dispatch(TellTraining(Pause() if training.phase in ("starting", "running") else Go()))

    def _compare(self) -> None:
        """The tuned model, A, beside the checkpoint that it was made from, B."""
        state, training = self.session.state, self.session.live.learning
        if training is None or training.tuning is None or not training.folder or training.snapshot < 0:
            return
        loaded = state.results.loaded
        if loaded is None or not training.is_open(loaded.info):
            self.dispatch(OpenCheckpoint(f"{training.folder}@{training.snapshot}"))
        text = typed_text(self.session.state.document)
        self.dispatch(CompareWith(typed_as_b(self.session.state, text, training.tuning.checkpoint)))
        self.front_wanted.emit(COMPARE)

    def _save(self) -> None:
        chosen = dialogs.folder(self, "Choose an empty folder for the model, or make one", str(Path.home()))
        if chosen:
            self.dispatch(TellTraining(Save(chosen)))


def _folder_of(training: TrainingState | None) -> str:
    """Which training it is, as far as the open model can be of it."""
    return "" if training is None else training.folder
