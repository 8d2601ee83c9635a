"""Checking lessons without anybody watching: every step is put on screen, and what it says of the model is computed.

Along with the lessons that come along, sentences on causes in examples and in the tour are checked, each as a step.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from attention_explorer.console import complain, say
from attention_explorer.missing_libraries import missing_library
from attention_explorer.session.changes import record
from attention_explorer.session.example_rules import changed_everywhere
from attention_explorer.session.examples import Example, examples_of
from attention_explorer.session.figures import unshown
from attention_explorer.session.lesson_files import load, shipped_lessons
from attention_explorer.session.lessons import Lesson, OpenLesson, Step, figures_in
from attention_explorer.session.scenes import Scene
from attention_explorer.session.statements import Value
from attention_explorer.session.tours import Step as TourStep
from attention_explorer.session.tours import Tour, first_tour
from attention_models.files.catalogue import SHIPPED

if TYPE_CHECKING:
    from attention_explorer.window.lesson.guide import LessonGuide
    from attention_explorer.window.window import MainWindow

SECONDS_A_STEP = 120.0
SECONDS_TO_LAY_OUT = 10.0


def check_lessons(paths: tuple[Path, ...] = ()) -> int:
    """Go through every step of these lessons, or of those that come along, and print a line for each.

    Returns:
        0; 1 where a step cannot be shown, or something that it says is not so.
    """
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    try:
        from PySide6.QtCore import QEvent
        from PySide6.QtWidgets import QApplication
    except ImportError as error:
        if not (sentence := missing_library(str(error))):
            raise
        complain(
            f"Checking lessons puts each step in a window that nobody sees, which needs Qt's libraries. {sentence}"
        )
        return 1

    from attention_explorer.session.state import Document, State
    from attention_explorer.settings import Settings
    from attention_explorer.window.display import qt_messages_logged
    from attention_explorer.window.window import MainWindow

    with qt_messages_logged():
        app = QApplication.instance() or QApplication(sys.argv[:1])
        window = MainWindow(State(Document()), Settings(theme="light"), remembers=False)
        window.show()
        window.start()
        failed = 0
        for line, wrong in chain(
            *(checked(window, path) for path in paths or shipped_lessons()),
            *(() if paths else (gone_through(window, name, opened) for name, opened in beside_lessons())),
        ):
            (complain if wrong else say)(line)
            failed += wrong
        window.close()
        window.deleteLater()
        app.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    if failed:
        complain(f"{failed} {'line' if failed == 1 else 'lines'} of these lessons failed.")
    return 1 if failed else 0


def checked(window: MainWindow, path: Path) -> Iterator[tuple[str, bool]]:
    """Of each step of a lesson a line, and whether it failed. `window` is open and has started."""
    try:
        opened = load(path, tuple(panel.name for panel in window.panels))
    except ValueError as error:
        yield str(error), True
        return
    yield from gone_through(window, path.name, opened)


def beside_lessons() -> Iterator[tuple[str, OpenLesson]]:
    """By name: examples and the tour as lessons, with a step for each of theirs that names a cause."""
    for reference in SHIPPED:
        steps = tuple(_example_step(reference, example) for example in examples_of(reference))
        yield from _lesson(f"Examples of {reference}", steps)
    tour = first_tour()
    yield from _lesson("The tour", tuple(_tour_step(tour, step) for step in tour.step))


def _lesson(name: str, steps: tuple[Step, ...]) -> Iterator[tuple[str, OpenLesson]]:
    telling = tuple(step for step in steps if step.because or unshown(step.texts, ()))
    if telling:
        yield name, OpenLesson(Lesson(title=name, about=name, minutes=1, step=telling))


def _example_step(reference: str, example: Example) -> Step:
    scene = Scene(
        checkpoint=reference,
        text=example.text,
        second=example.second,
        picture=example.picture,
        stack=example.stack or "decoder",
        layer=None if example.stack is None else example.layer,
        head=example.head,
        query=example.query,
        query_place=example.query_place,
        key=example.key,
        key_place=example.key_place,
        blocks=example.blocks,
        interventions=tuple(map(record, changed_everywhere(example))),
        panel=example.panel,
    )
    return Step(title=example.title, say=example.say, show=scene, figures=example.figures, because=example.because)


def _tour_step(tour: Tour, step: TourStep) -> Step:
    """Of the state that it asks for, once that is there. Its sentences have figures of their own in braces."""
    act, needed = step.act, tour.needed(step)
    scene = Scene(
        checkpoint=act.checkpoint or needed.checkpoint or "story-gpt",
        text=act.text or needed.text or "",
        stack=act.stack,
        layer=act.layer,
        head=act.head,
        query=act.query,
        query_place=act.query_place,
        key=act.key,
        key_place=act.key_place,
        blocks=act.blocked,
        panel=act.panel or "map",
    )
    without_braces = str.maketrans("{}", "‹›")
    said = f"{step.say}\n\n{step.done}".translate(without_braces)
    because = tuple(msgspec.structs.replace(b, says=b.says.translate(without_braces)) for b in step.because)
    return Step(title=step.title, say=said, show=scene, figures=step.figures, because=because)


def gone_through(window: MainWindow, name: str, opened: OpenLesson) -> Iterator[tuple[str, bool]]:
    """As `checked`, of a lesson that was read; `name` is what its lines begin with."""
    window.lessons.give(opened)
    guide = window.lessons.guide
    assert guide is not None
    for number, step in enumerate(guide.steps):
        if number:
            guide.go_to(number)
        wrong = _wait(window, guide) or _said_otherwise(window, guide)
        yield f"{name}, step {number + 1}, {step.title}: {wrong or 'passed'}", bool(wrong)
    window.lessons.end()


def _wait(window: MainWindow, guide: LessonGuide) -> str:
    """Until the step is on screen; a sentence where it does not come."""
    from attention_explorer.window.screen import wait_within

    def has_failed() -> bool:
        notice = window.session.state.notice
        return notice is not None and notice.kind == "error"

    def is_over() -> bool:
        return has_failed() or (guide.is_settled and window.is_settled())

    in_time = wait_within(SECONDS_A_STEP, is_over)
    notice = window.session.state.notice
    if in_time:
        return notice.text if notice is not None and has_failed() else ""
    said = "" if notice is None else f": {notice.text}"
    return f"it is not on screen after {SECONDS_A_STEP:.0f} seconds{said}"


def _cause_unshown(step: Step, figures: Mapping[str, Value]) -> str:
    """Which sentence of a step names a cause that nothing shows, or that what is changed in the model belies."""
    for reason in step.because:
        for text, statement in zip(reason.holds, reason.statements, strict=True):
            if not statement.holds(figures):
                found = ", ".join(f"{name} is {figures[name]!r}" for name in sorted(statement.names))
                return f"it says “{reason.says}”, but “{text}” is not so: {found}"
    for sentence in unshown(step.texts, step.because):
        return f"it says why, and no because shows it: “{sentence}”"
    return ""


def _said_otherwise(window: MainWindow, guide: LessonGuide) -> str:
    """What of the step on screen is not so; "" where all is."""
    from attention_explorer.window.screen import wait_within

    step = guide.step
    assert step is not None
    scene, state = step.show, window.session.state
    figures = guide.figures
    if scene is not None:
        if state.document.checkpoint != scene.checkpoint:
            return f"{scene.checkpoint} is not open"
        if scene.site is not None and state.site is None:
            return f"there is no layer {scene.layer} of a {scene.stack}"
        if scene.site is not None and (state.selection.site, state.selection.head) != (scene.site, scene.head):
            return "its head is not the selected one"
        assert step.goal is not None
        named = step.goal.cell(state)
        if any(
            place not in (None, now)
            for place, now in zip(named, (state.selection.query, state.selection.key), strict=True)
        ):
            return "a token that it names is not in its text"
        if scene.panel not in window.dock_host.front_panels():
            return f"the panel {scene.panel} is not in front"
        for name, choices in scene.choices.items():
            chosen = next(panel for panel in window.panels if panel.name == name).chosen()
            for choice, value in choices.items():
                if chosen.get(choice) != value:
                    return f"“{choice}” of the panel {name} is {chosen.get(choice)!r}, and not {value!r}"
    if step.state is not None:
        shown = guide.opened.states[step.state - 1].document
        if (state.document.checkpoint, state.document.inputs) != (shown.checkpoint, shown.inputs):
            return "what is on screen is not what it shows"
    if step.point is not None and guide.place() is None:
        return f"there is no {step.point} to point at"
    for text, statement in zip(step.check, step.checks, strict=True):
        if not statement.holds(figures):
            found = ", ".join(f"{name} is {figures[name]!r}" for name in sorted(statement.names))
            return f"“{text}” is not so: {found}"
    for name in figures_in(step.notes):
        if name not in step.figures:
            return f"its notes name a figure “{name}”, and there is none"
    wrong = _cause_unshown(step, figures)
    if wrong:
        return wrong
    ask = step.ask
    if ask is None:
        return ""
    if (ask.click or ask.cells) and not wait_within(SECONDS_TO_LAY_OUT, lambda: guide.covers.guessed is not None):
        return "there is no row on screen to click in"
    if ask.options and len(ask.right_options(figures)) != 1:
        found = ", ".join(f"{name} is {figures[name]!r}" for name in sorted(figures))
        return f"{len(ask.right_options(figures))} of its options are right: {found}"
    if ask.number is not None:
        truth = figures[ask.number]
        if isinstance(truth, str) or not ask.low <= truth <= ask.high:
            return f"{ask.number} is {truth!r}, which cannot be guessed"
    return ""
