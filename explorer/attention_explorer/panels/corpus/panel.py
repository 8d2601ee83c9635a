"""A file of texts read through the model: what heads do on average, and where they do something most."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import PurePath

import numpy as np
from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import (
    QLabel,
    QLineEdit,
    QProgressBar,
    QPushButton,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from attention_explorer.chooser.drops import texts_in
from attention_explorer.look.colour_maps import sequential
from attention_explorer.panels.about import About
from attention_explorer.panels.base import HEAD, Panel
from attention_explorer.panels.corpus.figures import (
    distance_figure,
    mean_map,
    ranked_heads,
    token_rows,
    unordered,
    why_no_score,
)
from attention_explorer.panels.corpus.pages import MapPage, OnePage, OpenedLine, PlacesPage, RowsPage
from attention_explorer.panels.selected_head import head_name, name_of_head
from attention_explorer.session.corpus import corpus_means, corpus_view
from attention_explorer.session.hover import Hover
from attention_explorer.session.intents import (
    AskCorpus,
    ChooseCorpus,
    ReadCorpus,
    RestoreDocument,
    SelectHead,
    Show,
    ShowPlace,
)
from attention_explorer.session.session import Session
from attention_explorer.session.state import Document, Notice, State
from attention_explorer.widgets.card import Card
from attention_explorer.widgets.dialogs import Kind, ask_where_to_save
from attention_explorer.widgets.file_button import FileButton
from attention_explorer.widgets.labels import ElidedLabel
from attention_explorer.widgets.layouts import flowing
from attention_explorer.widgets.number_text import value_text
from attention_explorer.widgets.page import PageOrInvitation
from attention_explorer.widgets.plot.figure import Figure
from attention_explorer.widgets.plot.plot import Plot
from attention_explorer.widgets.segments import Segments
from attention_explorer.widgets.token_text import apart, in_lines
from attention_explorer.widgets.whole_list_box import WholeListBox
from attention_models.corpus.corpus_export import save_hits, save_means
from attention_models.files.text_stream import SUFFIXES
from attention_models.protocol.corpus import (
    WORD,
    CorpusFigure,
    CorpusQuestion,
    CorpusRequest,
    CorpusView,
    Hit,
    ShownCell,
    ShownDistances,
    ShownInCorpus,
    ShownPlace,
    ShownRow,
)
from attention_models.protocol.errors import ExplorerError
from attention_models.protocol.request import Request
from attention_models.protocol.roles import PATTERNS, ROLE_NAMES
from attention_models.protocol.values import CheckpointInfo, SiteRef

# Which figure of a page is written as PyTorch. Pure.


_FEW = 3
"""Distances, or keys of a row, that are printed: those with the largest weights."""


def printed(view: CorpusView, site: SiteRef, head: int, figure: CorpusFigure | None) -> ShownInCorpus | None:
    """What “Show as PyTorch” asks for; None where there is no figure."""
    if figure is None:
        return None
    return ShownInCorpus(
        of=view.request,
        site=site,
        head=head,
        figure=figure,
        texts=view.texts,
        tokens=view.tokens,
        ended=view.ended,
    )


def shown_cell(view: CorpusView, site: SiteRef, head: int, selected: tuple[int, int]) -> ShownCell | None:
    """The selected cell of the mean map; else its largest, in a row with a choice where there is one."""
    found = mean_map(view, site, head)
    if found is None or np.isnan(found.values).all():
        return None
    rows, columns = found.values.shape
    query, key = selected
    if not (0 <= query < rows and 0 <= key < columns) or np.isnan(found.values[query, key]):
        has_choice = (~np.isnan(found.values)).sum(axis=1, keepdims=True) > 1  # (rows, 1)
        chosen = np.where(has_choice, found.values, np.nan) if has_choice.any() else found.values
        query, key = divmod(int(np.nanargmax(chosen)), columns)
    return ShownCell(query, key, float(found.values[query, key]))


def shown_distances(view: CorpusView, site: SiteRef, head: int) -> ShownDistances | None:
    if site not in view.sites or head >= view.by_distance.shape[1]:
        return None
    means = view.by_distance[view.sites.index(site), head]
    few = tuple((int(view.distances[i]), float(means[i])) for i in _largest_first(means))
    return ShownDistances(few) if few else None


def shown_place(view: CorpusView, site: SiteRef, head: int, hit: Hit | None) -> ShownPlace | None:
    """`hit` is the one that is chosen in the list of this head, None where it has none."""
    if site not in view.sites or head >= view.scores.shape[1]:
        return None
    score = float(view.scores[view.sites.index(site), head])
    return None if np.isnan(score) else ShownPlace(score, hit)


def shown_row(view: CorpusView, site: SiteRef, head: int, row: int) -> ShownRow | None:
    """Of the gathered rows the one at `row`, else the first."""
    if site not in view.row_sites or not view.rows:
        return None
    chosen = view.rows[row if 0 <= row < len(view.rows) else 0]
    weights = chosen.weights[view.row_sites.index(site)]
    if head >= len(weights):
        return None
    of_head = weights[head]
    few = tuple((key, float(of_head[key])) for key in _largest_first(of_head))
    return ShownRow(chosen.line, chosen.text, chosen.second, chosen.query, few) if few else None


def _largest_first(values: np.ndarray) -> list[int]:
    """Where the few largest are; NaN is none."""
    order = np.argsort(np.nan_to_num(values, nan=-1.0), kind="stable")[::-1][:_FEW]
    return [int(place) for place in order if not np.isnan(values[place])]


# What the Corpus panel says. Pure.


INVITE = (
    "Choose a file of texts, or drop one here: .txt with a text a line, .csv, .tsv or .jsonl; a second column makes "
    "pairs, or gives a translator what its decoder says. The model reads a few at a time, and the window goes "
    "on meanwhile."
)
NOT_READ = "Not read yet: press Read."
OTHERWISE = "What was read is of another file, or of other changes to the model. Press Read to read it as it is now."


def name_of(path: str) -> str:
    """A file's name, for sentences."""
    return apart(PurePath(path).name)


