"""What the model reads, what an encoder-decoder model is made to say or a vision model looks at; and tokens."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from explorer.panels.base import EDITED, Panel
from explorer.panels.input.chat import ChatParts
from explorer.panels.input.picture import PictureRow
from explorer.panels.input.text_input import TextInput
from explorer.panels.input.token_strip import TokenStrip
from explorer.panels.input.token_strip_area import TokenStripArea
from explorer.panels.input.words import chip, language_remark, word_span
from explorer.panels.selected_head import head_name, head_shown, row_of, token_word, wanted_head
from explorer.session.hover import NOTHING, Hover, Pointed
from explorer.session.intents import Intent, SelectKey, SelectQuery, SetPicture, SetTarget, SetText, Show
from explorer.session.session import Session
from explorer.session.state import Notice, State, site_tokens
from explorer.widgets.card import Card
from explorer.widgets.page import wrapped
from models.protocol.head import HeadView, RowView
from models.protocol.request import Request
from models.protocol.running import Ran
from models.protocol.step import StepRequest
from models.protocol.values import Site


class InputPanel(Panel):
    api_version = 1
    name = "input"
    title = "Input"

    picture_asked = Signal()
    """The person wants to choose a picture among their files."""

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
        self.chat = ChatParts(self)
        self.chat.intent.connect(self.dispatch)
        self.chat.turns.submitted.connect(self.run_model)
        self.strip_area = self._strip_area("The text's tokens appear here.")
        self.strip = self.strip_area.strip
        self._make_target()
        self.picture = PictureRow()
        self.picture.hide()
        self.picture.chosen.connect(lambda reference: self.dispatch(SetPicture(reference)))
        self.picture.open_asked.connect(self.picture_asked)
        self.picture.patch_selected.connect(self._on_patch)
        self.picture.patch_hovered.connect(self._on_patch_hovered)
        self.caption = QLabel()
        self.caption.setProperty("role", "dim")
        self.caption.setTextFormat(Qt.TextFormat.PlainText)
        top = Qt.AlignmentFlag.AlignTop
        buttons = QHBoxLayout()
        buttons.setSpacing(10)
        for button in (self.mask_button, self.run_button, self.step_button):
            buttons.addWidget(button, 0, top)
        texts = QGridLayout()  # the two texts begin and end below each other
        texts.setHorizontalSpacing(10)
        texts.setVerticalSpacing(4)
        texts.setColumnStretch(1, 1)
        self.text_title = _title("Input", self.text)
        texts.addWidget(self.text_title, 0, 0, top)
        texts.addWidget(self.text, 0, 1)
        texts.addWidget(self.chat.side, 0, 0, top)
        texts.addWidget(self.chat.turns, 0, 1)
        texts.addWidget(self.picture, 0, 0, 1, 2)  # in the place of the text
        texts.addLayout(buttons, 0, 2)
        texts.addWidget(self.strip_area, 1, 0, 1, 3)
        for place, part in enumerate(self.target_row):
            texts.addWidget(part, 2, place, top)
        texts.addWidget(self.target_area, 3, 0, 1, 3)
        self.mark = QLabel()
        self.mark.setProperty("role", "mark")
        self.mark.setToolTip(EDITED)
        kept = self.mark.sizePolicy()
        kept.setRetainSizeWhenHidden(True)  # so that nothing moves when it appears
        self.mark.setSizePolicy(kept)
        below = QHBoxLayout()
        below.setSpacing(10)
        self.remark = wrapped()  # on the language of the text
        below.addWidget(self.chat.legend)
        below.addWidget(self.remark, 1)
        below.addWidget(self.mark)
        below.addWidget(self.caption)
        body = QWidget()
        column = QVBoxLayout(body)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addLayout(texts)
        column.addLayout(below)
        card = Card()
        card.set_content(body)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(card)
        self._shown: Ran | None = None

    def _make_target(self) -> None:
        """The second text of an encoder-decoder model, with tokens of its own."""
        self.target = TextInput(most_lines=2)
        self.target.setAccessibleName("Target text")
        self.target.setPlaceholderText("Nothing said yet: press Step for the next word, or type what it shall say")
        self.target.setToolTip("What the decoder says. Type to put words into its mouth, and see how likely each was.")
        self.target.edited.connect(lambda text: self.dispatch(SetTarget(text)))
        self.target.submitted.connect(self.run_model)
        self.target.refused.connect(lambda sentence: self.dispatch(Show(Notice("warning", sentence))))
        self.writes_button = QPushButton("Model writes")
        self.writes_button.setCheckable(True)
        self.writes_button.setToolTip(
            "Down: the model writes the target itself, by beam search. Up: it is made to say what stands here."
        )
        self.writes_button.clicked.connect(self.let_write)
        self.target_area = self._strip_area("The target's tokens appear here.")
        self.target_strip = self.target_area.strip
        self.target_strip.setAccessibleName("Target tokens")
        self.target_row = (_title("Target", self.target), self.target, self.writes_button)
        for part in (*self.target_row, self.target_area):
            part.hide()

    def _strip_area(self, empty: str) -> TokenStripArea:
        area = TokenStripArea()
        strip = area.strip
        strip.set_empty_text(empty)
        strip.token_selected.connect(lambda token: self._on_token(strip, SelectQuery(token)))
        strip.key_selected.connect(lambda token: self._on_token(strip, SelectKey(token)))
        strip.hovered.connect(lambda token: self._on_hovered(strip, token))
        return area

    # what its buttons do

    def focus_text(self) -> None:
        """Go to where the person types: the text, or the last turn of the conversation."""
        if self.text.isHidden():
            self.chat.turns.focus_turn(len(self.chat.turns.rows) - 1)
        else:
            self.text.setFocus()

    def let_write(self, on: bool) -> None:
        """Let the model write the target itself, or hold on to what it wrote as what it is made to say."""
        ran = self.session.state.ran
        self.dispatch(SetTarget(None if on else ran.written if ran is not None else ""))

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
        self.step_button.setToolTip(_step_tooltip(state))
        self.step_button.setEnabled(state.ran is not None and state.up_to_date and _writes(state))
        self.run_button.setEnabled(state.results.loaded is not None)
        self.remark.setText(self.chat.remark(state) or language_remark(state))
        if state.ran is not self._shown:
            self._shown = state.ran
            read = () if state.ran is None else state.ran.source or state.ran.tokens
            if state.ran is not None and state.ran.seen is not None:
                read = read[: state.ran.seen.first]  # the patches are in the picture
            said = state.ran.tokens if state.ran is not None and state.ran.source else ()
            for area, tokens in ((self.strip_area, read), (self.target_area, said)):
                in_chat = any(token.role for token in tokens)
                area.set_tokens([chip(token, i, in_chat) for i, token in enumerate(tokens)])
        self._render_target(state)
        self._render_picture(state)
        selection = state.selection
        moved = old is None or old.ran is not state.ran or old.selection != selection
        for area in (self.strip_area, self.target_area):
            area.strip.set_dim_special(state.document.view.dim_special)
            looks, is_looked_at = self._sides(state, area.strip)
            area.strip.set_selects("both" if looks == is_looked_at else "query" if looks else "key")
            area.strip.set_selection(selection.query if looks else -1, selection.key if is_looked_at else -1)
            if moved and (looks or is_looked_at):
                area.show_token(selection.query if looks else selection.key)
        self._render_arcs(state, self.hover.pointed)

    def _render_target(self, state: State) -> None:
        loaded, ran, target = state.results.loaded, state.ran, state.document.target
        two_texts = loaded is not None and loaded.info.family == "seq2seq"
        is_vision = _looks(state)
        for part in (*self.target_row, self.target_area):
            part.setVisible(two_texts)
        for area in (self.strip_area, self.target_area):
            has_arcs = all(self._sides(state, area.strip))
            is_low = two_texts or state.document.chat
            area.set_room("none" if is_vision or (two_texts and not has_arcs) else "low" if is_low else "tall")
        if not two_texts:
            return
        self.writes_button.setChecked(target is None)
        if target is not None:
            self.target.set_text(target)
        elif ran is None or ran.target is None:
            self.target.set_text("" if ran is None else ran.written)

    def _render_picture(self, state: State) -> None:
        is_vision = _looks(state)
        is_chat = self.chat.show_state(state)
        self.text.setVisible(not is_vision and not is_chat)
        self.text_title.setVisible(not is_vision and self.chat.side.isHidden())
        self.step_button.setVisible(not is_vision)
        self.strip_area.set_most_lines(2 if is_chat else 3)  # the turns take the third
        self.run_button.setText("Run  ·  Ctrl+R" if is_vision else "Run  ·  Enter")
        self.picture.setVisible(is_vision)
        if is_vision:
            self.picture.show_state(state)

    def _on_patch(self, patch: int) -> None:
        position = self.picture.position_of(patch)
        if position >= 0:
            self.dispatch(SelectQuery(position))

    def _on_patch_hovered(self, patch: int) -> None:
        position = self.picture.position_of(patch)
        self.hover.point(Pointed(query=position) if position >= 0 else NOTHING)

    def _sides(self, state: State, strip: TokenStrip) -> tuple[bool, bool]:
        """Whether the tokens of `strip` look at the selected site, and whether they are looked at."""
        ran, site = state.ran, state.site
        if ran is None:
            return False, False
        if site is None:
            reads = strip is (self.target_strip if ran.source else self.strip)
            return reads, reads and not ran.source
        mine = ran.source or ran.tokens if strip is self.strip else ran.tokens if ran.source else None
        queries, keys = site_tokens(ran, site)
        return mine is queries, mine is keys

    def _on_token(self, strip: TokenStrip, intent: Intent) -> None:
        if any(self._sides(self.session.state, strip)):
            self.dispatch(intent)
            return
        here, there = ("source", "target") if strip is self.strip else ("target", "source")
        sentence = (
            f"The selected head looks only within the {there}. Choose another under All heads to select in the {here}."
        )
        self.dispatch(Show(Notice("info", sentence)))
        strip.set_selection(-1, -1)

    def _on_hovered(self, strip: TokenStrip, token: int) -> None:
        looks, is_looked_at = self._sides(self.session.state, strip)
        if token < 0 or not (looks or is_looked_at):
            self.hover.point(NOTHING)
        else:
            self.hover.point(Pointed(query=token) if looks else Pointed(key=token))

    def render_hover(self, pointed: Pointed) -> None:
        state = self.session.state
        for strip in (self.strip, self.target_strip):
            looks, is_looked_at = self._sides(state, strip)
            query = pointed.query if looks else -1
            strip.set_hover(query if query >= 0 else pointed.key if is_looked_at else -1)
        self.picture.set_hover(self.picture.patch_of(pointed.query if pointed.query >= 0 else pointed.key))
        self._render_arcs(state, pointed)

    def _mark_edited(self, state: State) -> None:
        """The card has no title: the mark stands beside what the arcs are of."""
        count = len(state.ran.interventions) if state.ran is not None else 0
        self.mark.setText(f"edited × {count}")
        self.mark.setVisible(count > 0)

    def _render_arcs(self, state: State, pointed: Pointed) -> None:
        view, ran = head_shown(state), state.ran
        if ran is None:
            self.caption.setText("")
            return
        site = state.site
        if view is None or site is None or not _is_of(view, site):
            self.picture.show_weights(None)
            for strip in (self.strip, self.target_strip):
                strip.set_arcs(None, -1)
                strip.set_shades(None)
            return
        row = pointed.query if 0 <= pointed.query < site.queries else state.selection.query
        row = view.query if isinstance(view, RowView) else row  # the others are not here
        weights, _ = row_of(view, row)
        shaded = False
        for strip in (self.strip, self.target_strip):
            looks, is_looked_at = self._sides(state, strip)
            drawn = weights if is_looked_at and len(weights) == strip.count and ran.seen is None else None
            shaded = shaded or (drawn is not None and not looks)
            strip.set_arcs(drawn if looks else None, row if looks and drawn is not None else -1)
            strip.set_shades(None if looks else drawn)
        before = "" if state.up_to_date else "tokens of the last text that ran · "
        name = head_name(state)
        self.picture.show_weights(weights)
        by = "colour" if ran.seen is not None else "shades" if shaded else "arcs"
        shows = f"{by}: {name[0].lower()}{name[1:]}, from “{token_word(state, row)}”"
        self.caption.setText(f"{before}{shows}{_wrote(state, row) if shaded else ''}")


def _is_of(view: HeadView | RowView, site: Site) -> bool:
    """Whether the view's keys (and queries) are as many as those of `site`."""
    return view.weights.shape == ((site.keys,) if isinstance(view, RowView) else (site.queries, site.keys))


