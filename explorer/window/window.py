"""The main window: panels around one session, menus, theme and what is remembered between starts."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QByteArray, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QAction, QCloseEvent, QDragEnterEvent, QDropEvent, QGuiApplication, QPaintEvent
from PySide6.QtWidgets import QApplication, QFileDialog, QMainWindow, QMenu, QVBoxLayout, QWidget

from explorer import settings as remembered
from explorer import theme as themes
from explorer.compute.bridge import Bridge, connect
from explorer.compute.worker import EngineLike, open_engine
from explorer.panels import registry
from explorer.panels.base import Panel
from explorer.panels.input.panel import InputPanel
from explorer.panels.registry import open_panels, switched_off
from explorer.session.hover import Hover
from explorer.session.intents import Intent, OpenCheckpoint, RestoreDocument, SetPicture, Show
from explorer.session.session import Session
from explorer.session.state import Notice, State
from explorer.settings import LAYOUT_VERSION, Settings
from explorer.theme import ThemeName
from explorer.widgets.notice_bar import NoticeBar
from explorer.window.docks import DockHost
from explorer.window.menus import build_menus, fill_panel_menus
from explorer.window.top_bar import TopBar
from models.files.weights_path import weights_path
from models.protocol.errors import ExplorerError
from models.protocol.export import ExportRequest
from models.protocol.loading import Loaded

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from explorer.chooser.chooser import Chooser

STOP_SECONDS = 5.0
UNSEEN = 1000  # ms: a window that is not painted by then, because it is covered, loads all the same
SEEN_FIRST = ("heads", "map", "next")
"""The panels that the first layout shows. The others are made one by one after the window has been painted."""
SMALLEST = QSize(960, 600)
FIRST = QSize(1440, 900)
SESSION_FILTER = "Attention Explorer session (*.json)"
WEIGHTS_FILTER = "NumPy (*.npz);;safetensors (*.safetensors)"


class MainWindow(QMainWindow):
    """Everything that one session shows. `start` sets the engine going once the window is up."""

    closed = Signal()
    """The window was closed, and its engine's thread has ended or was left to itself (`stopped`)."""

    def __init__(
        self,
        state: State,
        settings: Settings | None = None,
        engine_factory: Callable[[], EngineLike] = open_engine,
        remembers: bool = True,
        theme_now: ThemeName | None = None,
    ) -> None:
        settings = settings or Settings()
        base_points = QApplication.font().pointSizeF()
        _set_font(base_points, settings.text_scale)  # before there are widgets, which else start with another one
        super().__init__()
        self._remembers = remembers
        self._base_points = base_points
        self._is_starting = False
        self._is_closed = False
        self.stopped = False
        """Whether the window was closed and its engine's thread has ended."""
        self.settings = settings
        self.theme_name: ThemeName = theme_now or self.settings.theme  # `theme_now` is for this start alone
        self.setWindowTitle("Attention Explorer")
        self.setMinimumSize(SMALLEST)
        self.setAcceptDrops(True)
        self.theme = themes.LIGHT
        self.menus: dict[str, QAction] = {}
        self.panel_menus: tuple[QMenu, QMenu] = (QMenu(self), QMenu(self))
        self.session = Session(state)
        self.hover = Hover(self)
        self.bridge = Bridge(engine_factory, self)
        connect(self.session, self.bridge)

        self.top_bar = TopBar(self.session, self.hover)
        self.top_bar.open_asked.connect(self.choose_checkpoint)
        self._chooser: Chooser | None = None
        self.notice_bar = NoticeBar()
        self.notice_bar.action_triggered.connect(self._on_notice_action)
        self.notice_bar.dismissed.connect(lambda: self.session.dispatch(Show(None)))
        self.input = InputPanel(self.session, self.hover)
        self.input.picture_asked.connect(self.open_picture)
        self.dock_host = DockHost()
        self._panels: dict[str, Panel] = {}
        self._coming = deque(point for point in registry.BUILT_IN if point.name not in SEEN_FIRST)
        self._looks_for_more = True
        self.panel_bar = NoticeBar()
        """Which panels are left out or switched off, and why: said of no model, so no model's opening takes it away."""
        self._said_of_panels: tuple[str, ...] = ()
        for panel in (self.input, self.top_bar.trust):
            panel.failed.connect(partial(self._on_panel_failed, panel))
        for point in registry.BUILT_IN:
            if point.name in SEEN_FIRST:
                self._open_panel(point)
            else:
                self.dock_host.reserve(point.name, registry.TITLES[point.name])
        body = QWidget()
        column = QVBoxLayout(body)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.top_bar)
        inner = QVBoxLayout()
        inner.setContentsMargins(10, 0, 10, 8)
        inner.setSpacing(6)
        inner.addWidget(self.notice_bar)
        inner.addWidget(self.panel_bar)
        inner.addWidget(self.input)
        inner.addWidget(self.dock_host, 1)
        column.addLayout(inner, 1)
        self.setCentralWidget(body)
        self.menus = build_menus(self)

        self.session.changed.connect(self._on_changed)
        QGuiApplication.styleHints().colorSchemeChanged.connect(self._on_desktop_scheme)
        self._restore()
        self._apply_theme()
        self.top_bar.set_recent(self.settings.recent)
        self._show_notice(self.session.state)

    @property
    def panels(self) -> tuple[Panel, ...]:
        """All panels in the order of their tabs. Those that come after the first paint are made now if need be."""
        while not self.has_all_panels():
            self._open_next_panel()
        return tuple(self._panels[name] for name in self.dock_host.docks if name in self._panels)

    def has_all_panels(self) -> bool:
        """Whether every panel has been made, also those of other packages."""
        return not self._coming and not self._looks_for_more

    @property
    def chooser(self) -> Chooser:
        """The dialog of checkpoints, and what it knows of a hub; made when it is asked for first."""
        if self._chooser is None:
            from explorer.chooser.chooser import Chooser

            self._chooser = Chooser(self.session, self.settings, parent=self)
            self._chooser.recent_changed.connect(lambda: self.top_bar.set_recent(self.settings.recent))
        return self._chooser

    def start(self) -> None:
        """Begin to load, once what is on screen so far has been painted."""
        self.input.focus_text()
        self._is_starting = True
        QTimer.singleShot(UNSEEN, self._begin)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self._is_starting:
            QTimer.singleShot(0, self._begin)  # when this has reached the screen

    def _begin(self) -> None:
        if self._is_starting:
            self._is_starting = False
            self.session.start()
            self._open_panels_in_turn()

    def _open_panels_in_turn(self) -> None:
        """One panel whenever the event loop has nothing else to do: it never waits for all of them."""
        if not self.has_all_panels() and not self._is_closed:
            self._open_next_panel()
            QTimer.singleShot(0, self._open_panels_in_turn)

    def _open_next_panel(self) -> None:
        if self._coming:
            self._open_panel(self._coming.popleft())
            return
        self._looks_for_more = False
        for point in registry.installed():
            self._open_panel(point)
        fill_panel_menus(self, self.menus)

    def _open_panel(self, point: EntryPoint) -> None:
        """Put a panel into the window, or say why it cannot be had."""
        opened = open_panels(self.session, self.hover, (point,), taken=self._panels)
        for panel in opened.panels:
            self._panels[panel.name] = panel
            panel.failed.connect(partial(self._on_panel_failed, panel))
            panel.attempt(partial(panel.set_theme, self.theme))
            if panel.name not in self.dock_host.docks:
                place = self.dock_host.reserve if self._looks_for_more else self.dock_host.reserve_beside
                place(panel.name, panel.title)
                self.dock_host.set_theme(self.theme)
            self.dock_host.fill(panel)
        if opened.left_out:
            self._said_of_panels = (*self._said_of_panels, *opened.left_out)
            self._show_said_of_panels()
            if point.name in self.dock_host.docks and point.name not in self._panels:
                self._put_away(point.name)

    def _put_away(self, name: str) -> None:
        """Take a panel that there is none of out of the window."""
        self.dock_host.remove(name)
        if action := self.menus.get(f"show_{name}"):
            action.setVisible(False)

    def is_settled(self) -> bool:
        """Whether all that is visible shows the text in the input, or a sentence says why it cannot."""
        state = self.session.state
        if (
            self._coming
            or self._looks_for_more
            or self.bridge.busy
            or (state.results.loaded is None and state.notice is None)
        ):
            return False
        return state.notice is not None or (state.up_to_date and all(not panel.is_waiting() for panel in self.panels))

    # what the menus and buttons do

    def choose_checkpoint(self) -> None:
        """Let the person choose a checkpoint, see what it is, and open it."""
        self.chooser.show(self, self.theme)

    def open_picture(self) -> None:
        """Let the person choose what a vision model looks at."""
        chosen = self.session.state.document.picture
        folder = str(Path(chosen).parent) if Path(chosen).is_file() else str(Path.home())
        from models.files.sample_pictures import SUFFIXES

        endings = " ".join(f"*{suffix}" for suffix in sorted(SUFFIXES))
        path, _ = QFileDialog.getOpenFileName(self, "Open a picture", folder, f"Pictures ({endings})")
        if path:
            self.look_at(path)

    def look_at(self, path: str) -> None:
        """Give a picture to the model, or say that it reads text."""
        loaded = self.session.state.results.loaded
        if loaded is not None and loaded.info.family == "vision":
            self.session.dispatch(SetPicture(path))
            return
        sentence = f"{Path(path).name} is a picture, and the open model reads text. Open a vision model to look at it."
        self.session.dispatch(
            Show(Notice("info", sentence, action_label="Open vit-cifar10", action=OpenCheckpoint("vit-cifar10")))
        )

    def save_picture(self) -> None:
        """Let the person save the window as a picture."""
        path, _ = QFileDialog.getSaveFileName(self, "Save a picture of the window", "attention.png", "PNG (*.png)")
        if not path:
            return
        from explorer.window.saving import save_picture

        sentence = save_picture(self.grab(), Path(path))
        if sentence:
            self.session.dispatch(Show(Notice("error", sentence)))

    def save_weights(self) -> None:
        """Let the person save the weights of every head."""
        ran = self.session.state.ran
        if ran is None:
            return
        path, kind = QFileDialog.getSaveFileName(self, "Save all attention weights", "attention.npz", WEIGHTS_FILTER)
        if not path:
            return
        typed = Path(path if Path(path).suffix or "safetensors" not in kind else f"{path}.safetensors")
        try:
            file = weights_path(typed)
        except ExplorerError as error:
            self.session.dispatch(Show(Notice("error", str(error))))
            return
        if file != Path(path) and file.exists():  # of which the dialog has not asked
            sentence = f"{file} is there already. Save the weights under its whole name to replace it, or another."
            self.session.dispatch(Show(Notice("error", sentence)))
            return
        self.session.request(ExportRequest(run=ran.run, path=str(file)))

    def save_session(self) -> None:
        """Let the person save what they chose (not what was computed) as a session file."""
        path, _ = QFileDialog.getSaveFileName(self, "Save the session", "attention.json", SESSION_FILTER)
        if not path:
            return
        file = Path(path) if Path(path).suffix else Path(path).with_suffix(".json")
        from explorer.session import files

        try:
            files.save(self.session.state.document, file)
        except ValueError as error:
            self.session.dispatch(Show(Notice("error", str(error))))
        else:
            self.session.dispatch(Show(Notice("info", f"The session is saved: {file}.")))

    def open_session(self) -> None:
        """Let the person go back to a session that was saved. A file that is no session changes nothing."""
        path, _ = QFileDialog.getOpenFileName(self, "Open a session", "", SESSION_FILTER)
        if not path:
            return
        from explorer.session import files

        try:
            document = files.load(Path(path))
        except ValueError as error:
            self.session.dispatch(Show(Notice("error", str(error))))
            return
        self.session.dispatch(Show(None))
        self.session.dispatch(RestoreDocument(document))

    def reset_layout(self) -> None:
        self.dock_host.arrange(self.settings.text_scale)

    def set_theme_name(self, name: ThemeName) -> None:
        self.settings.theme = self.theme_name = name
        self._apply_theme()

    def scale_text(self, factor: float) -> None:
        """Make all text larger or smaller; 0 sets it back."""
        scale = 1.0 if factor == 0 else self.settings.text_scale * factor
        self.settings.text_scale = min(2.0, max(0.75, scale))
        self._apply_theme()
        self.dock_host.set_text_scale(self.settings.text_scale)

    def set_full_screen(self, full: bool) -> None:
        self.showFullScreen() if full else self.showNormal()

    # the state, and what is remembered

    def _on_changed(self, old: State, new: State) -> None:
        if new.notice != old.notice:
            self._show_notice(new)
        loaded = new.results.loaded
        if loaded is not None and loaded is not old.results.loaded:
            self.setWindowTitle(f"{loaded.info.name} - Attention Explorer")
            self._show_what_suits(old.results.loaded, loaded)
            if not loaded.info.shipped and not loaded.info.borrowed:
                self.settings.recent = remembered.with_recent(self.settings.recent, loaded.info.reference)
                self.top_bar.set_recent(self.settings.recent)

    def _show_what_suits(self, before: Loaded | None, now: Loaded) -> None:
        """Put away the panels that have nothing to show of this checkpoint, and bring out those that have.

        Only where that changes: a panel that a person closed or opened stays so while it makes no difference.
        """
        for panel in self.panels:
            suits = panel.attempt(partial(panel.suits, now.info))
            suited = before is None or panel.attempt(partial(panel.suits, before.info))
            if suits is not None and suits != suited:
                self.dock_host.docks[panel.name].setVisible(suits)

    def _on_panel_failed(self, panel: Panel, reason: str) -> None:
        """Say which panel has raised, and take it out of the window; input and trust strip stay in their places."""
        self._said_of_panels = (*self._said_of_panels, switched_off(panel, reason))
        self._show_said_of_panels()
        if self._panels.get(panel.name) is panel:
            del self._panels[panel.name]
            self._put_away(panel.name)

    def _show_said_of_panels(self) -> None:
        if self._said_of_panels:
            self.panel_bar.show_notice("warning", " ".join(self._said_of_panels))

    def _show_notice(self, state: State) -> None:
        notice = state.notice
        if notice is None:
            self.notice_bar.hide()
        else:
            self.notice_bar.show_notice(notice.kind, notice.text, notice.action_label)

    def _on_notice_action(self) -> None:
        notice = self.session.state.notice
        if notice is not None and isinstance(notice.action, Intent):
            self.session.dispatch(notice.action)

    def _on_desktop_scheme(self, _scheme: Qt.ColorScheme) -> None:
        self._apply_theme()

    def _apply_theme(self) -> None:
        dark = self.theme_name == "dark" or (
            self.theme_name == "system" and QGuiApplication.styleHints().colorScheme() == Qt.ColorScheme.Dark
        )
        self.theme = theme = themes.DARK if dark else themes.LIGHT
        app = QApplication.instance()
        if isinstance(app, QApplication):
            _set_font(self._base_points, self.settings.text_scale)
            themes.apply(app, theme)
        for panel in (self.input, self.top_bar.trust, *self._panels.values()):
            panel.attempt(partial(panel.set_theme, theme))
        self.dock_host.set_theme(theme)
        self.notice_bar.set_theme(theme)
        self.panel_bar.set_theme(theme)
        if self._chooser is not None:
            self._chooser.set_theme(theme)

    def _restore(self) -> None:
        room = self.screen().availableSize()
        self.resize(FIRST.boundedTo(room).expandedTo(SMALLEST))  # a laptop's screen may be smaller
        if self.settings.geometry:
            self.restoreGeometry(QByteArray(self.settings.geometry))
        self.dock_host.arrange(self.settings.text_scale)
        if self.settings.layout_version == LAYOUT_VERSION:
            self.dock_host.restore(self.settings.layout)

    def _remember(self) -> None:
        self.settings.geometry = bytes(self.saveGeometry().data())
        # closed at once, it would not know the places of other packages' panels
        if not self._looks_for_more or not registry.installed():
            self.settings.layout = self.dock_host.remembered()
            self.settings.layout_version = LAYOUT_VERSION
        self.settings.view = replace(self.session.state.document.view, painting="off")
        remembered.save(self.settings)

    def closeEvent(self, event: QCloseEvent) -> None:
        self._is_closed = True
        if self._remembers:
            self._remember()
        self.hide()  # the thread may need a moment to stop: an import of torch cannot be called off
        fetched = self._chooser is None or self._chooser.stop(STOP_SECONDS)
        self.stopped = self.bridge.stop(STOP_SECONDS) and fetched
        super().closeEvent(event)
        self.closed.emit()

    # a folder or a file dropped on the window

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        from explorer.chooser.drops import checkpoint_in

        if checkpoint_in(event.mimeData()) is not None:
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        from explorer.chooser.drops import checkpoint_in, picture_in

        picture = picture_in(event.mimeData())
        if picture is not None:
            event.acceptProposedAction()
            self.look_at(picture)
            return
        reference = checkpoint_in(event.mimeData())
        if reference is not None:
            event.acceptProposedAction()
            self.session.dispatch(OpenCheckpoint(reference))


def _set_font(base_points: float, scale: float) -> None:
    font = QApplication.font()
    font.setPointSizeF(max(themes.SMALLEST_FONT, base_points) * scale)
    QApplication.setFont(font)
