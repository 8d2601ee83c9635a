"""What the player asks of the engine. Pure."""

from __future__ import annotations

from attention_explorer.panels.decoding.side_by_side import SampleSet
from attention_explorer.panels.decoding.situation import Situation
from attention_models.protocol.decoding import DecodeSamplesRequest, DecodeStepRequest
from attention_models.protocol.decoding_settings import DecodeSettings


def step_request(
    now: Situation,
    settings: DecodeSettings,
    steps: int,
    ids: tuple[int, ...] = (),
    number: int | None = None,
    forced: int | None = None,
) -> DecodeStepRequest:
    """The token after `ids`; or step `number` of a beam search, which has no `ids`."""
    return DecodeStepRequest(
        inputs=now.inputs,
        settings=settings,
        steps=steps,
        number=len(ids) + 1 if number is None else number,
        ids=ids,
        forced=forced,
        site=now.site,
        head=now.head,
    )


def samples_request(now: Situation, samples: SampleSet, steps: int) -> DecodeSamplesRequest:
    """A token more of each sample that has not ended."""
    writing = samples.writing(now.branches)
    ids = tuple(now.branches.ids(samples.nodes[sample]) for sample in writing)
    return DecodeSamplesRequest(
        inputs=now.inputs,
        settings=samples.settings,
        steps=steps,
        number=len(ids[0]) + 1,
        samples=writing,
        ids=ids,
        site=now.site,
        head=now.head,
    )
