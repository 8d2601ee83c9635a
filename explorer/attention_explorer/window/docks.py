"""Where panels live: docks that can be dragged, tabbed and floated, with a slim grip in place of a title bar."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from functools import partial
from itertools import pairwise
from typing import Literal

from PySide6.QtCore import QByteArray, QCoreApplication, QEvent, QObject, QPoint, QRect, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QCursor, QGuiApplication, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import (
    QApplication,
    QDockWidget,
    QHBoxLayout,
    QMainWindow,
    QSizePolicy,
    QSpacerItem,
    QTabBar,
    QTabWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from attention_explorer.look.theme import LIGHT, Theme
from attention_explorer.panels.base import Panel
from attention_explorer.settings import LAYOUT_VERSION, Floated

# Panels that float get a window as others are: with a title bar that maximises, whose place and state come back.


_FRAMED = (
    Qt.WindowType.Window
    | Qt.WindowType.CustomizeWindowHint
    | Qt.WindowType.WindowTitleHint
    | Qt.WindowType.WindowSystemMenuHint
    | Qt.WindowType.WindowMinMaxButtonsHint
    | Qt.WindowType.WindowCloseButtonHint
)
"""Qt makes of a dock that floats a tool window without any of these."""

_BESIDE = QPoint(40, 40)
"""From the corner of all docks: where one floats that has no place of its own on a screen."""

_HELD = 50
"""ms between two looks at whether the mouse still drags the dock: another window would be another drag."""

_MAPPED = 150
"""ms: a window manager that still takes leave of the window as it was before forgets what is asked for sooner."""


class FloatedDocks(QObject):
    """Watches docks, and remembers of each how it floated last."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._kept: dict[str, Floated] = {}

    def watch(self, dock: QDockWidget) -> None:
        dock.topLevelChanged.connect(lambda floats: self._frame(dock) if floats else None)
        dock.installEventFilter(self)

    def remembered(self) -> dict[str, Floated]:
        return dict(self._kept)

    def restore(self, kept: Mapping[str, Floated]) -> None:
        """Take up what was remembered, before the docks float again."""
        self._kept = dict(kept)

    def _frame(self, dock: QDockWidget, began: QPoint | None = None) -> None:
        """Once no button is held: `began` is where the mouse was at first, from where a drag moves it on."""
        if not dock.isFloating() or is_framed(dock):
            return
        if QGuiApplication.mouseButtons() != Qt.MouseButton.NoButton:
            at = QCursor.pos() if began is None else began
            QTimer.singleShot(_HELD, dock, lambda: self._frame(dock, at))
            return
        was_visible, place = dock.isVisible(), dock.geometry()
        dock.setWindowFlags(_FRAMED)
        kept = self._kept.get(dock.objectName())
        moved = QPoint() if began is None else QCursor.pos() - began
        was_dragged = moved.manhattanLength() >= QApplication.startDragDistance()  # who drags says where it is to be
        if kept is not None and not was_dragged:
            normal = QRect(kept.x, kept.y, kept.width, kept.height)
            place = normal if _is_on_a_screen(normal) else place
        owner = dock.parentWidget()
        if owner is not None and not _is_on_a_screen(place):  # behind a tab Qt keeps a dock off every screen
            place = QRect(owner.mapToGlobal(_BESIDE), place.size())
        dock.setGeometry(place)
        dock.setVisible(was_visible)
        if kept is not None and kept.is_maximised and not was_dragged:
            QTimer.singleShot(_MAPPED, dock, partial(self._fill, dock))

    def _fill(self, dock: QDockWidget) -> None:
        if dock.isFloating() and dock.isVisible():
            dock.setWindowState(Qt.WindowState.WindowMaximized)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        changes = (QEvent.Type.Resize, QEvent.Type.Move, QEvent.Type.WindowStateChange)
        if not isinstance(watched, QDockWidget) or not is_framed(watched):
            return False
        if event.type() in changes:
            QTimer.singleShot(0, watched, partial(self._note, watched))  # Qt restores it on the way back to its dock
        elif event.type() == QEvent.Type.MouseButtonDblClick:
            QTimer.singleShot(0, watched, partial(_bring_back, watched))
        return False

    def _note(self, dock: QDockWidget) -> None:
        """Keep how it floats now; while it is maximised its place is that to go back to."""
        if dock.isFloating() and is_framed(dock) and dock.isVisible() and not dock.isMinimized():
            normal = dock.normalGeometry() if dock.isMaximized() else dock.geometry()
            if normal.isValid():
                self._kept[dock.objectName()] = Floated(
                    normal.x(), normal.y(), normal.width(), normal.height(), dock.isMaximized()
                )


