"""Every way that was gone, as an outline, and any two of them compared."""

from __future__ import annotations

import math

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLineEdit, QPushButton, QWidget

from attention_explorer.panels.decoding.branch_list import BranchList, BranchRow
from attention_explorer.panels.decoding.layout import column, count, dim, log_text, plain
from attention_explorer.session.branches import Branches, Segment, outline
from attention_explorer.widgets.number_text import MINUS
from attention_explorer.widgets.page import wrapped
from attention_explorer.widgets.rows import in_row
from attention_explorer.widgets.whole_list_box import WholeListBox
from attention_models.protocol.information import Unit, from_nats


class BranchesPage(QWidget):
    """Every way that was gone, with its log-probability; any two can be compared."""

    node_chosen = Signal(int)
    renamed = Signal(int, str)
    deleted = Signal(int)
    compared = Signal(int)
    """The branch that ends there is to be compared with the one in view."""

    def __init__(self) -> None:
        super().__init__()
        self.list = BranchList()
        self.list.set_empty_text("Every token you choose or the model writes is kept here as a branch.")
        self.name = QLineEdit()
        self.name.setPlaceholderText("Name of this branch")
        self.name.setAccessibleName("Name of this branch")
        self.name.setToolTip("Type a name for the branch that ends here, and press Enter (F2 in the list)")
        self.delete = QPushButton("Delete")
        self.delete.setToolTip(
            "Take this branch away, up to where it parts from the others (Delete). Ctrl+Z brings it back"
        )
        self.other = WholeListBox()
        self.other.setAccessibleName("Compare with")
        self.other.setToolTip("The branch to compare this one with")
        self.other.setMinimumContentsLength(14)
        self.comparison = wrapped()
        self.as_b = QPushButton("As B")
        self.as_b.setToolTip("Lay its attention beside that of this one, in Compare")
        self.as_b.clicked.connect(lambda: self.compared.emit(self.other.currentData()))
        self._compare = in_row(dim("Compare with"), self.other, self.as_b)
        column(self, self.list, in_row(self.name, self.delete), self._compare, self.comparison)
        self._segments: tuple[Segment, ...] = ()
        self._unit: Unit = "bits"
        self._branches = Branches()
        self.list.row_selected.connect(lambda row: self.node_chosen.emit(self._segments[row].last))
        self.name.returnPressed.connect(self._rename)
        self.delete.clicked.connect(self._delete)
        self.list.delete_asked.connect(self._delete)
        self.list.name_asked.connect(self._edit_name)
        self.other.activated.connect(lambda _: self._show_comparison())

    def _delete(self) -> None:
        self.deleted.emit(self._branches.current)

    def _edit_name(self) -> None:
        self.name.setFocus()
        self.name.selectAll()

    def _rename(self) -> None:
        self.list.setFocus()  # so that Ctrl+Z is the window's, not the field's
        self.renamed.emit(self._branches.current, self.name.text())

    def show_branches(self, branches: Branches, unit: Unit) -> None:
        self._branches, self._segments, self._unit = branches, outline(branches), unit
        path = branches.path()
        at = path[-1] if path else None
        self.list.set_rows(
            [
                BranchRow(
                    text=f"{segment.name}: {plain(segment.text)}" if segment.name else plain(segment.text),
                    depth=segment.depth,
                    value=log_text(segment.log_probability, unit),
                    on_path=segment.on_path,
                    current=at is not None and segment.last == at.id,
                    tooltip=f"{count(segment.tokens, 'token')}; all up to here has log-probability "
                    f"{from_nats(segment.log_probability, unit):.4f} {unit}".replace("-", MINUS)
                    + (". Ended" if segment.ended else ""),
                )
                for segment in self._segments
            ]
        )
        self.name.setEnabled(at is not None)
        if not self.name.hasFocus():
            self.name.setText(at.name if at is not None else "")
        self.delete.setEnabled(at is not None)
        others = [leaf for leaf in branches.leaves() if at is not None and leaf.id != at.id]
        kept = self.other.currentData()
        self.other.clear()
        for leaf in others:
            words = leaf.name or plain("".join(node.label for node in branches.path(leaf.id)))
            self.other.addItem(words if len(words) <= 40 else f"…{words[-38:]}", leaf.id)
        if kept is not None and self.other.findData(kept) >= 0:
            self.other.setCurrentIndex(self.other.findData(kept))
        self._compare.setVisible(bool(others))
        self._show_comparison()

    def _show_comparison(self) -> None:
        other = self.other.currentData()
        self.comparison.setVisible(other is not None)
        if other is not None:
            self.comparison.setText(comparison_text(self._branches, self._branches.current, other, self._unit))


def comparison_text(branches: Branches, first: int, second: int, unit: Unit) -> str:
    """Which of two branches is the likelier, and by how much; log-probabilities in `unit`."""
    a, b = branches.log_probability(first), branches.log_probability(second)
    lengths = len(branches.path(first)), len(branches.path(second))
    this, that = (f"{log_text(p, unit)} {unit} ({count(n, 'token')})" for p, n in zip((a, b), lengths, strict=True))
    words = f"This one {this}, the other {that}"
    apart = abs(a - b)
    if apart < 1e-9:
        return f"{words}: as likely."
    uneven = " Each further token can only make a text less likely." if lengths[0] != lengths[1] else ""
    return f"{words}: {'this one' if a > b else 'the other'} is {times_text(apart)} times as likely.{uneven}"


def times_text(apart: float) -> str:
    """e to the power of `apart`, with two digits: log-probabilities of two decimals tell no more. "about 26,000"."""
    times = math.exp(min(apart, 700.0))
    if times < 10:
        return f"{times:.1f}"
    if times >= 1e9:
        return f"about 10^{apart / math.log(10):.0f}"
    digits = 1 - math.floor(math.log10(times))  # two are kept
    rounded = round(times, digits)
    return f"about {rounded / 1e6:,.0f} million" if rounded >= 1e7 else f"about {rounded:,.0f}"
