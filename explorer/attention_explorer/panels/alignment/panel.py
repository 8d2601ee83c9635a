"""Which source words the decoder attended to as it wrote each target word: cross-attention as ribbons and a table."""

from __future__ import annotations

import math

import numpy as np
from PySide6.QtWidgets import QLabel, QWidget

from attention_explorer.panels.about import About
from attention_explorer.panels.alignment.ribbons import Ribbons
from attention_explorer.panels.base import Panel
from attention_explorer.panels.selected_head import (
    NEXT,
    by_words,
    selected_head_request,
    site_word_labels,
    site_words,
    words_written,
)
from attention_explorer.session.defaults import default_selection
from attention_explorer.session.hidden import WEIGHTS
from attention_explorer.session.hover import NOTHING, Hover, Pointed
from attention_explorer.session.intents import OpenCheckpoint, SelectCell, SelectHead, SelectKey, SelectQuery
from attention_explorer.session.session import Session
from attention_explorer.session.state import State
from attention_explorer.widgets.card import Card
from attention_explorer.widgets.choices_kept import number_choice
from attention_explorer.widgets.number_text import counted, percent_text
from attention_explorer.widgets.page import PageOrInvitation, page_of, wrapped
from attention_explorer.widgets.segments import Segments
from attention_explorer.widgets.token_text import shortened
from attention_explorer.widgets.weight_table import WeightCell, WeightRow, WeightTable
from attention_models.protocol.alignment import AlignmentRequest, AlignmentView
from attention_models.protocol.head import HeadView, RowView
from attention_models.protocol.request import Request
from attention_models.protocol.running import Ran
from attention_models.protocol.values import CheckpointInfo
from attention_models.protocol.word_spans import MERGED, Words

_WHAT = (
    "Which words of the source the decoder looked at as it wrote each word of the target: its cross-attention "
    "as ribbons."
)
_TRY_ONE = "Try: click a word of the target above the table, and see where its ribbons go."
_TRY = f"{_TRY_ONE[:-1]}; then All heads, for the mean over all of them."


def about(state: State, sentence: str, view: AlignmentView | None) -> About:
    """`sentence` is what the panel says of the selected word, `view` what it shows."""
    loaded, ran = state.results.loaded, state.ran
    if loaded is not None and all(stack.stack != "cross" for stack in loaded.info.stacks):
        told = "The open model has no attention from a target to a source, so there is nothing to align."
        return About((told, _WHAT), "Try: press the button, which opens a model that translates.")
    heads = 0 if ran is None else sum(site.heads for site in ran.sites if site.stack == "cross")
    try_ = _TRY_ONE if heads == 1 else _TRY
    if ran is None or view is None or view.request.run != ran.run:
        return About((_WHAT, "The ribbons appear when the model has run."), try_)
    what, rows = "word" if view.request.words else "token", len(view.weights)
    counts = (
        f"{counted(rows, what)} of the target over {counted(view.weights.shape[1], what)} of the source, and "
        f"each row sums to 1. Shown is the {view.description}."
    )
    return About.of((_WHAT, counts, sentence), try_)


TRANSLATOR = "en-es"
_WRITTEN = TRANSLATOR.replace("-", "\N{NON-BREAKING HYPHEN}")  # in a sentence its name stays on one line
HEAD, LAYER, ALL = range(3)
_CHOICES = (
    ("This head", "The weights of the selected cross-attention head"),
    ("Layer mean", "The mean over the heads of the selected cross-attention layer"),
    ("All heads", "The mean over every cross-attention head of the model"),
)
_INVITATION = (
    f" Open {_WRITTEN}, which translates English into Spanish, to see which English words it looked at as it wrote "
    "each Spanish word."
)
_ONE_TEXT = "This model reads one text, and an alignment needs two." + _INVITATION
_NO_ATTENTION = "This model has no attention from its target to its source: no weights say what belongs together."
_EMPTY = "The ribbons between source and target appear here when the model has run."
_OTHER_STACK = (
    "The selected head looks within one sentence, so this is the mean over all cross-attention heads. Choose one under "
    "Cross in All heads, or click a word here."
)
_READING = (
    "A reading of the weights: where the model looked most as it wrote a word, not why it chose it. The weights that "
    "wrote a word are those of the row before it, since each position predicts the next word."
)
_READING_TYPED = (
    "This target was typed: the model is made to say it, and gives each word a probability. The weights are where it "
    "looked most when that word was due, those of the row before it, since each position predicts the next word."
)
_LISTED = 3  # source words named in the sentence
_LEAST = 0.05