def _bring_back(dock: QDockWidget) -> None:
    """To the front of its tabs, where whoever put it back looks for it."""
    if not dock.isFloating():
        dock.show()
        dock.raise_()


def is_framed(dock: QDockWidget) -> bool:
    return bool(dock.windowFlags() & Qt.WindowType.WindowMaximizeButtonHint)


def _is_on_a_screen(place: QRect) -> bool:
    """Whether enough of it can be seen to take hold of it; the screen that it was on may be gone."""
    seen = [screen.availableGeometry() & place for screen in QGuiApplication.screens()]
    return any(part.width() >= 80 and part.height() >= 40 for part in seen)


# The tab bars of docks. Qt makes them itself, when docks become tabs, and keeps those that have lost their tabs.


def say_what_for(bar: QTabBar, hints: Mapping[str, str]) -> None:
    """Give each tab the tooltip that `hints` has for its title."""
    if bar.elideMode() != Qt.TextElideMode.ElideNone:  # which lays out all tabs
        bar.setElideMode(Qt.TextElideMode.ElideNone)  # arrows beside them are better than half a word in each
        bar.setUsesScrollButtons(True)
    for i in range(bar.count()):
        bar.setTabToolTip(i, hints.get(bar.tabText(i), ""))


def bring_into_line(bar: QTabBar) -> None:
    """Whether a key reaches it, and the tab in front whole: one that comes or goes before it pushes it under arrows."""
    bar.setFocusPolicy(Qt.FocusPolicy.TabFocus if bar.count() else Qt.FocusPolicy.NoFocus)
    front = bar.tabRect(bar.currentIndex())
    arrows = [button.x() for button in bar.findChildren(QToolButton) if button.isVisibleTo(bar)]
    if front.isValid() and (front.left() < 0 or front.right() >= min([bar.width(), *arrows])):
        QCoreApplication.sendEvent(bar, QResizeEvent(bar.size(), bar.size()))  # at which it scrolls to that tab


Arrangement = Literal["flow", "heads"]
"""Which layout to begin with: the picture of the model and what is said of it, or all heads beside the selected one."""

_COLUMNS: dict[Arrangement, tuple[tuple[str, ...], ...]] = {
    "flow": (("flow", "heads", "compare"), ("next", "map")),
    "heads": (("heads",), ("map",), ("next",)),
}
"""The panels of each column, that in front first. All others are behind those of the last one."""

_AS_SHARED = 0.03
"""How far from its share a column's width may be and still count as nobody's choice."""

_EXACTLY = 0.005

_NARROW, _LOW, _READABLE = 140, 100, 260
"""Pixels: a dock that is narrower or lower once it was dropped, and what it gets."""

_GRIP = 40, 10
"""Pixels: the least width and the height of what a dock is dragged by."""

_TRIES = 6
"""How often columns are given their shares after the text has got another size."""

_LAID_OUT = 200
"""ms: by then widgets have their new sizes."""


def shares(text_scale: float, arrangement: Arrangement = "flow", width: int = 1280) -> tuple[float, ...]:
    """What each column gets of the width: pictures give way to larger text, and get what a wide window has to spare."""
    more = min(max(text_scale, 1.0), 2.0) - 1
    if arrangement == "flow":
        spare = 0.08 * min(max(width - 1280, 0), 640) / 640
        return 0.62 - 0.12 * more + spare, 0.38 + 0.12 * more - spare
    return 0.26 + 0.05 * more, 0.37 + 0.03 * more, 0.37 - 0.08 * more


class Grip(QWidget):
    """What a dock is dragged by: three dots above the panel. The panel's card has the title."""

    def __init__(self, title: str, floats: bool = True) -> None:
        """`floats` says whether the dock can have a window of its own."""
        super().__init__()
        self._theme = LIGHT
        row = QHBoxLayout(self)  # asked for its size at each change of any panel: Qt answers by itself
        row.setContentsMargins(0, 0, 0, 0)
        self._room = QSpacerItem(*_GRIP)
        row.addItem(self._room)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setCursor(Qt.CursorShape.SizeAllCursor)
        how = "double-click to give it a window of its own, and to put it back" if floats else "left or right"
        self.setToolTip(f"Drag to move “{title}”{'; ' if floats else ' '}{how}")

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.update()

    def put_away(self, away: bool) -> None:
        """Hide it, and leave no room for it: a dock keeps that of a title bar which is merely hidden."""
        self._room.changeSize(_GRIP[0], 0 if away else _GRIP[1])
        self.updateGeometry()
        self.setVisible(not away)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(self._theme.border_strong))
        for offset in (-8, 0, 8):
            painter.drawEllipse(self.rect().center().x() + offset - 1, self.rect().center().y(), 3, 3)


