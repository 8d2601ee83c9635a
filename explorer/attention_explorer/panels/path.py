"""The way from the whole model to one number, as the selection stands: for the line above panels. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from attention_explorer.panels.selected_head import site_words, token_word
from attention_explorer.session.state import State
from attention_explorer.session.view_options import Distance

_ATTENTION = {"encoder": "attention", "decoder": "attention", "cross": "cross-attention"}


PathEnd = Literal["model", "block", "attention", "head", "cell"]
"""What a step shows."""

_PANELS: dict[PathEnd, str] = {"model": "flow", "block": "flow", "attention": "flow", "head": "map", "cell": "cell"}
_DISTANCES: dict[PathEnd, Distance] = {"model": "model", "block": "block", "attention": "attention"}


@dataclass(frozen=True, slots=True)
class PathStep:
    """One step of the way."""

    end: PathEnd
    label: str
    tooltip: str

    @property
    def panel(self) -> str:
        """The panel that shows it."""
        return _PANELS[self.end]

    @property
    def distance(self) -> Distance | None:
        """How near the picture of the model is there; None for what another panel shows."""
        return _DISTANCES.get(self.end)


def path_of(state: State) -> tuple[PathStep, ...]:
    """From the model to the selected cell, as much of it as there is; none before a model is open."""
    loaded, ran, site = state.results.loaded, state.ran, state.site
    if loaded is None:
        return ()
    steps = [PathStep("model", loaded.info.name, "The whole model in one picture")]
    if ran is None or site is None:
        return tuple(steps)
    if not loaded.info.textbook:
        several = len({each.stack for each in ran.sites}) > 1
        stack = "encoder " if site.stack == "encoder" else "decoder "
        block = f"{stack if several else ''}block {site.layer}"
        steps.append(PathStep("block", block, "This block, box by box, for the selected token"))
        steps.append(PathStep("attention", _ATTENTION[site.stack], "Its attention as matrices, step by step"))
    steps.append(PathStep("head", f"head {state.selection.head}", "The weights of this head"))
    query, (_, keys) = token_word(state, state.selection.query), site_words(ran, site)
    key = keys[state.selection.key] if state.selection.key < len(keys) else ""
    steps.append(PathStep("cell", f"cell “{query}”, “{key}”", "The arithmetic of this weight"))
    return tuple(steps)
