"""What the model is given: a text, a conversation or a picture, and the target of an encoder-decoder; and tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QGridLayout, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from attention_explorer.panels.base import EDITED, MASKS, Panel, Place
from attention_explorer.panels.first_token import attention_sink
from attention_explorer.panels.input.batch import BatchParts
from attention_explorer.panels.input.chat import ChatParts
from attention_explorer.panels.input.input_sentences import (
    can_step,
    chips_of,
    language_remark,
    padding_remark,
    separator_remark,
    step_tooltip,
    template_remark,
    typed_padding,
    typed_separators,
    unknown_remark,
    word_span,
)
from attention_explorer.panels.input.labels import KeyButton, TextInput, dim, mark, title
from attention_explorer.panels.input.picture import PictureRow
from attention_explorer.panels.input.second_text import PairParts, TargetParts
from attention_explorer.panels.input.token_strip import TokenStrip, TokenStripArea
from attention_explorer.panels.selected_head import (
    by_words,
    head_name,
    head_shown,
    row_of,
    site_word_labels,
    token_word,
    wanted_head,
)
from attention_explorer.session.hidden import WEIGHTS, Hide
from attention_explorer.session.hover import NOTHING, Hover, Pointed
from attention_explorer.session.intents import (
    AddTexts,
    AskStep,
    Intent,
    KeepShownText,
    PutIntervention,
    RemoveText,
    SayInTurn,
    SelectKey,
    SelectQuery,
    SetChat,
    SetPadding,
    SetPair,
    SetPicture,
    SetSecond,
    SetTarget,
    SetText,
    SetTurns,
    Show,
    ShowText,
    UseWritten,
)
from attention_explorer.session.rules import chooses
from attention_explorer.session.session import Session
from attention_explorer.session.state import Notice, State
from attention_explorer.session.texts import texts_of
from attention_explorer.widgets.callout import CodeButton
from attention_explorer.widgets.card import Card
from attention_explorer.widgets.labels import ElidedLabel
from attention_explorer.widgets.page import wrapped
from attention_explorer.widgets.screens import WindowSize, is_low
from attention_explorer.widgets.token_text import in_lines
from attention_models.protocol.batch import Batch
from attention_models.protocol.chat import Pair
from attention_models.protocol.decoding import into_input
from attention_models.protocol.head import HeadView, RowView
from attention_models.protocol.interventions import Mask
from attention_models.protocol.prompt import plain_text, shown_of
from attention_models.protocol.request import Request
from attention_models.protocol.running import ForwardRequest, Ran
from attention_models.protocol.values import CheckpointInfo, Site, SiteRef, site_tokens
from attention_models.protocol.word_spans import MERGED, Words, site_words

_FIELD = 60
"""Letters that the text has room for before buttons say their keys."""


class InputBody(QWidget):
    """Lays out parts that the panel has made."""

    def __init__(
        self,
        heading: QWidget,
        text: QWidget,
        chat: ChatParts,
        batch: BatchParts,
        pair: PairParts,
        picture: QWidget,
        buttons: Sequence[QWidget],
        tokens: QWidget,
        target: TargetParts,
        said: Sequence[QWidget],
    ) -> None:
        """`said` are labels; the first two take the room that is left."""
        super().__init__()
        top = Qt.AlignmentFlag.AlignTop
        texts = QGridLayout()  # the two texts begin and end below each other
        texts.setHorizontalSpacing(10)
        texts.setVerticalSpacing(4)
        texts.setColumnStretch(1, 1)
        middle = Qt.AlignmentFlag.AlignVCenter
        for place, part in enumerate(batch.row):
            texts.addWidget(part, 0, place, *((Qt.AlignmentFlag.AlignRight | middle,) if place == 2 else ()))
        texts.addWidget(heading, 1, 0, top)
        texts.addWidget(text, 1, 1)
        texts.addWidget(chat.side, 1, 0, top)
        texts.addWidget(chat.turns, 1, 1)
        texts.addWidget(picture, 1, 0, 1, 2)  # in the place of the text
        line = QHBoxLayout()
        line.setSpacing(10)
        for part in buttons:
            line.addWidget(part, 0, middle)
        texts.addLayout(line, 1, 2, top)
        for place, part in enumerate(pair.row):
            texts.addWidget(part, 2, place, top | Qt.AlignmentFlag.AlignRight if place == 2 else top)
        texts.addWidget(tokens, 3, 0, 1, 3)
        self._buttons, self._line = tuple(buttons), line
        self._tokens, self._is_low = tokens, False
        self._texts, self._target_tokens = texts, target.area
        self._after_target = QHBoxLayout()
        self._after_target.setSpacing(10)
        self._after_target.addStretch(0)
        *before, last = target.row
        for place, part in enumerate(before):
            texts.addWidget(part, 4, place, top)
        self._after_target.addWidget(last, 0, top)
        texts.addLayout(self._after_target, 4, len(before))
        texts.addWidget(target.area, 5, 0, 1, 3)
        below = QHBoxLayout()
        below.setSpacing(10)
        below.addWidget(chat.legend)
        below.addWidget(pair.legend)
        for place, part in enumerate(said):
            below.addWidget(part, int(place < 2))
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addLayout(texts)
        column.addLayout(below)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._say_keys()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:  # a button came or went, or letters have another size
            self._say_keys()
        return super().event(event)

    def _say_keys(self) -> None:
        """The keys stand on the buttons where the text keeps its room."""
        shown = [button for button in self._buttons if not button.isHidden()]
        keyed = [button for button in shown if isinstance(button, KeyButton)]
        taken = sum(button.sizeHint().width() + self._line.spacing() for button in shown)
        taken += sum(button.key_width for button in keyed if not button.says_key)
        says = self.width() - taken >= _FIELD * self.fontMetrics().averageCharWidth()
        for button in keyed:
            button.set_says_key(says)

    def set_low(self, low: bool) -> None:
        """In a low window the target's tokens stand beside it, not below."""
        self._is_low = low
        if self._texts.indexOf(self._tokens) < 0:
            return  # they are given away
        if low:
            self._texts.removeWidget(self._target_tokens)
            self._after_target.insertWidget(1, self._target_tokens, 1)
        else:
            self._after_target.removeWidget(self._target_tokens)
            self._texts.addWidget(self._target_tokens, 5, 0, 1, 3)

    def give_tokens(self) -> tuple[QWidget, QWidget]:
        """The tokens of the text and of the target, to be shown elsewhere until `take_tokens`."""
        self._texts.removeWidget(self._tokens)
        (self._after_target if self._is_low else self._texts).removeWidget(self._target_tokens)
        return self._tokens, self._target_tokens

    def take_tokens(self) -> None:
        """Put the tokens back in their places."""
        self._texts.addWidget(self._tokens, 3, 0, 1, 3)
        self._texts.addWidget(self._target_tokens, 5, 0, 1, 3)
        if self._is_low:
            self.set_low(True)