def refusal(info: CheckpointInfo | None) -> str:
    """Why the open model reads no file of texts; "" where it does."""
    if info is None:
        return ""
    if info.family == "vision":
        return f"{info.name} looks at pictures. Open a model of text to read a file of texts."
    if not info.stacks and info.textbook:
        return f"{info.name} has no attention, so there is nothing to gather."
    return ""


def status(view: CorpusView, reading: bool) -> str:
    """How much was read, and how fast."""
    parts = [many(view.texts, "text"), many(view.tokens, "token")]
    if view.seconds > 0:
        rate = view.texts / view.seconds
        parts.append(f"{rate:,.0f} texts a second" if rate >= 10 else f"{rate:.1f} texts a second")
    if reading:
        parts.append(f"{view.share:.0%} read")
    elif view.ended and not view.broken:
        parts.append("read to the end")
    elif view.broken:
        parts.append(f"broken off after line {view.lines:,}")
    else:
        parts.append(f"stopped at {view.share:.0%}")
    return " · ".join(parts)


def remarks(view: CorpusView) -> str:
    """What was left out and why, and what was written in the place of a target, in one line."""
    count = [f"{view.left_out_count:,} left out."] if view.left_out_count > 1 else []
    return " ".join((*_of_file(view), *count, *view.left_out[:1]))


def whole_remarks(view: CorpusView) -> tuple[str, ...]:
    """The same with every sentence there is."""
    more = view.left_out_count - len(view.left_out)
    return (*_of_file(view), *view.left_out, *((f"And {more:,} more.",) if more else ()))


def _of_file(view: CorpusView) -> list[str]:
    said = [view.broken] if view.broken else []
    if view.written:
        whose = "has no second text" if view.written == 1 else "have no second text"
        said.append(f"{many(view.written, 'line')} {whose}: there the decoder says what the model writes itself.")
    return said


