"""Where Play goes: up through the model, through the selected block box by box, and on to what is said. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from attention_explorer.panels.flow.box_text import Around
from attention_explorer.panels.flow.flow_sentences import (
    block_sentence,
    box_sentence,
    input_sentence,
    output_sentence,
    recurrent_sentence,
)
from attention_explorer.panels.flow.model_scene import NOWHERE, ModelScene, OutputGroup, Place
from attention_explorer.panels.flow.recurrent_scene import RecurrentScene
from attention_models.protocol.flow import BlockView


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
