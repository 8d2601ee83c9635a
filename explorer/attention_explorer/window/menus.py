"""The window's menus: every action with its key, in one place."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Protocol

from PySide6.QtGui import QAction, QActionGroup, QKeySequence
from PySide6.QtWidgets import QMenu, QMenuBar

from attention_explorer.look.theme import SEQUENTIAL_MAPS, ThemeName
from attention_explorer.panels.input.panel import InputPanel
from attention_explorer.session.intents import SelectHead, SetView
from attention_explorer.session.lesson_files import heading_of, shipped_lessons
from attention_explorer.session.session import Session
from attention_explorer.session.state import State
from attention_explorer.window.audience.audience import Audience
from attention_explorer.window.comparing import Comparing, neighbour
from attention_explorer.window.contents import Contents
from attention_explorer.window.dialogs import FileDialogs
from attention_explorer.window.docks import DockHost
from attention_explorer.window.lesson.lessons import Lessons
from attention_explorer.window.notes import StatesMenu
from attention_explorer.window.presenter import Presenter
from attention_explorer.window.sessions import Sessions
from attention_explorer.window.short_texts import ShortTexts
from attention_explorer.window.top_bar import TopBar

if TYPE_CHECKING:
    from attention_explorer.session.lessons import Guess

_KEYS = {"flow": "F4", "compare": "F6"}
"""Keys of panels that are not counted from Ctrl+1 on."""


class Menued(Protocol):
    """What the menus ask of a window."""

    session: Session
    contents: Contents
    input: InputPanel
    top_bar: TopBar
    dock_host: DockHost
    dialogs: FileDialogs
    sessions: Sessions
    short_texts: ShortTexts
    recent_menu: QMenu  # sessions opened lately
    states_menu: StatesMenu
    comparing: Comparing
    lessons: Lessons
    presenter: Presenter
    audience: Audience
    theme_name: ThemeName
    panel_menus: tuple[QMenu, QMenu]  # which panels are open, and going to one

    def menuBar(self) -> QMenuBar: ...
    def close(self) -> bool: ...
    def choose_checkpoint(self) -> None: ...
    def reset_layout(self) -> None: ...
    def heads_side_by_side(self) -> None: ...
    def set_theme_name(self, name: ThemeName) -> None: ...
    def show_notes(self) -> None: ...
    def show_glossary(self) -> None: ...
    def start_tour(self) -> None: ...
    def scale_text(self, factor: float) -> None: ...
    def set_full_screen(self, full: bool) -> None: ...


def build_menus(window: Menued) -> dict[str, QAction]:
    """Fill the menu bar; the actions by name, so that others can trigger and tests can find them."""
    actions: dict[str, QAction] = {}
    for title, fill in (
        ("&File", _file),
        ("&Edit", _edit),
        ("&Run", _run),
        ("&View", _view),
        ("&States", _states),
        ("&Lessons", _lessons),
        ("&Help", _help),
    ):
        menu = window.menuBar().addMenu(title)
        menu.setToolTipsVisible(True)
        fill(window, menu, actions)
    return actions


def _add(
    menu: QMenu,
    actions: dict[str, QAction],
    name: str,
    text: str,
    keys: str | list[str] | QKeySequence.StandardKey,
    run: Callable[[], object],
    tip: str = "",
) -> QAction:
    action = menu.addAction(text)
    if isinstance(keys, list):
        action.setShortcuts([QKeySequence(key) for key in keys])
    elif keys:
        action.setShortcut(QKeySequence(keys))
    action.setToolTip(tip or text.replace("&", ""))
    action.triggered.connect(lambda _checked=False: run())
    actions[name] = action
    return action


def _file(window: Menued, menu: QMenu, actions: dict[str, QAction]) -> None:
    files, sessions = window.dialogs, window.sessions
    tip = "Shipped ones, those opened lately, a folder, a GGUF file, or a name on Hugging Face"
    _add(menu, actions, "open", "&Open a checkpoint…", "Ctrl+O", window.choose_checkpoint, tip)
    _add(menu, actions, "open_session", "Open a &session…", "Ctrl+Shift+O", sessions.open)
    window.recent_menu.setTitle("Open &recent")
    menu.addMenu(window.recent_menu)
    look = _add(menu, actions, "open_picture", "Open a p&icture…", "Ctrl+Shift+P", files.open_picture)
    look.setToolTip("For a vision model to look at")

    def enable(_old: State | None, new: State) -> None:
        loaded = new.results.loaded
        look.setEnabled(loaded is not None and loaded.info.family == "vision")

    window.session.changed.connect(enable)
    enable(None, window.session.state)
    menu.addSeparator()
    tip = "What you chose: checkpoint, text, branches, selection, interventions, panels, the states kept, and notes"
    _add(menu, actions, "save_session", "&Save the session", "Ctrl+S", sessions.save, tip)
    _add(menu, actions, "save_session_as", "Save the session &as…", "", sessions.save_as, tip)
    menu.addSeparator()
    short = window.short_texts
    tip = "Checkpoint, text, selection and interventions in a line that fits into a chat; others open it"
    _add(menu, actions, "copy_short_text", "Copy as a sho&rt text", "Ctrl+Alt+C", short.copy, tip)
    tip = "A state that somebody copied as a short text"
    _add(menu, actions, "open_short_text", "Open a short &text…", "Ctrl+Alt+V", short.ask, tip)
    tip = "The short text as a picture that cameras read, as large as the window and the audience's"
    _add(menu, actions, "show_code", "Show as a &QR code", "Ctrl+Alt+Q", short.show_code, tip)
    menu.addSeparator()
    _add(menu, actions, "picture", "Save a &picture of the window…", "Ctrl+Shift+S", files.save_picture)
    _add(
        menu,
        actions,
        "weights",
        "Save all &weights…",
        "Ctrl+Shift+W",
        files.save_weights,
        "As arrays, for NumPy",
    )
    menu.addSeparator()
    _add(menu, actions, "quit", "&Quit", "Ctrl+Q", window.close)


def _edit(window: Menued, menu: QMenu, actions: dict[str, QAction]) -> None:
    session = window.session
    undo = _add(menu, actions, "undo", "&Undo", "Ctrl+Z", session.undo, "Take back the last change")
    redo = _add(menu, actions, "redo", "&Redo", ["Ctrl+Y", "Ctrl+Shift+Z"], session.redo)
    menu.addSeparator()
    _add(menu, actions, "focus", "Edit the &input", "Ctrl+L", window.input.focus_text)
    told = "Read together with the input, for models that read pairs"
    _add(menu, actions, "second", "Edit the &second text", "Ctrl+Shift+B", window.input.second_text, told)
    menu.addSeparator()
    batch, told = window.input.batch, "Run several texts at once, padded to one length"
    _add(menu, actions, "add_text", "Add a &text", "Ctrl+Shift+A", batch.add_text, told)
    told = "Of those that are run at once"
    _add(menu, actions, "next_text", "&Next text", "Ctrl+PgDown", batch.show_next, told)
    _add(menu, actions, "previous_text", "&Previous text", "Ctrl+PgUp", batch.show_previous, told)

    def enable() -> None:
        undo.setEnabled(session.can_undo)
        redo.setEnabled(session.can_redo)

    session.history_changed.connect(enable)
    enable()


def _run(window: Menued, menu: QMenu, actions: dict[str, QAction]) -> None:
    panel, trust = window.input, window.top_bar.trust
    _add(menu, actions, "run", "&Run the model", "Ctrl+R", panel.run_model, "Run the model on the input again")
    _add(menu, actions, "step", "&Step: let it write one token", ["Ctrl+Return", "Ctrl+Enter"], panel.step)
    _add(menu, actions, "mask", "&Mask the selected word", "Ctrl+M", panel.mask_word, "For models that fill in masks")
    menu.addSeparator()
    _add(menu, actions, "trust", "&Compare with the model's own attention", "Ctrl+T", trust.measure)
    tip = (
        "The lines of transformers that run the model on this input, with its logits and weights beside those on screen"
    )
    _add(menu, actions, "trust_script", "Show &the model's own run as PyTorch", "", trust.show_script, tip)
    menu.addSeparator()
    for name, text, keys, layers, heads in (
        ("layer_down", "Layer &below", "Alt+Down", 1, 0),
        ("layer_up", "Layer &above", "Alt+Up", -1, 0),
        ("head_next", "&Next head", "Alt+Right", 0, 1),
        ("head_previous", "&Previous head", "Alt+Left", 0, -1),
    ):
        _add(menu, actions, name, text, keys, partial(_walk, window, layers, heads))
    menu.addSeparator()
    _training(window, menu, actions)


def _training(window: Menued, menu: QMenu, actions: dict[str, QAction]) -> None:
    """Going through the snapshots of the open checkpoint's training."""
    session, steps = window.session, window.contents.step_bar.steps
    tip = "The open model as it was at the snapshot of its training before this one"
    back = _add(menu, actions, "step_back", "Training: snapshot &before", "Alt+,", partial(steps.walk, -1), tip)
    tip = "The open model as it was at the snapshot of its training after this one"
    on = _add(menu, actions, "step_on", "Training: snapshot a&fter", "Alt+.", partial(steps.walk, 1), tip)

    def enable(_old: State | None, new: State) -> None:
        for action in (back, on):
            action.setEnabled(new.training is not None)

    session.changed.connect(enable)
    enable(None, session.state)