# What the input panel asks of the state: the kind of model, its mask, what is odd about the text. Pure.


_ONE_CHOICE = (
    "This model chooses between texts. Type what comes first as text A, and one choice as text B; "
    "“+ Choice” adds another."
)
_ONE_TEXT = "This model chooses between texts: “+ Choice” adds another."


def info_of(state: State) -> CheckpointInfo | None:
    """What the open checkpoint is."""
    return state.results.loaded.info if state.results.loaded is not None else None


def sees_pictures(state: State) -> bool:
    """Whether the open model is one for pictures."""
    info = info_of(state)
    return info is not None and info.family == "vision"


def mask_token(state: State) -> str | None:
    info = info_of(state)
    return info.mask_token if info is not None else None


def remark(state: State) -> str:
    """What is odd about the text; "" where nothing is."""
    info, ran, document = info_of(state), state.ran, state.document
    said = template_remark(ran.tokens) if ran is not None and document.chat else ""
    if said or info is None or state.loading is not None:
        return said
    if ran is None or ran.inputs.prompt != document.prompt:
        return language_remark(document.prompt, info)
    tokens = ran.source or ran.tokens
    if info.class_head is not None and info.class_head.of == "choice" and not isinstance(document.prompt, Batch):
        return _ONE_CHOICE if info.pairs else _ONE_TEXT
    said = separator_remark(tokens, info) or padding_remark(tokens) or unknown_remark(ran, info)
    return said or language_remark(document.prompt, info)


def continued_words(state: State) -> str:
    """What the model has written after the text, or the text with its masks filled; "" where nothing is shown of it."""
    ran = state.ran
    if ran is None or ran.whole is None or not ran.continued or not state.up_to_date:
        return ""
    before, whole = plain_text(shown_of(ran.inputs.prompt)), plain_text(shown_of(ran.whole))
    if whole.startswith(before):
        return f"and the model went on: {' '.join(whole[len(before) :].split())}"
    return f"as the model filled it: {' '.join(whole.split())}"


