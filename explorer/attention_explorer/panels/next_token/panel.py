"""What the model says: its likeliest tokens at the selected position or at every mask, or a classifier's classes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QFrame, QScrollArea, QWidget

from attention_explorer.panels.about import About
from attention_explorer.panels.base import Panel
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
from attention_models.protocol.batch import Batch
from attention_models.protocol.decoding import into_input
from attention_models.protocol.information import Unit, from_bits
from attention_models.protocol.prediction import ClassesView, PredictionRequest, PredictionView
from attention_models.protocol.request import Request
from attention_models.protocol.running import Ran
from attention_models.protocol.sentence import SentencePooling, SentenceView
from attention_models.protocol.values import Candidate, CheckpointInfo, ClassHead, Prediction

# What a classifier says, as bars: a line a class, a line a token, or the likeliest ends of an answer. Pure.


_TITLES = {
    ("text", "softmax"): "Classes",
    ("text", "sigmoid"): "Classes, each for itself",
    ("text", "number"): "Score",
    ("token", "softmax"): "Label of each token",
    ("token", "sigmoid"): "Each token: replaced or not",
    ("choice", "softmax"): "Choices",
    ("span", "softmax"): "Answer",
}
_OF_SHARES = {
    "softmax": "softmax over the classes",
    "sigmoid": "sigmoid of each: several may hold",
    "number": "the plain number, no share of anything",
}


def class_title(head: ClassHead) -> str:
    """What the card is called, after the head."""
    return _TITLES[head.of, head.scale]


def class_subtitle(head: ClassHead, view: ClassesView, ran: Ran) -> str:
    if head.of == "span":
        return f"softmax over the tokens · {_span(view, ran)}"
    if head.of == "choice":
        if len(view.classes) == 1:
            return "one choice has a share of 1, whatever its logit: add others with “+ Choice”"
        return f"softmax over the {len(view.classes)} texts, each read by itself"
    if head.otherwise:
        return "sigmoid of each token's logit"
    whole = "the text as a whole" if head.of == "text" else f"{len(ran.tokens)} tokens"
    return f"{whole} · {_OF_SHARES[head.scale]}"


def class_groups(head: ClassHead, view: ClassesView, ran: Ran) -> list[BarGroup]:
    """The bars, in groups under headings; the first group of a model of tokens is of the one that is selected."""
    if head.of == "span":
        return [
            BarGroup("Starts at", tuple(_end_row(end) for end in view.starts)),
            BarGroup("Ends at", tuple(_end_row(end) for end in view.ends)),
        ]
    size = max((abs(c.logit) for c in view.classes), default=0.0) or 1.0
    is_choice = head.of == "choice" and len(view.classes) > 1
    classes = tuple(_class_row(candidate, size, is_choice) for candidate in view.classes)
    if head.of == "choice":
        shown = ran.inputs.prompt.shown if isinstance(ran.inputs.prompt, Batch) else 0
        marked = zip(view.classes, classes, strict=True)
        return [BarGroup("", tuple(replace(row, emphasis=candidate.id == shown) for candidate, row in marked))]
    if head.of == "text":
        return [BarGroup("", classes)]
    position = view.request.position
    labels = (
        _token_row(ran.tokens[place].label, candidate, place, place == position)
        for place, candidate in enumerate(view.tokens)
    )
    chosen = f"“{ran.tokens[position].word}”, position {position}"
    return [BarGroup(chosen, classes), BarGroup("Every token", tuple(labels))]


def position_of_row(head: ClassHead, view: ClassesView, row: int) -> int | None:
    """The token that a row stands for, rows counted through all groups; None where it stands for a class."""
    if head.of == "span":
        ends = (*view.starts, *view.ends)
        return ends[row].id if row < len(ends) else None
    place = row - len(view.classes)
    return place if head.of == "token" and 0 <= place < len(view.tokens) else None


def _span(view: ClassesView, ran: Ran) -> str:
    first, last = view.starts[0].id, view.ends[0].id
    if last < first:
        return "the likeliest end stands before the likeliest start"
    words: Sequence[str] = [token.word for token in ran.tokens[first : last + 1]]
    return f"likeliest from “{words[0]}” to “{words[-1]}”"


def class_row(candidate: Candidate) -> BarRow:
    """The bar of one class, of shares."""
    return _class_row(candidate, 1.0)


def _class_row(candidate: Candidate, size: float, is_choice: bool = False) -> BarRow:
    logit = value_text(candidate.logit)
    if math.isnan(candidate.probability):
        return BarRow(candidate.label, abs(candidate.logit) / size, logit, tooltip=_tooltip(candidate), acts=False)
    was = "" if candidate.before is None else f", was {percent_text(candidate.before)}"
    return BarRow(
        candidate.label,
        candidate.probability,
        percent_text(candidate.probability) + was,
        before=candidate.before,
        detail=f"logit {logit}",
        tooltip=_tooltip(candidate) + (". Click shows this text" if is_choice else ""),
        acts=is_choice,
    )


def _token_row(label: str, candidate: Candidate, place: int, is_selected: bool) -> BarRow:
    return BarRow(
        label,
        candidate.probability,
        f"{candidate.label}  {percent_text(candidate.probability)}",
        detail=f"logit {value_text(candidate.logit)}",
        emphasis=is_selected,
        tooltip=f"position {place}: {_tooltip(candidate)}. Click selects the token",
    )


def _end_row(candidate: Candidate) -> BarRow:
    return BarRow(
        candidate.label,
        candidate.probability,
        percent_text(candidate.probability),
        detail=f"position {candidate.id} · logit {value_text(candidate.logit)}",
        tooltip=f"{_tooltip(candidate)}. Click selects the token",
    )


def _tooltip(candidate: Candidate) -> str:
    share = "" if math.isnan(candidate.probability) else f"share {candidate.probability:.6g}, "
    return f"“{candidate.label}”: {share}logit {value_text(candidate.logit)}"


# What the (i) of the model's answer says. Pure.


_WHAT = {
    "causal": (
        "What the model finds likely as the next token after the selected one: softmax makes probabilities of "
        "its logits."
    ),
    "seq2seq": (
        "What the decoder finds likely as the next token after the selected one: softmax makes probabilities "
        "of its logits."
    ),
    "masked": (
        "What the model would put in the place of each mask (without one, of the selected word): softmax makes "
        "probabilities of its logits."
    ),
    "vision": "Which of its classes the model sees in the picture: softmax makes probabilities of its logits.",
}
_CLASSES = "What a classifier says: a logit for each class, and what share that is."
_SHARES = {
    "softmax": "The shares of all classes sum to 1.",
    "sigmoid": "Each class has a share of its own, so several may hold at once.",
    "number": "It is a plain number, and no share of anything.",
}
_VECTOR = "This model says no words: it gives one vector for the text, made of those of its tokens."
_TRY = {
    "causal": "Try: click a bar to write that token after the text, and see what comes next then.",
    "seq2seq": "Try: select an earlier token of the target, and see what the model found likely there.",
    "masked": "Try: mask another word (select it, Ctrl+M), or click a bar to put that token in the place of the mask.",
    "vision": "Try: choose another picture above, and see which class comes first, and how sure it is.",
}


def about(state: State) -> About:
    loaded, ran = state.results.loaded, state.ran
    family = loaded.info.family if loaded is not None else "causal"
    if class_head(state) is not None:
        return _of_classes(state, ran)
    if is_body(state) or not has_words(state):
        return _of_vector(state, ran)
    view = state.results.of(PredictionView)
    what, to_try = _WHAT.get(family, _WHAT["causal"]), _TRY.get(family, _TRY["causal"])
    if view is None or ran is None or view.request.run != ran.run or loaded is None or not view.predictions:
        return About(
            (what, "The longer a bar, the likelier; its logit and its rank among all stand beside it."), to_try
        )
    first = view.predictions[0]
    return About.of(
        (
            what,
            _likeliest(first, ran, loaded.info, is_masked(state)),
            _uncertain(state, first, loaded.info),
            _edited(first),
        ),
        to_try,
    )


def _likeliest(prediction: Prediction, ran: Ran, info: CheckpointInfo, masked: bool) -> str:
    best, shown = prediction.candidates[0], listed(prediction)
    where, kind = "In this picture", "classes"
    if ran.seen is None:
        word = ran.tokens[prediction.position].word
        where, kind = f"{'At' if masked else 'After'} “{word}”, position {prediction.position},", "tokens"
    logit = value_text(best.logit)
    said = (
        f"{where} “{best.label.lstrip('␣') or best.label}” is the likeliest of {info.vocabulary:,} {kind}: "
        f"{percent_text(best.probability)}, from a logit of {logit}."
    )
    together = percent_text(min(1.0, sum(candidate.probability for candidate in shown)))
    return f"{said} The {len(shown)} that are listed have {together} together."


def _uncertain(state: State, prediction: Prediction, info: CheckpointInfo) -> str:
    unit = state.document.view.unit
    of = f" of {from_bits(math.log2(info.vocabulary), unit):.2f} possible" if info.vocabulary > 1 else ""
    return (
        f"The entropy of all these probabilities is {uncertainty(prediction, unit)}{of}: as open as an even "
        f"choice among {value_text(2**prediction.entropy)}."
    )


def _edited(prediction: Prediction) -> str:
    best = prediction.candidates[0]
    if best.before is None:
        return ""
    return (
        f"Something is changed in this run: without that, “{best.label.lstrip('␣') or best.label}” would have "
        f"{percent_text(best.before)}, which is outlined."
    )


def _of_classes(state: State, ran: Ran | None) -> About:
    head, view = class_head(state), state.results.of(ClassesView)
    to_try = "Try: change a word of the text, and see whether the model says another class."
    if head is None or view is None or ran is None or view.request.run != ran.run or not view.classes:
        return About((_CLASSES, "The bars appear when the model has run."), to_try)
    best = view.classes[0]
    share = "" if math.isnan(best.probability) else f", a share of {percent_text(best.probability)}"
    place = "" if head.of == "text" else f" at “{ran.tokens[view.request.position].word}”"
    said = f"“{best.label}” has the largest logit of {len(view.classes)}{place}: {value_text(best.logit)}{share}."
    return About((_CLASSES, said, _SHARES[head.scale]), to_try)


def _of_vector(state: State, ran: Ran | None) -> About:
    view = state.results.of(SentenceView)
    to_try = "Try: choose another way to make one vector of the tokens', at the top right."
    if view is None or ran is None or view.request.run != ran.run or not len(view.vector):
        return About((_VECTOR, "Its numbers appear as bars when the model has run."), to_try)
    return About(
        (
            _VECTOR,
            f"How it was made: {view.words}.",
            (
                f"It has {len(view.vector):,} numbers and a norm (length) of {value_text(view.norm)}; two texts "
                "are alike where their vectors point the same way."
            ),
        ),
        to_try,
    )


# The vector of a text as bars: its first values beside the largest of all. Pure.


FIRST = 16
"""Values that are shown of a vector."""

NO_VECTOR = "This model gives no vector for each token, so there is none to make of them."


def vector_rows(view: SentenceView) -> list[BarRow]:
    size = float(np.abs(view.vector).max(initial=0.0)) or 1.0
    return [
        BarRow(
            str(place),
            abs(float(value)) / size,
            value_text(float(value)),
            tooltip=f"value {place}: {value:.8g}",
            acts=False,
        )
        for place, value in enumerate(view.vector[:FIRST])
    ]


def vector_heading(view: SentenceView) -> str:
    """How the vector was made, and how much of it is shown."""
    count = len(view.vector)
    shown = f"the first {FIRST} of {count:,} values" if count > FIRST else f"{count} values"
    return f"{view.words} · {shown}"


def vector_subtitle(view: SentenceView) -> str:
    return f"norm {value_text(view.norm)}" if len(view.vector) else ""


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
