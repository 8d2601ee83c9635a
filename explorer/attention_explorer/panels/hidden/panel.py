"""Where attention came from: the hidden states of a recurrent model, and how its decoder attends to them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from PySide6.QtWidgets import QWidget

from attention_explorer.panels.about import About
from attention_explorer.panels.base import Panel, Place
from attention_explorer.panels.hidden.state_columns import Band, Lane, StateColumns
from attention_explorer.panels.selected_head import selected_cell_request
from attention_explorer.session.hidden import WEIGHTS, Hide
from attention_explorer.session.hover import NOTHING, Hover, Pointed
from attention_explorer.session.intents import OpenCheckpoint, SelectKey, SelectQuery
from attention_explorer.session.session import Session
from attention_explorer.session.state import State
from attention_explorer.widgets.card import Card
from attention_explorer.widgets.number_text import of_possible, value_text
from attention_explorer.widgets.page import PageOrInvitation, page_of, wrapped
from attention_explorer.widgets.token_text import shortened
from attention_models.protocol.information import entropy
from attention_models.protocol.recurrent_states import RecurrentRequest, RecurrentView
from attention_models.protocol.request import Request
from attention_models.protocol.running import Ran
from attention_models.protocol.values import CheckpointInfo

_WHAT = "How a recurrent model works through a text: one state after the other, each a column of numbers."
_NOT = "The open model is a transformer: it carries no state from token to token, so there is none to show."
_TRY = "Try: click another step of the decoder, and see which source tokens it looks at then."
_TRY_BOTTLENECK = "Try: write a longer sentence: the one vector stays as long as it is, and the translation gets worse."


def about(state: State, sentence: str, view: RecurrentView | None) -> About:
    """`sentence` is what the panel says of the selected step, `view` what it shows."""
    loaded, ran = state.results.loaded, state.ran
    if loaded is not None and not loaded.info.textbook:
        return About(
            (
                _NOT,
                _WHAT,
                "Attention was invented for such models, in 2014, to give the decoder more than the last state.",
            ),
            "Try: press the button, which opens one.",
        )
    if view is None or ran is None or view.request.run != ran.run:
        return About((_WHAT, "The states appear when the model has run."), _TRY)
    directions, width = len(view.encoder), view.encoder[0].shape[1]
    reads = (
        f"The encoder reads {len(view.encoder[0])} "
        f"tokens{', once in each direction' if directions == 2 else ''}: {width} numbers a state; the decoder "
        f"takes {len(view.states)} steps of {view.states.shape[1]}."
    )
    return About.of(
        (f"{_WHAT} {reads}", sentence, _spread(state, view)), _TRY if view.weights is not None else _TRY_BOTTLENECK
    )


def _spread(state: State, view: RecurrentView) -> str:
    if view.weights is None:
        return (
            "There is no attention here: all that the decoder knows of the source is one vector of norm "
            f"{value_text(float(np.linalg.norm(view.contexts[0])))}."
        )
    step = min(state.selection.query, len(view.weights) - 1)
    row = view.weights[step]
    count = len(row) if view.masked is None else int((~view.masked[step]).sum())
    if count < 2:
        return ""
    unit = state.document.view.unit
    bits = of_possible(float(entropy(row)), math.log2(count), unit)
    return f"The entropy of its row of weights is {bits}: 0 is all on one source token."


EXAMPLE = "dates-bahdanau"
_WRITTEN = EXAMPLE.replace("-", "\N{NON-BREAKING HYPHEN}")
_TRANSFORMER = (
    "This model is a transformer: it has no state that is carried from word to word. Attention was invented for "
    f"recurrent models. Open {_WRITTEN}, which rewrites dates, to see their hidden states and how the first attention "
    "looked back at them."
)
_WAITING = "The hidden states appear here when the model has run."
_HOW = "Click a column, or use the arrow keys, to go to another step or source token."
_SCORES = {
    "none": "no attention",
    "bahdanau": "additive attention",
    "dot": "dot attention",
    "general": "general attention",
    "concat": "concat attention",
}
_SCOPES = {"global": "", "monotonic": ", local (monotonic)", "predictive": ", local (predictive)"}
_EXPLAINED = {
    "none": "The bottleneck (Cho et al. 2014): the encoder reads the whole source into one vector, and that is all the "
    "decoder knows of it, at every step.",
    "bahdanau": "Bahdanau et al. 2015: before each step the decoder's state scores every encoder state. Softmax makes "
    "the scores weights, and their mixture, the context c, goes into the decoder.",
    "luong": "Luong et al. 2015: after each step the decoder's state scores every encoder state. Softmax makes the "
    "scores weights, and their mixture, the context c, is joined to the state to choose the next token.",
}
_DIRECTIONS = ("forward →", "backward ←")


class RecurrentPanel(Panel):
    api_version = 1
    name = "recurrent"
    title = "Hidden"
    hint = "The hidden states of a recurrent model, step by step, and how its attention looks back at them."
    shows = WEIGHTS | {"next", "gradient", "value", "width", "size"}
    reads = ("document.view", "selection", "site", RecurrentView)

    @classmethod
    def suits(cls, info: CheckpointInfo) -> bool:
        return info.textbook

    @classmethod
    def leads(cls, info: CheckpointInfo) -> bool:
        return info.textbook

    def __init__(self, session: Session, hover: Hover, parent: QWidget | None = None) -> None:
        super().__init__(session, hover, parent)
        self._shown: RecurrentView | None = None
        self._at: tuple[int, int] | None = None
        self.sentence = wrapped(role="title")
        self.encoder_heading = wrapped(role="dim")
        self.encoder = StateColumns("Encoder states, a column a source token", "key")
        self.encoder.column_selected.connect(lambda key: self.dispatch(SelectKey(key)))
        self.encoder.hovered.connect(self._on_key)
        self.decoder_heading = wrapped(role="dim")
        self.decoder = StateColumns("Decoder states, a column a step", "query")
        self.decoder.column_selected.connect(lambda query: self.dispatch(SelectQuery(query)))
        self.decoder.hovered.connect(self._on_query)
        self.colours = wrapped(role="dim")
        self.explained = wrapped()
        states = (self.sentence, self.encoder_heading, self.encoder, self.decoder_heading, self.decoder)
        page = page_of(*states, self.colours, self.explained, wrapped(_HOW, "dim"))
        self.pages = PageOrInvitation(page, f"Open {EXAMPLE}")
        self.pages.asked.connect(lambda: self.dispatch(OpenCheckpoint(EXAMPLE)))
        self.card = Card("Hidden states")
        self.card.set_content(self.pages)
        self.fill(self.card)

    # what it shows

    def wants(self, state: State) -> Request | None:
        ran = state.ran
        if ran is None or not _is_recurrent(state):
            return None
        return RecurrentRequest(run=ran.run)

    def answering(self, hidden: frozenset[Hide]) -> Sequence[Place]:
        """Without attention no weights are shown, and nothing along which a gradient would go."""
        attends = self._shown is None or self._shown.score != "none"
        return super().answering(hidden if attends else hidden - WEIGHTS - {"gradient"})

    def prints(self, state: State) -> Request | None:
        return selected_cell_request(state) if _is_recurrent(state) else None

    def render_state(self, state: State, old: State | None) -> None:
        view, ran = state.results.of(RecurrentView), state.ran
        if view is None or ran is None:
            self._shown = None
            recurrent = _is_recurrent(state) or state.results.loaded is None
            self.pages.invite(_WAITING if recurrent else _TRANSFORMER, can_open=not recurrent)
            self.card.set_subtitle("")
            return
        if view.request.run != ran.run:
            return  # the last states stay until the new ones are here
        at = state.selection.query, state.selection.key
        if view is not self._shown or at != self._at:
            self._shown, self._at = view, at
            self.pages.show_page()
            self._show(view, ran, *at)

    def about(self, state: State) -> About:
        return about(state, self.sentence.text(), self._shown)

    def _show(self, view: RecurrentView, ran: Ran, query: int, key: int) -> None:
        sources, targets = ([shortened(token.word) for token in side] for side in (ran.source, ran.tokens))
        query, key = min(query, len(targets) - 1), min(key, len(sources) - 1)
        both = "bidirectional " if len(view.encoder) == 2 else ""
        self.card.set_subtitle(f"{both}{view.cell.upper()}, {_SCORES[view.score]}{_SCOPES[view.scope]}")
        width = view.states.shape[1]
        high = max(float(np.abs(part).max(initial=0.0)) for part in (*view.encoder, view.states, view.contexts)) or 1.0
        self._show_encoder(view, sources, targets[query], query, key, high)
        self._show_decoder(view, targets, query, high)
        self.sentence.setText(step_sentence(view, sources, targets, query))
        self.encoder_heading.setText(
            f"Encoder: a column a source token, {' and '.join(str(len(e[0])) for e in view.encoder)} units"
        )
        self.decoder_heading.setText(f"Decoder: a column a step, {width} units. Named by the token that goes in")
        self.colours.setText(f"Colours: blue {value_text(-high)}, pale 0, red {value_text(high)}.")
        self.explained.setText(_EXPLAINED.get(view.score, _EXPLAINED["luong"]))

    def _show_encoder(
        self, view: RecurrentView, sources: list[str], target: str, query: int, key: int, high: float
    ) -> None:
        bands = [Band(name, values) for name, values in zip(_DIRECTIONS, view.encoder, strict=False)]
        lanes, say = [], _named(sources)
        if view.scores is not None and view.weights is not None and view.masked is not None:
            e, masked, weights = view.scores[query], view.masked[query], view.weights[query]
            lanes = [Lane("score e", e, masked, "text_dim"), Lane("weight", weights, masked)]

            def say(j: int) -> str:
                if masked[j]:
                    return f"“{sources[j]}”: outside of the window"
                return (
                    f"“{target}” to “{sources[j]}”: e {value_text(float(e[j]))}, weight {value_text(float(weights[j]))}"
                )

        self.encoder.set_columns(sources, bands, lanes, high, say)
        self.encoder.set_selected(key if lanes else -1)

    def _show_decoder(self, view: RecurrentView, targets: list[str], query: int, high: float) -> None:
        one = len(view.contexts) == 1 and view.score == "none"
        contexts = np.repeat(view.contexts, len(targets), axis=0) if one else view.contexts
        note = "one for all" if one else "Σ weight h"
        bands = [Band("context c", contexts, note), Band("state s", view.states)]
        self.decoder.set_columns(targets, bands, (), high, _named(targets, "step"))
        self.decoder.set_selected(query)

    def render_hover(self, pointed: Pointed) -> None:
        self.encoder.set_hover(pointed.key)
        self.decoder.set_hover(pointed.query)

    # what a person does

    def _on_key(self, key: int) -> None:
        query = self._at[0] if self._at is not None else -1
        self.hover.point(Pointed(query=query, key=key) if key >= 0 and self.encoder.lanes else NOTHING)

    def _on_query(self, query: int) -> None:
        self.hover.point(Pointed(query=query) if query >= 0 else NOTHING)


def step_sentence(view: RecurrentView, sources: list[str], targets: list[str], query: int) -> str:
    """ "Step 7 of 11: “0” goes in, “3” comes out. It looks most at “r” (0.771)." """
    after = f"“{targets[query + 1]}” comes out" if query + 1 < len(targets) else "what comes next ends the target"
    said = f"Step {query + 1} of {len(targets)}: “{targets[query]}” goes in, {after}."
    if view.weights is None:
        words = f"all {len(sources)} source tokens"
        return f"{said} Of {words} the decoder has one vector of {view.contexts.shape[1]} numbers."
    best = int(np.argmax(view.weights[query]))
    return f"{said} It looks most at “{sources[best]}” ({value_text(float(view.weights[query, best]))})."


def _named(words: list[str], what: str = "token") -> Callable[[int], str]:
    return lambda column: f"{what} {column + 1} of {len(words)}: “{words[column]}”"


def _is_recurrent(state: State) -> bool:
    return state.results.loaded is not None and state.results.loaded.info.textbook
