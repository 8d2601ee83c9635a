"""Quality against sentence length: the bottleneck falls where attention holds, on sentences no model was trained on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QCheckBox, QLabel, QProgressBar, QPushButton, QVBoxLayout, QWidget

from attention_explorer.look.theme import LIGHT, Theme
from attention_explorer.panels.about import About
from attention_explorer.panels.base import Panel
from attention_explorer.panels.length.quality_sentences import (
    BLEU,
    EXACT,
    FEW,
    MEASURES,
    Style,
    account,
    conclusion,
    noun_of,
    progress_text,
    styles,
    table,
    text_of_value,
    value_of,
)
from attention_explorer.paths import resource
from attention_explorer.session.hover import Hover
from attention_explorer.session.intents import Measure, SetText, Show
from attention_explorer.session.live import Live
from attention_explorer.session.session import Session
from attention_explorer.session.state import Notice, State
from attention_explorer.widgets import dialogs
from attention_explorer.widgets.card import Card
from attention_explorer.widgets.dialogs import Kind, ask_where_to_save
from attention_explorer.widgets.layouts import FlowLayout, clear
from attention_explorer.widgets.page import scrolling, wrapped
from attention_explorer.widgets.plot.figure import Axis, Counts, Figure, Rule, Series
from attention_explorer.widgets.plot.plot import Plot
from attention_explorer.widgets.segments import Segments
from attention_explorer.widgets.token_text import shortened
from attention_models.files.catalogue import DATE_MODELS, RECURRENT_TRANSLATORS, TRANSFORMER_TRANSLATOR
from attention_models.files.safe_files import not_written, write_whole
from attention_models.protocol.information import Unit
from attention_models.protocol.quality import QualityBin, QualityExample, QualityRequest, QualityView, ShownQuality
from attention_models.protocol.request import Request
from attention_models.protocol.values import CheckpointInfo

# What to measure: the task, the sentences, and whether the transformer joins in.


TRANSLATION, DATES = range(2)
OURS, FILE = range(2)
_FILTER = "Sentence pairs (*.tsv *.txt *.xz *.zip);;All files (*)"
_FORMATS = (
    "Lines of English, a tab and Spanish, plain or packed by xz; or the zip of manythings.org/anki. "
    "Sentences that were trained on say nothing about new ones."
)


class QualityChoices(QWidget):
    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._file = ""
        self.task = Segments(
            (
                ("English to Spanish", "Whole sentences: where the bottleneck shows"),
                ("Dates", "Short texts, character by character"),
            ),
            "What the models do",
        )
        self.sentences = Segments(
            (
                ("Our sentences", "Written for this program, and among no training data"),
                ("A file…", "Measure on a file of sentence pairs of your own"),
            ),
            "Which sentences",
        )
        self.file_name = QLabel()
        self.file_name.setProperty("role", "dim")
        self.file_name.setTextFormat(Qt.TextFormat.PlainText)
        self.file_name.setToolTip(_FORMATS)
        self.held_out = QCheckBox("Only sentences that training held out")
        self.held_out.setToolTip(
            "The English sentences that the recipe of the included models holds out: 1,500 of the whole "
            "English-Spanish list of Tatoeba. Of another list the rule holds out others."
        )
        self.transformer = QCheckBox("With the transformer en\N{NON-BREAKING HYPHEN}es")
        self.transformer.setToolTip("A third line: the included translator, which was trained on longer sentences too")
        self._flow = FlowLayout(self, gap=14, line_gap=6)
        for widget in (self.task, self.sentences, self.file_name, self.held_out, self.transformer):
            self._flow.addWidget(widget)
        self.task.chosen.connect(lambda _: self._on_changed())
        self.sentences.chosen.connect(self._on_sentences)
        self.held_out.toggled.connect(lambda _: self.changed.emit())
        self.transformer.toggled.connect(lambda _: self.changed.emit())
        self._show()

    def add(self, widget: QWidget) -> None:
        """Put one more choice behind the others."""
        self._flow.addWidget(widget)

    def choose_task(self, task: int) -> None:
        """Without emitting anything."""
        self.task.choose(task)
        self._show()

    @property
    def sentences_asked(self) -> tuple[str, bool]:
        """The file of pairs that is chosen ("" for dates), and whether only those held out of training are measured."""
        if self.task.current == DATES:
            return "", False
        return self._file or str(resource("quality/en-es.tsv")), bool(self._file) and self.held_out.isChecked()

    def leave_file(self) -> None:
        """A file that could not be read names nothing. Without emitting anything."""
        self._file = ""
        self.sentences.choose(OURS)
        self._show()

    def request(self, own: str | None) -> QualityRequest:
        """What is chosen; `own` is a recurrent checkpoint of the person's, which joins in."""
        references: tuple[str, ...]
        if self.task.current == DATES:
            references = DATE_MODELS
        else:
            references = RECURRENT_TRANSLATORS
            if self.transformer.isChecked():
                references = (*references, TRANSFORMER_TRANSLATOR)
        pairs, held_out = self.sentences_asked
        return QualityRequest(
            references=references if own is None else (*references, own), pairs=pairs, held_out=held_out
        )

    def _on_sentences(self, choice: int) -> None:
        if choice == FILE:
            path = dialogs.file_to_open(self, "Open a file of sentence pairs", self._file, _FILTER)
            self._file = path or self._file
        else:
            self._file = ""
        self.sentences.choose(FILE if self._file else OURS)
        self._on_changed()

    def _on_changed(self) -> None:
        self._show()
        self.changed.emit()

    def _show(self) -> None:
        translation = self.task.current == TRANSLATION
        self.sentences.setVisible(translation)
        self.transformer.setVisible(translation)
        self.file_name.setVisible(translation and bool(self._file))
        self.held_out.setVisible(translation and bool(self._file))
        self.file_name.setText(shortened(Path(self._file).name))