class _Place(QWidget):
    """What is inside a dock: its panel, once there is one, shown and hidden with the dock."""

    shown_or_hidden = Signal()

    def __init__(self, dock: QDockWidget) -> None:
        super().__init__()
        self._panel: Panel | None = None
        self.can_be_seen = False
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        # Qt moves a dock behind a tab out of sight but calls it visible; its panel has to know, for it asks the engine
        dock.visibilityChanged.connect(self._show)
        # a dock that floats from behind a tab does not say that it can be seen now
        dock.topLevelChanged.connect(lambda floats: self._show(True) if floats else None)

    def take(self, panel: Panel) -> None:
        policy = panel.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        panel.setSizePolicy(policy)
        self._panel = panel
        layout = self.layout()
        assert layout is not None
        layout.addWidget(panel)
        panel.setVisible(self.can_be_seen)  # inside by now: outside it would be a window of its own

    def minimumSizeHint(self) -> QSize:
        """Behind a tab a panel keeps the sizes of the text before: its column need not hold those."""
        least = super().minimumSizeHint()
        return least if self.can_be_seen else least.boundedTo(QSize(_READABLE, _LOW))

    def take_focus(self) -> None:
        """Give the keyboard to the panel."""
        if self._panel is None:
            return
        stop = self._panel.attempt(self._panel.first_focus) or self._panel  # while it has nothing, Tab goes on from it
        self.window().activateWindow()  # of a dock that floats its own
        stop.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def follow_focus(self, focus: QWidget | None, docks: Iterable[QDockWidget]) -> None:
        """Take the keyboard from the panel in another dock that has it; Tab goes on from here."""
        elsewhere = any(dock.widget() is not self and dock.isAncestorOf(focus) for dock in docks) if focus else False
        if elsewhere and self._panel is not None and self.can_be_seen:
            self._panel.setFocus(Qt.FocusReason.OtherFocusReason)

    def _show(self, can_be_seen: bool) -> None:
        if can_be_seen != self.can_be_seen:
            self.can_be_seen = can_be_seen
            self.shown_or_hidden.emit()
        if self._panel is not None:
            self._panel.setVisible(can_be_seen)
        self.updateGeometry()


