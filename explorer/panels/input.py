"""What the model reads: the text, its tokens, and arcs that show where the selected token looks."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from explorer.panels.base import EDITED, Panel, head_name, shortened, token_word, wanted_head
from explorer.session.hover import NOTHING, Hover, Pointed
from explorer.session.intents import SelectKey, SelectQuery, SetText, Show
from explorer.session.session import Session
from explorer.session.state import Notice, State
from explorer.widgets.card import Card
from explorer.widgets.text_input import TextInput
from explorer.widgets.token_strip import Chip
from explorer.widgets.token_strip_area import TokenStripArea
from models.requests import Ran, Request, StepRequest, Token


class InputPanel(Panel):
    name = "input"
    title = "Input"

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
        self.text.refused.connect(lambda sentence: self.dispatch(Show(Notice("warning", sentence))))
        self.run_button = _button("Run", "Enter", "Run the model on this text again (Enter)", self.run_model)
        self.step_button = _button("Step", "Ctrl+Enter", "", self.step)
        self.mask_button = _button("Mask", "Ctrl+M", "", self.mask_word)
        self.strip_area = TokenStripArea()
        self.strip = self.strip_area.strip
        self.strip.set_empty_text("The text's tokens appear here.")
        self.strip.token_selected.connect(lambda token: self.dispatch(SelectQuery(token)))
        self.strip.key_selected.connect(lambda token: self.dispatch(SelectKey(token)))
        self.strip.hovered.connect(lambda token: self.hover.point(Pointed(query=token) if token >= 0 else NOTHING))
        self.caption = QLabel()
        self.caption.setProperty("role", "dim")
        self.caption.setTextFormat(Qt.TextFormat.PlainText)
        label = QLabel("Input")
        label.setProperty("role", "title")
        label.setBuddy(self.text)
        first = QHBoxLayout()
        first.setSpacing(10)
        first.addWidget(label, 0, Qt.AlignmentFlag.AlignTop)
        first.addWidget(self.text, 1)
        for button in (self.mask_button, self.run_button, self.step_button):
            first.addWidget(button, 0, Qt.AlignmentFlag.AlignTop)
        self.mark = QLabel()
        self.mark.setProperty("role", "mark")
        self.mark.setToolTip(EDITED)
        kept = self.mark.sizePolicy()
        kept.setRetainSizeWhenHidden(True)  # so that nothing moves when it appears
        self.mark.setSizePolicy(kept)
        below = QHBoxLayout()
        below.setSpacing(10)
        below.addStretch(1)
        below.addWidget(self.mark)
        below.addWidget(self.caption)
        body = QWidget()
        column = QVBoxLayout(body)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addLayout(first)
        column.addWidget(self.strip_area)
        column.addLayout(below)
        card = Card()
        card.set_content(body)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(card)
        self._shown: Ran | None = None

    # what its buttons do

    def run_model(self) -> None:
        """Run the model on the text, whether it ran before or not."""
        if self.session.state.results.loaded is not None:
            self.session.request(self.session.state.document.question.request)

    def step(self) -> None:
        """Let the model write one token, or fill its surest mask."""
        state = self.session.state
        if state.ran is not None and state.up_to_date:
            self.session.request(StepRequest(run=state.ran.run))

    def mask_word(self) -> None:
        """Put the mask in the place of the marked text, or of the word that the selected token belongs to."""
        state = self.session.state
        mask = _mask_token(state)
        if mask is None or state.ran is None:
            return
        text = self.text.text()
        start, end = self.text.selected_span()
        if start == end and state.up_to_date:
            text = state.document.text
            start, end = word_span(state.ran.tokens, state.selection.query)
        if start == end:
            sentence = (
                "Select a word first: click its token, or mark it in the text. Mask then hides it from the model."
            )
            self.dispatch(Show(Notice("info", sentence)))
            return
        self.dispatch(SetText(text[:start] + mask + text[end:]))

    # what it shows

    def wants(self, state: State) -> Request | None:
        return wanted_head(state)

    def render_state(self, state: State, old: State | None) -> None:
        self.text.set_text(state.document.text)
        mask = _mask_token(state)
        self.mask_button.setVisible(mask is not None)
        self.mask_button.setToolTip(f"Hide the selected word from the model behind {mask} (Ctrl+M)")
        self.step_button.setToolTip(
            "Append the model's likeliest next token (Ctrl+Enter)"
            if mask is None
            else f"Fill the {mask} of which the model is surest (Ctrl+Enter)"
        )
        self.step_button.setEnabled(state.ran is not None and state.up_to_date and _writes(state))
        self.run_button.setEnabled(state.results.loaded is not None)
        if state.ran is not self._shown:
            self._shown = state.ran
            self.strip_area.set_tokens(
                [_chip(token, i) for i, token in enumerate(state.ran.tokens)] if state.ran else []
            )
        self.strip.set_dim_special(state.document.view.dim_special)
        selection = state.selection
        self.strip.set_selection(*((selection.query, selection.key) if state.ran else (-1, -1)))
        if old is None or old.ran is not state.ran or old.selection.query != selection.query:
            self.strip_area.show_token(selection.query)
        self._render_arcs(state, self.hover.pointed)

    def render_hover(self, pointed: Pointed) -> None:
        self.strip.set_hover(pointed.query if pointed.query >= 0 else pointed.key)
        self._render_arcs(self.session.state, pointed)

    def _mark_edited(self, state: State) -> None:
        """The card has no title: the mark stands beside what the arcs are of."""
        count = len(state.ran.interventions) if state.ran is not None else 0
        self.mark.setText(f"edited × {count}")
        self.mark.setVisible(count > 0)

    def _render_arcs(self, state: State, pointed: Pointed) -> None:
        view, ran = state.results.head, state.ran
        if ran is None:
            self.caption.setText("")
            return
        if view is None or view.run != ran.run or view.weights.shape[1] != len(ran.tokens):
            self.strip.set_arcs(None, -1)
            return
        source = pointed.query if 0 <= pointed.query < len(view.weights) else state.selection.query
        self.strip.set_arcs(view.weights[source], source)
        before = "" if state.up_to_date else "tokens of the last text that ran · "
        name = head_name(state)
        self.caption.setText(f"{before}arcs: {name[0].lower()}{name[1:]}, from “{token_word(state, source)}”")


def word_span(tokens: tuple[Token, ...], position: int) -> tuple[int, int]:
    """First and last character of the word that the token at `position` belongs to, leading white space left out.

    A word is a run of tokens that touch, none but the first beginning with white space; (0, 0) for special tokens.
    """
    if not 0 <= position < len(tokens) or tokens[position].start == tokens[position].end:
        return 0, 0
    first = last = position
    while first > 0 and _continues(tokens[first - 1], tokens[first]):
        first -= 1
    while last + 1 < len(tokens) and _continues(tokens[last], tokens[last + 1]):
        last += 1
    start = tokens[first].start + len(tokens[first].text) - len(tokens[first].text.lstrip())
    return start, tokens[last].end


def _continues(before: Token, token: Token) -> bool:
    letters = before.text[-1:].isalnum() and token.text[:1].isalnum()
    return before.start < before.end and before.end >= token.start and letters


def _chip(token: Token, position: int) -> Chip:
    covers = f"“{shortened(token.text)}”" if token.text else "no text"
    part = f", piece {token.part[0]} of {token.part[1]} of it" if token.part[1] > 1 else ""
    return Chip(
        label=token.label,
        tooltip=f"position {position}: “{token.piece}” in the vocabulary, id {token.id}; covers {covers}{part}",
        special=token.special,
    )


def _mask_token(state: State) -> str | None:
    return state.results.loaded.info.mask_token if state.results.loaded is not None else None


def _writes(state: State) -> bool:
    loaded = state.results.loaded
    return loaded is not None and loaded.info.family in ("causal", "masked")


def _button(text: str, key: str, tooltip: str, action: object) -> QPushButton:
    button = QPushButton(f"{text}  ·  {key}")
    button.setAccessibleName(text)
    button.setToolTip(tooltip)
    button.clicked.connect(action)
    return button
