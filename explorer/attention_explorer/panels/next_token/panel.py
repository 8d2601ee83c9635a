"""What the model says: its likeliest tokens at the selected position or at every mask, or a classifier's classes."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QFrame, QScrollArea, QWidget

from attention_explorer.panels.about import About
from attention_explorer.panels.base import Panel
from attention_explorer.panels.next_token.about import about
from attention_explorer.panels.next_token.class_bars import (
    class_groups,
    class_row,
    class_subtitle,
    class_title,
    position_of_row,
)
from attention_explorer.panels.next_token.vector_bars import NO_VECTOR, vector_heading, vector_rows, vector_subtitle
from attention_explorer.panels.predicted import (
    class_head,
    has_words,
    is_body,
    is_masked,
    listed,
    names_pictures,
    uncertainty,
    wanted_prediction,
)
from attention_explorer.panels.selected_head import predicting_position
from attention_explorer.session.hover import Hover
from attention_explorer.session.intents import AskStep, SelectQuery, ShowText
from attention_explorer.session.session import Session
from attention_explorer.session.state import State
from attention_explorer.session.texts import texts_of
from attention_explorer.widgets.bar_list import BarGroup, BarList, BarRow
from attention_explorer.widgets.card import Card
from attention_explorer.widgets.number_text import MINUS, percent_text, value_text
from attention_explorer.widgets.token_text import byte_note, piece_note
from attention_models.protocol.classes import ClassesView
from attention_models.protocol.decoding import into_input
from attention_models.protocol.information import Unit
from attention_models.protocol.prediction import PredictionRequest, PredictionView
from attention_models.protocol.request import Request
from attention_models.protocol.running import Ran
from attention_models.protocol.sentence import SentencePooling, SentenceView
from attention_models.protocol.values import Candidate, CheckpointInfo, ClassHead, Prediction

_EMPTY = "The model's likeliest tokens appear here when it has run."
_CLASSES_COME = "What the model says of the text appears here when it has run."
_OF_PAIR = "The second text, after the first"
_CLASSLESS = "This model gives vectors, not classes: it has no output head."


class NextTokenPanel(Panel):
    api_version = 1
    name = "next"
    title = "Next"
    hint = (
        "The tokens that the model finds likeliest, with probability, logit and rank: a click writes one. Or a "
        "classifier's classes."
    )
    shows = frozenset({"next"})
    reads = ("document.view", "selection", "site", PredictionView, ClassesView, SentenceView)

    @classmethod
    def leads(cls, info: CheckpointInfo) -> bool:
        return info.family == "vision"  # what it sees

    def __init__(self, session: Session, hover: Hover, parent: QWidget | None = None) -> None:
        super().__init__(session, hover, parent)
        self.bars = BarList()
        self.bars.row_activated.connect(self._choose)
        scroll = QScrollArea()
        scroll.setWidget(self.bars)
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # the bars inside take the keyboard, and show it
        self.pooling = QComboBox()
        self.pooling.setAccessibleName("How one vector is made of the tokens'")
        self.pooling.setToolTip("How one vector is made of those of the tokens")
        self.pooling.activated.connect(self._pool)
        self._how: SentencePooling | None = None  # None: the model's own where it has one
        self.card = Card("Next token")
        self.card.add_control(self.pooling)
        self.card.set_content(scroll)
        self.fill(self.card)

    def wants(self, state: State) -> Request | None:
        return wanted_prediction(state, self._how)

    def prints(self, state: State) -> Request | None:
        wanted = wanted_prediction(state)
        return wanted if isinstance(wanted, PredictionRequest) else None

    def about(self, state: State) -> About:
        return about(state)

    def render_state(self, state: State, old: State | None) -> None:
        head = class_head(state)
        if old is not None and old.results.loaded is not state.results.loaded:
            self._how = None
        self.pooling.setVisible(is_body(state) and self.pooling.count() > 0)
        if head is not None:
            self._render_classes(head, state)
            return
        if is_body(state):
            self._render_vector(state)
            return
        view, ran = state.results.of(PredictionView), state.ran
        masked = is_masked(state)
        self.card.set_title(
            "Masked tokens" if masked else "Next token" if not names_pictures(state) else "What it sees"
        )
        self.bars.set_empty_text(
            _EMPTY if has_words(state) else _CLASSLESS if names_pictures(state) else _wordless(state)
        )
        if view is None or ran is None or not has_words(state):
            self.bars.set_groups(())
            self.card.set_subtitle("")
            return
        unit = state.document.view.unit
        is_same = old is not None and (view, unit) == (old.results.of(PredictionView), old.document.view.unit)
        if view.request.run != ran.run or is_same:
            return
        told = _writes(state, ran, masked)
        groups = [_group(prediction, ran, masked, told, unit) for prediction in view.predictions]
        if view.pair:
            groups.append(BarGroup(_OF_PAIR, tuple(class_row(candidate) for candidate in view.pair)))
        if len(groups) == 1:
            self.bars.set_rows(groups[0].rows)  # its heading stands in the card's title
        else:
            self.bars.set_groups(groups)
        is_compared = any(row.before is not None for group in groups for row in group.rows)
        outlined = " · outlined: before the change" if is_compared else ""
        has_heading = len(groups) > len(view.predictions)  # beside what is said of the second text
        said = "" if has_heading else _subtitle(view.predictions, ran, masked, unit)
        self.card.set_subtitle((said + outlined).lstrip(" ·"))

    def _render_classes(self, head: ClassHead, state: State) -> None:
        view, ran = state.results.of(ClassesView), state.ran
        self.card.set_title(class_title(head))
        self.bars.set_empty_text(_CLASSES_COME)
        if view is None or ran is None:
            self.bars.set_groups(())
            self.card.set_subtitle("")
        elif view.request.run == ran.run:
            self.bars.set_groups(class_groups(head, view, ran))
            self.card.set_subtitle(class_subtitle(head, view, ran))

    def _render_vector(self, state: State) -> None:
        view, ran = state.results.of(SentenceView), state.ran
        self.card.set_title("Sentence vector")
        self.bars.set_empty_text(_wordless(state))
        if view is None or ran is None:
            self.bars.set_groups(())
            self.card.set_subtitle("")
        elif view.request.run == ran.run:
            self.pooling.clear()
            for how, name in view.choices:
                self.pooling.addItem(name, how)
            self.pooling.setCurrentIndex([how for how, _ in view.choices].index(view.how))
            self.pooling.setVisible(True)
            if not len(view.vector):
                self.bars.set_empty_text(NO_VECTOR)
            self.bars.set_rows(vector_rows(view), vector_heading(view))
            loaded = state.results.loaded
            why = loaded.info.wordless if loaded is not None else ""
            self.card.set_subtitle(vector_subtitle(view) + (f" · {why}" if why else ""))

    def _pool(self, index: int) -> None:
        self._how = self.pooling.itemData(index)
        self._refresh()

    def _choose(self, row: int) -> None:
        """A row of a classifier's token selects it; one of what the model would write is written."""
        state = self.session.state
        if class_head(state) is not None:
            self._select(row)
            return
        view, ran = state.results.of(PredictionView), state.ran
        if view is None or ran is None or not state.up_to_date or view.request.run != ran.run:
            return
        rows = [(prediction, candidate) for prediction in view.predictions for candidate in listed(prediction)]
        if row >= len(rows):
            return  # of two texts: a class is not written
        prediction, candidate = rows[row]
        place = prediction.position if is_masked(state) else None
        self.dispatch(AskStep(replace(into_input(ran.inputs), forced=candidate.id, place=place)))

    def _select(self, row: int) -> None:
        head, view = class_head(self.session.state), self.session.state.results.of(ClassesView)
        if view is not None and view.is_choice:
            if len(texts_of(self.session.state.document)) == len(view.classes):
                self.dispatch(ShowText(view.classes[row].id))
            return
        place = None if head is None or view is None else position_of_row(head, view, row)
        if place is not None:
            self.dispatch(SelectQuery(place))


