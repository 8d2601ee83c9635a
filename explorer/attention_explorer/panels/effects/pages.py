"""What the pages of the panel draw and say of an answer. Pure."""

from __future__ import annotations

import numpy as np

from attention_explorer.colour_maps import ColourTable
from attention_explorer.panels.effects.diverging_grid import diverging_grid
from attention_explorer.panels.effects.lens_shown import lens_grid, lens_sentence
from attention_explorer.panels.effects.patch_shown import patch_grid, patch_sentence
from attention_explorer.panels.effects.questions import View
from attention_explorer.panels.effects.value_grid import Grid
from attention_explorer.panels.effects.wording import aim_words, in_unit, layer_name, plain, site_labels
from attention_explorer.panels.selected_head import name_of_head
from attention_explorer.widgets.number_text import MINUS, percent_text, signed, value_text
from attention_models.protocol.attribution import AttributionView
from attention_models.protocol.effects import EffectsView
from attention_models.protocol.explanation import ACCOUNTS, ExplanationView
from attention_models.protocol.information import Unit
from attention_models.protocol.lens import LensView
from attention_models.protocol.patching import PatchView
from attention_models.protocol.running import Ran
from attention_models.protocol.values import SiteRef

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
