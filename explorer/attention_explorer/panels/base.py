"""What a panel is: it renders while it can be seen, and asks the engine for what it shows, once.

An installed package adds panels of its own: see docs/extending.md.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from functools import cached_property, partial, wraps
from operator import attrgetter, is_
from types import FunctionType
from typing import Any, ClassVar, Literal, TypeVar

from PySide6.QtCore import QEvent, QPoint, QRect, Qt, QTimer, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QMenu, QVBoxLayout, QWidget

from attention_explorer.look.styling import style_when_shown
from attention_explorer.look.theme import LIGHT, Theme
from attention_explorer.panels.about import About
from attention_explorer.panels.path import PathEnd, path_of
from attention_explorer.session.comparing import head_as_b
from attention_explorer.session.hidden import EVERYTHING, Hide
from attention_explorer.session.hover import Hover, Pointed
from attention_explorer.session.intents import CompareWith, Intent, PutIntervention, SelectHead, SetView
from attention_explorer.session.kept import Value
from attention_explorer.session.live import Live
from attention_explorer.session.results import Results
from attention_explorer.session.session import Session, is_same_but_for_live
from attention_explorer.session.state import Compared, State
from attention_explorer.widgets.callout import Callout, CodeButton, InfoButton
from attention_explorer.widgets.card import Card
from attention_explorer.widgets.choices_kept import Choice, choice_of, choose_again, values_of
from attention_explorer.widgets.padding_overlay import PaddingOverlay
from attention_explorer.widgets.path_bar import PathBar
from attention_models.protocol.ablation import Ablation, Fill, head_skip
from attention_models.protocol.loading import Loaded
from attention_models.protocol.request import Request, Result, RunRequest
from attention_models.protocol.running import Ran
from attention_models.protocol.values import CheckpointInfo, SiteRef

API_VERSION = 1
"""Of what `Panel` promises to those who write one. It rises when a panel written for the last one may not work."""

EDITED = "Interventions are on: this is not the model as it is. Press to see them."

BEHIND = "What is asked for is being computed. The pale figures are of the text, model or selection before."

_MOMENT = 120
"""ms for which figures that are behind are not paled: most answers come sooner, and nobody reads what blinks."""

_SAID_ANEW = 150
"""ms: how often an open (i) looks whether a number that it tells is another one by now."""

_ASKED = "A question is open. Answer it, and the numbers are here."

MASKS = "masks"
"""The name of the panel that lists them."""
HEAD = "map"
COMPARE = "compare"
"""The panel that shows a state B."""

READ_BY_ALL = (Loaded, Ran, "loading")
"""For refusals, the mark of an edited run, and what is asked again after a load."""
READ_BY_PATHS = ("selection", "site", "document.view.distance")

_FIELDS = frozenset(field.name for field in fields(State))

_Read = tuple[list[Any], list[Any]]
"""Values, which are compared; and fields of the state and answers, each of which is itself or another: a failure that
is said in the same words is a second one."""

Place = tuple[QWidget, QRect]
"""A widget and a rectangle of it."""

log = logging.getLogger(__name__)

T = TypeVar("T")


class Panel(QWidget):
    """One view of the session.

    A subclass sets `api_version`, `name`, `title` and `hint`, builds its widgets in `__init__`, says in `wants` what
    it needs from the engine, and draws the state in `render_state`. It changes the state only by `dispatch`.

    A hidden panel only remembers that it is stale: it draws nothing and asks for nothing until it is shown.
    One whose code raises is switched off: it is told nothing more, and the window says so and puts it away.
    """

    api_version: ClassVar[int]
    """The `API_VERSION` that it was written for, as a number."""
    name: ClassVar[str]
    """What it is called in settings files; no two panels share one."""
    title: ClassVar[str]
    """What its tab says."""
    hint: ClassVar[str] = ""
    """What it is for, in a sentence."""
    draws: ClassVar[tuple[type[Request], ...]] = (RunRequest,)
    """What it cannot draw the selection without: while an answer to one of these is under way, what is drawn is of
    what was selected before."""
    ground: ClassVar[Literal["surface", "window"]] = "surface"
    """The role of the colour that its figures lie on."""
    keeps_answers: ClassVar[bool] = False  # whether it keeps several itself, and so knows best what is lacking
    reads: ClassVar[tuple[str | type[Result], ...] | None] = None
    """All that `render_state`, `wants`, `wants_along` and `prints` read of the state: names, as "selection" or
    "document.view", and kinds of answers. They are called again when one of these is another. None: at every change."""
    shows: ClassVar[frozenset[Hide]] = EVERYTHING
    """What can be read in it that a question may ask for: it is covered while one does. Of a panel that does not say
    it, all."""
    needs_scores: ClassVar[bool] = False
    """Whether all of it is made of queries, keys and scores, which a model that gives its weights alone has not."""

    failed = Signal(str)
    """It has raised and is switched off; what it raised, in short."""
    script_wanted = Signal(object)
    """The lines of PyTorch that compute what it shows are to be shown; the request whose answer that is."""
    front_wanted = Signal(str)
    """Another panel is to come to the front; its name."""

    def __init__(self, session: Session, hover: Hover, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.session = session
        self.hover = hover
        self.theme: Theme = LIGHT
        self._rendered: State | None = None
        self._rendered_live: Live | None = None
        self._has_read: _Read = ([], [])
        """What `reads` named when it was last drawn."""
        self._asked: Request | None = None
        self._asked_along: tuple[Request, ...] = ()
        self._is_off = False
        self._path: tuple[PathBar, PathEnd] | None = None
        self._choices: dict[str, Choice] = {}
        self._veils: dict[QWidget, PaddingOverlay] = {}
        self._hidden: frozenset[Hide] = frozenset()  # what is asked for, and not answered yet
        session.changed.connect(self._on_changed)
        session.live_changed.connect(self._on_live_changed)
        hover.changed.connect(self._on_hover)
        style_when_shown(self)

    def __init_subclass__(cls, **kwargs: object) -> None:
        """Guard what a subclass overrides of Qt: an exception that reaches Qt from there ends the program."""
        super().__init_subclass__(**kwargs)
        for name, override in tuple(vars(cls).items()):
            if isinstance(override, FunctionType) and _is_of_qt(name):
                setattr(cls, name, _guarded(cls, name, override))

    # for subclasses

    @classmethod
    def suits(cls, info: CheckpointInfo) -> bool:
        """Whether it has anything to show of this checkpoint. One that has not is put away, though it can be opened."""
        return True

    @classmethod
    def leads(cls, info: CheckpointInfo) -> bool:
        """Whether it is what to look at first in a checkpoint of this kind: it comes to the front with the kind."""
        return False

    def wants(self, state: State) -> Request | None:
        """What the engine has to answer for this panel to show `state`; asked for unless the answer is here."""
        return None

    def wants_along(self, state: State) -> tuple[Request, ...]:
        """What `wants` will want next in other lanes and can be asked for at once: so that it comes with the rest."""
        return ()

    def render_state(self, state: State, old: State | None) -> None:
        """Show `state`. `old` is what was last shown, None at first."""
        raise NotImplementedError

    def render_live(self, live: Live, old: Live | None) -> None:
        """Show what is under way: requests, progress, what learns. `old` is what was last shown, None at first."""

    def is_behind(self, state: State) -> bool:
        """Whether what is drawn is not of what `state` names: the run before, or what was selected before.

        It lies under a veil then. A text that cannot run leaves the run before it there, as long as it is in the input.
        """
        if state.ran is None:
            return False
        if state.loading is not None or not state.up_to_date:
            return True
        wanted = self._asked
        return isinstance(wanted, self.draws) and wanted.lane in state.live.busy and not _goes_on(wanted, state.results)

    def figures(self) -> Iterable[QWidget]:
        """What of it is of the run on screen: all that is below its titles, unless a subclass knows better."""
        return [card.content for card in self._cards if card.content is not None]

    def prints(self, state: State) -> Request | None:
        """The request whose answer “Show as PyTorch” writes out; None where there is nothing to write yet.

        Its class names a function in `printed_by`. A panel that does not override this has no such button.
        """
        return None

    def about(self, state: State) -> About:
        """What its (i) says: three or four sentences with the numbers that it shows, and one thing to try in it.

        Asked for while the (i) is open, also before anything has run. It must not compute.
        """
        return About((self.hint,))

    def render_hover(self, pointed: Pointed) -> None:
        """Show where the pointer is, in this panel or elsewhere. Must not compute, scroll or resize."""

    def set_theme(self, theme: Theme) -> None:
        """Hand the theme on to the widgets inside."""
        self.theme = theme
        for child in self.findChildren(QWidget):
            take = getattr(child, "set_theme", None)
            if callable(take) and not isinstance(child, Panel):
                take(theme)

    def fill(self, widget: QWidget) -> None:
        """Give `widget`, mostly a card, the whole panel. The (i) stands in the card's title line, else above."""
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        if isinstance(widget, Card) and self.has_script and self.code_button.parent() is None:
            widget.set_info(self.code_button)
        if isinstance(widget, Card) and self.info.parent() is None:
            widget.set_info(self.info)
        elif self.info.parent() is None:
            column.addWidget(self.info, 0, Qt.AlignmentFlag.AlignRight)
        column.addWidget(widget, 1)

    @cached_property
    def info(self) -> InfoButton:
        """What opens `about`. `fill` puts it in its place, unless the panel has given it another."""
        button = InfoButton(self.title)
        button.toggled.connect(self.show_about)
        return button

    @property
    def has_script(self) -> bool:
        """Whether what it shows can be written as PyTorch."""
        return type(self).prints is not Panel.prints

    @cached_property
    def code_button(self) -> CodeButton:
        """What asks for the lines of PyTorch; beside the (i), unless the panel has given it another place."""
        button = CodeButton(self.title)
        button.clicked.connect(self.show_script)
        return button

    def offer_script(self) -> None:
        """Let the button be pressed where there is something to write; to be called where a page was turned."""
        state = self.session.state
        if self.has_script:
            can = not self._refusal(state) and self.prints(state) is not None
            self.code_button.offer(can and not self.is_asked_about)

    def show_script(self) -> None:
        """Ask for the lines that compute what is on screen; nothing happens where there is nothing yet."""
        request = None if self.is_asked_about else self.attempt(lambda: self.prints(self.session.state))
        if request is not None:
            self.script_wanted.emit(request)

    @cached_property
    def callout(self) -> Callout:
        """What `about` says, beside the panel; made when it is first opened."""
        callout = Callout(self, self.title)
        callout.closed.connect(lambda: self.info.setChecked(False))
        self.destroyed.connect(callout.deleteLater)
        return callout

    def show_about(self, opened: bool = True) -> None:
        """Open or close what the (i) opens."""
        self.info.setChecked(opened)
        if opened and self.callout.isHidden():
            self._say_about()
            self.callout.open()
            self._about_clock.start()
        elif not opened:
            self.callout.dismiss()

    @cached_property
    def _about_clock(self) -> QTimer:
        """What a panel shows may change without the session knowing: a slider, a page."""
        clock = QTimer(self)
        clock.setInterval(_SAID_ANEW)
        clock.timeout.connect(self._say_about)
        self.callout.closed.connect(clock.stop)
        return clock

    def _say_about(self) -> None:
        if self.is_veiled:
            self.callout.say((BEHIND,), "")
            return
        hint = About((self.hint, _ASKED)) if self.is_asked_about else None
        about = hint or self.attempt(lambda: self.about(self.session.state))
        if about is not None:
            self.callout.say(about.sentences, about.to_try)

    def show_path(self, end: PathEnd) -> PathBar:
        """A line that says the way from the model to what this panel shows, its `end`; each step can be gone to."""
        bar = PathBar()
        bar.chosen.connect(self._go)
        self._path = (bar, end)
        return bar

    def path_end(self) -> PathEnd:
        """Which step of the path is this panel's own."""
        assert self._path is not None
        return self._path[1]

    def _go(self, number: int) -> None:
        steps = path_of(self.session.state)
        if number < len(steps):
            step = steps[number]
            if step.distance is not None:
                self.dispatch(SetView("distance", step.distance))
            self.front_wanted.emit(step.panel)

    def _render_path(self, state: State) -> None:
        if self._path is not None:
            steps = path_of(state)
            here = next((i for i, step in enumerate(steps) if step.end == self.path_end()), -1)
            self._path[0].set_steps([(step.label, step.tooltip) for step in steps], here)

    def place_of(self, part: str, site: SiteRef | None, head: int, query: int, key: int) -> Place | None:
        """Where a thing is that a tour or a lesson points at; None where there is none.

        `part` is "head", "cell", "token" or a button's name; `query` and `key` are -1 where no token is meant.
        """
        return None

    def answering(self, hidden: frozenset[Hide]) -> Sequence[Place]:
        """Where it shows any of what is `hidden`, to be covered: by default all below its title, and what is beside it.

        Looked at again whenever the state changes; the widgets have to be the same as long as the panel is there.
        """
        if not hidden & self.shows:
            return ()
        cards = self._cards
        parts = [part for card in cards for part in card.telling] if cards else [self]
        return [(part, part.rect()) for part in parts]

    def hide_answers(self, hidden: frozenset[Hide]) -> None:
        """Say no more than what the panel is for, and write no lines of PyTorch, while a question hides what it shows.

        Covers over what `answering` names are the window's.
        """
        self._hidden = hidden
        self.offer_script()
        if "callout" in self.__dict__ and not self.callout.isHidden():
            self._say_about()

    @property
    def is_asked_about(self) -> bool:
        """Whether a question hides something that it shows."""
        return bool(self.attempt(lambda: self.answering(self._hidden)))

    def first_focus(self) -> QWidget | None:
        """What takes the keyboard when one goes to the panel; None where nothing in it does.

        The line that says where this is comes last: one comes for what the panel shows.
        """
        path: QWidget | None = None
        stop = self.nextInFocusChain()
        while stop is not None and stop is not self:
            takes = bool(stop.focusPolicy() & Qt.FocusPolicy.TabFocus) and stop.isEnabled()
            if takes and stop is not self.info and self.isAncestorOf(stop) and stop.isVisibleTo(self):
                if not isinstance(stop, PathBar):
                    return stop
                path = path or stop
            stop = stop.nextInFocusChain()
        return path

    def keep(self, name: str, choice: QWidget | Choice) -> None:
        """Let what is chosen in a widget come back with a session file, under a name that stays the same.

        For choices that are no part of the state: which page is shown, say. A widget may be `Segments`, a check box, a
        number's field or a slider; of anything else give a `Choice`.
        """
        self._choices[name] = choice if isinstance(choice, Choice) else choice_of(choice)

    def chosen(self) -> dict[str, Value]:
        """What is chosen in what `keep` named."""
        return self.attempt(partial(values_of, self._choices)) or {}

    def choose_again(self, values: Mapping[str, Value]) -> None:
        """Go back to what `chosen` gave, in another window or another version of the panel."""
        self.attempt(partial(choose_again, self._choices, values))

    def is_at_work(self, state: State) -> bool:
        """Whether something is under way that is stopped here: it stays in the window, whatever model is opened."""
        return False

    def is_waiting(self) -> bool:
        """Whether it can be seen and still lacks something."""
        return self.isVisible() and self.attempt(self._wanted) is not None

    def has_asked(self) -> bool:
        """Whether what it lacks was asked for: when the engine rests it could not be had, and nothing more comes."""
        return self.attempt(self._wanted) == self._asked

    # the life of a panel

    def attempt(self, action: Callable[[], T]) -> T | None:
        """The outcome of some of the panel's own code; None where it raises, which switches the panel off."""
        if self._is_off:
            return None
        try:
            return action()
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            self._switch_off(error)
            self.failed.emit(raised(error))
            return None

    def _switch_off(self, error: BaseException) -> None:
        self._is_off = True
        log.error("the panel %s is switched off", self.name, exc_info=error)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.attempt(self._refresh)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Hide and not event.spontaneous() and "callout" in self.__dict__:
            self.callout.dismiss()  # it would speak of what is not there
        return super().event(event)

    def _on_changed(self, old: State, new: State) -> None:
        is_new_model = new.results is not old.results and new.results.loaded is not old.results.loaded
        if is_new_model or (old.loading is not None and new.loading is None):
            self._asked, self._asked_along = None, ()  # a load calls off what was asked for, also one that fails
        if self.isVisible():
            self.attempt(self._keep_up)

    def _on_live_changed(self) -> None:
        if self.isVisible():
            self.attempt(self._keep_up)

    def _keep_up(self) -> None:
        """After a change: draw what is another one, and ask for what it lacks now."""
        state = self.session.state
        if self._is_stale(state):
            self._refresh()
            return
        self._draw_live(state.live)
        self._draw_veils(self.is_behind(state))

    def _is_stale(self, state: State) -> bool:
        """Whether something that it reads is not what it was when it was drawn."""
        if self._rendered is None:
            return True
        if self._rendered is state:
            return False
        if self._read_of is None:
            return not is_same_but_for_live(state, self._rendered)
        (values, parts), (old_values, old_parts) = self._read_of(state), self._has_read
        return not all(map(is_, parts, old_parts)) or values != old_values

    @cached_property
    def _read_of(self) -> Callable[[State], _Read] | None:
        """What gives all that it reads of a state; None where it has not said what that is."""
        if self.reads is None:
            return None
        ways = {*self.reads, *READ_BY_ALL, *(READ_BY_PATHS if self._path is not None else ())}
        names = sorted(way for way in ways if isinstance(way, str))
        kinds = [way for way in ways if isinstance(way, type)]
        values = [attrgetter(name) for name in names if name not in _FIELDS]
        parts = [attrgetter(name) for name in names if name in _FIELDS]

        def read(state: State) -> _Read:
            answers = map(state.results.newest.get, kinds)
            return [value(state) for value in values], [*(part(state) for part in parts), *answers]

        return read

    def _draw_live(self, live: Live) -> None:
        if live is not self._rendered_live:
            old, self._rendered_live = self._rendered_live, live
            self.render_live(live, old)

    def _on_hover(self, pointed: Pointed) -> None:
        if self.isVisible():
            self.attempt(lambda: self.render_hover(pointed))

    @cached_property
    def _cards(self) -> list[Card]:
        cards = self.findChildren(Card)  # asked for when it is first shown: by then it is built
        for card in cards:
            card.mark_pressed.connect(lambda: self.front_wanted.emit(MASKS))
        return cards

    def _refresh(self) -> None:
        state = self.session.state
        if self._is_stale(state):
            old, self._rendered = self._rendered, state
            if self._read_of is not None:
                self._has_read = self._read_of(state)
            self.render_state(state, old)
            self._render_path(state)
            self._mark_edited(state)
        self._draw_live(state.live)
        for card in self._cards:
            card.set_refusal(self._refusal(state))
        self.offer_script()
        self._ask_for(state)
        self._draw_veils(self.is_behind(state))

    def _ask_for(self, state: State) -> None:
        request = self._wanted()
        asked, self._asked = self._asked, request
        if request is not None and request != asked:
            self.session.request(request)
        along = () if self._refusal(state) else self.wants_along(state)
        asked_along, self._asked_along = self._asked_along, along
        for other in along:
            if other not in asked_along and not state.results.has_answer_to(other):
                self.session.request(other)

    # what is of another run lies under a veil

    @property
    def is_veiled(self) -> bool:
        """Whether its figures are pale, for they are of another run or selection than what is named."""
        return any(not veil.isHidden() for veil in self._veils.values())

    @cached_property
    def _veil_clock(self) -> QTimer:
        clock = QTimer(self)
        clock.setSingleShot(True)
        clock.setInterval(_MOMENT)
        clock.timeout.connect(lambda: self.attempt(self._lay_veils))
        return clock

    def _draw_veils(self, behind: bool) -> None:
        if not behind:
            self._veil_clock.stop()
            for veil in self._veils.values():
                veil.lay(False)
        elif self.is_veiled:
            self._lay_veils()  # what it shows may be another page by now
        elif not self._veil_clock.isActive():
            self._veil_clock.start()

    def _lay_veils(self) -> None:
        figures = list(self.figures())
        for widget in figures:
            if widget not in self._veils:
                veil = self._veils[widget] = PaddingOverlay(widget, self.theme, self.ground)
                widget.destroyed.connect(partial(self._veils.pop, widget, None))
                veil.setObjectName("veil")
        for widget, veil in self._veils.items():
            veil.lay(widget in figures)

    def _wanted(self) -> Request | None:
        state = self.session.state
        request = None if self._refusal(state) else self.wants(state)
        is_here = request is not None and not self.keeps_answers and state.results.has_answer_to(request)
        return None if is_here else request

    def _refusal(self, state: State) -> str:
        """Why nothing of the open model can be shown here; "" where something can."""
        loaded = state.results.loaded
        return loaded.info.weights_only if loaded is not None and self.needs_scores else ""

    def _mark_edited(self, state: State) -> None:
        """Say in the title that the run is an edited one, so that nobody takes it for the model's own."""
        count = len(state.ran.inputs.interventions) if state.ran is not None else 0
        for card in self._cards:
            card.set_mark(f"edited × {count}" if count else "", EDITED, f"× {count}")

    def open_head_menu(self, site: SiteRef, head: int, where: QPoint) -> None:
        """`head_menu` at `where` on the screen."""
        menu = self.head_menu(site, head)
        if menu is not None:
            menu.popup(where)

    def head_menu(self, site: SiteRef, head: int) -> QMenu | None:
        """What can be done to a head: it is shown, taken out of the run, or held. None while no model is open."""
        if self.session.state.results.loaded is None:
            return None
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction("Show this head", lambda: self._show_head(site, head))
        menu.addSeparator()
        self.add_head_actions(menu, site, head)
        return menu

    def _show_head(self, site: SiteRef, head: int) -> None:
        self.dispatch(SelectHead(site, head))
        self.front_wanted.emit(HEAD)

    def add_head_actions(self, menu: QMenu, site: SiteRef, head: int) -> None:
        """Let a menu take a head out of the run, or hold it at its mean; again puts it back."""
        loaded = self.session.state.results.loaded
        if loaded is None:
            return
        on = [item.value for item in self.session.state.document.interventions if item.on]
        skip = head_skip(on, site, head, loaded.info.predicting_stack)
        own = skip if skip is not None and skip.part == "head" else None
        fills: tuple[tuple[str, Fill], ...] = (("Without this head", "zero"), ("Hold it at its mean", "mean"))
        for label, fill in fills:
            is_on = own is not None and own.fill == fill
            value = Ablation("head", site, head, fill, on=is_on)
            action = menu.addAction(label, partial(self.dispatch, PutIntervention(value)))
            action.setCheckable(True)
            action.setChecked(is_on)
            action.setEnabled(not loaded.info.textbook and not loaded.info.weights_only)

        menu.addSeparator()
        b = menu.addAction("As B, to compare with another", partial(self.compare_with, head_as_b, site, head))
        b.setToolTip("Shown in Compare beside the head that is selected")

    def compare_with(self, make: Callable[..., Compared], *what: object) -> None:
        """Let what `make` makes of the state become B, and show it."""
        self.dispatch(CompareWith(make(self.session.state, *what)))
        self.front_wanted.emit(COMPARE)

    def dispatch(self, intent: Intent) -> None:
        self.session.dispatch(intent)