def many(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def asked_words(question: CorpusQuestion) -> str:
    """What was asked, as a clause: "attends to the token before"; "" for nothing."""
    asked = question.attends_to
    if asked.startswith(WORD):
        return f"attends to “{asked.removeprefix(WORD)}”"
    return f"attends to {ROLE_NAMES[asked].title}" if asked in ROLE_NAMES else ""


KINDS = f"Texts ({' '.join(f'*{suffix}' for suffix in SUFFIXES)});;All files (*)"
_FIELD_LETTERS = 14


class QuestionFields(QObject):
    """What heads are asked about the texts, and whose rows are compared: two rows of fields, each for its page."""

    asked = Signal(object)
    """A `CorpusQuestion`, by a person."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._question = CorpusQuestion()
        self.pattern = WholeListBox()
        self.pattern.setAccessibleName("What heads are asked")
        self.pattern.setToolTip("Rank the heads by how much they attend to it, and list where the selected one does")
        self.pattern.setMinimumContentsLength(16)
        self.pattern.addItem("nothing asked", "")
        for role in PATTERNS:
            self.pattern.addItem(role.title, role.name)
        self.pattern.addItem("a token…", WORD)
        self.word = _field("the token", "The token that heads are asked about, as it is drawn: the, ball")
        self.rows_of = _field("a token", "Whose rows are compared across the texts, as it is drawn: the, ball")
        self.even = QLabel()
        self.even.setProperty("role", "dim")
        self.even.setToolTip("The score of a head that attends evenly to all that it sees")
        self.heads_row = flowing(QLabel("Attends to"), self.pattern, self.word, self.even)
        self.rows_row = flowing(QLabel("Rows of"), self.rows_of)
        self.pattern.activated.connect(lambda _: self._on_pattern())
        self.word.editingFinished.connect(self._ask)
        self.rows_of.editingFinished.connect(self._ask)
        self.show_question(self._question)

    def show_question(self, question: CorpusQuestion) -> None:
        """Show what is asked. Emits nothing."""
        self._question = question
        is_word = question.attends_to.startswith(WORD)
        self.pattern.setCurrentIndex(self.pattern.findData(WORD if is_word else question.attends_to))
        self.word.setText(question.attends_to.removeprefix(WORD) if is_word else "")
        self.word.setVisible(is_word)
        self.rows_of.setText(question.rows_of)

    def _on_pattern(self) -> None:
        is_word = self.pattern.currentData() == WORD
        self.word.setVisible(is_word)
        if is_word:
            self.word.setFocus()
        if not is_word or self.word.text():
            self._ask()

    def _ask(self) -> None:
        pattern, word = self.pattern.currentData(), self.word.text().strip()
        if pattern == WORD:
            pattern = f"{WORD}{word}" if word else ""
        question = CorpusQuestion(pattern or "", self.rows_of.text().strip())
        if question != self._question:
            self.asked.emit(question)


def _field(hint: str, tooltip: str) -> QLineEdit:
    field = QLineEdit()
    field.setPlaceholderText(hint)
    field.setAccessibleName(tooltip)
    field.setToolTip(tooltip)
    field.setMaxLength(200)
    field.setFixedWidth(_FIELD_LETTERS * field.fontMetrics().averageCharWidth())
    return field


# What the (i) of Corpus says. Pure.


_WHAT = (
    "Every text of a file is run through the open model as it is now, changes included. Map is the mean weight of the "
    "selected head between places counted from the beginning of a text; Distance the mean weight by how far the key "
    "lies before the query, in rows where more than one key is visible."
)
_SUMS = "Nothing is kept of a text but sums, and the places that are listed, so a file may be as long as it likes."
_TRY = "Try: ask what attends to the token before, take the head that leads, and look at Map and Distance."


def about(state: State) -> About:
    loaded = state.results.loaded
    sentence = refusal(None if loaded is None else loaded.info)
    if sentence:
        return About((sentence, _WHAT))
    means = corpus_means(state)
    if means is None:
        return About((_WHAT, _SUMS), _TRY)
    return About.of((_WHAT, _counted(state), _largest(state), _asked(state)), _TRY)


def _counted(state: State) -> str:
    means = corpus_means(state)
    assert means is not None
    so_far = "" if means.ended else " so far"
    return (
        f"These are {many(means.texts, 'text')} of {name_of(means.request.path)}{so_far}, "
        f"{many(means.tokens, 'token')}."
    )


def _largest(state: State) -> str:
    means, selection = corpus_means(state), state.selection
    found = None if means is None or selection.site is None else mean_map(means, selection.site, selection.head)
    if found is None:
        return ""
    values = np.where((~np.isnan(found.values)).sum(axis=1, keepdims=True) > 1, found.values, np.nan)
    if np.isnan(values).all():
        return ""
    query, key = divmod(int(np.nanargmax(values)), values.shape[1])
    return (
        f"The largest mean of the selected head, in a row with a choice, is {value_text(float(values[query, key]))}: "
        f"from place {query} to place {key}, over {many(int(found.texts[query, key]), 'text')}."
    )


def _asked(state: State) -> str:
    view, site = corpus_view(state), state.selection.site
    if view is None or site is None or not view.request.question.attends_to:
        return ""
    heads, even = ranked_heads(view, site.stack)
    if not heads or even is None:
        return ""
    layer, head, _, score = heads[0]
    name = name_of_head(SiteRef(site.stack, layer), head, view.sites)
    return (
        f"Of all heads {name} {asked_words(view.request.question)} most, {value_text(score)} of its attention where "
        f"there is such a key; a head that attends evenly would give {value_text(even)}."
    )


MAP, DISTANCE, PLACES, ROWS = range(4)
_PAGES = (
    ("Map", "The mean weight of the selected head between places of the texts"),
    ("Distance", "The mean weight of the selected head by how far the key lies before the query"),
    ("Places", "The heads ranked by what was asked, and where the selected one does it most"),
    ("Rows", "What one token attends to, text by text"),
)
_MEANS, _HITS = Kind("Means", ".npz"), Kind("Places", ".csv")
_NO_SITE = "The selected head did not run on these texts."
_ASK = "Choose above what heads are asked: they are ranked here, with the places where the selected one does it most."
_TYPE = "Type a token after “Rows of”: what it attends to is shown here text by text, one below the other."
_NOWHERE = "No text read so far has this token where this head looks from."
_FIRST = "The first texts are being read."
_READ = "Press Read: the figures appear here, and go on changing as texts are read."


class CorpusPanel(Panel):
    api_version = 1
    name = "corpus"
    title = "Corpus"
    hint = "A file of texts read through the model: each head's mean weights, and where it does something most."
    reads = (
        "document.corpus",
        "document.corpus_request",
        "document.view",
        "reading",
        "recent_texts",
        "notice",
        "selection",
        "site",
        CorpusView,
    )

    @classmethod
    def suits(cls, info: CheckpointInfo) -> bool:
        return not refusal(info)

    def is_at_work(self, state: State) -> bool:
        return state.reading

    def __init__(self, session: Session, hover: Hover, parent: QWidget | None = None) -> None:
        super().__init__(session, hover, parent)
        self.file = FileButton(
            "File", "Choose a file of texts: .txt, .csv, .tsv or .jsonl", "Read a file of texts", KINDS
        )
        self.file.chosen.connect(self._choose)
        self.read = QPushButton("Read")
        self.read.clicked.connect(lambda: self.dispatch(ReadCorpus(not self.session.state.reading)))
        self.save = QPushButton("Save…")
        self.save.setToolTip("Save the means of all heads (.npz), or the places listed (.csv)")
        self.save.clicked.connect(self._save)
        self.status, self.remarks = ElidedLabel(), ElidedLabel()
        self.remarks.setProperty("role", "dim")
        for label in (self.status, self.remarks):
            label.setTextFormat(Qt.TextFormat.PlainText)  # a file's name may look like mark-up
            label.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.progress = QProgressBar()
        self.progress.setTextVisible(False)
        self.progress.setFixedHeight(6)
        self.progress.setRange(0, 1000)
        self.question = QuestionFields(self)
        self.question.asked.connect(lambda question: self.dispatch(AskCorpus(question)))
        self.pages = Segments(_PAGES, "What is shown", wraps=True)
        self.pages.chosen.connect(self._on_page)
        self.stack = OnePage()
        self.map_page = MapPage()
        self.plot = Plot("Mean weight by distance", 180, grows=True)
        self.places = PlacesPage(self.question.heads_row)
        self.places.ranking.head_chosen.connect(self._on_head)
        self.places.hits.opened.connect(self._open)
        self.rows_page = RowsPage(self.question.rows_row)
        self.rows_page.rows.opened.connect(self._open_row)
        for shown in (self.map_page, self.plot, self.places, self.rows_page):
            self.stack.addWidget(shown)
        self.opened = OpenedLine()
        self.opened.back.clicked.connect(self._go_back)
        self.opened.look.clicked.connect(lambda: self.front_wanted.emit(HEAD))
        page = QWidget()
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        for widget in (self.status, self.progress, self.remarks, self.pages):
            column.addWidget(widget)
        column.addWidget(self.stack, 1)
        column.addWidget(self.opened)
        self.body = PageOrInvitation(page, "Choose a file…")
        self.body.asked.connect(self.file.ask)
        self.card = Card(self.title)
        for control in (self.file, self.read, self.save):
            self.card.add_control(control)
        self.card.set_content(self.body)
        self.fill(self.card)
        self.keep("page", self.pages)
        self.setAcceptDrops(True)
        self._before: Document | None = None  # what was on screen before a place was opened
        self._shown: Document | None = None
        self._drawn: tuple[object, ...] = ()
        self._failed = ("", "")  # a file that could not be read, and why

    # what it shows

    def about(self, state: State) -> About:
        return about(state)

    def figures(self) -> Iterable[QWidget]:
        return ()  # of a file of texts

    def prints(self, state: State) -> Request | None:
        page, means, site, head = self.pages.current, corpus_means(state), state.selection.site, state.selection.head
        view = means if page in (MAP, DISTANCE) else corpus_view(state)
        if view is None or site is None or not view.texts:
            return None
        if page == MAP:
            return printed(view, site, head, shown_cell(view, site, head, self.map_page.map.selection))
        if page == DISTANCE:
            return printed(view, site, head, shown_distances(view, site, head))
        if page == PLACES:
            return printed(view, site, head, shown_place(view, site, head, self.places.hits.current_hit))
        return printed(view, site, head, shown_row(view, site, head, self.rows_page.rows.selection[0]))

    def render_state(self, state: State, old: State | None) -> None:
        loaded, corpus = state.results.loaded, state.document.corpus
        if old is None or (corpus.path, state.recent_texts) != (old.document.corpus.path, old.recent_texts):
            self.file.show_files(corpus.path, state.recent_texts)
        if old is None or corpus.question != old.document.corpus.question:
            self.question.show_question(corpus.question)
        sentence = refusal(None if loaded is None else loaded.info)
        for control in (self.file, self.read, self.save):
            control.setVisible(not sentence and (control is self.file or bool(corpus.path)))
        if sentence or not corpus.path:
            self.body.invite(sentence or INVITE, can_open=not sentence)
            self.card.set_title(self.title)
            return
        self.body.show_page()
        self._render_reading(state)
        self._render_back(state)
        view, selection = corpus_means(state), state.selection
        drawn = (view, corpus_view(state), selection.site, selection.head, state.document.view, self.pages.current)
        if drawn != self._drawn:
            self._drawn = drawn
            self._render_page(state)

    def _render_reading(self, state: State) -> None:
        means, view = corpus_means(state), corpus_view(state)
        name, notice = name_of(state.document.corpus.path), state.notice
        if notice is not None and notice.lane == CorpusRequest.lane:
            self._failed = (state.document.corpus.path, notice.text)
        elif state.reading:
            self._failed = ("", "")
        if means is not None and means.texts:
            said = status(means, state.reading and means is view)
        elif state.reading:
            said = "reading …"
        elif self._failed[0] == state.document.corpus.path:
            said = self._failed[1]  # the sentence at the top may be gone
        else:
            said = NOT_READ if state.results.of(CorpusView) is None else OTHERWISE
        self.status.setText(f"{name} · {said}")
        self.status.setToolTip(f"{state.document.corpus.path}\n{said}")
        self.progress.setVisible(state.reading)
        self.progress.setValue(round(1000 * (0.0 if view is None else view.share)))
        self.remarks.setText("" if means is None else remarks(means))
        self.remarks.setToolTip("" if means is None else "\n".join(map(in_lines, whole_remarks(means))))
        self.remarks.setVisible(bool(self.remarks.text()))
        goes_on = view is not None and not view.ended
        again = view is not None and view.ended
        self.read.setText("Stop" if state.reading else "Go on" if goes_on else "Read again" if again else "Read")
        self.read.setToolTip(
            "Stop reading; what was found stays, and it can go on from there"
            if state.reading
            else "Go on reading where it stopped"
            if goes_on
            else "Read the file through the model, from its beginning"
        )
        self.save.setEnabled(means is not None and means.texts > 0)

    def _render_page(self, state: State) -> None:
        page = self.pages.current
        self.stack.setCurrentIndex(page)
        self.stack.updateGeometry()
        self.card.set_title(head_name(state) if state.site is not None else self.title)
        (self._render_map, self._render_distance, self._render_places, self._render_rows)[page](state)

    def _render_map(self, state: State) -> None:
        view, selection = corpus_means(state), state.selection
        found = None
        if view is not None and selection.site is not None:
            found = mean_map(view, selection.site, selection.head)
        self.map_page.show_map(found, _nothing(view), sequential(state.document.view.colour_map))

    def _render_distance(self, state: State) -> None:
        view, selection = corpus_means(state), state.selection
        self.plot.set_empty_text(_nothing(view))
        if view is None or selection.site is None:
            self.plot.set_figure(Figure())
            return
        self.plot.set_figure(distance_figure(view, selection.site, selection.head, head_name(state)))

    def _render_places(self, state: State) -> None:
        view, site, asked = corpus_view(state), state.selection.site, state.document.corpus.question.attends_to
        loaded = state.results.loaded
        heads, even = ([], None) if view is None or site is None else ranked_heads(view, site.stack)
        self.question.even.setText(f"evenly: {even:.3f}" if asked and even is not None else "")
        if not asked:
            self.places.say(_ASK)
            return
        if view is None or site is None or not heads:
            why = "" if loaded is None or site is None else why_no_score(asked, loaded.info, site.stack)
            self.places.say(why or (unordered(asked) if view is not None and view.texts else "") or _nothing(view))
            return
        head = state.selection.head
        self.places.show_heads(heads, even, (site.layer, head))
        listed = view.hits[view.sites.index(site)] if site in view.sites else ()
        what = f"Where the selected head {asked_words(view.request.question)} most"
        self.places.show_hits(listed[head] if head < len(listed) else (), what)

    def _render_rows(self, state: State) -> None:
        view, site, word = corpus_view(state), state.selection.site, state.document.corpus.question.rows_of
        rows = () if view is None or site is None else token_rows(view, site, state.selection.head)
        empty = _TYPE if not word else _nothing(view) if view is None or not view.texts else _NOWHERE
        if view is not None and view.rows and view.row_sites and not rows:
            empty = f"The token was found in the {view.row_sites[0].stack}: select a head there, and its rows appear."
        self.rows_page.show_rows(rows, word, empty, sequential(state.document.view.colour_map))

    def _render_back(self, state: State) -> None:
        document, opened = state.document, self._shown
        is_open = opened is not None and document.inputs == opened.inputs
        if not is_open:
            self._before = self._shown = None
        self.opened.setVisible(is_open)

    # what a person does

    def _on_page(self, _page: int) -> None:
        self._drawn = ()
        self.render_state(self.session.state, self.session.state)
        self.offer_script()

    def _choose(self, path: str) -> None:
        self.dispatch(ChooseCorpus(path))

    def _on_head(self, layer: int, head: int) -> None:
        site, ran = self.session.state.selection.site, self.session.state.ran
        there = None if site is None or ran is None else ran.site(replace(site, layer=layer))
        if there is not None and head < there.heads:
            self.dispatch(SelectHead(there.ref, head))

    def _open(self, hit: Hit) -> None:
        self._open_place(hit.text, hit.second, hit.line, hit.query, hit.key)

    def _open_row(self, row: int, key: int) -> None:
        view = corpus_view(self.session.state)
        if view is not None and row < len(view.rows):
            chosen = view.rows[row]
            self._open_place(chosen.text, chosen.second, chosen.line, chosen.query, key)

    def _open_place(self, text: str, second: str | None, line: int, query: int, key: int) -> None:
        """Put a text into the input, with the selected head and this cell."""
        selection, before = self.session.state.selection, self._before or self.session.state.document
        if selection.site is None:
            return
        self.dispatch(ShowPlace(text, second, selection.site, selection.head, query, key))
        self._before, self._shown = before, self.session.state.document
        self.opened.text.setText(f"Line {line:,} is in the input, its cell selected.")
        self._render_back(self.session.state)

    def _go_back(self) -> None:
        before = self._before
        if before is None:
            return
        self.dispatch(
            RestoreDocument(
                replace(
                    self.session.state.document,
                    text=before.text,
                    second=before.second,
                    target=before.target,
                    before=before.before,
                    after=before.after,
                    chat=before.chat,
                    turns=before.turns,
                    selection=before.selection,
                )
            )
        )

    def _save(self) -> None:
        means, view = corpus_means(self.session.state), corpus_view(self.session.state)
        if means is None:
            return
        has_hits = view is not None and any(any(of_head for of_head in of_site) for of_site in view.hits)
        kinds = (_MEANS, _HITS) if has_hits else (_MEANS,)
        path = ask_where_to_save(self, "Save what was found", "corpus.npz", kinds)
        if path is None:
            return
        try:
            if path.suffix.lower() == _HITS.ending and view is not None:
                save_hits(view, path)
            else:
                save_means(means, path)
        except ExplorerError as error:
            self.dispatch(Show(Notice("error", str(error))))
        else:
            self.dispatch(Show(Notice("info", f"What was found is saved: {path}.")))

    # a file dropped here

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        loaded = self.session.state.results.loaded
        if texts_in(event.mimeData()) and not refusal(None if loaded is None else loaded.info):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        path = texts_in(event.mimeData())
        if path is not None:
            event.acceptProposedAction()
            self._choose(path)


def _nothing(view: CorpusView | None) -> str:
    """Why nothing is shown of a head."""
    return _READ if view is None else _NO_SITE if view.texts else _FIRST
