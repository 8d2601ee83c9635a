"""What the player asks of the engine, for what a person looks at. Pure."""

from __future__ import annotations

from explorer.panels.decoding.side_by_side import Drawn
from explorer.session.state import State
from models.protocol.decoding import DecodeSamplesRequest, DecodeStepRequest
from models.protocol.decoding_settings import DecodeSettings


def step_request(
    state: State,
    settings: DecodeSettings,
    steps: int,
    ids: tuple[int, ...] = (),
    number: int | None = None,
    forced: int | None = None,
) -> DecodeStepRequest:
    """The token after `ids`; or step `number` of a beam search, which has no `ids`."""
    site = state.site
    return DecodeStepRequest(
        text=state.document.prompt,
        target=state.document.target,
        interventions=state.document.question.interventions,
        settings=settings,
        steps=steps,
        number=len(ids) + 1 if number is None else number,
        ids=ids,
        forced=forced,
        site=site.ref if site is not None else None,
        head=state.selection.head,
    )


def samples_request(state: State, drawn: Drawn, steps: int) -> DecodeSamplesRequest:
    """A token more of each sample that has not ended."""
    branches, site = state.document.branches, state.site
    samples = drawn.writing(branches)
    ids = tuple(branches.ids(drawn.nodes[sample]) for sample in samples)
    return DecodeSamplesRequest(
        text=state.document.prompt,
        target=state.document.target,
        interventions=state.document.question.interventions,
        settings=drawn.settings,
        steps=steps,
        number=len(ids[0]) + 1,
        samples=samples,
        ids=ids,
        site=site.ref if site is not None else None,
        head=state.selection.head,
    )
