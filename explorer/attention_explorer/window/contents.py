"""What is in the window: the line at the top, notices, the input, and the panels in their docks, around one session."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QByteArray, QCoreApplication, QEvent, Qt, QTimer, Signal
from PySide6.QtGui import QCursor, QGuiApplication, QHideEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QApplication, QHBoxLayout, QToolTip, QVBoxLayout, QWidget

from attention_explorer.compute.background import Background
from attention_explorer.compute.bridge import Bridge, connect
from attention_explorer.compute.experiment_link import ExperimentLink, connect_experiment
from attention_explorer.compute.training_link import TrainingLink, connect_training
from attention_explorer.compute.worker import EngineLike
from attention_explorer.look.theme import Theme
from attention_explorer.panels import registry
from attention_explorer.panels.base import Panel
from attention_explorer.panels.input.panel import InputPanel
from attention_explorer.panels.registry import open_panels, switched_off
from attention_explorer.session.examples import examples_of
from attention_explorer.session.hover import Hover
from attention_explorer.session.intents import FollowTraining, GoToStep, Intent, Show, SnapshotsFound
from attention_explorer.session.live import Live
from attention_explorer.session.session import Session
from attention_explorer.session.state import State
from attention_explorer.settings import LAYOUT_VERSION, Settings
from attention_explorer.widgets.notice_bar import NoticeBar
from attention_explorer.widgets.step_slider import StepSlider
from attention_explorer.widgets.themed import ThemedWidget
from attention_explorer.window.docks import Arrangement, DockHost, grip_of
from attention_explorer.window.top_bar import TopBar
from attention_models.files.catalogue import SHIPPED
from attention_models.files.training_steps import steps_in
from attention_models.protocol.loading import Loaded

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


@dataclass
class _Before:
    """What the docks were when one was first shown alone, with what a session or a model has changed of them since."""

    layout: bytes
    last_raised: str
    open: tuple[str, ...]
    front: tuple[str, ...]
    has_changed: bool = False


class OnePanelHost(DockHost):
    """While one panel is shown alone, the others are told and saved as if they still stood where they were."""

    alone_changed = Signal(str)
    """The panel that is shown alone; "" once all are back."""

    alone = ""
    _before: _Before | None = None

    def show_alone(self, name: str) -> None:
        """Hide every dock but that of `name`."""
        if self._before is None:
            self._before = _Before(
                super().remembered(), self.last_raised, super().open_panels(), super().front_panels()
            )
        self.alone = name
        for other, dock in self.docks.items():
            if other != name:
                dock.hide()
        dock = self.docks[name]
        if dock.isFloating():
            dock.setFloating(False)
        for each in self.docks.values():
            grip_of(each).put_away(True)
        dock.show()
        dock.raise_()
        self.alone_changed.emit(name)

    def show_all(self) -> None:
        """Put every dock back. What a session that was opened meanwhile wants open and in front is so."""
        before, self._before, self.alone = self._before, None, ""
        if before is None:
            return
        for dock in self.docks.values():
            grip_of(dock).put_away(False)
        self.restoreState(QByteArray(before.layout), LAYOUT_VERSION)
        self.last_raised = before.last_raised
        if before.has_changed:
            super().show_panels(self.docks, before.open, before.front)
        self._name_tabs()
        self.alone_changed.emit("")

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self.alone:
            self._resized.stop()  # there is one column

    def set_text_scale(self, scale: float, shares_out: bool = True) -> None:
        super().set_text_scale(scale, shares_out and not self.alone)

    def raise_panel(self, name: str) -> None:
        if self._before is None:
            super().raise_panel(name)
            return
        self.last_raised = name
        if name not in self._before.open:
            self.set_open(name, True)
        self.show_alone(name)

    def open_panels(self) -> tuple[str, ...]:
        return super().open_panels() if self._before is None else self._before.open

    def front_panels(self) -> tuple[str, ...]:
        return super().front_panels() if self._before is None else self._before.front

    def remembered(self) -> bytes:
        return super().remembered() if self._before is None else self._before.layout

    def set_open(self, name: str, is_open: bool) -> None:
        if self._before is None:
            super().set_open(name, is_open)
            return
        others = tuple(other for other in self._before.open if other != name)
        self._before.open = tuple(n for n in self.docks if n in others or (n == name and is_open))
        self._before.has_changed = True
        if not is_open and name == self.alone and others:
            self.show_alone(next((front for front in self._before.front if front in others), others[0]))

    def show_panels(self, known: Container[str], opened: Container[str], front: Iterable[str]) -> None:
        if self._before is None:
            super().show_panels(known, opened, front)
            return
        was, front = self._before.open, tuple(name for name in front if name in self.docks)
        self._before.open = tuple(name for name in self.docks if name in (opened if name in known else was))
        self._before.front, self._before.has_changed = front or self._before.front, True
        if front:
            self.show_alone(front[-1])

    def remove(self, name: str) -> None:
        if self._before is not None:
            self.set_open(name, False)
        super().remove(name)


_LOOKED_EVERY = 400  # ms: whether the training has written another snapshot
_PATIENCE = 2.0  # seconds that the panels in sight have to be answered of one step, before the next is followed


class StepBar(QWidget):
    """While it can be seen it looks in the training's folder for snapshots that have come, whichever process trains."""

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._work = Background("snapshots", self)
        self._is_looking = False
        self._moved_at = time.monotonic()
        self.steps = StepSlider()
        self.steps.moved.connect(lambda step: session.dispatch(GoToStep(step)))
        self.steps.followed.connect(lambda on: session.dispatch(FollowTraining(on)))
        row = QHBoxLayout(self)
        row.setContentsMargins(6, 0, 6, 0)
        row.addWidget(self.steps)
        self._timer = QTimer(self)
        self._timer.setInterval(_LOOKED_EVERY)
        self._timer.timeout.connect(self._look)
        session.changed.connect(lambda _old, new: self._show(new))
        session.live_changed.connect(self._on_live_changed)
        self._show(session.state)

    def _on_live_changed(self, old: Live, new: Live) -> None:
        if new.learning is not old.learning:
            self._show(self._session.state)  # the open training may be another window's from now on

    def stop(self, timeout: float) -> bool:
        """End its thread; whether it ended in time."""
        self._timer.stop()
        return self._work.stop(timeout)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._timer.start()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._timer.stop()

    def _show(self, state: State) -> None:
        training = state.training
        if training is not None:
            asked = state.document.checkpoint if state.stepping is not None else training.at(training.step)
            step = None if asked == training.reference else int(asked.rpartition("@")[2])
            self.steps.show_steps(training.steps, step, state.following, has_end=not state.is_own_training)
        self.setVisible(training is not None)

    def _look(self) -> None:
        loaded = self._session.state.results.loaded
        if self._is_looking or loaded is None or loaded.info.training is None:
            return
        if self._session.state.following and self._session.live.busy and time.monotonic() - self._moved_at < _PATIENCE:
            return
        self._is_looking = True
        folder, reference = Path(loaded.info.folder), loaded.info.training.reference

        def found(steps: tuple[int, ...] | Exception) -> None:
            self._is_looking = False
            if not isinstance(steps, Exception):
                self._moved_at = time.monotonic()
                self._session.dispatch(SnapshotsFound(reference, steps))

        self._work.run(lambda: steps_in(folder), found)