def _walk(window: Menued, layers: int, heads: int) -> None:
    """Select a neighbouring head; at the edge nothing happens."""
    state = window.session.state
    if state.ran is None or state.site is None:
        return
    there = neighbour(state.ran.sites, state.site.ref, state.selection.head, layers, heads)
    if there is not None:
        window.session.dispatch(SelectHead(*there))


def _view(window: Menued, menu: QMenu, actions: dict[str, QAction]) -> None:
    for submenu, title in zip(window.panel_menus, ("&Panels", "&Go to"), strict=True):
        submenu.setTitle(title)
        menu.addMenu(submenu)
    fill_panel_menus(window, actions)
    _add(menu, actions, "reset", "&Reset the layout", "", window.reset_layout, "Put every panel back in its place")
    tip = "All heads, the selected one and the other panels in three columns"
    _add(menu, actions, "side_by_side", "Heads &side by side", "", window.heads_side_by_side, tip)
    menu.addSeparator()
    _choices(
        menu.addMenu("&Theme"),
        actions,
        "theme",
        {"system": "Match system", "light": "Light", "dark": "Dark"},
        window.theme_name,
        window.set_theme_name,
    )
    _choices_of_view(window, menu.addMenu("&Colours"), actions, "colour_map", {n: n for n in SEQUENTIAL_MAPS})
    pooled = {"max": "The largest weight of each square", "mean": "The mean weight of each square"}
    _choices_of_view(window, menu.addMenu("Thumbnails of &long texts"), actions, "pooling", pooled)
    units = {"bits": "Bits (log base 2)", "nats": "Nats (natural log)"}
    _choices_of_view(window, menu.addMenu("&Entropy and loss in"), actions, "unit", units)
    _switch(window, menu, actions, "mean_column", "&Mean over heads beside each layer")
    _switch(window, menu, actions, "dim_special", "&Dim special tokens")
    _switch(window, menu, actions, "reduce_motion", "Reduce m&otion")
    _switch(window, menu, actions, "words", "&Words instead of pieces")
    menu.addSeparator()
    _add(menu, actions, "larger", "&Larger text", ["Ctrl++", "Ctrl+="], lambda: window.scale_text(1.125))
    _add(menu, actions, "smaller", "&Smaller text", "Ctrl+-", lambda: window.scale_text(1 / 1.125))
    _add(menu, actions, "normal", "&Normal text", "Ctrl+0", lambda: window.scale_text(0))
    tip = "The panel in front with the tokens fills the screen, in large letters; Tab and 1 to 9 choose, Esc comes back"
    _add(menu, actions, "present", "&Present the panel", ["F5", "Shift+F5"], window.presenter.toggle, tip)
    _audience(window, menu, actions)
    full = menu.addAction("&Full screen")
    full.setShortcut(QKeySequence("F11"))
    full.setCheckable(True)
    full.toggled.connect(window.set_full_screen)
    actions["full"] = full