class DockHost(QMainWindow):
    """The part of the window that holds the docks."""

    front_changed = Signal()
    """A panel came to the front, or went behind another."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowFlags(Qt.WindowType.Widget)
        self.setDockNestingEnabled(True)
        self.setDockOptions(
            QMainWindow.DockOption.AnimatedDocks
            | QMainWindow.DockOption.AllowNestedDocks
            | QMainWindow.DockOption.AllowTabbedDocks
        )
        self.setTabPosition(Qt.DockWidgetArea.AllDockWidgetAreas, QTabWidget.TabPosition.North)
        self.docks: dict[str, QDockWidget] = {}
        self.floated = FloatedDocks(self)
        self.last_raised = ""
        """The panel that was brought to the front last; "" at first."""
        self._is_raising = False  # by the program: the keyboard stays where it is
        self._text_scale = 1.0
        self._given: tuple[float, ...] = ()
        """What the columns came to when the width was shared out last: some need more than their share."""
        self._tries = 0  # how often the width is shared out again until the widgets have their new sizes
        self._settling = QTimer(self)
        self._settling.setSingleShot(True)
        self._settling.setInterval(_LAID_OUT)
        self._settling.timeout.connect(self._settle_columns)
        self._dropped = QTimer(self)  # once the dock that was dropped is laid out
        self._dropped.setSingleShot(True)
        self._dropped.setInterval(_LAID_OUT)
        self._dropped.timeout.connect(self._give_room)
        self._resized = QTimer(self)  # once the docks have their new widths
        self._resized.setSingleShot(True)
        self._resized.setInterval(0)
        self._resized.timeout.connect(self._share_anew)
        self.tabifiedDockWidgetActivated.connect(self._on_tab)

    def add(self, panel: Panel) -> None:
        """A dock with `panel` in it; `arrange` puts it in its place."""
        self.reserve(panel.name, panel.title)
        self.fill(panel)

    def reserve(self, name: str, title: str) -> None:
        """A dock for a panel that comes later."""
        dock = QDockWidget(title)
        dock.setObjectName(name)  # what saveState calls it
        dock.setTitleBarWidget(Grip(title))
        place = _Place(dock)
        place.shown_or_hidden.connect(self.front_changed)
        dock.setWidget(place)
        dock.dockLocationChanged.connect(lambda _: self._dropped.start())
        self.docks[name] = dock
        self.floated.watch(dock)
        self.addDockWidget(Qt.DockWidgetArea.LeftDockWidgetArea, dock)

    def reserve_beside(self, name: str, title: str) -> None:
        """As `reserve`, once the others have their places: where it was when they were restored, else behind them."""
        first = self._arranged(self._arrangement())[-1][0]
        self.reserve(name, title)
        dock = self.docks[name]
        if not self.restoreDockWidget(dock):
            self.tabifyDockWidget(first, dock)
        self._name_tabs()

    def fill(self, panel: Panel) -> None:
        """Put a panel into its dock."""
        dock = self.docks[panel.name]
        dock.toggleViewAction().setToolTip(panel.hint)
        place = dock.widget()
        assert isinstance(place, _Place)
        place.take(panel)
        self._name_tabs()

    def remove(self, name: str) -> None:
        """Take a panel and its dock out of the window and delete them, once what runs now has returned."""
        dock = self.docks.pop(name)
        self.removeDockWidget(dock)
        dock.deleteLater()

    def arrange(self, text_scale: float = 1.0, arrangement: Arrangement = "flow") -> None:
        """A layout that the window starts with."""
        self._text_scale = text_scale
        for dock in self.docks.values():
            dock.setFloating(False)
            self.removeDockWidget(dock)  # Qt leaves the bar of tabs that are split up where it was
        columns = self._arranged(arrangement)
        self.addDockWidget(Qt.DockWidgetArea.LeftDockWidgetArea, columns[0][0])
        for left, right in pairwise(columns):
            self.splitDockWidget(left[0], right[0], Qt.Orientation.Horizontal)
        for first, *behind in columns:
            for dock in behind:
                self.tabifyDockWidget(first, dock)
        for dock in self.docks.values():
            dock.show()
        for first, *_ in columns:
            first.raise_()
        self._name_tabs()
        self._share_width(arrangement)

    def _arranged(self, arrangement: Arrangement) -> list[list[QDockWidget]]:
        """The docks of each column. One that is left out leaves its place to the next of all."""
        wanted = [[name for name in names if name in self.docks] for names in _COLUMNS[arrangement]]
        named = {name for names in wanted for name in names}
        rest = [name for name in self.docks if name not in named]
        for names in wanted[:-1]:
            if not names and rest:
                names.append(rest.pop(0))
        wanted[-1] += rest
        return [[self.docks[name] for name in names] for names in wanted if names]

    def is_shared_out(self) -> bool:
        """Whether the columns have the widths that they were given, or are given them now: nobody has moved them."""
        return self._tries > 0 or self._is_near(self._shares(self._arrangement())) or self._is_near(self._given)

    def set_text_scale(self, scale: float, shares_out: bool = True) -> None:
        """The text has another size: share out the width anew, where it was shared out before the text changed."""
        if scale == self._text_scale:
            return
        self._text_scale = scale
        if shares_out:
            self._tries = _TRIES
            self._share_width(self._arrangement())

    def _arrangement(self) -> Arrangement:
        """Which of the layouts the docks stand in, as far as can be told: a person may have moved them."""
        flow, heads = self.docks.get("flow"), self.docks.get("heads")
        together = flow is not None and heads is not None and heads in self.tabifiedDockWidgets(flow)
        return "flow" if together else "heads"

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._resized.start()

    def _share_anew(self) -> None:
        """The width is another one: share it out, unless a person has shared it out otherwise."""
        if self._settling.isActive() or self._is_near(self._given):
            self._share_width(self._arrangement())

    def _shares(self, arrangement: Arrangement) -> tuple[float, ...]:
        return shares(self._text_scale, arrangement, self.window().width())

    def _shares_now(self) -> tuple[float, ...]:
        """What the columns have of the width."""
        widths = [dock.width() for dock in self._fronts(self._arrangement())]
        return tuple(width / max(sum(widths), 1) for width in widths)

    def _is_near(self, given: tuple[float, ...], within: float = _AS_SHARED) -> bool:
        now = self._shares_now()
        return len(now) == len(given) and all(abs(a - b) < within for a, b in zip(now, given, strict=True))

    def _share_width(self, arrangement: Arrangement) -> None:
        whole, fronts = max(self.width(), 1), self._fronts(arrangement)
        widths = [round(share * whole) for share in self._shares(arrangement)]
        self.resizeDocks(fronts, widths[: len(fronts)], Qt.Orientation.Horizontal)
        self._settling.start()

    def _settle_columns(self) -> None:
        """Note what came of the shares; again, where widgets still had the sizes of other text."""
        arrangement = self._arrangement()
        if self._tries and not self._is_near(self._shares(arrangement), _EXACTLY):
            self._tries -= 1
            self._share_width(arrangement)
        else:
            self._given = self._shares_now()

    def _give_room(self) -> None:
        """A dock that was dropped between others gets room to be read; Qt would give it next to none."""
        for dock in self.docks.values():
            if dock.isFloating() or dock.visibleRegion().isEmpty():
                continue
            for size, least, wanted, way in (
                (dock.width(), _NARROW, _READABLE, Qt.Orientation.Horizontal),
                (dock.height(), _LOW, _READABLE, Qt.Orientation.Vertical),
            ):
                if size < least:
                    self.resizeDocks([dock], [wanted], way)

    def _fronts(self, arrangement: Arrangement) -> list[QDockWidget]:
        """Of each column, whichever of its tabs is in front."""
        fronts = []
        for first, *_ in self._arranged(arrangement):
            tabs = [first, *self.tabifiedDockWidgets(first)]
            fronts.append(next((dock for dock in tabs if not dock.visibleRegion().isEmpty()), first))
        return fronts

    def raise_panel(self, name: str) -> None:
        """Bring a panel to the front, opening it where it was closed."""
        dock = self.docks[name]
        self.last_raised = name
        self._is_raising = True
        dock.show()  # which takes it out where its panel fails
        dock.raise_()
        self._is_raising = False

    def go_to(self, name: str) -> None:
        """Bring a panel to the front and the keyboard to it; nothing happens where there is none."""
        if name not in self.docks:
            return
        self.raise_panel(name)
        place = self.docks[name].widget() if name in self.docks else None
        if isinstance(place, _Place):
            place.take_focus()

    def open_panels(self) -> tuple[str, ...]:
        """Names of the panels that are not closed."""
        return tuple(name for name, dock in self.docks.items() if not dock.isHidden())

    def front_panels(self) -> tuple[str, ...]:
        """Names of the panels that can be seen: of each group of tabs one."""
        places = {name: dock.widget() for name, dock in self.docks.items()}
        return tuple(name for name, place in places.items() if isinstance(place, _Place) and place.can_be_seen)

    def set_open(self, name: str, is_open: bool) -> None:
        """Open or close a panel where it stands."""
        self.docks[name].setVisible(is_open)

    def show_panels(self, known: Container[str], opened: Container[str], front: Iterable[str]) -> None:
        """Of the panels that are `known` open those that were `opened`, and bring to the `front` which was there."""
        for name, dock in self.docks.items():
            if name in known:
                dock.setVisible(name in opened)
        for name in front:
            if name in self.docks:
                self.raise_panel(name)

    def _on_tab(self, dock: QDockWidget) -> None:
        self.last_raised = dock.objectName()
        self._name_tabs()
        place = dock.widget()
        if isinstance(place, _Place) and not self._is_raising:
            # once Qt has brought it to the front
            QTimer.singleShot(0, place, lambda: place.follow_focus(self.window().focusWidget(), self.docks.values()))

    def tab_bars(self) -> list[QTabBar]:
        """Those of docks that are tabs; not those inside of panels."""
        return self.findChildren(QTabBar, options=Qt.FindChildOption.FindDirectChildrenOnly)

    def _name_tabs(self) -> None:
        """Say in each tab's tooltip what its panel is for."""
        hints = {dock.windowTitle(): dock.toggleViewAction().toolTip() for dock in self.docks.values()}
        for bar in self.tab_bars():
            say_what_for(bar, hints)

    def event(self, event: QEvent) -> bool:
        handled = super().event(event)
        if event.type() == QEvent.Type.LayoutRequest:
            for bar in self.tab_bars():
                bring_into_line(bar)
        return handled

    def remembered(self) -> bytes:
        return bytes(self.saveState(LAYOUT_VERSION).data())

    def restore(self, layout: bytes) -> bool:
        """Put the docks where `remembered` found them; False where it is no layout of this version."""
        restored = bool(layout) and self.restoreState(QByteArray(layout), LAYOUT_VERSION)
        if restored:
            self._settling.stop()  # these widths are a person's, however wide the window becomes
        self._name_tabs()  # their bars are new ones
        return restored

    def set_theme(self, theme: Theme) -> None:
        for dock in self.docks.values():
            grip_of(dock).set_theme(theme)


def grip_of(dock: QDockWidget) -> Grip:
    grip = dock.titleBarWidget()
    assert isinstance(grip, Grip)
    return grip