def _wrote(state: State, row: int) -> str:
    """What the decoder wrote while it looked with this row: the next token."""
    after = token_word(state, row + 1)
    return f" as it wrote “{after}”" if after else ""


def _looks(state: State) -> bool:
    """Whether the open model looks at a picture."""
    return state.results.loaded is not None and state.results.loaded.info.family == "vision"


def _mask_token(state: State) -> str | None:
    return state.results.loaded.info.mask_token if state.results.loaded is not None else None


def _writes(state: State) -> bool:
    loaded = state.results.loaded
    if loaded is not None and loaded.info.family == "seq2seq":
        return state.document.target is not None
    return loaded is not None and loaded.info.family in ("causal", "masked")


def _step_tooltip(state: State) -> str:
    mask, loaded = _mask_token(state), state.results.loaded
    if mask is not None:
        return f"Fill the {mask} of which the model is surest (Ctrl+Enter)"
    if loaded is None or loaded.info.family != "seq2seq":
        return "Append the model's likeliest next token (Ctrl+Enter)"
    if state.document.target is None:
        return "The model has written its whole answer. Empty the target, or begin it yourself, to go step by step."
    return "Append the model's likeliest next token to the target (Ctrl+Enter)"


def _button(text: str, key: str, tooltip: str, action: object) -> QPushButton:
    button = QPushButton(f"{text}  ·  {key}")
    button.setAccessibleName(text)
    button.setToolTip(tooltip)
    button.clicked.connect(action)
    return button


def _title(text: str, buddy: QWidget) -> QLabel:
    label = QLabel(text)
    label.setProperty("role", "title")
    label.setBuddy(buddy)
    return label