def _audience(window: Menued, menu: QMenu, actions: dict[str, QAction]) -> None:
    """A second window for the class, and which panels it shows."""
    audience, docks = window.audience, window.dock_host.docks
    tip = "What is presented, in a window for a projector; this one gets your notes, what comes next and a clock"
    shown = _add(menu, actions, "audience", "Audie&nce window", "Ctrl+F5", audience.toggle, tip)
    shown.setCheckable(True)
    audience.changed.connect(lambda: shown.setChecked(audience.is_open))
    chosen = menu.addMenu("What the audience &sees")

    def fill() -> None:
        chosen.clear()
        for name, dock in docks.items():
            action = chosen.addAction(dock.windowTitle().replace("&", "&&"))
            action.setCheckable(True)
            action.setChecked(name not in audience.left_out)
            action.toggled.connect(partial(audience.set_shown, name))

    chosen.aboutToShow.connect(fill)
    fill()


def fill_panel_menus(window: Menued, actions: dict[str, QAction]) -> None:
    """List the panels that there are, in the order of their docks."""
    panels, show = window.panel_menus
    for menu in window.panel_menus:
        menu.clear()
    docks = window.dock_host.docks
    counted = [f"Ctrl+{number}" for number in range(1, 10)] + [f"Ctrl+Shift+{number}" for number in range(1, 10)]
    keys = {
        **dict.fromkeys(docks, ""),
        **dict(zip((name for name in docks if name not in _KEYS), counted, strict=False)),
    }
    keys |= _KEYS
    for name, dock in docks.items():
        actions[f"panel_{name}"] = dock.toggleViewAction()
        panels.addAction(dock.toggleViewAction())
        _add(show, actions, f"show_{name}", dock.windowTitle(), keys[name], partial(window.dock_host.go_to, name))


