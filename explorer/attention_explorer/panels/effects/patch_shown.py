"""What is drawn and said of parts of another run that are copied into this one. Pure."""

from __future__ import annotations

from dataclasses import replace

from attention_explorer.panels.effects.diverging_grid import diverging_grid
from attention_explorer.panels.effects.value_grid import Grid
from attention_explorer.panels.effects.wording import aim_words, layer_name, plain, site_labels
from attention_explorer.widgets.number_text import value_text
from attention_models.protocol.information import Unit
from attention_models.protocol.patching import BY_POSITION, Align, PatchView
from attention_models.protocol.running import Ran

ALIGNED: dict[Align, str] = {
    "same": "",
    "start": "Tokens are counted from the start, as if the shorter text were padded at its end",
    "end": "Tokens are counted from the end",
    "tokens": "Equal tokens stand for each other, in order; so do those between them where they are as many",
}


def patch_grid(view: PatchView, ran: Ran, unit: Unit) -> Grid | None:
    """0 is this run, 1 the other: blue moves away from it, red towards. Which token stands for which is said above."""
    if view.why:
        return None
    shares = view.shares
    by_position = view.request.kind in BY_POSITION
    columns = tuple(t.word for t in ran.tokens) if by_position else tuple(map(str, range(shares.shape[1])))
    there = _standing_for(view)
    words = aim_words(view.aim, unit)
    names = [f"head {column}" for column in columns]
    if by_position:
        pairs = zip(columns, there, strict=True)
        names = [f"“{column}” from “{other}”" if other else f"“{column}”" for column, other in pairs]
    tips = [
        [
            f"{layer_name(row, view.rows)}, {name}: patched, {words} is {value_text(float(value))}"
            for name, value in zip(names, line, strict=True)
        ]
        for row, line in zip(view.rows, view.values, strict=True)
    ]
    least_width = 40.0 if by_position else 30.0
    grid = diverging_grid(
        shares, site_labels(view.rows), columns, "layer", "token" if by_position else "head", tips, least_width
    )
    high = max(1.0, grid.high)
    cells = tuple(tuple("" if word == "0" else word for word in line) for line in grid.words)
    grid = replace(grid, low=-high, high=high, words=cells)
    if not by_position or view.request.align == "same":
        return grid
    return replace(grid, second_labels=there, second_name="other")


def _standing_for(view: PatchView) -> tuple[str, ...]:
    """Of each token the one of the other text that stands for it; "" where none does."""
    return tuple("" if place is None else plain(view.other_labels[place]) for place in view.stands_for)


def patch_sentence(view: PatchView, ran: Ran, unit: Unit) -> str:
    if view.why:
        return view.why
    words = aim_words(view.aim, unit)
    here, there = value_text(view.aim.value), value_text(view.other_value)
    coming = "" if view.done == 1 else f" {view.done:.0%} done."
    return (
        f"{words[0].upper()}{words[1:]} is {here} here and {there} in the other text. {_alignment(view, ran)}One place "
        f"after the other is copied from there.{coming}"
    )


def _alignment(view: PatchView, ran: Ran) -> str:
    """What was done about texts of different length; "" where they are of one."""
    how = ALIGNED[view.request.align]
    if not how:
        return ""
    found = sum(place is not None for place in view.stands_for)
    return f"{how}: {found} of {len(ran.tokens)} have one of the other text. "
