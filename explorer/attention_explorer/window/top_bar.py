"""The line at the top: which checkpoint is open, facts about the run, work in progress, and whether to trust it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from PySide6.QtCore import QEvent, Qt, QTimer, Signal
from PySide6.QtGui import QActionGroup, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QMenu, QProgressBar, QPushButton, QSizePolicy, QToolButton, QWidget

from attention_explorer.panels.trust.panel import TrustStrip
from attention_explorer.session.examples import Example, examples_of
from attention_explorer.session.hover import Hover
from attention_explorer.session.intents import OpenCheckpoint, Place, Show, ShowExample
from attention_explorer.session.live import Live
from attention_explorer.session.session import Session
from attention_explorer.session.state import Notice, State
from attention_explorer.session.stepping_rules import is_of
from attention_explorer.widgets.labels import ElidedLabel
from attention_explorer.widgets.number_text import counted
from attention_explorer.widgets.token_text import apart
from attention_explorer.widgets.whole_list_box import WholeListBox
from attention_models.files.catalogue import HANDED_OVER, shipped
from attention_models.protocol.corpus import CorpusView
from attention_models.protocol.export import ExportRequest
from attention_models.protocol.interventions import Adapter
from attention_models.protocol.loading import DevicesRequest, DevicesView
from attention_models.protocol.quality import QualityView
from attention_models.protocol.values import UNIT_ROUNDOFFS, CheckpointInfo, DeviceInfo, Placement

_FORMATS = {
    "float32": "as precise as this program compares",
    "bfloat16": "half the memory, coarse numbers",
    "float16": "half the memory, no very large numbers",
}


class DeviceMenu(QToolButton):
    """Asks which devices there are when the menu opens, since free memory changes; it fills in when that is known."""

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.session = session
        self.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.setAccessibleName("Device and number format")
        self.setToolTip("Where the model runs, and in which number format (Ctrl+Shift+D)")
        self.setShortcut("Ctrl+Shift+D")
        self.choices = QMenu(self)
        self.choices.setToolTipsVisible(True)
        self.setMenu(self.choices)
        self.choices.aboutToShow.connect(lambda: session.request(DevicesRequest()))
        session.changed.connect(self.show_state)
        self._fill(session.state)

    def show_state(self, old: State, new: State) -> None:
        loaded = new.results.loaded
        if loaded is not None and loaded is not old.results.loaded:
            self.setText(f"{loaded.device} {loaded.dtype}")
        if new.results.of(DevicesView) is not old.results.of(DevicesView) or loaded is not old.results.loaded:
            self._fill(new)
        self.setVisible(loaded is not None)

    def _fill(self, state: State) -> None:
        self.choices.clear()
        loaded, view = state.results.loaded, state.results.of(DevicesView)
        self.setVisible(loaded is not None)
        if loaded is None:
            return
        now = loaded.placement
        known = view.devices if view is not None else (DeviceInfo(now.device, loaded.device, None, None),)
        self._section("Run on", "device", [(d.name, _device_text(d), "") for d in known], now)
        formats = [
            (name, f"{name}: {_FORMATS[name]}", f"Rounding moves a number by up to {share:.0e} of its size")
            for name, share in UNIT_ROUNDOFFS.items()
        ]
        self.choices.addSeparator()
        self._section("Number format", "dtype", formats, now)
        why_fixed = _why_fixed(loaded.info)
        if why_fixed:
            for action in self.choices.actions():
                action.setEnabled(False)
            self.choices.addSeparator()
            self.choices.addAction(why_fixed).setEnabled(False)

    def _section(self, title: str, field: str, entries: list[tuple[str, str, str]], now: Placement) -> None:
        """A choice of `field` of the placement: (value, text, tooltip) each."""
        self.choices.addAction(title).setEnabled(False)  # the style draws no text in a section's line
        group = QActionGroup(self.choices)
        for value, text, tip in entries:
            action = group.addAction(text)
            action.setCheckable(True)
            action.setChecked(value == getattr(now, field))
            action.setToolTip(tip or text)
            wanted = replace(now, **{field: value})
            action.triggered.connect(lambda _on=False, wanted=wanted: self.session.dispatch(Place(wanted)))
            self.choices.addAction(action)


def _why_fixed(info: CheckpointInfo) -> str:
    """Why it cannot be put elsewhere; "" where it can."""
    if info.textbook:
        return "Textbook models stay on the CPU in float32"
    return "A model from a Python program stays where that put it" if info.borrowed else ""


def _device_text(device: DeviceInfo) -> str:
    if device.free is None:
        return device.label
    of = f" of {device.total / 1e9:.0f}" if device.total else ""
    return f"{device.label}: {device.free / 1e9:.1f}{of} GB free"


# The open checkpoint's examples as a menu, and the button that opens it.


class ExamplesMenu(QMenu):
    front_wanted = Signal(str)
    """A panel's name: the chosen example is to be looked at there."""

    def __init__(self, session: Session, parent: QWidget) -> None:
        super().__init__(parent)
        self.session = session
        self.setToolTipsVisible(True)
        self.button = QToolButton(parent)
        self.button.setText("Examples")
        self.button.setToolTip("Things to see in this model: each brings its text, a head and a cell")
        self.button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.button.setMenu(self)
        session.changed.connect(self._follow)
        self._fill(session.state)

    def _follow(self, old: State, new: State) -> None:
        if new.results.loaded is not old.results.loaded:
            self._fill(new)

    def _fill(self, state: State) -> None:
        self.clear()
        loaded = state.results.loaded
        examples = () if loaded is None else examples_of(loaded.info.reference)
        for example in examples:
            action = self.addAction(example.title.replace("&", "&&"))
            action.setToolTip(example.say)
            action.triggered.connect(partial(self._show, example))
        self.button.setVisible(bool(examples))
        self.menuAction().setVisible(bool(examples))

    def _show(self, example: Example, _checked: bool = False) -> None:
        self.session.dispatch(ShowExample(example))
        self.front_wanted.emit(example.panel)