# Sentences of one length, one at a time: the source, a reference, and what each model made of it.


class ExamplesView(QWidget):
    used = Signal(str)  # a sentence to put into the input

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = LIGHT
        self._bin: QualityBin | None = None
        self._styles: Sequence[Style] = ()
        self._unit = ""
        self._at = 0
        self.place = QLabel()
        self.place.setProperty("role", "dim")
        self.back, self.next = QPushButton("‹"), QPushButton("›")
        self.use = QPushButton("Use this")
        for button, tip in (
            (self.back, "The sentence before"),
            (self.next, "The next sentence"),
            (self.use, "Put this sentence into the input, to see how the open model reads it"),
        ):
            button.setToolTip(tip)
            button.setAccessibleName(tip)
        self.source, self.reference = wrapped(role="title"), wrapped(role="dim")
        self.written = QVBoxLayout()
        self.written.setSpacing(4)
        row = QWidget()
        flow = FlowLayout(row, gap=6)
        for widget in (self.back, self.next, self.use, self.place):
            flow.addWidget(widget)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addWidget(row)
        column.addWidget(self.source)
        column.addWidget(self.reference)
        column.addLayout(self.written)
        self.back.clicked.connect(lambda: self._go(-1))
        self.next.clicked.connect(lambda: self._go(1))
        self.use.clicked.connect(lambda: self.used.emit(self.example.source))
        self._show()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self._show()

    def set_bin(self, bin_: QualityBin | None, named: Sequence[Style], unit: str) -> None:
        """Begin with the first sentence that tells the models apart; None shows nothing."""
        if bin_ is not self._bin or tuple(named) != tuple(self._styles):
            self._bin, self._styles, self._unit = bin_, tuple(named), unit
            self._at = 0 if bin_ is None else telling(bin_.examples)
            self._show()

    @property
    def example(self) -> QualityExample:
        assert self._bin is not None
        return self._bin.examples[self.place_of_example]

    @property
    def place_of_example(self) -> int:
        """Of the sentence that is read, among those of its length."""
        return self._at

    def _go(self, step: int) -> None:
        if self._bin is not None:
            self._at = (self._at + step) % self._bin.sentences
            self._show()

    def _show(self) -> None:
        self.setVisible(self._bin is not None)
        if self._bin is None:
            return
        example = self.example
        self.place.setText(f"{self._bin.name} {self._unit}: {self._at + 1} of {self._bin.sentences:,}")
        self.source.setText(example.source)
        self.reference.setText("  |  ".join(example.references[:4]))
        clear(self.written)
        for style, text, exact in zip(self._styles, example.written, example.exact, strict=True):
            label = wrapped(f"{style.name}{' ✓' if exact else ''}: {text or 'nothing'}")
            label.setStyleSheet(f"color: {getattr(self._theme, style.role)};")
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            self.written.addWidget(label)


