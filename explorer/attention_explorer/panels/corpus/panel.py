"""A file of texts read through the model: what heads do on average, and where they do something most."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from PySide6.QtCore import Qt
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import (
    QProgressBar,
    QPushButton,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from attention_explorer.chooser.drops import texts_in
from attention_explorer.colour_maps import sequential
from attention_explorer.panels.about import About
from attention_explorer.panels.base import HEAD, Panel
from attention_explorer.panels.corpus.about import about
from attention_explorer.panels.corpus.choices import KINDS, QuestionFields
from attention_explorer.panels.corpus.corpus_sentences import (
    INVITE,
    NOT_READ,
    OTHERWISE,
    asked_words,
    name_of,
    refusal,
    remarks,
    status,
    whole_remarks,
)
from attention_explorer.panels.corpus.figures import (
    distance_figure,
    mean_map,
    ranked_heads,
    token_rows,
    unordered,
    why_no_score,
)
from attention_explorer.panels.corpus.pages import MapPage, OnePage, OpenedLine, PlacesPage, RowsPage
from attention_explorer.panels.corpus.printed import printed, shown_cell, shown_distances, shown_place, shown_row
from attention_explorer.panels.selected_head import head_name
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
from attention_explorer.widgets.elided_label import ElidedLabel
from attention_explorer.widgets.file_button import FileButton
from attention_explorer.widgets.page import PageOrInvitation
from attention_explorer.widgets.plot.figure import Figure
from attention_explorer.widgets.plot.plot import Plot
from attention_explorer.widgets.save_dialog import Kind, ask_where_to_save
from attention_explorer.widgets.segments import Segments
from attention_explorer.widgets.token_text import in_lines
from attention_models.corpus.corpus_export import save_hits, save_means
from attention_models.protocol.corpus import CorpusRequest, CorpusView, Hit
from attention_models.protocol.errors import ExplorerError
from attention_models.protocol.request import Request
from attention_models.protocol.values import CheckpointInfo

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
