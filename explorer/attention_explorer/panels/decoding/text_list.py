"""The list of texts that are written side by side: beams, best first, or samples. One of them is in view."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from attention_explorer.panels.decoding.branch_list import BranchList, BranchRow
from attention_explorer.panels.decoding.layout import column, log_text, plain, ranked_text, say, score
from attention_explorer.panels.decoding.side_by_side import SideText
from attention_explorer.widgets.number_text import MINUS
from attention_explorer.widgets.page import wrapped
from attention_models.protocol.decoding_settings import DecodeSettings
from attention_models.protocol.information import Unit, from_nats

_BEAMS = "Beams, the best first{}, the number beside each. Pick one to look at:"
_SAMPLES = "Samples, each with its own draws. Pick one to look at:"
_OTHER_SEARCH = "Made with {}. Step begins another search, with what is set now."
_OTHER_SAMPLES = "Made with {}. Step goes on from here with what is set now."


class TextList(QWidget):
    """Hidden where only one text is written."""

    text_picked = Signal(int)  # the `id` of its `SideText`

    def __init__(self) -> None:
        super().__init__()
        self.heading = wrapped(role="dim")
        self.list = BranchList("Texts side by side")
        self.otherwise = wrapped(role="mark")
        column(self, self.otherwise, self.heading, self.list)
        self._ids: tuple[int, ...] = ()
        self.list.row_selected.connect(lambda row: self.text_picked.emit(self._ids[row]))

    def show_texts(
        self, texts: Sequence[SideText], search: DecodeSettings | None, unit: Unit, made_with: str = ""
    ) -> None:
        """Beams of a search with these settings, or samples. `made_with` says it where the settings are others now."""
        beams = search is not None
        otherwise = _OTHER_SEARCH if beams else _OTHER_SAMPLES
        say(self.otherwise, otherwise.format(made_with) if made_with else "")
        self.setVisible(bool(texts))
        self._ids = tuple(text.id for text in texts)
        say(self.heading, _SAMPLES if search is None else _BEAMS.format(_ranked(search.length_penalty)))
        self.list.set_rows(
            [
                BranchRow(
                    text=_words(text, beams),
                    depth=0,
                    value=_number(text, search, unit),
                    on_path=text.is_shown,
                    current=text.is_shown,
                    tooltip=_tooltip(text, search, unit),
                )
                for text in texts
            ]
        )


def _number(text: SideText, search: DecodeSettings | None, unit: Unit) -> str:
    """What beams are ranked by; of samples, which are not, the log-probability."""
    if search is None or not text.length:
        return log_text(text.log_probability, unit)
    return log_text(score(text.log_probability, text.length, search), unit)


def _tooltip(text: SideText, search: DecodeSettings | None, unit: Unit) -> str:
    exact = f"{from_nats(text.log_probability, unit):.4f} {unit}".replace("-", MINUS)
    ranked = ""
    if search is not None and search.length_penalty != 0 and text.length > 0:
        ranked = f", ranked by {ranked_text(text.log_probability, text.length, search, unit)}"
    ended = ". Ended" if text.ended else ""
    return f"“{plain(text.text)}”: log-probability {exact}{ranked}{ended}"


def _ranked(length_penalty: float) -> str:
    """By what."""
    if length_penalty == 0:
        return " by log-probability"
    length = (
        "the length" if length_penalty == 1 else f"the length to the power of {length_penalty:g}".replace("-", MINUS)
    )
    return f" by log-probability / {length}"


def _words(text: SideText, beams: bool) -> str:
    marks = [mark for mark, holds in (("best", text.is_best), ("ended", text.ended)) if holds]
    number = "" if beams else f"{text.id + 1}: "
    return f"{number}{plain(text.text)}" + (f"  ({', '.join(marks)})" if marks else "")
