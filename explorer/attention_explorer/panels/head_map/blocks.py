"""The blocks of a head's map where two texts were read together: A to A, A to B, B to A and B to B."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal

from attention_explorer.panels.head_map.choice_box import ChoiceBox
from attention_explorer.session.view_options import Block
from attention_explorer.widgets.heat_map.bands import Band, Bands, caption
from attention_models.protocol.running import Ran
from attention_models.protocol.values import Site, Token, site_tokens
from attention_models.protocol.word_spans import Words

NAMES = "AB"
"""What the first text is called on a map, and what the second."""

_CHOICES: tuple[Block, ...] = ("all", "aa", "ab", "ba", "bb")
_TIP = "Show one block alone: which text attends (A is the first), and to which"


def bands_of(ran: Ran, site: Site, words: tuple[Words, Words] | None = None) -> Bands:
    """The texts along both axes of the maps of `site`; none along an axis of a single text.

    Of a map of words, `words` are those of the queries and of the keys.
    """
    queries, keys = site_tokens(ran, site)
    rows, columns = _bands(queries, site.queries), _bands(keys, site.keys)
    if words is not None:
        rows, columns = (_in_words(bands, of) for bands, of in zip((rows, columns), words, strict=True))
    return Bands(rows, columns)


def _bands(tokens: tuple[Token, ...], count: int) -> tuple[Band, ...]:
    second = [i for i, token in enumerate(tokens) if token.segment == 1]
    if not second or len(tokens) != count:
        return ()
    return Band(NAMES[0], range(second[0])), Band(NAMES[1], range(second[0], second[-1] + 1))


def _in_words(bands: tuple[Band, ...], words: Words) -> tuple[Band, ...]:
    return tuple(
        Band(band.name, range(words.word(band.cells.start), words.word(band.cells.stop - 1) + 1)) for band in bands
    )


def cells_of(bands: Bands, block: Block, queries: int, keys: int) -> tuple[range, range] | None:
    """The (queries, keys) of a block; None for the whole map. An axis of a single text is shown whole."""
    if block == "all" or not (bands.rows or bands.columns):
        return None
    row, column = ("ab".index(letter) for letter in block)
    return (
        bands.rows[row].cells if bands.rows else range(queries),
        bands.columns[column].cells if bands.columns else range(keys),
    )


class BlockBox(ChoiceBox):
    """Chooses the block that is shown; hidden while there are none."""

    chosen = Signal(str)  # a `Block`

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Block of the map")
        self.setToolTip(_TIP)
        self._bands: Bands | None = None
        self.activated.connect(lambda i: self.chosen.emit(self.itemData(i)))
        self.hide()

    def show_blocks(self, bands: Bands, block: Block) -> None:
        """Offer the blocks of these texts, with `block` as the one that is shown."""
        if bands != self._bands:
            self._bands = bands
            self.clear()
            for choice in _CHOICES:
                text = _name(bands, choice)
                if self.findText(text) < 0:  # an axis of a single text has no choice
                    self.addItem(text, choice)
                    self.setItemData(self.count() - 1, _meaning(bands, choice), Qt.ItemDataRole.ToolTipRole)
        self.setVisible(bool(bands.rows or bands.columns))
        self.setCurrentIndex(self.findText(_name(bands, block)))


def _name(bands: Bands, block: Block) -> str:
    if block == "all":
        return "All blocks"
    row, column = (NAMES["ab".index(letter)] for letter in block)
    return caption(row if bands.rows else "", column if bands.columns else "")


def _meaning(bands: Bands, block: Block) -> str:
    if block == "all":
        return "The whole map"
    words = {"a": "first text", "b": "second text"}
    looks = f"the {words[block[0]]}" if bands.rows else "the other side"
    return f"From {looks} to the {words[block[1]]}" if bands.columns else f"From {looks}"