_PARTS = ("have", "tile", "tiles")
"""Fields of a request that say which part of an answer is asked for, and not of what it is."""


def _goes_on(request: Request, results: Results) -> bool:
    """Whether a part of the answer to `request` is here: the rest is of the same."""
    parts = [field.name for field in fields(request) if field.name in _PARTS]
    newest = (result.request for result in results.newest.values() if type(result.request) is type(request))
    return any(parts and replace(request, **{name: getattr(one, name) for name in parts}) == one for one in newest)


def _is_of_qt(name: str) -> bool:
    """Whether Qt calls what is called so: `resizeEvent`, `sizeHint`."""
    return not name.startswith("_") and callable(getattr(QWidget, name, None))


def _guarded(cls: type[Panel], name: str, override: Callable[..., Any]) -> Callable[..., Any]:
    """`override` of a method of Qt; where it raises the panel is switched off, and the class above `cls` answers."""

    @wraps(override)
    def guarded(self: Panel, *args: Any, **kwargs: Any) -> Any:
        is_made = "_is_off" in self.__dict__  # else Qt's own constructor calls
        if not (is_made and self._is_off):
            try:
                return override(self, *args, **kwargs)
            except BaseException as error:
                if is_made:
                    self._switch_off(error)
                    # later: the window takes the panel away, and Qt is still busy with it
                    QTimer.singleShot(0, self, partial(self.failed.emit, raised(error)))
                else:
                    log.exception("a panel's %s has raised", name)
        return getattr(super(cls, self), name)(*args, **kwargs)

    return guarded


def raised(error: BaseException) -> str:
    """An exception in short, for a sentence: "KeyError: 'entropy'"."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
