"""Which boxes of a block can be switched off, and which intervention that is. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from attention_models.protocol.ablation import Ablation
from attention_models.protocol.flow import BlockView, Box, FeedForwardBox, HeadsBox, NormBox, OutputBox
from attention_models.protocol.interventions import Intervention
from attention_models.protocol.values import SiteRef

_PARTS = {"attention": "attention", "cross": "cross", "feed_forward": "mlp"}


def skips_of(view: BlockView) -> dict[int, Ablation]:
    """Of each box that can be switched off what takes it away: sublayers once, norms where they learned a gain."""
    skips: dict[int, Ablation] = {}
    block = SiteRef(view.request.stack, view.request.layer)
    norms = 0
    for number, box in enumerate(view.boxes):
        if isinstance(box, NormBox):
            norms += 1
            if box.gain is not None or box.off:
                skips[number] = Ablation(f"norm{norms}", block)
        elif _closes(view.boxes, number) and box.part in _PARTS:
            skips[number] = Ablation(_PARTS[box.part], block)
    return skips


def _closes(boxes: tuple[Box, ...], number: int) -> bool:
    """Whether a box is the last one of its sublayer that stands for the sublayer as a whole."""
    box = boxes[number]
    if isinstance(box, (FeedForwardBox, OutputBox)):
        return True
    has_output = any(isinstance(each, OutputBox) and each.part == box.part for each in boxes)
    return isinstance(box, HeadsBox) and not has_output


def labels_of(skips: dict[int, Ablation], on: Iterable[Intervention]) -> dict[int, str]:
    """What the switches say, while the interventions `on` act."""
    off = {(skip.part, skip.site) for skip in on if isinstance(skip, Ablation) and not skip.on}
    return {number: "Switch on" if (skip.part, skip.site) in off else "Switch off" for number, skip in skips.items()}