def telling(examples: Sequence[QualityExample]) -> int:
    """The first sentence that some models have right and others not; else the first one."""
    return next((i for i, example in enumerate(examples) if len(set(example.exact)) > 1), 0)


_TITLES = ("BLEU", "right, %", "log p a token, {}")
_COLUMN = 0.42  # of a length, to each side


def figure_of(view: QualityView, measure: int, unit: Unit) -> Figure:
    """A point stands at the middle of its bin, hollow for fewer than `FEW` sentences. All planned bins have room.

    Log-probabilities are drawn in `unit`.
    """
    first, last, counts = (np.array(column) for column in zip(*view.planned, strict=True))
    middles, measured = (first + last) / 2, len(view.bins)
    series = tuple(
        Series(
            style.name,
            middles[:measured],
            np.array([value_of(bin_.scores[i], bin_.sentences, measure, unit) for bin_ in view.bins]),
            style.role,
            "dashed" if style.dashed else "solid",
            mark=style.mark,
            mark_size=9,
            hollow=counts[:measured] < FEW,
        )
        for i, style in enumerate(styles(view))
    )

    def bin_text(middle: float) -> str:
        at = int(np.abs(middles - middle).argmin())
        return f"{first[at]} to {last[at]} {view.unit}, {counts[at]:,} {noun_of(view)}"

    def value_text(value: float) -> str:
        return text_of_value(value, measure)

    low, high = _y_range([float(value) for each in series for value in each.y], measure)
    title = "words in the English sentence" if view.unit == "words" else "characters in the date"
    trained = min((longest for longest in view.trained_to if longest is not None), default=None)
    return Figure(
        Axis(title, float(first[0]) - 0.5, float(last[-1]) + 0.5, whole=True, text=bin_text),
        Axis(_TITLES[measure].format(unit), low, high, text=value_text),
        series,
        Counts("n", first - _COLUMN, last + _COLUMN, counts),
        () if trained is None else (Rule(trained + 0.5, f"trained up to {trained} words"),),
        names="legend",
    )


def _y_range(values: Sequence[float], measure: int) -> tuple[float, float]:
    """Round ends that hold every value."""
    if measure == EXACT:
        return 0.0, 100.0
    if measure == BLEU:
        return 0.0, max(40.0, 10.0 * math.ceil(max(values, default=0.0) / 10))
    low = min(values, default=-1.0)
    step = 1.0 if low < -1 else 0.1 if low < -0.1 else 0.01
    return step * math.floor(low / step), 0.0


# What the (i) of quality against length says. Pure.


_WHAT = (
    "How well sentences are translated, short ones to long ones, by a decoder with attention and by one that "
    "is given a single vector."
)
_WHY = (
    "That vector, the bottleneck, is as long for forty words as for four: what does not fit is lost. Attention "
    "goes back to every source token instead."
)
_TRY = (
    "Try: press Run, and when points have come, click one at the right and read what each model made of a long "
    "sentence."
)


def about(state: State, view: QualityView | None, measure: int) -> About:
    unit: Unit = state.document.view.unit
    if view is None or not view.bins:
        return About((_WHAT, _WHY, "Nothing is measured yet: it takes a minute or two, and can be stopped."), _TRY)
    longest = view.bins[-1]
    done = (
        f"{view.done:,} of {view.total:,} translations are done; the longest {noun_of(view)} measured have "
        f"{longest.name} {view.unit}, {longest.sentences:,} of them."
    )
    return About.of((_WHAT, _WHY, done, conclusion(view, measure, unit)), _TRY)


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
