"""Keys and values: what is stored, what this step reused and computed."""

from __future__ import annotations

from collections import Counter

from PySide6.QtWidgets import QWidget

from attention_explorer.panels.decoding.cache_view import CacheBar, CacheView
from attention_explorer.panels.decoding.layout import column, count, say
from attention_explorer.widgets.page import wrapped
from attention_models.files.memory import in_bytes
from attention_models.protocol.decoding import DecodeStepView


class CachePage(QWidget):
    """Keys and values that are kept, so that each step computes those of one token only."""

    def __init__(self) -> None:
        super().__init__()
        self.bars = CacheView()
        self.words = wrapped()
        self.sharing = wrapped(role="dim")
        column(self, self.words, self.bars, self.sharing)

    def show_step(self, view: DecodeStepView | None, silent: bool = False) -> None:
        """Show what is kept after a step; a `silent` model takes none."""
        self.bars.set_empty_text("" if silent else _empty_text(view))
        layers = view.cache if view is not None else ()
        several = len({layer.stack for layer in layers}) > 1
        self.bars.set_bars(
            [
                CacheBar(
                    label=f"{'Source, layer' if layer.stack == 'cross' else 'Layer'} {layer.layer}"
                    if several
                    else f"Layer {layer.layer}",
                    reused=layer.reused,
                    computed=layer.computed,
                    stored=layer.stored,
                    text=in_bytes(layer.bytes),
                    heads=layer.heads,
                    key_heads=layer.key_heads,
                )
                for layer in layers
            ]
        )
        say(self.words, cache_text(view) if view is not None else "")
        say(self.sharing, sharing_text(view) if view is not None else "")


def _empty_text(view: DecodeStepView | None) -> str:
    if view is None:
        return "Press Step: what the model keeps for the next step appears here."
    if view.prevents_caching is not None:
        return "Nothing is kept: under this mask each token that is written changes what was computed of the others."
    if view.place is not None:
        return "A masked model keeps nothing: each word that comes in changes every other."
    if view.cache_bytes:
        return "No keys and values: a recurrent model goes on from its state, and from what its encoder has read."
    return "Nothing is kept: this model reads the whole text again at each step."


def cache_text(view: DecodeStepView) -> str:
    if not view.cache:
        return f"{in_bytes(view.cache_bytes)} are kept for the next step." if view.cache_bytes else ""
    own = [layer for layer in view.cache if layer.stack != "cross"] or list(view.cache)
    first, layers = own[0], count(len(own), "layer")
    several = f", of {first.texts} texts side by side" if first.texts > 1 else ""
    stored = f"{in_bytes(view.cache_bytes)} of keys and values are stored{several}. This step "
    reused = Counter(layer.reused for layer in own)
    if len(reused) == 1:
        said = f"reused those of {count(first.reused, 'token')} and computed those of"
        words = f"{stored}{said} {count(first.computed, 'token')}, in each of {layers}."
    else:
        most, *fewer = sorted(reused.items(), reverse=True)
        parts = [f"{count(most[0], 'token')} in {count(most[1], 'layer')}"]
        parts += [f"of {tokens:,} in {many}" for tokens, many in fewer]
        said = f"computed those of {count(first.computed, 'token')} and reused those of"
        words = f"{stored}{said} {', '.join(parts[:-1])} and {parts[-1]}."
    forgetful = min(own, key=lambda layer: layer.stored)
    if forgetful.stored < forgetful.reused + forgetful.computed:
        words += f" A layer that looks through a sliding window keeps the last {forgetful.stored:,}."
    return words


def sharing_text(view: DecodeStepView) -> str:
    """How many query heads read one stored head."""
    if not view.cache:
        return ""
    layer = view.cache[0]
    if layer.heads == layer.key_heads:
        return (
            f"Blue: reused, orange: computed now. Each of the {layer.heads} query heads has keys and values of its own."
        )
    return (
        f"Blue: reused, orange: computed now. {layer.heads} query heads share {count(layer.key_heads, 'stored head')} "
        f"(squares that touch): the cache is {layer.heads / layer.key_heads:g} times smaller."
    )
