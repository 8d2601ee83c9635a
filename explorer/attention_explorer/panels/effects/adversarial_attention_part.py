"""Below the accounts of tokens: a search for other weights that give the same answer, and its strips."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QLabel, QPushButton, QScrollArea, QVBoxLayout, QWidget

from attention_explorer.panels.effects.value_grid import Grid, ValueGrid
from attention_explorer.session.effects_choices import EPSILONS, EffectsChoices
from attention_explorer.widgets.callout import CodeButton
from attention_explorer.widgets.flow_layout import FlowLayout
from attention_explorer.widgets.page import wrapped
from attention_explorer.widgets.whole_list_box import WholeListBox
from attention_models.protocol.adversarial_attention import Scope

SCOPES: tuple[tuple[Scope, str], ...] = (
    ("head", "the selected head"),
    ("layer", "all heads of its layer"),
    ("stack", "all heads of all layers"),
)
_TIP = (
    "Search for weights as unlike these as can be that leave the answer as it is, and for the least change that does "
    "not. Takes some seconds; again to stop"
)


class AdversarialAttentionPart(QWidget):
    asked = Signal(object)
    """Another scope or bound, as fields of `EffectsChoices`."""
    switched = Signal(bool)
    """A person began the search, or stopped it."""
    script_wanted = Signal()
    """What was found is wanted as PyTorch."""

    def __init__(self) -> None:
        super().__init__()
        self.scope = WholeListBox()
        for value, text in SCOPES:
            self.scope.addItem(text, value)
        self.scope.setMinimumContentsLength(14)
        self.scope.setAccessibleName("Whose weights are changed")
        self.scope.setToolTip("Whose weights are changed, in the row that the answer is read at")
        self.scope.activated.connect(lambda place: self.asked.emit({"scope": self.scope.itemData(place)}))
        self.epsilon = WholeListBox()
        for epsilon in EPSILONS:
            self.epsilon.addItem(f"{epsilon:g}", epsilon)
        self.epsilon.setMinimumContentsLength(5)
        self.epsilon.setAccessibleName("How far the answer may move")
        self.epsilon.setToolTip("How far the answer may move, in total variation distance, which goes from 0 to 1")
        self.epsilon.activated.connect(lambda place: self.asked.emit({"epsilon": self.epsilon.itemData(place)}))
        self.search = QPushButton("Search other weights")
        self.search.setCheckable(True)
        self.search.setToolTip(_TIP)
        self.search.clicked.connect(lambda on: self.switched.emit(on))
        self.code = CodeButton("Other weights")
        self.code.offer(True)
        self.code.setToolTip("Show as PyTorch: these weights put into the model")
        self.code.clicked.connect(lambda: self.script_wanted.emit())
        self.same, self.changed, self.limits = wrapped(), wrapped(), wrapped(role="dim")
        self.grid = ValueGrid("Other weights")
        self.area = QScrollArea()
        self.area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.area.setWidget(self.grid)
        self.area.setWidgetResizable(True)
        self.area.setFrameShape(QFrame.Shape.NoFrame)
        self.area.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        row = QWidget()
        line = FlowLayout(row, gap=6)
        for part in (self.search, QLabel("of"), self.scope, QLabel("answer within"), self.epsilon, self.code):
            line.addWidget(part)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 4, 0, 0)
        column.setSpacing(4)
        for each in (row, self.same, self.changed, self.area, self.limits):
            column.addWidget(each)

    def show_choices(self, asked: EffectsChoices, searching: bool, is_running: bool, why: str) -> None:
        """`why` says why nothing can be searched for; "" where something can.

        Where a search `is_running` the button stops it; one that has ended is begun anew for another head.
        """
        self.search.setText("Stop the search" if is_running and not why else "Search other weights")
        self.scope.setCurrentIndex(self.scope.findData(asked.scope))
        place = self.epsilon.findData(asked.epsilon)
        if place < 0:  # of a file
            self.epsilon.addItem(f"{asked.epsilon:g}", asked.epsilon)
            place = self.epsilon.count() - 1
        self.epsilon.setCurrentIndex(place)
        for box in (self.scope, self.epsilon, self.search):
            box.setEnabled(not why)
        self.search.setChecked(searching and not why)
        if why:
            self.show_found(None, why, "", "")

    def show_found(self, grid: Grid | None, same: str, changed: str, limits: str, has_other: bool = False) -> None:
        """`has_other`: whether there are other weights among them."""
        self.code.setVisible(has_other)
        for label, text in ((self.same, same), (self.changed, changed), (self.limits, limits)):
            label.setText(text)
            label.setVisible(bool(text))
        self.area.setVisible(grid is not None)
        self.grid.show_grid(grid)
        if grid is not None:
            bar = self.area.horizontalScrollBar().sizeHint().height()
            self.area.setFixedHeight(self.grid.minimumSizeHint().height() + bar)