class AlignmentPanel(Panel):
    api_version = 1
    name = "alignment"
    title = "Align"
    hint = "Which words of the source the model looked at as it wrote each word of the target, and how likely that was."
    shows = WEIGHTS | {"next", "gradient"}
    reads = ("selection", "site", "document.view", AlignmentView, HeadView, RowView)

    @classmethod
    def suits(cls, info: CheckpointInfo) -> bool:
        return info.family == "seq2seq" and bool(info.stacks)

    @classmethod
    def leads(cls, info: CheckpointInfo) -> bool:
        return info.family == "seq2seq" and not info.textbook

    def __init__(self, session: Session, hover: Hover, parent: QWidget | None = None) -> None:
        super().__init__(session, hover, parent)
        self._mode = HEAD
        self._shown: AlignmentView | None = None
        self._axes = (Words.alone(0), Words.alone(0))  # what rows and columns are made of: tokens of target and source
        self._names: tuple[list[str], list[str]] = ([], [])  # the source's words, and what each row wrote
        self.modes = Segments(_CHOICES, "Which heads")
        self.modes.chosen.connect(self.show_mode)
        self.keep("heads", number_choice(lambda: self._mode, self.show_mode, range(len(_CHOICES))))
        self.note = wrapped(_OTHER_STACK, "dim")
        self.sentence = wrapped(role="title")
        self.ribbons = Ribbons()
        self.ribbons.set_empty_text(_EMPTY)
        self.ribbons.target_selected.connect(self._on_target)
        self.ribbons.source_selected.connect(self._on_source)
        self.ribbons.hovered.connect(self._on_hovered)
        self.heading = QLabel("Word by word")
        self.heading.setProperty("role", "title")
        self.table = WeightTable(("likely · weight",), "target", "looked most at")
        self.table.row_selected.connect(self._on_row)
        self.reading = wrapped(_READING, "dim")
        parts = (self.modes, self.note, self.sentence, self.ribbons, self.heading, self.table, self.reading)
        self.pages = PageOrInvitation(page_of(*parts), f"Open {TRANSLATOR}")
        self.pages.asked.connect(lambda: self.dispatch(OpenCheckpoint(TRANSLATOR)))
        self.card = Card("Alignment")
        self.card.set_content(self.pages)
        self.fill(self.card)

    # what it shows

    def show_mode(self, mode: int) -> None:
        """One head, the mean over its layer, or over all heads."""
        self._mode = mode
        self.modes.choose(self._mode_of(self.session.state))
        if self.isVisible():
            self._refresh()

    def _mode_of(self, state: State) -> int:
        """The mode that can be shown: without a cross-attention head selected there is only the mean over all."""
        return self._mode if _looks_across(state) else ALL

    def wants(self, state: State) -> Request | None:
        ran, site = state.ran, state.site
        if ran is None or not _aligns(ran):
            return None
        mode = self._mode_of(state)
        ref = site.ref if site is not None and mode != ALL else None
        head = state.selection.head if mode == HEAD else None
        return AlignmentRequest(run=ran.run, site=ref, head=head, words=by_words(state))

    def prints(self, state: State) -> Request | None:
        is_one = self._mode_of(state) == HEAD and state.site is not None and state.site.stack == "cross"
        return selected_head_request(state) if is_one else None

    def render_state(self, state: State, old: State | None) -> None:
        loaded, view, ran = state.results.loaded, state.results.of(AlignmentView), state.ran
        nothing_across = loaded is not None and all(stack.stack != "cross" for stack in loaded.info.stacks)
        if nothing_across:
            two_texts = loaded is not None and loaded.info.family == "seq2seq"
            self.pages.invite(_NO_ATTENTION + _INVITATION if two_texts else _ONE_TEXT)
        else:
            self.pages.show_page()
        self.pages.button.setEnabled(state.loading is None)
        across = _looks_across(state)
        self.modes.choose(self._mode_of(state))
        for mode in (HEAD, LAYER):
            self.modes.button(mode).setEnabled(across)
        self.note.setVisible(ran is not None and not across)
        if view is None or ran is None:
            self._show_nothing()
            return
        if view.request.run != ran.run:
            return  # the last picture stays until the new one is here
        if view is not self._shown:
            self._show(view, ran)
        targets, sources = self._axes
        target = targets.word(state.selection.query) if across else -1
        source = sources.word(state.selection.key) if across else -1
        self.ribbons.set_selection(target, source)
        self.table.set_row(target)
        is_typed = ran.inputs.target is not None
        said = sentence(view.weights, *self._names, target, is_typed)
        self.sentence.setText(said + _chance(view.likelihoods, target))
        self.reading.setText(_READING_TYPED if is_typed else _READING)
        self.sentence.setVisible(bool(self.sentence.text()))

    def about(self, state: State) -> About:
        return about(state, self.sentence.text(), self._shown)

    def _show_nothing(self) -> None:
        self._shown = None
        self._axes = (Words.alone(0), Words.alone(0))
        self.ribbons.set_alignment(None, (), ())
        self.table.set_rows(())
        self.card.set_subtitle("")
        for part in (self.sentence, self.heading, self.table, self.reading):
            part.hide()

    def _show(self, view: AlignmentView, ran: Ran) -> None:
        self._shown = view
        self._axes = _axes(ran, view.request.words)
        sources, targets = self._names = words(ran, view.request.words)
        rows = row_names(ran, view.request.words)
        self.ribbons.set_alignment(view.weights, sources, rows)
        best = view.weights.argmax(axis=1)
        self.table.set_rows(
            [
                WeightRow(
                    name=row,
                    value=f"← {sources[source]}",
                    cells=(WeightCell(float(weights[source]), f"{weights[source]:.2f}", _likely(likelihood)),),
                    tooltip=f"“{target}” {_came(target, ran)} {weights[source]:.6f} of the weight on "
                    + f"“{sources[source]}”"
                    + (f"; the model gave it {_likely(likelihood)}" if _likely(likelihood) else ""),
                )
                for row, target, source, weights, likelihood in zip(
                    rows, targets, best, view.weights, view.likelihoods.tolist(), strict=True
                )
            ]
        )
        self.card.set_subtitle(f"{view.description} · {MERGED}" if view.request.words else view.description)
        for part in (self.heading, self.table, self.reading):
            part.show()

    def render_hover(self, pointed: Pointed) -> None:
        if _looks_across(self.session.state):
            targets, sources = self._axes
            self.ribbons.set_hover(targets.word(pointed.query), sources.word(pointed.key))

    # what a person does

    def _on_hovered(self, target: int, source: int) -> None:
        if _looks_across(self.session.state):
            query, key = self._tokens_at(target, source)
            self.hover.point(NOTHING if target < 0 and source < 0 else Pointed(query=query, key=key))

    def _tokens_at(self, target: int, source: int) -> tuple[int, int]:
        """The first token of a target's and of a source's word; -1 for none."""
        starts = (axis.starts for axis in self._axes)
        query, key = (first[word] if word >= 0 else -1 for first, word in zip(starts, (target, source), strict=True))
        return query, key

    def _on_target(self, target: int) -> None:
        self._select_across()
        self.dispatch(SelectQuery(self._tokens_at(target, -1)[0]))

    def _on_source(self, source: int) -> None:
        self._select_across()
        self.dispatch(SelectKey(self._tokens_at(-1, source)[1]))

    def _on_row(self, row: int) -> None:
        if self._shown is not None:
            best = int(self._shown.weights[row].argmax())
            self._select_across()
            self.dispatch(SelectCell(*self._tokens_at(row, best)))

    def _select_across(self) -> None:
        """Select a cross-attention head, so that a word of either text can be selected."""
        state = self.session.state
        if state.ran is None or _looks_across(state):
            return
        default = default_selection(state.ran, state.document.checkpoint)
        across = [site.ref for site in state.ran.sites if site.stack == "cross"]
        site, head = (default.site, default.head) if default.site in across else (across[-1], 0)
        if site is not None:
            self._mode = ALL  # what is on screen stays
            self.dispatch(SelectHead(site, head))


