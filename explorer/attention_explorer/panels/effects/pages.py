"""What the pages of the panel draw and say of an answer. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from attention_explorer.look.colour_maps import ColourTable
from attention_explorer.panels.effects.questions import View, aim_words, in_unit, layer_name, plain, site_labels
from attention_explorer.panels.effects.value_grid import Grid
from attention_explorer.panels.selected_head import name_of_head
from attention_explorer.session.effects_choices import Answer
from attention_explorer.widgets.number_text import MINUS, percent_text, signed, value_text
from attention_explorer.widgets.plot.figure import Axis, Figure, Series
from attention_models.protocol.effects import (
    ACCOUNTS,
    BY_POSITION,
    Align,
    AttributionView,
    EffectsView,
    ExplanationView,
    LensView,
    PatchView,
)
from attention_models.protocol.information import Unit
from attention_models.protocol.running import Ran
from attention_models.protocol.values import SiteRef

# What is drawn and said of layers that are read early: words as cells, and the rank of one as a curve. Pure.


_WORD = 58.0  # pixels that a cell with a word in it is wide at least


def lens_grid(view: LensView, ran: Ran, table: ColourTable) -> Grid | None:
    """Layers from the last, at the top, down to the embedding; each cell says its likeliest token."""
    if view.best is None or view.best_share is None or view.target_rank is None or view.labels is None:
        return None
    assert view.targets is not None
    assert view.target_share is not None
    layers, tokens = view.best.shape
    order = range(layers - 1, -1, -1)
    labels = view.labels
    words = tuple(tuple(labels[int(view.best[row, i])] for i in range(tokens)) for row in order)
    names = ("embedding", *(str(layer) for layer in range(layers - 1)))
    tips = tuple(
        tuple(
            f"after {'the embedding' if row == 0 else f'layer {row - 1}'}, at “{ran.tokens[i].word}”: "
            f"“{plain(labels[int(view.best[row, i])])}” {percent_text(float(view.best_share[row, i]))}; "
            f"“{plain(labels[int(view.targets[i])])}” {percent_text(float(view.target_share[row, i]))}, rank "
            f"{int(view.target_rank[row, i]):,}; norm of the stream {value_text(float(view.norms[row, i]))}"
            + ("" if row == 0 else f", of which this layer wrote {value_text(float(view.written[row - 1, i]))}")
            for i in range(tokens)
        )
        for row in order
    )
    return Grid(
        values=view.best_share[::-1].astype(float),
        row_labels=tuple(names[row] for row in order),
        column_labels=tuple(token.word for token in ran.tokens),
        low=0.0,
        high=1.0,
        row_name="layer",
        column_name="token",
        words=words,
        tips=tips,
        least_width=_WORD,
        table=table,
    )


def lens_sentence(view: LensView, ran: Ran, position: int) -> str:
    """How the rank of what is said in the end rises at one position."""
    if view.target_rank is None or view.targets is None or view.labels is None:
        return view.why
    position = min(position, view.target_rank.shape[1] - 1)
    ranks = [int(rank) for rank in view.target_rank[:, position]]
    label = plain(view.labels[int(view.targets[position])])
    norms = view.norms[:, position]
    return (
        f"Rank of “{label}” at “{ran.tokens[position].word}”, from the embedding up: "
        f"{', '.join(f'{rank:,}' for rank in ranks)}. The norm of the stream goes from "
        f"{value_text(float(norms[0]))} to {value_text(float(norms[-1]))}."
    )


def rank_figure(view: LensView, position: int) -> Figure | None:
    """The rank of the followed token at one position, after the embedding and each block; 1 is the likeliest."""
    if view.target_rank is None or view.targets is None or view.labels is None or view.target_share is None:
        return None
    ranks, shares = view.target_rank[:, position].astype(float), view.target_share[:, position].tolist()
    label = plain(view.labels[int(view.targets[position])])

    def place(x: float) -> str:
        where = "the embedding" if x == 0 else f"layer {int(x) - 1}"
        return f"after {where}, probability {percent_text(shares[int(x)])}"

    return Figure(
        Axis("blocks that have run: 0 is the embedding", whole=True, text=place),
        Axis("rank", low=0.8, high=max(10.0, 1.3 * float(ranks.max())), log=True, text=lambda rank: f"{rank:,.0f}"),
        (Series(f"rank of “{label}” (1: the likeliest)", np.arange(len(ranks)), ranks, "query", mark="circle"),),
        names="legend",
    )


def readings(view: LensView, position: int) -> tuple[Answer, ...]:
    """The words that are the likeliest somewhere on the way, from the last layer down: what can be followed."""
    if view.best is None or view.labels is None:
        return ()
    ids = dict.fromkeys(int(id_) for id_ in view.best[::-1, position])
    return tuple(Answer(view.labels[id_], id_) for id_ in ids)


# Cells about 0 with their numbers in them: blue below, red above. Pure.


def _short(value: float) -> str:
    """ "+1.26", "0" for what rounds to it."""
    text = f"{value:+.2f}".replace("-", MINUS)
    return "0" if text[1:] == "0.00" else text


def diverging_grid(
    values: np.ndarray,
    rows: tuple[str, ...],
    columns: tuple[str, ...],
    row_name: str,
    column_name: str,
    tips: Sequence[Sequence[str]],
    least_width: float = 30.0,
) -> Grid:
    high = float(np.nanmax(np.abs(values), initial=0.0)) or 1.0
    padded = tuple(tuple(line) + ("",) * (values.shape[1] - len(line)) for line in tips)
    words = tuple(tuple("" if np.isnan(v) else _short(float(v)) for v in line) for line in values)
    return Grid(
        values=values,
        row_labels=rows,
        column_labels=columns,
        low=-high,
        high=high,
        row_name=row_name,
        column_name=column_name,
        words=words,
        tips=padded,
        least_width=least_width,
        has_numbers=True,
    )


# What is drawn and said of parts of another run that are copied into this one. Pure.


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


LEGENDS = (
    "blue: falls without the head · red: rises",
    "the likeliest answer, by its probability: dark 0, bright 1",
    "red: adds to it · blue: takes from it",
    "red: towards the other text, full colour all the way · blue: away from it",
    "each strip by its own largest: red speaks for it, blue against it; attention, rollout and flow only say how much "
    "· empty: cannot be seen from there",
)
"""What the colours of each page say: heads, lens, sum, patch, tokens."""

Cell = tuple[SiteRef, int]


def grid_of(view: View, ran: Ran, unit: Unit, table: ColourTable) -> Grid | None:
    """The cells of an answer, losses in `unit`, probabilities by `table`; None where there is nothing to draw."""
    match view:
        case EffectsView():
            return heads_grid(in_unit(view, unit), unit)
        case LensView():
            return lens_grid(view, ran, table)
        case AttributionView():
            return sum_grid(view)
        case PatchView():
            return patch_grid(in_unit(view, unit), ran, unit)
        case ExplanationView():
            return tokens_grid(view, ran)


def sentences_of(view: View, ran: Ran, unit: Unit, cell: Cell | None, position: int) -> tuple[str, str]:
    """What is said above the cells, of the selected head or position, and what interventions changed."""
    match view:
        case EffectsView():
            told = in_unit(view, unit)
            return head_sentence(told, cell, unit), before_sentence(told, unit)
        case LensView():
            return lens_sentence(view, ran, position), ""
        case AttributionView():
            return sum_sentence(view), ""
        case PatchView():
            return patch_sentence(in_unit(view, unit), ran, unit), ""
        case ExplanationView():
            return tokens_sentence(view), ""


# --------------------------------------------------------------------------- heads


def heads_grid(view: EffectsView, unit: Unit) -> Grid:
    """Blue: the aim falls without the head. Red: it rises."""
    sites = [at.site for at in view.sites]
    columns = max((len(at.heads) for at in view.sites), default=0)
    values = np.full((len(sites), columns), np.nan)
    for row, at in enumerate(view.sites):
        values[row, : len(at.heads)] = at.heads
    return diverging_grid(
        values, site_labels(sites), tuple(map(str, range(columns))), "layer", "head", _head_tip(view, unit)
    )


def _head_tip(view: EffectsView, unit: Unit) -> list[list[str]]:
    words, sites = aim_words(view.aim, unit), [at.site for at in view.sites]
    return [
        [
            f"{name_of_head(at.site, head, sites)}: without it {words} is "
            f"{value_text(view.aim.value + effect)}, {signed(effect)}"
            for head, effect in enumerate(at.heads.tolist())
        ]
        for at in view.sites
    ]


def head_at(view: EffectsView, row: int, head: int) -> Cell | None:
    if not 0 <= row < len(view.sites) or not 0 <= head < len(view.sites[row].heads):
        return None
    return view.sites[row].site, head


def place_of(view: EffectsView, site: SiteRef | None, head: int) -> tuple[int, int]:
    return next(((row, head) for row, at in enumerate(view.sites) if at.site == site), (-1, -1))


def head_sentence(view: EffectsView, cell: Cell | None, unit: Unit) -> str:
    """What the selected head does, and before all are done how many are."""
    words = aim_words(view.aim, unit)
    if view.done < 1:
        return f"Zeroing one head after the other: {view.done:.0%}. So far, of {words}, {value_text(view.aim.value)}:"
    largest = view.largest
    if largest is None:
        return ""
    said = f"{words[0].upper()}{words[1:]} is {value_text(view.aim.value)}. "
    site, head, change = largest
    sites = [each.site for each in view.sites]
    most = f"Most changes without {name_of_head(site, head, sites)}: {signed(change)}."
    if cell is not None and (site, head) != cell:
        found = view.of(cell[0])
        if found is not None and cell[1] < len(found):
            own = f"Without the selected head ({name_of_head(*cell, sites)}): {signed(float(found[cell[1]]))}."
            return f"{said}{own} {most}"
    return said + most


def before_sentence(view: EffectsView, unit: Unit) -> str:
    """What the interventions that are on changed; "" where none is."""
    now, before, words = view.now, view.before, aim_words(view.aim, unit)
    if before is None:
        return ""
    parts = [
        f"{words} {value_text(before.value)} → {value_text(now.value)}",
        f"likeliest “{plain(before.best_label)}” {percent_text(before.best_share)} → “{plain(now.best_label)}” "
        f"{percent_text(now.best_share)}",
    ]
    if before.loss is not None and now.loss is not None and view.aim.measure != "loss":
        parts.append(f"loss {value_text(before.loss)} → {value_text(now.loss)} {unit}")
    return f"Before the change → now: {'; '.join(parts)}."


# --------------------------------------------------------------------------- sum


def sum_grid(view: AttributionView) -> Grid | None:
    """What every part adds: heads, the bias of W_O, the feed-forward network; the embedding in a row of its own."""
    if view.why or not view.sites:
        return None
    heads = max(len(site.heads) for site in view.sites)
    networks = dict(view.networks)
    values = np.full((len(view.sites) + 1, heads + 2), np.nan)
    for row, site in enumerate(view.sites):
        values[row, : len(site.heads)] = site.heads
        values[row, heads] = site.bias
        if site.site.stack != "cross":
            values[row, heads + 1] = networks.get(site.site, np.nan)
    values[-1, 0] = view.embedding
    sites = [site.site for site in view.sites]
    labels = (*site_labels(sites), "embedding")
    columns = (*map(str, range(heads)), "bias", "network")
    rows = (*(layer_name(site, sites) for site in sites), "")
    tips = [
        [f"{_part_name(row, column)} adds {signed(value)}" for column, value in zip(columns, line, strict=True)]
        for row, line in zip(rows, values.tolist(), strict=True)
    ]
    return diverging_grid(values, labels, columns, "layer", "head", tips, least_width=44.0)


def _part_name(layer: str, column: str) -> str:
    """ "layer 5, head 3"; of no layer the embedding."""
    if not layer:
        return "the embedding"
    names = {"bias": "the bias of W_O", "network": "the feed-forward network"}
    return f"{layer}, {names.get(column, f'head {column}')}"


def sum_sentence(view: AttributionView) -> str:
    if view.why:
        return view.why
    attention = sum(site.total for site in view.sites)
    networks = sum(value for _, value in view.networks)
    biases = "biases on the way" if view.held else "biases of the last norm and head"
    held = f" {view.held}" if view.held else ""
    words, remainder = aim_words(view.aim), f"{view.remainder:.1e}".replace("-", MINUS)
    return (
        f"{words[0].upper()}{words[1:]} is {value_text(view.aim.value)}: embedding {signed(view.embedding)}, attention "
        f"{signed(attention)}, feed-forward networks {signed(networks)}, {biases} "
        f"{signed(view.constant)}; remainder {remainder}.{held}"
    )


# --------------------------------------------------------------------------- tokens


def tokens_grid(view: ExplanationView, ran: Ran) -> Grid:
    """A strip for each account, its largest absolute value in full colour; a token that cannot be seen stays empty."""
    count = len(ran.tokens)
    values = np.full((len(view.accounts), count), np.nan)
    tips: list[list[str]] = []
    for row, account in enumerate(view.accounts):
        if account.values is None:
            tips.append([account.why] * count)
            continue
        high = float(np.abs(account.values).max(initial=0.0)) or 1.0
        values[row] = np.where(view.reached, account.values / high, np.nan)
        tips.append(
            [
                f"{ACCOUNTS[account.name]} of “{token.word}”: {value_text(float(account.values[i]))}"
                for i, token in enumerate(ran.tokens)
            ]
        )
    labels = tuple(_account_label(view, row) for row in range(len(view.accounts)))
    return Grid(
        values=values,
        row_labels=labels,
        column_labels=tuple(token.word for token in ran.tokens),
        low=-1.0,
        high=1.0,
        tips=tuple(map(tuple, tips)),
        least_width=34.0,
    )


def _account_label(view: ExplanationView, row: int) -> str:
    name = ACCOUNTS[view.accounts[row].name]
    rho = float(view.correlations[row, 0])
    return name if row == 0 or np.isnan(rho) else f"{name}, ρ {rho:.2f}".replace("-", MINUS)


def tokens_sentence(view: ExplanationView) -> str:
    words = aim_words(view.aim)
    return (
        f"What each token has to do with {words}, {value_text(view.aim.value)}. ρ: rank correlation with attention. "
        "Where accounts differ, none of them is the explanation."
    )