def remedy(state: State) -> str:
    """What a button beside the remark does; "" where the remark offers nothing."""
    info, ran = info_of(state), state.ran
    if info is None or ran is None or not state.up_to_date:
        return ""
    tokens = ran.source or ran.tokens
    if typed_separators(tokens, info):
        return "Read it as two texts"
    is_masked = any(isinstance(item, Mask) and item.paints for item in ran.inputs.interventions)
    can_mask = not (info.weights_only or info.textbook or is_masked)
    return "Mask it" if can_mask and typed_padding(tokens) else ""


# The row of weights that arcs, shades or the colours of a picture show, and what to say of it. Pure.


@dataclass(frozen=True, slots=True, eq=False)
class ShownRow:
    weights: np.ndarray  # (keys,) float32, of tokens or of words
    query: int  # the token or the word whose row it is
    name: str  # of it; of cross-attention also of what it wrote
    is_merged: bool  # of words


def shown_row(state: State, pointed: int) -> ShownRow | None:
    """The row of the query `pointed` (-1: none), else of the selected one; None where the site has no weights here."""
    view, ran, site = head_shown(state), state.ran, state.site
    if view is None or ran is None or site is None or not _is_of(view, site):
        return None
    row = pointed if 0 <= pointed < site.queries else state.selection.query
    row = view.request.query if isinstance(view, RowView) else row  # the others are not here
    if isinstance(view, HeadView) and view.by_word is not None and by_words(state):
        words, names = site_words(ran, site)[0], site_word_labels(ran, site)[0]
        word = words.word(row)
        return ShownRow(view.by_word.weights[word], word, names[word], is_merged=True)
    return ShownRow(row_of(view, row)[0], row, token_word(state, row), is_merged=False)


def caption(state: State, row: ShownRow, is_shaded: bool) -> str:
    """What is drawn: of which head, and from where. `is_shaded`: the tokens of the source have shades for arcs."""
    before = "" if state.up_to_date else "tokens of the last text that ran · "
    is_picture = state.ran is not None and state.ran.seen is not None
    by, head = "colour" if is_picture else "shades" if is_shaded else "arcs", head_name(state)
    is_typed = state.ran is not None and state.ran.inputs.target is not None
    wrote = ", of a target that was typed" if is_shaded and is_typed else ""
    merged = f" · {MERGED}" if row.is_merged else ""
    return f"{before}{by}: {head[0].lower()}{head[1:]}, from “{row.name}”{wrote}{merged}"


def _is_of(view: HeadView | RowView, site: Site) -> bool:
    """Whether the view's keys (and queries) are as many as those of `site`."""
    return view.weights.shape == ((site.keys,) if isinstance(view, RowView) else (site.queries, site.keys))


# Whose tokens a strip shows: the queries of the selected site, its keys, both or neither. Pure.


@dataclass(frozen=True, slots=True)
class Sides:
    queries: bool
    keys: bool

    @property
    def any(self) -> bool:
        return self.queries or self.keys

    @property
    def both(self) -> bool:
        return self.queries and self.keys


def sides(ran: Ran | None, site: Site | None, is_target: bool) -> Sides:
    """What the tokens of the text are to `site`, or those of the target. Without a site only what reads can select."""
    if ran is None:
        return Sides(False, False)
    if site is None:
        reads = is_target == bool(ran.source)
        return Sides(reads, reads and not ran.source)
    own = (ran.tokens if ran.source else None) if is_target else ran.source or ran.tokens
    queries, keys = site_tokens(ran, site)
    return Sides(own is queries, own is keys)