def _wordless(state: State) -> str:
    loaded = state.results.loaded
    why = loaded.info.wordless if loaded is not None else ""
    return f"This model gives vectors, not words: {why or 'it has no output head'}."


def _subtitle(predictions: tuple[Prediction, ...], ran: Ran, masked: bool, unit: Unit) -> str:
    if len(predictions) != 1:
        return f"at each of {len(predictions)} masks"
    return _heading(predictions[0], ran, masked, unit)


def _heading(prediction: Prediction, ran: Ran, masked: bool, unit: Unit) -> str:
    if ran.seen is not None:
        return f"the picture as a whole · entropy {uncertainty(prediction, unit)}"
    word = ran.tokens[prediction.position].word
    place = f"{'at' if masked else 'after'} “{word}”, position {prediction.position}"
    return f"{place} · entropy {uncertainty(prediction, unit)}"


def _writes(state: State, ran: Ran, masked: bool) -> str:
    """What a click on a token does; "" where it does nothing: where another token already follows, say."""
    loaded = state.results.loaded
    if loaded is None or ran.seen is not None:
        return ""
    if masked:
        return "Click puts it in the place of this mask" if ran.masks else ""
    if loaded.info.family not in ("causal", "seq2seq") or not loaded.info.vocabulary:
        return ""
    if loaded.info.family == "seq2seq" and ran.inputs.target is None:
        return ""  # the model has written its whole answer
    last = max((i for i, token in enumerate(ran.tokens) if not token.padding), default=-1)
    return "Click writes it after the text" if predicting_position(state, ran) == last else ""


def _group(prediction: Prediction, ran: Ran, masked: bool, told: str, unit: Unit) -> BarGroup:
    rows = [_row(candidate, prediction.actual, told) for candidate in listed(prediction)]
    return BarGroup(_heading(prediction, ran, masked, unit), tuple(rows))


def _signed(number: float, decimals: int) -> str:
    return f"{number:.{decimals}f}".replace("-", MINUS)


def _row(candidate: Candidate, actual: Candidate | None, told: str) -> BarRow:
    stands = actual is not None and actual.id == candidate.id
    p = candidate.probability
    was = "" if candidate.before is None else f", was {percent_text(candidate.before)}"
    return BarRow(
        label=candidate.label,
        value=p,
        text=percent_text(p) + was,
        before=candidate.before,
        detail=f"logit {value_text(candidate.logit)} · rank {candidate.rank:,}" + (" · in the text" if stands else ""),
        emphasis=stands,
        tooltip=f"“{candidate.piece}” in the vocabulary{piece_note(candidate.piece, candidate.label)}, id "
        f"{candidate.id}: probability {p:.6g}, "
        f"logit {_signed(candidate.logit, 4)}, rank {candidate.rank:,}{byte_note(candidate.label)}"
        + (f". {told}" if told else ""),
        acts=bool(told),
    )
