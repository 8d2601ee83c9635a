"""A real pointer rests, flicks and drags over the widgets of every panel, tips open: the window goes on answering.

Tests that send events to widgets do not see what a pointer does between two of them, nor where Qt sends the next.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.harness.pointer import Pointer
from tests.harness.program import Program, started

pytestmark = [
    pytest.mark.x,
    pytest.mark.skipif(os.environ.get("QT_QPA_PLATFORM") != "xcb", reason="a pointer is moved by an X server"),
]

BUSY = 1.0  # s of work of the window's thread: a machine that has other things to do takes none of it
GROWTH = 80.0  # megabytes
FEW = 4
"""Widgets of a panel that the quick test goes to."""
FIRST_TIP = 1.2  # s: Qt waits 0.7 before it shows the first tip, and next to nothing before the others
NEXT_TIP = 0.1
FLICK = 0.04
DRAGGED_BY_NAME = ("Slider", "Map", "Atlas", "Strip", "Picture", "Bars", "Plane", "Plot", "Ribbons", "Grid", "Columns")
MODELS = ("story-gpt", "en-es", "story-bert", "vit-cifar10", "dates-luong", "story-next")
WORDS = ("the ", "park ", "went ", "Anna ", "Tom ", "gave ", ". ")
MINUTES = float(os.environ.get("POINTER_MINUTES", "60"))
"""How long the random user is at it."""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    with in_front(tmp_path_factory.mktemp("program")) as opened:
        yield opened


@pytest.fixture
def pointer() -> Iterator[Pointer]:
    with Pointer() as opened:
        yield opened


@contextmanager
def in_front(folder: Path) -> Iterator[Program]:
    """The program, whose window has the keyboard: Qt shows no tips in another."""
    with started(folder) as program:
        program.settle()
        program.ask("window.activateWindow()")
        program.wait_until("window.isActiveWindow()")
        yield program
        program.closed_now()
        assert program.complaints() == []


def middle(spot: list[int]) -> tuple[int, int]:
    left, top, width, height, *_ = spot
    return left + width // 2, top + height // 2


def tip_at(program: Program, pointer: Pointer, spot: list[int], seconds: float) -> list[int] | None:
    """The tip that opens for a pointer that comes to rest there; None where none does in that time."""
    x, y = middle(spot)
    pointer.jump(x - 3, y)
    pointer.move(x, y, FLICK)
    deadline = time.monotonic() + seconds
    while (tip := program.ask("tip()")) is None and time.monotonic() < deadline:
        time.sleep(0.02)
    return list(tip) if tip is not None else None


def rest(program: Program, pointer: Pointer, spot: list[int], seconds: float) -> bool:
    """Rest there until a tip opens, flick onto the tip, rest, and flick away; whether one opened."""
    tip = tip_at(program, pointer, spot, seconds)
    if tip is not None:
        pointer.move(*middle(tip), FLICK)
        time.sleep(0.05)
        program.ask("tip()")
        x, y = middle(spot)
        pointer.move(x, y + 2, FLICK)
    return tip is not None


def drag(pointer: Pointer, spot: list[int]) -> None:
    """Out of it: a button that is let go elsewhere does nothing."""
    pointer.jump(*middle(spot))
    left, top, width, height, *_ = spot
    pointer.drag(left + width - 3, top + height + 15, FLICK)


def is_dragged(spot: list[object]) -> bool:
    return any(part in str(spot[4]) for part in DRAGGED_BY_NAME)


def check(program: Program, before: float, what: str) -> float:
    """Seconds of the longest silence since the last time; none is long by the window's own work.

    `before` is the memory that the program held then.
    """
    silence, work = program.ask("window.heart.silence()")
    assert work < BUSY, f"{what}: the window was busy for {work:.1f} s"
    held = program.ask("memory()")
    assert held < before + GROWTH, f"{what}: {before:.0f} MB became {held:.0f}"
    return float(silence)


def test_a_tip_is_flicked_onto(program: Program, pointer: Pointer) -> None:
    """Its term is in the glossary: the tip asked for one more tip, and the program never answered again."""
    at = program.ask("(lambda b: b.mapToGlobal(b.rect().center()).toTuple())(window.input.step_button)")
    before = program.ask("memory()")
    tip = tip_at(program, pointer, [at[0] - 5, at[1] - 5, 10, 10], 10 * FIRST_TIP)
    assert tip is not None, "there is a tip to go onto"
    pointer.move(*middle(tip), FLICK)
    program.ask("window.heart.silence()")
    began = time.monotonic()
    while time.monotonic() < began + 2 * FIRST_TIP:  # by then Qt has asked for the tip of the tip
        program.ask("tip()")
        time.sleep(0.05)
    check(program, before, "on a tip")


def over_every_panel(program: Program, pointer: Pointer, most: int) -> tuple[float, int]:
    """Rest on and drag over up to `most` widgets of each panel; the longest silence in seconds, and how many tips."""
    rng, longest, tips = random.Random(0), 0.0, 0
    for name in ("", *program.ask("window.dock_host.open_panels()")):
        if name:
            program.ask(f"window.dock_host.raise_panel({name!r})")
            program.settle()
        before = program.ask("memory()")
        program.ask("window.heart.silence()")
        spots = program.ask(f"spots(window, {name!r})")
        for number, spot in enumerate(rng.sample(spots, min(most, len(spots)))):
            tips += rest(program, pointer, spot, FIRST_TIP if number == 0 else NEXT_TIP)
        for spot in [spot for spot in spots if is_dragged(spot)][:most]:
            drag(pointer, spot)
        longest = max(longest, check(program, before, name or "the window"))
    return longest, tips


def test_a_pointer_goes_over_every_panel(program: Program, pointer: Pointer) -> None:
    _, tips = over_every_panel(program, pointer, FEW)
    assert tips > 10


@pytest.mark.long
def test_a_pointer_goes_over_every_widget(program: Program, pointer: Pointer, record_property) -> None:
    silence, tips = over_every_panel(program, pointer, 10_000)
    record_property("longest silence", silence)
    print(f"\nThe longest silence was {silence:.2f} s, with {tips} tips.")


def one_act(program: Program, pointer: Pointer, rng: random.Random) -> str:
    """What a person might do next; what it was."""
    panels = program.ask("window.dock_host.open_panels()")
    front = rng.choice(["", *program.ask("window.dock_host.front_panels()")])
    spots = program.ask(f"spots(window, {front!r})")
    spot: list[Any] = rng.choice(spots) if spots else [300, 300, 10, 10, ""]
    match rng.choice(["rest"] * 10 + ["drag", "wheel", "type", "panel", "panel", "undo", "present", "theme", "model"]):
        case "drag" if is_dragged(spot):
            drag(pointer, spot)
            return f"drag {spot[4]}"
        case "wheel":
            pointer.jump(*middle(spot))
            for _ in range(5):
                pointer.turn(rng.random() < 0.5)
            return f"wheel {spot[4]}"
        case "type":
            text = "".join(rng.choice(WORDS) for _ in range(3))
            program.ask(f"keys(window, {text!r}) if window.input.text.isVisible() else None")
            return "type"
        case "panel":
            program.ask(f"window.dock_host.raise_panel({rng.choice(panels)!r})")
            return "panel"
        case "undo":
            program.ask("window.menus['undo'].trigger()")
            return "undo"
        case "present":
            program.ask("window.presenter.toggle()")
            return "present"
        case "theme":
            program.ask(f"window.set_theme_name({rng.choice(['light', 'dark'])!r})")
            return "theme"
        case "model":
            program.ask(f"window.session.dispatch(intents.OpenCheckpoint({rng.choice(MODELS)!r}))")
            program.settle()
            return "model"
    rest(program, pointer, spot, rng.choice([0.1, FIRST_TIP]))
    return f"rest {spot[4]}"


@pytest.mark.long
def test_an_hour_of_a_random_user_with_a_resting_pointer(tmp_path: Path, pointer: Pointer, record_property) -> None:
    """POINTER_MINUTES says another time. The longest silence is that of any kind of act, with what the act was."""
    rng, silences = random.Random(0), dict[str, float]()
    with in_front(tmp_path) as program:
        program.ask("window.heart.silence()")
        ends = time.monotonic() + 60 * MINUTES
        while time.monotonic() < ends:
            act = one_act(program, pointer, rng)
            silence = program.ask("window.heart.silence()")[0]
            silences[act] = max(silences.get(act, 0.0), silence)
        program.ask("window.presenter.end()")
    worst = sorted(silences.items(), key=lambda item: -item[1])
    record_property("longest silences", worst[:10])
    print("".join(f"\n{seconds:6.2f} s  {act}" for act, seconds in worst[:10]))
    assert worst[0][1] < 1.0
