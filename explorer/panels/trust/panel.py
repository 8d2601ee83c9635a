"""Whether the numbers on screen can be believed: eval mode, rows that sum to 1, equality with the model's own eager.

A textbook model's attention is the program's own, so that model is held against its papers' formulas instead.
"""

from __future__ import annotations

import math

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QHBoxLayout, QWidget

from explorer.panels.base import Panel
from explorer.panels.trust.status_chip import StatusChip
from explorer.session.hover import Hover
from explorer.session.session import Session
from explorer.session.state import State
from models.protocol.trust import TrustReport, TrustRequest
from models.protocol.values import UNIT_ROUNDOFFS

ROW_TOLERANCE = 1e-5

# A run that stays on screen for this long (ms) is compared by itself, as long as that takes but a moment.
PAUSE = 600
SMALL = 256  # tokens


class TrustStrip(Panel):
    api_version = 1
    name = "trust"
    title = "Trust"

    def __init__(self, session: Session, hover: Hover, parent: QWidget | None = None) -> None:
        super().__init__(session, hover, parent)
        self.mode, self.rows, self.equal = StatusChip(), StatusChip(), StatusChip()
        self.equal.set_clickable(True)
        self.equal.clicked.connect(self.measure)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(14)
        for chip in (self.mode, self.rows, self.equal):
            row.addWidget(chip)
        self._pause = QTimer(self)
        self._pause.setSingleShot(True)
        self._pause.setInterval(PAUSE)
        self._pause.timeout.connect(self.measure)

    def measure(self) -> None:
        """Compare the run on screen with the model's own eager attention, now."""
        if self.session.state.ran is not None:
            self.session.request(TrustRequest(run=self.session.state.ran.run))

    def render_state(self, state: State, old: State | None) -> None:
        self._render_mode(state)
        self._render_rows(state)
        self._render_equal(state)
        ran = state.ran
        if ran is None or state.results.trust is not None or len(ran.tokens) > SMALL:
            self._pause.stop()
        elif old is None or ran is not old.ran:
            self._pause.start()

    def _render_mode(self, state: State) -> None:
        loaded = state.results.loaded
        if loaded is None:
            self.mode.set_status("pending", "no model yet", "A checkpoint is being opened.")
        elif loaded.eval_mode:
            self.mode.set_status("ok", "eval mode", "Dropout is off: nothing is thrown away at random.")
        else:
            self.mode.set_status("error", "train mode", "Dropout is on: weights change from run to run.")

    def _render_rows(self, state: State) -> None:
        atlas, ran = state.results.atlas, state.ran
        if ran is not None and not ran.sites and _is_textbook(state):
            self.rows.set_status("pending", "no rows to sum", "This model attends to nothing: it has no weights.")
            return
        if atlas is None or ran is None or atlas.request.run != ran.run or atlas.done < 1:
            self.rows.set_status("pending", "rows not summed yet", "Summed when all heads are drawn.")
            return
        text = f"Largest deviation of a row's sum from 1, over every row of every head: {atlas.row_error:.1e}."
        if atlas.row_error <= ROW_TOLERANCE:
            self.rows.set_status("ok", "rows sum to 1", text)
        else:
            self.rows.set_status("error", f"rows miss 1 by {atlas.row_error:.0e}", text)

    def _render_equal(self, state: State) -> None:
        report = state.results.trust
        again = "Click to measure again on what is on screen."
        if _is_textbook(state):
            self._render_textbook(state, again)
        elif _gives_weights(state):
            self._render_given(state, again)
        elif TrustRequest.lane in state.busy:
            self.equal.set_status("pending", "comparing with the model", "Running the model's own eager attention.")
        elif report is None:
            self.equal.set_status(
                "pending", "compare with the model", "Click to run the model's own eager attention on this text."
            )
        else:
            dtype = state.results.loaded.dtype if state.results.loaded is not None else "float32"
            share = report.rounding
            text = (
                f"{_end_to_end(report) if share is None else _beside(report, share, dtype)}{_of_input(report)} {again}"
            )
            difference = _difference(report)
            if state.ran is not None and state.ran.interventions:
                edits = len(state.ran.interventions)
                sentence = f"{edits} intervention{'s are' if edits > 1 else ' is'} on. Untouched: {text}"
                self.equal.set_status("warning", "edited run", sentence)
            elif not report.has_own_input:
                self.equal.set_status("error", "not the picture as the model reads it", text)
            elif report.holds:
                to = f"({difference})" if share is None else f"to {dtype} rounding"
                self.equal.set_status("ok", f"equals the model {to}", text)
            else:
                self.equal.set_status("error", f"differs from the model ({difference})", text)

    def _render_given(self, state: State, again: str) -> None:
        report = state.results.trust
        if TrustRequest.lane in state.busy:
            self.equal.set_status("pending", "asking the model again", "Running it without asking for its weights.")
        elif report is None:
            self.equal.set_status("pending", "the model's own weights", f"{_GIVEN} Click to ask again on this text.")
        else:
            text = (
                f"{_GIVEN} Asked for none, it gave logits that differ by at most {report.logit_difference:.1e} of the "
                f"largest; asked once more, weights that differ by {report.weight_difference:.1e}; "
                f"{_allowed(report)}. {again}"
            )
            if report.holds:
                self.equal.set_status("ok", "the model's own weights", text)
            else:
                self.equal.set_status("error", "the model's answers differ", text)

    def _render_textbook(self, state: State, again: str) -> None:
        report = state.results.trust
        if TrustRequest.lane in state.busy:
            self.equal.set_status(
                "pending", "comparing with the formulas", "Computing its papers' formulas in float64."
            )
            return
        if report is None:
            self.equal.set_status("pending", "textbook model", f"{_TEXTBOOK} Click to compare with them on this text.")
            return
        worst = max(report.logit_difference, report.weight_difference)
        text = (
            f"{_TEXTBOOK} Computed anew in float64 from the hidden states of this run, weights differ by at most "
            f"{report.weight_difference:.1e}, logits by {report.logit_difference:.1e} of the largest; "
            f"{report.tolerance:.0e} is allowed. {again}"
        )
        if report.holds:
            self.equal.set_status("ok", f"equals the formulas ({worst:.0e})", text)
        else:
            self.equal.set_status("error", f"differs from the formulas ({worst:.0e})", text)