def _choices(
    menu: QMenu,
    actions: dict[str, QAction],
    name: str,
    choices: dict[str, str],
    chosen: str,
    choose: Callable[..., object],
) -> None:
    group = QActionGroup(menu)
    for value, text in choices.items():
        action = menu.addAction(text)
        action.setCheckable(True)
        action.setChecked(value == chosen)
        action.triggered.connect(lambda _checked=False, value=value: choose(value))
        group.addAction(action)
        actions[f"{name}_{value}"] = action


def _choices_of_view(
    window: Menued, menu: QMenu, actions: dict[str, QAction], option: str, choices: dict[str, str]
) -> None:
    def choose(value: str) -> None:
        window.session.dispatch(SetView(option, value))

    def follow(_old: State | None, new: State) -> None:
        actions[f"{option}_{getattr(new.document.view, option)}"].setChecked(True)

    _choices(menu, actions, option, choices, "", choose)
    window.session.changed.connect(follow)
    follow(None, window.session.state)


def _switch(window: Menued, menu: QMenu, actions: dict[str, QAction], option: str, text: str) -> None:
    action = menu.addAction(text)
    action.setCheckable(True)
    action.triggered.connect(lambda on: window.session.dispatch(SetView(option, on)))

    def follow(_old: State | None, new: State) -> None:
        action.setChecked(getattr(new.document.view, option))

    window.session.changed.connect(follow)
    follow(None, window.session.state)
    actions[option] = action


def _states(window: Menued, menu: QMenu, actions: dict[str, QAction]) -> None:
    states = window.states_menu
    tip = "Keep all that is on screen under a name, to go back to it; the session file holds it"
    _add(menu, actions, "keep_state", "&Keep this state…", "Ctrl+K", states.keep, tip)
    renew = _add(menu, actions, "renew_state", "&Update this state", "", states.renew)
    renew.setToolTip("Keep what is on screen now under its name")
    _add(
        menu, actions, "notes", "States and &notes…", "Ctrl+Shift+K", window.show_notes, "Rename, order, delete; notes"
    )
    menu.addSeparator()
    walked = (
        _add(menu, actions, "next_state", "Ne&xt state", "Ctrl+Shift+PgDown", partial(window.sessions.walk, 1)),
        _add(menu, actions, "previous_state", "&Previous state", "Ctrl+Shift+PgUp", partial(window.sessions.walk, -1)),
    )
    menu.addSeparator()
    _compare(window, menu, actions)
    menu.addSeparator()
    states.fill(menu, walked, renew)


def _compare(window: Menued, menu: QMenu, actions: dict[str, QAction]) -> None:
    """Another state, B, to hold what is open against."""
    comparing = window.comparing
    tip = "All that is open, as it is now, to compare what comes with: another text, checkpoint, change, branch or head"
    _add(menu, actions, "as_b", "This state is &B, to compare with", "Ctrl+B", comparing.keep, tip)
    walked = [_add(menu, actions, "swap", "S&wap A and B", "Ctrl+E", comparing.swap, "Open B; what is open becomes B")]
    let_go = _add(menu, actions, "let_go", "&Let B go", "", comparing.let_go, "Compare with nothing")
    kept = menu.addMenu("A kept state as B")
    comparing.fill(kept)
    head = menu.addMenu("&Head of B")
    for name, text, keys, layers, heads in (
        ("layer_down_b", "Layer &below", "Alt+Shift+Down", 1, 0),
        ("layer_up_b", "Layer &above", "Alt+Shift+Up", -1, 0),
        ("head_next_b", "&Next head", "Alt+Shift+Right", 0, 1),
        ("head_previous_b", "&Previous head", "Alt+Shift+Left", 0, -1),
    ):
        walked.append(_add(head, actions, name, text, keys, partial(comparing.walk, layers, heads)))

    def enable(_old: State | None, new: State) -> None:
        for action in (*walked, let_go):
            action.setEnabled(new.document.compared is not None)

    window.session.changed.connect(enable)
    enable(None, window.session.state)


