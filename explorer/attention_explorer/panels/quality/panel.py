"""Quality against sentence length: the bottleneck falls where attention holds, on sentences no model was trained on."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from PySide6.QtWidgets import QProgressBar, QPushButton, QVBoxLayout, QWidget

from attention_explorer.panels.about import About
from attention_explorer.panels.base import Panel
from attention_explorer.panels.quality.about import about
from attention_explorer.panels.quality.choices import DATES, TRANSLATION, QualityChoices
from attention_explorer.panels.quality.examples import ExamplesView, telling
from attention_explorer.panels.quality.figure import figure_of
from attention_explorer.panels.quality.quality_sentences import (
    BLEU,
    EXACT,
    MEASURES,
    account,
    conclusion,
    progress_text,
    styles,
    table,
)
from attention_explorer.session.hover import Hover
from attention_explorer.session.intents import Measure, SetText, Show
from attention_explorer.session.live import Live
from attention_explorer.session.session import Session
from attention_explorer.session.state import Notice, State
from attention_explorer.widgets.card import Card
from attention_explorer.widgets.page import scrolling, wrapped
from attention_explorer.widgets.plot.figure import Figure
from attention_explorer.widgets.plot.plot import Plot
from attention_explorer.widgets.save_dialog import Kind, ask_where_to_save
from attention_explorer.widgets.segments import Segments
from attention_models.files.catalogue import DATE_MODELS, TRANSFORMER_TRANSLATOR
from attention_models.files.whole_files import not_written, write_whole
from attention_models.protocol.information import Unit
from attention_models.protocol.quality import QualityRequest, QualityView, ShownQuality
from attention_models.protocol.request import Request
from attention_models.protocol.values import CheckpointInfo

_EMPTY = (
    "Press Run. The models translate sentences that none of them was trained on, short ones first, and the plot grows. "
    "The model that is open stays open."
)
_EMPTY_DATES = "Press Run. The models rewrite dates that none of them was trained on, and the plot grows."
_HOW = "Click a point, or use the arrow keys, to read sentences of that length."


class QualityPanel(Panel):
    api_version = 1
    name = "quality"
    title = "Length"
    hint = "How well sentences are translated, short to long, with attention and without: where the bottleneck falls."
    shows = frozenset()
    reads = ("document.view", "measuring", "notice", QualityView)

    @classmethod
    def suits(cls, info: CheckpointInfo) -> bool:
        return info.textbook or info.reference == TRANSFORMER_TRANSLATOR

    def is_at_work(self, state: State) -> bool:
        return state.measuring is not None

    def __init__(self, session: Session, hover: Hover, parent: QWidget | None = None) -> None:
        super().__init__(session, hover, parent)
        self._view: QualityView | None = None
        self._unit: Unit = "bits"
        self._planned: tuple[tuple[int, int, int], ...] = ()
        self._is_reading = False  # a point was chosen since the last run
        self.choices = QualityChoices()
        self.run = QPushButton("Run")
        self.run.setProperty("role", "primary")
        self.run.setToolTip("Translate all sentences with each of the models, from the beginning")
        self.stop = QPushButton("Stop")
        self.stop.setToolTip("Stop measuring; what is measured stays")
        self.progress = QProgressBar()
        self.progress.setTextVisible(False)
        self.progress.setFixedHeight(6)
        self.status = wrapped(role="dim")
        self.measure = Segments(MEASURES, "What is measured")
        self.choices.add(self.measure)
        self.choices.add(self.code_button)  # the title line is full in a low window
        self.plot = Plot("Quality over the length of the sentence", 240, grows=True)
        self.conclusion, self.account, self.how = wrapped(role="title"), wrapped(role="dim"), wrapped(_HOW, "dim")
        self.examples = ExamplesView()
        self.save = QPushButton("Save…")
        self.save.setToolTip("Save the figures as a table (CSV)")
        self._build()
        self.run.clicked.connect(self._run)
        self.stop.clicked.connect(lambda: self.dispatch(Measure(None)))
        self.choices.changed.connect(self._draw)
        self.measure.chosen.connect(lambda _: self._draw())
        self.plot.cursor_moved.connect(lambda _: self._on_bin())
        self.examples.used.connect(lambda text: self.dispatch(SetText(text)))
        self.save.clicked.connect(self._save)
        self._draw()

    def _build(self) -> None:
        page = QWidget()
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 2, 6, 4)
        column.setSpacing(8)
        for widget in (self.choices, self.status, self.progress):
            column.addWidget(widget)
        column.addWidget(self.plot, 1)
        for label in (self.examples, self.conclusion, self.how, self.account):
            column.addWidget(label)
        self.card = Card("Quality and length")
        for button in (self.run, self.stop, self.save):
            self.card.add_control(button)
        self._area = scrolling(page)
        self._area.verticalScrollBar().rangeChanged.connect(lambda _low, _high: self._bring_examples())
        self.card.set_content(self._area)
        self.fill(self.card)
        self.keep("measure", self.measure)

    # what it shows

    def render_state(self, state: State, old: State | None) -> None:
        loaded = state.results.loaded
        if loaded is not None and (old is None or loaded is not old.results.loaded) and self.suits(loaded.info):
            self.choices.choose_task(DATES if loaded.info.reference in DATE_MODELS else TRANSLATION)
            self._draw()
        self._show_progress(state)
        view = state.results.of(QualityView)
        unit = state.document.view.unit
        if unit != self._unit:
            self._unit = unit
            self._draw()
        if old is not None and state.notice is not old.notice and self._was_refused(state):
            self.choices.leave_file()
            self._draw()
        before, self._view = self._view, view
        if view is not before and (view is None or before is None or view.bins != before.bins or view.parts):
            self._draw()

    def render_live(self, live: Live, old: Live | None) -> None:
        if old is None or live.progress != old.progress:
            self._show_progress(self.session.state)

    def _was_refused(self, state: State) -> bool:
        """Whether nothing came of the sentences that are chosen, for they could not be read."""
        notice, view = state.notice, state.results.of(QualityView)
        asked = self.choices.sentences_asked
        of_these = view is not None and (view.request.pairs, view.request.held_out) == asked
        is_error = notice is not None and notice.kind == "error" and notice.lane == QualityRequest.lane
        return is_error and state.measuring is None and not of_these

    def about(self, state: State) -> About:
        return about(state, self._shown, self.measure.current)

    def figures(self) -> Iterable[QWidget]:
        return ()  # of what was measured

    def prints(self, state: State) -> Request | None:
        """Of the length that is chosen, else of the shortest."""
        view, chosen = self._shown, self._chosen or 0
        if view is None or not view.bins:
            return None
        bin_ = view.bins[chosen]
        example = telling(bin_.examples) if self._chosen is None else self.examples.place_of_example
        return ShownQuality(
            references=view.request.references, bin=bin_, example=example, has_bleu=bool(view.request.pairs)
        )

    def _show_progress(self, state: State) -> None:
        measuring, view = state.measuring is not None, state.results.of(QualityView)
        progress = self.session.live.progress
        label = next((p.label for p in progress if p.request.lane == QualityRequest.lane), "")
        self.status.setText(progress_text(view, measuring, label))
        self.status.setVisible(bool(self.status.text()))
        self.run.setEnabled(not measuring)
        self.stop.setEnabled(measuring)
        self.progress.setVisible(measuring)
        self.progress.setRange(0, view.total if view is not None else 0)
        if view is not None:
            self.progress.setValue(view.done)

    @property
    def _shown(self) -> QualityView | None:
        """The measurement, where it is of the sentences that are chosen: else it would stand below another's name."""
        view = self._view
        if view is None or (view.request.pairs, view.request.held_out) != self.choices.sentences_asked:
            return None
        return view

    def _draw(self) -> None:
        view, dates = self._shown, self.choices.task.current == DATES
        self.measure.button(BLEU).setEnabled(not dates)
        if dates and self.measure.current == BLEU:
            self.measure.choose(EXACT)
        measure = self.measure.current
        self.plot.set_empty_text(_EMPTY_DATES if dates else _EMPTY)
        if (view.planned if view is not None else ()) != self._planned:  # what was chosen is another length now
            self._planned = view.planned if view is not None else ()
            self.plot.set_cursor(None)
        self.plot.set_figure(figure_of(view, measure, self._unit) if view is not None and view.planned else Figure())
        self.conclusion.setText(conclusion(view, measure, self._unit) if view is not None else "")
        self.conclusion.setVisible(bool(self.conclusion.text()))
        self.account.setText(account(view, measure) if view is not None else "")
        self.how.setVisible(view is not None and bool(view.bins) and self._chosen is None)
        self.save.setEnabled(view is not None and bool(view.bins))
        self._show_examples()
        self.offer_script()

    @property
    def _chosen(self) -> int | None:
        """The bin whose sentences are read."""
        place = self.plot.cursor_place
        return None if place is None else int(np.searchsorted(self.plot.places, place))

    def _show_examples(self) -> None:
        view, chosen = self._shown, self._chosen
        bin_ = view.bins[chosen] if view is not None and chosen is not None else None
        self.examples.set_bin(bin_, styles(view) if view is not None else (), view.unit if view is not None else "")
        self.how.setVisible(view is not None and bool(view.bins) and chosen is None)

    # what a person does

    def _on_bin(self) -> None:
        self._show_examples()
        self._is_reading = True
        self._bring_examples()

    def _bring_examples(self) -> None:
        """Scroll to the sentence that is read, also when the layout has made room for it, which it does in steps."""
        if self._is_reading:
            self._area.ensureWidgetVisible(self.examples, 0, 4)

    def _run(self) -> None:
        self._is_reading = False
        loaded = self.session.state.results.loaded
        own = loaded is not None and loaded.info.textbook and not loaded.info.shipped
        self.dispatch(Measure(self.choices.request(loaded.info.reference if own and loaded is not None else None)))

    def _save(self) -> None:
        view = self._shown
        if view is None:
            return
        path = ask_where_to_save(self, "Save the table", "quality.csv", (Kind("Table", ".csv"),))
        if path is None:
            return
        try:
            write_whole(path, table(view, self._unit).encode())
        except OSError as error:
            self.dispatch(Show(Notice("error", not_written("The table", path, error))))
        else:
            self.dispatch(Show(Notice("info", f"The table is saved: {path}.")))
