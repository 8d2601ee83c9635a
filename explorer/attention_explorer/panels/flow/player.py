"""Goes from step to step by itself: moves into one, halts, and moves on. Knows no picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from PySide6.QtCore import QElapsedTimer, QObject, QTimer, Signal

from attention_explorer.panels.flow.box_text import Around
from attention_explorer.panels.flow.flow_sentences import (
    block_sentence,
    box_sentence,
    input_sentence,
    output_sentence,
    recurrent_sentence,
)
from attention_explorer.panels.flow.model_scene import NOWHERE, ModelScene, OutputGroup, Place, RecurrentScene
from attention_models.protocol.flow import BlockView

# Where Play goes: up through the model, through the selected block box by box, and on to what is said. Pure.


@dataclass(frozen=True, slots=True)
class PlayStep:
    """One halt. `place` is where in the model, `box` which box of the selected block (-1: none)."""

    kind: Literal["input", "block", "box", "output"]
    place: Place
    box: int
    say: Callable[[], str] = field(compare=False)

    @property
    def sentence(self) -> str:
        """What is said there. Made when it is asked for: every answer makes new steps, and few of them are shown."""
        return self.say()


def play_steps(
    scene: ModelScene,
    selected: Place,
    others: Sequence[int],
    view: BlockView | None,
    around: Around,
    outputs: Sequence[OutputGroup],
    keys: Mapping[str, Sequence[str]],
    head: int,
    head_part: str = "attention",
) -> tuple[PlayStep, ...]:
    """Every step.

    `others` are the positions that are followed in the stacks that are not the selected one; `view` is of the selected
    block, or None while it is not here: its boxes are then left out. `keys` are called what the heads of a part attend
    to; `head` is the selected one, of `head_part`.
    """
    steps: list[PlayStep] = []
    for index, stack in enumerate(scene.stacks):
        position = selected.position if index == selected.stack else others[index]
        steps.append(PlayStep("input", Place(index, -1, position), -1, partial(input_sentence, stack, position)))
        for block in range(len(stack.flow.blocks)):
            place = Place(index, block, position)
            if view is not None and place == selected:
                steps += _boxes(view, place, around, keys, head, head_part)
            steps.append(PlayStep("block", place, -1, partial(block_sentence, stack, place)))
        if index >= selected.stack:
            break  # what comes after the selected stack does not follow from its token alone
    if outputs:
        chosen = next((o for o in outputs if o.position == selected.position), outputs[0])
        steps.append(PlayStep("output", Place(selected.stack, -1, -1), -1, partial(output_sentence, chosen)))
    return tuple(steps)


def _boxes(
    view: BlockView, place: Place, around: Around, keys: Mapping[str, Sequence[str]], head: int, head_part: str
) -> list[PlayStep]:
    steps = []
    for number, box in enumerate(view.boxes):
        chosen = head if box.part == head_part else -1
        said = partial(box_sentence, view, number, around, keys.get(box.part, ()), chosen)
        steps.append(PlayStep("box", place, number, said))
    return steps


def recurrent_steps(scene: RecurrentScene) -> tuple[PlayStep, ...]:
    """The source is read token by token, then the target is written."""
    return tuple(
        PlayStep("input", NOWHERE, -1, partial(recurrent_sentence, scene, step)) for step in range(scene.steps)
    )


_FRAME = 16  # ms
_TRAVEL = 420  # ms from step to step


class Player(QObject):
    """`count` steps. `at` is -1 until the first; `travel` is how much of the way into the step is gone, 0 to 1."""

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.count = 0
        self.at = -1
        self.travel = 1.0
        self.playing = False
        self.halt_ms = 2600
        self.jumps = False  # nothing moves between steps
        self._clock = QElapsedTimer()
        self._frames = QTimer(self)
        self._frames.setInterval(_FRAME)
        self._frames.timeout.connect(self._move)
        self._halt = QTimer(self)
        self._halt.setSingleShot(True)
        self._halt.timeout.connect(self._next)

    def set_count(self, count: int) -> None:
        """Other steps. One that is shown stays where there still is such a one."""
        if count != self.count:
            self.count = count
            if self.at >= count:
                self.stop()

    def play(self) -> None:
        """Go on from here; from the first step after the last."""
        if self.count and not self.playing:
            self.playing = True
            self._enter(0 if self.at + 1 >= self.count else self.at + 1)

    def pause(self) -> None:
        self.playing = False
        self._halt.stop()
        self._arrive()

    def step(self, by: int) -> None:
        """One step on or back, and no further."""
        target = self.at + by
        if 0 <= target < self.count:
            self.playing = False
            self._halt.stop()
            self._enter(target)

    def stop(self) -> None:
        """Back to before the first step."""
        self.playing, self.at, self.travel = False, -1, 1.0
        self._halt.stop()
        self._frames.stop()
        self.changed.emit()

    def _next(self) -> None:
        if self.at + 1 < self.count:
            self._enter(self.at + 1)
        else:
            self.pause()

    def _enter(self, step: int) -> None:
        self.at = step
        if self.jumps:
            self._arrive()
            return
        self.travel = 0.0
        self._clock.start()
        self._frames.start()
        self.changed.emit()

    def _move(self) -> None:
        share = min(1.0, self._clock.elapsed() / _TRAVEL)
        if share >= 1:
            self._arrive()
            return
        self.travel = share * share * (3 - 2 * share)  # starts and ends gently
        self.changed.emit()

    def _arrive(self) -> None:
        self._frames.stop()
        self.travel = 1.0
        if self.playing:
            self._halt.start(self.halt_ms)
        self.changed.emit()