_NAME, _LONG_NAME = 15, 20  # characters of a checkpoint's name that a narrow and a wide bar have room for
_MOST_SEEN = 24  # checkpoints in its list; more are scrolled
_GAP = 4  # pixels after the facts
_LEAST_WORK = 60  # pixels for what is being done
PATIENCE = 300  # ms: what is done sooner is not announced
_ROOMY = 1100  # pixels: a narrower bar has no room for a bar of progress beside a button
_MENU = "The model that is open: shipped ones first, then folders opened lately"
MENU_WIDTH = 240  # pixels: the name of a file may be long


class TopBar(QWidget):
    open_asked = Signal()

    def __init__(self, session: Session, hover: Hover, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.session = session
        self.menu = WholeListBox()
        self.menu.setAccessibleName("Checkpoint")
        self.menu.setToolTip(_MENU)
        self.menu.setMinimumContentsLength(_NAME)
        self.menu.setMaximumWidth(MENU_WIDTH)
        self.menu.setMaxVisibleItems(_MOST_SEEN)
        self.menu.activated.connect(self._on_chosen)
        self.open_button = QPushButton("Open…")
        self.open_button.setToolTip("Open another checkpoint: a folder, a GGUF file, or one of Hugging Face (Ctrl+O)")
        self.open_button.clicked.connect(self.open_asked)
        self.facts = ElidedLabel()
        self.facts.setProperty("role", "dim")
        self.facts.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.examples = ExamplesMenu(session, self)
        self.devices = DeviceMenu(session)
        self.doing = ElidedLabel()
        self.doing.setMinimumWidth(1)  # cut before anything else in a narrow bar
        self.doing.setProperty("role", "dim")
        self.progress = QProgressBar()
        self.progress.setTextVisible(False)
        self.progress.setFixedSize(110, 6)
        self.cancel = QPushButton("Cancel")
        self.cancel.setToolTip("Stop writing the weights. No file is left behind")
        self.cancel.clicked.connect(self._on_cancelled)
        self.trust = TrustStrip(session, hover)
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 8, 12, 8)
        row.setSpacing(12)
        row.addWidget(self.menu)
        row.addWidget(self.open_button)
        row.addWidget(self.examples.button)
        row.addWidget(self.devices)
        row.addWidget(self.facts, 1)
        row.addWidget(self.doing)
        row.addWidget(self.progress, 0, Qt.AlignmentFlag.AlignVCenter)
        row.addWidget(self.cancel)
        row.addWidget(self.trust)
        self._recent: list[str] = []
        self._cards = shipped()
        self._patience = QTimer(self)
        self._patience.setSingleShot(True)
        self._patience.setInterval(PATIENCE)
        self._patience.timeout.connect(self._show_work)
        self._hide_work()
        session.changed.connect(lambda _old, new: self.show_state(new))
        session.live_changed.connect(lambda _old, new: self._follow_work(new))
        for chip in (self.trust.mode, self.trust.ids, self.trust.alone, self.trust.rows, self.trust.equal):
            chip.said.connect(self._share_room)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._share_room()

    def event(self, event: QEvent) -> bool:
        """Share the room anew once a part asks for more or less, comes or goes.

        Not when one is resized: that is in the middle of a layout, which would go on to put the parts after it where
        they were to be before.
        """
        done = super().event(event)
        if event.type() == QEvent.Type.LayoutRequest:
            self._share_room()
        return done

    def _share_room(self) -> None:
        """Facts first, then the whole name of the checkpoint, then words beside the signs of what can be trusted."""
        row = self.layout()
        assert row is not None
        margins, long = row.contentsMargins(), self.menu.minimumContentsLength() == _LONG_NAME
        more = (_LONG_NAME - _NAME) * self.menu.fontMetrics().horizontalAdvance("X")
        parts = [w for w in (self.menu, self.open_button, self.examples.button, self.devices) if not w.isHidden()]
        work = [w for w in (self.progress, self.cancel) if not w.isHidden()]
        taken = sum(part.sizeHint().width() for part in (*parts, *work)) - (more if long else 0)
        taken += row.spacing() * (len(parts) + len(work) + 1) + margins.left() + margins.right()
        if not self.doing.isHidden():
            taken += row.spacing() + _LEAST_WORK
        facts = self.facts.fontMetrics().horizontalAdvance(self.facts.text()) + _GAP
        room = self.width() - taken
        long = len(self.menu.currentText()) > _NAME and room - facts - self.trust.least_width >= more
        self.menu.setMinimumContentsLength(_LONG_NAME if long else _NAME)
        self.trust.fit(room - facts - (more if long else 0))
        row.activate()  # what is said and the room for it come together

    def set_recent(self, recent: list[str]) -> None:
        """Folders opened lately, the last one first."""
        self._recent = list(recent)
        self.show_state(self.session.state)

    def show_state(self, state: State) -> None:
        self._fill_menu(state)
        self.facts.setText(facts(state))
        self.facts.setToolTip(self.facts.text())
        self._share_room()
        self._follow_work(state.live)

    def _follow_work(self, live: Live) -> None:
        if not live.busy:
            self._patience.stop()
            self._hide_work()
        elif self.doing.isVisible():
            self._show_work()
        elif not self._patience.isActive():
            self._patience.start()

    def _fill_menu(self, state: State) -> None:
        reference = state.document.checkpoint
        entries = [(card.name, card.title, card.sentences) for card in self._cards]
        known = {name for name, _, _ in entries}
        training = state.training
        end = training.reference if training is not None and is_of(reference, training) else reference
        # of a training one entry is listed, which is the step that is open
        others = [reference if r == end else r for r in dict.fromkeys([*self._recent, end]) if r not in known]
        wanted = [*(name for name, _, _ in entries), *others]
        listed = [self.menu.itemData(i) for i in range(self.menu.count()) if self.menu.itemData(i)]
        changed = [(old, new) for old, new in zip(listed, wanted, strict=False) if old != new]
        if len(listed) == len(wanted) and len(changed) == 1 and changed[0][1] == reference:
            self._list(self.menu.findData(changed[0][0]), reference)  # without closing the list, were it open
        elif wanted != listed:
            self.menu.clear()
            for name, title, sentences in entries:
                self.menu.addItem(title, name)
                self.menu.setItemData(self.menu.count() - 1, sentences, Qt.ItemDataRole.ToolTipRole)
            if others:
                self.menu.insertSeparator(self.menu.count())
            for other in others:
                self.menu.addItem("")
                self._list(self.menu.count() - 1, other)
        self.menu.setCurrentIndex(self.menu.findData(reference))
        said = next((sentences for name, _, sentences in entries if name == reference), "")
        self.menu.setToolTip(f"{said}\n{_MENU}".strip())

    def _list(self, index: int, reference: str) -> None:
        """Let an entry be that of a checkpoint opened lately."""
        self.menu.setItemText(index, _short(reference))
        self.menu.setItemData(index, reference)
        self.menu.setItemData(index, reference, Qt.ItemDataRole.ToolTipRole)

    def _on_chosen(self, index: int) -> None:
        reference = self.menu.itemData(index)
        if reference and reference != self.session.state.document.checkpoint:
            self.session.dispatch(OpenCheckpoint(reference))

    def _show_work(self) -> None:
        state = self.session.state
        saving = next((p for p in state.live.progress if p.request.lane == ExportRequest.lane), None)
        newest = saving or (state.live.progress[-1] if state.live.progress else None)
        self.doing.setText(f"{newest.label} …" if newest is not None else "Working …")
        fraction = newest.fraction if newest is not None else None
        measured = state.results.of(QualityView)
        if newest is None and state.measuring is not None and measured is not None:  # many short requests
            self.doing.setText("Measuring quality …")
            fraction = measured.done / measured.total
        read = state.results.of(CorpusView)
        if newest is None and state.reading and read is not None:
            self.doing.setText("Reading texts …")
            fraction = read.share
        self.progress.setRange(0, 0 if fraction is None else 1000)
        if fraction is not None:
            self.progress.setValue(round(1000 * fraction))
        self.doing.show()
        is_saving = ExportRequest.lane in state.live.busy
        self.cancel.setVisible(is_saving)
        self.progress.setVisible(not is_saving or self.width() >= _ROOMY)
        if is_saving and not self.progress.isVisible() and fraction is not None:
            self.doing.setText(f"{100 * fraction:.0f} % …")

    def _on_cancelled(self) -> None:
        self.session.call_off(ExportRequest.lane)
        self.session.dispatch(Show(Notice("info", "Saving the weights was cancelled.")))

    def _hide_work(self) -> None:
        for part in (self.doing, self.progress, self.cancel):
            part.hide()