def _aligns(ran: Ran) -> bool:
    return any(site.stack == "cross" for site in ran.sites)


def _looks_across(state: State) -> bool:
    return state.site is not None and state.site.stack == "cross"


def _axes(ran: Ran, merged: bool) -> tuple[Words, Words]:
    """What rows and columns of an alignment are made of: tokens of the target and of the source."""
    if merged:
        return Words.written(ran.tokens), Words.of(ran.source)
    return Words.alone(len(ran.tokens)), Words.alone(len(ran.source))


def words(ran: Ran, merged: bool = False) -> tuple[list[str], list[str]]:
    """The source's words, and for each row of an alignment the word that it wrote: the one after the row's own.

    Tokens are words here, unless their pieces are `merged`.
    """
    return _site_names(ran, merged)[1], words_written(ran, merged)


def row_names(ran: Ran, merged: bool = False) -> list[str]:
    """What each row is called, as in the head map: "El → gato"."""
    return _site_names(ran, merged)[0]


def _site_names(ran: Ran, merged: bool) -> tuple[list[str], list[str]]:
    site = next(site for site in ran.sites if site.stack == "cross")
    return site_word_labels(ran, site) if merged else site_words(ran, site)


def _came(target: str, ran: Ran) -> str:
    if target == NEXT:
        return "will be written with"
    return "was written with" if ran.inputs.target is None else "was due with"


