"""Cells made by hand, with numbers that can be checked in the head, and a session that shows them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from attention_explorer.session.intents import SelectCell, SelectHead
from attention_explorer.session.session import Session
from attention_explorer.session.state import State
from attention_models.protocol.cell import CellRequest, CellView
from attention_models.protocol.running import Ran
from attention_models.protocol.values import Candidate, SiteRef
from tests.explorer.session.answers import after, loaded, ran

SITE = SiteRef("decoder", 5)
CANDIDATES = (
    Candidate(id=7, label="␣Tom", piece="ĠTom", probability=0.679, logit=15.36, rank=1),
    Candidate(id=8, label="␣Ben", piece="ĠBen", probability=0.098, logit=13.42, rank=2),
)


def cell(query: int = 3, key: int = 1, keys: int = 4, target: int | None = None, **changes: Any) -> CellView:
    """q · k = 1 × 4 + 2 × 5 + 3 × (−2) = 8, over √4 is 4; three other keys have a score of 0."""
    scores = np.zeros(keys, np.float32)
    scores[key] = 4.0
    powers = np.exp(scores.astype(float) - 4.0)
    view = CellView(
        request=CellRequest(run=1, site=SITE, head=5, query=query, key=key, target=target),
        q=np.array([1, 2, 3, 0], np.float32),
        k=np.array([4, 5, -2, 6], np.float32),
        rotated=False,
        products=np.array([4, 10, -6, 0], np.float32),
        raw=8.0,
        scale=0.5,
        factor=1.0,
        scaled=4.0,
        bias=None,
        softcap=None,
        score=4.0,
        masked=False,
        reason="",
        row_raw=2 * scores,
        row_scores=scores,
        row_masked=np.zeros(keys, bool),
        row_weights=(powers / powers.sum()).astype(np.float32),
        shift=4.0,
        numerator=1.0,
        sink=None,
        denominator=float(powers.sum()),
        weight=float(1 / powers.sum()),
        value=np.array([3, 4], np.float32),
        value_norm=5.0,
        mixed=np.array([2.4, 3.2], np.float32),
        mixed_norm=4.0,
        head_output=np.array([1, 0], np.float32),
        head_output_norm=1.0,
        key_head=5,
        key_group=(5,),
        write=np.ones(4, np.float32),
        write_norm=2.0,
        head_write_norm=3.0,
        stream_norm=28.25,
        candidates=CANDIDATES,
        target=7 if target is None else target,
        target_label="␣Tom" if target in (None, 7) else "␣Ben",
        logit=15.36,
        effect=1.424,
        head_effect=1.64,
        effect_note="",
    )
    return replace(view, **changes)


def dead(**changes: Any) -> CellView:
    """A cell of a row that may look at nothing."""
    nothing = np.zeros(4, np.float32)
    return cell(
        masked=True,
        reason="painted over by hand",
        row_masked=np.ones(4, bool),
        row_weights=nothing,
        shift=None,
        numerator=0.0,
        denominator=0.0,
        weight=0.0,
        mixed_norm=0.0,
        head_output_norm=0.0,
        write_norm=0.0,
        head_write_norm=0.0,
        effect=0.0,
        head_effect=0.0,
        **changes,
    )


def session_at(query: int = 3, key: int = 1, *, run: Ran | None = None) -> Session:
    """A session whose text has run, with a cell of layer 5, head 5 selected."""
    state: State = after(State(), loaded(), run or ran(), SelectHead(SITE, 5), SelectCell(query, key))
    return Session(state)