def _short(reference: str) -> str:
    """The last part of a path, or the name of a model that was handed over."""
    return reference.removeprefix(HANDED_OVER).rstrip("/\\").replace("\\", "/").rsplit("/", 1)[-1] or reference


def facts(state: State) -> str:
    """What the line says of the model and the run, like "8 layers × 8 heads · 14 of 512 tokens"."""
    loaded, ran = state.results.loaded, state.ran
    if loaded is None:
        return ""
    shapes = {(stack.layers, stack.heads, stack.key_heads) for stack in loaded.info.stacks if stack.stack != "cross"}
    parts = []
    for layers, heads, key_heads in sorted(shapes):
        grouped = f" sharing {counted(key_heads, 'key')}" if key_heads != heads else ""
        parts.append(f"{counted(layers, 'layer')} × {counted(heads, 'head')}{grouped}")
    adapter = loaded.info.adapter
    if adapter is not None:
        off = ran is not None and any(isinstance(item, Adapter) for item in ran.inputs.interventions)
        named = f"{adapter.method} {apart(adapter.name)}, {adapter.scale_words}"
        parts.append("adapter left out" if adapter.why else f"{named}{': off' if off else ''}")
    if ran is not None:
        limit = f" of {loaded.info.context:,}" if loaded.info.context is not None else ""
        count = f"{len(ran.source):,} + {len(ran.tokens):,}" if ran.source else f"{len(ran.tokens):,}"
        parts.append(f"{count}{limit} tokens")
    return "  ·  ".join(parts)