def sentence(weights: np.ndarray, sources: list[str], targets: list[str], target: int, is_typed: bool = False) -> str:
    """ "The weights with which the model wrote “gato”: 81 % on “cat”, 7 % on “is”."; "" for no target word.

    Of a target that `is_typed` the model wrote nothing.
    """
    if not 0 <= target < len(targets):
        return ""
    row = weights[target]
    named = [int(i) for i in np.argsort(-row, kind="stable")[:_LISTED] if row[i] >= _LEAST]
    if not named:
        largest = float(row.max())
        return f"{_begins(targets[target], is_typed)} are spread thin: {100 * largest:.0f} % on one word at most."
    listed = ", ".join(f"{100 * row[i]:.0f} % on “{shortened(sources[i])}”" for i in named)
    return f"{_begins(targets[target], is_typed)}: {listed}."


def _chance(likelihoods: np.ndarray, target: int) -> str:
    """ " It was 83 % likely." of the word that row `target` wrote; "" where it wrote none."""
    known = 0 <= target < len(likelihoods) and not np.isnan(likelihoods[target])
    return f" It was {_likely(float(likelihoods[target]))} likely." if known else ""


def _likely(likelihood: float) -> str:
    return "" if math.isnan(likelihood) else percent_text(likelihood)


def _begins(target: str, is_typed: bool) -> str:
    if target == NEXT:
        return "The weights with which the model writes what comes next"
    if is_typed:
        return f"The weights when “{target}”, which was typed, was due"
    return f"The weights with which the model wrote “{target}”"