class InputPanel(Panel):
    api_version = 1
    name = "input"
    title = "Input"

    picture_asked = Signal()
    """The person wants to choose a picture among their files."""

    texts_asked = Signal()
    """The person wants to choose a file of texts, one a line."""
    reads = (
        "document.text",
        "document.second",
        "document.target",
        "document.prompt",
        "document.before",
        "document.after",
        "document.padding",
        "document.chat",
        "document.turns",
        "document.picture",
        "document.view",
        "inputs",
        "up_to_date",
        "selection",
        "site",
        HeadView,
        RowView,
    )

    def __init__(self, session: Session, hover: Hover, parent: QWidget | None = None) -> None:
        super().__init__(session, hover, parent)
        self.text = TextInput()
        self.text.setAccessibleName("Input text")
        self.text.setPlaceholderText("Type a sentence for the model to read")
        self.text.setToolTip(
            "What the model reads. It runs as you type; Enter runs it again, Shift+Enter breaks the line."
        )
        self.text.edited.connect(lambda text: self.dispatch(SetText(text)))
        self.text.submitted.connect(self.run_model)
        self.text.refused.connect(self._refuse)
        self.run_button = KeyButton("Run", "Enter", "Run the model on this text again (Enter)", self.run_model)
        self.step_button = KeyButton("Step", "Ctrl+Enter", "", self.step)
        self.mask_button = KeyButton("Mask", "Ctrl+M", "", self.mask_word)
        self.chat = ChatParts(self)
        self.chat.switched.connect(lambda on: self.dispatch(SetChat(on)))
        self.chat.turns.said.connect(lambda place, text: self.dispatch(SayInTurn(place, text)))
        self.chat.turns.changed.connect(lambda turns: self.dispatch(SetTurns(turns)))
        self.chat.turns.submitted.connect(self.run_model)
        self.chat.turns.refused.connect(self._refuse)
        self.text_title = title("Input", self.text)
        self.pair = PairParts(self, self.text_title)
        self.pair.changed.connect(lambda second: self.dispatch(SetSecond(second)))
        self.pair.text.submitted.connect(self.run_model)
        self.pair.text.refused.connect(self._refuse)
        self.batch = BatchParts(self)
        self.batch.added.connect(self.add_texts)
        self.batch.file_asked.connect(self.texts_asked)
        self.batch.chosen.connect(lambda index: self.dispatch(ShowText(index)))
        self.batch.removed.connect(lambda: self.dispatch(RemoveText(len(self.session.state.document.before))))
        self.batch.kept_alone.connect(lambda: self.dispatch(KeepShownText()))
        self.batch.side_chosen.connect(lambda side: self.dispatch(SetPadding(side)))
        self.batch.refused.connect(self._refuse)
        self.strip_area = TokenStripArea()
        self.strip = self.strip_area.strip
        self.strip.set_empty_text("The text's tokens appear here.")
        self.target = TargetParts(self)
        self.target.text.edited.connect(lambda text: self.dispatch(SetTarget(text)))
        self.target.text.submitted.connect(self.run_model)
        self.target.text.refused.connect(self._refuse)
        self.target.writes_button.clicked.connect(self.let_write)
        for strip in (self.strip, self.target.strip):
            strip.look_changed.connect(self._share_width)
            self._follow(strip)
        self.picture = PictureRow()
        self.picture.hide()
        self.picture.chosen.connect(lambda reference: self.dispatch(SetPicture(reference)))
        self.picture.open_asked.connect(self.picture_asked)
        self.picture.position_selected.connect(lambda position: self.dispatch(SelectQuery(position)))
        self.picture.position_hovered.connect(self._on_position_hovered)
        self.more = ElidedLabel()
        self.more.elide_mode = Qt.TextElideMode.ElideLeft  # what was written last stays
        self.more.setToolTip("What Decode has written: Follow, in that panel, takes it in or leaves it out.")
        self.caption, self.mark = dim(), mark(EDITED)
        self.mark.clicked.connect(lambda: self.front_wanted.emit(MASKS))
        self.remark = wrapped()  # on the language of the text
        self.mend_button = QPushButton()  # what the remark offers
        self.mend_button.clicked.connect(self.mend)
        self.mend_button.hide()
        body = InputBody(
            heading=self.text_title,
            text=self.text,
            chat=self.chat,
            batch=self.batch,
            pair=self.pair,
            picture=self.picture,
            buttons=(
                *(self.pair.add, self.batch.add, self.mask_button, self.run_button, self.step_button),
                self.code_button,
            ),
            tokens=self.strip_area,
            target=self.target,
            said=(self.more, self.remark, self.mend_button, self.mark, self.caption),
        )
        self._body = body
        self._card = Card()
        self._card.set_content(body)
        self._outer = QVBoxLayout(self)
        self._outer.setContentsMargins(0, 0, 0, 0)
        self._outer.addWidget(self._card)
        self._strips = QBoxLayout(QBoxLayout.Direction.TopToBottom)  # while they stand alone
        self._strips.setSpacing(0)  # they have room of their own about them
        self._outer.addLayout(self._strips)
        self._is_strip = False
        self._is_over_map = False
        self._is_low = False  # whether the window has room for one line of everything
        self._shown: tuple[Ran | None, bool] = (None, False)  # what the strips show, and whether its words
        WindowSize(self).changed.connect(self._fit_window)
        self._chips = {strip: Words.alone(0) for strip in (self.strip, self.target.strip)}  # the tokens of each chip

    def show_strip_alone(self, alone: bool) -> None:
        """Show nothing but the tokens, a line of them, with arcs to be seen from afar; or all parts again."""
        if alone == self._is_strip:
            return
        self._is_strip = alone
        if alone:
            for tokens in self._body.give_tokens():
                self._strips.addWidget(tokens)
        else:
            for area in (self.strip_area, self.target.area):
                self._strips.removeWidget(area)
            self._body.take_tokens()
        self._card.setVisible(not alone)
        for area in (self.strip_area, self.target.area):
            area.set_from_afar(alone)
        if self._rendered is not None:
            self._set_room(self.session.state)

    def set_over_map(self, over_map: bool) -> None:
        """Whether tokens that stand alone do so over a map: it names them again beside its cells, and needs the height.

        There is then one line of them all, and none of a text in which the selected head has neither queries nor keys.
        """
        self._is_over_map = over_map
        if self._rendered is not None:
            self._set_room(self.session.state)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._fit_window()

    def _fit_window(self) -> None:
        """In a window of few lines of text the panels need the room: here one line of each is shown, and scrolls."""
        low = is_low(self)
        if low != self._is_low:
            self._is_low = low
            self._body.set_low(low)
            for field, lines in ((self.text, 3), (self.pair.text, 2), (self.target.text, 2)):
                field.set_most_lines(1 if low else lines)
            self.caption.setVisible(not low)
            policy = self.mark.sizePolicy()
            policy.setRetainSizeWhenHidden(not low)
            self.mark.setSizePolicy(policy)
            self._show_said()
            if self._rendered is not None:
                self._set_room(self.session.state)

    def _show_said(self) -> None:
        """The line below the tokens keeps its place whatever it says; in a low window there is none for nothing."""
        self.more.setVisible(bool(self.more.text()) and not self._is_low)
        self.remark.setVisible(bool(self.remark.text()) or (self.more.isHidden() and not self._is_low))

    def _follow(self, strip: TokenStrip) -> None:
        strip.token_selected.connect(lambda chip: self._on_token(strip, SelectQuery(self._first_token(strip, chip))))
        strip.key_selected.connect(lambda chip: self._on_token(strip, SelectKey(self._first_token(strip, chip))))
        strip.hovered.connect(lambda token: self._on_hovered(strip, token))
        strip.note_of = lambda chip: self._note_of(strip, chip)

    def _refuse(self, sentence: str) -> None:
        self.dispatch(Show(Notice("warning", sentence)))

    def place_of(self, part: str, site: SiteRef | None, head: int, query: int, key: int) -> Place | None:
        """A token, in the strip that has the queries."""
        for strip in (self.strip, self.target.strip):
            chip = self._chips[strip].word(query)
            if part == "token" and chip >= 0 and self._sides(self.session.state, strip).queries:
                return strip, strip.chip_rect(chip).toAlignedRect()
        return None

    # what its buttons do

    def focus_text(self) -> None:
        """Go to where the person types: the text, or the last turn of the conversation."""
        if self.text.isHidden():
            self.chat.turns.focus_turn(len(self.chat.turns.rows) - 1)
        else:
            self.text.setFocus()

    def add_texts(self, texts: tuple[str, ...]) -> None:
        """Run these together with those that there are. Says so where they would be too many."""
        try:
            self.dispatch(AddTexts(texts))
        except ValueError as error:
            self._refuse(str(error))
        if texts == ("",):
            (self.text if self.pair.text.isHidden() or not chooses(self.session.state) else self.pair.text).setFocus()

    def let_write(self, on: bool) -> None:
        """Let the model write the target itself, or hold on to what it wrote as what it is made to say."""
        ran = self.session.state.ran
        if on or ran is None:
            self.dispatch(SetTarget(None if on else ""))
        else:
            self.dispatch(UseWritten(ran.written, tuple(token.id for token in ran.tokens if not token.padding)))

    def run_model(self) -> None:
        """Run the model on the text, whether it ran before or not."""
        if self.session.state.results.loaded is not None:
            self.session.request(ForwardRequest(inputs=self.session.state.inputs))

    def step(self) -> None:
        """Let the model write one token, or fill the mask that it is most certain of."""
        state = self.session.state
        if state.ran is not None and state.up_to_date:
            self.dispatch(AskStep(into_input(state.ran.inputs)))

    def mask_word(self) -> None:
        """Put the mask in the place of the marked text, or of the word that the selected token belongs to."""
        state = self.session.state
        mask = mask_token(state)
        if mask is None or state.ran is None:
            return
        segment, text, start, end = self._marked(state)
        if start == end:
            sentence = (
                "Select a word first: click its token, or mark it in the text. Mask then hides it from the model."
            )
            self.dispatch(Show(Notice("info", sentence)))
            return
        masked = text[:start] + mask + text[end:]
        self.dispatch(SetSecond(masked) if segment == 1 else SetText(masked))

    def _marked(self, state: State) -> tuple[int, str, int, int]:
        """What is to be masked: of which text (0 or 1), that text, and the span in it."""
        for segment, field in enumerate((self.text, self.pair.text)):
            start, end = field.selected_span()
            if start != end and field.isVisible():
                return segment, field.text(), start, end
        if state.ran is None or not state.up_to_date:
            return 0, self.text.text(), 0, 0
        tokens, document = state.ran.tokens, state.document
        segment = tokens[state.selection.query].segment if state.selection.query < len(tokens) else 0
        text = (document.second or "") if segment == 1 else document.text
        if state.ran.whole is not None:  # what was written into it is of the text that is read
            whole = shown_of(state.ran.whole)
            text = whole.text(segment) if isinstance(whole, Pair) else plain_text(whole)
        return segment, text, *word_span(tokens, state.selection.query)

    def second_text(self) -> None:
        """Go to the second text of a pair; for a model that reads one text, say so."""
        info = info_of(self.session.state)
        if info is not None and info.pairs:
            self.pair.open()
        elif info is not None:
            self.dispatch(Show(Notice("info", f"{info.name} reads no pairs of texts.")))

    def mend(self) -> None:
        """Do what the remark offers: read what follows a typed separator as the second text, or mask typed padding."""
        state = self.session.state
        info, ran = info_of(state), state.ran
        if info is None or ran is None or not state.up_to_date:
            return
        tokens = ran.source or ran.tokens
        found = typed_separators(tokens, info)
        if found:
            text, mark = state.document.text, tokens[found[0]]
            self.dispatch(SetPair(Pair(text[: mark.start].rstrip(), text[mark.end :].strip())))
            self.pair.text.setFocus()
            return
        cells = tuple((query, key, False) for key in typed_padding(tokens) for query in range(len(tokens)))
        if cells:
            self.dispatch(PutIntervention(Mask("painted", cells=cells)))

    # what it shows

    @cached_property
    def code_button(self) -> CodeButton:
        """At the end of the line of buttons: there is no title line. The key is for the panels below."""
        button = CodeButton("The tokens", key="")
        button.clicked.connect(self.show_script)
        return button

    def figures(self) -> Iterable[QWidget]:
        return (self.strip_area, self.target.area)

    def prints(self, state: State) -> Request | None:
        return None if state.ran is None else state.ran.request

    def answering(self, hidden: frozenset[Hide]) -> Sequence[Place]:
        """What a translator wrote after the selected token, which is its answer there. Arcs are not drawn meanwhile."""
        state, strip = self.session.state, self.target.strip
        ran = state.ran
        if "next" not in hidden or ran is None or not ran.source or ran.inputs.target is not None:
            return ()
        after = range(self._chips[strip].word(state.selection.query) + 1, strip.count)
        field = self.target.text
        return [(field, field.rect()), *((strip, strip.chip_rect(chip).toAlignedRect()) for chip in after)]

    def hide_answers(self, hidden: frozenset[Hide]) -> None:
        super().hide_answers(hidden)
        self._render_selection(self.session.state)
        self._render_arcs(self.session.state, self.hover.pointed)

    @property
    def _hides_weights(self) -> bool:
        """Whether arcs, or the frame of the key, would show what is asked for, or lead there."""
        return bool(self._hidden & (WEIGHTS | {"next", "gradient", "value"}))

    def wants(self, state: State) -> Request | None:
        return wanted_head(state)

    def render_state(self, state: State, old: State | None) -> None:
        self.text.set_text(state.document.text)
        mask = mask_token(state)
        self.mask_button.setVisible(mask is not None)
        self.mask_button.setToolTip(f"Hide the selected word from the model behind {mask} (Ctrl+M)")
        info, is_made_to_say = info_of(state), state.document.target is not None
        self.step_button.setToolTip(step_tooltip(info, is_made_to_say))
        self.step_button.setEnabled(state.ran is not None and state.up_to_date and can_step(info, is_made_to_say))
        self.run_button.setEnabled(info is not None)
        self.remark.setText(remark(state))
        offer = remedy(state)
        self.mend_button.setText(offer)
        self.mend_button.setVisible(bool(offer))
        if (state.ran, by_words(state)) != self._shown:
            self._shown = (state.ran, by_words(state))
            read = () if state.ran is None else state.ran.source or state.ran.tokens
            if state.ran is not None and state.ran.seen is not None:
                read = read[: state.ran.seen.first]  # the patches are in the picture
            said = state.ran.tokens if state.ran is not None and state.ran.source else ()
            for area, tokens in ((self.strip_area, read), (self.target.area, said)):
                tags = state.ran.tags if state.ran is not None and area is self.strip_area else ()
                words = Words.of(tokens) if by_words(state) else Words.alone(len(tokens))
                self._chips[area.strip] = words
                written = state.ran.continued if state.ran is not None and tokens is state.ran.tokens else ()
                typed = sum(start not in written for start in words.starts) if written else 0
                area.set_tokens(chips_of(tokens, words, tags, frozenset(written)), typed)
        self.more.setText(continued_words(state))
        self._show_said()
        self._render_target(state)
        self._render_picture(state)
        self._render_selection(state, moved=old is None or old.ran is not state.ran or old.selection != state.selection)
        self._render_arcs(state, self.hover.pointed)

    def _render_selection(self, state: State, moved: bool = False) -> None:
        selection = state.selection
        for area in (self.strip_area, self.target.area):
            area.strip.set_dim_special(state.document.view.dim_special)
            side = self._sides(state, area.strip)
            area.strip.set_selects("both" if side.queries == side.keys else "query" if side.queries else "key")
            words = self._chips[area.strip]
            query, key = words.word(selection.query), words.word(selection.key)
            key = -1 if self._hides_weights and "weight" not in self._hidden else key
            area.strip.set_selection(query if side.queries else -1, key if side.keys else -1)
            if moved and side.any:
                area.show_token(query if side.queries else key)

    def _render_target(self, state: State) -> None:
        info, ran = info_of(state), state.ran
        two_texts = info is not None and info.family == "seq2seq"
        self.target.set_visible(two_texts)
        self._set_room(state)
        if two_texts:
            written = "" if ran is None else ran.written if ran.inputs.target is None else None
            self.target.show_target(state.document.target, written)

    def _set_room(self, state: State) -> None:
        """How many lines tokens have, and how much room there is for arcs above them."""
        info = info_of(state)
        two_texts = info is not None and info.family == "seq2seq"
        is_chat = state.document.chat and info is not None and info.chat
        for area in (self.strip_area, self.target.area):
            has_arcs = self._sides(state, area.strip).both
            is_flat = two_texts or state.document.chat or self._is_low or self._is_strip
            area.set_room(
                "none" if sees_pictures(state) or (two_texts and not has_arcs) else "low" if is_flat else "tall"
            )
            area.set_most_lines(1 if self._is_low else (1 if self._is_over_map else 2) if self._is_strip else 3)
        if is_chat and not self._is_low and not self._is_strip:
            self.strip_area.set_most_lines(2)  # the turns take the third
        self._place_strips(state, two_texts)

    def _place_strips(self, state: State, two_texts: bool) -> None:
        """Which texts' tokens there are, and those of two beside each other where the height is a map's."""
        saves_height = self._is_strip and self._is_over_map
        for area in (self.strip_area, self.target.area):
            is_there = area is self.strip_area or two_texts
            is_of_head = state.site is None or self._sides(state, area.strip).any
            area.setVisible(is_there and (is_of_head or not saves_height))
        across, down = QBoxLayout.Direction.LeftToRight, QBoxLayout.Direction.TopToBottom
        self._strips.setDirection(across if saves_height else down)
        self._share_width()

    def _share_width(self) -> None:
        """Tokens beside each other have each what they need of the width."""
        for area in (self.strip_area, self.target.area):
            self._strips.setStretchFactor(area, round(area.strip.width_of_line()) if self._is_over_map else 0)

    def _render_picture(self, state: State) -> None:
        info, ran, document, sees = info_of(state), state.ran, state.document, sees_pictures(state)
        can_converse = info is not None and info.chat
        is_chat = can_converse and document.chat
        has_roles = ran is not None and any(token.role for token in ran.tokens)
        self.chat.show_turns(document.turns if is_chat else None, can_converse, has_roles)
        self.text.setVisible(not sees and not is_chat)
        can_pair = info is not None and info.pairs and not is_chat
        shown = None if ran is None else shown_of(ran.inputs.prompt)
        self.pair.show_pair(document.second, can_pair, isinstance(shown, Pair))
        takes_several = info is not None and not (sees or is_chat or info.textbook)
        is_choice = chooses(state)
        texts = tuple(text.second if is_choice and text.second else text.text for text in texts_of(document))
        self.batch.set_noun("choice" if is_choice else "text")
        self.batch.show_batch(texts, len(document.before), document.padding, takes_several)
        self.text_title.setVisible(not sees and self.chat.side.isHidden())
        self.step_button.setVisible(not sees)
        self.run_button.set_key("Ctrl+R" if sees else "Enter")
        self.picture.setVisible(sees)
        if sees and info is not None:
            seen = None if ran is None else ran.seen
            before = [] if seen is None or ran is None else [token.label for token in ran.tokens[: seen.first]]
            self.picture.show_picture(document.picture, info.channels, seen, before)
            self.picture.select(state.selection.query, state.selection.key)

    def _on_position_hovered(self, position: int) -> None:
        self.hover.point(Pointed(query=position) if position >= 0 else NOTHING)

    def _sides(self, state: State, strip: TokenStrip) -> Sides:
        return sides(state.ran, state.site, is_target=strip is self.target.strip)

    def _on_token(self, strip: TokenStrip, intent: Intent) -> None:
        if self._sides(self.session.state, strip).any:
            self.dispatch(intent)
            return
        here, there = ("source", "target") if strip is self.strip else ("target", "source")
        sentence = (
            f"The selected head looks only within the {there}. Choose another under All heads to select in the {here}."
        )
        self.dispatch(Show(Notice("info", sentence)))
        strip.set_selection(-1, -1)

    def _first_token(self, strip: TokenStrip, chip: int) -> int:
        """The first token of a chip's word; -1 for no chip."""
        words = self._chips[strip]
        return words.starts[chip] if 0 <= chip < len(words) else -1

    def _note_of(self, strip: TokenStrip, chip: int) -> str:
        """Why the selected head rests on this token, where it does."""
        state = self.session.state
        place = attention_sink(state) if self._sides(state, strip).both and not self._hides_weights else None
        return "" if place is None or self._chips[strip].word(place.key) != chip else in_lines(place.sentence)

    def _on_hovered(self, strip: TokenStrip, chip: int) -> None:
        token = self._first_token(strip, chip)
        side = self._sides(self.session.state, strip)
        if token < 0 or not side.any:
            self.hover.point(NOTHING)
        else:
            self.hover.point(Pointed(query=token) if side.queries else Pointed(key=token))

    def render_hover(self, pointed: Pointed) -> None:
        state = self.session.state
        for strip in (self.strip, self.target.strip):
            side = self._sides(state, strip)
            query = pointed.query if side.queries else -1
            strip.set_hover(self._chips[strip].word(query if query >= 0 else pointed.key if side.keys else -1))
        self.picture.hover(pointed.query if pointed.query >= 0 else pointed.key)
        self._render_arcs(state, pointed)

    def _mark_edited(self, state: State) -> None:
        """The card has no title: the mark stands beside what the arcs are of."""
        count = len(state.ran.inputs.interventions) if state.ran is not None else 0
        self.mark.setText(f"edited × {count}")
        self.mark.setVisible(count > 0)

    def _render_arcs(self, state: State, pointed: Pointed) -> None:
        row, ran = None if self._hides_weights else shown_row(state, pointed.query), state.ran
        self.picture.show_weights(None if row is None else row.weights)
        shaded = False
        for strip in (self.strip, self.target.strip):
            side = self._sides(state, strip)
            is_drawn = row is not None and side.keys and len(row.weights) == strip.count
            drawn = row if is_drawn and ran is not None and ran.seen is None else None
            shaded = shaded or (drawn is not None and not side.queries)
            weights = None if drawn is None else drawn.weights
            strip.set_arcs(weights if side.queries else None, drawn.query if side.queries and drawn is not None else -1)
            strip.set_shades(None if side.queries else weights)
        if ran is None:
            self.caption.setText("")
        elif self._hides_weights:
            self.caption.setText("arcs: when the question is answered")
        elif row is not None:
            self.caption.setText(caption(state, row, shaded))