_TEXTBOOK = "A textbook model: its attention is this program's own function, held against its papers' formulas."


_GIVEN = "These weights stand in the model's own output (output_attentions): nothing here computed them."


def _gives_weights(state: State) -> bool:
    return state.results.loaded is not None and bool(state.results.loaded.info.weights_only)


def _end_to_end(report: TrustReport) -> str:
    return (
        f"Against {report.against}{_extent(report)}: "
        f"weights differ by at most {report.weight_difference:.1e}, logits by {report.logit_difference:.1e} "
        f"of the largest; {_allowed(report)}."
    )


def _beside(report: TrustReport, rounding: float, dtype: str) -> str:
    """Where each layer was compared by itself: in half precision, and where rounding in float32 added up."""
    added_up = (
        f" From end to end rounding adds up to {report.end_to_end:.1e}, since large scores are rounded most."
        if report.end_to_end is not None
        else ""
    )
    return (
        f"Layer by layer against {report.against}, given the queries and keys of this run{_extent(report)}. In float32 "
        f"its weights differ by at most {report.weight_difference:.1e}; {report.tolerance:.2g} is allowed. In {dtype} "
        f"its weights, and what this run went on with, are off by {rounding:.0%} of what rounding each step by up to "
        f"{UNIT_ROUNDOFFS[dtype]:.0e} of its size explains; 100% is allowed. Logits come out again to "
        f"{report.logit_difference:.1e} of the largest; {report.logit_tolerance:.0e} is allowed.{added_up}"
    )


def _of_input(report: TrustReport) -> str:
    """Of a picture; nothing where there is nothing to compare with."""
    if report.input_difference is None:
        return ""
    return (
        " Its image processor, given the same file, makes pixels that differ from those of this run by at most "
        f"{report.input_difference:.1e}."
    )


def _difference(report: TrustReport) -> str:
    """How far it is from the model, in short."""
    if report.rounding is not None and 1 < report.rounding < math.inf:
        return f"{report.rounding:.3g} × rounding"
    worst = max(report.logit_difference, report.weight_difference)
    return "exactly" if worst == 0 else f"{worst:.0e}"


def _allowed(report: TrustReport) -> str:
    if report.tolerance == report.logit_tolerance:
        return f"{report.tolerance:.0e} is allowed"
    return f"{report.tolerance:.0e} of weights and {report.logit_tolerance:.0e} of logits is allowed"


def _extent(report: TrustReport) -> str:
    return f", on {report.rows} rows of every head spread over this long text" if report.rows else ""


def _is_textbook(state: State) -> bool:
    return state.results.loaded is not None and state.results.loaded.info.textbook