def _lessons(window: Menued, menu: QMenu, actions: dict[str, QAction]) -> None:
    lessons = window.lessons
    for number, path in enumerate(shipped_lessons(), start=1):
        text = f"{'&' if number < 10 else ''}{number}  {heading_of(path)}"
        _add(menu, actions, f"lesson_{number}", text, "", partial(lessons.begin, path))
    menu.addSeparator()
    tip = "A lesson that was made in this program, or written as TOML"
    _add(menu, actions, "open_lesson", "&Open a lesson…", "", lessons.open, tip)
    menu.addSeparator()
    tip = "A column at the side, in which steps are taken from the screen, ordered and written"
    _add(menu, actions, "new_lesson", "&New lesson", "", lessons.new, tip)
    tip = "What is on screen, as a step of the lesson that is being made"
    _add(menu, actions, "add_step", "&Add this as a step", "Ctrl+Shift+L", lessons.add_step, tip)
    tip = "Change a lesson that was made in this program, or written as TOML"
    _add(menu, actions, "edit_lesson", "E&dit a lesson…", "", lessons.edit, tip)
    edit_given = _add(menu, actions, "edit_given", "Edit &this lesson", "", lessons.edit_given)
    edit_given.setToolTip("The lesson that is being given; one that comes along is saved as a file of your own")
    save_made = _add(menu, actions, "save_lesson", "&Save the lesson", "", lessons.save_made)
    save_made_as = _add(menu, actions, "save_lesson_as", "Save the &lesson as…", "", lessons.save_made_as)
    menu.addSeparator()
    guesses = menu.addMenu("&Predict, then reveal")
    texts: dict[Guess, str] = {
        "weight": "The selected &weight",
        "row": "The selected &row",
        "next": "What comes &next",
        "mask": "The &mask of the selected row",
        "role": "What the selected &head does",
    }
    for hide, text in texts.items():
        tip = "Cover it, and let the class guess"
        _add(guesses, actions, f"predict_{hide}", text, "", partial(lessons.predict, hide), tip)
    tip = "Bring the keyboard to the question: its covered cells, answers or field; arrows choose, Enter guesses"
    guess = _add(menu, actions, "guess", "Guess by &keyboard", "Ctrl+G", lessons.guess, tip)
    tip = "Every answer that was given in this lesson, with what the model said"
    save = _add(menu, actions, "save_answers", "Save the ans&wers…", "", lessons.save_answers, tip)
    end = _add(menu, actions, "end_lesson", "&End the lesson", "", lessons.end)

    def enable() -> None:
        end.setEnabled(lessons.is_giving)
        edit_given.setEnabled(lessons.is_giving)
        guess.setEnabled(lessons.is_giving)
        for action in (save_made, save_made_as):
            action.setEnabled(lessons.is_making)
        save.setEnabled(bool(lessons.answers))

    lessons.changed.connect(enable)
    enable()


def _help(window: Menued, menu: QMenu, actions: dict[str, QAction]) -> None:
    def show_help() -> None:
        from attention_explorer.window.help import show_help

        show_help(window.menuBar().window())

    def show_about() -> None:
        from attention_explorer.window.help import show_about

        show_about(window.menuBar().window())

    tip = "All pages of the documentation, which can be searched; they come along, and need no network"
    _add(menu, actions, "help", "&Help", "F1", show_help, tip)
    tip = "What the words in the window mean: logit, norm, CLS, the marks for spaces and bytes"
    _add(menu, actions, "glossary", "&Glossary", "Shift+F1", window.show_glossary, tip)
    tip = "What the panel that has the keyboard says, with the numbers on screen, and something to try in it"
    _add(menu, actions, "about_panel", "&Explain this panel", "Ctrl+I", window.contents.about_panel, tip)
    tip = "The lines of PyTorch that compute what the panel that has the keyboard shows, with the numbers on screen"
    _add(menu, actions, "script", "Show as &PyTorch", "Ctrl+P", window.contents.show_script, tip)
    tip = "Small steps in this window, from where you left off"
    _add(menu, actions, "tour", "&Tour of the window", "", window.start_tour, tip)
    window.top_bar.examples.setTitle("&Examples")
    menu.addMenu(window.top_bar.examples)
    _add(menu, actions, "about", "&About Attention Explorer", "", show_about)
