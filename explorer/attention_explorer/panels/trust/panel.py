"""Whether the numbers on screen can be believed: eval mode, rows that sum to 1, equality with the model's own eager.

A textbook model's attention is the program's own, so that model is held against its papers' formulas instead.
"""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QHBoxLayout, QWidget

from attention_explorer.panels.base import Panel
from attention_explorer.panels.trust.status_chip import StatusChip
from attention_explorer.panels.trust.verdicts import SMALL, on_batch, on_equality, on_input, on_mode, on_rows
from attention_explorer.session.hover import Hover
from attention_explorer.session.live import Live
from attention_explorer.session.session import Session
from attention_explorer.session.state import State
from attention_models.protocol.atlas import THUMBNAIL, AtlasRequest, AtlasView
from attention_models.protocol.request import Request
from attention_models.protocol.trust import TrustReport, TrustRequest

# A run that stays on screen for this long (ms) is compared by itself, as long as that takes but a moment.
PAUSE = 600
_GAP = 14  # pixels between chips


class TrustStrip(Panel):
    api_version = 1
    name = "trust"
    title = "Trust"
    ground = "window"
    reads = ("document.view", AtlasView, TrustReport)

    def __init__(self, session: Session, hover: Hover, parent: QWidget | None = None) -> None:
        super().__init__(session, hover, parent)
        self.mode, self.ids, self.alone, self.rows, self.equal = (StatusChip() for _ in range(5))
        self.equal.set_clickable(True)
        self.equal.clicked.connect(self.measure)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(_GAP)
        for chip in (self.mode, self.ids, self.alone, self.rows, self.equal):
            row.addWidget(chip)
        self._pause = QTimer(self)
        self._pause.setSingleShot(True)
        self._pause.setInterval(PAUSE)
        self._pause.timeout.connect(self.measure)

    @property
    def _chips(self) -> list[StatusChip]:
        return [chip for chip in (self.ids, self.mode, self.alone, self.rows, self.equal) if not chip.isHidden()]

    @property
    def whole_width(self) -> int:
        """How wide it is with all its words."""
        return sum(chip.width_of(chip.text) for chip in self._chips) + _GAP * (len(self._chips) - 1)

    @property
    def least_width(self) -> int:
        """How wide it is where what holds is a sign alone."""
        return self.whole_width - sum(chip.saved for chip in self._chips if chip.kind == "ok")

    def fit(self, width: int) -> None:
        """Take no more than `width` if that can be: first what holds becomes a sign alone, then what does not."""
        over = self.whole_width - width
        for chip in sorted(self._chips, key=lambda chip: chip.kind != "ok"):
            chip.set_short(over > 0)
            over -= chip.saved if over > 0 else 0
        row = self.layout()
        assert row is not None
        row.activate()  # the bar around it asks at once how wide it is

    def measure(self) -> None:
        """Compare the run on screen with the model's own eager attention, now."""
        if self.session.state.ran is not None:
            self.session.request(TrustRequest(run=self.session.state.ran.run))

    def figures(self) -> Iterable[QWidget]:
        return (self,)

    def wants(self, state: State) -> Request | None:
        """The sums of the rows once the run is compared, where no panel draws the heads that they come with."""
        ran, results = state.ran, state.results
        if ran is None or not ran.sites or len(ran.tokens) > SMALL or results.of(TrustReport) is None:
            return None
        view, pooling = results.of(AtlasView), state.document.view.pooling
        if view is None or view.request.run != ran.run:  # there may be sums of a run before
            return AtlasRequest(run=ran.run, size=THUMBNAIL, pooling=pooling)
        # however it is pooled: its rows are summed before that
        return (
            None
            if view.done == 1
            else AtlasRequest(run=ran.run, size=THUMBNAIL, pooling=view.request.pooling, have=view.done)
        )

    def prints(self, state: State) -> Request | None:
        """The model as transformers opens it, beside this run."""
        return None if state.ran is None else TrustRequest(run=state.ran.run)

    def offer_script(self) -> None:
        """Nothing: it is asked for in the menu, or by the key on a sign. A button would cost the signs their words."""

    def render_state(self, state: State, old: State | None) -> None:
        results, ran = state.results, state.ran
        self.mode.set_status(*on_mode(results.loaded))
        report = results.of(TrustReport)
        for chip, verdict in ((self.ids, on_input(report)), (self.alone, on_batch(report))):
            chip.setVisible(verdict is not None)
            if verdict is not None:
                chip.set_status(*verdict)
        self.rows.set_status(*on_rows(results.loaded, ran, results.of(AtlasView)))
        self._show_equality()
        if ran is None or results.of(TrustReport) is not None or len(ran.tokens) > SMALL:
            self._pause.stop()
        elif old is None or ran is not old.ran:
            self._pause.start()

    def render_live(self, live: Live, old: Live | None) -> None:
        if old is None or (TrustRequest.lane in live.busy) != (TrustRequest.lane in old.busy):
            self._show_equality()

    def _show_equality(self) -> None:
        results, is_measuring = self.session.state.results, TrustRequest.lane in self.session.live.busy
        self.equal.set_status(*on_equality(results.loaded, results.ran, results.of(TrustReport), is_measuring))