_PLAIN = "next"
"""What leads in a model of no kind of its own."""

SEEN_FIRST = ("flow", "next")
"""The panels that the first layout shows. The others are made one by one after the window has been painted."""


class Contents(QWidget):
    """A session with its engine, and all that shows it. `start` sets the engine going."""

    panel_put_away = Signal(str)
    """The panel of this name is taken out of the window: there is none."""
    script_wanted = Signal(object)
    """What a panel shows is to be shown as PyTorch; the request whose answer that is."""
    panels_opened = Signal()
    """All panels have been made, also those of other packages."""

    def __init__(self, state: State, theme: Theme, engine_factory: Callable[[], EngineLike]) -> None:
        super().__init__()
        self.theme = theme
        self.session = Session(state)
        self.hover = Hover(self)
        self.hover.end_with(self.session)  # before any panel shows what has changed
        self.hover.ended.connect(_let_go_below_pointer)
        self.bridge = Bridge(engine_factory, self)
        connect(self.session, self.bridge)
        self.training = TrainingLink(self.bridge.turns, self)
        connect_training(self.session, self.training)
        self.experiment = ExperimentLink(self.bridge.turns, self)
        connect_experiment(self.session, self.experiment)
        self.top_bar = TopBar(self.session, self.hover)
        self.notice_bar = NoticeBar()
        self.notice_bar.action_triggered.connect(self._on_notice_action)
        self.notice_bar.dismissed.connect(lambda: self.session.dispatch(Show(None)))
        self.panel_bar = NoticeBar()
        """Which panels are left out or switched off, and why: said of no model, so no model's opening takes it away."""
        self.session_bar = NoticeBar()
        """That the checkpoint of a session is another one by now."""
        self.settings_bar = NoticeBar()
        """That settings, or what is done, cannot be kept on this disk."""
        self.offer_bar = NoticeBar()
        """Work of a window that was ended, to go on with."""
        self.lesson_bar = NoticeBar()
        """A lesson that was made in a window that was ended, to go on with."""
        self.training_bar = NoticeBar()
        """That a model of an ended window was not saved, and where it is."""
        self.training_bar.action_triggered.connect(self._show_left_trainings)
        self._below: list[QWidget] = []
        self.step_bar = StepBar(self.session)
        self.input = InputPanel(self.session, self.hover)
        self.one_panel = OnePanelHost()
        self.dock_host: DockHost = self.one_panel
        self.dock_host.front_changed.connect(self.hover.end)
        self._panels: dict[str, Panel] = {}
        self._coming = deque(point for point in registry.BUILT_IN if point.name not in SEEN_FIRST)
        self._looks_for_more = True
        self._said_of_panels: tuple[str, ...] = ()
        self._is_stopped = False
        self.input.front_wanted.connect(self.dock_host.go_to)
        self.top_bar.examples.front_wanted.connect(self.dock_host.raise_panel)
        for panel in (self.input, self.top_bar.trust):
            panel.failed.connect(partial(self._on_panel_failed, panel))
            panel.script_wanted.connect(self.script_wanted)
        for point in registry.BUILT_IN:
            if point.name in SEEN_FIRST:
                self._open_panel(point)
            else:
                self.dock_host.reserve(point.name, registry.TITLES[point.name])
        self._lay_out()
        self.session.changed.connect(self._on_changed)
        self.session.live_changed.connect(self._on_live_changed)
        self.set_theme(theme)
        self._show_notice(state)

    def _lay_out(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.top_bar)
        inner = QVBoxLayout()
        inner.setContentsMargins(10, 0, 10, 8)
        inner.setSpacing(6)
        for bar in (self.notice_bar, *self._bars):
            inner.addWidget(bar)
        inner.addWidget(self.step_bar)
        inner.addWidget(self.input)
        inner.addWidget(self.dock_host, 1)
        column.addLayout(inner, 1)
        self._column = inner

    def put_below(self, bar: QWidget) -> None:
        """Give `bar` the width of the window below the panels."""
        self._below.append(bar)
        self._column.addWidget(bar)

    def start(self, loads: bool = True) -> None:
        """Begin to load (unless a session file says what), and make the panels that are not seen first."""
        if loads:
            self.session.start()
        self._open_panels_in_turn()

    def stop(self, patience: float) -> bool:
        """End its threads and the processes that train; whether all ended within `patience` seconds."""
        self._is_stopped = True
        deadline = time.monotonic() + patience
        self.experiment.stop(0)  # at the same time as the training
        has_ended = self.training.stop(patience)
        has_ended &= self.experiment.stop(max(0.0, deadline - time.monotonic()))
        left = max(0.0, deadline - time.monotonic())
        return self.step_bar.stop(left) & self.bridge.stop(left) & has_ended

    def arrange(self, settings: Settings) -> None:
        """Put the docks where they were when the window was closed last, or where they are at first."""
        self.dock_host.arrange(settings.text_scale)
        self.dock_host.floated.restore(settings.floated)
        if settings.layout_version == LAYOUT_VERSION:
            self.dock_host.restore(settings.layout)

    def rearrange(self, text_scale: float, arrangement: Arrangement) -> None:
        """Put every dock back, but for the panels that have nothing to show of the open model."""
        self.dock_host.arrange(text_scale, arrangement)
        loaded = self.session.state.results.loaded
        if loaded is not None:
            self._put_away_unsuited(self.panels, loaded)

    def remembered_layout(self) -> bytes | None:
        """Where the docks are; None while those of other packages, which have places too, have not been made."""
        # closed at once, it would not know the places of other packages' panels
        return None if self._looks_for_more and registry.installed() else self.dock_host.remembered()

    def set_theme(self, theme: Theme) -> None:
        self.theme = theme
        for panel in (self.input, self.top_bar.trust, *self._panels.values()):
            panel.attempt(partial(panel.set_theme, theme))
        self.dock_host.set_theme(theme)
        for bar in (self.notice_bar, *self._bars):
            bar.set_theme(theme)

    def _on_changed(self, old: State, new: State) -> None:
        if old.measuring is not new.measuring or old.reading != new.reading:
            self._put_away_what_is_done(old, new)
        if new.notice != old.notice:
            self._show_notice(new)
        if new.left_trainings is not old.left_trainings:
            self._say_left_trainings(old, new)
        loaded = new.results.loaded
        if loaded is not None and loaded is not old.results.loaded:
            before = old.results.loaded
            # the panel of a model that learns here stays in front
            front = "" if before is None or new.restored or new.live.is_learning else self._front_for(before, loaded)
            self._show_what_suits(before, loaded)
            if front in self.dock_host.docks:
                self.dock_host.raise_panel(front)

    def _say_left_trainings(self, old: State, new: State) -> None:
        """Of ended windows, once: the Playground lists them from then on, and those of this window too."""
        if new.left_trainings and not old.left_trainings and new.live.learning is None:
            count = len(new.left_trainings)
            what = "an unsaved model" if count == 1 else f"{count} unsaved models"
            text = f"Recovered {what} from a window that has ended."
            self.training_bar.show_notice("info", text, "Show in Playground")
        elif not new.left_trainings:
            self.training_bar.hide()

    def _on_live_changed(self, old: Live, new: Live) -> None:
        if new.learning is not old.learning:
            self.training_bar.hide()

    def _show_left_trainings(self) -> None:
        self.training_bar.hide()
        self.dock_host.raise_panel("playground")

    @property
    def panels(self) -> tuple[Panel, ...]:
        """All panels in the order of their tabs. Those that come after the first paint are made now if need be."""
        while not self.has_all_panels():
            self._open_next_panel()
        return tuple(self._panels[name] for name in self.dock_host.docks if name in self._panels)

    @property
    def made_panels(self) -> dict[str, Panel]:
        """Those that there are so far, by name."""
        return dict(self._panels)

    def about_panel(self) -> None:
        """Open or close the (i) of the panel that has the keyboard, else of one in front: that which is open, or was
        brought there last.
        """
        panel = self._panel_here(lambda panel: panel.info.isChecked())
        if panel is not None:
            panel.show_about(not panel.info.isChecked())

    def panel_in_front(self) -> str:
        """The name of the panel that has the keyboard, else of the one that was brought to the front last."""
        panel = self._panel_here(lambda panel: False)
        return "" if panel is None else panel.name

    @property
    def chrome(self) -> tuple[QWidget, ...]:
        """What is about the window, and not about what the model does; notices stay where they are."""
        return (self.top_bar, *self._bars, *self._below)

    @property
    def _bars(self) -> tuple[NoticeBar, ...]:
        """What is said of the window, and not of what the model does."""
        offers = self.offer_bar, self.lesson_bar, self.training_bar
        return self.panel_bar, self.session_bar, self.settings_bar, *offers

    def show_script(self) -> None:
        """Show as PyTorch what the panel with the keyboard says, else the one that was brought to the front last."""
        panel: Panel | None = self._panel_here(lambda panel: False, lambda panel: panel.has_script)
        trust = self.top_bar.trust
        panel = trust if trust.isAncestorOf(self.window().focusWidget()) else panel
        if panel is not None:
            panel.show_script()

    def _panel_here(
        self, is_open: Callable[[Panel], bool], counts: Callable[[Panel], bool] = lambda _: True
    ) -> Panel | None:
        """Of the panels in front that `counts`: which has the keyboard, else is open, else was brought there last."""
        front = self.dock_host.front_panels()
        focus = self.window().focusWidget()
        in_front = [self._panels[name] for name in front if name in self._panels and counts(self._panels[name])]
        open_one = next((panel for panel in in_front if is_open(panel)), None)
        here = next((panel for panel in in_front if panel is focus or panel.isAncestorOf(focus)), None)
        last = self._panels.get(self.dock_host.last_raised)
        last = last if last in in_front else next(iter(in_front), None)
        return here or open_one or last

    def has_all_panels(self) -> bool:
        """Whether every panel has been made, also those of other packages."""
        return not self._coming and not self._looks_for_more

    def _open_panels_in_turn(self) -> None:
        """One panel whenever the event loop has nothing else to do: it never waits for all of them."""
        if not self.has_all_panels() and not self._is_stopped:
            self._open_next_panel()
            QTimer.singleShot(0, self._open_panels_in_turn)

    def _open_next_panel(self) -> None:
        if self._coming:
            self._open_panel(self._coming.popleft())
            return
        self._looks_for_more = False
        for point in registry.installed():
            self._open_panel(point)
        self.panels_opened.emit()
        for reference in SHIPPED:  # with the first model that is opened all of them are asked for
            self.bridge.turns.do(partial(examples_of, reference))

    def _open_panel(self, point: EntryPoint) -> None:
        """Put a panel into the window, or say why it cannot be had."""
        opened = open_panels(self.session, self.hover, (point,), taken=self._panels)
        for panel in opened.panels:
            self._panels[panel.name] = panel
            panel.failed.connect(partial(self._on_panel_failed, panel))
            panel.front_wanted.connect(self.dock_host.go_to)
            panel.script_wanted.connect(self.script_wanted)
            panel.attempt(partial(panel.set_theme, self.theme))
            if panel.name not in self.dock_host.docks:
                place = self.dock_host.reserve if self._looks_for_more else self.dock_host.reserve_beside
                place(panel.name, panel.title)
                self.dock_host.set_theme(self.theme)
            self.dock_host.fill(panel)
        if opened.left_out:
            self._said_of_panels = (*self._said_of_panels, *opened.left_out)
            self._show_said_of_panels()
            if point.name in self.dock_host.docks and point.name not in self._panels:
                self._put_away(point.name)

    def _put_away(self, name: str) -> None:
        """Take a panel that there is none of out of the window."""
        self.dock_host.remove(name)
        self.panel_put_away.emit(name)

    def is_settled(self) -> bool:
        """Whether all that is visible shows the text in the input, or a sentence says why it cannot."""
        state = self.session.state
        if (
            self._coming
            or self._looks_for_more
            or self.bridge.busy
            or (state.results.loaded is None and state.notice is None)
        ):
            return False
        if state.notice is not None:
            return True  # it says why something is not here; where it was taken away again nothing more comes
        has_run = state.caught_up or state.refused == state.inputs
        return has_run and all(panel.has_asked() for panel in self.panels if panel.is_waiting())

    def _show_what_suits(self, before: Loaded | None, now: Loaded) -> None:
        """Put away the panels that have nothing to show of this checkpoint, and bring out those that have.

        Only where that changes: a panel that a person closed or opened stays so while it makes no difference.
        """
        for panel in self.panels:
            suits = panel.attempt(partial(panel.suits, now.info))
            suited = before is None or panel.attempt(partial(panel.suits, before.info))
            if suits is not None and suits != suited and (suits or not panel.is_at_work(self.session.state)):
                self.dock_host.set_open(panel.name, suits)

    def _put_away_what_is_done(self, old: State, new: State) -> None:
        """Put away the panels that stayed for what could be stopped there, though the model does not suit them."""
        if new.results.loaded is not None:
            done = [panel for panel in self._panels.values() if panel.is_at_work(old) and not panel.is_at_work(new)]
            self._put_away_unsuited(done, new.results.loaded)

    def _put_away_unsuited(self, panels: Iterable[Panel], loaded: Loaded) -> None:
        """Of these, those that have nothing to show of the open model."""
        for panel in panels:
            if panel.attempt(partial(panel.suits, loaded.info)) is False:
                self.dock_host.set_open(panel.name, False)

    def _front_for(self, before: Loaded, now: Loaded) -> str:
        """What comes to the front with another kind of model: the panel that is made for it.

        Where none is, Next in the place of the one that goes; "" where all stays as it is. A session that is opened
        says itself what is in front.
        """
        led, leads = self._leading(before), self._leading(now)
        if leads == led:
            return ""
        return leads or (_PLAIN if self._panels[led].isVisible() else "")

    def _leading(self, loaded: Loaded) -> str:
        """The name of the panel to look at first; "" where no panel is of this kind of model alone."""
        return next((panel.name for panel in self.panels if panel.attempt(partial(panel.leads, loaded.info))), "")

    def _on_panel_failed(self, panel: Panel, reason: str) -> None:
        """Say which panel has raised, and take it out of the window; input and trust strip stay in their places."""
        self._said_of_panels = (*self._said_of_panels, switched_off(panel, reason))
        self._show_said_of_panels()
        if self._panels.get(panel.name) is panel:
            del self._panels[panel.name]
            self._put_away(panel.name)

    def _show_said_of_panels(self) -> None:
        if self._said_of_panels:
            self.panel_bar.show_notice("warning", " ".join(self._said_of_panels))

    def _show_notice(self, state: State) -> None:
        notice = state.notice
        if notice is None:
            self.notice_bar.hide()
        else:
            self.notice_bar.show_notice(notice.kind, notice.text, notice.action_label)

    def _on_notice_action(self) -> None:
        notice = self.session.state.notice
        if notice is not None and isinstance(notice.action, Intent):
            self.session.dispatch(notice.action)


def _let_go_below_pointer() -> None:
    """What a pointer at rest is over is another thing now: it is lit, and told of, when the pointer next moves."""
    if QGuiApplication.mouseButtons() != Qt.MouseButton.NoButton:
        return  # who clicks or drags is at it
    below = QApplication.widgetAt(QCursor.pos())
    if isinstance(below, ThemedWidget):
        QCoreApplication.sendEvent(below, QEvent(QEvent.Type.Leave))
        if QToolTip.isVisible():
            QToolTip.hideText()
